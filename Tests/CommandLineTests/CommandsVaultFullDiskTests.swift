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
            #expect(listed.stderr.contains("read without a lock"))
            try bench.tool(exit: 0, "vault", "check", "--read-data", "--vault", "small/v")
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
}
