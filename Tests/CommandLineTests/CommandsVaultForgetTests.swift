import TestSupport
import Testing

@testable import BackupKit

/// What `vault forget` refuses, and whether its advice works.
struct CommandsVaultForgetTests {
    private static func bench() throws -> Workbench {
        let bench = try Workbench(["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "password"])
        try bench.write("password", "secret\n")
        try bench.write("n.toml", "state = 'state'\n")
        try bench.shell("chmod 600 password; mkdir state")
        try bench.makeCheapVault()
        try bench.tool(exit: 0, "store", "init")
        return bench
    }

    private static func backUp(_ bench: Workbench, _ more: String...) throws -> String {
        let summary = try bench.tool(["vault", "backup", "--json"] + more).stdoutLines.last ?? ""
        return String(try #require(try JSON(parsing: summary)["snapshot_id"]?.string).prefix(8))
    }

    /// Types the commands of a refusal, one after the other.
    private static func follow(_ refused: ProcessResult, _ bench: Workbench, words count: Int) throws {
        let commands = refused.stderr.matches(of: /'backup-tool ([^']*)'/).map { String($0.1) }
        #expect(commands.count == count, "\(refused.stderr)")
        for command in commands { try bench.shell("\"$T\" \(command) >&2") }
    }

    @Test func theLastThatPassedADrill_goesAfterTheAdvisedCommands() throws {
        let bench = try Self.bench()
        let words = ["--host", "elsewhere", "--tag", "a b,c"]
        let id = try Self.backUp(bench, words[0], words[1], words[2], words[3])
        try bench.tool(exit: 0, "drill", "vault:v", "--config", "n.toml")
        // An older one does not replace it, nor does one of another group.
        _ = try Self.backUp(bench, words[0], words[1], words[2], words[3], "--time", "2020-01-01T00:00:00Z")
        _ = try Self.backUp(bench)
        let alone = try bench.tool(exit: 1, "vault", "forget", id, "--vault", "v", "--config", "n.toml")
        try Self.follow(alone, bench, words: 2)
        try bench.tool(exit: 0, "vault", "forget", id, "--config", "n.toml")

        let latest = try bench.json(exit: 0, "vault", "snapshots").array?.last
        let next = try #require(latest?["short_id"]?.string)
        let newest = try Self.backUp(bench, words[0], words[1], words[2], words[3])
        let refused = try bench.tool(exit: 1, "vault", "forget", next, "--config", "n.toml")
        #expect(refused.stderr.contains("drill vault:v@\(newest)"), "\(refused.stderr)")
        try Self.follow(refused, bench, words: 1)
        try bench.tool(exit: 0, "vault", "forget", next, "--config", "n.toml")
    }

    /// Of the night in which an empty store lay in the place of the library.
    @Test(arguments: [true, false]) func aSuspectSnapshotThatPassedADrill_goesAfterTheAdvisedCommands(isNextNight: Bool)
        throws
    {
        let bench = try Self.bench()
        try bench.write(
            "n.toml",
            """
            state = 'state'\nstore = 'store.db'\nvault = 'v'\npassword-file = 'password'
            keep.last = 5\ntripwire.at-least = 1\n
            """)
        try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        let config = ["--config", "n.toml"]
        try bench.shell(
            "$T -q import a.bib; $T -q run --config n.toml; mkdir aside; mv store.db* aside; $T -q store init")
        try bench.tool(words: ["run"] + config, exit: 3)
        let all = try JSON(parsing: try bench.tool(words: ["vault", "snapshots", "--json"] + config, exit: 0).stdout)
        let suspect = try #require(all.array?.last?["short_id"]?.string)
        try bench.tool(words: ["drill", "vault:v@\(suspect)"] + config, exit: 0)
        try bench.shell("rm -r store.db*; mv aside/* .")
        let forget = ["vault", "forget", suspect] + config
        if isNextNight {
            try bench.tool(words: ["run"] + config, exit: 0)
            try Self.follow(try bench.tool(words: forget, exit: 1), bench, words: 1)
        } else {
            try Self.follow(try bench.tool(words: forget, exit: 1), bench, words: 2)
        }
        try bench.tool(words: forget, exit: 0)
        try bench.tool(words: ["run"] + config, exit: 0)
        try bench.tool(words: ["schedule", "status"] + config, exit: 0)
    }

    @Test func aSnapshotWithoutATree_stopsAPrune_untilTheAdvisedCommand() throws {
        let bench = try Self.bench()
        _ = try Self.backUp(bench)
        let vault = try Vault.open(try FolderBackend(bench.path("v")), password: Array("secret".utf8))
        var file = try #require(try vault.snapshots().snapshots.first?.file)
        file.tree = nil
        _ = try vault.storeUnpacked(.snapshot, file.encoded())
        let refused = try bench.tool(exit: 4, "vault", "prune")
        try Self.follow(refused, bench, words: 1)
        try bench.tool(exit: 0, "vault", "prune")
        try bench.tool(exit: 0, "vault", "check", "--read-data")
    }
}
