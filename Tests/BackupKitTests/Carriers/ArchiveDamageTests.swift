import BackupKit
import Glibc
import TestSupport
import Testing

/// Bytes that change, are missing or are too many: noticed, and never a trap.
@Suite struct ArchiveDamageTests {
    static let formats: [CarrierFormat] = [.tarZstandard, .tarGzip, .tarXZ, .tar, .zip]

    static func smallPieces() -> [Piece] {
        var random = SeededGenerator(seed: 3)
        return [
            Piece(path: "a.txt", bytes: Array("the quick brown fox jumps over the lazy dog".utf8)),
            Piece(path: "b/ü.pdf", bytes: random.bytes(300)), Piece(path: "c", bytes: []),
            Piece(path: "d.txt", bytes: .init(repeating: 120, count: 700)),
        ]
    }

    /// What came of reading a file that is not what was written.
    enum Outcome {
        case reported
        case cleanAndEqual
        case cleanButDifferent
    }

    private static func outcome(_ path: String, _ pieces: [Piece]) -> Outcome {
        do {
            let reader = try CarrierOpener.open(path)
            _ = try reader.list()
            let visited = try visitAll(reader)
            if !visited.isClean { return .reported }
            let expected = Dictionary(uniqueKeysWithValues: pieces.map { ($0.path, $0.bytes) })
            return visited.pieces == expected ? .cleanAndEqual : .cleanButDifferent
        } catch is BackupError {
            return .reported
        } catch {
            Issue.record("an error of another type: \(error)")
            return .reported
        }
    }

    @Test(arguments: formats)
    func aFlippedByteIsNoticed(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.smallPieces()
            try writeCarrier("\(folder)/a", format, pieces)
            let sound = try readFile("\(folder)/a")
            let file = try FileHandle.create("\(folder)/b", mode: 0o600)
            try sound.withUnsafeBytes { try file.write($0) }
            var unnoticed: [Int] = []
            for position in stride(from: 0, to: sound.count, by: format == .tar ? 7 : 2) {
                let mask: UInt8 = [0x01, 0x80, 0xFF][position % 3]
                try poke(file, position, sound[position] ^ mask)
                switch Self.outcome("\(folder)/b", pieces) {
                case .reported: break
                case .cleanAndEqual: unnoticed.append(position)
                case .cleanButDifferent:
                    // A plain tar has no checksum over its content: the manifest's digests are there for that.
                    #expect(format == .tar, "byte \(position) of \(format) became \(sound[position] ^ mask)")
                }
                try poke(file, position, sound[position])
            }
            // What nothing depends on: times of an entry that is not compared here, flags of the packing.
            let share = Double(unnoticed.count) / Double(sound.count)
            #expect(share < (format == .tar ? 1 : format == .zip ? 0.25 : 0.03), "\(format): \(unnoticed)")
        }
    }

    private func poke(_ file: FileHandle, _ position: Int, _ byte: UInt8) throws {
        let written = withUnsafeBytes(of: byte) { pwrite(file.descriptor, $0.baseAddress, 1, position) }
        #expect(written == 1)
    }

    @Test(arguments: formats)
    func anArchiveCutAnywhereIsNoticed(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.smallPieces()
            try writeCarrier("\(folder)/a", format, pieces)
            let sound = try readFile("\(folder)/a")
            let file = try FileHandle.create("\(folder)/b")
            try sound.withUnsafeBytes { try file.write($0) }
            var whole = 0
            for length in stride(from: sound.count - 1, through: 0, by: format == .tar ? -13 : -1) {
                ftruncate(file.descriptor, length)
                let outcome = Self.outcome("\(folder)/b", pieces)
                if case .reported = outcome { continue }
                // Cut exactly between its frames and its index, a .tar.zst is one as `zstd` writes it, and whole.
                if case .cleanAndEqual = outcome, format == .tarZstandard { whole += 1 } else { whole = 99 }
                #expect(whole <= 1, "\(format) cut at \(length) of \(sound.count): \(outcome)")
            }
        }
    }

    @Test(arguments: formats)
    func whatWasAppendedIsNoticed(_ format: CarrierFormat) throws {
        try withScratch { folder in
            let pieces = Self.smallPieces()
            try writeCarrier("\(folder)/a", format, pieces)
            let sound = try readFile("\(folder)/a")
            try writeCarrier("\(folder)/second", format, [Piece(path: "second", bytes: [1, 2, 3])])
            var random = SeededGenerator(seed: 9)
            let tails: [[UInt8]] = [[65], random.bytes(1024), sound, try readFile("\(folder)/second")]
            for (number, tail) in tails.enumerated() {
                try writeFile("\(folder)/b", sound + tail)
                let outcome = Self.outcome("\(folder)/b", pieces)
                guard case .reported = outcome else {
                    Issue.record("\(format), tail \(number): \(outcome)")
                    continue
                }
            }
        }
    }

    @Test func whatFollowsAGzipFileIsCalledTrailing() throws {
        try withScratch { folder in
            try writeCarrier("\(folder)/a", .tarGzip, Self.smallPieces())
            try writeFile("\(folder)/b", readFile("\(folder)/a") + Array("junk at the end".utf8))
            #expect(try visitAll("\(folder)/b").findings.map(\.code) == [.trailingData])
        }
    }

    @Test(arguments: formats)
    func whatLiesBeforeTheCutIsStillHandedOut(_ format: CarrierFormat) throws {
        try withScratch { folder in
            var random = SeededGenerator(seed: 5)
            let pieces = (0..<40).map { Piece(path: "\($0)", bytes: random.bytes(40_000)) }
            try writeCarrier("\(folder)/a", format, pieces)
            let sound = try readFile("\(folder)/a")
            // zstd and xz here give one block only, of which a decoder may hand out nothing before its end.
            try writeFile("\(folder)/b", Array(sound.prefix(sound.count - 30_000)))
            let visited = try visitAll("\(folder)/b")
            #expect(!visited.isClean)
            if [.tar, .tarGzip, .zip].contains(format) { #expect(visited.pieces.count >= 38, "\(format)") }
            for (path, bytes) in visited.pieces { #expect(pieces.contains { $0.path == path && $0.bytes == bytes }) }
        }
    }

    @Test func noiseIsNeverAnArchive() throws {
        try withScratch { folder in
            var random = SeededGenerator(seed: 11)
            let heads: [[UInt8]] = [
                [0x28, 0xB5, 0x2F, 0xFD], [0x1F, 0x8B, 8], [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0], [0x50, 0x4B, 3, 4],
                [0x50, 0x4B, 5, 6], [0x50, 0x2A, 0x4D, 0x18], [],
            ]
            for round in 0..<140 {
                let head = heads[round % heads.count]
                try writeFile("\(folder)/f", head + random.bytes(Int.random(in: 0...3_000, using: &random)))
                guard case .reported = Self.outcome("\(folder)/f", []) else {
                    Issue.record("round \(round)")
                    continue
                }
            }
        }
    }
}
