import TestSupport
import Testing

@testable import BackupKit

/// UUIDs that differ in case are one id; other ids are not.
@Test func onlyUUIDsAreFolded() {
    var random = SeededGenerator(seed: testSeed())
    let seed = random.next()
    let (hasher, plain) = (RecordHasher(seed: seed), RecordHasher(seed: seed, foldsUUIDs: false))
    let hex = Array("0123456789abcdefABCDEF".utf8)
    for round in 0..<20_000 {
        var id = (0..<36).map { [8, 13, 18, 23].contains($0) ? UInt8(ascii: "-") : hex[random.below(hex.count)] }
        // Every byte at every place, and one that is too short or too long.
        let odd = random.below(4) == 0
        if odd { id[round % 36] = UInt8(truncatingIfNeeded: round / 36 % 128) }
        if random.below(20) == 0 { id.removeLast() } else if random.below(20) == 0 { id.append(hex[0]) }
        let upper = id.map { $0 >= 0x61 && $0 <= 0x7A ? $0 - 0x20 : $0 }
        let isUUID =
            id.count == 36
            && id.enumerated().allSatisfy { [8, 13, 18, 23].contains($0) ? $1 == 0x2D : hex.contains($1) }
        func key(_ bytes: [UInt8]) -> Int64 { bytes.withUnsafeBytes { hasher.key($0) } }
        let text = String(decoding: id, as: UTF8.self)
        #expect((key(id) == key(upper)) == (isUUID || id == upper), "\(text)")
        #expect(key(upper) == upper.withUnsafeBytes { plain.key($0) }, "\(text)")
    }
}
