import BackupKit
import TestSupport
import Testing

/// One flipped bit of a file makes a text a blob. No index can be made again for that, and an export reads past it.
@Suite struct CommandsValueTypeTests {
    private func changeType(_ table: String, _ column: String, _ row: String, _ bench: Workbench, isNull: Bool = false)
        throws
    {
        try bench.write(
            "change.py",
            """
            import sqlite3
            def run(*statements):
                db = sqlite3.connect('store.db', isolation_level=None)
                db.execute('PRAGMA writable_schema=ON')
                found = [db.execute(*statement).fetchall() for statement in statements]
                db.close()
                return found[-1]
            sql = run(("SELECT sql FROM sqlite_schema WHERE name = '\(table)'",))[0][0]
            set = "UPDATE sqlite_schema SET sql = ? WHERE name = '\(table)'"
            run((set, (sql.replace(' STRICT, WITHOUT', ' WITHOUT').replace(' STRICT', '').replace(' NOT NULL', ''),)))
            triggers = run(("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '\(table)'",))
            for name, _ in triggers: run(('DROP TRIGGER ' + name,))
            run(("UPDATE \(table) SET \(column) = \(isNull ? "NULL" : "CAST(\(column) AS BLOB)") WHERE \(row)",))
            run((set, (sql,)))
            for _, trigger in triggers: run((trigger,))
            """)
        try bench.shell("python3 change.py")
    }

    @Test func aValueOfTheWrongType_costsNoNewerRecord_byTheAdvice() throws {
        let bench = try Workbench()
        func event(_ id: String) -> String {
            "{\"id\":\"\(id)\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n"
        }
        try bench.write("old.jsonl", event("e1") + event("e2"))
        try bench.write("new.jsonl", event("e3"))
        try bench.tool(exit: 0, "import", "--create", "old.jsonl")
        try bench.tool(exit: 0, "export", "-o", "good.tar")
        try bench.tool(exit: 0, "import", "new.jsonl")
        try changeType("record", "type", "local_id = 'e1'", bench)
        let said = try bench.tool(exit: 4, "store", "check").stderr
        #expect(said.contains("'backup-tool store repair'"), "\(said)")
        #expect(!said.contains("the last backup"), "\(said)")
        // An export reads past it, and a repair needs no backup.
        try bench.tool(exit: 3, "export", "-o", "all")
        try bench.tool("restore", "all", "--create", "--store", "new.db")
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
        let query = "SELECT local_id FROM record WHERE deleted_at IS NULL AND local_id LIKE 'e%' ORDER BY 1"
        #expect(try bench.shell("sqlite3 new.db \"\(query)\"").contains("e2\ne3\n"))
        #expect(try bench.shell("sqlite3 store.db \"\(query)\"").contains("e1\ne2\ne3\n"))
    }

    /// It gets its type, but nobody takes it for what was written.
    @Test func aValueThatIsGone_isNotTakenForMended() throws {
        let bench = try Workbench()
        try bench.write("settings.json", #"{"theme":"dark"}"#)
        try bench.tool(exit: 0, "import", "--create", "--only", "settings", "settings.json")
        try bench.tool(exit: 0, "export", "-o", "good.tar")
        try changeType("setting", "value", "1", bench, isNull: true)
        try bench.tool(exit: 4, "store", "repair")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.tar")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.shell("sqlite3 store.db 'SELECT value FROM setting'") == "\"dark\"\n")
    }

    @Test func aTimeOfAFileThatIsGone_isWhatWasNotedOfIt() throws {
        let bench = try Workbench()
        try bench.write("A/a.pdf", "scan\n")
        try bench.write("w.bib", "@misc{a, title={W}, year=2001}\n")
        try bench.tool("import", "--create", "w.bib", "--attachments", "A")
        let time = try bench.shell("sqlite3 store.db 'SELECT modified_ns FROM asset'")
        try changeType("asset", "modified_ns", "1", bench, isNull: true)
        try bench.tool(exit: 0, "store", "repair")
        #expect(try bench.shell("sqlite3 store.db 'SELECT modified_ns FROM asset'") == time)
    }

    /// Nobody here knows what is right in a table of another program.
    @Test func aValueOfTheWrongType_inATableOfAnotherProgram_isLeftToIt() throws {
        let bench = try Workbench()
        try bench.write("w.bib", "@misc{w, title={W}, year=2001}\n")
        try bench.tool("import", "--create", "w.bib")
        try bench.shell("sqlite3 store.db \"CREATE TABLE mine (a TEXT) STRICT; INSERT INTO mine VALUES ('x')\"")
        try changeType("mine", "a", "1", bench)
        let said = try bench.tool(exit: 4, "store", "repair").stderr
        #expect(said.contains("'backup-tool export -o DIR") && !said.contains("the last backup"), "\(said)")
    }
}
