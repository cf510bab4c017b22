/// Cuts files where their content says so, exactly as restic does with the same polynomial, so that what both programs
/// store is stored once.
///
/// Rabin's fingerprint of the last 64 bytes; a chunk ends behind the byte where its low 20 bits are 0. The fingerprint
/// depends on nothing but these 64 bytes, so a stretch can be looked through in four places at once: the loads of one
/// place fill the time that the next one waits for its own. Processors that have the instructions do it in 64 places.
public final class Chunker: Sendable {
    public static let minimum = 512 << 10
    public static let maximum = 8 << 20
    static let window = 64
    private static let mask: UInt64 = (1 << 20) - 1
    /// What one of the four looks through before they meet again.
    private static let stretch = 8 << 10

    /// 256 entries that take the byte out that leaves the window, 256 that reduce. Both are for the moment when the fingerprint
    /// was multiplied by x^8, so that neither waits for the other. Written once, freed with the chunker.
    private nonisolated(unsafe) let tables: UnsafeMutablePointer<UInt64>
    private let shift: UInt64
    private let wide: WideFingerprint?

    public convenience init(_ polynomial: Polynomial) throws { try self.init(polynomial, wide: WideFingerprint.isHere) }

    init(_ polynomial: Polynomial, wide: Bool) throws {
        guard polynomial.isUsable else {
            throw BackupError(
                .damaged, "the polynomial \(polynomial.hex) cannot be used to cut files", at: "config",
                remedy: "the repository was not made by restic or backup-tool, or its config was changed")
        }
        tables = .allocate(capacity: 512)
        let degree = UInt64(polynomial.degree)
        shift = degree - 8
        for byte in 0..<UInt64(256) {
            var leaving = Polynomial(bits: byte).reduced(by: polynomial)
            for _ in 0..<(Self.window - 1) {
                leaving = Polynomial(bits: leaving.bits << 8).reduced(by: polynomial)
            }
            tables[Int(byte)] = Polynomial(bits: leaving.bits << 8).reduced(by: polynomial).bits
            let overflow = Polynomial(bits: byte << degree).reduced(by: polynomial)
            tables[256 + Int(byte)] = overflow.bits | byte << degree
        }
        let (leave, reduce) = (tables, tables + 256)
        let isWide = wide && polynomial.degree == Polynomial.usualDegree
        self.wide = isWide ? WideFingerprint(leaving: { leave[$0] }, reduced: { reduce[$0] }) : nil
    }

    deinit { tables.deallocate() }

    /// The length of the chunk that `bytes` begin with; nil when that takes more bytes to say. `isEnd` says that no
    /// more will come. `searched` bytes were looked through before, and it says how far this call came.
    public func cut(_ bytes: UnsafeRawBufferPointer, isEnd: Bool, searched: inout Int) -> Int? {
        let end = min(bytes.count, Self.maximum)
        // The first place where a chunk may end is behind its `minimum` bytes.
        let start = max(searched, Self.minimum - 1)
        if start < end, let base = bytes.bindMemory(to: UInt8.self).baseAddress {
            if let last = firstCut(base, start, end) { return last + 1 }
            searched = end
        }
        if end == Self.maximum { return end }
        return isEnd && end > 0 ? end : nil
    }

    /// The first place in `start..<end` behind which a chunk ends; 64 bytes lie before `start`.
    private func firstCut(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int? {
        var position = start
        if let found = wide?.first(base, &position, end) { return found }
        while end - position >= 4 * Self.stretch {
            if let found = quadruple(base + position) { return position + found }
            position += 4 * Self.stretch
        }
        guard position < end else { return nil }
        return single(base + position, count: end - position).map { position + $0 }
    }

    /// The fingerprint of the 64 bytes before `bytes`.
    @inline(__always)
    private func fingerprint(before bytes: UnsafePointer<UInt8>) -> UInt64 {
        let reduce = UnsafePointer(tables + 256)
        var digest: UInt64 = 0
        for index in -Self.window..<0 {
            digest = (digest &<< 8 | UInt64(bytes[index])) ^ reduce[Int(truncatingIfNeeded: digest &>> shift)]
        }
        return digest
    }

    private func single(_ bytes: UnsafePointer<UInt8>, count: Int) -> Int? {
        let (leave, reduce, shift) = (UnsafePointer(tables), UnsafePointer(tables + 256), shift)
        var digest = fingerprint(before: bytes)
        for index in 0..<count {
            let fresh = UInt64(bytes[index]) ^ leave[Int(bytes[index &- Self.window])]
            digest = (digest &<< 8 ^ fresh) ^ reduce[Int(truncatingIfNeeded: digest &>> shift)]
            if digest & Self.mask == 0 { return index }
        }
        return nil
    }

    /// Looks through four neighbouring stretches at once.
    private func quadruple(_ bytes: UnsafePointer<UInt8>) -> Int? {
        let (leave, reduce, shift) = (UnsafePointer(tables), UnsafePointer(tables + 256), shift)
        let (stretch, mask) = (Self.stretch, Self.mask)
        let (one, two, three) = (bytes + stretch, bytes + 2 * stretch, bytes + 3 * stretch)
        var (a, b) = (fingerprint(before: bytes), fingerprint(before: one))
        var (c, d) = (fingerprint(before: two), fingerprint(before: three))
        // The first hit of each of the later three; one of the first ends the search.
        var hits = (stretch, stretch, stretch)
        for index in 0..<stretch {
            let old = index &- Self.window
            a = (a &<< 8 ^ UInt64(bytes[index]) ^ leave[Int(bytes[old])]) ^ reduce[Int(truncatingIfNeeded: a &>> shift)]
            b = (b &<< 8 ^ UInt64(one[index]) ^ leave[Int(one[old])]) ^ reduce[Int(truncatingIfNeeded: b &>> shift)]
            c = (c &<< 8 ^ UInt64(two[index]) ^ leave[Int(two[old])]) ^ reduce[Int(truncatingIfNeeded: c &>> shift)]
            d = (d &<< 8 ^ UInt64(three[index]) ^ leave[Int(three[old])]) ^ reduce[Int(truncatingIfNeeded: d &>> shift)]
            if a & mask == 0 { return index }
            if b & mask == 0 { hits.0 = min(hits.0, index) }
            if c & mask == 0 { hits.1 = min(hits.1, index) }
            if d & mask == 0 { hits.2 = min(hits.2, index) }
        }
        if hits.0 < stretch { return stretch + hits.0 }
        if hits.1 < stretch { return 2 * stretch + hits.1 }
        return hits.2 < stretch ? 3 * stretch + hits.2 : nil
    }
}
