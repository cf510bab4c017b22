import BackupKit
import Testing

private func edit(_ entry: String, _ changes: BibEditor.Change..., macros: BibMacros = .standard) throws -> String {
    String(decoding: try BibEditor.apply(changes, to: Array(entry.utf8), macros: macros), as: UTF8.self)
}

@Suite struct BibTeXEditsOneFieldAndNothingElse {
    private let entry = "@Article{k,\r\n  author   = \"A\" ,\r\n  title    = {T {X}},  % why\r\n  year=2020,\r\n}"

    @Test func aChangedValueKeepsItsDelimitersAndAllAround() throws {
        #expect(try edit(entry, .set(field: "AUTHOR", value: "B")) == entry.replacing("\"A\"", with: "\"B\""))
        #expect(try edit(entry, .set(field: "title", value: "U")) == entry.replacing("{T {X}}", with: "{U}"))
        #expect(try edit(entry, .set(field: "year", value: "1999")) == entry.replacing("2020", with: "1999"))
        #expect(try edit(entry, .set(field: "year", value: "2020a")) == entry.replacing("2020", with: "{2020a}"))
        #expect(try edit(entry, .set(field: "author", value: "a\"b")) == entry.replacing("\"A\"", with: "{a\"b}"))
    }

    @Test func typeAndKeyChangeAlone() throws {
        #expect(
            try edit(entry, .setKey("new key"), .setType("book"))
                == entry.replacing("@Article{k", with: "@book{new key"))
        #expect(try edit("@a{x = {1}}", .setKey("k")) == "@a{k, x = {1}}")
        #expect(try edit("@a{}", .setKey("k")) == "@a{k}")
    }

    @Test func aFieldThatSaysSoAlreadyStaysAsWritten() throws {
        var macros = BibMacros.standard
        macros.define("J", as: "Journal")
        let text = "@a{k, journal = j # { B}}"
        #expect(try edit(text, .set(field: "journal", value: "Journal B"), macros: macros) == text)
        #expect(try edit(text, .set(field: "journal", value: "C"), macros: macros) == "@a{k, journal = {C}}")
    }

    @Test(arguments: [
        ("@a{k,\n  x   = {1},\n  yyy = {2}\n}", "@a{k,\n  x   = {1},\n  yyy = {2},\n  nw  = {N}\n}"),
        ("@a{k,\n\tx =\t\"1\",\n\tyy =\t\"2\",\n}", "@a{k,\n\tx =\t\"1\",\n\tyy =\t\"2\",\n\tnw =\t\"N\",\n}"),
        ("@a{k, x={1}, y={2}}", "@a{k, x={1}, y={2}, nw={N}}"),
        ("@a{k,\n x =   1,\n yy =  2}", "@a{k,\n x =   1,\n yy =  2,\n nw =  {N}}"),
        ("@a{k,\r\n x = 1 % c\r\n}", "@a{k,\r\n x = 1, % c\r\n nw = {N}\r\n}"),
        ("@a{k, x = 1 % c\n}", "@a{k, x = 1, % c\n nw = {N}\n}"),
        ("@a{k}", "@a{k,\n  nw = {N}\n}"), ("@a{k,\n}", "@a{k,\n  nw = {N}\n}"), ("@a{}", "@a{\n  nw = {N}\n}"),
        ("@a(k, x = {1},)", "@a(k, x = {1}, nw = {N},)"),
    ])
    func aNewFieldComesLastInTheEntrysOwnStyle(before: String, after: String) throws {
        #expect(try edit(before, .set(field: "nw", value: "N")) == after)
    }

    @Test(arguments: [
        ("@a{k,\n  x = {1},\n  y = {2}\n}", "@a{k,\n  y = {2}\n}"), ("@a{k, x = {1}, y = {2}}", "@a{k, y = {2}}"),
        ("@a{k,\r\n  y = {2},\r\n  x = {1},\r\n}", "@a{k,\r\n  y = {2},\r\n}"),
        ("@a{k, y = 2, X = 3, x = 1}", "@a{k, y = 2,}"),
        ("@a{k,\n % c\n x = {1}}", "@a{k,\n % c\n}"), ("@a{k,\n x = {1}, % c\n y = 2}", "@a{k,\n % c\n y = 2}"),
    ])
    func aRemovedFieldTakesItsLineAlong(before: String, after: String) throws {
        #expect(try edit(before, .remove(field: "x")) == after)
    }

    @Test func whatCannotBeWrittenIsRefusedByName() {
        for value in ["a}", "{a", "}{"] {
            #expect {
                try edit("@a{k, x = 1}", .set(field: "note", value: value))
            } throws: {
                ($0 as? BackupError)?.message == "the braces in the value of field 'note' do not pair up"
            }
        }
        for change: BibEditor.Change in [
            .setKey("a,b"), .setKey("a}"), .setKey("a\n@b{c"), .setType("a b"), .setType("string"),
        ] {
            #expect(throws: BackupError.self) { try edit("@a{k, x = 1}", change) }
        }
        #expect(throws: BackupError.self) { try edit("@a{k, x = 1}", .set(field: "a b", value: "c")) }
        #expect(throws: BackupError.self) { try edit("@a{k", .setKey("l")) }
        #expect(throws: BackupError.self) { try edit("@a{k}@b{l}", .setKey("l")) }
    }

    @Test func aLineThatStartsLikeAnEntryIsWrittenInTwoPieces() throws {
        let value = "see\n@book{b, x = 1}\nand"
        let text = try edit("@a{k, x = {1}}", .set(field: "note", value: value))
        #expect(bibEntries(text).first?["note"] == value)
        #expect(bibBlocks(text).count == 1)
        #expect(throws: BackupError.self) { try edit("@a{k}", .set(field: "note", value: "{\n@b{c}}")) }
    }

    @Test func anOldFileStaysInItsEncoding() throws {
        let latin = Array("@a{k, x = {Caf".utf8) + [0xE9] + Array("}}".utf8)
        let edited = try BibEditor.apply([.set(field: "x", value: "é€")], to: latin)
        #expect(edited == Array("@a{k, x = {".utf8) + [0xE9, 0x80] + Array("}}".utf8))
        let beyond = try BibEditor.apply([.set(field: "x", value: "ł")], to: latin)
        #expect(bibBlocks(beyond).first?["x"] == "ł")
    }

    @Test(arguments: [UInt64(11), 12, 13])
    func anEditReadsBackAndLeavesTheOtherFields(seed: UInt64) throws {
        var random = BibRandom(seed: seed)
        let samples = BibCorpus.files.flatMap { bibBlocks($0.bytes) }.filter { $0.kind == .entry }
        let pool =
            samples.shuffled(using: &random).prefix(40) + bibEntries("@a{k, x = \"1\" # jan,\n yy=2,}\n@b(, z={3})")
        for entry in pool {
            let value = randomValue(&random)
            let name = Bool.random(using: &random) ? entry.names.randomElement(using: &random) ?? "new" : "new-field"
            let edited = bibBlocks(try BibEditor.apply([.set(field: name, value: value)], to: entry.raw))
            #expect(edited.count == 1, "seed \(seed): \(entry.text)")
            #expect(edited.first?[name] == value, "seed \(seed): \(entry.text)")
            let others = { (block: OwnBibBlock) in
                zip(block.names, block.values).filter { $0.0 != name }.map { "\($0)=\($1)" }
            }
            let plain = try #require(bibBlocks(entry.raw).first)
            #expect(edited.first.map(others) == others(plain), "seed \(seed): \(entry.text)")
            let removed = bibBlocks(try BibEditor.apply([.remove(field: name)], to: edited.first?.raw ?? []))
            #expect(removed.first.map(others) == others(plain), "seed \(seed): \(entry.text)")
        }
    }

    private func randomValue(_ random: inout BibRandom) -> String {
        let pieces = [
            "a", "é", " ", "\n", "{b}", "\"", "#", "%", ",", "=", "@x", "@y{z}", "\n@q{r}", "\\", "7", "{\"}", "()",
        ]
        return (0..<Int.random(in: 0...9, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
            .joined()
    }
}

@Suite struct BibTeXWritesFreshEntries {
    @Test func oneFieldALineInBraces() throws {
        let bytes = try BibWriter.entry(type: "book", key: "k", fields: [("title", "A {B}"), ("year", "2020")])
        #expect(String(decoding: bytes, as: UTF8.self) == "@book{k,\n  title = {A {B}},\n  year = {2020}\n}")
        let bare = try BibWriter.entry(type: "misc", key: "", fields: [])
        #expect(bibBlocks(bare).map(\.kind) == [.entry])
    }

    @Test func whatWouldReadBackDifferentlyIsRefused() {
        #expect(throws: BackupError.self) { try BibWriter.entry(type: "a b", key: "k", fields: []) }
        #expect(throws: BackupError.self) { try BibWriter.entry(type: "comment", key: "k", fields: []) }
        #expect(throws: BackupError.self) { try BibWriter.entry(type: "a", key: "k,l", fields: [("x", "1")]) }
        #expect(throws: BackupError.self) { try BibWriter.entry(type: "a", key: "k", fields: [("x y", "1")]) }
        #expect(throws: BackupError.self) { try BibWriter.entry(type: "a", key: "k", fields: [("x", "}")]) }
    }
}

extension String {
    fileprivate func replacing(_ old: String, with new: String) -> String {
        var (out, rest) = ("", self[...])
        while !rest.isEmpty {
            if rest.hasPrefix(old) {
                out += new
                rest = rest.dropFirst(old.count)
            } else {
                out.append(rest.removeFirst())
            }
        }
        return out
    }
}
