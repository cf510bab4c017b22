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
        let tombstones = try bench.shell("sqlite3 store.db 'SELECT count(*) FROM record WHERE deleted_at IS NOT NULL'")
        #expect(tombstones.hasPrefix("1"))
        try bench.tool(exit: 0, "store", "check")
        // Neither an undo nor a restore brings it back.
        for _ in 0..<3 { try bench.tool("undo") }
        #expect(try hits(bench) == "")
        try bench.tool("restore", "old.tar.zst")
        #expect(try hits(bench) == "")
        try checkSound(bench.path("store.db"))
    }

    @Test func aPurgeByTimeTakesWhatWasDeletedBefore_andWhatIsAliveIsRefused() throws {
        let bench = try bench()
        let other =
            try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").split(
                separator: "\n"
            ).first.map(String.init) ?? ""
        #expect(try bench.tool(exit: 1, "store", "purge", other, "--confirm").stderr.contains("is not deleted"))
        try bench.tool(exit: 0, "store", "purge", "--deleted-before", "30d", "--confirm")
        #expect(try !hits(bench).isEmpty)
        try bench.tool(exit: 0, "store", "purge", "--deleted-before", "2999-01-01", "--confirm")
        #expect(try hits(bench) == "")
        try bench.tool(exit: 64, "store", "purge", "--confirm")
    }

    @Test func aPurgeThatIsKilledIsFinishedByTheNext() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        let bench = try bench()
        let id = Self.id
        try bench.shell("mkdir keep; cp -r store.db* keep")
        for round in 0..<(isTorture ? 200 : 6) {
            try bench.shell("rm -rf store.db*; cp -r keep/. .")
            countRounds()
            let wait = Double(random.below(60)) / 1000
            try bench.shell("timeout -s KILL \(wait + 0.001) \"$T\" -q store purge '\(id)' --confirm || true")
            let message = Comment(rawValue: "seed \(seed), round \(round)")
            let check = try bench.tool("store", "check")
            #expect(check.status == 0 || check.stderr.contains("store purge"), message)
            try bench.tool(exit: 0, "store", "purge", id, "--confirm")
            #expect(try hits(bench) == "", message)
            try bench.tool(exit: 0, "store", "check")
        }
    }
}
