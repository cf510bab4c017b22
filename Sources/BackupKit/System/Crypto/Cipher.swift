import CCrypto
import Glibc

/// The keys of a vault: AES-256 for what is written, and the two halves of a Poly1305-AES key for its authentication.
public struct VaultKey: Sendable, Equatable {
    public static let encryptBytes = CounterMode.keyBytes
    public static let macBytes = 16

    public let encrypt: [UInt8]
    /// The AES-128 key that makes a pad of each initialisation vector.
    public let macK: [UInt8]
    /// The multiplier. It is clamped whenever it is used: others store it as it came from the random generator.
    public let macR: [UInt8]

    /// nil unless the lengths are right and no part is all zero, which is what a key that was never filled looks like.
    public init?(encrypt: [UInt8], macK: [UInt8], macR: [UInt8]) {
        guard encrypt.count == Self.encryptBytes, macK.count == Self.macBytes, macR.count == Self.macBytes,
            [encrypt, macK, macR].allSatisfy({ $0.contains { $0 != 0 } })
        else { return nil }
        self.encrypt = encrypt
        self.macK = macK
        self.macR = macR
    }

    /// A new random key.
    public static func random() throws -> VaultKey {
        let bytes = try SecureRandom.bytes(encryptBytes + 2 * macBytes)
        guard let key = VaultKey(joined: bytes) else { throw BackupError(.failed, "the random generator gives zeros") }
        return key
    }

    /// From 64 bytes in the order of the key derivation: encrypt, k, r.
    init?(joined bytes: [UInt8]) {
        guard bytes.count == Self.encryptBytes + 2 * Self.macBytes else { return nil }
        self.init(encrypt: Array(bytes[..<32]), macK: Array(bytes[32..<48]), macR: Array(bytes[48...]))
    }
}

/// Seals and opens what a vault stores: `IV(16) ‖ AES-256-CTR(plaintext) ‖ Poly1305-AES(ciphertext)`.
///
/// One cipher serves one thread and is used for blob after blob: its contexts keep the expanded keys.
/// https://docs.openssl.org/3.0/man3/EVP_MAC/, https://cr.yp.to/mac/poly1305-20050329.pdf
public final class VaultCipher {
    public static let overhead = 32
    static let ivBytes = CounterMode.ivBytes
    static let macBytes = 16
    private static let piece = 32 << 10

    // Fetched once per process, never freed, immutable, shared.
    private nonisolated(unsafe) static let blockMode: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-128-ECB", nil)
    private nonisolated(unsafe) static let poly1305: OpaquePointer? = EVP_MAC_fetch(nil, "POLY1305", nil)

    private let stream: CounterMode
    private let pad: OpaquePointer
    private let mac: OpaquePointer
    private let macR: [UInt8]

    public init(_ key: VaultKey) throws {
        stream = try CounterMode(key: key.encrypt)
        guard Self.blockMode != nil, let poly1305 = Self.poly1305,
            let pad = EVP_CIPHER_CTX_new(), let mac = EVP_MAC_CTX_new(poly1305)
        else { throw CounterMode.failure }
        self.pad = pad
        self.mac = mac
        macR = key.macR
        guard EVP_EncryptInit_ex2(pad, Self.blockMode, key.macK, nil, nil) == 1,
            EVP_CIPHER_CTX_set_padding(pad, 0) == 1
        else { throw CounterMode.failure }
    }

    deinit {
        EVP_CIPHER_CTX_free(pad)
        EVP_MAC_CTX_free(mac)
    }

    /// Seals into `target`, which MUST hold `plaintext.count + overhead` bytes, under a new random IV.
    public func seal(_ plaintext: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws {
        try withUnsafeTemporaryAllocation(byteCount: Self.ivBytes, alignment: 8) { iv in
            repeat { try SecureRandom.fill(iv) } while iv.allSatisfy { $0 == 0 }
            try seal(plaintext, iv: UnsafeRawBufferPointer(iv), into: target)
        }
    }

    public func seal(_ plaintext: [UInt8]) throws -> [UInt8] {
        var sealed = [UInt8](repeating: 0, count: plaintext.count + Self.overhead)
        try plaintext.withUnsafeBytes { plaintext in
            try sealed.withUnsafeMutableBytes { try seal(plaintext, into: $0) }
        }
        return sealed
    }

    /// With a given IV, which no key may ever see twice: for tests, against known answers.
    func seal(
        _ plaintext: UnsafeRawBufferPointer, iv: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) throws {
        guard target.count == plaintext.count + Self.overhead, iv.count == Self.ivBytes else {
            throw CounterMode.failure
        }
        target.copyMemory(from: iv)
        let end = target.count - Self.macBytes
        try stream.begin(iv)
        try beginCode(iv)
        // Piece by piece, so that what was encrypted is still in the processor's cache when its code is made.
        for start in stride(from: 0, to: plaintext.count, by: Self.piece) {
            let source = UnsafeRawBufferPointer(rebasing: plaintext[start..<min(start + Self.piece, plaintext.count)])
            let place = Self.ivBytes + start
            let sealed = UnsafeMutableRawBufferPointer(rebasing: target[place..<place + source.count])
            try stream.crypt(source, into: sealed)
            try addToCode(UnsafeRawBufferPointer(sealed))
        }
        try finishCode(UnsafeMutableRawBufferPointer(rebasing: target[end...]))
    }

    /// Whether these bytes were sealed with this key and are as they were then. Takes any bytes.
    public func isAuthentic(_ sealed: UnsafeRawBufferPointer) throws -> Bool {
        guard sealed.count >= Self.overhead else { return false }
        let iv = UnsafeRawBufferPointer(rebasing: sealed[..<Self.ivBytes])
        guard iv.contains(where: { $0 != 0 }) else { return false }
        let end = sealed.count - Self.macBytes
        return try withUnsafeTemporaryAllocation(byteCount: Self.macBytes, alignment: 8) { tag in
            try authenticate(UnsafeRawBufferPointer(rebasing: sealed[Self.ivBytes..<end]), iv: iv, into: tag)
            // In constant time: how far a forged code agrees is nobody's business.
            return CRYPTO_memcmp(tag.baseAddress, sealed.baseAddress?.advanced(by: end), Self.macBytes) == 0
        }
    }

    /// Opens into `target`, which MUST hold `sealed.count - overhead` bytes and may be the ciphertext itself. Nothing is
    /// decrypted before the authentication code was found right. Takes any bytes.
    public func open(_ sealed: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws {
        guard sealed.count >= Self.overhead else { throw BackupError(.damaged, "is too short to be sealed data") }
        guard target.count == sealed.count - Self.overhead else { throw CounterMode.failure }
        guard try isAuthentic(sealed) else {
            throw BackupError(.damaged, "is not what was written: its authentication code is wrong")
        }
        let body = UnsafeRawBufferPointer(rebasing: sealed[Self.ivBytes..<sealed.count - Self.macBytes])
        try crypt(body, iv: UnsafeRawBufferPointer(rebasing: sealed[..<Self.ivBytes]), into: target)
    }

    /// Opens where the bytes lie and returns the part of the buffer that is plaintext now.
    public func openInPlace(_ sealed: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer {
        guard sealed.count >= Self.overhead else { throw BackupError(.damaged, "is too short to be sealed data") }
        let body = UnsafeMutableRawBufferPointer(rebasing: sealed[Self.ivBytes..<sealed.count - Self.macBytes])
        try open(UnsafeRawBufferPointer(sealed), into: body)
        return UnsafeRawBufferPointer(body)
    }

    public func open(_ sealed: [UInt8]) throws -> [UInt8] {
        var plaintext = [UInt8](repeating: 0, count: max(0, sealed.count - Self.overhead))
        try sealed.withUnsafeBytes { sealed in
            try plaintext.withUnsafeMutableBytes { try open(sealed, into: $0) }
        }
        return plaintext
    }

    func crypt(
        _ source: UnsafeRawBufferPointer, iv: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) throws {
        try stream.begin(iv)
        try stream.crypt(source, into: target)
    }

    // MARK: Poly1305 under the one-time key `r ‖ AES-128(k, IV)`. The library clamps r

    func authenticate(
        _ message: UnsafeRawBufferPointer, iv: UnsafeRawBufferPointer, into tag: UnsafeMutableRawBufferPointer
    ) throws {
        try beginCode(iv)
        try addToCode(message)
        try finishCode(tag)
    }

    private func beginCode(_ iv: UnsafeRawBufferPointer) throws {
        guard iv.count == Self.ivBytes else { throw CounterMode.failure }
        try withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { oneTime in
            oneTime.copyBytes(from: macR)
            let key = oneTime.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let counter = iv.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var written: Int32 = 0
            guard EVP_EncryptUpdate(pad, key?.advanced(by: 16), &written, counter, 16) == 1,
                EVP_MAC_init(mac, key, 32, nil) == 1
            else { throw CounterMode.failure }
        }
    }

    private func addToCode(_ message: UnsafeRawBufferPointer) throws {
        let bytes = message.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard EVP_MAC_update(mac, bytes, message.count) == 1 else { throw CounterMode.failure }
    }

    private func finishCode(_ tag: UnsafeMutableRawBufferPointer) throws {
        var count = 0
        guard tag.count == Self.macBytes,
            EVP_MAC_final(mac, tag.baseAddress?.assumingMemoryBound(to: UInt8.self), &count, tag.count) == 1,
            count == Self.macBytes
        else { throw CounterMode.failure }
    }
}

/// Random bytes fit for keys.
public enum SecureRandom {
    public static func fill(_ target: UnsafeMutableRawBufferPointer) throws {
        guard let base = target.baseAddress, target.count > 0 else { return }
        guard RAND_bytes(base.assumingMemoryBound(to: UInt8.self), Int32(clamping: target.count)) == 1 else {
            throw BackupError(.failed, "the system gives no random numbers")
        }
    }

    public static func bytes(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { try fill($0) }
        return bytes
    }
}
