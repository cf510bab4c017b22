import TestSupport
import Testing

/// What `restore --mode replace` does with attachments.
@Suite struct CommandsReplaceFilesTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={K}}\n")
        try bench.write("files/k.txt", "one\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        return bench
    }

    /// Nobody but its author decides about a version that was kept, however often the backup is restored.
    @Test func aVersionThatARestoreKept_staysAtTheNext() throws {
        let bench = try bench()
        try bench.shell("echo mine >> store.db.assets/Attachments/k.txt")
        let told = try bench.tool(exit: 3, "restore", "b.zip", "--mode", "replace")
        let kept = try #require(told.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        for _ in 0..<2 {
            let digest = try bench.digest()
            let again = try bench.json(exit: 0, "restore", "b.zip", "--mode", "replace")
            #expect(again["writes"]?.integer == 0 && again["removed"]?.integer == 0, "\(again)")
            #expect(try bench.digest() == digest)
            #expect(try bench.text("store.db.assets/\(kept)") == "one\nmine\n")
        }
        let command = try #require(told.stderr.firstMatch(of: /'(cp [^']+)' and then '(backup-tool store adopt)'/))
        try bench.shell("\(command.1); $T store adopt")
        #expect(try bench.text("store.db.assets/Attachments/k.txt") == "one\nmine\n")
        try bench.tool(exit: 0, "store", "check")
    }

    /// An app may save less than there was: pages or notes were taken out.
    @Test(arguments: [["restore", "b.zip"], ["restore", "b.zip", "--mode", "replace"], ["undo"]])
    func aFileThatAnAppSavedShorter_isKept(_ command: [String]) throws {
        let bench = try bench()
        try bench.shell("echo my > store.db.assets/Attachments/k.txt")
        for words in [command + ["--dry-run"], command] {
            let told = try bench.tool(words)
            #expect(told.status == 3 && told.stderr.contains("Attachments/k.txt"), "\(told.stderr)")
        }
        let files = try bench.shell("cat store.db.assets/Attachments/*")
        #expect(files.contains("my\n"), "\(files)")
    }

    @Test func aSyncKeepsAFileThatAnAppSavedShorter() throws {
        let bench = try bench()
        try bench.shell("$T hub init hub.db; $T sync --hub hub.db; $T store init --store m.db")
        try bench.shell("$T sync --store m.db --hub hub.db; echo my > m.db.assets/Attachments/k.txt")
        try bench.shell("echo longer >> store.db.assets/Attachments/k.txt; $T store adopt; $T sync")
        #expect(try bench.tool(exit: 3, "sync", "--store", "m.db").stderr.contains("was changed in the store's folder"))
        #expect(try bench.shell("cat m.db.assets/Attachments/*_conflict_*") == "my\n")
    }

    /// What a backup has in pieces, or names as left out, is not missing from it.
    @Test func aReplaceRemovesNothing_thatTheBackupOnlyLacksByDamage() throws {
        let bench = try bench()
        try bench.write("b.bib", "@misc{two, title={Two}}\n")
        try bench.tool("import", "b.bib")
        try bench.shell("cp store.db bad.db; cp -r store.db.assets bad.db.assets; rm bad.db.assets/Attachments/k.txt")
        try bench.shell("sqlite3 bad.db \"UPDATE record SET fields = '{' WHERE fields LIKE '%Two%'\"")
        try bench.tool(exit: 3, "export", "--store", "bad.db", "-o", "left.zip")
        let digest = try bench.digest()
        let told = try bench.json(exit: 3, "restore", "left.zip", "--mode", "replace")
        #expect(told["removed"]?.integer == 0 && told["attachments"]?["removed"]?.integer == 0, "\(told)")
        #expect(try bench.digest() == digest)
        // The store's version is sound, so no command warns of the damaged one from now on.
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "export", "-o", "all.tar")
        try bench.shell("head -c 1500 all.tar > cut.tar")
        let cut = try bench.tool(exit: 3, "restore", "cut.tar", "--mode", "replace", "--allow-damage").stderr
        #expect(cut.contains("nothing was removed from the store"), "\(cut)")
        #expect(try bench.digest() == digest)
    }

    @Test func attachmentsThatAReplaceRemoves_areInItsPlan() throws {
        let bench = try bench()
        try bench.write("files/thesis.pdf", "two\n")
        try bench.tool("import", "a.bib", "--attachments", "files")
        let line = "- Attachments/thesis.pdf  (not in the backup)"
        #expect(try bench.tool(exit: 0, "restore", "b.zip", "--mode", "replace", "--dry-run").stdout.contains(line))
        let done = try bench.json(exit: 0, "restore", "b.zip", "--mode", "replace")
        #expect(done["plan"]?.array?.contains { $0["record"]?.string == "Attachments/thesis.pdf" } == true, "\(done)")
        #expect(try bench.tool(exit: 0, "undo", "--list").stdout.contains("b.zip; removed Attachments/thesis.pdf"))
        try bench.tool(exit: 0, "undo")
        #expect(try bench.text("store.db.assets/Attachments/thesis.pdf") == "two\n")
    }

    /// A record that is kept on this device only keeps its file; the backup's comes to lie beside it, once.
    @Test func aReplaceThatIsRepeated_comesToRest() throws {
        let bench = try bench()
        let query = "SELECT local_id FROM record WHERE type = 'Publication'"
        try bench.shell("$T store set-local $(sqlite3 store.db \"\(query)\")")
        try bench.shell("echo mine >> store.db.assets/Attachments/k.txt; $T store adopt")
        let first = try bench.json(exit: 3, "restore", "b.zip", "--mode", "replace")
        #expect(first["attachments"]?["added"]?.integer == 1, "\(first)")
        let again = try bench.json(exit: 0, "restore", "b.zip", "--mode", "replace")
        #expect(again["writes"]?.integer == 0 && again["attachments"]?["removed"]?.integer == 0, "\(again)")
        #expect(try bench.text("store.db.assets/Attachments/k.txt") == "one\nmine\n")
    }

    /// The plan names each file that comes or changes.
    @Test func filesThatARestoreSetsBackOrAdds_areInItsPlan() throws {
        let bench = try bench()
        let new = try bench.tool(exit: 0, "restore", "b.zip", "--create", "--store", "new.db", "--dry-run")
        #expect(new.stdout.contains("+ Attachments/k.txt\n"), "\(new.stdout)")
        try bench.shell("echo mine >> store.db.assets/Attachments/k.txt; $T store adopt")
        let line = "~ Attachments/k.txt  (is the backup's version again)\n"
        for words in ["--dry-run", "--verbose"] {
            let told = try bench.tool(["restore", "b.zip", "--mode", "replace", words])
            #expect(told.stdout.contains(line), "\(told.stdout)")
            #expect(told.stderr.contains("1 attachment set back"), "\(told.stderr)")
        }
        #expect(try bench.text("store.db.assets/Attachments/k.txt") == "one\n")
    }

    /// The backup of imbib says which files an entry has, and no record does.
    @Test func aFileThatAnImbibBackupLacks_goesWithItsLink() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={K}}\n@misc{l, title={L}}\n")
        try bench.write("files/l.txt", "of l\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-q", "--format", "imbib", "-o", "backup")
        try bench.write("files/k.txt", "of k\n")
        try bench.shell("$T import -q --attachments files")
        let changed = try bench.digest()
        let links =
            "sqlite3 store.db \"SELECT json_extract(fields, '$.linkedFiles') FROM record WHERE type = 'Publication'\""
        #expect(try bench.shell(links).contains("k.txt"))
        let plan = try bench.tool(exit: 0, "restore", "--mode", "replace", "backup", "--dry-run")
        let told = try bench.tool(exit: 0, "restore", "--mode", "replace", "backup")
        #expect(plan.stderr.contains("1 attachment removed") && told.stderr.contains("1 attachment removed"))
        #expect(plan.stdout.contains("linkedFiles"), "\(plan.stdout)")
        #expect(try bench.shell(links).split(separator: "\n") == ["[\"Attachments/l.txt\"]"])
        let replaced = try bench.digest()
        for (command, expected) in [(["undo"], changed), (["undo", "--redo"], replaced)] {
            try bench.tool(words: command, exit: 0)
            #expect(try bench.digest() == expected, "\(command)")
            try bench.tool(exit: 0, "store", "check")
        }
    }
}
