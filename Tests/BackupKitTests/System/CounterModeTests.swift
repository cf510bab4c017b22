import TestSupport
import Testing

@testable import BackupKit

/// AES in counter mode, in one piece and in several.
struct CounterModeTests {
    private func crypted(_ bytes: [UInt8], by cipher: CounterMode, iv: [UInt8], cuts: [Int] = []) throws -> [UInt8] {
        var result = bytes
        try iv.withUnsafeBytes { try cipher.begin($0) }
        try result.withUnsafeMutableBytes { result in
            for (start, end) in zip([0] + cuts, cuts + [bytes.count]) {
                let piece = UnsafeMutableRawBufferPointer(rebasing: result[start..<end])
                try cipher.crypt(UnsafeRawBufferPointer(piece), into: piece)
            }
        }
        return result
    }

    @Test func anyLengthInAnyPieces_isWhatItIsInOne() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<200 {
            let key = random.bytes(32)
            let cipher = try CounterMode(key: key)
            var iv = random.bytes(16)
            // Near the places where the counter's lower half, or all of it, begins anew.
            if random.chance(2) { iv.replaceSubrange(8..<15, with: [UInt8](repeating: 0xFF, count: 7)) }
            if random.chance(3) { iv.replaceSubrange(0..<8, with: [UInt8](repeating: 0xFF, count: 8)) }
            let bytes = random.bytes(random.below(random.chance(4) ? 9000 : 600))
            let cuts = Set((0..<random.below(4)).map { _ in random.below(bytes.count / 16 + 1) * 16 }).sorted()
            let sealed = try crypted(bytes, by: cipher, iv: iv, cuts: cuts)
            #expect(
                try sealed == crypted(bytes, by: cipher, iv: iv),
                "seed \(seed), round \(round): \(bytes.count) bytes, IV \(iv), cut at \(cuts)")
            #expect(try crypted(sealed, by: cipher, iv: iv) == bytes)
        }
    }

    /// NIST SP 800-38A, F.5.5.
    @Test func theStandardsExample() throws {
        let key: [UInt8] = [
            0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d, 0x77, 0x81,
            0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3, 0x09, 0x14, 0xdf, 0xf4,
        ]
        let plain: [UInt8] = [
            0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a,
        ]
        let sealed: [UInt8] = [
            0x60, 0x1e, 0xc3, 0x13, 0x77, 0x57, 0x89, 0xa5, 0xb7, 0xa7, 0xf5, 0x04, 0xbb, 0xf3, 0xd2, 0x28,
        ]
        let iv = (0xf0...0xff).map { UInt8($0) }
        #expect(try crypted(plain, by: CounterMode(key: key), iv: iv) == sealed)
    }
}
