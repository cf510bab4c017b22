import TestSupport
import Testing

@testable import BackupKit

@Suite struct DigestTextTests {
    @Test func aDigestIsReadFromDigitsOfEitherCaseAndNothingElse() throws {
        let digest = SHA256Digest.of("text")
        #expect(digest.hex == "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1")
        func read(_ text: [UInt8]) -> SHA256Digest? {
            text.withUnsafeBytes { SHA256Digest(hexBytes: Slice(base: $0, bounds: $0.indices)) }
        }
        #expect(read(Array(digest.hex.utf8)) == digest)
        #expect(read(Array(digest.hex.uppercased().utf8)) == digest)
        #expect(read(Array(digest.hex.utf8.dropLast())) == nil)
        for place in [0, 7, 8, 33, 63] {
            for byte in UInt8.min...UInt8.max {
                var text = Array(digest.hex.utf8)
                text[place] = byte
                let digit = Character(Unicode.Scalar(byte)).hexDigitValue
                #expect((read(text) != nil) == (byte < 0x80 && digit != nil), "byte \(byte)")
                if let found = read(text) { #expect(found.hex == String(decoding: text, as: UTF8.self).lowercased()) }
            }
        }
    }
}

private func digest(_ hex: String) throws -> SHA256Digest { try #require(SHA256Digest(hex: hex)) }

private func hello() -> SHA256Digest { .of("hello") }

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

private func tree(_ json: String) throws -> Tree {
    try Array(json.utf8).withUnsafeBytes { try Tree(parsing: $0) }
}

/// Cuts at every byte and damages at random; whatever comes out, nothing may trap.
private func torment(_ bytes: [UInt8], _ read: (UnsafeRawBufferPointer) throws -> Void) {
    for end in 0..<bytes.count { bytes[..<end].withUnsafeBytes { piece in _ = try? read(piece) } }
    var random = SeededGenerator(seed: testSeed())
    for _ in 0..<2000 {
        var damaged = bytes
        for _ in 0...random.below(3) where !damaged.isEmpty {
            damaged[random.below(damaged.count)] = UInt8(truncatingIfNeeded: random.next())
        }
        damaged.withUnsafeBytes { piece in _ = try? read(piece) }
    }
}

@Suite struct PackHeaderTests {
    @Test func entriesHaveTheBytesOfTheSpecification() throws {
        let id = hello().hex
        func hex(_ blob: PackedBlob) -> String {
            PackHeader.encode([blob]).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
        let packed = PackedBlob(.data, hello(), offset: 0, length: 46, plainLength: 5)
        #expect(hex(packed) == "022e00000005000000" + id)
        #expect(hex(PackedBlob(.data, hello(), offset: 0, length: 37, plainLength: 0)) == "0025000000" + id)
        #expect(hex(PackedBlob(.tree, hello(), offset: 0, length: 46, plainLength: 5)).hasPrefix("03"))
        #expect(PackHeader.packSize([PackedBlob](repeating: packed, count: 8)) == UInt64(8 * 46 + 8 * 41 + 36))
    }

    @Test func whatIsWrittenIsReadWithItsOffsets() throws {
        let blobs = [
            PackedBlob(.data, hello(), offset: 0, length: 46, plainLength: 5),
            PackedBlob(.tree, .of("a"), offset: 46, length: 37, plainLength: 0),
            PackedBlob(.tree, .of("b"), offset: 83, length: 100, plainLength: 300),
        ]
        let header = PackHeader.encode(blobs)
        #expect(try header.withUnsafeBytes { try PackHeader.decode($0) } == blobs)
        torment(header) { _ = try PackHeader.decode($0) }
    }

    @Test func offsetsThatLeaveFourGigabytesAreRefused() {
        let large = PackedBlob(.data, hello(), offset: 0, length: .max, plainLength: 0)
        let header = PackHeader.encode([large, large, large])
        #expect(throws: BackupError.self) { try header.withUnsafeBytes { try PackHeader.decode($0) } }
    }

    @Test(arguments: [0, 31, 68, 200, UInt32(16 << 20) + 1, .max])
    func headersOfImpossibleLengthAreRefused(length: UInt32) {
        var trailer: [UInt8] = []
        PackHeader.appendWord(length, to: &trailer)
        #expect(throws: BackupError.self) {
            try trailer.withUnsafeBytes { try PackHeader.range(trailer: $0, packSize: 110) }
        }
    }

    /// No pack has one so long, however large it is.
    @Test func aHeaderOfMoreThanSixteenMegabytesIsRefused() throws {
        for (length, isTaken) in [(16 << 20, true), ((16 << 20) + 1, false), (Int(UInt32.max), false)] {
            var trailer: [UInt8] = []
            PackHeader.appendWord(UInt32(length), to: &trailer)
            let range = try? trailer.withUnsafeBytes { try PackHeader.range(trailer: $0, packSize: 1 << 33) }
            #expect((range != nil) == isTaken)
        }
    }

    @Test func theHeaderOfTheSmallestPackIsFound() throws {
        let range = try [UInt8]([69, 0, 0, 0]).withUnsafeBytes { try PackHeader.range(trailer: $0, packSize: 110) }
        #expect(range == 37..<106)
    }
}

@Suite struct PackIndexTests {
    private let index = PackIndex(packs: [
        PackIndex.Pack(
            id: .of("pack"),
            blobs: [
                PackedBlob(.data, hello(), offset: 42, length: 46, plainLength: 5),
                PackedBlob(.tree, .of("tree"), offset: 0, length: 42, plainLength: 0),
            ]),
        PackIndex.Pack(id: .of("empty"), blobs: []),
    ])

    @Test func whatIsWrittenHasTheFormAndIsRead() throws {
        let bytes = index.encoded()
        #expect(text(bytes).hasSuffix("]}]}\n") || text(bytes).hasSuffix("\"blobs\":[]}]}\n"))
        #expect(text(bytes).contains("\"type\":\"data\",\"offset\":42,\"length\":46,\"uncompressed_length\":5}"))
        #expect(text(bytes).contains("\"type\":\"tree\",\"offset\":0,\"length\":42}"))
        #expect(try bytes.withUnsafeBytes { try PackIndex(parsing: $0) } == index)
        torment(bytes) { _ = try PackIndex(parsing: $0) }
    }

    @Test func othersMayAddAndReorderMembers() throws {
        let json = """
            { "x": [1], "packs_to_delete": [{"id":"\(hello().hex)","time":"2026-11-21T00:00:00Z","blobs":[]}],
              "supersedes": ["\(hello().hex)"], "packs": [{"blobs":[{"length":46,"offset":7,"y":{},"type":"data",
              "id":"\(hello().hex)"}],"id":"\(SHA256Digest.of("pack").hex)"}] }
            """
        let read = try Array(json.utf8).withUnsafeBytes { try PackIndex(parsing: $0) }
        #expect(read.packs.map(\.isToBeDeleted) == [true, false])
        #expect(read.packs.last?.blobs.first?.offset == 7)
    }

    @Test(arguments: [
        "{}", "[]", "{\"packs\":[{\"blobs\":[]}]}", "{\"packs\":[{\"id\":\"00\",\"blobs\":[]}]}", "{\"packs\":{}}",
        "{\"tree\":null}",
    ])
    func whatIsNoIndexIsRefused(json: String) {
        #expect(throws: BackupError.self) { try Array(json.utf8).withUnsafeBytes { try PackIndex(parsing: $0) } }
    }

    @Test(arguments: ["-1", "4294967296", "1.5", "1e3", "\"1\"", "null"])
    func numbersThatDoNotFitAreRefused(number: String) {
        let json = """
            {"packs":[{"id":"\(hello().hex)","blobs":[{"id":"\(hello().hex)","type":"data","offset":\(number),\
            "length":46}]}]}
            """
        #expect(throws: BackupError.self) { try Array(json.utf8).withUnsafeBytes { try PackIndex(parsing: $0) } }
    }
}

@Suite struct GoTextTests {
    static let names: [([UInt8], String)] = [
        (Array("plain.pdf".utf8), "\"plain.pdf\""),
        (Array("bad".utf8) + [0xFF] + Array("name".utf8), #""bad\\xffname""#),
        (Array(#"q"uo\te"#.utf8), #""q\\\"uo\\\\te""#),
        (Array("nb\u{A0}sp".utf8), #""nb\\u00a0sp""#),
        (Array("<amp&>".utf8), #""\u003camp\u0026\u003e""#),
        (Array("e\u{301} é 😀".utf8), "\"e\u{301} é 😀\""),
        (Array("\u{7}\u{8}\t\n\u{B}\u{C}\r\u{1B}\u{7F}".utf8), #""\\a\\b\\t\\n\\v\\f\\r\\x1b\\x7f""#),
        (Array("\u{2028}\u{200B}\u{AD}\u{FEFF}\u{E0001}".utf8), #""\\u2028\\u200b\\u00ad\\ufeff\\U000e0001""#),
        ([0xC3, 0x28, 0xED, 0xA0, 0x80], #""\\xc3(\\xed\\xa0\\x80""#),
    ]

    @Test(arguments: names) func namesAreQuotedAsGoDoes(name: [UInt8], json: String) throws {
        var node = TreeNode(name: name, kind: .file)
        node.content = []
        let written = text(try Tree(nodes: [node]).encoded())
        #expect(written.hasPrefix("{\"nodes\":[{\"name\":\(json),"))
        #expect(try tree(written).nodes.map(\.name) == [name])
    }

    @Test(arguments: [
        #"\'"#, #"\x4"#, #"\xg0"#, #"\u12"#, #"\ud800"#, #"\U00110000"#, #"\8"#, #"\400"#, #"\"#, #"a"b"#, "a\nb",
        #"\q"#,
    ])
    func brokenQuotesAreRefused(quoted: String) {
        #expect(Array(quoted.utf8).withUnsafeBytes { GoText.unquoted($0) } == nil)
    }

    @Test func octalEscapesAreRead() {
        #expect(Array(#"\101\377"#.utf8).withUnsafeBytes { GoText.unquoted($0) } == [0x41, 0xFF])
    }

    @Test func everyNameComesBack() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<500 {
            let name = (0..<random.below(24)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            var quoted: [UInt8] = []
            name.withUnsafeBytes { GoText.appendQuoted($0, to: &quoted) }
            #expect(quoted.withUnsafeBytes { GoText.unquoted($0) } == name)
        }
    }

    @Test func stringsAreEscapedAsGoDoes() {
        var out: [UInt8] = []
        GoText.appendString("a\"\\\n\r\t\u{8}\u{1F}<>&\u{2028}\u{2029}\u{2030}é", to: &out)
        #expect(text(out) == #""a\"\\\n\r\t\u0008\u001f\u003c\u003e\u0026\u2028\u2029"# + "\u{2030}é\"")
        out = []
        ([0x61, 0xFF, 0x62] as [UInt8]).withUnsafeBytes { GoText.appendString($0, to: &out) }
        #expect(text(out) == #""a\ufffdb""#)
    }
}

@Suite struct GoTimeTests {
    @Test(arguments: [
        "2026-11-21T02:01:58.430654493Z", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05.1+05:30",
        "1969-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.5+11:00",
    ])
    func timesKeepTheirBytes(text: String) throws { #expect(try #require(GoTime(text)).text == text) }

    @Test func trailingZerosAreCut() throws {
        #expect(GoTime("2024-01-02T03:04:05.120000Z")?.text == "2024-01-02T03:04:05.12Z")
        #expect(GoTime(nanosecondsSince1970: -1).text == "1969-12-31T23:59:59.999999999Z")
        #expect(GoTime(nanosecondsSince1970: .min).text == GoTime(nanosecondsSince1970: .min).text)
        #expect(GoTime(Timestamp(milliseconds: -1)).text == "1969-12-31T23:59:59.999Z")
        #expect(GoTime(seconds: .max).text.hasPrefix("9999"))
    }

    @Test(arguments: [
        "", "2024", "2024-13-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-02T03:04:05", "2024-01-02T03:04:05.Z",
        "2024-01-02T25:04:05Z", "2024-01-02 03:04:05Z", "2024-01-02T03:04:05+0100", "2024-01-02T03:04:05ZZ",
    ])
    func whatIsNoTimeIsRefused(text: String) { #expect(GoTime(text) == nil) }
}

@Suite struct TreeTests {
    @Test func membersComeInResticsOrderAndUnknownOnesSurvive() throws {
        let json = """
            {"nodes":[{"name":"a","type":"file","mode":420,"mtime":"2026-11-21T09:05:19.321383295Z",\
            "atime":"2026-11-21T09:05:19Z","ctime":"2026-11-21T09:05:19+01:00","uid":0,"gid":4294967295,"user":"r",\
            "group":"g","inode":18446744073709551615,"device_id":65024,"size":5,"links":2,\
            "extended_attributes":[{"name":"user.x","value":"aGV5"}],"content":["\(hello().hex)"],"error":"e\\u003c",\
            "later":{"x":[1,2.50,null]}},{"name":"b","type":"dir","mode":2147484141,"mtime":"2026-11-21T09:05:19Z",\
            "atime":"2026-11-21T09:05:19Z","ctime":"2026-11-21T09:05:19Z","uid":1,"gid":1,"content":null,\
            "subtree":"\(hello().hex)"},{"name":"c","type":"symlink","mtime":"2026-11-21T09:05:19Z",\
            "atime":"2026-11-21T09:05:19Z","ctime":"2026-11-21T09:05:19Z","uid":1,"gid":1,"linktarget":"a\\u0026b",\
            "linktarget_raw":"Lw==","content":null},{"name":"d","type":"odd","mtime":"2026-11-21T09:05:19Z",\
            "atime":"2026-11-21T09:05:19Z","ctime":"2026-11-21T09:05:19Z","uid":1,"gid":1,"device":7,"content":null}]}

            """
        let read = try tree(json)
        #expect(text(try read.encoded()) == json)
        #expect(read.nodes.map(\.kind) == [.file, .folder, .symlink, .other("odd")])
        torment(Array(json.utf8)) { _ = try Tree(parsing: $0) }
    }

    @Test func nodesAreSortedByTheBytesOfTheirNames() throws {
        let names: [[UInt8]] = [[0xFF], Array("b".utf8), Array("é".utf8), Array("B".utf8), Array("\"".utf8)]
        let written = try Tree(nodes: names.map { TreeNode(name: $0, kind: .folder) }).encoded()
        let order = try tree(text(written)).nodes.map(\.name)
        #expect(order == [Array("\"".utf8), Array("B".utf8), Array("b".utf8), Array("é".utf8), [0xFF]])
        let twice = Tree(nodes: [TreeNode(name: [1], kind: .file), TreeNode(name: [1], kind: .file)])
        #expect(throws: BackupError.self) { try twice.encoded() }
    }

    @Test func namesThatLeadElsewhereAreKnown() {
        let unsafe: [[UInt8]] = [[], [0x2E], [0x2E, 0x2E], Array("a/b".utf8), [0x61, 0]]
        for name in unsafe { #expect(!TreeNode(name: name, kind: .file).hasSafeName) }
        #expect(TreeNode(name: Array("..a".utf8), kind: .file).hasSafeName)
    }

    @Test func aTreeWithoutNodesIsNone() {
        #expect(throws: BackupError.self) { try tree("{}") }
        #expect(throws: BackupError.self) { try tree("{\"packs\":[]}") }
        #expect(throws: Never.self) { try tree("{\"nodes\":null}") }
    }
}

@Suite struct SnapshotFileTests {
    private let json = """
        {"time":"2024-01-02T03:04:05Z","parent":"\(SHA256Digest.of("p").hex)","tree":"\(hello().hex)",\
        "paths":["/a\\u0026b"],"hostname":"h","username":"u","uid":1000,"gid":100,"excludes":["*.o"],"tags":["t","<"],\
        "original":"\(SHA256Digest.of("o").hex)","program_version":"x 1","summary":{"files_new":1},"later":[{"x":1}]}
        """

    @Test func unknownMembersSurvive() throws {
        let read = try Array(json.utf8).withUnsafeBytes { try SnapshotFile(parsing: $0) }
        #expect(text(read.encoded()) == json.replacing("\"<\"", with: "\"\\u003c\""))
        #expect(read.paths == ["/a&b"])
        torment(Array(json.utf8)) { _ = try SnapshotFile(parsing: $0) }
    }

    @Test func aSnapshotWithoutATreeIsReadAndSaysSo() throws {
        let json = Array(#"{"time":"2024-01-02T03:04:05Z","tree":null,"paths":[]}"#.utf8)
        #expect(try json.withUnsafeBytes { try SnapshotFile(parsing: $0) }.tree == nil)
        let other = Array(#"{"packs":[]}"#.utf8)
        #expect(throws: BackupError.self) { try other.withUnsafeBytes { try SnapshotFile(parsing: $0) } }
    }
}

@Suite struct UnpackedTests {
    private func decode(_ bytes: [UInt8], cap: Int = 1 << 20) throws -> [UInt8] {
        try bytes.withUnsafeBytes { try Unpacked.decode($0, cap: cap) }
    }

    @Test func bothFormsAreRead() throws {
        let json = Array("{\"a\":1}".utf8)
        #expect(try decode(json) == json)
        let packed = try Unpacked.encode(json)
        #expect(packed.first == 2)
        #expect(try decode(packed) == json)
        #expect(try Unpacked.encode(json, version: 1) == json)
        torment(packed) { _ = try Unpacked.decode($0, cap: 1 << 20) }
    }

    @Test func whatUnpacksToTooMuchIsRefused() throws {
        let long = [UInt8](repeating: 0x20, count: 3 << 20)
        let packed = try Unpacked.encode(long)
        #expect(packed.count < 1000)
        #expect(try decode(packed, cap: long.count) == long)
        #expect(throws: BackupError.self) { try decode(packed, cap: long.count - 1) }
        #expect(throws: BackupError.self) { try decode(Array("{        }".utf8), cap: 5) }
    }

    @Test func onlyASingleFrameIsTaken() throws {
        let packed = try Unpacked.encode(Array("[]".utf8))
        #expect(throws: BackupError.self) { try decode(packed + [0]) }
        #expect(throws: BackupError.self) { try decode(packed + packed[1...]) }
        #expect(throws: BackupError.self) { try decode(Array(packed.dropLast())) }
        #expect(throws: BackupError.self) { try decode([]) }
        #expect(throws: BackupError.self) { try decode([2]) }
        #expect(throws: BackupError.self) { try decode([3] + packed) }
        // A frame to be skipped, which holds nothing.
        #expect(throws: BackupError.self) { try decode([2, 0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0]) }
        // A frame that wants a dictionary.
        var dictionary = packed
        dictionary[5] |= 1
        #expect(throws: BackupError.self) { try decode(dictionary) }
    }
}

@Suite struct ResticWritesTheSameBytes {
    @Test func treesIndexesAndSnapshotsOfResticAreWrittenAsItDid() throws {
        try withTemporaryFolder { folder in
            let names = [
                "plain", "q\"uo\\te", "nb\u{A0}sp", "<amp&>", "e\u{301}", "tab\tnl\n", "\u{2028}\u{200B}", "😀 x",
            ]
            for name in names { try writeFile("\(folder)/odd/\(name)", name) }
            try writeFile("\(folder)/odd/empty", "")
            _ = try runProcess(["ln", "-s", "a<b", "\(folder)/odd/link"])
            _ = try runProcess(["chmod", "1777", "\(folder)/odd"])
            let environment = testEnvironment([
                "RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": "\(folder)/r", "RESTIC_CACHE_DIR": "\(folder)/cache",
            ])
            func restic(_ words: String...) throws -> [UInt8] {
                let done = try runProcess(["restic"] + words, environment: environment, in: folder)
                try #require(done.status == 0, "\(done.stderr)")
                return done.stdoutBytes
            }
            _ = try restic("init", "-q")
            _ = try restic("backup", "-q", "odd", "--tag", "a,<b>")
            let id = try #require(try Directory.names(in: "\(folder)/r/snapshots").first)
            let snapshot = try restic("cat", "snapshot", id).withUnsafeBytes { try SnapshotFile(parsing: $0) }
            #expect(snapshot.tags == ["a", "<b>"])
            var next: [SHA256Digest] = [try #require(snapshot.tree)]
            var seen = 0
            while let id = next.popLast() {
                let bytes = try restic("cat", "blob", id.hex)
                #expect(bytes.withUnsafeBytes { SHA256Digest.of($0) } == id)
                let read = try bytes.withUnsafeBytes { try Tree(parsing: $0) }
                #expect(text(try read.encoded()) == text(bytes))
                next += read.nodes.compactMap(\.subtree)
                seen += read.nodes.count
            }
            #expect(seen == names.count + 3)
            let index = try #require(try Directory.names(in: "\(folder)/r/index").first)
            let written = try restic("cat", "index", index)
            let read = try written.withUnsafeBytes { try PackIndex(parsing: $0) }
            #expect(text(read.encoded()).trimmingNewline == text(written).trimmingNewline)
        }
    }
}

extension String {
    fileprivate var trimmingNewline: String { String(reversed().drop { $0 == "\n" }.reversed()) }
}
