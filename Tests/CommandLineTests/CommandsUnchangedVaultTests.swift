import TestSupport
import Testing

/// A backup of a store whose rows are those of the last snapshot says what every other backup would say.
@Suite struct CommandsUnchangedVaultTests {
    private func bench() throws -> Workbench {
        let bench = try CommandsVaultTests.bench()
        try bench.write("lib.bib", "@misc{a, title={On pears}}\n@misc{b, title={On plums}}\n")
        try bench.write("settings/settings.json", "{\"a\": 1}")
        try bench.write("files/a.pdf", "%PDF one")
        try bench.tool("import", "--create", "lib.bib", "--attachments", "files")
        try bench.tool(exit: 0, "import", "settings", "--only", "settings")
        try bench.makeCheapVault()
        try bench.tool(exit: 0, "vault", "backup")
        return bench
    }

    /// Behind the back of what watches the table.
    private func change(_ bench: Workbench, _ statement: String, of trigger: String) throws {
        try bench.shell(
            """
            t=$(sqlite3 store.db "SELECT sql FROM sqlite_master WHERE name = '\(trigger)'")
            sqlite3 store.db "DROP TRIGGER \(trigger); \(statement); $t;"
            """)
    }

    @Test(arguments: [
        "INSERT INTO local_key VALUES (123, 99999, 5)", "INSERT INTO awaited_file VALUES ('Attachments/b.pdf')",
    ])
    func whatIsNotThere_isNamedEachTime(statement: String) throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"\(statement)\"")
        let export = try bench.tool(exit: 3, "export", "-o", "out")
        for _ in 0..<2 {
            let backup = try bench.tool(exit: 3, "vault", "backup")
            #expect(export.stderr.split(separator: "\n").first == backup.stderr.split(separator: "\n").first)
        }
    }

    @Test func damageThatWasMended_isInNoSnapshotAfterwards() throws {
        let bench = try bench()
        let trigger = "setting_witness_update"
        try change(bench, "UPDATE setting SET modified_at = modified_at - 1024", of: trigger)
        for _ in 0..<2 { try bench.tool(exit: 3, "vault", "backup") }
        try bench.tool(exit: 3, "verify", "vault:v")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        for _ in 0..<2 { try bench.tool(exit: 0, "vault", "backup") }
        try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
        try bench.tool(
            exit: 0, "restore", "vault:v", "--create", "--store", "new.db", "--only",
            "publications,attachments,settings")
        #expect(try bench.digest("new.db") == bench.digest())
    }

    /// The rows are as they were; only what tells that they are damaged was so for a while.
    @Test func damageOfAWitness_isInNoSnapshotAfterItWasMended() throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"UPDATE witness SET row = row || '1' WHERE place = 'setting'\"")
        try bench.tool(exit: 3, "vault", "backup")
        try bench.shell(
            "sqlite3 store.db \"UPDATE witness SET row = substr(row, 1, length(row) - 1) WHERE place = 'setting'\"")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
    }
}
