import TestSupport
import Testing

@testable import BackupKit

/// The cipher of the vault against known answers: our own of the format notes, Bernstein's for Poly1305-AES, RFC 7914's
/// for scrypt.
struct CipherTests {
    /// encrypt 00…1f, k 20…2f, r 30…3f.
    static func key() throws -> VaultKey {
        try #require(
            VaultKey(encrypt: Array(0x00...0x1F), macK: Array(0x20...0x2F), macR: Array(0x30...0x3F)))
    }

    private static let iv: [UInt8] = Array(0x40...0x4F)

    private func seal(_ text: String) throws -> String {
        let plaintext = Array(text.utf8)
        var sealed = [UInt8](repeating: 0, count: plaintext.count + 32)
        let cipher = try VaultCipher(Self.key())
        try plaintext.withUnsafeBytes { plaintext in
            try Self.iv.withUnsafeBytes { iv in
                try sealed.withUnsafeMutableBytes { try cipher.seal(plaintext, iv: iv, into: $0) }
            }
        }
        #expect(try cipher.open(sealed) == plaintext)
        return hex(sealed)
    }

    @Test(arguments: [
        ("", "404142434445464748494a4b4c4d4e4f859469c07743c7e45b318d151d3d87e9"),
        ("hello", "404142434445464748494a4b4c4d4e4fcb1bb353f860255c12bd4898af19d6fd7f7a8197f3"),
        (
            "0123456789abcdef",
            "404142434445464748494a4b4c4d4e4f934fed0ca36f8cd8ab4203a5ee3fd431064ed29ff920e826a0e9aafa5693c29b"
        ),
    ])
    func sealingGivesTheKnownBytes(_ text: String, _ expected: String) throws {
        #expect(try seal(text) == expected)
    }

    @Test func theCounterCarriesThroughAllSixteenBytes() throws {
        let cipher = try VaultCipher(Self.key())
        let zeros = [UInt8](repeating: 0, count: 48)
        var out = zeros
        try zeros.withUnsafeBytes { source in
            try ([UInt8](repeating: 0xFF, count: 15) + [0xFE]).withUnsafeBytes { iv in
                try out.withUnsafeMutableBytes { try cipher.crypt(source, iv: iv, into: $0) }
            }
        }
        #expect(
            hex(out) == "63e5b402b51e48ddfaedf9de99cc2744e999e41d4ca770da5387117b5d8f57ee"
                + "f29000b62a499fd0a9f39a6add2e7780")
    }

    @Test func theAuthenticationCodeIsBernsteinsPoly1305AES() throws {
        let key = try #require(
            VaultKey(
                encrypt: Array(1...32), macK: unhex("ec074c835580741701425b623235add6"),
                macR: unhex("851fc40c3467ac0be05cc20404f3f700")))
        var tag = [UInt8](repeating: 0, count: 16)
        let cipher = try VaultCipher(key)
        try unhex("f3f6").withUnsafeBytes { message in
            try unhex("fb447350c4e868c52ac3275cf9d4327e").withUnsafeBytes { nonce in
                try tag.withUnsafeMutableBytes { try cipher.authenticate(message, iv: nonce, into: $0) }
            }
        }
        #expect(hex(tag) == "f4c633c3044fc145f84f335cb81953de")
    }

    @Test func aMultiplierThatWasNeverClampedIsClampedInUse() throws {
        let key = try Self.key()
        let clamped = try #require(
            VaultKey(encrypt: key.encrypt, macK: key.macK, macR: unhex("303132033435360738393a0b3c3d3e0f")))
        let sealed = try VaultCipher(key).seal(Array("x".utf8))
        #expect(try VaultCipher(clamped).open(sealed) == Array("x".utf8))
    }

    @Test func everyFlippedBitAndEveryCutIsRefusedAndNothingTraps() throws {
        let cipher = try VaultCipher(Self.key())
        let sealed = try cipher.seal(Array("the quick brown fox".utf8))
        for place in sealed.indices {
            for bit in 0..<8 {
                var damaged = sealed
                damaged[place] ^= 1 << bit
                #expect(throws: BackupError.self) { try cipher.open(damaged) }
            }
            #expect(throws: BackupError.self) { try cipher.open(Array(sealed[..<place])) }
        }
        #expect(throws: BackupError.self) { try cipher.open(sealed + [0]) }
        #expect(try cipher.open(sealed) == Array("the quick brown fox".utf8))
    }

    @Test func anAllZeroInitialisationVectorIsRefusedThoughItsCodeIsRight() throws {
        let cipher = try VaultCipher(Self.key())
        var sealed = [UInt8](repeating: 0, count: 37)
        try Array("hello".utf8).withUnsafeBytes { plaintext in
            try [UInt8](repeating: 0, count: 16).withUnsafeBytes { iv in
                try sealed.withUnsafeMutableBytes { try cipher.seal(plaintext, iv: iv, into: $0) }
            }
        }
        #expect(throws: BackupError.self) { try cipher.open(sealed) }
    }

    @Test func keysOfWrongLengthOrAllZeroAreNone() {
        let full = [UInt8](repeating: 1, count: 32)
        let half = [UInt8](repeating: 1, count: 16)
        let zeros = [UInt8](repeating: 0, count: 16)
        #expect(VaultKey(encrypt: full, macK: half, macR: half) != nil)
        #expect(VaultKey(encrypt: half, macK: half, macR: half) == nil)
        #expect(VaultKey(encrypt: zeros + zeros, macK: half, macR: half) == nil)
        #expect(VaultKey(encrypt: full, macK: zeros, macR: half) == nil)
        #expect(VaultKey(encrypt: full, macK: half, macR: zeros) == nil)
    }

    @Test func sealingTwiceNeverUsesTheSameInitialisationVector() throws {
        let cipher = try VaultCipher(Self.key())
        var seen: Set<[UInt8]> = []
        for _ in 0..<2000 { seen.insert(Array(try cipher.seal([1])[..<16])) }
        #expect(seen.count == 2000)
    }

    @Test func openingInPlaceGivesThePlaintextInTheSameBuffer() throws {
        let cipher = try VaultCipher(Self.key())
        let plaintext = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var sealed = try cipher.seal(plaintext)
        let opened = try sealed.withUnsafeMutableBytes { Array(try cipher.openInPlace($0)) }
        #expect(opened == plaintext)
    }

    @Test func scryptGivesTheKnownKeys() throws {
        let ours = try ScryptCost(n: 1024, r: 8, p: 1).derive(password: Array("test".utf8), salt: Array(0x00...0x3F))
        #expect(
            hex(ours) == "61e71ad33908cbdb299958d495a6a4b23cdd1bbf70f6823ae620887f15b44ae6"
                + "d7f5249156ed8a879dc05d20f414558f0c4e4e795aaf0ab71eafe933a17c4a6d")
        let empty = try ScryptCost(n: 16, r: 1, p: 1).derive(password: [], salt: [])
        #expect(
            hex(empty) == "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906")
    }

    @Test func ourScryptGivesWhatLibcryptoGives() throws {
        var generator = SeededGenerator(seed: 41)
        for (n, r, p) in [(2, 1, 1), (16, 1, 3), (64, 8, 2), (128, 3, 5), (4, 17, 2), (1024, 8, 1)]
            as [(UInt64, UInt64, UInt64)]
        {
            let cost = ScryptCost(n: n, r: r, p: p)
            let password = (0..<Int.random(in: 0...90, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let salt = (0..<64).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let expected = try cost.deriveWithLibcrypto(password: password, salt: salt)
            for cores in 1...3 {
                for turning in [false, Scrypt.canTurn] {
                    let ours = try Scrypt.derive(
                        password: password, salt: salt, cost, count: 64, cores: cores, turning: turning)
                    #expect(ours == expected, "\(cost) on \(cores) cores, \(turning)")
                }
            }
        }
    }

    @Test(arguments: [
        ScryptCost(n: 1 << 30, r: 8, p: 1), ScryptCost(n: 1000, r: 8, p: 1), ScryptCost(n: 1024, r: 8, p: 65),
        ScryptCost(n: 1 << 20, r: 8, p: 1), ScryptCost(n: 0, r: 8, p: 1), ScryptCost(n: 1024, r: 0, p: 1),
        ScryptCost(n: .max, r: .max, p: .max), ScryptCost(n: 1024, r: 8, p: 0), ScryptCost(n: 1, r: 8, p: 1),
    ])
    func aCostThatNoHonestKeyHasIsRefusedAtOnce(_ cost: ScryptCost) {
        // 2^20 and r = 8 would be 1 GiB.
        #expect(throws: BackupError.self) { try cost.derive(password: [1], salt: [2]) }
    }
}

private func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

private func unhex(_ hex: String) -> [UInt8] {
    stride(from: 0, to: hex.utf8.count, by: 2).compactMap { UInt8(hex.dropFirst($0).prefix(2), radix: 16) }
}
