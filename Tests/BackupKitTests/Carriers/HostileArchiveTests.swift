import BackupKit
import Testing

/// Archives that somebody made to do harm (tar here; zip in its own file). Each is refused as a whole, before anything
/// is handed out by `list`, and with the entry named.
@Suite struct HostileTarTests {
    /// One 512-byte header with a right checksum.
    static func header(
        _ name: [UInt8], type: Character = "0", size: String = "00000000000", mode: String = "0000644",
        link: String = "", magic: String = "ustar\u{0}00"
    ) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: 512)
        func put(_ bytes: some Sequence<UInt8>, _ offset: Int, _ length: Int) {
            for (index, byte) in bytes.prefix(length).enumerated() { block[offset + index] = byte }
        }
        put(name, 0, 100)
        put(mode.utf8, 100, 8)
        put("0000000\u{0}0000000\u{0}".utf8, 108, 16)
        put(size.utf8, 124, 12)
        put("00000000000".utf8, 136, 12)
        put([type.asciiValue ?? 0], 156, 1)
        put(link.utf8, 157, 100)
        put(magic.utf8, 257, 8)
        return withChecksum(block)
    }

    static func withChecksum(_ header: [UInt8]) -> [UInt8] {
        var block = header
        block.replaceSubrange(148..<156, with: [UInt8](repeating: 32, count: 8))
        let sum = String(block.reduce(0) { $0 + Int($1) }, radix: 8)
        let text = String(repeating: "0", count: 6 - sum.count) + sum + "\u{0} "
        block.replaceSubrange(148..<156, with: text.utf8)
        return block
    }

    static func file(_ name: String, _ content: [UInt8] = [], type: Character = "0", link: String = "") -> [UInt8] {
        let octal = String(content.count, radix: 8)
        let size = String(repeating: "0", count: 11 - octal.count) + octal
        let padding = [UInt8](repeating: 0, count: (512 - content.count % 512) % 512)
        return header(Array(name.utf8), type: type, size: size, link: link) + content + padding
    }

    static func pax(_ records: [(String, String)], global: Bool = false) -> [UInt8] {
        var content: [UInt8] = []
        for (key, value) in records {
            var length = key.utf8.count + value.utf8.count + 3
            length += String(length + String(length).count).count
            content += Array("\(length) \(key)=\(value)\n".utf8)
        }
        return file("PaxHeader/x", content, type: global ? "g" : "x")
    }

    static let end = [UInt8](repeating: 0, count: 1024)
    static let long = String(repeating: "p/", count: 3000)

    static let refused: [(String, [UInt8])] = [
        ("absolute", file("/abs")), ("climbs", file("../x")), ("climbs inside", file("a/b/../../../x")),
        ("pax path climbs", pax([("path", "../x")]) + file("x")), ("double slash", file("//x")), ("empty", file("")),
        ("backslashes climb", file("..\\x")), ("drive", file("C:\\x")), ("dot", file("a/.")),
        ("pax NUL", pax([("path", "go\u{0}od")]) + file("x")), ("newline", file("a\nb")),
        ("escape", file("a\u{1B}[2J")),
        ("GNU long name climbs", file("././@LongLink", Array("../../x\u{0}".utf8), type: "L") + file("x")),
        ("not UTF-8", header([0x61, 0xFF, 0xFE])), ("6000 bytes", pax([("path", long + "x")]) + file("x")),
        ("symlink", file("a", type: "2", link: "/etc")), ("symlink to itself", file("a", type: "2", link: ".")),
        ("planted symlink", file("a", type: "2", link: "..") + file("a/b", [1])),
        ("hard link", file("x", [1]) + file("a", type: "1", link: "x")),
        ("hard link outside", file("a", type: "1", link: "../x")),
        ("hard link with data", file("a", [1, 2], type: "1")),
        ("character device", file("a", type: "3")), ("block device", file("a", type: "4")),
        ("fifo", file("a", type: "6")),
        ("sparse", file("a", type: "S")), ("pax sparse", pax([("GNU.sparse.map", "0,1")]) + file("a")),
        ("multi-volume", file("a", type: "M")), ("unknown type", file("a", type: "Z")),
        ("duplicate", file("a", [1]) + file("a", [2])), ("case twins", file("File") + file("file")),
        ("Unicode twins", file("\u{E9}") + file("e\u{301}")), ("file and folder", file("x") + file("x/y")),
        ("folder and file", file("x/y") + file("x")), ("explicit folder", file("x/", type: "5") + file("x")),
        ("global path", pax([("path", "x")], global: true) + file("a") + file("b")),
        ("huge size", pax([("size", "9223372036854775807")]) + file("a")),
        ("pax of a gigabyte", header(Array("p".utf8), type: "x", size: "10000000000")),
        ("long name of a gigabyte", header(Array("p".utf8), type: "L", size: "10000000000")),
    ]

    static let damaged: [(String, [UInt8])] = [
        ("wrong checksum", file("a") + [UInt8(ascii: "c")] + header(Array("b".utf8)).dropFirst()),
        ("negative size", file("a") + withChecksum(negative(header(Array("b".utf8))))),
        ("octal overflow", file("a") + header(Array("b".utf8), size: "777777777778")),
        ("size beyond the end", pax([("size", "99999999999")]) + file("a")),
        ("garbage between", file("a") + [UInt8](repeating: 0x41, count: 512) + file("b")),
        ("pax length lies", file("x", Array("99 path=a\n".utf8), type: "x") + file("a")),
        ("pax length is huge", file("x", Array("99999999999999999999 path=a\n".utf8), type: "x") + file("a")),
        ("pax without member", file("a") + pax([("path", "b")])),
        ("pax size is negative", pax([("size", "-1")]) + file("a")),
    ]

    static func negative(_ header: [UInt8]) -> [UInt8] {
        var block = header
        block.replaceSubrange(124..<136, with: [UInt8](repeating: 0xFF, count: 12))
        return block
    }

    private static func pack(_ folder: String, _ tar: [UInt8]) throws -> [String] {
        try writeFile("\(folder)/t.tar", tar)
        guard hasTool("zstd"), try shell("zstd -q \(folder)/t.tar -o \(folder)/t.zst").status == 0 else {
            return ["\(folder)/t.tar"]
        }
        return ["\(folder)/t.tar", "\(folder)/t.zst"]
    }

    @Test(arguments: refused.indices)
    func isRefused(_ number: Int) throws {
        let (what, members) = Self.refused[number]
        try withScratch { folder in
            for path in try Self.pack(folder, members + Self.end) {
                #expect(code { _ = try CarrierOpener.open(path).list() } == .refused, "\(what)")
                #expect(code { _ = try visitAll(path) } == .refused, "\(what)")
            }
        }
    }

    @Test(arguments: damaged.indices)
    func isReportedAsDamage(_ number: Int) throws {
        let (what, members) = Self.damaged[number]
        try withScratch { folder in
            for path in try Self.pack(folder, members + Self.end) {
                #expect(code { _ = try CarrierOpener.open(path).list() } != nil, "\(what)")
                // Damage may come as a finding or, where there is no telling it from malice, as a refusal.
                let isReported = try code { _ = try visitAll(path) } != nil || !visitAll(path).isClean
                #expect(isReported, "\(what)")
            }
        }
    }

    @Test func harmlessOddities() throws {
        try withScratch { folder in
            let members =
                Self.file("./", type: "5") + Self.file("./a", [1]) + Self.file("folder/", type: "5")
                + Self.file("folder/b", [2]) + Self.pax([("comment", "0123")], global: true)
                + Self.pax([("path", "\u{E9}"), ("mtime", "12.75"), ("SCHILY.xattr.user.x", "y")])
                + Self.file("e", [3]) + Self.file("c", [4], type: "7")
            try writeFile("\(folder)/t.tar", members + Self.end + Self.end)
            let visited = try visitAll("\(folder)/t.tar")
            #expect(visited.isClean)
            #expect(visited.pieces == ["a": [1], "folder/b": [2], "\u{E9}": [3], "c": [4]])
            #expect(visited.times["\u{E9}"] == 12)
        }
    }

    @Test func anEndMarkIsAskedFor() throws {
        try withScratch { folder in
            let member = Self.file("a", Array(repeating: 7, count: 700))
            for (tail, isSound) in [([], false), (Array(Self.end.prefix(512)), false), (Self.end, true)] {
                try writeFile("\(folder)/t.tar", member + tail)
                let visited = try visitAll("\(folder)/t.tar")
                #expect(visited.pieces["a"]?.count == 700)
                #expect(visited.isClean == isSound)
            }
            for stray in [Self.file("hidden"), [UInt8](repeating: 0, count: 511) + [1]] {
                try writeFile("\(folder)/t.tar", member + Self.end + stray)
                #expect(try visitAll("\(folder)/t.tar").findings.map(\.code) == [.trailingData])
            }
        }
    }

    @Test func filtersInsideFiltersAreRefused() throws {
        guard hasTool("zstd"), hasTool("xz") else { return }
        try withScratch { folder in
            try writeFile("\(folder)/t.tar", Self.file("a", [1]) + Self.end)
            for chain in ["gzip | gzip", "xz | xz", "zstd | zstd", "gzip | zstd", "xz | gzip", "zstd | gzip"] {
                #expect(try shell("cd \(folder) && cat t.tar | \(chain) > x").status == 0)
                #expect(code { _ = try CarrierOpener.open("\(folder)/x").list() } == .refused, "\(chain)")
                #expect(code { _ = try visitAll("\(folder)/x") } == .refused, "\(chain)")
            }
        }
    }

    @Test func otherFormatsAreRefused() throws {
        guard hasTool("bsdtar") else { return }
        try withScratch { folder in
            try writeFile("\(folder)/f", [1, 2, 3])
            for (option, expected) in [
                ("--format=cpio", .notFound), ("--format=newc", .notFound), ("--format=bin", .notFound),
                ("--format=mtree", .notFound), ("--format=iso9660", .refused),
                ("--format=7zip", .notFound), ("--format=shar", .refused),
            ] as [(String, ErrorCode)] {
                #expect(try shell("cd \(folder) && bsdtar \(option) -cf x f").status == 0, "\(option)")
                #expect(code { _ = try CarrierOpener.open("\(folder)/x").list() } == expected, "\(option)")
                #expect(try shell("cd \(folder) && gzip -c x > y").status == 0)
                #expect(code { _ = try CarrierOpener.open("\(folder)/y").list() } == .refused, "\(option) in gzip")
            }
        }
    }

    @Test(arguments: ["zstd -q", "gzip -1", "xz -0"])
    func bombsStopAtTheLimit(_ packer: String) throws {
        guard hasTool("zstd"), hasTool("xz") else { return }
        try withScratch { folder in
            // 12 MiB of zeros in a few KiB, with limits to match.
            let zeros = String(12 << 20, radix: 8)
            try writeFile("\(folder)/h", Self.header(Array("zeros".utf8), size: "000" + zeros))
            let run = try shell("cd \(folder) && { cat h; head -c \((12 << 20) + 1024) /dev/zero; } | \(packer) > x")
            #expect(run.status == 0)
            var limits = ReadLimits()
            limits.ratioGrace = 1 << 20
            limits.ratio = 100
            #expect(code { _ = try visitAll("\(folder)/x", limits) } == .refused)
            limits = ReadLimits()
            #expect(try visitAll("\(folder)/x", limits).isClean)
        }
    }
}

@Suite struct HostileFolderTests {
    @Test(arguments: ["ln -s /etc/passwd x", "ln -s . x", "mkfifo x", "mkdir d && ln -s nowhere d/x", "ln -s /etc d"])
    func linksAndPipesAreRefusedAndNeverFollowed(_ command: String) throws {
        try withScratch { folder in
            try writeFile("\(folder)/a", [1])
            #expect(try shell("cd \(folder) && \(command)").status == 0)
            let reader = try DirectoryReader(folder)
            #expect(code { _ = try reader.list() } == .refused)
            #expect(code { _ = try visitAll(reader) } == .refused)
            #expect(code { try reader.read("x") { _ in } } != nil)
            #expect(code { try reader.read("d/passwd") { _ in } } != nil)
        }
    }

    @Test(arguments: ["printf more >> a", "truncate -s 10 a"])
    func aFileThatChangesWhileItIsReadIsRefused(_ command: String) throws {
        try withScratch { folder in
            try writeFile("\(folder)/a", [UInt8](repeating: 1, count: 1 << 20))
            let reader = try DirectoryReader(folder)
            let change: (UnsafeRawBufferPointer) throws -> Void = { _ in
                _ = try shell("cd \(folder) && \(command)")
            }
            #expect(code { try reader.read("a", change) } == .damaged)
        }
    }

    @Test func namesThatAreNotUTF8AreRefused() throws {
        try withScratch { folder in
            let run = try shell("cd \(folder) && touch $(printf 'a\\377b')")
            #expect(run.status == 0)
            #expect(code { _ = try DirectoryReader(folder).list() } == .refused)
        }
    }

    @Test func foldersDeeperThanAnyLibraryAreRefused() throws {
        try withScratch { folder in
            let path = Array(repeating: "d", count: 70).joined(separator: "/")
            let run = try shell("cd \(folder) && mkdir -p \(path) && touch \(path)/x")
            #expect(run.status == 0)
            #expect(code { _ = try DirectoryReader(folder).list() } == .refused)
        }
    }
}
