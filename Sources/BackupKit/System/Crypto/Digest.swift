import CCrypto

/// A SHA-256 value.
public struct SHA256Digest: Hashable, Sendable, Comparable {
    /// Big-endian words, so that `<` is the order of the hexadecimal text.
    let words: SIMD4<UInt64>

    public init(_ bytes: UnsafeRawBufferPointer) {
        var words = SIMD4<UInt64>()
        for index in 0..<4 {
            words[index] = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        self.words = words
    }

    private init(words: SIMD4<UInt64>) { self.words = words }

    /// What no file has, and what stands for "none" in a vault.
    static let zero = SHA256Digest(words: SIMD4<UInt64>())

    /// Reads 64 hexadecimal digits of either case.
    public init?(hex: some StringProtocol) {
        var hex = String(hex)
        guard let digest = hex.withUTF8({ SHA256Digest(hexBytes: UnsafeRawBufferPointer($0)[...]) }) else { return nil }
        self = digest
    }

    /// Reads 64 hexadecimal digits of either case.
    init?(hexBytes slice: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: slice)
        guard bytes.count == 64 else { return nil }
        var words = SIMD4<UInt64>()
        for word in 0..<4 {
            func half(_ offset: Int) -> UInt32? {
                let text = bytes.loadUnaligned(fromByteOffset: word * 16 + offset, as: UInt64.self)
                return hexNumber(UInt64(bigEndian: text))
            }
            guard let high = half(0), let low = half(8) else { return nil }
            words[word] = UInt64(high) << 32 | UInt64(low)
        }
        self.words = words
    }

    public var hex: String {
        var text: [UInt8] = []
        appendHex(to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the 64 digits.
    func appendHex(to text: inout [UInt8]) {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { buffer in
            for word in 0..<4 {
                let high = hexDigits(UInt32(truncatingIfNeeded: words[word] >> 32)).bigEndian
                let low = hexDigits(UInt32(truncatingIfNeeded: words[word])).bigEndian
                buffer.storeBytes(of: high, toByteOffset: word * 16, as: UInt64.self)
                buffer.storeBytes(of: low, toByteOffset: word * 16 + 8, as: UInt64.self)
            }
            text += UnsafeRawBufferPointer(buffer)
        }
    }

    public static func < (left: Self, right: Self) -> Bool {
        // Nearly always the first word tells.
        if left.words[0] != right.words[0] { return left.words[0] < right.words[0] }
        for index in 1..<4 where left.words[index] != right.words[index] {
            return left.words[index] < right.words[index]
        }
        return false
    }

    /// The digest of one buffer.
    public static func of(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
        let hasher = SHA256Hasher()
        hasher.update(bytes)
        return hasher.finish()
    }

    public static func of(_ text: String) -> SHA256Digest {
        var text = text
        return text.withUTF8 { of(UnsafeRawBufferPointer($0)) }
    }
}

private let everyByte: UInt64 = 0x0101_0101_0101_0101

/// Eight hexadecimal digits, the first in the highest byte.
private func hexDigits(_ number: UInt32) -> UInt64 {
    var nibbles = UInt64(number)
    nibbles = (nibbles << 16 | nibbles) & 0x0000_FFFF_0000_FFFF
    nibbles = (nibbles << 8 | nibbles) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles << 4 | nibbles) & 0x0F0F_0F0F_0F0F_0F0F
    // A nibble above nine becomes a letter, which is 39 behind where the digits would go on.
    let letters = (nibbles &+ everyByte &* 6) >> 4 & everyByte
    return nibbles &+ everyByte &* 48 &+ letters &* 39
}

/// What eight hexadecimal digits of either case mean; nil when they are none.
private func hexNumber(_ text: UInt64) -> UInt32? {
    let letters = text >> 6 & everyByte
    var nibbles = (text & (everyByte &* 0x0F)) &+ letters &* 9
    nibbles = (nibbles | nibbles >> 4) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles | nibbles >> 8) & 0x0000_FFFF_0000_FFFF
    let number = UInt32(truncatingIfNeeded: nibbles | nibbles >> 16)
    // Whatever was no digit comes out as another text.
    return hexDigits(number) == text | letters &* 0x20 ? number : nil
}

/// SHA-256 through libcrypto, which uses the CPU's instructions. One hasher serves one thread and may be used again
/// after `finish`. https://docs.openssl.org/3.0/man3/EVP_DigestInit/
public final class SHA256Hasher {
    public static var libraryVersion: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }

    // Fetching costs microseconds and takes a lock; once per process is enough. Never freed, immutable, shared.
    private nonisolated(unsafe) static let algorithm: OpaquePointer? = EVP_MD_fetch(nil, "SHA256", nil)
    private let context: OpaquePointer

    public init() {
        guard let context = EVP_MD_CTX_new(), Self.algorithm != nil else {
            preconditionFailure("libcrypto has no SHA-256 or no memory")
        }
        self.context = context
        start()
    }

    deinit { EVP_MD_CTX_free(context) }

    private func start() {
        let status = EVP_DigestInit_ex2(context, Self.algorithm, nil)
        precondition(status == 1, "libcrypto could not start SHA-256")
    }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        let status = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        precondition(status == 1, "libcrypto could not go on with SHA-256")
    }

    public func finish() -> SHA256Digest {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { buffer in
            let status = EVP_DigestFinal_ex(context, buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
            precondition(status == 1, "libcrypto could not finish SHA-256")
            start()
            return SHA256Digest(UnsafeRawBufferPointer(buffer))
        }
    }
}
