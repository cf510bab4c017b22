import TestSupport
import Testing

@testable import BackupKit

/// A profile with a vault and a password of its own: whatever a message tells its user to type works as it is printed.
@Suite struct CommandsProfileAdviceTests {
    private static let which = ["--config", "c/n.toml", "--profile", "papers"]

    private static func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("pw", "other\n")
        try bench.write("pw2", "secret\n")
        let settings = (0..<12).map { "\"k\($0)\": \($0)" }.joined(separator: ", ")
        try bench.write("settings.json", "{\(settings)}")
        try bench.write(
            "c/n.toml",
            """
            store = '../store.db'
            vault = '../v'
            password-file = '../pw'
            keep.last = 5
            [profile.papers]
            vault = '../v2'
            password-file = '../pw2'
            """)
        try bench.shell("chmod 600 pw pw2; $T -q store init; $T -q import settings.json --only settings")
        return bench
    }

    /// The first command of this name in a message, as it is typed in a folder and without an environment. A run is read
    /// about in a mail, so its commands work anywhere.
    private static func typed(_ name: String, in told: String, folder: String = "/") throws -> String {
        let start = try #require(told.firstRange(of: "'backup-tool \(name) "), "\(told)").upperBound
        let end = try #require(TypedCommand.words(of: told[start...])).end
        return "(cd \(folder); env -i \"$T\" \(name) \(told[start..<end]) 2>&1)"
    }

    @Test func theVaultThatIsMissing_isMadeAsTheRunSays() throws {
        let bench = try Self.bench()
        let told = try bench.tool(words: ["run"] + Self.which, exit: 10).stderr
        try bench.shell(Self.typed("vault init", in: told))
        try bench.tool(words: ["run"] + Self.which, exit: 0)
        #expect(try FileStatus.ofTarget(bench.path("v")) == nil)
    }

    @Test func aLossAndDamage_areLookedIntoAndMendedAsTheRunSays() throws {
        let bench = try Self.bench()
        try bench.makeCheapVault(at: "v2")
        try bench.tool(words: ["run"] + Self.which, exit: 0)
        try bench.shell("sqlite3 store.db 'DELETE FROM setting'")
        let lost = try bench.tool(words: ["run"] + Self.which, exit: 3).stderr
        #expect(try bench.shell("\(Self.typed("diff", in: lost)) || test $? = 3").contains("k1"))
        #expect(try bench.shell(Self.typed("restore", in: lost)).contains("12 settings"))
        try bench.shell("for f in v2/data/*/*; do truncate -s -9 $f; done")
        let broken = try bench.tool(words: ["run"] + Self.which, exit: 4).stderr
        let status = try bench.tool(words: ["schedule", "status"] + Self.which, exit: 2).stdout
        for told in [broken, status] where told.contains("'backup-tool vault repair") {
            _ = try bench.shell("\(Self.typed("vault repair", in: told)) || test $? = 3")
        }
        #expect(broken.contains("'backup-tool vault repair"))
    }

    @Test func aSnapshotThatIsNotThere_isLookedForInTheVaultOfTheProfile() throws {
        let bench = try Self.bench()
        try bench.makeCheapVault(at: "v2")
        try bench.tool(words: ["run"] + Self.which, exit: 0)
        let told = try bench.tool(["vault", "forget", "zz"] + Self.which).stderr
        #expect(try bench.shell(Self.typed("vault snapshots", in: told, folder: ".")).contains("papers"))
    }

    /// The profile counts for the store as well as for the vault.
    @Test func everyCommandOfAVault_knowsProfiles() throws {
        let bench = try Self.bench()
        try bench.makeCheapVault(at: "v2")
        try bench.tool(words: ["vault", "backup"] + Self.which, exit: 0)
        for words in [
            ["vault", "snapshots"], ["vault", "stats"], ["vault", "check"], ["vault", "key", "list"],
            ["verify", "vault:v2"], ["list", "vault:v2"], ["diff", "vault:v2", "store.db"],
            ["restore", "vault:v2", "--store", "store.db"], ["export", "-o", "e.zip"],
        ] {
            try bench.tool(words: words + Self.which, exit: 0)
        }
    }

    @Test func whatAMessagePrints_reachesTheStoreOfTheProfile() throws {
        let bench = try Workbench()
        try bench.write("c.toml", "store = 'main.db'\n[profile.papers]\nstore = 'papers.db'\n")
        try bench.write("main.bib", "@misc{m, title={Main}}\n")
        try bench.write("papers.bib", "@misc{p, title={Paper}}\n")
        for name in ["main", "papers"] {
            try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", "\(name).bib")
        }
        let digest = try bench.digest("main.db")
        try bench.tool(exit: 0, "export", "--store", "papers.db", "-o", "p.zip")
        try bench.shell("rm -r papers.db*")
        let words = ["restore", "-v", "p.zip", "--config", "c.toml", "--profile", "papers"]
        let told = try runProcess(
            [try productsDirectory() + "/backup-tool"] + words, environment: testEnvironment([:]), in: bench.folder)
        #expect(told.status == 0, "\(told)")
        try bench.shell(try Self.typed("undo", in: told.stderr, folder: bench.folder))
        #expect(try bench.digest("main.db") == digest)
        #expect(try bench.shell("sqlite3 papers.db 'SELECT count(*) FROM record'") == "0\n")
    }

    @Test func whereOnlyProfilesNameAStore_noneIsMadeAtTheUsualPlace() throws {
        let bench = try Self.bench()
        try bench.write("c/p.toml", "vault = '../v'\npassword-file = '../pw'\n[profile.p]\nstore = '../store.db'\n")
        try bench.shell("mkdir home; $T vault init --config c/p.toml")
        for command in ["vault backup", "export -o out", "store init", "import settings.json"] {
            let told = try bench.shell(
                "env -u BACKUP_TOOL_STORE XDG_DATA_HOME=$PWD/home $T \(command) --config c/p.toml 2>&1 || echo \"exit $?\""
            )
            #expect(told.contains("names a store in its profiles only") && told.hasSuffix("exit 64\n"), "\(told)")
        }
        #expect(try bench.shell("ls home").isEmpty)
        try bench.shell("$T vault backup --config c/p.toml --profile p")
    }
}
