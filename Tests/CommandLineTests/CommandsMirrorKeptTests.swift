import BackupKit
import TestSupport
import Testing

/// A file that holds a publication which is kept on this device only.
@Suite struct CommandsMirrorKeptTests {
    private static let kept =
        "@article{z, author={Ann One}, title={A study of rivers}, year={1991}, doi={10.1/z}, abstract={s1}, keywords={w}}\n"
    private static let other = "@book{y, author={Y Y}, title={Other}, year={2001}}\n"

    /// Another device has the store's publications, and this one keeps `z` for itself since.
    private func device() throws -> (Workbench, id: String) {
        let bench = try Workbench()
        try bench.write("l.bib", Self.kept + Self.other)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        let id = try bench.shell(
            "sqlite3 store.db \"SELECT 'Library/' || local_id FROM record WHERE fields LIKE '%rivers%'\"")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        let local = try bench.tool(exit: 0, "store", "set-local", String(id.dropLast())).stdout
        try bench.tool(exit: 0, "sync")
        return (bench, String(local.prefix { $0 != " " }))
    }

    private func onHub(_ bench: Workbench) throws -> String {
        try bench.tool("sync")
        return try bench.shell("sqlite3 hub.db .dump")
    }

    private static let options = [[], ["--mirror"], ["--overwrite"], ["--mirror", "--overwrite"]]
    private static let corrections = [
        ("{z,", "{z9,"), ("study of rivers", "study of the rivers"), ("1991", "1992"), ("10.1/z", "10.1/zz"),
    ]

    @Test(arguments: corrections.indices, options.indices)
    func aCorrectionOfWhatIsKeptHere_staysHere(correction: Int, option: Int) throws {
        let (bench, id) = try device()
        let (before, after) = Self.corrections[correction]
        try bench.write("l.bib", Self.other + Self.kept.replacing(before, with: after))
        let command = ["import", "l.bib"] + Self.options[option]
        let told = try bench.tool(command)
        #expect(told.status == 3 && told.stderr.contains("store enable-cloud \(id)'"), "\(told.stderr)")
        #expect(!told.stderr.contains("not in the file"), "\(told.stderr)")
        #expect(try !onHub(bench).contains("rivers"))
        let again = try bench.tool(command)
        #expect(again.status == 0, "\(again.stderr)")
        #expect(try bench.tool("import", "l.bib").status == 0)
        // Shared again, the store says what the file says.
        try bench.tool(exit: 0, "store", "enable-cloud", id)
        try bench.tool(exit: 0, "import", "--mirror", "--overwrite", "l.bib")
        try bench.tool(exit: 0, "export", "-o", "out")
        let library = try bench.text("out/library.bib")
        #expect(library.contains(after) && library.matches(of: /rivers/).count == 1, "\(library)")
        try bench.tool(exit: 0, "store", "check")
    }

    /// A cite key tells of whom and of when a work is.
    @Test(arguments: [false, true], [false, true])
    func theOrderOfAFile_tellsNobodyTheKeyOfWhatIsKeptHere(importsAgain: Bool, restores: Bool) throws {
        let bench = try Workbench()
        let kept = Self.kept.replacing("{z,", with: "{MyTest2026,")
        try bench.write("l.bib", kept + Self.other)
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%rivers%'\"")
            .dropLast()
        try bench.tool(exit: 0, "export", "-o", "before.tar")
        try bench.tool(exit: 0, "store", "set-local", String(id))
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        if restores { try bench.tool("restore", "--mode", "replace", "before.tar") }
        if importsAgain {
            try bench.write("l.bib", "@misc{more, title={More}}\n" + Self.other + kept)
            try bench.tool("import", "l.bib")
            let before = try bench.digest()
            try bench.tool("import", "l.bib")
            #expect(try bench.digest() == before)
        }
        let dump = try onHub(bench)
        #expect(dump.contains("key:y") && !dump.contains("MyTest2026"))
        try bench.tool(exit: 0, "export", "--order", "source", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("{MyTest2026,"))
        try bench.tool(exit: 0, "store", "check")
        guard !importsAgain, !restores else { return }
        try bench.tool(exit: 0, "undo")
        #expect(try onHub(bench).contains("MyTest2026"))
    }

    /// Deleted here, it does not come back for everybody from the file that has corrected it.
    @Test func aCorrectionOfWhatWasKeptHere_staysDeletedWithIt() throws {
        let (bench, id) = try device()
        try bench.write("l.bib", Self.kept.replacing("{z,", with: "{z9,") + Self.other)
        try bench.tool(exit: 3, "import", "l.bib")
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool("import", "l.bib")
        #expect(try !onHub(bench).contains("rivers"))
    }

    /// Of two entries nobody can tell which one it is, and of another file not whether it is one.
    @Test(arguments: ["l.bib", "m.bib"])
    func aCopyForEverybody_isNamed(file: String) throws {
        let (bench, _) = try device()
        let copy = Self.kept.replacing("{z,", with: "{z9,")
        try bench.write(file, copy + (file == "l.bib" ? Self.kept + Self.other : ""))
        let told = try bench.tool(exit: 3, "import", "--mirror", file)
        #expect(told.stderr.contains("is the work of 'z', which is kept on this device only"), "\(told.stderr)")
        let command = try #require(told.stderr.firstMatch(of: /'backup-tool (store set-local [^']+)'/)).1
        try bench.shell("$T \(command)")
        #expect(try !onHub(bench).contains("rivers"))
        try bench.tool(exit: 0, "import", "--mirror", file)
    }

    /// The advice to delete what is kept here says that everybody has a copy.
    @Test func theAdviceToDeleteWhatIsKeptHere_namesTheCopyForEverybody() throws {
        let (bench, _) = try device()
        let next = "@article{q, author={Ann One}, title={On lakes}, year={1991}}\n"
        try bench.write("l.bib", next + Self.other)
        let first = try bench.tool(exit: 3, "import", "l.bib")
        #expect(first.stderr.contains("may be the work of 'z'"), "\(first.stderr)")
        let told = try bench.tool(exit: 3, "import", "--mirror", "l.bib")
        #expect(told.stderr.contains("'q', which may be the same work, is on every device"), "\(told.stderr)")
        try bench.tool(exit: 0, "import", "--mirror", "l.bib")
    }

    private static let edits = [
        ("abstract={s1}", "abstract={s2}"), ("abstract", "note={new}, abstract"), ("@article", "@book"),
        ("keywords={w}", "keywords={w, v}"), ("Ann One", "Ann M. One"),
    ]

    @Test(arguments: edits.indices, options.indices)
    func newValuesOfWhatIsKeptHere_areNamedOnce_inEveryMode(edit: Int, option: Int) throws {
        let (bench, id) = try device()
        #expect(try bench.tool(["import", "l.bib"] + Self.options[option]).status == 0)
        try bench.write("l.bib", Self.kept.replacing(Self.edits[edit].0, with: Self.edits[edit].1) + Self.other)
        let command = ["import", "l.bib"] + Self.options[option]
        let told = try bench.tool(command)
        #expect(told.status == 3 && told.stderr.contains("store enable-cloud \(id)'"), "\(told.stderr)")
        #expect(told.stderr.matches(of: /kept on this device only/).count == 1, "\(told.stderr)")
        for more in [command, ["import", "l.bib"], ["import", "--mirror", "l.bib"]] {
            let again = try bench.tool(more)
            #expect(again.status == 0, "\(more) \(again.stderr)")
        }
    }

    @Test(arguments: [("abstract={s1}, ", ""), (", keywords={w}", "")])
    func whatAMirroredFileDropsOfWhatIsKeptHere_isNamedOnce(before: String, after: String) throws {
        let (bench, id) = try device()
        try bench.write("l.bib", Self.kept.replacing(before, with: after) + Self.other)
        let told = try bench.tool(exit: 3, "import", "--mirror", "l.bib")
        #expect(told.stderr.contains("store enable-cloud \(id)'"), "\(told.stderr)")
        try bench.tool(exit: 0, "import", "--mirror", "l.bib")
    }
}
