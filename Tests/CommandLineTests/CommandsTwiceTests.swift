import BackupKit
import TestSupport
import Testing

/// What is given twice on a command line.
@Suite struct CommandsTwiceTests {
    @Test func typesThatAreGivenTwice_areBothExported() throws {
        let bench = try Workbench()
        let lines = ["eten", "plassen", "slapen"].map { "{\"time\":\"2026-02-14T16:00+01:00\",\"type\":\"\($0)\"}\n" }
        try bench.write("x.jsonl", lines.joined())
        try bench.tool(exit: 0, "import", "x.jsonl")
        let out = try bench.tool(exit: 0, "events", "export", "-o", "-", "--type", "eten", "--type", "plassen").stdout
        #expect(out.contains("eten") && out.contains("plassen") && !out.contains("slapen"), "\(out)")
    }

    @Test func hostsThatAreGivenTwice_bothChoose() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret"])
        try bench.write("a.bib", "@article{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.makeCheapVault()
        for host in ["one", "two", "three"] {
            for _ in 0..<2 { try bench.tool(exit: 0, "vault", "backup", "--vault", "v", "--host", host) }
        }
        try bench.tool(
            exit: 0, "vault", "forget", "--vault", "v", "--keep-last", "1", "--host", "one", "--host", "two")
        let left = try bench.json(exit: 0, "vault", "snapshots", "--vault", "v").array ?? []
        let hosts = left.compactMap { $0["hostname"]?.string }.sorted()
        #expect(hosts == ["one", "three", "three", "two"])
    }

    @Test func anOptionWithTwoValues_isRefusedAndChangesNothing() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@article{a, title={A}}\n")
        try bench.shell("mkdir A B")
        let words = ["import", "a.bib", "--attachments", "A", "--attachments", "B"]
        let refused = try bench.tool(words)
        #expect(refused.status == 64 && refused.stderr.contains("--attachments is given twice"), "\(refused.stderr)")
        #expect(try !bench.exists("store.db"))
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "A", "--attachments", "A")
    }
}
