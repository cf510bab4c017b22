import BackupKit
import Glibc
import TestSupport
import Testing

/// Copies of a vault that is damaged.
struct CommandsVaultCopyTests {
    /// A vault of three snapshots, of which only the second holds `b.bin`, and an empty vault `w`.
    private static func bench() throws -> Workbench {
        let bench = try CommandsVaultTests.bench()
        try bench.makeCheapVault()
        try bench.makeCheapVault(at: "w")
        for name in ["a", "b", "c"] {
            try bench.shell(
                """
                mkdir -p d; head -c 300000 /dev/urandom > d/\(name).bin; restic -r v backup -q d; rm d/*
                find v/data -type f | sort > packs.\(name)
                """)
        }
        try bench.shell("chmod -R u+w v; restic -r v snapshots --json | jq -r 'sort_by(.time) | .[].short_id' > ids")
        return bench
    }

    private static func copy(_ bench: Workbench, exit code: Int32) throws -> ProcessResult {
        try bench.tool(
            exit: code, "vault", "copy", "--vault", "w", "--from", "v", "--from-password-file", "./password")
    }

    /// The second snapshot's own packs: that of its file, and that of its folders.
    @Test(arguments: ["data", "tree"])
    func aDamagedBlob_costsItsOwnSnapshotsOnly(_ type: String) throws {
        let bench = try Self.bench()
        let ids = try bench.text("ids").split(separator: "\n").map(String.init)
        try bench.shell(
            """
            pack=$(comm -13 packs.a packs.b | xargs ls -S | \(type == "data" ? "head" : "tail") -1)
            printf xxxx | dd of=$pack bs=1 seek=9 conv=notrunc status=none
            """)
        let result = try Self.copy(bench, exit: 4)
        #expect(result.stderr.contains("\(ids[1]):/"), "\(result.stderr)")
        #expect(result.stderr.contains("2 snapshots copied, 0 here already, 1 left out"), "\(result.stderr)")
        // The advice is for the vault that is damaged.
        #expect(result.stderr.contains("vault repair --save FOLDER --vault v --password-file ./password'"))
        #expect(!result.stderr.contains("--vault w"))
        try bench.shell("restic -r w check --read-data -q; [ $(restic -r w snapshots --json | jq length) = 2 ]")
        #expect(try Self.copy(bench, exit: 4).stderr.contains("0 snapshots copied, 2 here already, 1 left out"))
    }

    @Test func aDamagedIndexOrSnapshot_costsWhatOnlyItNames() throws {
        let bench = try Self.bench()
        let ids = try bench.text("ids").split(separator: "\n").map(String.init)
        try bench.shell("cp -a v keep; truncate -s -1 v/snapshots/\(ids[2])*")
        #expect(try Self.copy(bench, exit: 4).stderr.contains("2 snapshots copied, 0 here already;"))
        try bench.shell("rm -r v; cp -a keep v; ls -tr v/index/* | tail -1 | xargs truncate -s -1; rm -rf w")
        try bench.makeCheapVault(at: "w")
        let result = try Self.copy(bench, exit: 4)
        #expect(result.stderr.contains("2 snapshots copied, 0 here already, 1 left out"), "\(result.stderr)")
        try bench.shell("restic -r w check --read-data -q")
    }
}
