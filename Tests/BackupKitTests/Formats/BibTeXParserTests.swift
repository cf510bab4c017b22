import Testing

@testable import BackupKit

/// A block with memory of its own, to look at after the parse.
struct OwnBibBlock: Equatable {
    var kind: BibBlock.Kind
    var raw: [UInt8]
    var offset: Int
    var line: Int
    var type: String
    var key: String
    var names: [String]
    var values: [String]
    var macros: [String]
    var problems: [BibProblem]

    init(_ block: BibBlock, _ known: BibMacros = .standard) {
        kind = block.kind
        raw = Array(block.raw)
        (offset, line, type, key, problems) = (block.offset, block.line, block.type, block.key, block.problems)
        names = block.fields.map { block.name(of: $0) }
        values = block.fields.map { block.value(of: $0, macros: known) }
        macros = block.macroNames()
    }

    var text: String { String(decoding: raw, as: UTF8.self) }

    subscript(name: String) -> String? {
        zip(names, values).first { $0.0.lowercased() == name.lowercased() }?.1
    }
}

/// All blocks of a file, macros looked up as they are defined.
func bibBlocks(_ bytes: [UInt8]) -> [OwnBibBlock] {
    var blocks: [OwnBibBlock] = []
    var macros = BibMacros.standard
    bytes.withUnsafeBytes { buffer in
        BibParser.parse(buffer) { block in
            blocks.append(OwnBibBlock(block, macros))
            macros.define(from: block)
        }
    }
    return blocks
}

func bibBlocks(_ text: String) -> [OwnBibBlock] { bibBlocks(Array(text.utf8)) }

func bibEntries(_ text: String) -> [OwnBibBlock] { bibBlocks(text).filter { $0.kind == .entry } }

@Suite struct BibTeXReadsWhatIsInTheWild {
    @Test func anEntryHasTypeKeyAndFieldsInOrderAsWritten() throws {
        let entry = try #require(bibEntries("@Article{smith2020,\n  Title = {A {B} c},\n  YEAR = 2020,\n}\n").first)
        #expect(entry.type == "Article")
        #expect(entry.key == "smith2020")
        #expect(entry.names == ["Title", "YEAR"])
        #expect(entry.values == ["A {B} c", "2020"])
        #expect(entry.problems.isEmpty)
    }

    @Test func parenthesesQuotesAndNestedBracesDelimit() throws {
        let text = "@book(k (1), title = \"a {\"b\"} c\", note = {say \"hi\" (now)}, year = \"2001\")"
        let entry = try #require(bibEntries(text).first)
        #expect(entry.key == "k (1")
        let sound = try #require(bibEntries("@book(k1, title = \"a {\"b\"} c\", note = {say \"hi\" (now)})").first)
        #expect(sound.values == ["a {\"b\"} c", "say \"hi\" (now)"])
        #expect(sound.problems.isEmpty)
    }

    @Test func piecesJoinWithHashAndMacrosAreLookedUpInAnyCase() {
        let blocks = bibBlocks(
            "@string{ACM = \"Assoc. \" # {Comp}}\n@string(j = acm # \" J.\")\n@article{k, journal = J # \", \" # 7, month = FEB, x = nobody}"
        )
        let entry = blocks.last
        #expect(entry?.values == ["Assoc. Comp J., 7", "feb", "nobody"])
        #expect(entry?.macros == ["j", "feb", "nobody"])
        #expect(blocks.map(\.kind) == [.string, .text, .string, .text, .entry])
    }

    @Test func aFileMayRedefineAMonth() {
        #expect(bibBlocks("@string{jan = {January}}@misc{k, month = jan}").last?["month"] == "January")
    }

    @Test(arguments: [
        ("@misc{a b c, x=1}", "a b c"), ("@misc{, x=1}", ""), ("@misc{x = 1}", ""), ("@misc{x={1}}", ""),
        ("@misc{\n  title = {t}}", ""), ("@misc{}", ""), ("@misc{k}", "k"), ("@misc{ k , }", "k"),
        ("@misc{a=b, x=1}", "a=b"),
        ("@misc{{b}k, x=1}", "{b}k"), ("@ misc\n{DBLP:conf/x_1+2,}", "DBLP:conf/x_1+2"),
        ("@misc{% c, c\n k, x=1}", "k"), ("@misc{%k, x=1}", "%k"), ("@misc{ %k , x=1}", "%k"), ("@misc{%}", "%"),
        ("@misc(%k)", "%k"), ("@misc{%c\n k, x=1}", "k"),
        ("@misc{k % c, c\n , x=1}", "k"),
    ])
    func keysMayHoldSpacesOrBeMissing(text: String, key: String) {
        let blocks = bibBlocks(text)
        #expect(blocks.count == 1)
        #expect(blocks.first?.kind == .entry)
        #expect(blocks.first?.key == key)
        #expect(blocks.first?.problems == [])
    }

    @Test func aBraceBehindAnEntryAndACommaIsNamed() {
        #expect(bibBlocks("@a{k, x=1}\n,\n}\n").flatMap(\.problems).map(\.code) == [.strayText])
    }

    @Test func duplicateKeysAndFieldsAreAllThereAndTheFirstFieldCounts() {
        let entries = bibEntries("@a{k, x = {1}, X = {2}}\n@a{k, x = {3}}")
        #expect(entries.map(\.key) == ["k", "k"])
        #expect(entries.first?.values == ["1", "2"])
        #expect(entries.first?["x"] == "1")
    }

    @Test func percentCommentsStandBetweenAndWithinEntries() {
        let text = "% @a{no, x=1}\n@a{k, % one\n x = {5% of}, % } two\n % y = {2},\n z = 3 % three\n} % @a{no}\n@a{l}"
        let entries = bibEntries(text)
        #expect(entries.map(\.key) == ["k", "l"])
        #expect(entries.first?.values == ["5% of", "3"])
        #expect(entries.first?.problems == [])
    }

    @Test func textBetweenEntriesIsKeptAndAnAddressIsNoEntry() {
        let text = "Ask me@example.org {soon} or see @ {x} @, @misc\n@a{k}@b{l}\nword @c{m, x=1} \n"
        #expect(bibBlocks(text).map(\.kind) == [.text, .entry, .entry, .text, .entry, .text])
        #expect(bibEntries(text).map(\.key) == ["k", "l", "m"])
    }

    @Test func commentsPreambleAndStringsAreBlocksOfTheirOwn() {
        let text =
            "@Comment{jabref-meta: {a};}@comment line @x{y}\n@COMMENT(a (b) c)@preamble{\"\\x\" # {y}}@commented{k,}"
        let blocks = bibBlocks(text)
        #expect(blocks.map(\.kind) == [.comment, .comment, .text, .comment, .preamble, .entry])
        #expect(blocks[4].values == ["\\xy"])
        #expect(blocks.allSatisfy { $0.problems.isEmpty })
    }

    @Test func aCommentMayHoldWholeEntries() {
        let blocks = bibBlocks("@comment{\n@article{a, x = {1}}\n}\n@book{b}")
        #expect(blocks.map(\.kind) == [.comment, .text, .entry])
    }

    @Test func latin1IsReadWhereTextIsNotUTF8() {
        let bytes = Array("@a{k, x = {Caf".utf8) + [0xE9, 0x20, 0x80, 0x81] + Array("}, y = {é}}".utf8)
        #expect(bibBlocks(bytes).first?.values == ["Café €\u{81}", "é"])
        #expect(BibText.decode([0x93, 0x61, 0x94]) == ("“a”", false))
        #expect(BibText.decode(Array("“a”".utf8)) == ("“a”", true))
    }

    @Test func byteOrderMarkAndEveryLineEndAreUnderstood() {
        let blocks = bibBlocks([0xEF, 0xBB, 0xBF] + Array("@a{k,\r\n x = {1\r2},\r y = 3}\r\n\r@b{l}\n@c{m}".utf8))
        #expect(blocks.map(\.kind) == [.byteOrderMark, .entry, .text, .entry, .text, .entry])
        #expect(blocks.map(\.line) == [1, 1, 4, 6, 6, 7])
        #expect(blocks[1]["x"] == "1\r2")
        #expect(blocks[1].offset == 3)
    }

    @Test func keysSortByTheirBytesAndEqualOnesStayInOrder() {
        let keys = ["b", "a", "é", "Z", "a"].enumerated().map { (key: $0.element, position: $0.offset) }
        let sorted = keys.sorted { BibKeyOrder.precedes($0, $1) }
        #expect(sorted.map(\.position) == [3, 1, 4, 0, 2])
    }
}

extension BibBlock {
    /// Lower-case names of the macros that the values use, each once, in order of first use.
    func macroNames() -> [String] {
        var seen: Set<String> = []
        return fields.filter { $0.style == .bare || $0.style == .joined }
            .flatMap { BibValuePieces.macros(in: rawValue(of: $0)) }.map { $0.lowercased() }
            .filter { seen.insert($0).inserted }
    }
}
