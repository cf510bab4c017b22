import BackupKit
import Glibc
import TestSupport
import Testing

private func job(
    _ profile: String? = nil, at time: String = "03:05", tool: String = "/usr/local/bin/backup-tool",
    configuration: String = "/etc/backup-tool/config.toml", writes: [String] = ["/var/backups"]
) throws -> ScheduledJob {
    try ScheduledJob(
        tool: tool, configuration: configuration, profile: profile, time: try #require(TimeOfDay(time)), home: "/root",
        writes: writes)
}

extension Crontab {
    fileprivate static func installing(_ job: ScheduledJob, in table: String) throws -> String {
        String(decoding: try installing(job, in: Array(table.utf8)), as: UTF8.self)
    }

    fileprivate static func removing(profile: String?, from table: String) throws -> String {
        String(decoding: try removing(profile: profile, from: Array(table.utf8)), as: UTF8.self)
    }

    fileprivate static func time(profile: String?, configuration: String, in table: String) throws -> TimeOfDay? {
        try time(profile: profile, configuration: configuration, in: Array(table.utf8))
    }
}

@Suite struct CrontabTests {
    private let others = "# mine\nMAILTO=ada\n\n*/5 * * * * /usr/bin/true % input\n"

    @Test func theLinesOfAJob_areAsTheyShouldBe() throws {
        #expect(
            Crontab.lines(try job("papers")) == [
                "# backup-tool-papers: begin, written by 'backup-tool schedule install'",
                "5 3 * * * /usr/local/bin/backup-tool --quiet run --config /etc/backup-tool/config.toml --profile papers "
                    + "--lock-wait 7200",
                "@reboot sleep 120 && /usr/local/bin/backup-tool --quiet run --config /etc/backup-tool/config.toml "
                    + "--profile papers --lock-wait 7200 --if-older 25h",
                "# backup-tool-papers: end",
            ])
    }

    /// Latin-1 in a comment, and the line ends of another system.
    @Test func whatOthersWroteStaysToTheByte_inAnyEncoding() throws {
        let foreign = Array("MAILTO=ada\r\n# Sicherung f".utf8) + [0xFC, 0x72, 0x20, 0xE9, 0x0D, 0x0A]
        let once = try Crontab.installing(job(), in: foreign)
        #expect(once.starts(with: foreign) && once.count > foreign.count)
        #expect(try Crontab.installing(job(), in: once) == once)
        #expect(try Crontab.removing(profile: nil, from: once) == foreign)
        // An editor gave all lines its own ends.
        let ours = Array(Crontab.lines(try job()).map { $0 + "\r\n" }.joined().utf8)
        #expect(try Crontab.removing(profile: nil, from: foreign + ours) == foreign)
        #expect(try Crontab.time(profile: nil, configuration: job().configuration, in: foreign + ours)?.text == "03:05")
    }

    @Test(arguments: ["", "# mine\nMAILTO=ada\n", "no line end", "\n\n"])
    func aSecondInstallationChangesNothing_andARemovalLeavesWhatWasThere(table: String) throws {
        let once = try Crontab.installing(job(), in: table)
        #expect(once.hasPrefix(table) && once != table)
        #expect(try Crontab.installing(job(), in: once) == once)
        #expect(try Crontab.time(profile: nil, configuration: job().configuration, in: once)?.text == "03:05")
        let without = try Crontab.removing(profile: nil, from: once)
        #expect(without == (table.isEmpty || table.hasSuffix("\n") ? table : table + "\n"))
        #expect(try Crontab.removing(profile: nil, from: without) == without)
    }

    @Test func jobsAreChangedInTheirPlace_andTheirNeighboursStay() throws {
        var table = try Crontab.installing(job("a"), in: others)
        table = try Crontab.installing(job(), in: table) + "# after\n"
        let changed = try Crontab.installing(job("a", at: "23:59"), in: table)
        #expect(changed == table.replacingFirst("5 3 * * *", with: "59 23 * * *"))
        #expect(
            try Crontab.removing(profile: "a", from: changed) == Crontab.installing(job(), in: others) + "# after\n")
        #expect(try Crontab.removing(profile: "b", from: changed) == changed)
    }

    @Test func marksThatDoNotPairAreLeftAlone() throws {
        let table = try Crontab.installing(job(), in: others)
        let broken = table.replacing("# backup-tool: end\n", with: "")
        #expect(throws: BackupError.self) { try Crontab.installing(job(), in: broken) }
        #expect(throws: BackupError.self) { try Crontab.removing(profile: nil, from: broken) }
    }

    /// What sh makes of the command once cron has taken its part out of it.
    @Test func strangePathsArriveAsTheyAre() throws {
        try withTemporaryFolder { folder in
            let strange = "\(folder)/it's 100% \"$HOME\" `x`; é\\n.toml"
            let line = Crontab.lines(try job(tool: "/usr/bin/printf", configuration: strange))[1]
            // crontab(5): an unescaped % would be a line end; with a backslash before it, it is itself.
            let command = line.split(separator: " ", maxSplits: 5)[5].replacing("\\%", with: "%")
            #expect(!line.replacing("\\%", with: "").contains("%"))
            let said = try runProcess(["sh", "-c", String(command.replacing("--quiet run", with: "'%s\\n'"))])
            #expect(said.stdoutLines.prefix(2) == ["--config", strange])
        }
    }

    @Test func cronFindsNothingToComplainAbout() throws {
        guard (try? runProcess(["crontab", "-h"]))?.stderr.contains("dry run") == true else { return }
        try withTemporaryFolder { folder in
            try writeFile("\(folder)/table", try Crontab.installing(job("a", configuration: "/a b/%.toml"), in: others))
            let check = try runProcess(["crontab", "-n", "\(folder)/table"])
            #expect(check.status == 0, "\(check.stderr)")
        }
    }

    @Test(arguments: ["relative", "/a\nb", "/a\u{7F}", ""])
    func pathsThatAScheduleCannotHoldAreRefused(path: String) {
        #expect(throws: BackupError.self) { try job(configuration: path) }
        #expect(throws: BackupError.self) { try job(tool: path) }
    }

    @Test(arguments: ["3", "24:00", "3:5", "03:60", "-1:00", "03:00:00", " 3:00", "３:00"])
    func whatIsNoTimeOfDayIsRefused(text: String) { #expect(TimeOfDay(text) == nil) }
}

@Suite struct SystemdUnitTests {
    @Test func theUnitsAreAsRecorded() throws {
        let units = SystemdUnits(
            try job("papers", writes: ["/var/backups", "/srv/a b%"]), isUser: false)
        #expect(units.name == "backup-tool-papers")
        #expect(goldenDifference(units.service + "---\n" + units.timer, "systemd-units.txt") == nil)
        #expect(SystemdUnits.time(in: units.timer)?.text == "03:05")
    }

    @Test(arguments: [false, true])
    func systemdFindsNothingToComplainAbout(isUser: Bool) throws {
        guard (try? runProcess(["systemd-analyze", "--version"]))?.status == 0 else { return }
        try withTemporaryFolder { folder in
            let units = SystemdUnits(
                try job("a", tool: "/usr/bin/true", configuration: "/a $b/%i \"c\".toml", writes: ["/srv/a b%"]),
                isUser: isUser)
            try writeFile("\(folder)/\(units.name).service", units.service)
            try writeFile("\(folder)/\(units.name).timer", units.timer)
            // The verifier wants a place for its own files even for units of the system.
            let check = try runProcess(
                ["systemd-analyze", "verify", "\(folder)/\(units.name).service", "\(folder)/\(units.name).timer"],
                environment: testEnvironment(["XDG_RUNTIME_DIR": folder, "HOME": folder]))
            let complaints = check.stderr.split(separator: "\n").filter { $0.contains("backup-tool") }
            #expect(complaints == [] && check.status == 0, "\(check.stderr)")
        }
    }

    /// What the Debian package installs is written by hand.
    @Test func theUnitOfThePackage_hasEveryWallOfAnInstalledOne() throws {
        let packaged = try #require(readText("\(projectFolder)/packaging/backup-tool@.service")).split(separator: "\n")
        let walls = SystemdUnits(try job(), isUser: false).service.split(separator: "\n").filter { line in
            ["Protect", "Restrict", "Private", "NoNew", "Lock", "MemoryDeny", "SystemCall", "UMask"].contains {
                line.hasPrefix($0)
            }
        }
        #expect(walls.count > 15)
        for wall in walls { #expect(packaged.contains(wall), "\(wall)") }
    }

    @Test func aUserUnitHasNoWallsThatNeedRoot() throws {
        let service = SystemdUnits(try job(), isUser: true).service
        #expect(!service.contains("ProtectSystem") && service.contains("NoNewPrivileges=yes"))
    }
}

@Suite struct ScheduleStatusTests {
    private func state(_ change: (inout RunState) -> Void = { _ in }) -> RunState {
        var state = RunState()
        let run = RunState.Run(started: time(0), seconds: 60, exitCode: 0, snapshot: "abc")
        (state.lastRun, state.lastSuccess) = (run, run)
        change(&state)
        return state
    }

    private func status(_ state: RunState?, hours: Int64) -> ScheduleStatus {
        ScheduleStatus(state, now: time(hours * 3600 + 60), maxAge: 26 * 3600)
    }

    @Test func whatNeverRanIsCritical() {
        #expect(status(nil, hours: 0).level == .critical && status(nil, hours: 0).parts == ["never ran"])
        let failed = state { $0.lastSuccess = nil }
        #expect(status(failed, hours: 0).parts == ["never succeeded"])
    }

    @Test func anOldSuccessIsCritical_andAFreshOneIsFine() {
        #expect(status(state(), hours: 25).level == .ok && status(state(), hours: 27).level == .critical)
        #expect(status(state(), hours: 25).parts == ["last success 25 h ago"])
    }

    @Test func aFailedRunAndAFrozenRetentionAreWarnings_andComeFirst() {
        let failed = state { $0.lastRun = .init(started: time(100), seconds: 1, exitCode: 1, message: "disk full") }
        #expect(status(failed, hours: 1).level == .warning)
        #expect(status(failed, hours: 1).parts[0] == "last run ended with 1 (disk full)")
        let damaged = state { $0.lastRun = .init(started: time(100), seconds: 1, exitCode: 4) }
        #expect(status(damaged, hours: 1).level == .critical)
        let frozen = state { ($0.suspect, $0.suspicions) = ("0123456789", ["notes: fell from 9 to 0"]) }
        #expect(status(frozen, hours: 1).level == .warning)
        #expect(status(frozen, hours: 1).parts[0].hasSuffix("notes: fell from 9 to 0 (snapshot 01234567)"))
    }

    @Test func aStateWithAnyNumbersIsCompared() throws {
        let json = #"{"publications":9223372036854775807,"notes":9223372036854775807,"tombstones":9223372036854775807}"#
        let census = LibraryCensus(try Array(json.utf8).withUnsafeBytes { try JSON(parsing: $0) })
        #expect(!Tripwire().compare(LibraryCensus(.null), with: census).isEmpty)
    }

    @Test func aFailedDrillIsCritical() {
        let drilled = state { $0.lastDrill = .init(time: time(0), isOK: false, seconds: 0) }
        #expect(status(drilled, hours: 1).level == .critical)
    }

    @Test func aSuccessInTheFutureHidesNothing() { #expect(status(state(), hours: -2).level == .critical) }

    @Test func theStateIsReadAsItWasWritten() throws {
        let full = state {
            $0.lastDrill = .init(time: time(5), isOK: true, seconds: 1.5)
            $0.good = .init(snapshot: "abc", census: LibraryCensus([.notes: 4]))
            ($0.drillHead, $0.suspect, $0.suspicions, $0.acknowledged) = ("ff", "def", ["x"], ["1", "2"])
            ($0.snapshots, $0.vaultBytes) = (7, 1 << 40)
        }
        try withTemporaryFolder { folder in
            let path = RunState.path(in: "\(folder)/state", profile: "a")
            #expect(try RunState.read(path) == nil)
            try full.write(path)
            #expect(try RunState.read(path) == full)
            for cut in 0..<full.json.pretty.utf8.count - 1 {
                try writeFile(path, String(full.json.pretty.prefix(cut)))
                #expect(throws: BackupError.self) { try RunState.read(path) }
            }
        }
    }

    @Test func theNextRunIsTodayOrTomorrow() throws {
        let now = try #require(Timestamp(iso8601: "2026-03-01T12:00:00Z"))
        setenv("TZ", "UTC", 0)
        var waits: [Int64] = []
        for text in ["12:01", "12:00", "00:00", "23:59"] {
            let time = try #require(TimeOfDay(text))
            let next = try #require(ScheduleStatus.next(time, after: now))
            waits.append(next.milliseconds - now.milliseconds)
        }
        #expect(waits.allSatisfy { $0 > 0 && $0 <= 86_400_000 })
    }

    // MARK: Metrics

    @Test func aFailedRunLeavesTheLastSuccessInTheMetrics() throws {
        let failed = state {
            $0.lastRun = .init(started: time(86400), seconds: 2.5, exitCode: 1)
            $0.suspect = "x"
        }
        let text = Metrics.text([("a\"b\\c\nd", failed), (nil, state())])
        let label = #"{profile="a\"b\\c\nd"}"#
        #expect(text.contains("backup_tool_last_success_timestamp_seconds\(label) 1767225660\n"))
        #expect(text.contains("backup_tool_last_run_exit_code\(label) 1\n"))
        #expect(text.contains("backup_tool_retention_frozen\(label) 1\n"))
        // Each metric is declared once, before its value, and the file ends with a line end.
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let name = line.prefix { $0 != "{" }
            #expect(text.ranges(of: "# TYPE \(name) gauge\n\(name){").count == 1)
        }
        #expect(text.hasSuffix("\n"))
        // Nor does another profile that writes into the same file.
        #expect(
            text.contains(
                "backup_tool_last_run_exit_code\(label) 1\nbackup_tool_last_run_exit_code{profile=\"default\"} 0\n"))
        try withTemporaryFolder { folder in
            try Metrics.write([("a", failed)], to: "\(folder)/m.prom")
            try Metrics.write([("a", state())], to: "\(folder)/m.prom")
            #expect(try FileStatus.ofName("\(folder)/m.prom").map { $0.mode & 0o777 } == 0o644)
            #expect(try Directory.names(in: folder) == ["m.prom"])
        }
    }
}

extension String {
    fileprivate func replacingFirst(_ old: String, with new: String) -> String {
        guard let range = firstRange(of: old) else { return self }
        return replacingCharacters(in: range, with: new)
    }

    private func replacingCharacters(in range: Range<Index>, with new: String) -> String {
        self[..<range.lowerBound] + new + self[range.upperBound...]
    }
}
