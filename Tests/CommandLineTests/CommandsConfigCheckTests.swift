import Glibc
import TestSupport
import Testing

/// What would fail in the night is said by `config check` and by `schedule status`, with what to do about it.
@Suite struct CommandsConfigCheckTests {
    private static func bench() throws -> Workbench {
        let bench = try Workbench.withVault()
        try bench.shell("mkdir c")
        return bench
    }

    private static let settings = "store = '../store.db'\nvault = '../v'\npassword-file = '../pw'\n"

    /// Runs the tool as an account that owns everything here, and that may not write in one folder: root may.
    private static func run(_ bench: Workbench, readOnly folder: String, _ line: String) throws -> ProcessResult {
        let script = """
            chmod 755 .; chown -R 65534:65534 .; chmod 555 \(folder)
            run() { if [ $(id -u) = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; else "$@"; fi; }
            run "\(try productsDirectory())/backup-tool" \(line) && code=0 || code=$?
            chmod 755 \(folder); exit $code
            """
        let environment = testEnvironment(["TMPDIR": bench.path("tmp")])
        return try runProcess(["bash", "-c", script], environment: environment, in: bench.folder, timeout: 60)
    }

    @Test func aStoreAndAVaultThatAreNotThere_areNamedWithTheCommandsThatMakeThem() throws {
        let bench = try Self.bench()
        try bench.write(
            "n.toml",
            "password-file = 'pw'\nstore = 'none.db'\nvault = 'w'\n[profile.p]\nstore = 'no ne.db'\nvault = 'x'\n")
        let check = ["config", "check", "--config", "n.toml"]
        let told = try bench.tool(exit: 4, check).stderr
        for part in [
            "n.toml:2: \"none.db\": there is no store here", "n.toml:3: \"w\": there is no vault",
            "n.toml:5: \"no ne.db\": there is no store here", "n.toml:6: \"x\": there is no vault",
            "look whether its disk is there",
        ] {
            #expect(told.contains(part), "\(part): \(told)")
        }
        #expect(try bench.json(exit: 4, "config", "check", "--config", "n.toml")["mistakes"]?.array?.count == 4)
        // What is typed as it is printed ends it.
        let commands = told.matches(of: /'(backup-tool [^']+)'/).map { String($0.1) }
        #expect(commands.count == 4, "\(commands)")
        for command in commands { try bench.shell("\"$T\" \(command.dropFirst("backup-tool ".count))") }
        try bench.tool(exit: 0, check)
    }

    @Test func aStoreThatNoSettingNames_isTheUsualOne_andMustBeThere() throws {
        let bench = try Self.bench()
        try bench.write("n.toml", "password-file = 'pw'\nvault = 'v'\n")
        let usual = ["BACKUP_TOOL_STORE": bench.path("usual.db")]
        let told = try bench.tool(exit: 4, "config", "check", "--config", "n.toml", environment: usual).stderr
        let part = "usual.db\": there is no store here; runs use this path because the file names no store"
        #expect(told.contains(part), "\(told)")
        try bench.tool(exit: 0, "store", "init", "--store", "usual.db")
        try bench.tool(exit: 0, "config", "check", "--config", "n.toml", environment: usual)
    }

    @Test(arguments: ["record", "ancestor"])
    func aStoreThatLacksATable_isNamed(table: String) throws {
        let bench = try Self.bench()
        try bench.write("c/n.toml", Self.settings)
        try bench.shell("sqlite3 store.db 'DROP TABLE \(table)'")
        let told = try bench.tool(exit: 4, "config", "check", "--config", "c/n.toml").stderr
        #expect(told.contains("n.toml:1: \"c/../store.db\": the table '\(table)' is missing"), "\(told)")
    }

    @Test func aPlaceForMetricsThatALinkLosesOnItsWay_isNamed() throws {
        let bench = try Self.bench()
        try bench.write("c/n.toml", Self.settings + "metrics.file = '../m.prom'\n")
        try bench.shell("ln -s gone/m.prom m.prom")
        let told = try bench.tool(exit: 4, "config", "check", "--config", "c/n.toml").stderr
        #expect(told.contains("is a link to 'gone/m.prom', which is not there"), "\(told)")
    }

    @Test func aFileThatNamesNoVault_isForNoRuns() throws {
        let bench = try Self.bench()
        try bench.write("n.toml", "")
        let told = try bench.tool(exit: 0, "config", "check", "--config", "n.toml").stderr
        #expect(told.contains("names no vault"), "\(told)")
    }

    @Test func settingsOfRunsWithoutAVault_areNamed() throws {
        let bench = try Self.bench()
        let check = ["config", "check", "--config", "n.toml"]
        try bench.write("n.toml", "store = 'store.db'\nkeep.daily = 14\n")
        let told = try bench.tool(exit: 4, check).stderr
        #expect(told.contains("n.toml:2: ") && told.contains("'keep.daily' is for runs"), "\(told)")
        try bench.write("n.toml", "keep.daily = 14\npassword-file = 'pw'\n[profile.p]\nvault = 'v'\n")
        try bench.tool(exit: 0, check)
        try bench.write("n.toml", "store = 'store.db'\n")
        try bench.tool(exit: 0, check)
    }

    @Test(arguments: [
        ("store = 'a.bib'", "is not a store"), ("store = 'c'", "is a folder, not a store"),
        ("vault = 'a.bib'", "is a file, not a vault"), ("vault = 'c'", "there is no vault"),
    ])
    func whatIsNoStoreAndNoVault_isNamed(setting: String, says: String) throws {
        let bench = try Self.bench()
        try bench.write("n.toml", "\(setting)\n")
        let told = try bench.tool(exit: 4, "config", "check", "--config", "n.toml").stderr
        #expect(told.contains("n.toml:1: ") && told.contains(says), "\(told)")
        #expect(told.split(separator: "\n").contains { $0.hasPrefix("  ") }, "\(told)")
    }

    @Test func theFolderOfAConfiguration_isNamedWhereRunsCannotKeepTheirStateInIt() throws {
        let bench = try Self.bench()
        let check = "config check --config c/n.toml"
        try bench.write("c/n.toml", Self.settings)
        let told = try Self.run(bench, readOnly: "c", check)
        #expect(told.status == 4 && told.stderr.contains("'state'"), "\(told.stderr)")
        #expect(told.stderr.contains("c/n.toml: \"c\": the runs cannot keep their state"), "\(told.stderr)")
        try bench.shell("cat >> c/n.toml <<< \"state = '../state'\"")
        #expect(try Self.run(bench, readOnly: "c", check).status == 0)
        // Without a vault there are no runs.
        try bench.write("c/n.toml", "store = '../store.db'\n")
        #expect(try Self.run(bench, readOnly: "c", check).status == 0)
    }

    @Test func aStateFolderThatRunsCannotWriteTo_isToldByTheStatus() throws {
        let bench = try Self.bench()
        try bench.write("c/n.toml", "\(Self.settings)state = '../state'\n")
        try bench.tool(exit: 0, "run", "-q", "--config", "c/n.toml")
        let status = "schedule status --config c/n.toml"
        #expect(try Self.run(bench, readOnly: "c", status).status == 0)
        let told = try Self.run(bench, readOnly: "state", status)
        #expect(told.status == 1 && told.stdout.hasPrefix("BACKUP WARNING - "), "\(told.stdout)")
        #expect(told.stdout.contains("/state: the runs cannot keep their state in this folder"), "\(told.stdout)")
        #expect(told.stdout.contains("last success"), "\(told.stdout)")
    }

    @Test(arguments: [
        ("keep.tag = 'mine'", 4), ("keep.tag = ['nightly,other', '']", 4), ("keep.tag = 'mine'\nkeep.last = 0", 4),
        ("keep.tag = 'nightly'", 0), ("snapshot.tags = 'mine'\nkeep.tag = 'nightly,mine'", 0),
        ("keep.tag = 'mine'\nkeep.last = 1", 0), ("keep.tag = 'mine'\nkeep.within = '1y'", 0),
    ])
    func aRuleThatKeepsNoSnapshotOfTheRuns_isNamed(rules: String, code: Int32) throws {
        let bench = try Self.bench()
        try bench.write("c/n.toml", "\(Self.settings)\(rules)\n")
        let told = try bench.tool(exit: code, "config", "check", "--config", "c/n.toml").stderr
        #expect(told.contains("c/n.toml:4: ") == (code == 4) && told.contains("keep.daily") == (code == 4), "\(told)")
        // It is said before the night, and keeps no run from making its snapshot.
        try bench.tool(exit: 0, "run", "-q", "--config", "c/n.toml")
    }

    @Test func aPasswordThatOpensNoVault_andNone_areNamed() throws {
        let bench = try Self.bench()
        let check = ["config", "check", "--config", "c/n.toml"]
        try bench.write("c/n.toml", "store = '../store.db'\nvault = '../v'\n")
        let none = try bench.tool(exit: 4, check).stderr
        #expect(none.contains("c/n.toml:2: ") && none.contains("there is no password"), "\(none)")
        let told = try bench.tool(check, environment: ["BACKUP_TOOL_PASSWORD": "x"])
        #expect(told.status == 0, "\(told)")
        try bench.write("wrong", "wrong")
        try bench.shell("chmod 600 wrong")
        try bench.write("c/n.toml", "store = '../store.db'\nvault = '../v'\npassword-file = '../wrong'\n")
        let wrong = try bench.tool(exit: 4, check).stderr
        #expect(wrong.contains("c/n.toml:3: ") && wrong.contains("is not the password of the vault"), "\(wrong)")
        try bench.write("c/n.toml", Self.settings)
        try bench.tool(exit: 0, check)
    }

    @Test func aRunThatWasKilled_isToldByTheStatus_untilAnotherOneEnds() throws {
        let bench = try Self.bench()
        try bench.write("c/n.toml", Self.settings)
        let status = ["schedule", "status", "--config", "c/n.toml"]
        try bench.tool(exit: 0, "run", "-q", "--config", "c/n.toml")
        #expect(try bench.tool(exit: 0, status).stdout.contains("has not ended") == false)
        try bench.shell(
            "strace -f -qq -o trace -e inject=fsync:signal=KILL:when=5 \"$T\" run -q --config c/n.toml || true")
        let told = try bench.tool(exit: 1, status).stdout
        #expect(told.contains("has not ended: it was cut short"), "\(told)")
        // One that is at work is none.
        let during = try bench.shell("flock v \"$T\" schedule status --config c/n.toml")
        #expect(during.hasPrefix("BACKUP OK") && during.contains("has not ended"), "\(during)")
        try bench.tool(exit: 0, "run", "-q", "--config", "c/n.toml")
        #expect(try bench.tool(exit: 0, status).stdout.contains("has not ended") == false)
    }
}
