import BackupKit
import TestSupport
import Testing

/// The works of a store with the texts of the files that they link, by their titles.
private func links(_ bench: Workbench, _ store: String = "A.db") throws -> [String: [String]] {
    var found: [String: [String]] = [:]
    let database = try SQLite(bench.path(store), .readOnly)
    let query = try database.prepare(
        "SELECT fields ->> 'title', fields -> 'linkedFiles' FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
    )
    while try query.step() {
        let paths = try query.optionalText(1).map { try JSON(parsing: $0).array?.compactMap(\.string) ?? [] } ?? []
        found[query.text(0)] = try paths.map { try bench.text("\(store).assets/\($0)") }
    }
    return found
}

private func writeTwoWorks(_ bench: Workbench, keys: (String, String)) throws {
    try bench.write("a/p/paper.pdf", "one")
    try bench.write(
        "a/x.bib",
        "@article{\(keys.0), author={A, B}, title={Work one}, year={2001}, note={n}, file={:p/paper.pdf:PDF}}\n")
    try bench.write(
        "b/x.bib", "@article{\(keys.1), author={C, D}, title={Stranger}, year={2002}, file={:p/paper.pdf:PDF}}\n")
}

@Suite struct CommandsFileOwnerTests {
    @Test func aFileGoesToTheWorkThatItsEntryWentInto_notToAStrangerWithItsKey() throws {
        let bench = try Workbench()
        try writeTwoWorks(bench, keys: ("k1", "k1"))
        try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "b/x.bib")
        try bench.tool(exit: 3, "import", "--store", "A.db", "a/x.bib")
        #expect(try links(bench) == ["Work one": ["one"], "Stranger": []])
        // The field that is gone from the file stays in the store, so its text is not the entry's.
        try bench.write(
            "a/x.bib",
            "@article{k1, author={A, B}, title={Work one}, year={2001}, file={:p/paper.pdf:PDF}}\n")
        try bench.tool(["import", "--store", "A.db", "a/x.bib"])
        #expect(try links(bench) == ["Work one": ["one"], "Stranger": []])
    }

    /// A work of an earlier import still lacks its file; the folder that comes later has a file of that name for another work.
    @Test(arguments: ["sub/p.pdf", "p.pdf", "/home/ann/papers/p.pdf"])
    func aFolderOfAttachments_givesAFileToTheWorkThatCameWithIt(path: String) throws {
        let bench = try Workbench()
        try bench.write("b/x.bib", "@article{s, author={E, F}, title={Stranger}, year={2004}, file={:\(path):PDF}}\n")
        try bench.write("a/pdf/p.pdf", "three")
        try bench.write("a/x.bib", "@article{k, author={C, D}, title={Three}, year={2003}, file={:p.pdf:PDF}}\n")
        try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "b/x.bib")
        try bench.tool(exit: 0, "import", "--store", "A.db", "a/x.bib", "--attachments", "a/pdf")
        #expect(try links(bench) == ["Three": ["three"], "Stranger": []])
        // Its own file comes.
        try bench.write("b/pdf/p.pdf", "four")
        try bench.tool(exit: 3, "import", "--store", "A.db", "b/x.bib", "--attachments", "b/pdf")
        #expect(try links(bench) == ["Three": ["three"], "Stranger": ["four"]])
    }

    /// Of two works whose files have one name one is deleted: the other one does not get its file.
    @Test(arguments: [("two", "sub"), ("one", "top")])
    func aFolderOfAttachments_givesTheFileOfADeletedWorkToNobody(deleted: String, left: String) throws {
        let bench = try Workbench()
        try bench.write(
            "x.bib",
            """
            @misc{one, author={A, B}, title={One}, year={2001}, file={:sub/p.pdf:PDF}}
            @misc{two, author={C, D}, title={Two}, year={2002}, file={:p.pdf:PDF}}

            """)
        try bench.write("pdf/sub/p.pdf", "sub")
        try bench.write("pdf/p.pdf", "top")
        try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "x.bib")
        let title = deleted == "one" ? "One" : "Two"
        let id = try bench.shell("sqlite3 A.db \"SELECT local_id FROM record WHERE fields LIKE '%\(title)%' LIMIT 1\"")
        try bench.tool(exit: 0, "store", "delete", "--store", "A.db", "Library/\(id.dropLast())")
        try bench.tool(exit: 3, "import", "--store", "A.db", "x.bib", "--attachments", "pdf")
        #expect(try links(bench).values.flatMap(\.self) == [left])
    }

    @Test func aFolderOfAttachments_givesNoFileToAWorkOfAnEarlierImportThatHasItsOwn() throws {
        let bench = try Workbench()
        try writeTwoWorks(bench, keys: ("k1", "k2"))
        try bench.write("b/p/paper.pdf", "two")
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "a/x.bib", "--attachments", "a")
        let second = try bench.tool(exit: 3, "import", "--store", "A.db", "b/x.bib", "--attachments", "b")
        #expect(!second.stderr.contains("was not found"), "\(second.stderr)")
        #expect(try links(bench) == ["Work one": ["one"], "Stranger": ["two"]])
    }

    @Test func aFolderOfAttachments_bringsTheFileThatAnEarlierImportMissed() throws {
        let bench = try Workbench()
        try writeTwoWorks(bench, keys: ("k1", "k2"))
        try bench.shell("mkdir later; mv a/p later/p")
        try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "a/x.bib")
        try bench.write("c.bib", "@misc{other, title={Other}}\n")
        try bench.tool(exit: 0, "import", "--store", "A.db", "c.bib", "--attachments", "later")
        #expect(try links(bench) == ["Work one": ["one"], "Other": []])
    }

    @Test(arguments: [false, true])
    func aFileThatAnEntryNamesByItsPath_goesToNoOtherWork(_ isEarlier: Bool) throws {
        let bench = try Workbench()
        let one = "@article{k1, author={A, B}, title={Work one}, year={2001}, file={:P/x.pdf:PDF}}\n"
        let two = "@article{k2, author={C, D}, title={Stranger}, year={2002}, file={:x.pdf:PDF}}\n"
        try bench.write("s/x.pdf", "two")
        try bench.write("s/l.bib", isEarlier ? two : one + two)
        try bench.write("o/l.bib", one)
        if isEarlier { try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "o/l.bib") }
        for _ in 0..<2 {
            let result = try bench.tool(
                exit: isEarlier ? 0 : 3, "import", "--create", "--store", "A.db", "s/l.bib", "--attachments", "s")
            #expect(isEarlier || result.stderr.contains("P/x.pdf: is named in s/l.bib, but was not found"))
            #expect(try links(bench) == ["Work one": [], "Stranger": ["two"]], "\(result.stderr)")
        }
    }

    @Test func aFileThatGotANumber_isTheOneThatItsWorkNames() throws {
        let bench = try Workbench()
        try bench.write("a/Paper.pdf", "one")
        try bench.write("a/x.bib", "@misc{k1, title={Work one}, file={:Paper.pdf:PDF}}\n")
        try bench.write("b/paper.pdf", "two")
        try bench.write("b/x.bib", "@misc{k2, title={Work two}, file={:paper.pdf:PDF}}\n")
        try bench.tool(["import", "--create", "--store", "A.db", "a/x.bib"])
        try bench.tool(["import", "--store", "A.db", "b/x.bib"])
        #expect(try links(bench) == ["Work one": ["one"], "Work two": ["two"]])
        // Another file of that name is not its file.
        try bench.write("c/paper.pdf", "three")
        try bench.write("c.bib", "@misc{k3, title={Work three}}\n")
        try bench.tool(["import", "--store", "A.db", "c.bib", "--attachments", "c"])
        #expect(try links(bench)["Work two"] == ["two"])
        // Without the file beside it, nothing is missing.
        try bench.shell("rm b/paper.pdf")
        try bench.tool(exit: 0, "import", "--store", "A.db", "b/x.bib")
    }

    @Test func aFolderOfAttachments_givesAFileToNoWorkWhoseEntryNoLongerNamesIt() throws {
        let bench = try Workbench()
        let one = "@book{k1, author={A, B}, title={One}, year={2001}, file={:p.pdf:PDF}}\n"
        let two = "@book{k2, author={A, B}, title={Two}, year={2001}FILE}\n"
        try bench.write("old/p.pdf", "old")
        try bench.write("new/p.pdf", "new")
        try bench.write("l.bib", one + two.replacing("FILE", with: ", file={:p.pdf:PDF}"))
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "l.bib", "--attachments", "old")
        try bench.write("l.bib", one + two.replacing("FILE", with: ""))
        try bench.tool(exit: 3, "import", "--store", "A.db", "l.bib", "--attachments", "new")
        #expect(try links(bench) == ["One": ["old", "new"], "Two": ["old"]])
    }

    @Test func anImportThatOnlyLinksAFile_saysToWhichWork() throws {
        let bench = try Workbench()
        try bench.write("l.bib", "@book{k1, author={A, B}, title={One}, year={2001}, file={:p.pdf:PDF}}\n")
        try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "l.bib")
        try bench.write("new/p.pdf", "new")
        for words in ["--dry-run", "--verbose"] {
            let said = try bench.tool(exit: 0, "import", "--store", "A.db", "l.bib", "--attachments", "new", words)
            #expect(said.stdout.contains("~ k1: One"), "\(said.stdout)")
            #expect(said.stdout.contains(#"linkedFiles: nothing → ["Attachments/p.pdf"]"#), "\(said.stdout)")
            let counts = "2 unchanged, 1 attachment added, 1 record linked to a file"
            #expect(said.stderr.contains(counts), "\(said.stderr)")
        }
    }

    /// The file itself stays in the store.
    @Test(arguments: [", file={pdf/right.pdf}", ""])
    func aMirror_takesOffTheLinkToAFileThatTheEntryNoLongerNames(file: String) throws {
        let bench = try Workbench()
        let entry = "@book{K1, title={Alpha}, author={Foo, Bar}, year={2001}FILE}\n"
        try bench.write("pdf/wrong.pdf", "draft")
        try bench.write("pdf/right.pdf", "final")
        try bench.write("a.bib", entry.replacing("FILE", with: ", file={pdf/wrong.pdf}"))
        try bench.tool(exit: 0, "import", "--store", "A.db", "--create", "a.bib")
        try bench.write("a.bib", entry.replacing("FILE", with: file))
        for words in ["--dry-run", "--verbose"] {
            let said = try bench.tool(exit: 0, "import", "--store", "A.db", "--mirror", "a.bib", words).stdout
            #expect(said.contains("linkedFiles"), "\(said)")
        }
        #expect(try links(bench) == ["Alpha": file.isEmpty ? [] : ["final"]])
        #expect(try bench.text("A.db.assets/Attachments/pdf/wrong.pdf") == "draft")
        let again = try bench.json(exit: 0, "import", "--store", "A.db", "--mirror", "a.bib")
        #expect(again["writes"]?.integer == 0, "\(again)")
    }

    /// An older file names it, and the store keeps what the newer one says.
    @Test(arguments: ["old.bib", "p2/old.bib"])
    func aFileWhoseEntryIsOverruled_isNamedOnce_withTheCommandThatLinksIt(old: String) throws {
        let bench = try Workbench()
        let entry = "@article{k1, author={A, B}, title={Work one}, year={2001}, file={:FILE:PDF}}\n"
        try bench.write("new.bib", entry.replacing("FILE", with: "first.pdf"))
        try bench.write(old, entry.replacing("FILE", with: "sub/q.pdf"))
        try bench.write("p1/first.pdf", "one")
        try bench.write("p2/sub/q.pdf", "two")
        try bench.shell("touch -d yesterday \(old)")
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "new.bib", "--attachments", "p1")
        var told = ""
        for _ in 0..<2 {
            told = try bench.tool(exit: 3, "import", "--store", "A.db", old, "--attachments", "p2").stderr
            #expect(!told.contains("was not found") && !told.contains("belongs to no"), "\(told)")
            #expect(told.split(separator: "Attachments/sub/q.pdf: ").count == 2, "\(told)")
            #expect(told.contains("an entry of \(old) names it"), "\(told)")
        }
        let advice = try #require(told.firstMatch(of: /'backup-tool (import --overwrite .*?)'/)).1
        try bench.shell("$T \(advice)")
        #expect(try links(bench)["Work one"]?.contains("two") == true)
    }
}
