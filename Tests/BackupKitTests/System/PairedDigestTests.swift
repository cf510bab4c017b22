import TestSupport
import Testing

@testable import BackupKit

/// Two texts hashed at once, against libcrypto one after the other.
@Suite(.enabled(if: SHA256Digest.canPair))
struct PairedDigestTests {
    @Test func allLengthsAroundBlocks_giveTheDigestsOfLibcrypto() throws {
        var random = SeededGenerator(seed: testSeed())
        let bytes = random.bytes(300)
        for first in 0...140 {
            for second in [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 200] {
                bytes.withUnsafeBytes { bytes in
                    let (one, other) = (
                        UnsafeRawBufferPointer(rebasing: bytes[..<first]),
                        UnsafeRawBufferPointer(rebasing: bytes[7..<7 + second])
                    )
                    let digests = SHA256Digest.of([one, other], paired: true)
                    #expect(digests == [.of(one), .of(other)], "\(first) and \(second) bytes")
                }
            }
        }
    }

    @Test func manyTextsOfAnyLength_giveTheirDigestsAndThoseOfTheirHeadsInTheirOrder() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<300 {
            let texts = (0..<random.below(12)).map { _ in random.bytes(random.chance(3) ? 0 : random.below(400)) }
            let joined = texts.flatMap(\.self)
            joined.withUnsafeBytes { joined in
                var place = 0
                let parts = texts.map { text in
                    defer { place += text.count }
                    return UnsafeRawBufferPointer(rebasing: joined[place..<place + text.count])
                }
                let heads = parts.map { random.chance(2) ? $0.count : random.below($0.count + 1) }
                let digests = SHA256Digest.ofHeads(of: Array(zip(parts, heads)), paired: true)
                let lengths = zip(heads, texts).map { "\($0) of \($1.count)" }
                #expect(digests.map(\.whole) == parts.map { .of($0) }, "seed \(seed), round \(round), \(lengths)")
                #expect(
                    digests.map(\.head)
                        == zip(parts, heads).map { .of(UnsafeRawBufferPointer(rebasing: $0[..<$1])) },
                    "seed \(seed), round \(round), \(lengths)")
            }
        }
    }

    @Test func piecesOfAnyLength_giveTheirDigestsAndThatOfTheWhole() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let hasher = PieceHasher(paired: true)
        for round in 0..<200 {
            let bytes = random.bytes(random.below(3000))
            bytes.withUnsafeBytes { bytes in
                var place = 0
                while place < bytes.count {
                    let end = min(bytes.count, place + 1 + random.below(random.chance(3) ? 1000 : 130))
                    let piece = UnsafeRawBufferPointer(rebasing: bytes[place..<end])
                    #expect(hasher.add(piece) == .of(piece), "seed \(seed), round \(round), bytes \(place)..<\(end)")
                    place = end
                }
                #expect(hasher.finish() == .of(bytes), "seed \(seed), round \(round)")
            }
        }
    }
}
