import TestSupport
import Testing

@testable import BackupKit

private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

/// The blocks of a file but for text: what BibTeX and JabRef go by.
private func blocks(_ bytes: [UInt8]) -> [String] {
    var found: [String] = []
    bytes.withUnsafeBytes { raw in
        BibParser.parse(raw) { block in
            if block.kind != .text, block.kind != .byteOrderMark {
                found.append(String(decoding: block.raw, as: UTF8.self))
            }
        }
    }
    return found
}

private func groups(_ names: String...) -> String {
    "@Comment{jabref-meta: grouping:\n0 AllEntriesGroup:;\n"
        + names.map { "1 StaticGroup:\($0)\\;0\\;1\\;\\;\\;\\;;\n" }.joined() + "}"
}

private let entry = "@article{k,\n  title = {T},\n  doi = {10.1/k},\n}"

@Test func editedGroups_takeThePlaceOfTheOldOnes() throws {
    let bench = try Workbench()
    func importFile(_ text: String, at time: String, exit code: Int32 = 0) throws {
        try bench.write("refs.bib", text)
        try bench.shell("touch -d \(time) refs.bib")
        try bench.tool(exit: code, "import", "refs.bib")
    }
    func exported() throws -> [String] {
        try bench.tool(exit: 0, "export", "-q", "-o", "out", "--force")
        return blocks(try bench.bytes("out/library.bib"))
    }
    let other = "@Comment{jabref-meta: databaseType:bibtex;}"
    let bibDesk = "@comment{BibDesk Static Groups{<plist>one</plist>}}"
    try importFile("% Encoding: UTF-8\n\(entry)\n\(groups("Red"))\n\(other)\n\(bibDesk)\n", at: "2020-01-01")
    #expect(try exported() == [groups("Red"), other, bibDesk, entry])
    let newer = bibDesk.split(separator: "one").joined(separator: "two")
    try importFile("% Encoding: UTF-8\n\(entry)\n\(groups("Red", "Blue"))\n\(other)\n\(newer)\n", at: "2021-01-01")
    #expect(try exported() == [groups("Red", "Blue"), other, newer, entry])
    // An older copy of the file takes nothing back.
    try importFile("% Encoding: UTF-8\n\(entry)\n\(groups("Red"))\n\(other)\n\(bibDesk)\n", at: "2020-01-01")
    #expect(try exported() == [groups("Red", "Blue"), other, newer, entry])
    // JabRef has edited what we exported.
    let text = try bench.text("out/library.bib")
    try bench.write(
        "library.bib", text.split(separator: groups("Red", "Blue")).joined(separator: groups("Green")))
    try bench.tool(exit: 0, "import", "library.bib")
    #expect(try exported() == [groups("Green"), other, newer, entry])
    #expect(try bench.json(exit: 0, "import", "library.bib")["writes"]?.integer == 0)
    // What a file itself holds twice stays there twice.
    let two = "\(groups("One"))\n\n\(groups("Two"))\n"
    try bench.write("two.bib", two)
    try bench.tool(exit: 0, "import", "two.bib", "--create", "--store", "b.db")
    try bench.tool(exit: 0, "export", "--store", "b.db", "-q", "-o", "two")
    #expect(blocks(try bench.bytes("two/library.bib")) == [groups("One"), groups("Two")])
    #expect(try bench.json(exit: 0, "import", "two.bib", "--create", "--store", "b.db")["writes"]?.integer == 0)
    // And what it holds once by now is there once.
    try bench.write("two.bib", "\(groups("Three"))\n")
    try bench.tool(exit: 0, "import", "two.bib", "--store", "b.db")
    try bench.tool(exit: 0, "export", "--store", "b.db", "-q", "-o", "one")
    #expect(blocks(try bench.bytes("one/library.bib")) == [groups("Three")])
}

@Test func anExportInTheOrderOfItsSources_keepsItInANewStore() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{z, title={Z}}\n\n@misc{b, title={B}}\n\n@misc{y, title={Y}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "--order", "source", "-o", "out")
    try bench.tool(exit: 0, "import", "out/library.bib", "--create", "--store", "b.db")
    try bench.tool(exit: 0, "export", "--store", "b.db", "-q", "--order", "source", "-o", "again")
    #expect(try bench.bytes("again/library.bib") == bench.bytes("out/library.bib"))
    for (file, store) in [("out", "b.db"), ("again", "b.db"), ("out", "store.db")] {
        let result = try bench.json(exit: 0, "import", "\(file)/library.bib", "--store", store)
        #expect(result["writes"]?.integer == 0, "\(file), \(store)")
    }
    // Sorted by key, an export has lost the order, and makes none up.
    try bench.tool(exit: 0, "export", "-q", "-o", "sorted")
    try bench.tool(exit: 0, "import", "sorted/library.bib", "--create", "--store", "c.db")
    #expect(try bench.shell("sqlite3 c.db \"SELECT count(*) FROM records WHERE fields LIKE '%order%'\"") == "0\n")
}

@Test func theFirstLineIsTheEncoding_andThereIsOneOnly() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "% Encoding: UTF-8\n\n@misc{a, title={Ä}}\n")
    try bench.write("b.bib", Array("% Encoding: ISO8859_1\nKept.\n@misc{b, title={".utf8) + [0xC4] + Array("}}\n".utf8))
    try bench.tool(exit: 0, "import", "a.bib", "b.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let text = try bench.text("out/library.bib")
    #expect(text.hasPrefix("% Encoding: UTF-8\n") && lines(text).count { $0.contains("Encoding:") } == 1)
    #expect(lines(text).contains("Kept.") && lines(text).contains("@misc{b, title={Ä}}"), "\(text)")
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    #expect(try bench.json(exit: 0, "import", "a.bib", "b.bib")["writes"]?.integer == 0)
}

@Test func aChangedMacro_changesWhatEntriesSay_andNoneOfTheirTexts() throws {
    let bench = try Workbench()
    let entry = "@article{k, title={T}, doi={10.1/k}, journal = acm # { Letters}}"
    try bench.write("a.bib", "@string{acm = {ACM}}\n\(entry)\n@string{other = {Kept}}\n")
    try bench.shell("touch -d 2020-01-01 a.bib")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.write("a.bib", "@string{acm = {Association}}\n\(entry)\n@string{other = {Kept}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(
        blocks(try bench.bytes("out/library.bib"))
            == ["@string{acm = {Association}}", "@string{other = {Kept}}", entry])
    let fields = try bench.shell("sqlite3 store.db \"SELECT fields FROM records WHERE type = 'Publication'\"")
    #expect(fields.contains("\"Association Letters\""))
    #expect(try bench.json(exit: 0, "import", "a.bib")["writes"]?.integer == 0)
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    // An entry that the file dropped keeps what it said, though nothing defines it any more.
    try bench.write("a.bib", "@string{acm = {Third}}\n@misc{l, title={L}}\n@string{other = {Kept}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "new")
    #expect(try bench.text("new/library.bib").contains("journal = {Association Letters}"))
}

@Test func aMacroThatNobodyDefined_isInventedNowhere() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@inbook{c, title={C}, crossref={p}, note=ack}\n@book{p, title={P}, note=ack}\n")
    try bench.write("b.bib", "@string{ack = {Thanks}}\n@misc{b, title={B}, note=ack}\n")
    try bench.tool(exit: 3, "import", "a.bib", "b.bib")
    for order in ["key", "source"] {
        try bench.tool(exit: 0, "export", "-q", "-o", "out", "--force", "--order", order)
        let text = try bench.text("out/library.bib")
        #expect(!text.contains("@string{ack = {ack}}"), "\(text)")
        #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0, "\(text)")
    }
    // Where there is no way around it, it is nobody's definition.
    try bench.write("c.bib", "@string{ack = {Merci}}\n@inbook{d, title={D}, crossref={q}, note=ack}\n")
    try bench.write("d.bib", "@book{q, title={Q}, note=ack}\n")
    try bench.tool(exit: 3, "import", "c.bib", "d.bib")
    for order in ["key", "source"] {
        try bench.tool(exit: 0, "export", "-q", "-o", "out", "--force", "--order", order)
        #expect(try bench.text("out/library.bib").contains("@string{ack = {ack}}"))
        #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    }
}

@Test func anExportInTheOrderOfItsSources_isTheFile() throws {
    for file in try bibliographies() {
        let bench = try Workbench()
        let original = Array(BibText.decode(try readFile(file)).text.utf8)
        try bench.tool("import", file)
        try bench.tool("export", "-q", "-o", "out", "--order", "source")
        let exported = try bench.bytes("out/library.bib")
        var wanted = blocks(original)
        // What never ends would take the rest with it.
        original.withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                if block.kind == .unreadable { wanted.removeAll { $0 == String(decoding: block.raw, as: UTF8.self) } }
            }
        }
        #expect(blocks(exported) == wanted, "\(file)")
        #expect(try JSON(parsing: bench.tool("import", "out/library.bib", "--json").stdout)["writes"]?.integer == 0)
    }
}

@Test func filesThatDefineOneMacro_stayInTheirOrder_withItsMeanings() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{z, title={Z}, note=j}\n@string{j={One}}\n@misc{y, title={Y}, note=j}\n")
    try bench.write("b.bib", "@string{j={Two}}\n@misc{x, title={X}, note=j}\n% end\n")
    try bench.tool(exit: 0, "import", "a.bib", "b.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out", "--order", "source")
    let text = try bench.text("out/library.bib")
    let order = lines(text).filter { !$0.isEmpty && !$0.hasPrefix("% backup-tool") && !$0.hasPrefix("% Enc") }
    #expect(
        order == [
            "@misc{z, title={Z}, note=j}", "@string{j={One}}", "@misc{y, title={Y}, note=j}", "@string{j={Two}}",
            "@misc{x, title={X}, note=j}", "% end",
        ])
    #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
}

@Test func filesOfOneName_onTwoDevices_keepTheirMacrosAndTheirOrder() throws {
    for seed in testSeeds(isTorture ? 60 : 3) {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        func text(_ name: String, _ count: Int) -> [String] {
            (0..<count).map { number in
                random.below(3) == 0
                    ? "@string{m\(random.below(2)) = {\(name) \(number)}}"
                    : "@misc{\(name)\(number), title={\(name) \(number)}, note=m\(random.below(2))}"
            }
        }
        var files = ["ann": text("ann", 4 + random.below(6)), "bob": text("bob", 4 + random.below(6))]
        func importAll(_ names: [String], _ store: String) throws -> Int64? {
            for name in names {
                try bench.write("\(name)/references.bib", (files[name] ?? []).map { $0 + "\n" }.joined())
            }
            let words = ["import", "--create", "--store", store, "--json"] + names.map { "\($0)/references.bib" }
            return try JSON(parsing: bench.tool(words).stdoutLines.last ?? "null")["writes"]?.integer
        }
        func sync() throws {
            for store in ["a.db", "b.db", "a.db"] {
                try bench.tool("sync", "-q", "--store", store, "--hub", "hub.db")
            }
        }
        func check(_ when: Comment) throws {
            for store in ["a.db", "b.db"] {
                try bench.tool("export", "-q", "-o", "out", "--force", "--order", "source", "--store", store)
                let exported = blocks(try bench.bytes("out/library.bib")).filter { !$0.contains("= {m") }
                let orders = [["ann", "bob"], ["bob", "ann"]].map { $0.flatMap { files[$0] ?? [] } }
                #expect(orders.contains(exported), "\(when), seed \(seed), \(store): \(exported)")
            }
            #expect(try bench.digest("a.db") == bench.digest("b.db"), "\(when), seed \(seed)")
        }
        _ = try importAll(["ann"], "a.db")
        _ = try importAll(["bob"], "b.db")
        try sync()
        try check("imported")
        // Each device gets the file of the other, and knows it.
        #expect(try importAll(["ann", "bob"], "a.db") == 0)
        files["ann"]?.append("@misc{new, title={New}}")
        try bench.shell("touch -d '1 minute' ann/references.bib")
        _ = try importAll(["ann"], "a.db")
        try sync()
        try check("changed")
    }
}

private func bibliographies() throws -> [String] {
    let library = "\(Workbench.samples)/library"
    guard let corpora = Workbench.corpora else { return ["\(library)/references.bib", "\(library)/latin1.bib"] }
    return ["\(library)/references.bib", "\(library)/latin1.bib"]
        + (try Directory.names(in: "\(corpora)/bib").map { "\(corpora)/bib/\($0)" })
}
