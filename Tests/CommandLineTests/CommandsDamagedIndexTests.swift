import BackupKit
import TestSupport
import Testing

/// A damaged index of SQLite costs nothing: no command takes what it leaves out for gone.
@Suite struct CommandsDamagedIndexTests {
    /// A library of two works, and then an import that changes one of them and brings a file.
    private func bench() throws -> (bench: Workbench, before: String) {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, doi={10.1000/a}, note={old}}\n@misc{b, title={B}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        let before = try bench.digest()
        try bench.write("a.bib", "@misc{a, doi={10.1000/a}, note={new}}\n@misc{b, title={B}}\n")
        try bench.write("pdfs/a.pdf", "%PDF a")
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
        return (bench, before)
    }

    @Test(arguments: [
        (
            "batch_record_by_batch", "UPDATE batch_record SET batch = batch + 64",
            "UPDATE batch_record SET batch = batch - 64"
        ),
        (
            "batch_record_by_after", "UPDATE batch_record SET after = after + 4096",
            "UPDATE batch_record SET after = after - 4096"
        ),
        (
            "batch_added_by_batch", "INSERT INTO batch_added VALUES (4096, 1, 66, (2 << 41) - 4097)",
            "UPDATE batch_added SET batch = 2 WHERE batch = 66"
        ),
        (
            "batch_asset_by_path", "UPDATE batch_asset SET path = 'x' || path",
            "UPDATE batch_asset SET path = substr(path, 2)"
        ),
    ]) func noUndoTrustsADamagedHistory(index: String, lie: String, truth: String) throws {
        let (bench, before) = try bench()
        try SQLite.misindex(bench.path("store.db"), index, lie: lie, truth: truth)
        try expectRefused(["undo"], bench, index)
        try bench.tool("undo")
        #expect(try bench.digest() == before)
    }

    @Test func noRedoTrustsADamagedHistory() throws {
        let (bench, _) = try bench()
        let after = try bench.digest()
        try bench.tool(exit: 0, "undo")
        try SQLite.misindex(
            bench.path("store.db"), "batch_record_by_batch", lie: "UPDATE batch_record SET batch = batch + 64",
            truth: "UPDATE batch_record SET batch = batch - 64")
        try expectRefused(["undo", "--redo"], bench, "batch_record_by_batch")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.digest() == after)
    }

    /// Refused before anything is written, and the way that is named mends the store.
    private func expectRefused(_ words: [String], _ bench: Workbench, _ index: String) throws {
        let state = try bench.state()
        for words in [words + ["--dry-run"], words] {
            let told = try bench.tool(words)
            #expect(told.status == 4 && told.stderr.contains("nothing was taken back"), "\(told)")
            #expect(told.stderr.contains(index) && told.stderr.contains("'backup-tool store repair"), "\(told)")
        }
        #expect(try bench.state() == state)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
    }

    // MARK: The index of records by type

    private static let repair = "'backup-tool store repair'"

    /// Lets the index by type know living records of a type under another one.
    private func hide(_ type: String, in bench: Workbench) throws {
        try SQLite.misindex(
            bench.path("store.db"), "record_by_type",
            lie: "UPDATE record SET type = 'X' || type WHERE type = '\(type)' AND deleted_at IS NULL",
            truth: "UPDATE record SET type = substr(type, 2) WHERE type = 'X\(type)'")
    }

    @Test(arguments: ["BibliographyPart", "Publication"])
    func aDamagedIndexByType_costsNoBackupAnything_andIsNamed(type: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@comment{kept}\n@string{j = {Journal}}\n@misc{a, title={A}, journal=j}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "good")
        try bench.makeCheapVault()
        try hide(type, in: bench)
        for words in [["export", "-o", "out"], ["vault", "backup", "--vault", "v"]] {
            let made = try bench.tool(words, environment: ["BACKUP_TOOL_PASSWORD": "secret"])
            #expect(made.status == 4 && made.stderr.contains("record_by_type"), "\(made)")
            #expect(made.stderr.contains(Self.repair), "\(made)")
        }
        try bench.tool(exit: 0, "verify", "--level", "deep", "out")
        let shown = try bench.tool(
            ["show", "vault:v", "library.bib"], environment: ["BACKUP_TOOL_PASSWORD": "secret"])
        #expect(try bench.text("out/library.bib") == bench.text("good/library.bib"))
        #expect(try shown.stdout == bench.text("good/library.bib"))
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "export", "-o", "mended")
    }

    @Test func aPageOfTheIndexByTypeThatIsGone_costsNoBackupAnything() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@comment{kept}\n@misc{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "good")
        let digest = try bench.digest()
        try bench.python(
            """
            import sqlite3
            store = sqlite3.connect('store.db')
            store.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            page = store.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'record_by_type'").fetchone()[0]
            size = store.execute('PRAGMA page_size').fetchone()[0]
            store.close()
            with open('store.db', 'r+b') as file:
                file.seek((page - 1) * size)
                file.write(b'\\xff' * 16)
            """)
        let made = try bench.tool(exit: 4, "export", "-o", "out")
        #expect(made.stderr.contains("record_by_type") && made.stderr.contains(Self.repair), "\(made)")
        #expect(try bench.text("out/library.bib") == bench.text("good/library.bib"))
        // No repair can mend a page; the export has everything for a new store.
        try bench.tool(exit: 0, "restore", "out", "--create", "--store", "new.db", "--only", Workbench.allKinds)
        #expect(try bench.digest("new.db") == digest)
    }

    @Test func aDamagedIndexByType_hidesNoConflict() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{key, title={A}}\n@book{key, title={Another}}\n")
        try bench.tool(exit: 3, "import", "a.bib")
        try hide("Conflict", in: bench)
        let state = try bench.state()
        for words in [["list"], ["list", "--json"], ["show", "1"]] {
            let told = try bench.tool(["conflicts"] + words)
            #expect(told.status == 4 && told.stdout.contains("Another"), "\(told)")
            #expect(told.stderr.contains(Self.repair), "\(told)")
        }
        #expect(try bench.json(exit: 4, "store", "info")["conflicts"]?.integer == 1)
        for way in [["--with", "keep-both"], ["--keep", "anything"]] {
            let told = try bench.tool(["conflicts", "resolve", "1"] + way)
            #expect(told.status == 4 && told.stderr.contains("nothing was changed"), "\(told)")
        }
        #expect(try bench.state() == state)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-both")
    }

    /// The order of the file names `b`, which lives.
    @Test func nothingIsRemovedByADamagedIndexByType() throws {
        let bench = try Workbench()
        let text = "@misc{a, title={A}}\n@misc{b, title={B}}\n@misc{c, title={C}}\n"
        try bench.write("a.bib", text)
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "good")
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%{a,%'\"")
            .filter { $0 != "\n" }
        try bench.tool(exit: 0, "store", "delete", id)
        try hide("Publication", in: bench)
        let state = try bench.state()
        let commands = [
            ["store", "purge", id, "--confirm"],
            ["import", "--mirror", "a.bib"], ["restore", "good", "--mode", "replace"],
        ]
        for words in commands {
            let told = try bench.tool(words)
            #expect(told.status == 4 && told.stderr.contains("nothing was changed"), "\(told)")
            #expect(told.stderr.contains(Self.repair), "\(told)")
        }
        #expect(try bench.state() == state)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "purge", id, "--confirm")
        try bench.tool(exit: 0, "store", "check")
    }
}
