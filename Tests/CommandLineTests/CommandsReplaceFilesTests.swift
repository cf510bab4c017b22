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

    @Test func attachmentsThatAReplaceRemoves_areInItsPlan() throws {
        let bench = try bench()
        try bench.write("files/thesis.pdf", "two\n")
        try bench.tool("import", "a.bib", "--attachments", "files")
        let line = "- Attachments/thesis.pdf  (not in the backup)"
        #expect(try bench.tool(exit: 0, "restore", "b.zip", "--mode", "replace", "--dry-run").stdout.contains(line))
        let done = try bench.json(exit: 0, "restore", "b.zip", "--mode", "replace")
        #expect(done["plan"]?.array?.contains { $0["record"]?.string == "Attachments/thesis.pdf" } == true, "\(done)")
        #expect(try bench.tool(exit: 0, "undo", "--list").stdout.contains("b.zip, without Attachments/thesis.pdf"))
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
}
