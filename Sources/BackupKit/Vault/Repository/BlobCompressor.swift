/// Compresses blobs, and spends little on what does not compress (decision 075).
final class BlobCompressor {
    /// Below this, looking before costs more than it saves.
    private static let short = 4 << 10

    private let compressor: ZstandardCompressor
    private let buffer = RawBuffer()

    init() throws { compressor = try ZstandardCompressor() }

    /// The compressed bytes, good until the next call; nil when they would not be fewer.
    func compress(_ bytes: UnsafeRawBufferPointer, mustPack: Bool) throws -> UnsafeRawBufferPointer? {
        if bytes.isEmpty { return nil }
        let way = mustPack || bytes.count < Self.short ? .usual : Way(for: ByteSample(of: bytes))
        if way == .none { return nil }
        let target = try buffer.with(count: ZstandardCompressor.bound(bytes.count))
        if case .quick(let stride) = way {
            let effort = ZstandardCompressor.Effort.wideAndFast(windowLog: 22, stride: stride)
            let count = try compressor.compress(bytes, into: target, effort, checksum: false)
            if count >= bytes.count { return nil }
            if count >= bytes.count / 5 * 3 { return UnsafeRawBufferPointer(rebasing: target[..<count]) }
        }
        let count = try compressor.compress(bytes, into: target, .level(3), checksum: false)
        return mustPack || count < bytes.count ? UnsafeRawBufferPointer(rebasing: target[..<count]) : nil
    }

    private enum Way: Equatable {
        case none
        /// Looks for matches only, stepping so far where there are none.
        case quick(stride: Int32)
        /// As restic does.
        case usual

        init(for sample: ByteSample) {
            self =
                switch (sample.repetition, sample.text) {
                case (3.5..., _): .usual
                case (..<1.1, ..<0.02): .none
                case (_, 0.02..<0.04): .quick(stride: 32)
                default: .quick(stride: 8)
                }
        }
    }
}

/// What pieces of 16 bytes, taken evenly, tell of all bytes.
struct ByteSample {
    private static let piece = 16
    /// Pieces of text are looked for in so many bytes each, because a little text is worth finding. Steps are odd, or each would fall
    /// on the same place of records whose length is a power of two.
    private static let textStep = 127
    private static let countedPieces = 256

    /// The share of pieces without any byte over 127: in noise that is one of 65,536.
    let text: Double
    /// How much likelier than by chance two bytes are the same: 1 in noise, 17 in English, 4 in base64, more in measurements and programs.
    let repetition: Double

    init(of bytes: UnsafeRawBufferPointer) {
        (text, repetition) = (Self.text(bytes), Self.repetition(bytes))
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> Double {
        var (found, seen) = (0, 0)
        var place = 0
        while place + piece <= bytes.count {
            let either =
                bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                | bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self)
            if either & 0x8080_8080_8080_8080 == 0 { found += 1 }
            seen += 1
            place += textStep
        }
        return Double(found) / Double(max(seen, 1))
    }

    private static func repetition(_ bytes: UnsafeRawBufferPointer) -> Double {
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 256) { counts in
            counts.initialize(repeating: 0)
            let step = max(bytes.count / countedPieces, piece) | 1
            var (place, seen) = (0, 0)
            while place + piece <= bytes.count {
                for byte in bytes[place..<place + piece] { counts[Int(byte)] += 1 }
                seen += piece
                place += step
            }
            let same = counts.reduce(0) { $0 + $1 * $1 }
            return Double(same) * 256 / Double(max(seen * seen, 1))
        }
    }
}
