import BackupKit
import TestSupport
import Testing

/// Reads the `Bdsk-File-n` of a `.bib` file as Python's plistlib does, and insists that each names a file beside it.
private let judge = """
    import base64, os, plistlib, re, sys
    root = sys.argv[1]
    text = open(root + '/library.bib', encoding='utf-8').read()
    text = '\\n'.join(line for line in text.split('\\n') if not line.startswith('%'))
    named = set()
    for value in re.findall(r'Bdsk-File-[0-9]+\\s*=\\s*[{"]([^}"]*)', text):
        named.add(plistlib.loads(base64.b64decode(value))['relativePath'])
    found = set(os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root + '/Attachments') for name in names)
    assert named <= found, named - found
    assert found - named == set(sys.argv[2:]), found - named
    """

private func publications(_ bench: Workbench, _ store: String = "store.db") throws -> [String: JSON] {
    let lines = try bench.shell("sqlite3 \(store) \"SELECT fields FROM records WHERE type = 'Publication'\"")
    let all = try lines.split(separator: "\n").map { try JSON(parsing: String($0)) }
    return Dictionary(all.map { ($0["citeKey"]?.string ?? "", $0) }, uniquingKeysWith: { first, _ in first })
}

private func linked(_ bench: Workbench, _ store: String = "store.db") throws -> [String: [String]] {
    try publications(bench, store).compactMapValues { $0["linkedFiles"]?.array?.compactMap(\.string) }
}

/// What Zotero, JabRef and Mendeley export: a `.bib` file, and the files that it names beside it.
private func writeLibrary(_ bench: Workbench) throws {
    try bench.write("zotero/files/12/x.pdf", "%PDF one")
    try bench.write("zotero/files/13/x.pdf", "%PDF two")
    try bench.write("zotero/files/13/Müller_2020 & Co.pdf", "%PDF three")
    try bench.write("zotero/papers/jabref.pdf", "%PDF four")
    try bench.write("zotero/papers/nobody.pdf", "%PDF five")
    try bench.write("secret.pdf", "%PDF not yours")
    try bench.shell("ln -s ../secret.pdf zotero/link.pdf")
    try bench.write(
        "zotero/lib.bib",
        #"""
        @article{a, title={A}, file={Full Text:files/12/x.pdf:application/pdf}}
        @article{b, title={B},
          file = {PDF:files/13/x.pdf:application/pdf;:files/13/M{\"{u}}ller{\_}2020 \& Co.pdf:pdf}
        }
        @article{c, title={C}, file = {:jabref.pdf:PDF}}
        @article{d, title={D}, file = {:../secret.pdf:PDF}}
        @article{e, title={E}, file = {:link.pdf:PDF}}
        @article{f, title={F}, file = {:FOLDER/secret.pdf:PDF}}
        @comment{jabref-meta: fileDirectory:papers;}
        """#.split(separator: "FOLDER").joined(separator: bench.folder))
}

@Test func aFolderOfZoteroOrJabRef_bringsTheFilesThatItsEntriesName_andNoOthers() throws {
    let bench = try Workbench()
    try writeLibrary(bench)
    let result = try bench.tool(exit: 3, "import", "zotero")
    #expect(result.stderr.contains("../secret.pdf: is named in zotero/lib.bib, but only files below the folder of"))
    #expect(
        try linked(bench) == [
            "a": ["Attachments/files/12/x.pdf"],
            "b": ["Attachments/files/13/Müller_2020 & Co.pdf", "Attachments/files/13/x.pdf"],
            "c": ["Attachments/papers/jabref.pdf"],
        ])
    #expect(try bench.files("store.db.assets").count == 4)
    let state = try bench.state()
    try bench.tool(exit: 3, "import", "zotero")
    #expect(try bench.state() == state)
    // Somebody who names the folder has said that its files are meant.
    try bench.tool(exit: 3, "import", "--create", "--store", "b.db", bench.path("zotero/lib.bib"), bench.folder)
    #expect(try linked(bench, "b.db")["f"] == ["Attachments/secret.pdf"])
}

@Test func twoLibrariesWithFilesOfOneName_keepThemApart() throws {
    let bench = try Workbench()
    for (name, key) in [("ann", "ann2020"), ("bob", "bob2021")] {
        try bench.write("\(name)/refs.bib", "@article{\(key), title={By \(name)}, file={:files/1/x.pdf:PDF}}\n")
        try bench.write("\(name)/files/1/x.pdf", "%PDF of \(name)")
    }
    try bench.tool("import", "ann", "bob")
    for (name, key) in [("ann", "ann2020"), ("bob", "bob2021")] {
        let paths = try linked(bench)[key] ?? []
        #expect(paths.count == 1, "\(paths)")
        #expect(try bench.text("store.db.assets/\(paths.first ?? "")") == "%PDF of \(name)")
    }
}

@Test func aFileFieldOfAnExport_resolvesBesideIt_andComesBackAsItWas() throws {
    let bench = try Workbench()
    try writeLibrary(bench)
    try bench.write("zotero/more.bib", "@book{g, title={G}, pdf=\"C:\\old\\place\\g.pdf\", note = 1}\n")
    try bench.write("pdfs/place/g.pdf", "%PDF of g")
    try bench.tool(exit: 3, "import", "zotero", "--attachments", "pdfs")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let text = try bench.text("out/library.bib")
    var found = 0
    for (key, paths) in try linked(bench) {
        for path in paths {
            #expect(text.contains(":\(path):") || text.contains("\"\(path)\""), "\(key): \(text)")
            #expect(try bench.exists("out/\(path)"))
            found += 1
        }
    }
    #expect(found == 5)
    let digest = try bench.digest()
    #expect(try bench.json(exit: 3, "import", "out/library.bib")["writes"]?.integer == 0)
    let state = try bench.state()
    #expect(try bench.json(exit: 3, "import", "out/library.bib")["writes"]?.integer == 0)
    #expect(try bench.state() == state && bench.digest() == digest)
    try bench.tool(exit: 3, "import", "out/library.bib", "--create", "--store", "again.db")
    #expect(
        try publications(bench, "again.db").mapValues { $0["rawBibTeX"] }
            == publications(bench).mapValues { $0["rawBibTeX"] })
}

@Test func everyAttachmentHasABdskFile_inABackupForImbib() throws {
    let bench = try Workbench()
    try writeLibrary(bench)
    try bench.write(
        "more.bib",
        "@misc(smith2001, title = \"By its key\")\n@misc{smith2002,\n  title = {Old},\n  Bdsk-File-1 = {\(oldLink)},\n}\n"
    )
    for name in ["smith2001.pdf", "smith2001-data.zip", "old.pdf", "nobody.pdf"] {
        try bench.write("pdfs/\(name)", "%PDF \(name)")
    }
    try bench.tool(exit: 3, "import", "zotero", "more.bib", "--attachments", "pdfs")
    let result = try bench.tool(exit: 3, "export", "--format", "imbib", "-o", "out")
    #expect(result.stderr.contains("Attachments/nobody.pdf: belongs to no publication"))
    try bench.python(judge, "out", "Attachments/nobody.pdf")
    // What imbib's field was added to is the entry that it was.
    try bench.tool(exit: 3, "import", "out/library.bib", "--create", "--store", "again.db")
    #expect(
        try publications(bench, "again.db").mapValues { $0["rawBibTeX"] }
            == publications(bench).mapValues { $0["rawBibTeX"] })
    try bench.tool("restore", "--create", "out", "--store", "c.db")
    #expect(try linked(bench, "c.db") == linked(bench))
    // Three entries name files that no backup has.
    #expect(try bench.json(exit: 3, "restore", "out")["writes"]?.integer == 0)
}

/// `{"relativePath": "Papers/old.pdf"}`
private let oldLink =
    "YnBsaXN0MDDRAQJccmVsYXRpdmVQYXRoXlBhcGVycy9vbGQucGRmCAsYAAAAAAAAAQEAAAAAAAAAAwAAAAAAAAAAAAAAAAAAACc="

@Test func aShortKeyClaimsNoFile_thatOnlyBeginsLikeIt() throws {
    let bench = try Workbench()
    try bench.write(
        "a.bib",
        "@misc{a, title={A}}\n@misc{the, title={T}}\n@misc{Smith2020, title={S}}\n@misc{Smith2020a, title={Sa}}\n")
    for name in [
        "anything.pdf", "a survey.pdf", "the-end.pdf", "a.pdf", "Smith2020.pdf", "Smith2020a-2.pdf", "Smith2020b.pdf",
    ] {
        try bench.write("pdfs/\(name)", name)
    }
    let result = try bench.json(exit: 3, "import", "a.bib", "--attachments", "pdfs")
    let unlinked = result["findings"]?.array?.filter { $0["code"]?.string == "unlinked" }.compactMap {
        $0["path"]?.string
    }
    #expect(unlinked == ["Smith2020b.pdf", "a survey.pdf", "anything.pdf", "the-end.pdf"].map { "Attachments/\($0)" })
    #expect(
        try linked(bench) == [
            "a": ["Attachments/a.pdf"], "Smith2020": ["Attachments/Smith2020.pdf"],
            "Smith2020a": ["Attachments/Smith2020a-2.pdf"],
        ])
}

@Test func aFileGoesToTheEntryThatNamesItBest() throws {
    let bench = try Workbench()
    try bench.write(
        "a.bib", "@misc{p, title={P}, file={files/12/x.pdf}}\n@misc{q, title={Q}, file={C:\\files\\13\\x.pdf}}\n")
    for number in 12...14 { try bench.write("pdfs/files/\(number)/x.pdf", "%PDF \(number)") }
    let result = try bench.tool(exit: 3, "import", "a.bib", "--attachments", "pdfs")
    #expect(result.stderr.contains("Attachments/files/14/x.pdf: belongs to no publication"))
    #expect(try linked(bench) == ["p": ["Attachments/files/12/x.pdf"], "q": ["Attachments/files/13/x.pdf"]])
}

@Test func whatXORSumsCannotProve_isSaid_andVerifyAndRestoreSayTheSame() throws {
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 new")
    for level in ["quick", "full", "deep"] {
        let verified = try bench.tool(exit: 3, "verify", "new", "--level", level)
        #expect(verified.stderr.contains("that these files are whole is not proved"))
    }
    // Another version of the format is no damage.
    try bench.shell("cp -a new v2; sed -i 's/\"version\": 1,/\"version\": 2,/' v2/manifest.json")
    let refused = try bench.tool(exit: 1, "verify", "v2").stderr
    #expect(refused.contains("is of imbib backup version 2"))
    #expect(try bench.tool(exit: 1, "restore", "v2").stderr == refused)
    try bench.shell("cp -a new bare; rm bare/manifest.json")
    let bare = try bench.tool(exit: 3, "verify", "bare").stderr.split(separator: "\n").first
    #expect(bare?.contains("has no manifest") == true)
    let restored = try bench.tool(exit: 3, "restore", "bare").stderr.split(separator: "\n")
    #expect(restored.contains { $0 == bare }, "\(restored)")
}

@Test func filesWhoseNamesDifferInUnicodeForm_areTwo() throws {
    let bench = try Workbench()
    let (one, other) = ("\u{E9}.pdf", "e\u{301}.pdf")
    try bench.write(one, "composed")
    try bench.write(other, "decomposed")
    try bench.write(
        "a.bib", "@misc{a, title={Owls}, file={:\(one):PDF}}\n@misc{b, title={Bees}, file={:\(other):PDF}}\n")
    try bench.tool(exit: 3, "import", "a.bib")
    #expect(try bench.shell("cat store.db.assets/Attachments/* | wc -c") == "18\n")
    let links = try bench.shell(
        "sqlite3 store.db \"SELECT DISTINCT json_extract(fields, '$.linkedFiles') FROM record WHERE type = 'Publication'\""
    )
    #expect(links.split(separator: "\n").count == 2, "\(links)")
}
