import BackupKit
import Testing

/// A zip built byte by byte, so that any field can lie. Entries are stored.
struct ZipBuilder {
    struct Entry {
        var name: [UInt8]
        var content: [UInt8] = []
        var flags: UInt16 = 0x800
        var method: UInt16 = 0
        var attributes: UInt32 = 0o100644 << 16
        var centralName: [UInt8]?
        var centralCRC: UInt32?
        var crc: UInt32?
        var centralSize: UInt32?
        var centralOffset: UInt32?
        var extra: [UInt8] = []

        init(_ name: String, _ content: [UInt8] = [], _ change: (inout Entry) -> Void = { _ in }) {
            self.name = Array(name.utf8)
            self.content = content
            change(&self)
        }
    }

    var before: [UInt8] = []
    var entries: [Entry]
    var between: [UInt8] = []
    var afterEntries: [UInt8] = []
    var comment: [UInt8] = []
    var count: UInt16?

    static func crc32(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
        return ~crc
    }

    private static func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 255) } }
    private static func little(_ value: UInt16) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }

    var bytes: [UInt8] {
        typealias Builder = ZipBuilder
        var out = before
        var directory: [UInt8] = []
        for (number, entry) in entries.enumerated() {
            let offset = entry.centralOffset ?? UInt32(out.count)
            let crc = entry.crc ?? Builder.crc32(entry.content)
            let size = UInt32(entry.content.count)
            let common =
                Builder.little(entry.flags) + Builder.little(entry.method) + Builder.little(UInt32(0x5A21_6000))
            out +=
                [0x50, 0x4B, 3, 4, 20, 0] + common + Builder.little(crc) + Builder.little(size) + Builder.little(size)
            out += Builder.little(UInt16(entry.name.count)) + Builder.little(UInt16(entry.extra.count))
            out += entry.name + entry.extra + entry.content
            if number == 0 { out += between }
            let name = entry.centralName ?? entry.name
            let centralSize = entry.centralSize ?? size
            directory += [0x50, 0x4B, 1, 2, 20, 3, 20, 0] + common + Builder.little(entry.centralCRC ?? crc)
            directory += Builder.little(centralSize) + Builder.little(centralSize) + Builder.little(UInt16(name.count))
            directory +=
                Builder.little(UInt16(entry.extra.count)) + [0, 0, 0, 0, 0, 0] + Builder.little(entry.attributes)
            directory += Builder.little(offset) + name + entry.extra
        }
        out += afterEntries
        let start = UInt32(out.count)
        let number = Builder.little(count ?? UInt16(entries.count))
        out += directory + [0x50, 0x4B, 5, 6, 0, 0, 0, 0] + number + number + Builder.little(UInt32(directory.count))
        return out + Builder.little(start) + Builder.little(UInt16(comment.count)) + comment
    }
}

@Suite struct HostileZipTests {
    typealias Entry = ZipBuilder.Entry

    private static func zip(_ entries: Entry...) -> ZipBuilder { ZipBuilder(entries: entries) }

    /// Info-ZIP's second name of an entry, in an extra field that libarchive goes by and we do not.
    @Test func aSecondNameInAnExtraFieldIsRefused() throws {
        try withScratch { folder in
            let entry = Entry("good", [1, 2, 3]) { entry in
                let crc = ZipBuilder.crc32(entry.name)
                entry.extra = [0x75, 0x70, 9, 0, 1] + (0..<4).map { UInt8(crc >> (8 * $0) & 255) } + Array("evil".utf8)
            }
            try writeFile("\(folder)/z", Self.zip(entry).bytes)
            let reader = try ArchiveReader(path: "\(folder)/z")
            #expect(code { _ = try visitAll(reader) } == .refused)
            #expect(code { try reader.read("good") { _ in } } == .refused)
        }
    }

    private static func changed(_ change: (inout ZipBuilder) -> Void) -> ZipBuilder {
        var builder = zip(Entry("a", [1, 2, 3]), Entry("b", [4]))
        change(&builder)
        return builder
    }

    /// An extra field that claims 64-bit sizes.
    private static func wide(_ size: UInt64) -> [UInt8] {
        [1, 0, 16, 0] + (0..<2).flatMap { _ in (0..<8).map { UInt8(size >> (8 * $0) & 255) } }
    }

    static let refused: [(String, ZipBuilder)] = [
        ("climbs", zip(Entry("../x"))), ("absolute", zip(Entry("/abs"))), ("backslashes", zip(Entry("..\\x"))),
        ("drive", zip(Entry("C:\\x"))), ("share", zip(Entry("//x"))), ("empty name", zip(Entry(""))),
        ("NUL", zip(Entry("go\u{0}od"))), ("folder climbs", zip(Entry("../"))), ("escape", zip(Entry("\u{1B}[2J"))),
        ("not UTF-8", zip(Entry("x") { $0.name = [0x61, 0xFF] })), ("duplicate", zip(Entry("a", [1]), Entry("a", [2]))),
        ("case twins", zip(Entry("File"), Entry("file"))), ("file and folder", zip(Entry("x"), Entry("x/y"))),
        ("encrypted", zip(Entry("a", [1]) { $0.flags |= 1 })),
        ("hidden headers", zip(Entry("a", [1]) { $0.flags |= 0x2000 })),
        ("bzip2", zip(Entry("a", [1]) { $0.method = 12 })), ("unknown method", zip(Entry("a", [1]) { $0.method = 99 })),
        ("symlink", zip(Entry("a", Array("/etc".utf8)) { $0.attributes = 0o120777 << 16 })),
        ("fifo", zip(Entry("a") { $0.attributes = 0o010644 << 16 })),
        ("overlap", zip(Entry("a", [1, 2, 3]), Entry("a", [1, 2, 3]) { $0.centralOffset = 0 })),
        ("prepended", changed { $0.before = [1, 2, 3] }), ("hidden between", changed { $0.between = [1, 2, 3] }),
        ("hidden behind", changed { $0.afterEntries = Array(repeating: 9, count: 30) }),
        ("too few counted", changed { $0.count = 1 }),
        ("two end records", changed { $0.comment = [0x50, 0x4B, 5, 6] + Array(repeating: 0, count: 18) }),
        (
            "more data than there is",
            zip(
                Entry("a", [1]) {
                    $0.centralSize = .max; $0.extra = wide(1 << 40)
                })
        ),
    ]

    /// Two stories about the first entry, and an entry that is sound.
    static let contradicting: [(String, ZipBuilder)] = [
        ("two names", zip(Entry("good", [7]) { $0.centralName = Array("evil".utf8) }, Entry("b", [4]))),
        ("a longer name", zip(Entry("good", [7]) { $0.centralName = Array("goo".utf8) }, Entry("b", [4]))),
        ("two checksums", zip(Entry("a", [1]) { $0.centralCRC = 7 }, Entry("b", [4]))),
        ("two sizes", zip(Entry("a", [1, 2]) { $0.centralSize = 1 }, Entry("b", [4]))),
    ]

    /// Neither story is believed, and the other entry is handed out.
    @Test(arguments: contradicting.indices)
    func whatAZipSaysTwice_isNotBelieved(_ number: Int) throws {
        let (what, builder) = Self.contradicting[number]
        try withScratch { folder in
            try writeFile("\(folder)/z", builder.bytes)
            let visited = try visitAll("\(folder)/z")
            #expect(visited.pieces == ["b": [4]] && visited.damaged.count == 1, "\(what): \(visited)")
            for name in ["a", "good", "goo", "evil"] {
                #expect(code { try CarrierOpener.open("\(folder)/z").read(name) { _ in } } != nil, "\(what): \(name)")
            }
        }
    }

    /// One flipped bit in the header of an entry costs that entry at most.
    @Test(arguments: [false, true]) func aFlippedBitInAHeader_costsItsEntryOnly(packs: Bool) throws {
        try withScratch { folder in
            let pieces = ["one.txt", "two.txt", "three.txt"].map {
                Piece(path: $0, bytes: Array(repeating: 65, count: 90))
            }
            for piece in pieces { try writeFile("\(folder)/\(piece.path)", piece.bytes) }
            if packs {
                let made = try shell("cd \(folder) && zip -q z.zip one.txt two.txt three.txt && mv z.zip z")
                #expect(made.status == 0)
            } else {
                // With a record behind the data.
                try writeCarrier("\(folder)/z", .zip, pieces)
            }
            let sound = try readFile("\(folder)/z")
            let starts = sound.indices.dropLast(3).filter { sound[$0..<$0 + 4].elementsEqual([0x50, 0x4B, 3, 4]) }
            #expect(starts.count == 3)
            for (number, start) in starts.enumerated() {
                let length = 30 + Int(sound[start + 26]) + Int(sound[start + 28])
                // By its first bytes the file is known as a zip.
                for bit in (number == 0 ? 32 : 0)..<length * 8 {
                    var bytes = sound
                    bytes[start + bit / 8] ^= 1 << UInt8(bit % 8)
                    try writeFile("\(folder)/f", bytes)
                    let visited = try visitAll("\(folder)/f")
                    let place = "entry \(number), bit \(bit)"
                    #expect(visited.damaged.count + visited.pieces.count == 3 && visited.findings.isEmpty, "\(place)")
                    #expect(
                        visited.damaged.keys.allSatisfy { $0 == pieces[number].path }, "\(place): \(visited.damaged)")
                    #expect(visited.pieces.allSatisfy { $1 == pieces[0].bytes }, "\(place)")
                }
            }
        }
    }

    /// A byte that is put into an entry, or lost from it, costs that entry.
    @Test(arguments: [false, true]) func aByteTooManyOrTooFew_costsItsEntryOnly(isLost: Bool) throws {
        try withScratch { folder in
            let pieces = ["one.txt", "two.txt", "three.txt"].map { name in
                Piece(path: name, bytes: (0..<60).map { UInt8(truncatingIfNeeded: $0 &* 41 &+ name.utf8.count) })
            }
            try writeCarrier("\(folder)/z", .zip, pieces)
            let sound = try readFile("\(folder)/z")
            func places(of signature: [UInt8]) -> [Int] {
                sound.indices.dropLast(3).filter { sound[$0..<$0 + 4].elementsEqual(signature) }
            }
            let starts = places(of: [0x50, 0x4B, 3, 4])
            let end = try #require(places(of: [0x50, 0x4B, 1, 2]).first)
            #expect(starts.count == 3)
            for place in 5..<end {
                var bytes = sound
                if isLost { bytes.remove(at: place) } else { bytes.insert(bytes[place] ^ 1, at: place) }
                try writeFile("\(folder)/f", bytes)
                let visited = try visitAll("\(folder)/f")
                let hit = try #require(starts.lastIndex { isLost ? $0 <= place : $0 < place })
                let due = pieces.filter { $0.path != pieces[hit].path }
                #expect(!visited.isClean, "byte \(place)")
                #expect(due.allSatisfy { visited.pieces[$0.path] == $0.bytes }, "byte \(place): \(visited)")
                for piece in pieces {
                    #expect([nil, piece.bytes].contains(visited.pieces[piece.path]), "byte \(place)")
                }
            }
        }
    }

    static let reported: [(String, [UInt8])] = [
        ("wrong checksum", zip(Entry("a", [1, 2]) { $0.crc = 5 }).bytes),
        ("too many counted", changed { $0.count = 3 }.bytes),
        ("appended", changed { _ in }.bytes + [0]), ("a zip behind", changed { _ in }.bytes + zip(Entry("c")).bytes),
        ("no directory", Array(changed { _ in }.bytes.prefix(70))),
        (
            "2^64 bytes",
            zip(
                Entry("a", [1]) {
                    $0.centralSize = .max; $0.extra = wide(.max)
                }
            ).bytes
        ),
        ("offset far out", zip(Entry("a", [1]) { $0.centralOffset = 0xFFFF_FFF0 }).bytes),
        ("not deflate", zip(Entry("a", [9, 9, 9]) { $0.method = 8 }).bytes),
    ]

    @Test(arguments: refused.indices)
    func isRefused(_ number: Int) throws {
        let (what, builder) = Self.refused[number]
        try withScratch { folder in
            try writeFile("\(folder)/z", builder.bytes)
            #expect(code { _ = try CarrierOpener.open("\(folder)/z").list() } == .refused, "\(what)")
        }
    }

    @Test(arguments: reported.indices)
    func isReported(_ number: Int) throws {
        let (what, bytes) = Self.reported[number]
        try withScratch { folder in
            try writeFile("\(folder)/z", bytes)
            let isReported = try code { _ = try visitAll("\(folder)/z") } != nil || !visitAll("\(folder)/z").isClean
            #expect(isReported, "\(what)")
        }
    }

    @Test func macOSOddities() throws {
        try withScratch { folder in
            let builder = Self.zip(
                Entry("backup/"), Entry("backup/library.bib", [1]), Entry("__MACOSX/"),
                Entry("__MACOSX/backup/._library.bib", [2]),
                Entry("backup/.DS_Store", [3]), Entry("backup/u\u{308}.pdf", [4]) { $0.flags = 0 })
            try writeFile("\(folder)/z", builder.bytes)
            let visited = try visitAll("\(folder)/z")
            #expect(visited.isClean, "\(visited.findings) \(visited.damaged)")
            #expect(visited.pieces.count == 4)
            #expect(visited.pieces["__MACOSX/backup/._library.bib"] == [2])
        }
    }

    @Test func aCommentIsFine() throws {
        try withScratch { folder in
            try writeFile("\(folder)/z", Self.changed { $0.comment = Array("made by somebody".utf8) }.bytes)
            #expect(try visitAll("\(folder)/z").pieces == ["a": [1, 2, 3], "b": [4]])
        }
    }
}
