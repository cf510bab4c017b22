import BackupKit
import Glibc

extension Command {
    static let schedule = Command(
        "schedule", "Schedule nightly backups and show their status", in: .schedule,
        subcommands: [scheduleInstall, scheduleRemove, scheduleStatus])

    private static let scheduleInstall = Command(
        "install", "Schedule the nightly job with cron or systemd", in: .schedule,
        discussion: """
            Shows what it writes, and writes it: lines in this account's crontab, between marks of their own, or a \
            service and a timer for systemd. A second time changes nothing but what is different. Every path in it is \
            absolute, so it works with the empty environment of cron.

            With cron a night that the machine was off is caught up with after the next start; systemd's timer does so \
            by itself. Units go to /etc/systemd/system for root, else to the account's own.
            """,
        options: [
            .flag("cron", "Use this account's crontab"), .flag("systemd", "Use a service and a timer of systemd"),
            .value("at", "HH:MM", "When to run; 03:00 is usual"), .profile,
            .flag("user", "Units of this account even for root"), .dryRun,
        ],
        examples: [
            Example("backup-tool schedule install --cron --config nightly.toml", "Every night at three"),
            Example("backup-tool schedule install --systemd --at 04:30 --dry-run", "See the units first"),
        ],
        run: { call in
            let useCron = call.flag("cron")
            guard useCron != call.flag("systemd") else { throw call.usage("say --cron or --systemd") }
            let job = try call.job()
            let plan =
                useCron
                ? try ScheduleInstaller.planCron(job)
                : try ScheduleInstaller.planSystemd(job, in: try call.unitFolder(), isUser: call.isUser)
            for line in plan.shown { call.output.print(printable(line)) }
            if let time = useCron ? call.systemdTime() : call.cronTime() {
                call.output.warn(
                    "\(useCron ? "systemd" : "cron") runs it too, at \(time.text): 'backup-tool schedule remove' takes "
                        + "it out of both")
            }
            return try call.carryOut(plan, nothing: "That is in place already.")
        })

    private static let scheduleRemove = Command(
        "remove", "Remove the nightly job from cron and systemd", in: .schedule,
        discussion: "Removes what 'schedule install' wrote for this profile, and nothing else.",
        options: [.profile, .flag("user", "Units of this account even for root"), .dryRun],
        examples: [Example("backup-tool schedule remove", "No more nightly runs")],
        run: { call in
            let profile = call.value("profile")
            var plans = [
                try ScheduleInstaller.planSystemdRemoval(profile: profile, in: try call.ownUnits, isUser: true)
            ]
            if !call.isUser {
                let folder = call.systemUnits
                plans.append(try ScheduleInstaller.planSystemdRemoval(profile: profile, in: folder, isUser: false))
            }
            do { plans.append(try ScheduleInstaller.planCronRemoval(profile: profile)) } catch let error as BackupError
                where error.code == .notFound
            {
                // Without cron nothing of ours can be in it.
            }
            guard plans.contains(where: { !$0.isEmpty }) else {
                call.output.note("There is nothing to remove.")
                return .done
            }
            for plan in plans where !plan.isEmpty { _ = try call.carryOut(plan, nothing: "") }
            return .done
        })

    private static let scheduleStatus = Command(
        "status", "Tell how the nightly runs are doing", in: .schedule,
        discussion: """
            One line in the manner of a monitoring plugin: when the last run that was fine ended, when the next is due, \
            how the last drill went. The exit code is 0 when all is well; 1 when something needs attention, such \
            as a last run that was not fine; 2 when no run was fine for longer than --max-age, the last one found damage, or a \
            drill failed; 3 when the status is unknown.
            """,
        options: [
            .value("max-age", "AGE", "Critical when the last good run is older than AGE (default: 26h)"), .profile,
            .store, .vault,
        ],
        examples: [
            Example("backup-tool schedule status", "Whether there are backups"),
            Example("backup-tool schedule status --vault /mnt/offsite/vault", "For runs into another vault"),
            Example("backup-tool schedule status --max-age 50h --profile papers", "For a run every other day"),
        ],
        reports: true, readsConfiguration: true,
        run: { call in
            let text = call.value("max-age") ?? "26h"
            guard let maxAge = CalendarSpan(text)?.approximateSeconds else {
                throw call.usage("--max-age must be a span such as 26h or 3d, not '\(printable(text))'")
            }
            do { return try call.status(maxAge) } catch let error as BackupError {
                // A plugin that ends with 1 would call this a warning, and no monitor knows 64.
                return call.reportUnknown(error)
            }
        })
}

extension Invocation {
    fileprivate var isUser: Bool { flag("user") || geteuid() != 0 }

    /// Where units lie: those of the system, or of this account.
    fileprivate func unitFolder() throws -> String {
        try isUser ? ownUnits : systemUnits
    }

    fileprivate var systemUnits: String { "/etc/systemd/system" }

    fileprivate var ownUnits: String {
        get throws {
            if let folder = environment["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return folder + "/systemd/user" }
            return try environment.home() + "/.config/systemd/user"
        }
    }

    fileprivate func status(_ maxAge: Int64) throws -> ExitStatus {
        let settings = try configuration()
        let session = try nightlySession(settings)
        let state = try session.remembered()
        let now = Clock.system.now()
        let isAtWork = state?.begun != nil && session.route.map { NightlySession.mayBeAtWork(in: $0.vault) } ?? false
        var status = ScheduleStatus(state, now: now, maxAge: maxAge, isAtWork: isAtWork)
        if state != nil {
            if let problem = session.placeProblem() { status.add(problem) }
        } else {
            status.add(others: try RunState.routes(in: session.stateFolder, profile: session.profile))
        }
        let time = systemdTime() ?? cronTime()
        report(status, state, next: time.flatMap { ScheduleStatus.next($0, after: now) }, maxAge: maxAge)
        return ExitStatus(monitoring: status.level.rawValue)
    }

    fileprivate func reportUnknown(_ error: BackupError) -> ExitStatus {
        if output.isJSON {
            output.report([
                "message_type": "schedule-status", "level": "UNKNOWN",
                "parts": .array([.string(output.advice.completed(error.description))]),
            ])
        } else {
            output.print("BACKUP UNKNOWN - \(Self.plain(output.advice.completed(error.description)))")
        }
        return ExitStatus(monitoring: 3)
    }

    /// What stands after a | is figures to a monitor.
    private static func plain(_ text: String) -> String { printable(text).replacing("|", with: "/") }

    // When systemd and cron will start the next run. An account that may not look there is told nothing, and not that it
    // failed.

    fileprivate func systemdTime() -> TimeOfDay? {
        guard let file = try? configuration().file.map(absoluteName) else { return nil }
        for case let folder? in [systemUnits, try? ownUnits] {
            if let time = try? ScheduleInstaller.systemdTime(profile: value("profile"), configuration: file, in: folder)
            {
                return time
            }
        }
        return nil
    }

    fileprivate func cronTime() -> TimeOfDay? {
        guard let file = try? configuration().file.map(absoluteName) else { return nil }
        return try? ScheduleInstaller.cronTime(profile: value("profile"), configuration: file)
    }

    fileprivate func job() throws -> ScheduledJob {
        let text = value("at") ?? "03:00"
        guard let time = TimeOfDay(text) else {
            throw usage("--at must be a time of day such as 03:00, not '\(printable(text))'")
        }
        guard let file = try configuration().file else {
            throw BackupError(
                .usage, "there is no configuration file that a nightly run could read",
                remedy: "write one (docs/nightly.md shows how), and name it with --config")
        }
        let settings = try configuration()
        try requireWhole(settings)
        var writes = [try environment.stateFolder(settings)]
        for path in [settings.text("vault"), try? environment.store(option: nil, configuration: settings)] {
            if let path { writes.append(path == settings.text("vault") ? path : parent(of: path)) }
        }
        if let path = settings.text("metrics.file") { writes.append(parent(of: path)) }
        return try ScheduledJob(
            tool: try absolutePath("/proc/self/exe"), configuration: try absoluteName(file), profile: value("profile"),
            time: time,
            home: try environment.home(), writes: try Set(writes).map(absolutePath))
    }

    /// cron and systemd have none of the variables that may hold these now.
    private func requireWhole(_ settings: Configuration) throws {
        var missing: [String] = []
        if settings.text("vault") == nil { missing.append("vault") }
        if settings.text("password-file") == nil, settings.text("password-command") == nil {
            missing.append("password-file")
        }
        if settings.text("store") == nil, environment["BACKUP_TOOL_STORE"] != nil { missing.append("store") }
        guard missing.isEmpty else {
            throw BackupError(
                .usage,
                "a run by itself needs \(missing.joined(separator: " and ")), which the configuration does not name",
                at: settings.file, remedy: "write it there; docs/configuration.md shows how")
        }
    }

    /// Does not follow links: the paths in a configuration start at the folder in which it is found.
    func absoluteName(_ path: String) throws -> String {
        if path.hasPrefix("/") { return path }
        return try absolutePath(".") + "/" + path
    }

    /// Follows links; what is not there yet is taken as it is named.
    func absolutePath(_ path: String) throws -> String {
        if let found = Directory.real(path) { return found }
        if path.hasPrefix("/") { return path }
        guard let folder = Directory.real(".") else { throw BackupError(.failed, "has no absolute path", at: path) }
        return "\(folder)/\(path)"
    }

    fileprivate func carryOut(_ plan: ScheduleInstaller.Plan, nothing: String) throws -> ExitStatus {
        if plan.isEmpty {
            output.note(nothing)
            return .done
        }
        let places = plan.places.map(printable).joined(separator: ", ")
        if flag("dry-run") {
            let what = places.isEmpty ? "enable the timer" : "\(plan.isRemoval ? "remove" : "change") \(places)"
            output.note("Would \(what). Nothing was written.")
            return .done
        }
        let left = try ScheduleInstaller.apply(plan)
        if !places.isEmpty { output.note("\(plan.isRemoval ? "Removed" : "Changed"): \(places)") }
        guard !left.isEmpty else { return .done }
        output.warn(
            plan.isRemoval
                ? "systemd is not running on this machine. Where it is, run:"
                : "systemd is not running on this machine, so no run is scheduled. Where it is, run:")
        for words in left { output.note("  \(words.joined(separator: " "))") }
        return plan.isRemoval ? .done : .incomplete
    }

    fileprivate func report(_ status: ScheduleStatus, _ state: RunState?, next: Timestamp?, maxAge: Int64) {
        if output.isJSON {
            return output.report([
                "message_type": "schedule-status", "level": .string(status.level.word),
                "parts": .array(status.parts.map { .string(output.advice.completed($0)) }),
                "next": next.map { .string($0.iso8601) } ?? .null,
                "lastRun": state?.lastRun?.json ?? .null, "lastSuccess": state?.lastSuccess?.json ?? .null,
                "suspect": state?.suspect.map { .string($0) } ?? .null,
            ])
        }
        var parts = status.parts
        parts.append(next.map { "next run \($0.iso8601.prefix(16))Z" } ?? "not scheduled")
        let figures = status.lastSuccessAge.map { " | age=\($0)s;;\(maxAge)" } ?? ""
        let said = Self.plain(output.advice.completed(parts.joined(separator: ", ")))
        output.print("BACKUP \(status.level.word) - \(said)\(figures)")
    }
}
