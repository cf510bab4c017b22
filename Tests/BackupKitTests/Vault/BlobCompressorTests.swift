import TestSupport
import Testing

@testable import BackupKit

/// What is stored of a blob, and what was seen of it before.
struct BlobCompressorTests {
    /// Values of twelve bits in two bytes each, as scanners of hospitals write them: no two rows are alike, and no byte says "text".
    private static func measurements(_ random: inout SeededGenerator, count: Int) -> [UInt8] {
        var value = 1500
        return (0..<count).flatMap { _ in
            value = min(max(value + random.below(21) - 10, 1000), 3000)
            return [UInt8(value & 0xFF), UInt8(value >> 8)]
        }
    }

    /// Streams that do not compress, and a few words between them.
    private static func likePDF(_ random: inout SeededGenerator, pieces: Int, noise: Int) -> [UInt8] {
        (0..<pieces).flatMap { number in
            random.bytes(noise)
                + Array(
                    "\nendstream\nendobj\n\(number) 0 obj\n<< /Length \(noise) /Filter /FlateDecode >>\nstream\n".utf8)
        }
    }

    /// Compressed and unpacked again; the length, or nil when the bytes are stored as they are.
    private static func length(of bytes: [UInt8], mustPack: Bool = false) throws -> Int? {
        // The packed bytes are its own.
        let compressor = try BlobCompressor()
        defer { withExtendedLifetime(compressor) {} }
        return try bytes.withUnsafeBytes { bytes in
            guard let packed = try compressor.compress(bytes, mustPack: mustPack) else { return nil }
            var plain = [UInt8](repeating: 0, count: bytes.count)
            let (count, problem) = try plain.withUnsafeMutableBytes {
                try ZstandardDecompressor().decompress(packed, into: $0)
            }
            #expect(count == bytes.count, "\(problem)")
            #expect(plain.elementsEqual(bytes))
            return packed.count
        }
    }

    @Test func noise_isStoredAsItIs() throws {
        var random = SeededGenerator(seed: testSeed())
        for count in [100, 16 << 10, 300_000] {
            #expect(try Self.length(of: random.bytes(count)) == nil)
            #expect(try Self.length(of: random.bytes(count), mustPack: true) != nil)
        }
        #expect(try Self.length(of: []) == nil)
    }

    @Test func unevenBytes_areSearchedThoughNoneIsText() throws {
        var random = SeededGenerator(seed: testSeed())
        let once = random.bytes(40_000).map { $0 | 0x80 }
        let packed = try #require(try Self.length(of: once + once))
        #expect(packed < once.count * 5 / 4)
    }

    @Test func measurements_arePackedThoughNothingInThemMatches() throws {
        var random = SeededGenerator(seed: testSeed())
        let bytes = Self.measurements(&random, count: 200_000)
        let packed = try #require(try Self.length(of: bytes))
        #expect(packed < bytes.count * 4 / 5)
    }

    @Test func wordsBetweenStreams_areFoundWhereTheyAreMany() throws {
        var random = SeededGenerator(seed: testSeed())
        let bytes = Self.likePDF(&random, pieces: 300, noise: 1000)
        let packed = try #require(try Self.length(of: bytes))
        // Of 87 bytes between two streams, few are new.
        #expect(bytes.count - packed > 300 * 50)
    }

    @Test func recordsOfOneLength_areSeenWhole() throws {
        var random = SeededGenerator(seed: testSeed())
        let text = Array(String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 6).utf8)
        for length in [32, 64, 128, 256] {
            let bytes = (0..<65536 / length).flatMap { _ in random.bytes(16) + text[..<(length - 16)] }
            let packed = try #require(try Self.length(of: bytes), "records of \(length) bytes")
            // The text is always the same.
            #expect(packed < 65536 * 16 / length * 5 / 4, "records of \(length) bytes: \(packed)")
        }
    }

    @Test func text_isPackedAsAtTheUsualLevel() throws {
        let text = Array((0..<20_000).map { "record \($0 % 977), title \($0 % 31) of many\n" }.joined().utf8)
        let buffer = RawBuffer()
        let target = try buffer.with(count: ZstandardCompressor.bound(text.count))
        let usual = try text.withUnsafeBytes {
            try ZstandardCompressor().compress($0, into: target, .level(3), checksum: false)
        }
        withExtendedLifetime(buffer) {}
        #expect(try Self.length(of: text) == usual)
    }

    @Test func aSample_tellsNoiseFromTextAndFromMeasurements() {
        var random = SeededGenerator(seed: testSeed())
        let noise = random.bytes(300_000).withUnsafeBytes(ByteSample.init)
        #expect(noise.text == 0 && noise.repetition < 1.2)
        let document = Self.likePDF(&random, pieces: 300, noise: 3000).withUnsafeBytes(ByteSample.init)
        #expect(document.text > 0.01 && document.text < 0.04 && document.repetition < 1.4)
        let measured = Self.measurements(&random, count: 150_000).withUnsafeBytes(ByteSample.init)
        #expect(measured.text < 0.5 && measured.repetition > 8)
        let nothing = [UInt8]().withUnsafeBytes(ByteSample.init)
        #expect(nothing.text == 0 && nothing.repetition == 0)
    }
}
