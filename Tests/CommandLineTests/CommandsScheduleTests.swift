import BackupKit
import TestSupport
import Testing

@Suite struct CommandsScheduleTests {
    @Test func cronGetsItsLinesOnce_andLosesThemAgain() throws {
        // A test must not touch the crontab of whoever runs it.
        let bench = try Workbench()
        try bench.shell(
            """
            mkdir bin
            cat > bin/crontab <<'END'
            #!/bin/sh
            table=$(dirname "$0")/../table
            case $1 in
            -l) if [ -e "$table" ]; then cat "$table"; else echo "no crontab for ada" >&2; exit 1; fi ;;
            -) cat > "$table" ;;
            esac
            END
            chmod +x bin/crontab
            """)
        let path = try bench.shell("printf %s \"$PATH\"")
        let environment = ["PATH": "\(bench.path("bin")):\(path)", "HOME": "/home/ada"]
        try bench.write(
            "config.toml",
            "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\n[profile.papers]\nstate = 'state'\n")
        func run(exit code: Int32, _ words: String...) throws -> ProcessResult {
            let result = try bench.tool(words + ["--config", "config.toml"], environment: environment)
            #expect(result.status == code, "\(words): \(result.stderr)")
            return result
        }
        // What is in a variable now, cron does not have.
        try bench.write("bare.toml", "")
        let bare = try bench.tool(
            ["schedule", "install", "--cron", "--config", "bare.toml"],
            environment: environment.merging(["BACKUP_TOOL_VAULT": "v"]) { $1 })
        #expect(bare.status == 64 && bare.stderr.contains("needs vault and password-file"))
        let shown = try run(exit: 0, "schedule", "install", "--cron", "--profile", "papers", "--dry-run")
        #expect(shown.stdout.contains("0 3 * * * ") && shown.stderr.hasSuffix("Nothing was written.\n"))
        #expect(try !bench.exists("table"))
        let installed = try run(exit: 0, "schedule", "install", "--cron", "--profile", "papers")
        #expect(installed.stdout == shown.stdout && installed.stderr == "Changed: the crontab\n")
        let table = try bench.text("table")
        #expect(table == shown.stdout && table.contains(" --config \(bench.path("config.toml")) --profile papers"))
        // Relative paths start where the link is, not where it leads.
        try bench.shell("mkdir dot; cp config.toml dot/real.toml; ln -s dot/real.toml link.toml")
        let linked = try bench.tool(
            ["schedule", "install", "--cron", "--config", "link.toml", "--dry-run"], environment: environment)
        #expect(linked.stdout.contains("/link.toml ") && !linked.stdout.contains("real"))
        let again = try run(exit: 0, "schedule", "install", "--cron", "--profile", "papers")
        #expect(try bench.text("table") == table && again.stderr == "That is in place already.\n")
        // Another configuration does not take its place.
        let other = try bench.tool(
            ["schedule", "install", "--cron", "--config", "link.toml", "--profile", "papers"], environment: environment)
        #expect(try other.status == 1 && other.stderr.contains("another configuration") && bench.text("table") == table)
        // Nor does systemd without a word.
        let both = try bench.tool(
            [
                "schedule", "install", "--systemd", "--user", "--profile", "papers", "--config", "config.toml",
                "--dry-run",
            ],
            environment: environment)
        #expect(
            both.status == 0
                && both.stderr.contains("cron runs it too, at 03:00: 'backup-tool schedule remove --profile papers"))
        // Nor is its night this one's.
        try bench.shell("cp config.toml theirs.toml")
        let theirs = try bench.tool(
            ["schedule", "status", "--config", "theirs.toml", "--profile", "papers"], environment: environment)
        #expect(theirs.stdout == "BACKUP CRITICAL - never ran, not scheduled\n", "\(theirs)")
        let status = try run(exit: 2, "schedule", "status", "--profile", "papers")
        #expect(status.stdout.hasPrefix("BACKUP CRITICAL - never ran, next run 20"))
        let removed = try run(exit: 0, "schedule", "remove", "--profile", "papers")
        #expect(removed.stderr == "Removed: backup-tool's lines in the crontab\n")
        #expect(try bench.text("table") == "")
        #expect(try run(exit: 0, "schedule", "remove", "--profile", "papers").stderr == "There is nothing to remove.\n")
        #expect(try run(exit: 2, "schedule", "status").stdout == "BACKUP CRITICAL - never ran, not scheduled\n")
        _ = try run(exit: 64, "schedule", "install", "--cron", "--profile", "nobody")
        _ = try run(exit: 64, "schedule", "install", "--cron", "--at", "25:00")
        _ = try run(exit: 64, "schedule", "install")
    }

    @Test func systemdGetsItsUnits_andLosesThemAgain() throws {
        let bench = try Workbench()
        let environment = ["HOME": bench.path("home"), "XDG_CONFIG_HOME": bench.path("xdg")]
        try bench.write("config.toml", "store = 's.db'\nvault = 'v'\npassword-file = 'pw'\nmetrics.file = 'm/b.prom'\n")
        func run(exit status: Int32 = 0, _ words: String...) throws -> ProcessResult {
            let result = try bench.tool(words + ["--config", "config.toml"], environment: environment)
            #expect(result.status == status, "\(words): \(result.stderr)")
            return result
        }
        // Nobody has enabled the timer where systemd does not run, and no night is promised.
        let isRunning = try FileStatus.ofTarget("/run/systemd/system") != nil
        let installed = try run(exit: isRunning ? 0 : 3, "schedule", "install", "--systemd", "--user", "--at", "4:30")
        if !isRunning {
            #expect(installed.stderr.contains("so no run is scheduled. Where it is, run:\n"), "\(installed.stderr)")
            #expect(installed.stderr.contains("systemctl --user enable --now backup-tool.timer"))
            #expect(try run(exit: 2, "schedule", "status").stdout.contains("not scheduled"))
            let again = try run(exit: 3, "schedule", "install", "--systemd", "--user", "--at", "4:30")
            #expect(again.stderr.contains("no run is scheduled") && !again.stderr.contains("Changed"))
            // As 'systemctl enable' does.
            try bench.shell(
                "cd xdg/systemd/user; mkdir timers.target.wants; ln -s ../backup-tool.timer timers.target.wants")
            #expect(try run(exit: 2, "schedule", "status").stdout.contains("next run 20"))
            try bench.shell("mv xdg/systemd/user/timers.target.wants .")
        }
        let units = try bench.files("xdg/systemd/user")
        #expect(units == ["backup-tool.service", "backup-tool.timer"])
        #expect(installed.stdout.contains("OnCalendar=*-*-* 04:30:00\n"))
        // What is shown is what is written.
        for unit in units { #expect(try installed.stdout.contains(bench.text("xdg/systemd/user/\(unit)"))) }
        try bench.shell("test -e timers.target.wants && mv timers.target.wants xdg/systemd/user || true")
        #expect(
            try run("schedule", "install", "--systemd", "--user", "--at", "4:30").stderr.contains("in place already"))
        try bench.shell("rm -rf xdg/systemd/user/timers.target.wants; cp config.toml other.toml")
        let words = ["schedule", "install", "--systemd", "--user", "--config", "other.toml"]
        let other = try bench.tool(words, environment: environment)
        #expect(other.status == 1 && other.stderr.contains("another configuration"))
        let moved = try run("schedule", "install", "--systemd", "--user", "--at", "5:30", "--dry-run")
        #expect(
            moved.stderr == "Would change \(bench.path("xdg"))/systemd/user/backup-tool.timer. Nothing was written.\n")
        _ = try run("schedule", "remove", "--user")
        #expect(try bench.files("xdg/systemd/user") == [])
    }

    @Test func statusIsAMonitoringPlugin() throws {
        let bench = try Workbench()
        try bench.write("config.toml", "")
        func status(exit code: Int32, _ words: String...) throws -> String {
            let result = try bench.tool(
                ["schedule", "status", "--config", "config.toml"] + words,
                environment: ["XDG_CONFIG_HOME": bench.path("xdg"), "HOME": bench.path("home")])
            #expect(result.status == code, "\(result.stderr)\(result.stdout)")
            return result.stdout
        }
        func state(_ exitCode: Int, hours: Int64) -> RunState {
            var state = RunState()
            let time = Timestamp(milliseconds: Clock.system.now().milliseconds - hours * 3_600_000 - 1000)
            state.lastRun = .init(started: time, seconds: 1, exitCode: Int32(exitCode))
            state.lastSuccess = .init(started: time, seconds: 1, exitCode: 0)
            return state
        }
        try state(0, hours: 3).write(bench.path("run-default.json"))
        #expect(try status(exit: 0).hasPrefix("BACKUP OK - last success 3 h ago, not scheduled | age=108"))
        #expect(try status(exit: 2, "--max-age", "2h").hasPrefix("BACKUP CRITICAL - last success 3 h ago"))
        try state(3, hours: 3).write(bench.path("run-default.json"))
        #expect(try status(exit: 1).hasPrefix("BACKUP WARNING - last run ended with 3, last success"))
        #expect(try JSON(parsing: status(exit: 1, "--json"))["level"]?.string == "WARNING")
        _ = try status(exit: 64, "--max-age", "soon")
        // What cannot be told is neither fine nor a warning.
        #expect(try status(exit: 3, "--profile", "nobody").hasPrefix("BACKUP UNKNOWN - "))
        let lost = try bench.tool(exit: 3, "schedule", "status", "--config", "nope.toml").stdout
        #expect(lost.hasPrefix("BACKUP UNKNOWN - nope.toml: "), "\(lost)")
        try bench.write("run-default.json", "{")
        #expect(try status(exit: 3).hasPrefix("BACKUP UNKNOWN - "))
        #expect(try JSON(parsing: status(exit: 3, "--json"))["level"]?.string == "UNKNOWN")
        try bench.write("config.toml", "x = 1")
        #expect(try status(exit: 3).hasPrefix("BACKUP UNKNOWN - config.toml:1: "))
    }

    @Test func configCheck_showsWhatIsInForce_andEveryMistakeWithItsLine() throws {
        let bench = try Workbench()
        for store in ["c/a.db", "b.db"] { try bench.tool(exit: 0, "store", "init", "--store", store) }
        try bench.write("c/pw", "secret")
        try bench.shell("chmod 600 c/pw")
        try bench.makeCheapVault(at: "c/v")
        try bench.write(
            "c/config.toml",
            "store = 'a.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.daily = 14\n[profile.papers]\nstore = '../b.db'\nkeep.within = \"1y\"\n"
        )
        let shown = try bench.tool(exit: 0, "config", "check", "--config", "c/config.toml", "--profile", "papers")
        #expect(
            shown.stdoutLines == [
                "SETTING        LINE  VALUE", "store             6  \"c/../b.db\"", "vault             2  \"c/v\"",
                "password-file     3  \"c/pw\"", "keep.daily        4  14", "keep.within       7  \"1y\"",
            ])
        #expect(shown.stderr == "OK: c/config.toml\n")
        try bench.write(
            "bad.toml",
            "stor = 1\nkeep.daily = 'x'\nping.url = 'ftp://x'\n[profile.'a b']\n[profile.p]\ndrill.every = '1w'\n"
                + "keep.group-by = 'colour'\n[profile.nightly]\n")
        let bad = try bench.tool(exit: 4, "config", "check", "--config", "bad.toml")
        #expect(
            bad.stderr.split(separator: "\n").filter { $0.hasPrefix("error") }.map { String($0.prefix(18)) } == [
                "error: bad.toml:1:", "error: bad.toml:2:", "error: bad.toml:3:", "error: bad.toml:4:",
                "error: bad.toml:6:", "error: bad.toml:7:", "error: bad.toml:8:",
            ])
        try bench.write(
            "empty.toml", "[profile.p]\nkeep.daily = 0\nkeep.tag = []\n[profile.q]\nkeep.group-by = 'host'\n")
        let empty = try bench.tool(exit: 4, "config", "check", "--config", "empty.toml").stderr
        #expect(empty.contains("empty.toml:2: the rules of keep say nothing") && !empty.contains("empty.toml:5"))
        try bench.write(
            "tags.toml", "snapshot.tags = ['home', 'nightly']\n[profile.p]\n[profile.q]\nsnapshot.tags = ['q', 'p']\n")
        let tags = try bench.tool(exit: 4, "config", "check", "--config", "tags.toml").stderr
        #expect(
            tags.split(separator: "\n").filter { $0.hasPrefix("error") } == [
                "error: tags.toml:1: the tag 'nightly' is what runs without a profile know their snapshots by",
                "error: tags.toml:4: the tag 'p' is what runs of that profile know their snapshots by",
            ])
        try bench.write("broken.toml", "store = s.db\nvault = 'v'\n[keep]\ndaily = 7d\n[tripwire]\npercent = 0\n")
        let json = try bench.json(exit: 4, "config", "check", "--config", "broken.toml")
        #expect(json["ok"]?.bool == false && json["settings"]?.array?.map { $0["key"]?.string } == ["vault"])
        #expect(
            json["mistakes"]?.array?.map { $0["message"]?.string } == [
                "line 1, column 9: 's.db' is not a value; text needs quotes",
                "line 4, column 9: '7d' is not a value; text needs quotes",
                "tripwire.percent must be a whole number from 1 to 100",
            ])
        try bench.tool(exit: 64, "config", "check", "--config", "c/config.toml", "--profile", "paper")
    }

    @Test func drill_triesAFolderOfBackups_andKeepsItsHistory() throws {
        let bench = try Workbench()
        try bench.importSamples()
        try bench.shell("mkdir b; \"$T\" -q export -o b/1.tar.zst; \"$T\" -q export -o b/2.zip")
        let drilled = try bench.tool(exit: 0, "drill", "b", "--log", "d/drills.jsonl")
        #expect(drilled.stderr.split(separator: "\n").count == 3 && drilled.stdout == "")
        let history = try bench.json(exit: 0, "drill", "--history", "--log", "d/drills.jsonl")
        #expect(history["drills"]?.array?.count == 2 && history["ok"]?.bool == true)
        try bench.shell("printf xxxx | dd of=b/2.zip bs=1 seek=3000 conv=notrunc status=none")
        let failed = try bench.tool(exit: 4, "drill", "b/2.zip", "--log", "d/drills.jsonl")
        #expect(failed.stderr.hasPrefix("failed: "))
        #expect(try bench.tool(exit: 0, "drill", "--history", "--log", "d/drills.jsonl").stdoutLines.count == 4)
        try bench.shell("sed -i 's/\"ok\":false/\"ok\":true/;1s/files/filez/' d/drills.jsonl")
        try bench.tool(exit: 4, "drill", "--history", "--log", "d/drills.jsonl")
        try bench.tool(exit: 10, "drill", "--history", "--log", "d/none.jsonl")
        try bench.tool(exit: 10, "drill", "nowhere", "--log", "d/drills.jsonl")
        try bench.tool(exit: 64, "drill")
        // Scratch stores are gone.
        #expect(try bench.files("tmp") == [])
    }
}
