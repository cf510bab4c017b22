import BackupKit
import Glibc
import TestSupport
import Testing

/// What `store check` finds, and that its advice works when it is followed.
struct CommandsStoreCheckTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={One}, year=2001}\n@misc{other, title={Other}}\n")
        try bench.write("b.bib", "@misc{k, title={Two}, year=2002}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 3, "import", "b.bib")
        try bench.tool(exit: 0, "store", "check")
        return bench
    }

    private func sql(_ bench: Workbench, _ text: String) throws {
        try bench.shell("sqlite3 store.db \"\(text)\"")
    }

    /// The first page is damaged, so the file says no more that it is a store.
    @Test(arguments: [true, false])
    func aStoreThatIsDamagedAtItsBeginning_isNotReplacedByAnEmptyOne(hasFolder: Bool) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        let digest = try bench.digest()
        try bench.shell("rm -f store.db-*; printf X | dd of=store.db bs=1 seek=2 conv=notrunc status=none")
        if !hasFolder { try bench.shell("rm -r store.db.assets") }
        let damaged = try bench.bytes("store.db")
        for line in ["store check", "store info", "export -o e.zip", "store repair --from good.zip", "import a.bib"] {
            let told = try bench.tool(words: line.split(separator: " ").map(String.init), exit: 10).stderr
            #expect(told.contains("damaged at its beginning") && !told.contains("store init"), "\(line): \(told)")
            let advice = try #require(told.firstMatch(of: /'backup-tool (restore BACKUP [^']+)'/), "\(told)").1
            try bench.shell("rm -rf NEW*; $T -q \(advice.replacing("BACKUP", with: "good.zip")) || [ $? = 3 ]")
            #expect(try bench.digest("NEW") == digest)
        }
        #expect(try bench.bytes("store.db") == damaged)
        try bench.write("notes.txt", "no store\n")
        #expect(try bench.tool(exit: 10, "store", "check", "--store", "notes.txt").stderr.contains("is not a store"))
    }

    @Test func aRepairKeepsTheConflictOfWorksThatItBringsBack() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        try sql(bench, "DELETE FROM record WHERE json_extract(fields, '$.citeKey') = 'k'")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool("store", "repair", "--from", "good.zip")
        #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.count == 1)
        try bench.tool(exit: 0, "store", "check")
    }

    /// It goes to the hub when its works do.
    @Test func aConflictIsNotGivenToTheHubByHand() throws {
        let bench = try bench()
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Conflict'\"")
        try sql(bench, "UPDATE record SET local_only = 1, row_hash = NULL WHERE type = 'Conflict'")
        let told = try bench.tool("store", "enable-cloud", id.replacing("\n", with: ""))
        #expect(told.status == 1 && told.stderr.contains("conflicts list"), "\(told.stderr)")
    }

    @Test func aConflictWithoutANumber_orWithTwo_getsOne() throws {
        let twice = """
            ALTER TABLE conflict_number RENAME TO old;
            CREATE TABLE conflict_number (id INTEGER PRIMARY KEY, record_zone TEXT, record_name TEXT);
            INSERT INTO conflict_number SELECT * FROM old UNION SELECT id + 1, record_zone, record_name FROM old;
            """
        let damages: [(String, String, Int32)] = [
            ("DELETE FROM conflict_number", "has no number", 3), (twice, "has several numbers", 4),
        ]
        for (damage, message, code) in damages {
            let bench = try bench()
            try sql(bench, damage)
            let check = try bench.tool(exit: code, "store", "check")
            #expect(check.stderr.contains(message), "\(check.stderr)")
            try bench.tool(exit: 0, "store", "repair")
            try bench.tool(exit: 0, "store", "check")
            #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.count == 1)
        }
    }

    @Test func aConflictOfWorksThatNobodyKnows_isNamedAndRemoved_oneOfDeletedWorksIsNot() throws {
        let bench = try bench()
        let ids = try bench.shell(
            "sqlite3 store.db \"SELECT local_id FROM record WHERE json_extract(fields, '$.citeKey') = 'k'\""
        ).split(separator: "\n").map(String.init)
        try bench.tool(["store", "delete"] + ids)
        try bench.tool(exit: 0, "store", "check")
        try sql(bench, "DELETE FROM batch")
        try sql(bench, "DELETE FROM batch_record")
        let list = ids.map { "'\($0)'" }.joined(separator: ",")
        try sql(
            bench,
            "DELETE FROM local_key WHERE change IN (SELECT change FROM record WHERE name IN (\(list)) OR local_id IN (\(list)));"
                + "DELETE FROM record WHERE name IN (\(list)) OR local_id IN (\(list))")
        let check = try bench.tool(exit: 3, "store", "check")
        #expect(check.stderr.contains("neither of the two works"), "\(check.stderr)")
        let repair = try bench.tool(exit: 0, "store", "repair")
        #expect(repair.stdout.contains("was removed from this store: it has neither"), "\(repair.stdout)")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aDecisionThatNobodyKnows_isNamed() throws {
        let bench = try bench()
        let id =
            "Library/"
            + (try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Conflict'\"")
                .filter { $0 != "\n" })
        try sql(
            bench,
            "UPDATE record SET row_hash = NULL, fields = json_set(fields, '$.decision', 'later') WHERE type = 'Conflict'"
        )
        try bench.tool(exit: 3, "store", "repair")
        #expect(
            try bench.tool(exit: 3, "store", "check").stderr.contains(
                "\(id): the conflict has a decision"))
        #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.count == 1)
    }

    /// Its own rows may be sound, but nobody can know what was meant.
    @Test func aStoreThatDoesNotSayItsSchema_isReadAndNeverWritten() throws {
        for damage in [
            "DELETE FROM meta WHERE key = 'schema_version'", "UPDATE meta SET value = 'x' WHERE key = 'schema_version'",
            "DELETE FROM meta",
        ] {
            let bench = try bench()
            let count = try bench.shell("sqlite3 store.db 'SELECT count(*) FROM record WHERE deleted_at IS NULL'")
            try sql(bench, damage)
            for words in [["dedup"], ["undo"], ["store", "repair"]] {
                let refused = try bench.tool(words)
                #expect(
                    refused.status == 4 && refused.stderr.contains("does not say which schema"), "\(refused.stderr)")
            }
            let check = try bench.tool("store", "check")
            // All that is in it comes along, also what no backup has.
            #expect(check.status != 0 && check.stderr.contains("'backup-tool export -o DIR'"), "\(check.stderr)")
            try bench.tool("export", "-q", "-o", "out")
            #expect(try bench.exists("out/library.bib"))
            try bench.tool("restore", "out", "--create", "--store", "new.db")
            let restored = try bench.shell("sqlite3 new.db 'SELECT count(*) FROM record WHERE deleted_at IS NULL'")
            #expect(restored == count)
            try bench.tool(exit: 0, "store", "check", "--store", "new.db")
        }
    }

    /// What the check and the repair say of pages that SQLite cannot read is done to the letter.
    @Test func theAdviceForPagesThatCannotBeRead_bringsTheBackupIntoANewStore() throws {
        let bench = try bench()
        try bench.write("p/k.pdf", "%PDF k")
        try bench.write("settings.json", "{\"theme\": \"dark\"}")
        try bench.tool("import", "--attachments", "p")
        try bench.tool(exit: 0, "import", "--only", "settings", "settings.json")
        try bench.tool(exit: 0, "export", "-q", "-o", "good.tar.zst")
        let digest = try bench.digest()
        let pages = try bench.shell(
            "sqlite3 store.db 'PRAGMA wal_checkpoint(TRUNCATE); PRAGMA page_count'")
        let count = Int(pages.split(separator: "\n").last ?? "") ?? 0
        var random = SeededGenerator(seed: testSeed())
        for round in 0..<(isTorture ? 50 : 5) {
            countRounds()
            try bench.shell(
                "rm -rf bad.db* new.db*; cp -a store.db bad.db; cp -a store.db.assets bad.db.assets")
            // In the first round half of it is gone.
            if round == 0 { try bench.shell("truncate -s \(count / 2 * 8192) bad.db") }
            for _ in 0..<(round == 0 ? 0 : 1 + random.below(4)) {
                try bench.shell(
                    "dd if=/dev/urandom of=bad.db bs=4096 count=1 seek=\(1 + random.below(count - 1)) conv=notrunc status=none"
                )
            }
            for command in [["store", "check"], ["store", "repair", "--from", "good.tar.zst"]] {
                let result = try bench.tool(command + ["--store", "bad.db"])
                let advice = result.stderr.firstMatch(of: /'backup-tool (restore BACKUP --create --store NEW[^']*)'/)
                #expect(round > 0 || command[1] == "repair" || advice != nil, "\(command): \(result.stderr)")
                if result.status == 0 { continue }
                // Where SQLite can read all pages, the row or the index is named, with the remedy of its own.
                guard let advice else {
                    let leadsThere = result.stderr.contains("'backup-tool store check' names the command")
                    #expect(result.status == 3 || result.status == 4 || leadsThere, "\(command): \(result.stderr)")
                    #expect(command[1] == "repair" || result.status == 4, "\(result.stderr)")
                    continue
                }
                try bench.shell("rm -rf new.db*")
                let words = advice.1.split(separator: " ").map(String.init).map {
                    $0 == "BACKUP" ? "good.tar.zst" : $0 == "NEW" ? "new.db" : $0
                }
                let restored = try bench.tool(words)
                #expect([0, 3].contains(restored.status), "round \(round), \(words): \(restored.stderr)")
                #expect(try bench.digest("new.db") == digest)
                try bench.tool(exit: 0, "store", "check", "--store", "new.db")
            }
        }
    }

    @Test func aFileThatMayNotBeRead_isNotCalledDamaged() throws {
        let bench = try bench()
        try bench.write("files/k.txt", "one\n")
        try bench.tool("import", "a.bib", "--attachments", "files")
        try bench.shell("chmod 000 store.db.assets/Attachments/k.txt")
        // Who may do everything lets go of that.
        let unable = geteuid() == 0 ? "setpriv --bounding-set=-dac_override,-dac_read_search" : ""
        let told = try bench.shell("code=0; \(unable) $T store check 2>&1 || code=$?; [ $code = 3 ]")
        #expect(told.contains("Attachments/k.txt: was not checked"), "\(told)")
        #expect(told.contains("change its permissions") && !told.contains("repair"), "\(told)")
    }
}
