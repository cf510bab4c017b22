import BackupKit
import Glibc
import TestSupport
import Testing

/// A disk without a free byte, with stock restic as the judge.
struct CommandsVaultFullDiskTests {
    /// Calls `body` while `small` is a disk of its own.
    private func withDisk(of size: String, _ bench: Workbench, _ body: () throws -> Void) throws {
        try bench.shell("mkdir -p small")
        guard geteuid() == 0,
            try runProcess(["mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", bench.path("small")]).status == 0
        else { return }
        defer { _ = try? runProcess(["umount", "-l", bench.path("small")]) }
        try body()
    }

    /// Calls `body` with a vault of two snapshots on a small disk.
    private func withSmallDisk(_ bench: Workbench, _ body: () throws -> Void) throws {
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-01T00:00:00Z")
        try withDisk(of: "6m", bench) {
            try bench.shell("cp -a v small/v")
            try body()
        }
    }

    @Test func aDrillThatDoesNotFit_isNotBegun_andSaysNothingAboutTheSnapshot() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try bench.shell("head -c 2000000 /dev/urandom > more/more.bin; $T import -q --attachments more || true")
        try bench.tool(exit: 0, "vault", "backup")
        func drill(exit: Int32, in folder: String) throws -> String {
            let scratch = ["TMPDIR": bench.path(folder)]
            return try bench.tool(exit: exit, "drill", "vault:v", "--log", "d.jsonl", environment: scratch).stderr
        }
        try withDisk(of: "1m", bench) {
            let said = try drill(exit: 1, in: "small")
            #expect(said.contains("would be restored to here") && said.contains("set TMPDIR"))
            #expect(try bench.files("small").isEmpty && !bench.files(".").contains { $0.hasSuffix("d.jsonl") })
        }
        // What a killed drill left makes room first; the number is that of no process.
        try withDisk(of: "16m", bench) {
            let left = "small/.backup-tool-scratch.tmp-4194305-x"
            try bench.shell("mkdir \(left); head -c 12000000 /dev/zero > \(left)/store.db")
            _ = try drill(exit: 0, in: "small")
            #expect(try bench.files("small").isEmpty)
        }
        // A file system that does not say how large it is.
        try withDisk(of: "0", bench) {
            _ = try drill(exit: 0, in: "small")
        }
        // And one that is not there is no fault of the snapshot.
        try bench.shell("rm d.jsonl")
        #expect(try drill(exit: 1, in: "nowhere").contains("nowhere") && !bench.exists("d.jsonl"))
    }

    /// I826. A run that could not even write down that it failed.
    @Test func theStatus_warnsWhereRunsHaveNoRoomForTheirState() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try withDisk(of: "1m", bench) {
            let settings = ["store = 'store.db'", "vault = 'v'", "password-file = 'password'", "state = 'small'"]
            try bench.write("n.toml", settings.joined(separator: "\n"))
            try bench.tool(exit: 0, "run", "--config", "n.toml")
            try bench.tool(exit: 0, "schedule", "status", "--config", "n.toml")
            try bench.shell("head -c 2000000 /dev/zero > small/fill || true")
            let status = try bench.tool(exit: 1, "schedule", "status", "--config", "n.toml")
            #expect((status.stdout + status.stderr).contains("No space left on device"), "\(status)")
        }
    }

    @Test func aBackupSaysSo_andTheVaultStaysSound() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try withSmallDisk(bench) {
            try bench.shell("head -c 6000000 /dev/urandom > more/more.bin; $T import -q --attachments more || true")
            let full = try bench.tool(exit: 1, "vault", "backup", "--vault", "small/v")
            #expect(full.stderr.contains("No space left on device") && full.stderr.contains("free some space"))
            #expect(try bench.files("small/v").filter { $0.contains(".tmp-") }.isEmpty)
            try bench.shell("restic -r small/v check --read-data -q --no-lock")
            try bench.tool(exit: 0, "verify", "vault:small/v")
        }
    }

    @Test func snapshotsAreListedCheckedAndRestored_andOldOnesMakeRoom() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try withSmallDisk(bench) {
            try bench.shell(
                """
                head -c 300000 /dev/urandom > more/more.bin; $T import -q --attachments more || true
                $T vault backup -q --vault small/v
                ! cat /dev/zero > small/fill 2>/dev/null; [ $(stat -fc %f small) = 0 ]
                """)
            try bench.tool(exit: 1, "vault", "backup", "--vault", "small/v")
            let listed = try bench.tool(exit: 0, "vault", "snapshots", "--vault", "small/v")
            #expect(listed.stderr.contains("could not lock the vault"))
            try bench.tool(exit: 0, "vault", "check", "--read-data", "--vault", "small/v")
            // What changes a vault needs the lock, and its dry run says that it could not have it.
            let rehearsed = try bench.tool(exit: 3, "vault", "repair", "--dry-run", "--vault", "small/v").stderr
            #expect(
                rehearsed.contains("could not be locked") && rehearsed.contains("No pack is damaged"), "\(rehearsed)")
            #expect(
                try bench.json(exit: 3, "vault", "repair", "--dry-run", "--vault", "small/v")["findings"]?.array?.count
                    == 1)
            try bench.tool(exit: 0, "verify", "vault:small/v")
            try bench.tool(exit: 0, "vault", "forget", "latest", "--vault", "small/v")
            let pruned = try bench.json(exit: 0, "vault", "prune", "--max-unused", "0", "--vault", "small/v")
            #expect((pruned["bytesFreed"]?.integer ?? 0) > 300_000)
            try bench.tool(exit: 0, "verify", "vault:small/v@2026-01-01", "--level", "deep")
            try bench.shell("restic -r small/v check --read-data -q")
            // And the way out is there again for the next time.
            #expect(try bench.files("small/v").contains { $0.hasSuffix("reserve") })
        }
    }

    /// What a disk without a free byte says: with and without the reserve, and whether there is something to remove.
    @Test func pruningAFullDiskWithNothingToRemove_saysWhatHelps() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try withSmallDisk(bench) {
            try bench.shell("! cat /dev/zero > small/fill 2>/dev/null; [ $(stat -fc %f small) = 0 ]")
            func prune() throws -> ProcessResult {
                let said = try bench.tool(exit: 3, "vault", "prune", "--max-unused", "0", "--vault", "small/v")
                #expect(said.stderr.contains("Nothing to remove"), "\(said.stderr)")
                #expect(said.stderr.contains("'backup-tool vault forget --prune --max-unused 0"), "\(said.stderr)")
                #expect(!said.stderr.contains("run the command again"), "\(said.stderr)")
                return said
            }
            _ = try prune()
            try bench.shell(
                "rm small/v/reserve; ! cat /dev/zero >> small/fill 2>/dev/null; [ $(stat -fc %f small) = 0 ]")
            let said = try prune()
            // The room that is named is enough for what could not be done.
            let bytes = try #require(said.stderr.firstMatch(of: /free ([0-9]+) bytes/)).1
            try bench.shell("truncate -s -\(bytes) small/fill")
            try bench.tool(exit: 0, "vault", "prune", "--vault", "small/v")
            try bench.shell("restic -r small/v check --read-data -q --no-lock")
        }
    }

    /// Where packs are needed in part, the room that is named is enough to copy what is needed of them.
    @Test(arguments: [true, false]) func whereNothingFits_theRoomThatIsNamedIsEnough(_ hasReserve: Bool) throws {
        let bench = try CommandsVaultTests.bench()
        try bench.makeCheapVault()
        try bench.shell(
            """
            mkdir all half; for i in 1 2 3 4 5 6; do head -c 400000 /dev/urandom > all/$i.bin; done; cp all/[123].bin half
            $T -q import --create --attachments all || true
            $T -q import --create --store half.db --attachments half || true
            $T -q vault backup --time 2026-01-01T00:00:00Z
            $T -q vault backup --store half.db --time 2026-02-01T00:00:00Z
            $T -q vault forget $($T vault snapshots --json | jq -r '.[0].short_id')
            """)
        try withDisk(of: "9m", bench) {
            try bench.shell(
                "cp -a v small/v; \(hasReserve ? ":" : "rm small/v/reserve"); ! cat /dev/zero > small/fill 2>/dev/null")
            let words = ["vault", "prune", "--max-unused", "0", "--vault", "small/v"]
            var advised: [String] = []
            var said = try bench.tool(words)
            while said.status != 0, advised.count < 3 {
                let bytes = try #require(said.stderr.firstMatch(of: /free ([0-9]+) bytes/), "\(said.stderr)").1
                advised.append(String(bytes))
                try bench.shell("truncate -s -\(bytes) small/fill")
                said = try bench.tool(words)
            }
            #expect(said.status == 0 && advised.count == (hasReserve ? 1 : 2), "\(advised): \(said.stderr)")
            try bench.shell("restic -r small/v check --read-data -q")
            let again = try bench.json(exit: 0, "vault", "prune", "--max-unused", "0", "--vault", "small/v")
            #expect(again["nothingToDo"]?.bool == true)
        }
    }
}
