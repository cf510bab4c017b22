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
        guard hex.utf8.count == 64 else { return nil }
        var words = SIMD4<UInt64>()
        for (index, digit) in hex.utf8.enumerated() {
            guard let value = hexValue(digit) else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.words = words
    }

    /// Reads 64 hexadecimal digits of either case.
    init?(hexBytes slice: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: slice)
        guard bytes.count == 64 else { return nil }
        var words = SIMD4<UInt64>()
        for word in 0..<4 {
            var value: UInt64 = 0
            for index in word * 16..<word * 16 + 16 {
                guard let digit = hexValue(bytes[index]) else { return nil }
                value = value << 4 | UInt64(digit)
            }
            words[word] = value
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
        text.reserveCapacity(text.count + 64)
        for word in 0..<4 {
            for shift in stride(from: UInt64(60), through: 0, by: -4) {
                let nibble = UInt8(truncatingIfNeeded: words[word] >> shift) & 15
                text.append(nibble < 10 ? 48 + nibble : 87 + nibble)
            }
        }
    }

    public static func < (left: Self, right: Self) -> Bool {
        for index in 0..<4 where left.words[index] != right.words[index] {
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
