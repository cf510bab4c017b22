import CSystem

extension SHA256Digest {
    /// Whether this processor can hash two texts in the time of one.
    static let canPair = csystem_sha256_is_here() != 0

    /// Whether it does. Without the optimizer it would take much longer; the tests compare it with libcrypto all the same.
    static let hashesPairs = canPair && isOptimized

    /// The digests of buffers, two at a time: when one ends, the next takes its place beside the other. The longest come
    /// first, for what is left of the last has nothing beside it.
    static func of(_ texts: [UnsafeRawBufferPointer], paired: Bool = hashesPairs) -> [SHA256Digest] {
        guard paired, texts.count > 1 else { return texts.map { of($0) } }
        var digests = [SHA256Digest](repeating: .zero, count: texts.count)
        let order = texts.indices.sorted { texts[$0].count > texts[$1].count }
        var (one, other) = (PartOfMany(texts, order[0]), PartOfMany(texts, order[1]))
        for next in order[2...] {
            let step = min(one.rest.count, other.rest.count)
            one.update(step, with: &other, step)
            // Where both have ended, the other gives way in the next round.
            if one.rest.isEmpty {
                digests[one.number] = one.digest.finish()
                one = PartOfMany(texts, next)
            } else {
                digests[other.number] = other.digest.finish()
                other = PartOfMany(texts, next)
            }
        }
        one.update(one.rest.count, with: &other, other.rest.count)
        digests[one.number] = one.digest.finish()
        digests[other.number] = other.digest.finish()
        return digests
    }

    /// One of many texts, and what is left of it.
    private struct PartOfMany {
        let number: Int
        var digest = RunningDigest()
        var rest: UnsafeRawBufferPointer

        init(_ texts: [UnsafeRawBufferPointer], _ number: Int) { (self.number, rest) = (number, texts[number]) }

        mutating func update(_ count: Int, with other: inout PartOfMany, _ otherCount: Int) {
            digest.update(take(count), with: &other.digest, other.take(otherCount))
        }

        private mutating func take(_ count: Int) -> UnsafeRawBufferPointer {
            defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
            return UnsafeRawBufferPointer(rebasing: rest[..<count])
        }
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
