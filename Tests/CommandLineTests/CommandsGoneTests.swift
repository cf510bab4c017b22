import TestSupport
import Testing

@testable import BackupKit

/// What another program or a disk took out of a store's tables or folder comes back, or a person gives it up.
@Suite struct CommandsGoneTests {
    private func bench(_ environment: [String: String] = [:]) throws -> Workbench {
        let bench = try Workbench(environment)
        try bench.write("a.bib", "@misc{k1, title={One}}\n@misc{k2, title={Two}}\n")
        try bench.write("files/k1.txt", "text\n")
        try bench.write("day.jsonl", #"{"id":"E1","time":"2026-02-14T10:00:00+01:00","type":"eten"}"# + "\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "day.jsonl", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    private func damage(_ bench: Workbench, _ statement: String) throws {
        try bench.shell("sqlite3 store.db \"PRAGMA ignore_check_constraints = ON; \(statement)\"")
    }

    // MARK: Records

    @Test(arguments: [
        ["restore", "good.zip"], ["restore", "good.zip", "--mode", "replace"], ["import", "a.bib", "day.jsonl"],
        ["store", "repair", "--from", "good.zip"],
    ])
    func recordsThatAreGone_comeBack_andAreNoLongerMissed(command: [String]) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%' OR local_id = 'E1'")
        let told = try bench.tool(command)
        #expect(told.status == 0 || told.status == 3, "\(told)")
        #expect(try bench.shell("sqlite3 store.db \"\(Self.count)\"") == "1\n1\n")
        try bench.tool(exit: 0, "store", "check")
        if command[0] != "import" { #expect(try bench.digest() == digest) }
        // What is written twice is there once.
        _ = try bench.tool(command)
        #expect(try bench.shell("sqlite3 store.db \"\(Self.count)\"") == "1\n1\n")
    }

    private static let count =
        "SELECT count(*) FROM record WHERE fields LIKE '%One%'; SELECT count(*) FROM record WHERE local_id = 'E1'"

    @Test func ofTwoRecordsThatAreGone_theOtherStaysMissed() throws {
        let bench = try bench()
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%' OR fields LIKE '%Two%'")
        try bench.tool(exit: 0, "restore", "good.zip", "--match", "One")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        // Nor does an undo make it forgotten.
        try bench.tool(exit: 0, "undo")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        #expect(try bench.tool(exit: 4, "store", "repair").stderr.contains("1 record is gone"))
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func whatAnotherProgramAdds_makesNoRecordForgottenThatIsGone() throws {
        let bench = try bench()
        try damage(
            bench,
            """
            DELETE FROM record WHERE fields LIKE '%One%'; INSERT INTO record (change, zone, type, local_id, fields,
            created_at, modified_at, schema_version) SELECT 1000, zone, type, 'E2', fields, created_at, modified_at,
            schema_version FROM record WHERE local_id = 'E1'
            """)
        try bench.tool(exit: 0, "restore", "good.zip", "--match", "Two")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        try bench.tool(exit: 0, "restore", "good.zip")
        #expect(try !bench.tool(["store", "check"]).stderr.contains("is gone"))
    }

    @Test func manyLinesOfALog_bringBackThoseThatAreGone() throws {
        let bench = try Workbench()
        let lines = (100..<400).map { #"{"id":"E\#($0)","time":"2026-02-14T10:00:00+01:00","type":"eten"}"# }
        try bench.write("day.jsonl", lines.map { "\($0)\n" }.joined())
        try bench.tool(exit: 0, "import", "--create", "day.jsonl")
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM record WHERE local_id LIKE 'E_50'")
        #expect(try bench.tool(exit: 0, "import", "day.jsonl").stderr.contains("3 added"))
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test func aSyncAndADigest_nameARecordThatIsGone() throws {
        let bench = try bench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync")
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%'")
        for command in [["sync"], ["sync", "--dry-run"], ["store", "digest"]] {
            let told = try bench.tool(command)
            #expect(told.status == 3 && told.stderr.contains("1 record is gone"), "\(command): \(told)")
        }
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.tool(exit: 0, "sync")
        try bench.tool(exit: 0, "store", "check")
    }

    // MARK: Rows that nobody can read

    @Test(arguments: [
        ("UPDATE record SET fields = '{x' WHERE fields LIKE '%One%'", "{x"),
        ("UPDATE asset SET sha256 = 'x'; DELETE FROM witness WHERE place = 'asset'", "k1.txt"),
        ("INSERT INTO setting (key, value, modified_at) VALUES ('theme', '{x', 1)", "{x"),
    ])
    func aRowThatNobodyCanRead_isGivenUp_andItsValuesAreKept(broken: String, kept: String) throws {
        let bench = try bench()
        try damage(bench, broken)
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("store repair --accept"))
        try bench.tool(exit: 4, "store", "repair")
        try bench.tool(exit: 0, "store", "repair", "--accept", "--dry-run")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.shell("cat store.db.damaged-*").contains(kept))
        try bench.tool(exit: 0, "export", "-o", "after.zip")
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
    }

    @Test func aRowThatARestoreSetAside_isGivenUp() throws {
        let bench = try bench()
        try damage(bench, "UPDATE record SET fields = '{x' WHERE fields LIKE '%One%'")
        try bench.tool(exit: 3, "export", "-o", "bad.zip")
        try bench.tool(exit: 3, "restore", "bad.zip", "--create", "--store", "new.db")
        try bench.tool(exit: 3, "export", "--store", "new.db", "-o", "worse.zip")
        try bench.tool(exit: 0, "store", "repair", "--accept", "--store", "new.db")
        try bench.tool(exit: 0, "export", "--store", "new.db", "-o", "better.zip")
        #expect(try bench.shell("cat new.db.damaged-*").contains("{x"))
    }

    @Test(arguments: ["size = -1", "sha256 = 'x'", "local_only = 7", "size = -1, sha256 = 'x', local_only = -3"])
    func anImpossibleValueOfAnAttachment_isMendedFromTheBackup(value: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try damage(bench, "UPDATE asset SET \(value)")
        try bench.write("more/k2.txt", "more\n")
        // It costs only itself.
        try bench.tool(exit: 3, "import", "--attachments", "more")
        #expect(try bench.text("store.db.assets/Attachments/k2.txt") == "more\n")
        try bench.shell("$T -q undo || true")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test func aRecordWithTwoRows_isNamed_andTheNewerOneStays() throws {
        let bench = try bench()
        let digest = try bench.digest()
        let columns =
            "zone, name, type, local_id, fields, field_times, created_at, modified_at, device_id, schema_version"
        try damage(
            bench,
            """
            UPDATE counter SET value = value + 1;
            INSERT INTO local_key SELECT key, value, content FROM local_key, counter
            WHERE change = (SELECT change FROM record WHERE local_id = 'E1');
            INSERT INTO record (change, \(columns), local_only) SELECT value, \(columns), 0 FROM record, counter
            WHERE local_id = 'E1';
            UPDATE record SET fields = json_set(fields, '$.note', 'old') WHERE local_id = 'E1'
            AND change < (SELECT value FROM counter)
            """)
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("OllieEvents/E1"))
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    // MARK: Files

    @Test func aFileThatIsGone_isDamageForARepair_andIsGivenUp() throws {
        let bench = try bench()
        try bench.shell("rm -r store.db.assets")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("store repair --accept"))
        try bench.tool(exit: 0, "export", "-o", "without.zip", "--only", "publications")
        let told = try bench.tool(exit: 4, "store", "repair", "--from", "without.zip")
        #expect(told.stderr.contains("name another backup with --from"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "repair", "--accept", "--dry-run")
        try bench.tool(exit: 4, "store", "check")
        #expect(try bench.tool(exit: 0, "store", "repair", "--accept").stdout.contains("was given up"))
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "export", "-o", "after.zip")
        _ = try bench.tool(["undo"])
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.tool(exit: 0, "store", "check")
    }

    /// Gone, rotten, shorter or no file at all: the bytes that the store remembers come back, from any kind of backup.
    @Test(arguments: ["good.zip", "copy.db"])
    func filesThatAreGoneOrRotten_comeBackFromABackup(_ backup: String) throws {
        let bench = try bench()
        try bench.shell("cp store.db copy.db; cp -rp store.db.assets copy.db.assets")
        let file = "store.db.assets/Attachments/k1.txt"
        for harm in [
            "rm \(file)", "touch -r \(file) t; printf 'tezt\n' > \(file); touch -r t \(file)",
            "touch -r \(file) t; : > \(file); touch -r t \(file)", "rm \(file); mkdir \(file)",
        ] {
            try bench.shell(harm)
            try bench.tool(exit: 4, "store", "check")
            let plan = try bench.tool(exit: 0, "store", "repair", "--from", backup, "--dry-run")
            try bench.tool(exit: 4, "store", "check")
            let done = try bench.tool(exit: 0, "store", "repair", "--from", backup)
            #expect(plan.stdout == done.stdout && done.stdout.contains("its file was restored"), "\(harm)")
            #expect(try bench.text(file) == "text\n")
            try bench.tool(exit: 0, "store", "check")
        }
        // What an app has written is its own.
        try bench.shell("echo more >> \(file); touch -d '2030-01-01' \(file)")
        try bench.tool(exit: 3, "store", "repair", "--from", backup)
        #expect(try bench.text(file) == "text\nmore\n")
    }

    @Test func aFileThatIsGivenUp_comesBackFromTheHub() throws {
        let bench = try bench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync")
        try bench.shell("rm store.db.assets/Attachments/k1.txt")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "sync")
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aNight_namesTheCommandForAFileThatIsGone() throws {
        let bench = try bench()
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; rm store.db.assets/Attachments/k1.txt")
        try bench.write("n.toml", "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.last = 1\n")
        let night = try bench.tool(exit: 3, "run", "--config", "n.toml")
        #expect(night.stderr.contains("'backup-tool store check --store"), "\(night.stderr)")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "run", "--config", "n.toml")
    }

    @Test func aLinkedFileWithoutARow_isNamed_andTakenIn() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM asset")
        let told = try bench.tool(exit: 3, "store", "check")
        #expect(told.stderr.contains("'backup-tool store adopt --new'"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "adopt", "Attachments/k1.txt")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        // The file was there before, and an undo leaves it.
        try bench.tool(exit: 0, "undo")
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
    }
}
