import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The real `.bib` files, or none where they are not at hand.
enum BibCorpus {
    static let files: [(name: String, bytes: [UInt8])] = {
        let folder = "\(projectFolder)/../shared/corpora/bib"
        guard let listing = opendir(folder) else { return [] }
        defer { closedir(listing) }
        var names: [String] = []
        while let item = readdir(listing) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".bib") { names.append(name) }
        }
        return names.sorted().map { ($0, read("\(folder)/\($0)")) }
    }()

    static let isHere = !files.isEmpty
    static let isMissing: Comment = "the sample files (../shared/corpora/bib beside the package) are not here"

    private static func read(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "rb") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
        return bytes
    }
}

/// SplitMix64.
struct BibRandom: RandomNumberGenerator {
    var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// What a parse gave, short enough to compare many of them.
private struct Outline: Equatable {
    var kinds: [BibBlock.Kind] = []
    var ends: [Int] = []
    var lines: [Int] = []
    var problems: [BibProblem] = []
    var fields: [BibField] = []
    var raw: [UInt8] = []

    mutating func add(_ block: BibBlock) {
        kinds.append(block.kind)
        ends.append(block.offset + block.raw.count)
        lines.append(block.line)
        problems += block.problems
        fields += block.fields
        raw += block.raw
    }

    static func whole(_ bytes: [UInt8], limit: Int = BibParser.usualLimit) -> Outline {
        var outline = Outline()
        var parser = BibParser(limit: limit)
        bytes.withUnsafeBytes { _ = parser.parse($0, isLast: true) { outline.add($0) } }
        return outline
    }

    static func chunked(_ bytes: [UInt8], limit: Int = BibParser.usualLimit, _ size: () -> Int) -> Outline {
        var outline = Outline()
        var reader = BibReader(limit: limit)
        bytes.withUnsafeBytes { buffer in
            var start = 0
            while start < buffer.count {
                let end = min(start + size(), buffer.count)
                reader.feed(UnsafeRawBufferPointer(rebasing: buffer[start..<end])) { outline.add($0) }
                start = end
            }
            reader.finish { outline.add($0) }
        }
        return outline
    }
}

@Suite struct BibTeXNeverLosesAByte {
    @Test(.enabled(if: BibCorpus.isHere, BibCorpus.isMissing))
    func blocksPutTogetherAreTheFileAndLinesCountUp() {
        for (name, bytes) in BibCorpus.files {
            let outline = Outline.whole(bytes)
            #expect(outline.raw == bytes, "\(name)")
            var breaks = 1
            var at = 0
            for (end, line) in zip(outline.ends, outline.lines) {
                #expect(line == breaks, "\(name)")
                breaks += bytes[at..<end].count { $0 == 10 }
                at = end
            }
        }
    }

    @Test(.enabled(if: BibCorpus.isHere, BibCorpus.isMissing))
    func realFilesReadWithoutProblemsAndBrokenOnesWithTheirs() {
        let withProblems = BibCorpus.files.filter { !Outline.whole($0.bytes).problems.isEmpty }
        #expect(withProblems.map(\.name) == ["invalid-incorrect_syntax.bib", "valid-comments.bib"])
    }

    @Test func theWayAFileIsCutIntoChunksChangesNothing() {
        var random = BibRandom(seed: 7)
        for sample in samples(&random, count: 30) {
            let size = Int.random(in: 1...50, using: &random)
            let whole = Outline.whole(sample, limit: 1_024)
            let chunked = Outline.chunked(sample, limit: 1_024) { size }
            #expect(whole == chunked, "chunks of \(size), sample \(sample.count)")
            #expect(whole.raw == sample)
        }
    }

    @Test func longTextIsCutTheSameWayHoweverItArrives() {
        let text = Array((String(repeating: "a@b \r\n", count: 200_000) + "x@m{k, y} \n@m{k}").utf8)
        let whole = Outline.whole(text)
        #expect(whole == Outline.chunked(text) { 65_536 })
        #expect(whole.kinds == [.text, .text, .entry])
        #expect(whole.raw == text)
    }

    @Test(arguments: 0..<9)
    func aBlockCutAtTheLimitIsCutAtNoLineEndAndNoAddress(shift: Int) {
        let body = String(repeating: "x", count: shift) + String(repeating: "a@m{k,}\r\n", count: 200)
        let bytes = Array(("@a{k, x = {" + body + "@b{l}").utf8)
        let whole = Outline.whole(bytes, limit: 1_024)
        #expect(whole.kinds == [.unreadable, .text, .entry])
        #expect(whole.lines.last == 201)
        #expect(whole == Outline.chunked(bytes, limit: 1_024) { 100 })
    }

    /// Bits flipped, bytes cut out, pieces moved and repeated, and plain noise.
    private func samples(_ random: inout BibRandom, count: Int) -> [[UInt8]] {
        let tricky = Array(
            "@a{k, x = {1} # \"y\", % c\n z=jan}\r\n@comment{ {\n@string(s=\"{\"}\")\nme@x.org @b{\n\r".utf8)
        let small = BibCorpus.files.map(\.bytes).filter { $0.count < 5_000 }
        return (0..<count).map { _ in
            var bytes = (small.randomElement(using: &random) ?? tricky) + tricky
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                let end = min(bytes.count, at + Int.random(in: 0...80, using: &random))
                switch Int.random(in: 0..<5, using: &random) {
                case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 1: bytes.removeSubrange(at..<end)
                case 2: bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: 0...bytes.count, using: &random))
                case 3: bytes.insert(tricky.randomElement(using: &random) ?? 0x40, at: at)
                default:
                    bytes.insert(contentsOf: (0..<9).map { _ in UInt8.random(in: 0...255, using: &random) }, at: at)
                }
                if bytes.isEmpty { bytes = tricky }
            }
            return bytes
        }
    }

    @Test(arguments: [UInt64(1), 2, 3, 4])
    func noBytesTrapIt(seed: UInt64) {
        var random = BibRandom(seed: seed)
        for sample in samples(&random, count: 60) {
            var total = 0
            var macros = BibMacros.standard
            sample.withUnsafeBytes { buffer in
                BibParser.parse(buffer) { block in
                    total += block.raw.count
                    for field in block.fields { total += 0 * block.value(of: field, macros: macros).utf8.count }
                    macros.define(from: block)
                    _ = (block.macroNames(), BibFileLinks.links(in: block, macros: macros))
                    if block.kind == .entry {
                        _ = try? BibEditor.apply(
                            [.set(field: "x", value: "1"), .remove(field: "year")], to: Array(block.raw))
                    }
                }
            }
            #expect(total == sample.count, "seed \(seed)")
        }
    }

    /// Entries in which a glance finds no macros are not parsed for them.
    @Test(arguments: [UInt64(5), 6, 7, 8])
    func whatHoldsAMacroHoldsABareValue(seed: UInt64) {
        var random = BibRandom(seed: seed)
        for sample in BibCorpus.files.map(\.bytes) + samples(&random, count: 60) {
            sample.withUnsafeBytes { buffer in
                BibParser.parse(buffer) { block in
                    guard !block.macroNames().isEmpty else { return }
                    #expect(MacroUse.holdsBareValue(block.raw), "seed \(seed): \(block.macroNames())")
                }
            }
        }
    }
}

@Suite struct BibTeXStandsExtremes {
    @Test func aHundredThousandBracesNest() {
        let deep = String(repeating: "{", count: 100_000)
        let closed = bibBlocks("@a{k, x = {" + deep + String(repeating: "}", count: 100_000) + "}}")
        #expect(closed.map(\.kind) == [.entry])
        #expect(bibBlocks("@a{k, x = {" + deep + "\n@b{l}").map(\.kind) == [.unreadable, .entry])
    }

    @Test func aLineOfAMegabyteIsAValueLikeAnyOther() {
        let long = String(repeating: "wörd ", count: 200_000)
        #expect(bibEntries("@a{k, x = {\(long)}, y = 1}").first?["x"] == long)
    }

    /// Each of these took quadratic time in some reader: a few seconds here would be minutes there.
    @Test(arguments: [
        "@comment{\n", "@a{\n", "@a{k, x = {\n  @b{", "\n", "@", "@a", "{", "@a{k,", "a = ", "@a{k, x = \"", " @ ",
        "?\n",
    ])
    func repetitionTakesLinearTime(piece: String) {
        let count = 200_000 / piece.utf8.count
        for head in ["", "@a{k, ? "] {
            let text = Array((head + String(repeating: piece, count: count)).utf8)
            #expect(Outline.whole(text, limit: 1_024).raw == text)
        }
    }

    @Test func unclosedCommentsDoNotMakeTimeQuadratic() {
        let text = Array(String(repeating: "@comment{\n", count: 40_000).utf8)
        #expect(Outline.whole(text, limit: 1 << 14).kinds.count == 40_000)
    }
}
