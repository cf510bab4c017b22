import BackupKit
import Glibc
import TestSupport
import Testing

/// The `.tar.zst` of ours: frames, index and seek table.
@Suite struct SeekableTarTests {
    /// Small members that share frames, and large ones with frames of their own.
    private static func pieces() -> [Piece] {
        var random = SeededGenerator(seed: 21)
        let sizes = Array(repeating: 200_000, count: 4) + [6_000_000, 65_536, 65_535, 0, 1]
        return (0..<8).map { Piece(path: "small \($0).bin", bytes: random.bytes(20_000)) }
            + sizes.enumerated().map { Piece(path: "piece \($0.offset).bin", bytes: random.bytes($0.element)) }
            + (8..<240).map { Piece(path: "small \($0).bin", bytes: random.bytes(20_000)) }
    }

    /// The archive of these lies in `folder` as "a".
    private static func withArchive(
        _ body: (_ folder: String, _ pieces: [Piece], _ bytes: [UInt8]) throws -> Void
    ) throws {
        try withScratch { folder in
            let pieces = pieces()
            try writeCarrier("\(folder)/a", .tarZstandard, pieces)
            try body(folder, pieces, readFile("\(folder)/a"))
        }
    }

    /// Offsets of the zstd frames in a file of ours, from its seek table.
    private static func frames(_ bytes: [UInt8]) -> [(packed: Int, unpacked: Int)] {
        func number(_ offset: Int) -> Int {
            (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        let count = number(bytes.count - 9)
        let start = bytes.count - 9 - 8 * count
        return (0..<count).map { (number(start + 8 * $0), number(start + 8 * $0 + 4)) }
    }

    @Test func aDamagedFrameCostsOnlyTheMembersThatTouchIt_andALargeMemberItself() throws {
        try Self.withArchive { folder, pieces, bytes in
            let frames = Self.frames(bytes)
            // The small members in front, five large ones, two for the widest, two for those behind, and the index.
            #expect(frames.count == 1 + 7 + 2 + 1)
            #expect(frames.last?.unpacked == 0)
            var (packed, unpacked) = (0, 0)
            for (number, frame) in frames.dropLast().enumerated() {
                defer { (packed, unpacked) = (packed + frame.packed, unpacked + frame.unpacked) }
                var hit = bytes
                hit[packed + frame.packed / 2] ^= 0x10
                try writeFile("\(folder)/b", hit)
                let reader = try ArchiveReader(path: "\(folder)/b")
                let visited = try visitAll(reader)
                #expect(visited.findings.count == 1 && visited.findings[0].message.contains("frame \(number),"))
                #expect(visited.pieces.count + visited.damaged.count == pieces.count)
                var offset = 0
                for piece in pieces {
                    let end = offset + 512 + (piece.bytes.count + 511) / 512 * 512
                    let touches = offset < unpacked + frame.unpacked && end > unpacked
                    #expect((visited.damaged[piece.path] != nil) == touches, "\(piece.path)")
                    if !touches { #expect(visited.pieces[piece.path] == piece.bytes, "\(piece.path)") }
                    if touches && piece.bytes.count >= 65_536 {
                        #expect(Array(visited.damaged.keys) == [piece.path])
                        #expect(code { try reader.read(piece.path) { _ in } } == .damaged)
                    }
                    offset = end
                }
                #expect(try reader.checkStructure() == visited.findings)
                try reader.read(number == 0 ? "small 239.bin" : "small 0.bin") { _ in }
            }
        }
    }

    /// What the magic number and the table say can be had without them.
    @Test func aWrongBitOutsideOfTheFrames_costsNothing_andOneInTheMagicNumberItsFrame() throws {
        try Self.withArchive { folder, pieces, bytes in
            let frames = Self.frames(bytes)
            let first = pieces.prefix { $0.path.hasPrefix("small") }.count
            let table = bytes.count - 17 - 8 * frames.count
            for place in Array(0..<4) + Array(table..<bytes.count) {
                var hit = bytes
                hit[place] ^= UInt8(1) << UInt8(place % 8)
                try writeFile("\(folder)/b", hit)
                let visited = try visitAll("\(folder)/b")
                #expect(visited.pieces.count == pieces.count - (place < 4 ? first : 0), "byte \(place)")
                #expect(
                    visited.pieces.allSatisfy { path, bytes in pieces.contains { $0.path == path && $0.bytes == bytes }
                    })
                #expect(!visited.isClean, "byte \(place)")
            }
        }
    }

    @Test func withoutTheIndexItIsReadFromFrontToBack() throws {
        try Self.withArchive { folder, pieces, sound in
            var bytes = sound
            let frames = Self.frames(bytes)
            let index = frames.dropLast().reduce(0) { $0 + $1.packed }
            bytes[index + 40] ^= 1
            try writeFile("\(folder)/damaged", bytes)
            try writeFile("\(folder)/none", Array(bytes.prefix(index)))
            let damaged = try visitAll("\(folder)/damaged")
            #expect(damaged.findings.map(\.severity) == [.warning])
            let none = try visitAll("\(folder)/none")
            #expect(none.findings == [])
            for visited in [damaged, none] {
                #expect(visited.pieces == Dictionary(uniqueKeysWithValues: pieces.map { ($0.path, $0.bytes) }))
            }
            #expect(try !ArchiveReader(path: "\(folder)/none").findsEntriesQuickly)
            #expect(try ArchiveReader(path: "\(folder)/a").findsEntriesQuickly)
        }
    }

    @Test func anIndexThatContradictsTheTarIsRefused() throws {
        try withScratch { folder in
            // Two archives alike to the byte but for one name: the index of one behind the frames of the other.
            try writeCarrier(
                "\(folder)/a", .tarZstandard, [Piece(path: "one", bytes: [1]), Piece(path: "two", bytes: [2])])
            try writeCarrier(
                "\(folder)/b", .tarZstandard, [Piece(path: "one", bytes: [1]), Piece(path: "owt", bytes: [2])])
            let (a, b) = (try readFile("\(folder)/a"), try readFile("\(folder)/b"))
            let (frameA, frameB) = (Self.frames(a)[0], Self.frames(b)[0])
            let tail = Array(b.dropFirst(frameB.packed))
            try #require(frameA.packed == frameB.packed)
            try writeFile("\(folder)/c", a.prefix(frameA.packed) + tail)
            let reader = try ArchiveReader(path: "\(folder)/c")
            #expect(code { _ = try visitAll(reader) } == .refused)
            #expect(code { try reader.read("owt") { _ in } } == .refused)
            #expect(code { _ = try reader.checkStructure() } == .refused)
        }
    }

    /// An index as the format's description has it, in a zstd frame that stores it (single segment, one raw block).
    private static func index(_ members: [(offset: Int, size: Int, name: String)], end: Int) -> [UInt8] {
        func little(_ number: Int, _ width: Int) -> [UInt8] { (0..<width).map { UInt8(number >> (8 * $0) & 255) } }
        var content = little(members.count, 4) + little(end, 8)
        for member in members {
            content += little(member.offset, 8) + little(member.size, 8) + little(1_700_000_000, 8)
            content += little(member.name.utf8.count, 2) + Array(member.name.utf8)
        }
        let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x20, UInt8(content.count)] + little(content.count << 3 | 1, 3) + content
        let payload = Array("BKTINDX1".utf8) + frame
        return little(0x184D_2A5D, 4) + little(payload.count, 4) + payload
    }

    private static func seekTable(_ frames: [(packed: Int, unpacked: Int)]) -> [UInt8] {
        func little(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(number >> (8 * $0) & 255) } }
        return little(0x184D_2A5E) + little(frames.count * 8 + 9)
            + frames.flatMap { little($0.packed) + little($0.unpacked) }
            + little(frames.count) + [0] + little(0x8F92_EAB1)
    }

    @Test func aMemberThatTheIndexHidesIsNotOverlooked() throws {
        try withScratch { folder in
            let pieces = ["one", "hid", "two"].map { Piece(path: $0, bytes: [1, 2, 3]) }
            try writeCarrier("\(folder)/a", .tarZstandard, pieces)
            let bytes = try readFile("\(folder)/a")
            let frame = Self.frames(bytes)[0]
            let all = (0..<3).map { (offset: $0 * 1024, size: 3, name: pieces[$0].path) }
            for (members, end, isSound) in [
                (all, 3072, true), ([all[0], all[2]], 3072, false), (Array(all.prefix(2)), 2048, false),
                (Array(all.prefix(2)), 3072, false), ([all[0], all[1], all[2], all[2]], 3072, false),
            ] {
                let index = Self.index(members, end: end)
                let table = Self.seekTable([frame, (index.count, 0)])
                try writeFile("\(folder)/b", bytes.prefix(frame.packed) + index + table)
                let reader = try ArchiveReader(path: "\(folder)/b")
                if isSound {
                    #expect(reader.findsEntriesQuickly)
                    #expect(try visitAll(reader).pieces.count == 3)
                } else if reader.findsEntriesQuickly {
                    #expect(code { _ = try visitAll(reader) } == .refused)
                    #expect(code { _ = try reader.checkStructure() } == .refused)
                } else {
                    // Found out at once: read from front to back, where nothing is hidden.
                    let visited = try visitAll(reader)
                    #expect(visited.pieces.count == 3 && !visited.isClean)
                }
            }
        }
    }

    /// That a frame decodes proves nothing unless it carries a checksum.
    @Test func aFrameWithoutItsChecksumIsDamage() throws {
        try withScratch { folder in
            let piece = Piece(path: "one", bytes: [1, 2, 3])
            try writeCarrier("\(folder)/t", .tar, [piece])
            let tar = try readFile("\(folder)/t")
            let index = Self.index([(0, 3, "one")], end: 1024)
            let frame = Self.storedFrame(tar)
            let table = Self.seekTable([(frame.count, tar.count), (index.count, 0)])
            try writeFile("\(folder)/a", frame + index + table)
            let reader = try ArchiveReader(path: "\(folder)/a")
            #expect(reader.findsEntriesQuickly)
            let visited = try visitAll(reader)
            #expect(visited.pieces.isEmpty && visited.findings.map(\.severity) == [.damage])
            #expect(try reader.checkStructure().map(\.severity) == [.damage])
            #expect(code { try reader.read("one") { _ in } } == .damaged)
        }
    }

    /// A zstd frame without a checksum that stores its content (single segment, one raw block).
    private static func storedFrame(_ content: [UInt8]) -> [UInt8] {
        func little(_ number: Int, _ width: Int) -> [UInt8] { (0..<width).map { UInt8(number >> (8 * $0) & 255) } }
        return [0x28, 0xB5, 0x2F, 0xFD, 0xA0] + little(content.count, 4) + little(content.count << 3 | 1, 3) + content
    }

    /// Whoever asks for a name that is there twice gets neither.
    @Test func aNameThatIsThereTwiceIsNotRead() throws {
        try withScratch { folder in
            try writeCarrier("\(folder)/one", .tar, [Piece(path: "n", bytes: [1])])
            try writeCarrier("\(folder)/two", .tar, [Piece(path: "n", bytes: [2])])
            let tar = try readFile("\(folder)/one").prefix(1024) + readFile("\(folder)/two")
            try writeFile("\(folder)/plain.tar", Array(tar))
            #expect(code { _ = try ArchiveReader(path: "\(folder)/plain.tar").list() } == .refused)
            #expect(code { _ = try visitAll("\(folder)/plain.tar") } == .refused)
            let index = Self.index([(0, 1, "n"), (1024, 1, "n")], end: 2048)
            let frame = Self.storedFrame(Array(tar))
            let table = Self.seekTable([(frame.count, tar.count), (index.count, 0)])
            try writeFile("\(folder)/a", frame + index + table)
            let reader = try ArchiveReader(path: "\(folder)/a")
            #expect(reader.findsEntriesQuickly)
            #expect(code { _ = try reader.list() } == .refused && code { _ = try visitAll(reader) } == .refused)
            #expect(code { try reader.read("n") { _ in } } == .refused)
        }
    }

    @Test func foreignZstandardIsReadToo() throws {
        guard hasTool("zstd"), hasTool("tar") else { return }
        try withScratch { folder in
            let pieces = Self.pieces()
            try writeCarrier("\(folder)/d", .directory, pieces)
            let run = try shell("cd \(folder) && tar -C d -cf t.tar . && zstd -q -3 --long=24 -T1 t.tar -o t.zst")
            #expect(run.status == 0)
            let visited = try visitAll("\(folder)/t.zst")
            #expect(visited.isClean)
            #expect(visited.pieces == Dictionary(uniqueKeysWithValues: pieces.map { ($0.path, $0.bytes) }))
        }
    }

    @Test func aWindowLargerThanOurMemoryIsRefused() throws {
        // A frame header that asks for a window of 2 GiB: descriptor 0, window descriptor 21 << 3, then an empty block.
        try withScratch { folder in
            try writeFile("\(folder)/w", [0x28, 0xB5, 0x2F, 0xFD, 0, 21 << 3, 1, 0, 0])
            let reader = try ArchiveReader(path: "\(folder)/w")
            #expect(code { _ = try reader.list() } == .refused)
        }
    }
}
