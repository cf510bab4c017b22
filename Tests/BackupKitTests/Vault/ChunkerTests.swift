import TestSupport
import Testing

@testable import BackupKit

/// 10 MiB of which everybody can make the same: SHA-256(be64(i)) for i from 0 on.
private let golden: [UInt8] = {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(327_680 * 32)
    for number in UInt64(0)..<327_680 {
        withUnsafeBytes(of: number.bigEndian) { SHA256Digest.of($0).appendBytes(to: &bytes) }
    }
    return bytes
}()

private func chunker(_ hex: String = "3da3358b4dc173") throws -> Chunker {
    try Chunker(try #require(Polynomial(hex: hex)))
}

/// Cuts as a file is cut that comes in pieces of `step` bytes.
private func lengths(_ bytes: [UInt8], _ chunker: Chunker, step: Int = .max) -> [Int] {
    bytes.withUnsafeBytes { bytes in
        var cuts: [Int] = []
        var start = 0
        var end = min(step, bytes.count)
        var searched = 0
        while start < bytes.count {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            if let length = chunker.cut(piece, isEnd: end == bytes.count, searched: &searched) {
                cuts.append(length)
                start += length
                searched = 0
            } else {
                end = step < bytes.count - end ? end + step : bytes.count
            }
        }
        return cuts
    }
}

/// The chunker as the specification tells it, byte by byte.
private func plainly(_ bytes: [UInt8], _ polynomial: Polynomial) -> [Int] {
    var cuts: [Int] = []
    var start = 0
    while start < bytes.count {
        var window = [UInt8](repeating: 0, count: 64)
        var place = 1
        window[0] = 1
        var digest: UInt64 = 1
        var count = Chunker.minimum - 64
        while start + count < bytes.count {
            let byte = bytes[start + count]
            var leaving = Polynomial(bits: UInt64(window[place & 63]))
            for _ in 0..<63 { leaving = Polynomial(bits: leaving.bits << 8).reduced(by: polynomial) }
            window[place & 63] = byte
            place += 1
            digest = Polynomial(bits: (digest ^ leaving.bits) << 8 | UInt64(byte)).reduced(by: polynomial).bits
            count += 1
            if count >= Chunker.minimum, digest & 0xFFFFF == 0 || count >= Chunker.maximum { break }
        }
        count = min(count, bytes.count - start)
        cuts.append(count)
        start += count
    }
    return cuts
}

@Suite struct ChunkerTests {
    @Test func filesAreCutWhereResticCutsThem() throws {
        #expect(golden.count == 10_485_760)
        #expect(golden.withUnsafeBytes { SHA256Digest.of($0) }.hex.hasPrefix("0feff801"))
        let cuts = lengths(golden, try chunker())
        #expect(cuts == [2_954_950, 1_586_285, 1_977_297, 1_649_701, 1_681_192, 595_664, 40671])
        var start = 0
        var ids: [String] = []
        for cut in cuts {
            ids.append(String(golden[start..<start + cut].withUnsafeBytes { SHA256Digest.of($0) }.hex.prefix(8)))
            start += cut
        }
        #expect(ids == ["289cc1c6", "41b9b999", "15776cc9", "772fb7cc", "611171ac", "7f1f73ea", "94461ba8"])
    }

    @Test func zerosAreCutAsEarlyAsAllowed() throws {
        let zeros = [UInt8](repeating: 0, count: 3 << 19)
        #expect(lengths(zeros, try chunker()) == [524_288, 524_288, 524_288])
        let digest = zeros[..<524_288].withUnsafeBytes { SHA256Digest.of($0) }
        #expect(digest.hex.hasPrefix("07854d2f") && digest.hex.hasSuffix("fda1541"))
    }

    @Test(arguments: [4096, 500_000, 524_287, 524_288, 1 << 20])
    func cutsDoNotDependOnHowTheBytesArrive(step: Int) throws {
        let chunker = try chunker()
        #expect(lengths(golden, chunker, step: step) == lengths(golden, chunker))
    }

    @Test(arguments: [0, 1, 63, 64, 524_287, 524_288, 524_289, 600_000])
    func shortFilesAreOneChunk(count: Int) throws {
        let cuts = lengths([UInt8](golden[..<count]), try chunker())
        #expect(cuts == (count == 0 ? [] : [count]))
    }

    @Test func theQuickWayAgreesWithThePlainOne() throws {
        // Noise that repeats itself: cuts come near to one another, in all four stretches.
        let polynomial = try #require(Polynomial(hex: "3da3358b4dc173"))
        var random = SeededGenerator(seed: testSeed())
        let start = random.below(1 << 20)
        let bytes = [UInt8](golden[start..<start + 700_000])
        #expect(lengths(bytes, try Chunker(polynomial)) == plainly(bytes, polynomial))
    }

    /// Both ways to look through many places at once, where cuts lie in any of these places and at their edges.
    @Test(arguments: 1...40) func bothQuickWaysAgree(round: UInt64) throws {
        var random = SeededGenerator(seed: testSeed() &+ round)
        var polynomial = Polynomial.random(using: &random)
        // There is only one way for a polynomial of another degree.
        while round == 1, polynomial.degree > 50 || !polynomial.isIrreducible {
            polynomial = Polynomial(bits: random.next() >> 13)
        }
        let (wide, narrow) = (try Chunker(polynomial), try Chunker(polynomial, wide: false))
        let count = Chunker.minimum + random.below(200_000)
        let start = random.below(golden.count - count)
        var bytes = [UInt8](golden[start..<start + count])
        let window = try #require(lengths(golden, narrow).first).advanced(by: -64)
        for _ in 0..<random.below(5) {
            let place = count - 64 - random.below(count - Chunker.minimum + 64)
            bytes.replaceSubrange(place..<place + 64, with: golden[window..<window + 64])
        }
        let cuts = lengths(bytes, narrow)
        #expect(lengths(bytes, wide) == cuts)
        // Pieces that are too short for any quick way.
        #expect(lengths(bytes, narrow, step: 5000) == cuts)
    }

    @Test func aChunkIsNeverLargerThanTheMaximum() throws {
        // A text in which no cut is found: the low bits of its fingerprint are never 0.
        let ones = [UInt8](repeating: 1, count: (8 << 20) + 5)
        #expect(lengths(ones, try chunker()) == [8 << 20, 5])
    }
}

@Suite struct PolynomialTests {
    @Test(arguments: ["3da3358b4dc173", "33245d8e27bf9d", "7", "b", "11b"])
    func irreducibleOnesAreKnown(hex: String) throws { #expect(try #require(Polynomial(hex: hex)).isIrreducible) }

    @Test(arguments: ["0", "1", "5", "9", "3da3358b4dc172", "3da3358b4dc171", "ffffffffffffffff"])
    func othersAreNot(hex: String) throws { #expect(try !#require(Polynomial(hex: hex)).isUsable) }

    @Test func productsAreNeverIrreducible() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<200 {
            let modulus = Polynomial(bits: 1 << 54)
            let left = Polynomial(bits: UInt64(2 + random.below(1 << 20)))
            let right = Polynomial(bits: UInt64(2 + random.below(1 << 20)))
            #expect(!left.multiplied(by: right, modulo: modulus).isIrreducible)
        }
    }

    @Test func randomOnesAreIrreducibleAndDiffer() {
        var random = SeededGenerator(seed: testSeed())
        let some = (0..<5).map { _ in Polynomial.random(using: &random) }
        #expect(some.allSatisfy { $0.isUsable && $0.degree == 53 })
        #expect(Set(some.map(\.bits)).count == 5)
    }

    @Test(arguments: ["", "x", "0x11b", "-7", "11b 11b", "123456789012345678"])
    func whatIsNoNumberIsNoPolynomial(text: String) { #expect(Polynomial(hex: text) == nil) }

    @Test func unusableOnesAreRefused() {
        #expect(throws: BackupError.self) { try Chunker(Polynomial(bits: 0)) }
        #expect(throws: BackupError.self) { try Chunker(Polynomial(bits: .max)) }
    }
}
