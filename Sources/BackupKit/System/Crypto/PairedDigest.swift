import CSystem

extension SHA256Digest {
    /// Whether this processor can hash two texts in the time of one.
    static let canPair = csystem_sha256_is_here() != 0

    /// Whether it does. Without the optimizer it would take much longer; the tests compare it with libcrypto all the same.
    static let hashesPairs: Bool = {
        #if DEBUG
            return false
        #else
            return canPair
        #endif
    }()

    /// The digests of two buffers.
    static func of(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, paired: Bool = hashesPairs
    ) -> (SHA256Digest, SHA256Digest) {
        guard paired else { return (of(first), of(second)) }
        var (one, other) = (RunningDigest(), RunningDigest())
        one.update(first, with: &other, second)
        return (one.finish(), other.finish())
    }
}

/// The digests of a text and of its pieces in one pass. One hasher serves one thread and may be used again after `finish`.
final class PieceHasher {
    private let paired: Bool
    private var whole = RunningDigest()
    private let plainWhole = SHA256Hasher()

    init(paired: Bool = SHA256Digest.hashesPairs) { self.paired = paired }

    /// Goes on with the whole text, and returns the digest of this piece.
    func add(_ piece: UnsafeRawBufferPointer) -> SHA256Digest {
        guard paired else {
            plainWhole.update(piece)
            return .of(piece)
        }
        var digest = RunningDigest()
        digest.update(piece, with: &whole, piece)
        return digest.finish()
    }

    /// The digest of all pieces.
    func finish() -> SHA256Digest {
        guard paired else { return plainWhole.finish() }
        defer { whole = RunningDigest() }
        return whole.finish()
    }
}

/// One of two texts that are hashed at the same time. Only where `csystem_sha256_is_here`.
private struct RunningDigest {
    private var text = csystem_sha256()

    init() { csystem_sha256_begin(&text) }

    mutating func update(
        _ bytes: UnsafeRawBufferPointer, with other: inout RunningDigest, _ otherBytes: UnsafeRawBufferPointer
    ) {
        csystem_sha256_update(
            &text, bytes.baseAddress, bytes.count, &other.text, otherBytes.baseAddress, otherBytes.count)
    }

    mutating func finish() -> SHA256Digest {
        withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { buffer in
            // An allocation of 32 bytes has an address.
            if let start = buffer.baseAddress { csystem_sha256_finish(&text, start) }
            return SHA256Digest(UnsafeRawBufferPointer(buffer))
        }
    }
}
