import TestSupport
import Testing

@testable import BackupKit

/// The entries of a file, as they stand there.
private func entries(_ bytes: [UInt8]) -> [[UInt8]] {
    var found: [[UInt8]] = []
    bytes.withUnsafeBytes { raw in
        BibParser.parse(raw) { block in if block.kind == .entry { found.append(Array(block.raw)) } }
    }
    return found
}

/// An export is in one encoding.
private func inUTF8(_ bytes: [UInt8]) -> [UInt8] { Array(BibText.decode(bytes).text.utf8) }

/// What each entry's fields say with the macros in force where it stands.
private func values(_ bytes: [UInt8]) -> [String: [String: String]] {
    var macros = BibMacros.standard
    var found: [String: [String: String]] = [:]
    bytes.withUnsafeBytes { raw in
        BibParser.parse(raw) { block in
            macros.define(from: block)
            guard block.kind == .entry else { return }
            for field in block.fields {
                found[block.key, default: [:]][block.name(of: field).lowercased()] = block.value(
                    of: field, macros: macros)
            }
        }
    }
    return found
}

private func bibliographies() -> [String] {
    let library = "\(Workbench.samples)/library"
    var files = ["\(library)/references.bib", "\(library)/latin1.bib"]
    if let corpora = Workbench.corpora, let names = try? Directory.names(in: "\(corpora)/bib") {
        files += names.map { "\(corpora)/bib/\($0)" }
    }
    return files
}

@Test func everyEntry_comesBackByteForByte() throws {
    for file in bibliographies() {
        let bench = try Workbench()
        let original = try fileBytes(file)
        try bench.tool("import", file)
        try bench.tool(exit: 0, "export", "-q", "-o", "out")
        let exported = try bench.bytes("out/library.bib")
        let expected = entries(original).map(inUTF8)
        let isSame = Set(entries(exported)) == Set(expected)
        #expect(isSame, "\(file)")
        #expect(entries(exported).count == expected.count, "\(file)")
        // The export read again is what it was.
        try bench.tool("import", "out/library.bib", "--create", "--store", "again.db")
        try bench.tool(exit: 0, "export", "--store", "again.db", "-q", "-o", "again")
        #expect(try bench.bytes("again/library.bib") == exported, "\(file)")
        let digest = try bench.digest()
        // Entries that came broken are broken still: the exit code may be 3.
        let alone = try JSON(parsing: bench.tool("import", "out/library.bib", "--json").stdout)
        #expect(alone["writes"]?.integer == 0 && alone["batch"] == .null, "\(file): \(alone)")
        #expect(try bench.digest() == digest, "\(file)")
        // The store knows by now what this file holds.
        let state = try bench.state()
        try bench.tool("import", "out/library.bib")
        #expect(try bench.state() == state, "\(file)")
    }
}

@Test func allFilesTogether_loseNoEntryAndNoMeaning() throws {
    let bench = try Workbench()
    var wanted: Set<[UInt8]> = []
    for file in bibliographies() { wanted.formUnion(entries(try fileBytes(file)).map(inUTF8)) }
    try bench.tool(["import"] + bibliographies())
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let exported = Set(entries(try bench.bytes("out/library.bib")))
    // Of one work that two files wrote differently the newer values stay, and the fields that only one has: not every text
    // is there, but every work is.
    let lost = wanted.subtracting(exported)
    #expect(lost.count <= 6, "\(lost.map { String(decoding: $0, as: UTF8.self) })")
    let digest = try bench.digest()
    try bench.tool("import", "out/library.bib")
    let state = try bench.state()
    try bench.tool("import", "out/library.bib")
    #expect(try bench.state() == state && bench.digest() == digest)
}

/// Keys of everything that BibTeX takes for one.
@Test(arguments: testSeeds(12))
func whateverKeysAFileHas_theExportHasTheSameEntries(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    func pick(_ choices: [String]) -> String { choices[random.below(choices.count)] }
    var (text, keys): (String, [String]) = ("", [])
    for number in 0..<30 {
        let key = (0...random.below(3)).map { _ in pick(["%", "a", "é", ":", "-", "/", "%%", "'", "\\", "&"]) }.joined()
        keys.append(key + "\(number)")
        text +=
            "@misc{" + pick(["", "", " ", "\n", "\t"]) + "\(key)\(number)" + pick(["", " ", "\n"]) + pick([",", ",\n"])
        text += " title = {T\(number)}, note = {first % x\n second},\n}" + pick(["\n", "", "\n\n% text\n"])
    }
    let bench = try Workbench()
    try bench.write("a.bib", text)
    #expect(bibliographyKeys(Array(text.utf8)) == keys, "seed \(seed)")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let exported = try bench.bytes("out/library.bib")
    #expect(Set(entries(exported)) == Set(entries(Array(text.utf8))), "seed \(seed)")
    #expect(bibliographyKeys(exported).sorted() == keys.sorted(), "seed \(seed)")
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
}

private func bibliographyKeys(_ bytes: [UInt8]) -> [String] {
    var keys: [String] = []
    bytes.withUnsafeBytes { raw in
        BibParser.parse(raw) { block in if block.kind == .entry { keys.append(block.key) } }
    }
    return keys
}

@Test func namesOfFields_areBytes_inAnyCaseOfASCII() throws {
    let bench = try Workbench()
    let names = ["ÜNÏ", "ünï", "\u{e9}", "e\u{301}", "Note", "NOTE"]
    let fields = names.enumerated().map { "\($1)={\($0)}" }.joined(separator: ", ")
    try bench.write("a.bib", "@misc{a, title={One}, \(fields)}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    let record = try bench.shell("sqlite3 store.db \"SELECT fields FROM records WHERE fields LIKE '%citeKey%'\"")
    for (name, value) in [("Ün\u{cf}", 0), ("ünï", 1), ("\u{e9}", 2), ("e\u{301}", 3), ("note", 4)] {
        #expect(
            record.utf8.split(separator: UInt8(ascii: ",")).contains {
                $0.elementsEqual("\"\(name)\":\"\(value)\"".utf8)
            }, "\(record)")
    }
    // In Latin-1 one byte says what two do in UTF-8.
    try bench.write("b.bib", Array("@misc{b, title={Two}, é={1}, ".utf8) + [0xE9] + Array("={2}}\n".utf8))
    try bench.tool(exit: 0, "import", "b.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    try bench.write(
        "log.jsonl", "{\"id\":\"1\",\"type\":\"meal\",\"time\":\"2024-01-01T00:00:00Z\",\"é\":1,\"e\u{301}\":2}\n")
    try bench.tool(exit: 0, "import", "log.jsonl")
}

@Test func anExportIsInUTF8_andTheBytesComeBack() throws {
    let bench = try Workbench()
    let text = "@article{l1,\r\n title = {Caf\u{e9}},\r\n}\r\n\r\n@misc(l2, note = \"x\")\r\n"
    let latin1 = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    try bench.write("l.bib", [0xEF, 0xBB, 0xBF] + latin1)
    try bench.tool(exit: 0, "import", "l.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let exported = try bench.bytes("out/library.bib")
    #expect(entries(exported) == entries(latin1).map(inUTF8))
    #expect(
        BibText.decode(exported).wasUTF8 && String(decoding: exported, as: UTF8.self).hasPrefix("% Encoding: UTF-8\n"))
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    try bench.tool(exit: 0, "import", "out/library.bib", "--create", "--store", "again.db")
    for store in ["store.db", "again.db"] {
        let raw = try bench.shell("sqlite3 \(store) \"SELECT fields FROM records WHERE fields LIKE '%rawBase64%'\"")
        #expect(raw.split(separator: "\n").count == 1)
        #expect(raw.contains(BibBase64.encode(entries(latin1)[0])))
    }
    // Bytes of no encoding are named.
    try bench.write("odd.bib", Array("@misc{odd, title={x".utf8) + [0x81, 0xFF] + Array("}}\n".utf8))
    try bench.tool("import", "odd.bib")
    #expect(try bench.tool(exit: 3, "export", "-o", "odd").stderr.contains("odd: holds bytes that are neither"))
}

@Test func macrosCommentsAndPreamble_areKept() throws {
    let bench = try Workbench()
    let head = """
        % A remark with an address: ada (at) example
        @preamble{"\\newcommand{\\x}{y}"}
        @string{base = {Journal of }}
        @string{jx = base # {X}}
        @comment{kept: {as it is}}
        """
    try bench.write("a.bib", head + "\n\n@article{k, title={T}, journal=jx}\nAfterwards.\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let out = try bench.text("out/library.bib")
    for line in head.split(separator: "\n").map(String.init) + ["Afterwards."] {
        #expect(out.contains(line), "\(line)")
    }
    #expect(values(Array(out.utf8))["k"]?["journal"] == "Journal of X")
}

@Test func macrosOfTwoFiles_meanToEachEntryWhatTheyMeant() throws {
    let bench = try Workbench()
    try bench.write(
        "a/refs.bib", "@string{j={One}}\n@string{full = j # { A}}\n@article{a1, title={A}, journal=j, note=full}\n")
    try bench.write(
        "b/refs.bib",
        "@string{j={Two}}\n@string{full = j # { B}}\n@article{b1, title={B}, journal=j, note=full # {!}, crossref={a1}}\n"
    )
    // The months are known to all who do not define them; here one file does.
    try bench.write("c.bib", "@string{apr={The Annals}}\n@article{c1, title={C}, journal=apr, crossref={b1}}\n")
    try bench.write("d.bib", "@article{d1, title={D}, month=apr, note = full}\n")
    for file in ["a/refs.bib", "b/refs.bib", "c.bib"] { try bench.tool(exit: 0, "import", file) }
    #expect(try bench.tool(exit: 3, "import", "d.bib").stderr.contains("(full)"))
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let out = try bench.bytes("out/library.bib")
    let said = values(out)
    #expect(said["a1"]?["journal"] == "One" && said["a1"]?["note"] == "One A", "\(said)")
    #expect(said["b1"]?["journal"] == "Two" && said["b1"]?["note"] == "Two B!", "\(said)")
    #expect(said["c1"]?["journal"] == "The Annals")
    #expect(said["d1"]?["month"] == "apr" && said["d1"]?["note"] == "full", "\(said)")
    // From the bibliography alone the same comes back.
    try bench.tool(exit: 0, "import", "out/library.bib", "--create", "--store", "again.db")
    try bench.tool(exit: 0, "export", "--store", "again.db", "-q", "-o", "again")
    #expect(values(try bench.bytes("again/library.bib")) == said)
}

@Test func entriesThatOthersRefTo_comeLast() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@book{aa, title={P}}\n@inbook{zz, title={C}, crossref={AA}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let keys = try bench.shell("grep -o '^@[a-z]*{[a-z]*' out/library.bib").split(separator: "\n")
    #expect(keys == ["@inbook{zz", "@book{aa"])
}

@Test func anEditedField_changesThatFieldAlone() throws {
    let bench = try Workbench()
    let entry =
        "@Article(edit,\n  TITLE  = \"Old\" # { and odd},   % why\n\tyear = 1999 ,\n  unknown = {Kept}, doi={10.1/x}\n)\n"
    try bench.write("a.bib", entry)
    try bench.shell("touch -d 2020-01-01 a.bib")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    // The record is edited as an app does it, and comes back by way of records.jsonl.
    try bench.shell(
        """
        jq -c 'if .fields.citeKey == "edit" then .fields.year = "2001" | .modifiedAt = "2026-01-01T00:00:00.000Z" else . end' \
        out/records.jsonl > records.jsonl
        """)
    let result = try bench.json(exit: 0, "import", "records.jsonl")
    #expect(result["updated"]?.integer == 1)
    try bench.tool(exit: 0, "export", "-q", "-o", "new")
    let edited = entries(try bench.bytes("new/library.bib")).map { String(decoding: $0, as: UTF8.self) }
    #expect(edited.count == 1 && edited[0].contains("2001"))
    let (before, after) = (entry.split(separator: "\n"), edited[0].split(separator: "\n"))
    #expect(before.count == after.count && zip(before, after).filter { $0 != $1 }.count == 1, "\(edited[0])")
}

@Test func anEditedFile_updatesByField_andAnotherWorkIsAConflict() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@article{k, title={Same}, year=1999, doi={10.1/a}}\n@misc{k2, title={Other}}\n")
    try bench.shell("touch -d 2020-01-01 a.bib")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.write(
        "a.bib", "@article{k, title={Same, corrected}, year=1999, doi={10.1/a}}\n@misc{k2, title={Other}}\n")
    let updated = try bench.json(exit: 0, "import", "a.bib")
    #expect(updated["updated"]?.integer == 1)
    let changed = updated["plan"]?.array?.first?["changes"]?.array?.compactMap { $0["field"]?.string } ?? []
    #expect(Set(changed) == ["title", "rawBibTeX"])
    try bench.write("b.bib", "@article{k, title={A different work}, year=2020, doi={10.1/b}}\n")
    let conflict = try bench.json(exit: 3, "import", "b.bib")
    #expect(conflict["conflicts"]?.integer == 1 && conflict["added"]?.integer == 2)
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let text = try bench.text("out/library.bib")
    #expect(text.contains("Same, corrected") && text.contains("A different work"))
    let again = try bench.json(exit: 0, "import", "b.bib")
    #expect(again["writes"]?.integer == 0)
}

@Test func oneKeyTwiceInAFile_isKeptTwice_alsoWhenEqual() throws {
    let bench = try Workbench()
    let text = "@misc{k, title={A}}\n@misc{k, title={A}}\n@misc{k, title={B}}\n@misc{, title={No key}}\n"
    try bench.write("a.bib", text)
    try bench.tool(exit: 3, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(entries(try bench.bytes("out/library.bib")).count == 4)
    #expect(try bench.json(exit: 0, "import", "a.bib")["writes"]?.integer == 0)
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
}

@Test func linkedAttachments_getAPlainPath_thatIsUnderstoodAgain() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{smith, title={A}}\n")
    try bench.write("pdfs/smith@home 100%.pdf", "%PDF")
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(try bench.text("out/library.bib").contains("% backup-tool: file = Attachments/smith%40home 100%25.pdf\n"))
    try bench.tool(exit: 0, "import", "out/library.bib", "--create", "--store", "b.db")
    let fields = try bench.shell("sqlite3 b.db \"SELECT fields FROM record WHERE type = 'Publication'\"")
    #expect(fields.contains("Attachments/smith@home 100%.pdf"))
}

private func fileBytes(_ path: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try FileHandle.openForReading(path).forEachChunk { bytes += $0 }
    return bytes
}
