import BackupKit
import Glibc
import Testing

/// The `.tar.zst` of ours: frames, index and seek table.
@Suite struct SeekableTarTests {
    /// Four frames of 4 MiB: a member over two of them, and small ones in each.
    private static func pieces() -> [Piece] {
        var random = SeededGenerator(seed: 21)
        return (0..<8).map { Piece(path: "small \($0).bin", bytes: random.bytes(200_000)) }
            + [Piece(path: "wide.bin", bytes: random.bytes(6_000_000))]
            + (8..<40).map { Piece(path: "small \($0).bin", bytes: random.bytes(200_000)) }
    }

    private static let frameSize = 4 << 20

    /// Offsets of the zstd frames in a file of ours, from its seek table.
    private static func frames(_ bytes: [UInt8]) -> [(packed: Int, unpacked: Int)] {
        func number(_ offset: Int) -> Int {
            (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
        }
        let count = number(bytes.count - 9)
        let start = bytes.count - 9 - 8 * count
        return (0..<count).map { (number(start + 8 * $0), number(start + 8 * $0 + 4)) }
    }

    @Test func aDamagedFrameCostsOnlyTheMembersThatTouchIt() throws {
        try withScratch { folder in
            let pieces = Self.pieces()
            try writeCarrier("\(folder)/a", .tarZstandard, pieces)
            var bytes = try readFile("\(folder)/a")
            let frames = Self.frames(bytes)
            #expect(frames.count == 5)
            #expect(frames.last?.unpacked == 0)
            // The middle of the second frame, which lies inside "wide.bin" and some small ones.
            bytes[frames[0].packed + frames[1].packed / 2] ^= 0x10
            try writeFile("\(folder)/b", bytes)
            let reader = try ArchiveReader(path: "\(folder)/b")
            let visited = try visitAll(reader)
            #expect(visited.findings.count == 1)
            #expect(visited.findings.first?.message.contains("frame 1") == true)
            #expect(visited.pieces.count + visited.damaged.count == pieces.count)
            var offset = 0
            for piece in pieces {
                let end = offset + 512 + (piece.bytes.count + 511) / 512 * 512
                let touches = offset < 2 * Self.frameSize && end > Self.frameSize
                #expect((visited.damaged[piece.path] != nil) == touches, "\(piece.path)")
                if !touches { #expect(visited.pieces[piece.path] == piece.bytes, "\(piece.path)") }
                offset = end
            }
            #expect(try reader.checkStructure() == visited.findings)
            try reader.read("small 39.bin") { _ in }
            #expect(code { try reader.read("wide.bin") { _ in } } == .damaged)
        }
    }

    @Test func withoutTheIndexItIsReadFromFrontToBack() throws {
        try withScratch { folder in
            let pieces = Self.pieces()
            try writeCarrier("\(folder)/a", .tarZstandard, pieces)
            var bytes = try readFile("\(folder)/a")
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
