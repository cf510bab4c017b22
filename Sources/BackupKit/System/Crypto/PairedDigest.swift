import CSystem

extension SHA256Digest {
    /// Whether this processor can hash two texts in the time of one.
    static let canPair = csystem_sha256_is_here() != 0

    /// Whether it does. Without the optimizer it would take much longer; the tests compare it with libcrypto all the same.
    static let hashesPairs = canPair && isOptimized

    /// The digests of buffers, two at a time.
    static func of(_ texts: [UnsafeRawBufferPointer], paired: Bool = hashesPairs) -> [SHA256Digest] {
        ofHeads(of: texts.map { ($0, $0.count) }, paired: paired).map(\.whole)
    }

    /// The digests of buffers and of the first bytes of each, two buffers at a time: when one ends, the next takes its place
    /// beside the other. The longest come first, for what is left of the last has nothing beside it.
    static func ofHeads(
        of texts: [(bytes: UnsafeRawBufferPointer, head: Int)], paired: Bool = hashesPairs
    ) -> [(head: SHA256Digest, whole: SHA256Digest)] {
        guard paired, texts.count > 1 else {
            return texts.map { text in
                let whole = SHA256Digest.of(text.bytes)
                if text.head == text.bytes.count { return (whole, whole) }
                return (.of(UnsafeRawBufferPointer(rebasing: text.bytes[..<text.head])), whole)
            }
        }
        var digests = [(head: SHA256Digest, whole: SHA256Digest)](repeating: (.zero, .zero), count: texts.count)
        let order = texts.indices.sorted { texts[$0].bytes.count > texts[$1].bytes.count }
        var waiting = order[2...]
        func isFollowed(_ part: inout PartOfMany) -> Bool {
            if part.isFollowed(&digests) { return true }
            guard let next = waiting.popFirst() else { return false }
            part = PartOfMany(texts, next)
            return true
        }
        var (one, other) = (PartOfMany(texts, order[0]), PartOfMany(texts, order[1]))
        repeat {
            let step = min(one.rest.count, other.rest.count)
            one.update(step, with: &other, step)
            // Where both have ended, the other gives way in the next round.
        } while one.rest.isEmpty ? isFollowed(&one) : isFollowed(&other)
        // One of them has ended for good.
        repeat {
            one.update(one.rest.count, with: &other, other.rest.count)
        } while one.isFollowed(&digests) || other.isFollowed(&digests)
        return digests
    }

    /// One of many texts, and what is left of it.
    private struct PartOfMany {
        private let number: Int
        private var digest = RunningDigest()
        /// Of the head, then of what is behind it.
        private(set) var rest: UnsafeRawBufferPointer
        private var tail: UnsafeRawBufferPointer?

        init(_ texts: [(bytes: UnsafeRawBufferPointer, head: Int)], _ number: Int) {
            let text = texts[number]
            self.number = number
            rest = UnsafeRawBufferPointer(rebasing: text.bytes[..<text.head])
            tail = UnsafeRawBufferPointer(rebasing: text.bytes[text.head...])
        }

        mutating func update(_ count: Int, with other: inout PartOfMany, _ otherCount: Int) {
            digest.update(take(count), with: &other.digest, other.take(otherCount))
        }

        private mutating func take(_ count: Int) -> UnsafeRawBufferPointer {
            defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
            return UnsafeRawBufferPointer(rebasing: rest[..<count])
        }

        /// Notes the digest of the head or of the text, which has ended. False where nothing of this text follows.
        mutating func isFollowed(_ digests: inout [(head: SHA256Digest, whole: SHA256Digest)]) -> Bool {
            var ended = digest
            let soFar = ended.finish()
            guard let tail else {
                digests[number].whole = soFar
                return false
            }
            digests[number] = (soFar, soFar)
            rest = tail
            self.tail = nil
            return !rest.isEmpty
        }
    }
}

/// The digests of a text and of its pieces, or of what its pieces stand for, in one pass. One hasher serves one thread and may
/// be used again after `finish`.
final class PieceHasher {
    private let paired: Bool
    private var whole = RunningDigest()
    private let plainWhole = SHA256Hasher()

    init(paired: Bool = SHA256Digest.hashesPairs) { self.paired = paired }

    /// Goes on with the whole text, and returns the digest of this piece.
    func add(_ piece: UnsafeRawBufferPointer) -> SHA256Digest { add(piece, standingFor: piece) }

    /// Goes on with the whole text by `part`, and returns the digest of `piece`, which is another form of it.
    func add(_ part: UnsafeRawBufferPointer, standingFor piece: UnsafeRawBufferPointer) -> SHA256Digest {
        guard paired else {
            plainWhole.update(part)
            return .of(piece)
        }
        var digest = RunningDigest()
        digest.update(piece, with: &whole, part)
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
