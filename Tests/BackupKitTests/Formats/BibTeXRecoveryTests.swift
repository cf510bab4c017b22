import BackupKit
import TestSupport
import Testing

@Suite struct BibTeXGoesOnAfterWhatItCannotRead {
    @Test func anUnclosedEntryEndsWhereTheNextBegins() throws {
        let text = "@a{one, x = {1}, y = {2\n}\n\n@b{two, z = {3}}\n"
        let blocks = bibBlocks(text)
        #expect(blocks.map(\.kind) == [.unreadable, .entry, .text])
        let problem = try #require(blocks[0].problems.first)
        #expect(problem.message == "entry 'one' is never closed")
        #expect((problem.code, problem.line, problem.column) == (.unclosed, 1, 1))
        #expect(blocks[0].key == "one")
        #expect(blocks[0]["y"] == "2\n")
        #expect(blocks[1].key == "two")
    }

    @Test(arguments: [
        "@a{one, x = {1\n@b{two, z=1}", "@a{one, x = \"1\n@b(two, z=1)", "@a{one\n  @b{two}", "@a{one,\n  @b{two}",
        "@a{one, x\n@b{two}", "@a{one, x =\n@b{two}", "@a{one, x = 1\n@b{two}", "@a(one, x = {1}\n@b{two}",
        "@a{one, x = {1\n  @b{two}", "@comment{x\n@b{two}", "@string{x = \"y\"\n@b{two}", "@preamble{ {x} \n @b{two}",
        "@a{one, ? ? \n@b{two}",
    ])
    func whateverIsOpenTheNextEntryIsFound(text: String) {
        let blocks = bibBlocks(text)
        #expect(blocks.map(\.kind) == [.unreadable, .entry])
        #expect(blocks.last?.key == "two")
        #expect(blocks.first?.problems.contains { $0.code == .unclosed } == true)
    }

    @Test func anIndentedSignWithinAValueIsNoNewEntry() {
        #expect(
            bibEntries("@a{k, x = {see\n  @b{l, y = 1}\n}, z = 2}").first?.values == ["see\n  @b{l, y = 1}\n", "2"])
    }

    @Test func aMissingEqualsSignCostsOneField() throws {
        let entry = try #require(bibEntries("@a{k,\n  author    💯 {A and B},\n  title = {T}\n}").first)
        #expect(entry.names == ["title"])
        let problem = try #require(entry.problems.first)
        #expect(problem.message == "expected '=' after field 'author', found '💯'")
        #expect((problem.line, problem.column) == (2, 13))
    }

    @Test func missingCommasAreReportedAndNothingIsLost() {
        let entry = bibEntries("@a{k x = {1} y = 2\n z = \"3\" # z\n}").first
        #expect(entry?.key == "k")
        #expect(entry?.names == ["x", "y", "z"])
        #expect(entry?.values == ["1", "2", "3z"])
        #expect(entry?.problems.map(\.code) == [.missingComma, .missingComma, .missingComma])
    }

    @Test(arguments: [
        ("@a{k, x = \"1, y = {2}, z = 3}", ["y", "z"], BibProblem.Code.unclosedQuote),
        ("@a{k, x = \"1,\n y = \"2\",\n z = 3}", ["y", "z"], .unclosedQuote),
        ("@a{k, x = \"say \"hi\" you\", z = 3}", ["z"], .unclosedQuote),
        ("@a{k, x = , z = 3}", ["x", "z"], .missingValue), ("@a{k, x = {1} # , z = 3}", ["x", "z"], .missingValue),
        ("@a{k, x = = {1}, z = 3}", ["z"], .missingValue), ("@a{k, = {1}, z = 3}", ["z"], .missingName),
        ("@a{k, x, z = 3}", ["z"], .missingEquals), ("@a{k, x = {1} {2}, z = 3}", ["x", "z"], .unexpected),
        ("@a{k, x = {1})\n z = 3}", ["x", "z"], .unexpected), ("@a(k, z = 3}", ["z"], .unexpected),
    ])
    func whatIsSoundOfABrokenEntryIsKept(text: String, names: [String], code: BibProblem.Code) {
        let blocks = bibBlocks(text)
        #expect(blocks.map(\.kind) == [.entry])
        #expect(blocks.first?.names == names)
        #expect(blocks.first?["z"] == "3")
        #expect(blocks.first?.problems.map(\.code) == [code])
    }

    @Test func fieldsBehindASurplusBraceAreReported() {
        let blocks = bibBlocks("@a{k, x = {1}},\n y = {2},\n}\n@b{l}\n}\n")
        #expect(blocks.map(\.kind) == [.entry, .text, .entry, .text])
        #expect(blocks.flatMap(\.problems).map(\.code) == [.strayText, .strayText])
        #expect(bibBlocks("[@a{k},\n@b{l}]").flatMap(\.problems).isEmpty)
    }

    @Test func garbageReportsAHundredProblemsAndSaysThereAreMore() {
        let entry = bibBlocks("@a{k, " + String(repeating: "x = =,\n", count: 5_000) + "}").first
        #expect(entry?.kind == .entry)
        #expect(entry?.problems.count == 101)
        #expect(entry?.problems.last?.code == .tooMany)
    }

    @Test func utf16IsNamedAsSuch() {
        #expect(bibBlocks([0xFF, 0xFE, 0x40, 0x00, 0x61, 0x00]).first?.problems.first?.code == .encoding)
    }

    @Test func aBlockOverTheLimitIsSkippedAndTheNextIsRead() {
        let text = Array(("@a{long, x = {" + String(repeating: "y", count: 5_000) + "}}\n@b{two}").utf8)
        var blocks: [OwnBibBlock] = []
        text.withUnsafeBytes { buffer in
            var reader = BibReader(limit: 2_048)
            for start in stride(from: 0, to: buffer.count, by: 700) {
                let chunk = buffer[start..<min(start + 700, buffer.count)]
                reader.feed(UnsafeRawBufferPointer(rebasing: chunk)) { blocks.append(OwnBibBlock($0)) }
            }
            reader.finish { blocks.append(OwnBibBlock($0)) }
        }
        #expect(blocks.map(\.kind) == [.unreadable, .text, .entry])
        #expect(blocks.first?.problems.map(\.message) == ["entry 'long' is longer than 2048 bytes and was not read"])
        #expect(blocks.last?.key == "two")
        #expect(blocks.flatMap(\.raw) == text)
    }

    @Test(arguments: [
        ("@a{k, t = {a \\} b}, y = 1}", ["a \\} b", "1"]), ("@a{k,\n t = {a \\}},\n y = 1\n}", ["a \\}", "1"]),
        ("@a{k, t = {a \\{ b},\n y = 1}", ["a \\{ b", "1"]), ("@a{k, t = {\\}}}", ["\\}"]),
        ("@a{k, t = {\\} {\\{} \\\\}, y = {\\}}\n}", ["\\} {\\{} \\\\", "\\}"]),
        ("@a{k, t = \"M\\\"uller, N\", y = 1}", ["M\\\"uller, N", "1"]),
        ("@a{k, t = \"G\\\"odel and M\\\"uller\",\n y = \"\\} z\"}", ["G\\\"odel and M\\\"uller", "\\} z"]),
        ("@a{k, t = \"M\\\"uller\" # { and } # \"\\\"O\"}", ["M\\\"uller and \\\"O"]),
        ("@a{k, t = \"\\\"\", y = \"\\\"\"}", ["\\\"", "\\\""]),
    ])
    func aBraceOrQuoteBehindABackslashIsPartOfAValue_whereBibTeXCannotReadIt(text: String, values: [String]) {
        for rest in ["", "\n@b{l, z = {2}}\n", " , and text\n"] {
            let blocks = bibBlocks(text + rest)
            #expect(blocks.first?.kind == .entry && blocks.first?.values == values, "\(text + rest)")
            #expect(blocks.first?.problems.map(\.code) == [.escapedBrace])
            #expect(blocks.first.map { String(decoding: $0.raw, as: UTF8.self) } == text)
            // However the bytes come.
            var reader = BibReader()
            var pieces: [String] = []
            for byte in (text + rest).utf8 {
                withUnsafeBytes(of: byte) { reader.feed($0) { pieces.append(String(decoding: $0.raw, as: UTF8.self)) } }
            }
            reader.finish { pieces.append(String(decoding: $0.raw, as: UTF8.self)) }
            #expect(pieces == blocks.map { String(decoding: $0.raw, as: UTF8.self) })
        }
    }

    @Test func noEntryIsLost_howeverItsQuotesAreEscaped() {
        for seed in testSeeds(isTorture ? 600 : 40) {
            var random = SeededGenerator(seed: seed)
            let pieces = ["M\\\"uller", "{\\\"u}", "\\\\", "a, b = c", "C:\\", "\\}", " and ", "\""]
            let entries = (0..<1 + random.below(5)).map { number in
                let fields = (0..<1 + random.below(3)).map { field in
                    let value = (0..<random.below(4)).map { _ in pieces[random.below(pieces.count)] }.joined()
                    return "  f\(field) = \"\(value)\""
                }
                return "@misc{k\(number),\n\(fields.joined(separator: ",\n"))\n}\n"
            }
            let blocks = bibBlocks(entries.joined())
            #expect(
                blocks.filter { $0.kind != .text }.map(\.key) == entries.indices.map { "k\($0)" },
                "seed \(seed): \(entries)")
            #expect(blocks.flatMap(\.raw) == Array(entries.joined().utf8), "seed \(seed)")
        }
    }

    @Test(arguments: [
        "@a{k, t = {a \\{b\\} c}, y = 1}\n", "@a{k, f = {C:\\x\\}, y = 1}\n", "@a{k, f = {C:\\x\\}}\n@b{l, z = {\\}}\n",
        "@a{k, f = \"C:\\x\\\", y = \"M{\\\"u}ller\"}\n@b{l, z = \"\\\"}\n",
    ])
    func whatBibTeXReadsIsReadLikeBibTeX(text: String) {
        for block in bibBlocks(text) { #expect(block.problems.isEmpty && block.kind != .unreadable) }
    }
}
