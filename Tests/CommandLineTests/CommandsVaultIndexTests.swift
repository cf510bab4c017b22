import BackupKit
import Glibc
import TestSupport
import Testing

/// Damaged indexes and swapped packs, as a person meets them: every message names a command, and the commands help.
struct CommandsVaultIndexTests {
    /// A vault of two snapshots with an index each.
    static func bench() throws -> Workbench {
        let bench = try CommandsVaultBackupTests.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.write("late.bib", "@misc{late, title={Too Late}}\n")
        try bench.tool(exit: 0, "import", "late.bib")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell("chmod -R u+w v")
        return bench
    }

    /// All files of all snapshots, as restic reads them.
    private static func content(_ bench: Workbench) throws -> String {
        try bench.shell(
            """
            for id in $(restic -r v snapshots --json | jq -r 'sort_by(.time) | .[].id'); do
                rm -rf out; restic -r v restore -q $id --target out; (cd out; find . -type f -exec sha256sum {} + | sort -k2)
            done
            """)
    }

    /// Types the commands that messages name, one after the other, until a full check ends well.
    private static func followAdvice(_ bench: Workbench, _ sourceLocation: SourceLocation = #_sourceLocation) throws {
        var typed: [String] = []
        for _ in 0..<6 {
            let checked = try bench.tool("vault", "check", "--read-data")
            if checked.status == 0 { return }
            let named = checked.stderr.matches(of: /'backup-tool (vault [^']+)'/).map { String($0.1) }
            guard let next = named.first(where: { !typed.contains($0) }) else {
                Issue.record("no advice is left after \(typed): \(checked.stderr)", sourceLocation: sourceLocation)
                return
            }
            typed.append(next)
            let words = next.replacing("FOLDER", with: "saved").split(separator: " ").map(String.init)
            let done = try bench.tool(words)
            #expect([0, 3].contains(done.status), "\(next): \(done.stderr)", sourceLocation: sourceLocation)
        }
        Issue.record("advice without end: \(typed)", sourceLocation: sourceLocation)
    }

    @Test(arguments: [
        "printf X >> $i", "truncate -s 20 $i", ": > $i", "printf XXXX | dd of=$i bs=1 seek=30 conv=notrunc status=none",
        "rm $i", "rm v/index/*", "for i in v/index/*; do truncate -s -1 $i; done", "mv $i v/index/$(printf '%064d' 7)",
    ])
    func aDamagedIndex_isMendedByTheCommandThatMessagesName(_ damage: String) throws {
        let bench = try Self.bench()
        let before = try Self.content(bench)
        try bench.shell("i=$(ls -S v/index/* | head -1); \(damage)")
        try Self.followAdvice(bench)
        #expect(try Self.content(bench) == before)
        try CommandsVaultBackupTests.judge(bench)
        try bench.tool(exit: 0, "vault", "backup")
        try CommandsVaultBackupTests.judge(bench)
    }

    @Test func everyMessageOfADamagedIndexNamesTheRepair() throws {
        let bench = try Self.bench()
        try bench.write(
            "c/n.toml", "store = '../store.db'\nvault = '../v'\npassword-file = '../password'\nkeep.last = 9\n")
        try bench.makeCheapVault(at: "w")
        try bench.shell("for i in v/index/*; do truncate -s -1 $i; done; rm -rf keep; cp -a v keep")
        let lines = [
            "vault check", "vault prune", "vault prune --json", "vault stats", "vault stats --json", "vault backup",
            "vault backup --json", "vault backup --dry-run", "vault forget latest --prune", "vault repair --dry-run",
            "verify vault:v", "list vault:v", "restore vault:v --to out", "restore vault:v --store new.db --create",
            "drill vault:v --log d.jsonl", "diff vault:v store.db", "show vault:v library.bib",
            "vault copy --vault w --from v --from-password-file password", "run --config c/n.toml",
        ]
        for line in lines {
            try bench.shell("rm -rf v out new.db*; cp -a keep v")
            let result = try bench.tool(line.split(separator: " ").map(String.init))
            let told = result.stderr + result.stdout
            #expect(result.status != 0, "\(line)")
            #expect(told.contains("'backup-tool vault repair --save FOLDER"), "\(line): \(told)")
        }
    }

    /// SIGKILL at system calls of `repair`: the vault is as it was or whole, and the next repair finishes.
    @Test func killedAnywhere_aRepairOfTheIndexLosesNothing() throws {
        let bench = try Self.bench()
        let before = try Self.content(bench)
        try bench.shell("for i in v/index/*; do truncate -s -1 $i; done")
        try bench.killed(at: "write,fsync,renameat2,rename,unlink", times: 3, ["vault", "repair", "--save", "saved"]) {
            place in
            try bench.tool(exit: 0, "vault", "repair", "--save", "saved")
            #expect(try Self.content(bench) == before, "\(place)")
            try CommandsVaultBackupTests.judge(bench)
            try bench.shell("rm -r saved")
        }
    }

    /// Two packs of different sizes, and all packs in a circle: the advice brings everything back.
    @Test(arguments: [
        "set -- $(ls -S v/data/*/* | head -2); mv $1 t; mv $2 $1; mv t $2",
        "set -- v/data/*/*; mv $1 t; while [ $# -gt 1 ]; do mv $2 $1; shift; done; mv t $1",
    ])
    func swappedPacks_areWholeAgain_afterTheAdviceOfTheCheck(_ swap: String) throws {
        let bench = try Self.bench()
        let before = try Self.content(bench)
        try bench.shell(swap)
        try bench.tool(exit: 4, "vault", "check", "--read-data")
        try Self.followAdvice(bench)
        #expect(try Self.content(bench) == before)
        try CommandsVaultBackupTests.judge(bench)
    }

    /// Who does not check first is told by the other commands, and is not told to forget what is whole.
    @Test func noCommandSaysOfSwappedPacksThatTheSnapshotsAreLost() throws {
        let bench = try Self.bench()
        let before = try Self.content(bench)
        try bench.shell("set -- $(ls -S v/data/*/* | head -2); mv $1 t; mv $2 $1; mv t $2; cp -a v keep")
        let lines = [
            "vault prune --max-unused 0", "vault forget --keep-last 1 --prune", "verify vault:v", "vault stats",
        ]
        for line in lines {
            try bench.shell("rm -rf v; cp -a keep v")
            let told = try bench.tool(line.split(separator: " ").map(String.init)).stderr
            let advice = told.matches(of: /'backup-tool vault ([a-z]+)/).map { String($0.1) }
            #expect(!advice.contains("forget") || advice.first == "repair", "\(line): \(told)")
            guard !line.contains("forget") else { continue }
            try bench.tool(exit: 0, "vault", "repair", "--save", "saved")
            #expect(try Self.content(bench) == before, "\(line)")
            try bench.shell("rm -r saved")
        }
    }
}
