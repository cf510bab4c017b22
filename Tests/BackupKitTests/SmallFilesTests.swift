import TestSupport
import Testing

@testable import BackupKit

/// Small files are stored together, and become what each would have become alone.
@Suite struct SmallFilesTests {
    @Test(arguments: [UInt64(1), 2, 3])
    func eachBecomesWhatItWouldBecomeAlone(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withNewVault { folder, vault, writer in
            let (lane, small) = (try FileLane(writer, try Chunker(vault.polynomial)), SmallFiles())
            for round in 0..<3 {
                var files: [FileHandle] = []
                small.keep(0)
                while true {
                    let size =
                        [0, 1, 63, 64, 65, Int.random(in: 0..<Chunker.minimum, using: &random)]
                        .randomElement(using: &random) ?? 0
                    guard small.hasRoom(for: Int64(size)), files.count < 20 else { break }
                    let bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
                    let file = try FileHandle.create("\(folder)/\(round)-\(files.count)")
                    try bytes.withUnsafeBytes { try file.write($0) }
                    files.append(file)
                    #expect(try small.read(file, size: Int64(size)) == Int64(size))
                }
                let together = try small.store(lane.blobs)
                #expect(together.count == files.count)
                for (number, file) in files.enumerated() {
                    let alone = try lane.store(file, size: try file.status().size, known: nil)
                    #expect(together[number] == alone, "seed \(seed), file \(number) of \(alone.size) bytes")
                }
            }
        }
    }

    @Test func whatIsHashedBesideALargerFile_isNotHashedAgain_andKeepsItsPlace() throws {
        try withNewVault { folder, vault, writer in
            let small = SmallFiles()
            let lane = try FileLane(writer, try Chunker(vault.polynomial), beside: small)
            func make(_ name: String, _ bytes: [UInt8]) throws -> FileHandle {
                let file = try FileHandle.create("\(folder)/\(name)")
                try bytes.withUnsafeBytes { try file.write($0) }
                return file
            }
            // The fingerprint of equal bytes is always the same, and not one that cuts.
            let large = [UInt8](repeating: 1, count: Chunker.minimum + 1000)
            let whole = large.withUnsafeBytes { SHA256Digest.of($0) }
            var digests: [SHA256Digest] = []
            for text in ["one", "two", "dropped", "three"] {
                small.keep(digests.count)
                #expect(try small.read(make(text, utf8(text)), size: 9) == Int64(text.utf8.count))
                let content = try lane.store(make("\(text) and large", large), size: Int64(large.count), known: nil)
                #expect(content.blobs == [whole] && content.digest == whole)
                if text != "dropped" { digests.append(.of(text)) }
            }
            #expect(try small.read(make("four", utf8("four")), size: 4) == 4)
            #expect(try small.store(lane.blobs).map(\.digest) == digests + [.of("four")])
        }
    }

    @Test func aFileThatShrankIsAsLongAsItIs_andOneThatWasDroppedIsGone() throws {
        try withNewVault { folder, vault, writer in
            let (lane, small) = (try FileLane(writer, try Chunker(vault.polynomial)), SmallFiles())
            let file = try FileHandle.create("\(folder)/a")
            try utf8("four").withUnsafeBytes { try file.write($0) }
            #expect(try small.read(file, size: 4) == 4)
            #expect(try small.read(file, size: 9) == 4)
            small.keep(1)
            #expect(try small.read(file, size: 2) == 2)
            #expect(try small.store(lane.blobs).map(\.digest) == [.of("four"), .of("fo")])
            #expect(!small.hasRoom(for: Int64(Chunker.minimum)) && small.hasRoom(for: Int64(Chunker.minimum) - 1))
        }
    }
}
