import CCrypto

/// AES-256-CTR, the same in both directions; the whole IV is the counter, big-endian.
/// https://docs.openssl.org/3.0/man3/EVP_EncryptInit/
final class CounterMode {
    static let keyBytes = 32
    static let ivBytes = 16
    static var failure: BackupError { BackupError(.failed, "libcrypto could not encrypt or authenticate") }

    // Fetched once per process, never freed, immutable, shared.
    private nonisolated(unsafe) static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-CTR", nil)

    private let context: OpaquePointer

    init(key: [UInt8]) throws {
        guard key.count == Self.keyBytes, Self.cipher != nil, let context = EVP_CIPHER_CTX_new() else {
            throw Self.failure
        }
        self.context = context
        guard EVP_EncryptInit_ex2(context, Self.cipher, key, nil, nil) == 1 else { throw Self.failure }
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    func begin(_ iv: UnsafeRawBufferPointer) throws {
        guard iv.count == Self.ivBytes, let start = iv.baseAddress,
            EVP_EncryptInit_ex2(context, nil, nil, start.assumingMemoryBound(to: UInt8.self), nil) == 1
        else { throw Self.failure }
    }

    /// The next bytes; only the last piece may end inside of a block. `target` may be the source.
    func crypt(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws {
        guard target.count == source.count else { throw Self.failure }
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
            else { throw Self.failure }
            done += count
        }
    }
}
