import TestSupport
import Testing

/// A row that a disk has changed and that can still be read: whoever reads it says so and ends with 3.
@Suite struct CommandsChangedRowTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        for store in ["store.db", "other.db"] { try bench.tool(exit: 0, "store", "init", "--store", store) }
        try bench.write("log/2026-03-01.jsonl", #"{"id":"E1","time":"2026-03-01T08:00:00+01:00","type":"eten"}"# + "\n")
        try bench.write(
            "w.bib",
            "@article{k,title={Fish},author={A, B},year=2001}\n@article{k,title={Bird},author={C, D},year=2002}\n")
        try bench.tool(exit: 3, "import", "log", "w.bib")
        return bench
    }

    private static let change = "update record set fields=replace(fields,'eten','etfn')"
    private static let named = "OllieEvents/E1: is not what the store has written"

    @Test(arguments: [
        ["store", "digest"], ["events", "export", "-o", "-"], ["events", "export", "-o", "out"],
        ["events", "export", "-o", "-", "--dry-run"], ["events", "export", "-o", "e.jsonl", "--from", "2026-01-01"],
        ["store", "changes"], ["export", "-o", "x", "--only", "events"], ["diff", "store.db", "other.db"],
    ])
    func aChangedRow_isNamedByWhoeverReadsIt(command: [String]) throws {
        let bench = try bench()
        let sound = try bench.tool(command)
        #expect(sound.status == 0 && !sound.stderr.contains("is not what"), "\(sound)")
        try bench.shell("rm -rf x out e.jsonl; sqlite3 store.db \"\(Self.change)\"")
        let told = try bench.tool(command)
        #expect(told.status == 3 && told.stderr.contains(Self.named), "\(told)")
        #expect(told.stderr.ranges(of: Self.named).count == 1, "named once: \(told)")
        #expect(told.stderr.contains("'backup-tool store"), "\(told)")
    }

    @Test func aChangedRow_ofAnotherKind_isNotNamed() throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"\(Self.change)\"")
        try bench.tool(exit: 0, "store", "digest", "--only", "publications")
        try bench.tool(exit: 0, "export", "-o", "x", "--only", "publications")
    }

    @Test func aChangedSideOfAConflict_isNamed() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "conflicts", "show", "1")
        try bench.shell("sqlite3 store.db \"update record set fields=replace(fields,'Fish','Fitz')\"")
        for command in [["conflicts", "show", "1"], ["conflicts", "list"]] {
            let told = try bench.tool(command)
            #expect(told.status == 3 && told.stderr.contains("is not what the store has written"), "\(told)")
        }
    }

    @Test func aChangedRowOfASettingOrFile_isNamedByTheDigest() throws {
        let bench = try bench()
        try bench.write("A/a.pdf", "scan\n")
        try bench.tool("import", "w.bib", "--attachments", "A")
        try bench.tool(exit: 0, "store", "digest")
        try bench.python(
            """
            import sqlite3
            store = sqlite3.connect('store.db')
            store.execute('DROP TRIGGER asset_witness_update')
            store.execute('UPDATE asset SET size = 4')
            store.commit()
            """)
        let told = try bench.tool(exit: 3, "store", "digest", "--only", "attachments")
        #expect(told.stderr.contains("Attachments/a.pdf: is not what the store has written"), "\(told)")
    }
}
