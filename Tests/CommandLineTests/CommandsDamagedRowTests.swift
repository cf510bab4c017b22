import BackupKit
import TestSupport
import Testing

struct CommandsDamagedRowTests {
    @Test func everyReadingCommandNamesADamagedRow_andNoneEndsWith0() throws {
        let bench = try Workbench()
        try bench.write(
            "2026-02-14.jsonl",
            """
            {"id":"E1","time":"2026-02-14T10:00:00+01:00","type":"eten"}
            {"id":"E2","time":"2026-02-14T11:00:00+01:00","type":"eten"}

            """)
        try bench.write("library.bib", "@book{a, title={A}}\n@book{b, title={B}}\n")
        try bench.tool(exit: 0, "import", "library.bib", "2026-02-14.jsonl")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = '{\\\"id\\\":' WHERE local_id = 'E1'\"")
        for command in [
            ["export", "-o", "all.tar.zst"], ["export", "-o", "imbib.zip", "--format", "imbib"],
            ["events", "export", "-o", "days"], ["store", "digest"], ["store", "changes"],
            ["diff", "all.tar.zst", "store.db"],
            ["restore", "all.tar.zst"], ["sync", "--hub", "hub.db"],
        ] {
            let result = try bench.tool(command)
            #expect(result.status == 3, "\(command): \(result.stderr)")
            #expect((result.stderr + result.stdout).contains("OllieEvents/E1"), "\(command): \(result.stderr)")
        }
        #expect(try bench.text("days/2026-02-14.jsonl").contains("E2"))
        #expect(try bench.tool(exit: 3, "store", "digest").stderr.contains("store repair --from"))
        let shown = try bench.tool(exit: 0, "show", "all.tar.zst", "damaged.jsonl").stdout
        #expect(shown.contains("\"fields\":\"{\\\"id\\\":\""))
        try bench.tool(exit: 3, "verify", "all.tar.zst")
        let held = try bench.shell("sqlite3 hub.db 'SELECT count(*) FROM record'")
        #expect(held.hasPrefix("4"))
    }
}
