import BackupKit
import Glibc
import Synchronization
import TestSupport
import Testing

/// The contract of `Carrier.swift`, for every form alike.
@Suite struct CarrierConformanceTests {
    static let archives = CarrierFormat.allCases.filter { $0 != .directory }

    static func awkwardPieces(large: Bool = false) -> [Piece] {
        var random = SeededGenerator(seed: 7)
        let long = String(repeating: "n", count: 200)
        var pieces = [
            Piece(path: "empty", bytes: []), Piece(path: "one", bytes: [1]),
            Piece(path: "511", bytes: random.bytes(511)), Piece(path: "512.pdf", bytes: random.bytes(512)),
            Piece(path: "513", bytes: random.bytes(513)),
            Piece(path: "zeros", bytes: .init(repeating: 0, count: 9_000)),
            Piece(path: "with space/ lead and trail ", bytes: Array("spaces".utf8)),
            Piece(path: "nfc-\u{E9}", bytes: [2]), Piece(path: "nfd-e\u{301}", bytes: [3]),
            Piece(path: "emoji 😀/👨‍👩‍👧‍👦.txt", bytes: [4]), Piece(path: "-rf", bytes: [5]),
            Piece(path: ".hidden", bytes: [6]), Piece(path: "rtl-\u{202E}gpj.exe", bytes: [7]),
            Piece(path: "back\\slash", bytes: [8]), Piece(path: "quote\"'$`", bytes: [9]),
            Piece(path: long, bytes: [10]), Piece(path: "\(long)-folder/\(long.dropLast(95))", bytes: [11]),
            Piece(path: "old", bytes: [12], modified: 315_532_800),
        ]
        pieces.append(Piece(path: "large.bin", bytes: random.bytes(large ? 1_300_000 : 9_000)))
        if large { pieces[18].bytes += [UInt8](repeating: 65, count: 3_942_880) }
        pieces.append(Piece(path: "zz/last", bytes: Array("the end".utf8)))
        return pieces
    }

    @Test(arguments: CarrierFormat.allCases)
    func whatIsWrittenIsReadBack(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.awkwardPieces(large: true)
            try writeCarrier("\(folder)/c", format, pieces)
            let reader = try CarrierOpener.open("\(folder)/c")
            let listed = try reader.list()
            #expect(listed.count == pieces.count)
            // Byte by byte: `==` would call the composed and the decomposed form the same.
            #expect(Set(listed.map { Array($0.path.utf8) }) == Set(pieces.map { Array($0.path.utf8) }))
            #expect(Set(listed) == Set(pieces.map(\.info)))
            let visited = try visitAll(reader)
            #expect(visited.isClean, "\(visited.findings)")
            for piece in pieces {
                #expect(visited.pieces[piece.path] == piece.bytes, "\(piece.path)")
                #expect(visited.times[piece.path] == piece.modified, "\(piece.path)")
            }
            if format != .directory { #expect(try ArchiveReader(path: "\(folder)/c").checkStructure() == []) }
        }
    }

    @Test(arguments: CarrierFormat.allCases)
    func oneEntryIsReadByItsName(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.awkwardPieces()
            try writeCarrier("\(folder)/c", format, pieces)
            let reader = try CarrierOpener.open("\(folder)/c")
            for piece in [pieces[0], pieces[7], pieces[18], pieces[19]] {
                var bytes: [UInt8] = []
                try reader.read(piece.path) { bytes += $0 }
                #expect(bytes == piece.bytes)
            }
            for name in ["no such", "with space", "nfc-e\u{301}"] {
                #expect(code { try reader.read(name) { _ in } } != nil, "\(name)")
            }
            #expect(code { try reader.read("no such") { _ in } } == .notFound)
        }
    }

    @Test(arguments: CarrierFormat.allCases)
    func anEmptyCarrierIsOneWithoutEntries(_ format: CarrierFormat) throws {
        try withScratch { folder in
            try writeCarrier("\(folder)/c", format, [])
            #expect(try CarrierOpener.open("\(folder)/c").list() == [])
            #expect(try visitAll("\(folder)/c").isClean)
        }
    }

    @Test(arguments: archives)
    func theSameEntriesGiveTheSameBytes(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.awkwardPieces()
            try writeCarrier("\(folder)/a", format, pieces, threads: 1)
            try writeCarrier("\(folder)/b", format, pieces, threads: 5)
            #expect(try readFile("\(folder)/a") == readFile("\(folder)/b"))
        }
    }

    @Test(arguments: CarrierFormat.allCases)
    func theWriterRefusesWhatNoReaderWouldTake(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let twice = [Piece(path: "A", bytes: [1]), Piece(path: "a", bytes: [2])]
            #expect(code { try writeCarrier("\(folder)/a", format, twice) } == .refused)
            #expect(code { try writeCarrier("\(folder)/b", format, [Piece(path: "../x", bytes: [])]) } == .refused)
            let outside = try FileStatus.ofName("\(folder)/x")
            #expect(outside == nil)
        }
    }

    @Test(arguments: CarrierFormat.allCases, [2, 4])
    func theWriterRefusesMoreOrFewerBytesThanAnnounced(_ format: CarrierFormat, _ count: Int) throws {
        try withScratch { folder in
            try Directory.create("\(folder)/d")
            let writer: any CarrierWriter =
                format == .directory
                ? try DirectoryWriter(RootDirectory("\(folder)/d"))
                : try ArchiveWriter(format: format, to: FileHandle.create("\(folder)/a"))
            #expect(throws: BackupError.self) {
                try writer.add(EntryInfo(path: "x", size: 3, modified: 0)) { sink in
                    for _ in 0..<count { try [UInt8(1)].withUnsafeBytes { try sink($0) } }
                }
            }
            if format != .directory { #expect(throws: BackupError.self) { try writer.finish() } }
        }
    }

    private struct Stop: Error {}

    @Test(arguments: CarrierFormat.allCases)
    func whatTheVisitorThrowsEndsTheVisit(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = (0..<50).map { Piece(path: "\($0)", bytes: [1, 2, 3]) }
            try writeCarrier("\(folder)/c", format, pieces)
            let reader = try CarrierOpener.open("\(folder)/c")
            #expect(throws: Stop.self) {
                _ = try reader.visit { info, bytes in if info.path == "20" { throw Stop() } }
            }
            #expect(throws: Stop.self) {
                _ = try reader.visit { _, bytes in try bytes.forEachChunk { _ in throw Stop() } }
            }
            #expect(throws: Stop.self) { try reader.read("7") { _ in throw Stop() } }
        }
    }

    @Test(arguments: CarrierFormat.allCases)
    func aVisitorMayReadSomeEntriesOnly(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.awkwardPieces()
            try writeCarrier("\(folder)/c", format, pieces)
            let seen = Mutex<[String]>([])
            let findings = try CarrierOpener.open("\(folder)/c").visit { info, bytes in
                seen.withLock { $0.append(info.path) }
                if info.path == "zz/last" {
                    var content: [UInt8] = []
                    try bytes.forEachChunk { content += $0 }
                    #expect(content == Array("the end".utf8))
                }
            }
            #expect(findings == [])
            #expect(seen.withLock { $0.count } == pieces.count)
        }
    }

    @Test(arguments: CarrierFormat.allCases)
    func limitsAreKept(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = (0..<20).map { Piece(path: "\($0)", bytes: .init(repeating: 7, count: 1000)) }
            try writeCarrier("\(folder)/c", format, pieces)
            var entries = ReadLimits()
            entries.entries = 19
            var size = ReadLimits()
            size.entryBytes = 999
            var total = ReadLimits()
            total.totalBytes = 19_999
            for limits in [entries, size, total] {
                #expect(code { _ = try visitAll("\(folder)/c", limits) } == .refused)
                #expect(code { _ = try CarrierOpener.open("\(folder)/c", limits: limits).list() } == .refused)
            }
            entries.entries = 20
            #expect(try visitAll("\(folder)/c", entries).pieces.count == 20)
        }
    }

    @Test func archivesCanBeStreamedIntoAPipe() throws {
        try withScratch { folder in
            for format in Self.archives {
                try writeCarrier("\(folder)/a", format, Self.awkwardPieces())
                let pipe = try #require(popen("cat > \(folder)/b", "w"))
                try Self.stream(format, to: FileHandle(owning: dup(fileno(pipe)), path: "pipe"))
                // Waits for `cat`, which ends when our copy of the descriptor is closed, too.
                pclose(pipe)
                #expect(try readFile("\(folder)/a") == readFile("\(folder)/b"))
            }
        }
    }

    private static func stream(_ format: CarrierFormat, to output: FileHandle) throws {
        try add(awkwardPieces(), to: ArchiveWriter(format: format, to: output, threads: 2))
    }

    @Test func whatIsNoCarrierIsNamed() throws {
        try withScratch { folder in
            #expect(code { _ = try CarrierOpener.open("\(folder)/none") } == .notFound)
            let strangers: [(String, String, ErrorCode)] = [
                ("%PDF-1.7 etc", "PDF", .notFound), ("age-encryption.org/v1\n", "age", .notFound),
                ("\u{1}\u{2}", "short", .refused), ("short", "is a text file", .notFound),
                (String(repeating: "text ", count: 300), "is a text file", .notFound),
                (String(repeating: "\u{1}", count: 600), "not a recognised archive; ", .refused),
            ]
            for (content, word, code) in strangers {
                // What is called an archive may be a damaged one.
                for (name, code) in [("f", code), ("f.tar", .refused)] {
                    let path = "\(folder)/\(name)"
                    try writeFile(path, Array(content.utf8))
                    let error = try #require(throws: BackupError.self) { _ = try CarrierOpener.open(path) }
                    #expect(error.code == code, "\(name): \(error)")
                    #expect(error.description.contains(word), "\(error)")
                }
            }
        }
    }
}
