import TestSupport
import Testing

/// What was deleted later than a backup says stays deleted when the backup replaces the store.
@Suite struct CommandsReplaceDeletedTests {
    /// The backup has it as kept on its device only, in a version that the delete had not heard of.
    @Test func aCopyOfABackup_doesNotBringBackWhatWasDeletedLater() throws {
        let bench = try Workbench()
        func event(_ note: String, day: Int) -> String {
            "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\"note\":\"\(note)\","
                + "\"modified_at\":\"2026-02-\(day)T15:00:00Z\"}\n"
        }
        try bench.write("a.jsonl", event("one", day: 14))
        try bench.write("b.jsonl", event("two", day: 15))
        for device in ["a", "b"] {
            try bench.tool(exit: 0, "import", "--store", "\(device).db", "--create", "\(device).jsonl")
        }
        try bench.tool(exit: 0, "store", "set-local", "--store", "b.db", "e1")
        try bench.tool(exit: 0, "export", "--store", "b.db", "-o", "b.tar")
        try bench.shell("sleep 0.01")
        try bench.tool(exit: 0, "store", "delete", "--store", "a.db", "e1")
        for _ in 0..<2 {
            let said = try bench.tool("restore", "b.tar", "--store", "a.db", "--mode", "replace")
            #expect(said.stderr.contains("stays deleted"), "\(said.stderr)")
            let living = "SELECT count(*) FROM record WHERE local_id = 'e1' AND deleted_at IS NULL"
            #expect(try bench.shell("sqlite3 a.db \"\(living)\"") == "0\n")
        }
        try bench.tool("restore", "b.tar", "--store", "a.db", "--mode", "replace", "--resurrect")
        #expect(try bench.shell("sqlite3 a.db \"SELECT fields FROM record WHERE deleted_at IS NULL\"").contains("two"))
    }
}
