import BackupKit
import TestSupport
import Testing

/// Two stores with one hub; each has a publication and a file `q.pdf` of its own.
private func twoDevices() throws -> Workbench {
    let bench = try Workbench()
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    for name in ["A", "B"] {
        try bench.write("f\(name)/q.pdf", "PDF of \(name)")
        try bench.write(
            "f\(name)/l.bib", "@article{K\(name), title={W \(name)}, author={Doe, X}, year={2001}, file={:q.pdf:PDF}}\n"
        )
        try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", "f\(name)/l.bib")
        try bench.tool(exit: 0, "export", "-q", "--store", "\(name).db", "-o", "backup\(name)")
    }
    return bench
}

/// That each entry of the exported library names its own file.
private func checkExport(_ bench: Workbench, of store: String, sourceLocation: SourceLocation = #_sourceLocation) throws
{
    try bench.shell("rm -rf out")
    try bench.tool(exit: 0, "export", "-q", "--store", store, "-o", "out")
    for line in try bench.text("out/library.bib").split(separator: "\n") where line.hasPrefix("@article{K") {
        let name = line.dropFirst("@article{K".count).prefix(1)
        let path = line.split(separator: ":")[1]
        #expect(try bench.text("out/\(path)") == "PDF of \(name)", "\(line)", sourceLocation: sourceLocation)
    }
}

@Suite struct CommandsFileLinkTests {
    @Test func afterSyncs_everyEntryNamesItsOwnFile() throws {
        let bench = try twoDevices()
        for (name, code) in [("A", 0), ("B", 3), ("A", 3)] as [(String, Int32)] {
            let sync = try bench.json(exit: code, "sync", "--hub", "hub.db", "--store", "\(name).db")
            let list = try bench.json(exit: 0, "conflicts", "list", "--store", "\(name).db")
            #expect(sync["conflicts"]?.integer.map(Int.init) == list["conflicts"]?.array?.count)
        }
        for name in ["A", "B"] { try checkExport(bench, of: "\(name).db") }
        let shown = try bench.tool(exit: 0, "conflicts", "show", "1", "--store", "B.db").stdout
        #expect(shown.contains("[\"KA\"]") && shown.contains("[\"KB\"]"))
    }

    @Test(arguments: ["restore", "import"]) func afterARestore_everyEntryNamesItsOwnFile(_ command: String) throws {
        let bench = try twoDevices()
        try bench.tool(exit: 3, command, "backupB", "--store", "A.db")
        try checkExport(bench, of: "A.db")
    }

    /// The fields of such an entry are what its app wrote: they may name a file that lies elsewhere by now.
    @Test func anExportForImbib_comesBackWithEachFileAtItsOwnEntry() throws {
        let bench = try Workbench()
        for (name, author) in [("A", "Ann"), ("B", "Bob")] {
            try bench.write("f\(name)/x.pdf", "PDF of \(name)")
            try bench.write(
                "f\(name)/references.bib",
                "@article{K\(name), title={W}, author={\(author), X}, year={2001}, file={X:x.pdf:PDF}}\n")
        }
        try bench.tool("import", "--create", "--store", "s.db", "fA", "fB")
        try bench.tool("export", "-q", "--store", "s.db", "-o", "imbib", "--format", "imbib")
        let before = try bench.digest("s.db")
        try bench.tool(exit: 0, "import", "--store", "s.db", "imbib")
        #expect(try bench.digest("s.db") == before)
        try bench.tool("restore", "imbib", "--create", "--store", "n.db")
        for store in ["s.db", "n.db"] { try checkExport(bench, of: store) }
    }

    @Test func anExportedLibrary_importedAsAPlainFolder_bringsItsOwnFiles() throws {
        let bench = try twoDevices()
        try bench.shell("rm backupB/manifest.json backupB/records.jsonl")
        try bench.tool(exit: 3, "import", "backupB/library.bib", "--store", "A.db")
        try checkExport(bench, of: "A.db")
        let again = try bench.tool(exit: 0, "import", "backupB/library.bib", "--store", "A.db")
        #expect(again.stderr.contains("1 unchanged"))
    }

    @Test(arguments: [
        "./pdf/a.pdf", "sub/../pdf/a.pdf", ".//pdf/./a.pdf", "FOLDER/pdf/a.pdf", "file://FOLDER/pdf/a.pdf",
    ])
    func aFileBelowTheFolderOfItsBibliography_isFoundHoweverItIsWritten(written: String) throws {
        let bench = try Workbench()
        let path = written.split(separator: "FOLDER", omittingEmptySubsequences: false).joined(
            separator: bench.path("in"))
        try bench.write("in/pdf/a.pdf", "PDF")
        try bench.write("in/a.bib", "@misc{a, title={A}, file={:\(path):PDF}}\n")
        try bench.tool(exit: 0, "import", "in/a.bib")
        try bench.tool(exit: 0, "export", "-q", "-o", "out")
        #expect(try bench.text("out/Attachments/pdf/a.pdf") == "PDF")
        #expect(try bench.text("out/library.bib").contains("file={:Attachments/pdf/a.pdf:PDF}"))
        #expect(try bench.json(exit: 0, "import", "out/library.bib")["writes"]?.integer == 0)
    }

    /// Two files below the folder that would get one path in the store: each stays at the entry that names it.
    @Test(
        arguments: [["lib"], ["l.bib", "--attachments", "lib"]],
        [["y.pdf", "Attachments/y.pdf"], ["y", "Attachments/y/z.pdf"]])
    func twoFilesThatWouldGetOnePath_bothCome(_ words: [String], _ paths: [String]) throws {
        let bench = try Workbench()
        var text = ""
        for (number, path) in paths.enumerated() {
            try bench.write("lib/\(path)", "file \(number)")
            let named = words[0] == "lib" ? path : "lib/\(path)"
            text += "@book{k\(number), title={T\(number)}, author={A, B}, year=2001, file={:\(named):PDF}}\n"
        }
        try bench.write(words[0] == "lib" ? "lib/l.bib" : "l.bib", text)
        let planned = try bench.tool(["import", "--create", "--dry-run"] + words)
        let done = try bench.tool(["import", "--create"] + words)
        #expect(planned.status == done.status && done.stderr.contains("2 attachments"), "\(done)")
        for (number, _) in paths.enumerated() {
            let links = try bench.shell(
                """
                sqlite3 store.db "SELECT value FROM record, json_each(fields, '$.linkedFiles') \
                WHERE fields LIKE '%\"k\(number)\"%'"
                """)
            let files = try links.split(separator: "\n").map { try bench.text("store.db.assets/\($0)") }
            #expect(files == ["file \(number)"], "\(links)")
        }
        let again = try bench.tool(["import", "--json"] + words)
        #expect(try JSON(parsing: again.stdout)["writes"]?.integer == 0, "\(again)")
    }

    @Test func aFileOutsideTheFolder_isNotTaken_andTheMessageSaysWhy() throws {
        let bench = try Workbench()
        try bench.write("a.pdf", "PDF")
        for path in ["../a.pdf", "sub/../../a.pdf", bench.path("a.pdf")] {
            try bench.write("in/a.bib", "@misc{a, title={A}, file={:\(path):PDF}}\n")
            let result = try bench.tool(exit: 3, "import", "in/a.bib", "in/a.bib", "--create", "--store", "s.db")
            #expect(result.stderr.contains("\(path): is named in in/a.bib, but only files below the folder of"))
            #expect(result.stderr.split(separator: "is named in").count == 2, "\(result.stderr)")
            try bench.shell("rm -rf s.db*")
        }
        try bench.write("in/a.bib", "@misc{a, title={A}, file={:none.pdf:PDF}}\n")
        #expect(
            try bench.tool(exit: 3, "import", "in/a.bib").stderr.contains("is named in in/a.bib, but was not found"))
    }

    @Test func aFileThatTheHubHasLost_isNamedSo() throws {
        let bench = try twoDevices()
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "A.db")
        try bench.shell("find hub.db.assets -type f -delete")
        try bench.tool(exit: 0, "store", "init", "--store", "C.db")
        let sync = try bench.tool(exit: 3, "sync", "--hub", "hub.db", "--store", "C.db")
        #expect(sync.stderr.contains("q.pdf: cannot be fetched: its bytes are not on the hub"), "\(sync.stderr)")
        #expect(sync.stderr.contains("sync a device that has the file"))
    }

    @Test func aFolderWithNothingThatOnlyNames_isNamed() throws {
        let bench = try Workbench()
        try bench.write("logs/a.jsonl", "{\"id\":\"e\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"x\"}\n")
        for folder in ["logs", "logs/"] {
            let left = try bench.tool(
                exit: 3, "import", "--create", "--store", "s.db", "--only", "publications", folder)
            #expect(left.stderr.contains("\(folder): was left out") && left.stderr.contains("--only events"))
        }
        // Nobody has named kinds, and this command cannot.
        try bench.write("bd/a.bib", "@misc{a, title={A}}\n")
        try bench.write("bd/notes.json", "[]")
        let left = try bench.tool(exit: 3, "events", "import", "--create", "--store", "s.db", "bd").stderr
        #expect(left.contains("bd: was left out: it holds notes and publications, which were not asked for"), "\(left)")
        #expect(left.contains("'backup-tool import --only notes,publications bd --create --store s.db'"), "\(left)")
    }

    @Test func aCiteKey_isNoId_andItsIdIsNamed() throws {
        let bench = try twoDevices()
        for words in [["delete"], ["set-local"], ["purge", "--confirm"]] {
            let refused = try bench.tool(["store"] + words + ["KA", "--store", "A.db"])
            #expect(refused.status == 1 && refused.stderr.contains("a cite key is not an id"), "\(refused.stderr)")
            #expect(refused.stderr.contains("use the id of the publication with this key: Library/"))
        }
    }

    @Test func aUser_isNamedAlikeToShareAndToUnshare() throws {
        let bench = try twoDevices()
        for words in [["ben"], ["--with", "ben"]] {
            try bench.tool(exit: 0, "store", "share", "Library", "--with", "ben", "--owner", "ann", "--store", "A.db")
            let done = try bench.tool(["store", "unshare", "Library", "--store", "A.db"] + words)
            #expect(done.status == 0 && done.stdout.contains("nobody else"), "\(done.stdout)\(done.stderr)")
        }
        try bench.tool(exit: 64, "store", "unshare", "Library", "ben", "--with", "ben", "--store", "A.db")
    }

    /// The record keeps the first of two fields with one name; JabRef and the entry as it was written have both.
    @Test func aSecondFileField_namesItsFile() throws {
        let bench = try Workbench()
        try bench.write("lib/p/one.pdf", "one")
        try bench.write("lib/p/two.pdf", "two")
        let entry = "@article{k, title={T}, year={2001},\n file={:p/one.pdf:PDF},\n File={:p/two.pdf:PDF}\n}\n"
        try bench.write("lib/l.bib", entry)
        try bench.tool(exit: 0, "import", "--create", "lib/l.bib")
        try bench.tool(exit: 0, "export", "-o", "e")
        let library = try bench.text("e/library.bib")
        #expect(library.contains("File={:Attachments/p/two.pdf:PDF}"), "\(library)")
        try bench.tool(exit: 0, "export", "-o", "imbib", "--format", "imbib")
        for backup in ["e", "imbib"] {
            try bench.tool(exit: 0, "restore", backup, "--create", "--store", "\(backup).db")
            try bench.tool(exit: 0, "export", "-o", "\(backup).out", "--store", "\(backup).db")
            #expect(try bench.text("\(backup).out/library.bib") == library)
        }
    }

    @Test func aLostFileWhoseBytesTheStoreKeeps_isPutBackAsAdvised() throws {
        let bench = try Workbench()
        try bench.write("a/key1.pdf", "one")
        try bench.write("l.bib", "@misc{key1, title={T}}\n")
        try bench.tool(exit: 0, "import", "--create", "l.bib", "--attachments", "a")
        try bench.tool(exit: 0, "export", "-o", "e")
        try bench.shell("rm store.db.assets/Attachments/key1.pdf")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("store repair --from BACKUP"))
        // The undo of the first of these needs the bytes.
        try bench.shell("$T restore e; $T store init --store n.db; $T export -o none --store n.db")
        try bench.tool(exit: 0, "restore", "none", "--mode", "replace")
        try bench.tool(exit: 0, "restore", "e", "--resurrect")
        try bench.shell("rm store.db.assets/Attachments/key1.pdf")
        let told = try bench.tool(exit: 4, "store", "check").stderr
        #expect(told.contains("'backup-tool store adopt' puts it back") && !told.contains("--accept"), "\(told)")
        try bench.tool(exit: 0, "store", "adopt")
        try bench.tool(exit: 0, "store", "check")
    }
}
