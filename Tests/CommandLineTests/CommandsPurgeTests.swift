import BackupKit
import TestSupport
import Testing

/// A delete that is a delete: no file of the store holds what was purged.
struct CommandsPurgeTests {
    private static let secret = "Hepatitis"

    /// A store in which a record was imported, changed, put in quarantine and deleted, and a backup that has it.
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{other, title={Other}}\n")
        func log(_ note: String) throws {
            try bench.write(
                "2026-02-14.jsonl",
                "{\"id\":\"E1\",\"time\":\"2026-02-14T10:00:00+01:00\",\"type\":\"medicatie\",\"note\":\"\(Self.secret) \(note)\"}\n"
            )
        }
        try log("first")
        try bench.tool(exit: 0, "import", "a.bib", "2026-02-14.jsonl")
        try bench.tool(exit: 0, "export", "-o", "old.tar.zst")
        try log("second")
        try bench.tool(exit: 0, "import", "2026-02-14.jsonl", "--overwrite")
        try bench.tool("restore", "old.tar.zst", "--sync-policy", "quarantine", "--match", Self.secret)
        try bench.tool(exit: 0, "store", "delete", Self.id)
        return bench
    }

    private static let id = "OllieEvents/E1"

    /// Files of the store that hold the text.
    private func hits(_ bench: Workbench) throws -> String {
        try bench.shell("grep -rlaF '\(Self.secret)' store.db* || true")
    }

    @Test func afterAPurgeNoFileOfTheStoreHoldsTheRecord_andTheTombstoneStays() throws {
        let bench = try bench()
        #expect(try !hits(bench).isEmpty)
        let id = Self.id
        let plan = try bench.tool(exit: 3, "store", "purge", id)
        #expect(plan.stderr.contains("--confirm"), "\(plan.stderr)")
        #expect(try !hits(bench).isEmpty)
        let done = try bench.tool(exit: 3, "store", "purge", id, "--confirm", "--source", "old.tar.zst")
        #expect(done.stderr.contains("old.tar.zst") && done.stdout.contains(id), "\(done.stderr)")
        #expect(try hits(bench) == "")
        let tombstones = try bench.shell(
            "sqlite3 store.db 'SELECT count(*) FROM record WHERE deleted_at IS NOT NULL'")
        #expect(tombstones.hasPrefix("1"))
        try bench.tool(exit: 0, "store", "check")
        // Neither an undo nor a restore brings it back.
        for _ in 0..<3 { try bench.tool("undo") }
        #expect(try hits(bench) == "")
        try bench.tool("restore", "old.tar.zst")
        #expect(try hits(bench) == "")
        try checkSound(bench.path("store.db"))
    }

    /// What earlier commands wrote over lies in pages that nothing uses any more, and nobody has emptied those.
    @Test func aPurgeClearsThePagesThatEarlierCommandsLeftFree() throws {
        let bench = try bench()
        let words = String(repeating: "\(Self.secret) ", count: 5000)
        for note in [words, "short"] {
            try bench.write(
                "2026-02-15.jsonl",
                #"{"id":"E2","time":"2026-02-15T10:00:00+01:00","type":"medicatie","note":"\#(note)"}"# + "\n")
            try bench.tool(exit: 0, "import", "2026-02-15.jsonl", "--overwrite")
        }
        try bench.tool(exit: 0, "store", "delete", "OllieEvents/E2")
        // The history as an older version of the tool forgot it: rows gone, their pages as they were.
        try bench.shell(
            "sqlite3 store.db 'PRAGMA secure_delete = OFF; DELETE FROM batch_record; PRAGMA wal_checkpoint(TRUNCATE)'")
        #expect(try !hits(bench).isEmpty)
        try bench.tool("store", "purge", Self.id, "OllieEvents/E2", "--confirm")
        #expect(try hits(bench) == "")
    }

    @Test func aSourceThatCannotBeOpened_isReportedBeforeAnythingIsRemoved() throws {
        let bench = try bench()
        let before = try hits(bench)
        try bench.tool(exit: 10, "store", "purge", Self.id, "--confirm", "--source", "old.tar.zst", "--source", "nope")
        #expect(try hits(bench) == before)
    }

    @Test func aPurgeByTimeTakesWhatWasDeletedBefore_andWhatIsAliveIsRefused() throws {
        let bench = try bench()
        let other =
            try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
            .split(
                separator: "\n"
            ).first.map(String.init) ?? ""
        #expect(
            try bench.tool(exit: 1, "store", "purge", other, "--confirm").stderr.contains(
                "is not deleted"))
        try bench.tool(exit: 0, "store", "purge", "--deleted-before", "30d", "--confirm")
        #expect(try !hits(bench).isEmpty)
        try bench.tool(exit: 0, "store", "purge", "--deleted-before", "2999-01-01", "--confirm")
        #expect(try hits(bench) == "")
        try bench.tool(exit: 64, "store", "purge", "--confirm")
    }

    @Test func aSecondPurgeOfTheSame_removesNothing_andSaysSo() throws {
        let bench = try bench()
        let all = ["--deleted-before", "2999-01-01"]
        for words in [[Self.id], all] { #expect(try bench.tool(["store", "purge"] + words).status == 3, "\(words)") }
        #expect(try bench.tool(exit: 0, "store", "purge", Self.id, "--confirm").stderr.contains("1 record, "))
        for words in [[Self.id], all, [Self.id, "--dry-run"], [Self.id, "--confirm"], all + ["--confirm"]] {
            let again = try bench.tool(exit: 0, ["store", "purge"] + words)
            #expect(again.stdout == "" && again.stderr == "There is nothing to remove.\n", "\(words): \(again.stderr)")
        }
        let json = try bench.json(exit: 0, "store", "purge", Self.id)
        #expect(json["records"]?.array?.isEmpty == true)
        // Who has it is asked as before.
        let holder = try bench.tool(exit: 3, "store", "purge", Self.id, "--source", "old.tar.zst").stderr
        #expect(holder.contains("still holds 1 of these records"), "\(holder)")
        // One that came back and was deleted again is removed again.
        try bench.tool(exit: 0, "store", "purge", "--allow-return", Self.id)
        try bench.tool("restore", "old.tar.zst", "--match", Self.secret, "--resurrect")
        try bench.tool(exit: 0, "store", "delete", Self.id)
        #expect(try bench.tool(exit: 0, "store", "purge", Self.id, "--confirm").stderr.contains("1 record, "))
    }

    /// The tombstone that others get of what is kept on this device only is of a record that is here.
    @Test func whatIsKeptOnThisDeviceOnly_isNotPurgedForEver() throws {
        let bench = try bench()
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
            .dropLast()
        try bench.tool(exit: 0, "store", "set-local", String(id))
        let all = ["store", "purge", "--deleted-before", "2999-01-01"]
        try bench.tool(all + ["--confirm"])
        let again = try bench.tool(exit: 0, all)
        #expect(again.stderr == "There is nothing to remove.\n", "\(again.stdout)\(again.stderr)")
        try bench.tool(exit: 0, "store", "check")
    }

    /// Two works with one key, one of which has a file of which the store has two versions, all of it changed, decided,
    /// undone, put in quarantine and deleted.
    private func libraryBench() throws -> (bench: Workbench, ids: [String]) {
        let bench = try Workbench()
        func write(_ folder: String, _ title: String, _ bytes: String) throws {
            let file = "file = {:\(Self.secret).pdf:PDF}"
            try bench.write(
                "\(folder)/refs.bib",
                "@misc{\(Self.secret)2020, title={\(Self.secret) \(title)}, \(file)}\n@misc{other, title={Other}}\n"
            )
            try bench.write("\(folder)/\(Self.secret).pdf", "%PDF \(Self.secret) \(bytes)\n")
        }
        try write("a", "one", "first")
        try write("b", "two", "second")
        try bench.tool(exit: 0, "import", "a/refs.bib")
        try bench.tool(exit: 0, "export", "-o", "old.tar.zst")
        try bench.tool(exit: 3, "import", "b/refs.bib")
        for (kind, choice) in [("publication", "rename-incoming"), ("attachment", "keep-incoming")] {
            let waiting = try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array ?? []
            let number = try #require(waiting.first { $0["kind"]?.string == kind }?["id"]?.integer)
            try bench.tool(exit: 0, "conflicts", "resolve", String(number), "--with", choice)
            try bench.tool(exit: 0, "undo")
        }
        try bench.write("a/\(Self.secret).pdf", "%PDF \(Self.secret) third\n")
        try bench.tool("import", "a/refs.bib", "--overwrite")
        try bench.tool("restore", "old.tar.zst", "--sync-policy", "quarantine")
        let ids = try bench.shell(
            "sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%\(Self.secret)%' AND type = 'Publication'\""
        ).split(separator: "\n").map(String.init)
        #expect(ids.count == 2)
        #expect(try bench.tool(["store", "delete"] + ids).status == 0)
        return (bench, ids)
    }

    @Test func afterAPurgeOfPublicationsWithFilesAndConflicts_noFileOfTheStoreHoldsThem() throws {
        let (bench, ids) = try libraryBench()
        let names = "find store.db* -name '*\(Self.secret)*'"
        #expect(try !bench.shell(names).isEmpty)
        let plan = try bench.tool(["store", "purge", "--with-files", "--dry-run"] + ids)
        let done = try bench.tool(["store", "purge", "--with-files", "--confirm"] + ids)
        #expect(
            done.status == 0 && plan.stdout == done.stdout, "\(plan.stdout)\(done.stdout)\(done.stderr)")
        #expect(try hits(bench) == "")
        #expect(try bench.shell(names) == "")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.tool(exit: 0, "conflicts", "list").stdout == "")
        for _ in 0..<6 { try bench.tool("undo") }
        #expect(try hits(bench) == "")
        try bench.tool("store", "check")
    }

    @Test func whatOthersLinkOrListStays() throws {
        let (bench, ids) = try libraryBench()
        let files = try bench.files("store.db.assets").filter {
            $0.hasSuffix(".pdf") && !$0.hasPrefix("Quarantine")
        }
        #expect(files.count >= 2)
        try bench.tool(["store", "purge", "--confirm", ids[0]])
        // The other work of that key is deleted too, but nobody has asked for it.
        #expect(try !hits(bench).isEmpty)
        for file in files { #expect(try bench.exists("store.db.assets/\(file)"), "\(file)") }
        try bench.tool("store", "check")
    }

    @Test func theUsualVaultIsSearched_whereverItIsNamed() throws {
        let bench = try bench()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; mkdir c")
        try bench.makeCheapVault()
        try bench.shell("mv v home@v")
        try bench.tool(exit: 0, "import", "2026-02-14.jsonl", "--overwrite")
        let password = ["BACKUP_TOOL_PASSWORD_FILE": "pw"]
        try bench.tool(["vault", "backup", "--vault", "home@v"], environment: password)
        try bench.tool(exit: 0, "store", "delete", Self.id)
        try bench.write("c/here.toml", "vault = '../home@v'\npassword-file = '../pw'\n")
        func holders(_ words: [String], _ environment: [String: String]) throws -> String {
            let result = try bench.tool(
                ["store", "purge", Self.id, "--dry-run"] + words, environment: environment)
            #expect(result.status == 3, "\(words): \(result.stderr)")
            return result.stderr
        }
        #expect(
            try holders(["--config", "c/here.toml"], [:]).contains("still holds 1 of these records"))
        #expect(
            try holders([], password.merging(["BACKUP_TOOL_VAULT": "home@v"]) { $1 }).contains(
                "still holds 1"))
        #expect(
            try bench.tool(exit: 0, "store", "purge", Self.id, "--dry-run").stderr.contains("still holds")
                == false)
        // One that is not there is found out before anything is gone.
        let missing = password.merging(["BACKUP_TOOL_VAULT": "gone"]) { $1 }
        try bench.tool(exit: 10, "store", "purge", Self.id, "--confirm", environment: missing)
        #expect(try !hits(bench).isEmpty)
    }

    @Test func aPurgeThatIsKilledIsFinishedByTheNext() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let bench = try bench()
        let id = Self.id
        try bench.shell("mkdir keep; cp -r store.db* keep")
        for round in 0..<(isTorture ? 100 : 6) {
            try bench.shell("rm -rf store.db*; cp -r keep/. .")
            countRounds()
            let wait = Double(random.below(60)) / 1000
            try bench.shell(
                "timeout -s KILL \(wait + 0.001) \"$T\" -q store purge '\(id)' --confirm || true")
            let message = Comment(rawValue: "seed \(seed), round \(round)")
            let check = try bench.tool("store", "check")
            #expect(check.status == 0 || check.stderr.contains("store purge"), message)
            try bench.tool(exit: 0, "store", "purge", id, "--confirm")
            #expect(try hits(bench) == "", message)
            try bench.tool(exit: 0, "store", "check")
        }
    }

    /// A delete would put it into quarantine here, for the deleting device has not seen it.
    @Test func whatAnotherDeviceWroteOfAPurgedRecord_isKeptNowhereHere() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={SECRETWORD}, year={2001}}\n")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "import", "--create", "--store", store, "a.bib") }
        try bench.tool(exit: 0, "sync", "--store", "b.db", "--hub", "hub.db")
        let id = try bench.shell("sqlite3 a.db \"SELECT local_id FROM record WHERE type='Publication'\"").dropLast()
        try bench.shell("sleep 1.1; \"$T\" store delete \(id) --store a.db")
        try bench.tool(exit: 0, "store", "purge", String(id), "--confirm", "--store", "a.db")
        let told = try bench.tool(exit: 3, "sync", "--store", "a.db", "--hub", "hub.db").stderr
        #expect(told.contains("before it was purged here"), "\(told)")
        #expect(try bench.shell("grep -laF SECRETWORD a.db* || true") == "")
        try bench.tool(exit: 0, "sync", "--store", "a.db")
    }
}
