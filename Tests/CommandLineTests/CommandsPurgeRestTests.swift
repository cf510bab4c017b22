import BackupKit
import TestSupport
import Testing

/// What a purge leaves to others: to an undo, to backups that it searches, to the next one.
struct CommandsPurgeRestTests {
    private static let secret = "SECRETWORD"
    private static let purgeAll = ["store", "purge", "--deleted-before", "2999-01-01", "--confirm", "--with-files"]

    private func id(of word: String, _ bench: Workbench) throws -> String {
        let found = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%\(word)%'\"")
        return try #require(found.split(separator: "\n").first.map(String.init))
    }

    private func hits(_ bench: Workbench) throws -> String {
        try bench.shell("grep -rlaF '\(Self.secret)' store.db* || true")
    }

    /// A store with a note that holds the word, and one that does not.
    private func benchWithNotes() throws -> Workbench {
        let bench = try Workbench()
        try bench.write(
            "notes.json", "[{\"citeKey\":\"a\",\"note\":\"\(Self.secret)\"},{\"citeKey\":\"b\",\"note\":\"other\"}]")
        try bench.tool(exit: 0, "import", "--create", "notes.json")
        return bench
    }

    @Test func whatAPurgeLeaves_isSound() throws {
        let bench = try Workbench()
        try bench.write("l.bib", ["a", "b", "c"].map { "@misc{\($0), title={On \($0)}, year=2001}\n" }.joined())
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        let id = try id(of: "{On a}", bench)
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool(exit: 0, "store", "purge", id, "--confirm")
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM ancestor WHERE row_hash IS NULL'") == "0\n")
        try bench.tool(exit: 0, "store", "purge", "--allow-return", id)
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "import", "l.bib", "--overwrite")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool("sync")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.shell("$T export -q -o out; grep -c 'On a' out/library.bib") == "1\n")
    }

    /// What a purge removed is not reported as damaged.
    @Test func aPurgeBeforeTheDeleteWasSent_isNoDamage() throws {
        let bench = try Workbench()
        try bench.write("l.bib", "@misc{x, title={One}, doi={10.1/a1}, abstract={one}}\n")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for store in ["store.db", "b.db"] { try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", store) }
        try bench.write("l.bib", "@misc{x, title={One}, doi={10.1/a1}, abstract={two}}\n")
        try bench.tool(exit: 0, "import", "--store", "b.db", "l.bib")
        try bench.tool(exit: 0, "sync", "--store", "b.db")
        let id = try id(of: "{One}", bench)
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool("store", "purge", id, "--confirm")
        let told = try bench.tool("sync")
        #expect(told.stderr.contains("before it was purged here") && !told.stderr.contains("was damaged"), "\(told)")
    }

    @Test func theFileThatADeletedRecordLinks_staysForItsUndo() throws {
        let bench = try Workbench()
        try bench.write("p.pdf", "%PDF\n")
        try bench.write("l.bib", "@misc{x, title={One}, file={:p.pdf:PDF}}\n@misc{y, title={Two}, file={:p.pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        let ids = try ["One", "Two"].map { try id(of: "{\($0)}", bench) }
        for id in ids { try bench.tool(exit: 0, "store", "delete", id) }
        let done = try bench.tool(exit: 0, "store", "purge", ids[0], "--confirm", "--with-files")
        #expect(done.stderr.contains("1 record, 1 older version, 0 files"), "\(done.stderr)")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.shell("cat store.db.assets/Attachments/p.pdf") == "%PDF\n")
        try bench.tool(exit: 0, "store", "delete", ids[1])
        try bench.tool(exit: 0, Self.purgeAll)
        #expect(try bench.shell("find store.db.assets -name '*.pdf'") == "")
        try checkSound(bench.path("store.db"))
    }

    @Test(arguments: [
        "restore e.zip", "restore e.zip --mode replace", "restore e.zip --resurrect",
        "restore e.zip --sync-policy quarantine", "import e.zip",
    ])
    func whatABackupHasInQuarantine_staysPurged(command: String) throws {
        let bench = try benchWithNotes()
        try bench.tool(exit: 0, "export", "-o", "old.zip")
        let note = try id(of: Self.secret, bench)
        try bench.tool(exit: 0, "store", "delete", note)
        try bench.tool("restore", "old.zip", "--sync-policy", "quarantine")
        try bench.tool("export", "-o", "e.zip")
        try bench.tool(exit: 0, Self.purgeAll)
        #expect(try hits(bench) == "")
        let done = try bench.tool(exit: 3, command.split(separator: " ").map(String.init))
        #expect(try hits(bench) == "")
        let permission = "backup-tool store purge --allow-return "
        #expect(done.stderr.contains(permission), "\(done.stderr)")
        let allowed = done.stderr.split(separator: "'").first { $0.hasPrefix(permission) }
        try bench.tool(exit: 0, #require(allowed).split(separator: " ").dropFirst().map { String($0) })
        try bench.tool(command.split(separator: " ").map(String.init))
        #expect(try hits(bench) != "")
    }

    @Test(arguments: [
        "$T export --format imbib -o e.zip", "$T export -o e && rm e/records.jsonl",
        "$T export -o e && : > e/records.jsonl", "$T export -o e && sed -i '1s/./x/' e/records.jsonl",
        "mkdir e && cp l.bib e",
    ])
    func aBackupThatCannotBeSearched_isNamed(making: String) throws {
        let bench = try Workbench()
        try bench.write("l.bib", "@misc{x, title={\(Self.secret)}}\n")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.shell(making)
        try bench.tool(exit: 0, "store", "delete", id(of: Self.secret, bench))
        let source = making.contains("e.zip") ? "e.zip" : "e"
        let done = try bench.tool(exit: 3, Self.purgeAll + ["--source", source])
        #expect(done.stderr.contains("\(source): may hold purged records"), "\(done.stderr)")
        #expect(done.stderr.contains("Removed for good: 1 record"), "\(done.stderr)")
        #expect(try hits(bench) == "")
    }

    @Test func aPurgeThatWasCutShort_isNamedByTheNextOne() throws {
        let bench = try benchWithNotes()
        try bench.shell("sqlite3 store.db \"INSERT INTO meta VALUES ('purge_pending', '[]')\"")
        #expect(try bench.tool(exit: 3, "store", "purge").stderr.contains("is not finished: --confirm"))
        #expect(try bench.tool(exit: 0, "store", "purge", "--confirm").stderr.contains("is finished"))
        try checkSound(bench.path("store.db"))
    }

    @Test func whoIsToldThatARecordStaysDeleted_isToldWhatBringsItBack() throws {
        let bench = try benchWithNotes()
        try bench.tool(exit: 0, "export", "-o", "e.zip")
        let note = try id(of: Self.secret, bench)
        try bench.tool(exit: 0, "store", "delete", note)
        try bench.tool(exit: 0, Self.purgeAll)
        for words in [["--mode", "replace"], ["--match", note]] {
            let done = try bench.tool(exit: 3, ["restore", "e.zip"] + words)
            #expect(done.stderr.contains("--allow-return") && !done.stderr.contains("--resurrect"), "\(done.stderr)")
        }
    }
}
