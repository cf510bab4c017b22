import TestSupport
import Testing

/// Where a row and what was noted of it differ, a repair finds out which of the two is damaged.
@Suite struct CommandsRepairProofTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k1, title={One}}\n@misc{k2, title={Two}}\n")
        try bench.write("files/k1.txt", "text\n")
        try bench.write("settings.json", #"{"theme":"dark"}"#)
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "import", "--only", "settings", "settings.json")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    /// A disk tells no trigger.
    private func rot(_ bench: Workbench, _ statement: String) throws {
        try bench.shell(
            """
            sqlite3 store.db "CREATE TEMP TABLE noted AS SELECT * FROM witness; \(statement);
            DELETE FROM witness; INSERT INTO witness SELECT * FROM noted"
            """)
        try bench.tool(exit: 4, "store", "check")
    }

    @Test(arguments: [
        "UPDATE record SET row_hash = row_hash + 1 WHERE type = 'Publication'",
        "UPDATE noted SET row = replace(row, 'dark', 'dusk') WHERE place = 'setting'",
        "UPDATE noted SET row = '9' || row WHERE place = 'asset'",
        "UPDATE noted SET key = 'Attachments/x1.txt' WHERE place = 'asset'",
        "UPDATE asset SET path = 'Attachments/x1.txt'",
        "UPDATE asset SET sha256 = replace(sha256, 'a', 'b')",
        "DELETE FROM asset", "DELETE FROM setting",
        "UPDATE meta SET value = value || '0' WHERE key = 'latest_time'",
        "UPDATE noted SET row = row || '0' WHERE place = 'meta' AND key = 'latest_time'",
    ])
    func whatTheBackupOrTheFileProves_isMended(rotten: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try rot(bench, rotten)
        let told = try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        #expect(!(told.stdout + told.stderr).contains("0 repairs"), "\(told.stdout)\(told.stderr)")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test func aBackupOfTheDamage_provesNothing_andAcceptCounts() throws {
        let bench = try bench()
        try rot(bench, "UPDATE setting SET value = replace(value, 'dark', 'dusk')")
        try bench.shell(
            "sqlite3 store.db \"UPDATE record SET fields = replace(fields, 'One', 'Eno') WHERE type = 'Publication'\"")
        try bench.tool(exit: 3, "export", "-o", "bad.zip")
        try bench.tool(exit: 4, "store", "repair", "--from", "bad.zip")
        try bench.tool(exit: 4, "store", "check")
        let told = try bench.tool(exit: 0, "store", "repair", "--accept")
        #expect(told.stdout.contains("setting theme: was taken as it is"), "\(told.stdout)")
        #expect(told.stderr.contains("repairs made"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aRecordThatIsGone_isNamed_andComesBackFromTheBackup() throws {
        let bench = try bench()
        try bench.write("b.bib", "@misc{k3, title={Three}}\n")
        try bench.tool(exit: 0, "import", "b.bib")
        try bench.shell("sqlite3 store.db \"DELETE FROM record WHERE fields LIKE '%Two%' OR fields LIKE '%Three%'\"")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect((check.stdout + check.stderr).contains("are gone"), "\(check.stdout)\(check.stderr)")
        // Without a backup nothing says any more what they were, and that they were stays known.
        try bench.tool(exit: 4, "store", "repair")
        try bench.tool(exit: 4, "store", "check")
        let told = try bench.tool(exit: 4, "store", "repair", "--from", "good.zip")
        #expect(told.stdout.contains("was gone, and is back as it was"), "\(told.stdout)")
        #expect(told.stderr.contains("is gone"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
        let titles = "SELECT json_extract(fields, '$.title') FROM record WHERE type = 'Publication' ORDER BY 1"
        #expect(try bench.shell("sqlite3 store.db \"\(titles)\"") == "One\nTwo\n")
    }

    /// As a command leaves it that had no room to note what it had done.
    @Test func aFileThatIsInPlace_isNotMissing() throws {
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"INSERT INTO asset_pending (path) VALUES ('Attachments/k1.txt')\"")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "store", "check", "--quick")
    }

    @Test func aFileThatCannotGrow_isReportedWithWhatHelps() throws {
        let bench = try bench()
        let lines = (0..<4000).map { "@misc{n\($0), title={A title of number \($0)}}\n" }.joined()
        try bench.write("many.bib", lines)
        let told = try bench.shell("(ulimit -f 300; trap '' XFSZ; $T import many.bib 2>&1) || true")
        #expect(told.contains("could not be written") && told.contains("ulimit -f"), "\(told)")
        try bench.tool(exit: 0, "store", "check")
    }

    /// A tombstone says its time three times; only where even that is gone is nothing known but that it was one.
    @Test(arguments: [
        "fields = '{'", "field_times = '{'", "modified_at = modified_at - 1", "created_at = 0, fields = '{\"x\":1}'",
        "deleted_at = deleted_at + 1",
    ])
    func aDamagedTombstone_isMended_andNothingComesBackFromTheDead(rotten: String) throws {
        let bench = try bench()
        let two = "FROM record WHERE fields LIKE '%Two%'"
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id \(two)\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", String(id))
        let digest = try bench.digest()
        let row = "SELECT * FROM record WHERE deleted_at IS NOT NULL"
        let tombstone = try bench.shell("sqlite3 store.db \"\(row)\"")
        try rot(bench, "UPDATE record SET \(rotten) WHERE deleted_at IS NOT NULL")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        #expect(try bench.digest() == digest)
        #expect(try bench.shell("sqlite3 store.db \"\(row)\"") == tombstone)
        try rot(
            bench,
            "UPDATE record SET created_at = 0, modified_at = 0, deleted_at = 5 WHERE deleted_at IS NOT NULL")
        try bench.tool(exit: 4, "store", "repair", "--from", "good.zip")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip", "--accept")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool("restore", "good.zip")
        #expect(try bench.shell("sqlite3 store.db \"SELECT count(*) \(two)\"") == "0\n")
    }

    /// A row that waits for the hub in vain gets a new number, and with it a hash; not one that is damaged.
    @Test func aRepairOfTheQueue_takesNoDamagedRowForGood() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try rot(
            bench,
            "UPDATE record SET fields = replace(fields, 'One', 'Eno'), clean_at = NULL WHERE type = 'Publication'")
        try bench.tool(exit: 4, "store", "repair")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool("sync")
        #expect(try bench.shell("sqlite3 hub.db \"SELECT count(*) FROM record WHERE fields LIKE '%Eno%'\"") == "0\n")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        try bench.tool(exit: 0, "store", "check")
    }
}
