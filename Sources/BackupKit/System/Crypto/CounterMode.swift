import CCrypto
import CSystem

/// AES-256-CTR, the same in both directions; the whole IV is the counter, big-endian. By the widest instructions that the
/// processor has, else by libcrypto (decision 073). https://docs.openssl.org/3.0/man3/EVP_EncryptInit/
final class CounterMode {
    static let keyBytes = 32
    static let ivBytes = 16

    /// Whether this processor has instructions that libcrypto leaves alone.
    static let canWiden = csystem_aes_is_here() != 0

    /// Whether they are used. Without the optimizer that gains nothing; the tests compare them with libcrypto all the same.
    static let isWide = canWiden && isOptimized

    // Fetched once per process, never freed, immutable, shared.
    private nonisolated(unsafe) static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-CTR", nil)

    /// One of the two is there: ours, or libcrypto's.
    private let wide: UnsafeMutablePointer<csystem_aes>?
    private let context: OpaquePointer?

    init(key: [UInt8], wide isWide: Bool = isWide) throws {
        guard key.count == Self.keyBytes else { throw VaultCipher.failure }
        if isWide {
            let expanded = UnsafeMutablePointer<csystem_aes>.allocate(capacity: 1)
            expanded.initialize(to: csystem_aes())
            csystem_aes_expand(expanded, key)
            (wide, context) = (expanded, nil)
        } else {
            (wide, context) = (nil, EVP_CIPHER_CTX_new())
            guard Self.cipher != nil, context != nil,
                EVP_EncryptInit_ex2(context, Self.cipher, key, nil, nil) == 1
            else { throw VaultCipher.failure }
        }
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
        if let wide {
            // The key does not stay in memory that is given away.
            OPENSSL_cleanse(wide, MemoryLayout<csystem_aes>.size)
            wide.deallocate()
        }
    }

    func begin(_ iv: UnsafeRawBufferPointer) throws {
        guard iv.count == Self.ivBytes, let start = iv.baseAddress else { throw VaultCipher.failure }
        if let wide { return csystem_aes_begin(wide, start) }
        guard EVP_EncryptInit_ex2(context, nil, nil, start.assumingMemoryBound(to: UInt8.self), nil) == 1 else {
            throw VaultCipher.failure
        }
    }

    /// The next bytes; only the last piece may end inside of a block. `target` may be the source.
    func crypt(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws {
        guard target.count == source.count else { throw VaultCipher.failure }
        if let wide { return csystem_aes_crypt(wide, source.baseAddress, target.baseAddress, source.count) }
        var done = 0
        while done < source.count {
            // The library counts in C's int.
            let count = min(source.count - done, 1 << 30)
            var written: Int32 = 0
            guard
                EVP_EncryptUpdate(
                    context, target.baseAddress?.advanced(by: done).assumingMemoryBound(to: UInt8.self), &written,
                    source.baseAddress?.advanced(by: done).assumingMemoryBound(to: UInt8.self), Int32(count)) == 1,
                written == Int32(count)
            else { throw VaultCipher.failure }
            done += count
        }
    }
}
