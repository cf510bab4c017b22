import BackupKit
import Glibc
import TestSupport
import Testing

struct CommandsVaultDamageTests {
    /// Damage in people's words: whose PDF it was, and which records cannot be read any more.
    @Test func damageIsNamedDownToRecords() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.write("late.bib", "@misc{late, title={Too Late}}\n")
        try bench.tool(exit: 0, "import", "late.bib")
        try bench.tool(exit: 0, "vault", "backup")
        // The pack of the first snapshot: all attachments, and its own list of records.
        try bench.shell("chmod -R u+w v; rm $(ls -S v/data/*/* | head -1)")
        let report = try bench.json(exit: 4, "vault", "check")
        let hits = report["affected"]?.array ?? []
        func records(_ path: String) -> [[JSON]] {
            hits.filter { $0["path"]?.string == "/library/\(path)" }.map { $0["records"]?.array ?? [] }
        }
        let owners = records("Attachments/Halloran2003 back cover.pdf")
        #expect(owners.count == 2 && owners.allSatisfy { $0.count == 1 })
        #expect(owners.first?.first?["citeKey"]?.string == "Halloran2003")
        #expect(owners.first?.first?["title"]?.string?.hasPrefix("Twenty Years in a Drawer") == true)
        #expect(owners.first?.first?["localId"]?.string?.utf8.count == 36)
        // Only the first snapshot has lost its records; the second tells which they were, and that one came later.
        let lost = records("records.jsonl")
        #expect(lost.count == 1 && (lost.first?.count ?? 0) > 8)
        #expect(lost.first?.contains { $0["citeKey"]?.string == "late" } == false)
        #expect(try bench.tool(exit: 4, "vault", "check").stderr.contains("it hits 'Twenty Years in a Drawer"))
    }

    /// SIGKILL at system calls of `forget --prune`, chosen by number. The snapshot that stays is whole for both programs,
    /// and the next run finishes.
    @Test func killedAnywhere_forgetAndPruneLoseNothing() throws {
        let bench = try CommandsVaultBackupTests.bench()
        let calls = "write,fsync,renameat2,rename,unlink"
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-01T00:00:00Z")
        // Half of the pack is not needed any more, so that it must be copied.
        try bench.write("more/second.txt", "second")
        try bench.shell(
            "rm -f more/large.bin; $T import -q --attachments more || true; rm -f store.db.assets/Attachments/large.bin"
        )
        try bench.tool(exit: 3, "vault", "backup", "--time", "2026-02-01T00:00:00Z")
        try bench.shell("cp -a v keep")
        func run(_ options: [String]) throws {
            _ = try runProcess(
                ["strace", "-f", "-qq", "-o", "trace"] + options
                    + [
                        try productsDirectory() + "/backup-tool", "vault", "forget", "-q", "--keep-last", "1",
                        "--prune", "--max-unused", "0",
                    ],
                environment: testEnvironment([
                    "BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "password", "TMPDIR": bench.path("tmp"),
                ]), in: bench.folder)
        }
        try run(["-e", "trace=\(calls)"])
        let total = try bench.text("trace").split(separator: "\n").count
        #expect(total > 20)
        var random = SeededGenerator(seed: testSeed())
        let places = Workbench.isTorture ? Array(1...total) : (0..<2).map { _ in 1 + random.below(total) }
        for place in places {
            try bench.shell("rm -rf v; cp -a keep v")
            try run(["-e", "inject=\(calls):signal=KILL:when=\(place)"])
            try bench.shell("restic -r v unlock -q; restic -r v check --read-data -q")
            try bench.tool(exit: 0, "vault", "check", "--read-data")
            try bench.tool(exit: 0, "vault", "forget", "--keep-last", "1", "--prune", "--max-unused", "0")
            try bench.tool(exit: 0, "verify", "vault:v@2026-02-01", "--level", "deep")
            try bench.shell("restic -r v check --read-data -q")
            // Nothing is left to do, and nothing of what nobody needs is left.
            let again = try bench.json(exit: 0, "vault", "prune", "--max-unused", "0")
            #expect(again["nothingToDo"]?.bool == true, "call \(place) of \(total)")
            #expect(again["bytesBefore"]?.integer ?? .max < 200_000, "call \(place) of \(total)")
        }
    }
}
