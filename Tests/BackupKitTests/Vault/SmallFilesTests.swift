import TestSupport
import Testing

@testable import BackupKit

/// Small files are stored together, and become what each would have become alone.
@Suite struct SmallFilesTests {
    @Test(arguments: [UInt64(1), 2, 3])
    func eachBecomesWhatItWouldBecomeAlone(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bytes = random.bytes(SmallFiles.longest)
        try withNewVault { folder, vault, writer in
            let (chunker, small) = (try Chunker(vault.polynomial), SmallFiles())
            let lane = try FileLane(writer, chunker)
            for round in 0..<3 {
                var files: [FileHandle] = []
                small.keep(0)
                while true {
                    // Half of the longest are more than one chunk.
                    let sizes = [0, 1, 64, Chunker.minimum - 1, Chunker.minimum, 1 << 20, SmallFiles.longest]
                    let size = max(0, sizes[random.below(sizes.count)] - random.below(2))
                    guard small.hasRoom(for: Int64(size)), files.count < 12 else { break }
                    let file = try FileHandle.create("\(folder)/\(round)-\(files.count)")
                    try bytes[..<size].withUnsafeBytes { try file.write($0) }
                    files.append(file)
                    #expect(try small.read(file, size: Int64(size)) == Int64(size))
                }
                let together = try small.store(lane.blobs, chunker)
                #expect(together.count == files.count)
                for (number, file) in files.enumerated() {
                    let alone = try lane.store(file, size: try file.status().size, known: nil)
                    #expect(together[number] == alone, "seed \(seed), file \(number) of \(alone.size) bytes")
                }
            }
        }
    }

    @Test func aFileThatShrankIsAsLongAsItIs_andOneThatWasDroppedIsGone() throws {
        try withNewVault { folder, vault, writer in
            let (chunker, small) = (try Chunker(vault.polynomial), SmallFiles())
            let lane = try FileLane(writer, chunker)
            let file = try FileHandle.create("\(folder)/a")
            try utf8("four").withUnsafeBytes { try file.write($0) }
            #expect(try small.read(file, size: 4) == 4)
            #expect(try small.read(file, size: 9) == 4)
            small.keep(1)
            #expect(try small.read(file, size: 2) == 2)
            #expect(try small.store(lane.blobs, chunker).map(\.digest) == [.of("four"), .of("fo")])
            #expect(!small.hasRoom(for: Int64(SmallFiles.longest) + 1) && small.hasRoom(for: Int64(SmallFiles.longest)))
        }
    }
}
