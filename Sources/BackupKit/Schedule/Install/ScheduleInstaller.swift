/// Puts a job into the crontab of this account, or units into a folder of systemd, and takes them out again.
public enum ScheduleInstaller {
    /// What an installation or removal does: shown first, then done. A second one finds nothing to do.
    public struct Plan: Sendable {
        public struct Change: Sendable {
            /// The file, or "the crontab".
            public let place: String
            /// Nil removes it.
            public let bytes: [UInt8]?
        }

        /// What our part will be, for people.
        public let shown: [String]
        public let changes: [Change]
        /// Run afterwards, where systemd is running.
        public let commands: [[String]]
        public var isRemoval = false
        /// What is written or removed. Other lines of a crontab stay.
        public var places: [String] {
            let crontab = ScheduleInstaller.theCrontab
            return changes.map { isRemoval && $0.place == crontab ? "backup-tool's lines in \(crontab)" : $0.place }
        }

        public var isEmpty: Bool { changes.isEmpty && commands.isEmpty }
    }

    // MARK: cron

    public static func planCron(_ job: ScheduledJob) throws -> Plan {
        let table = try crontab()
        let new = try Crontab.installing(job, in: table)
        return Plan(
            shown: Crontab.lines(job), changes: new == table ? [] : [.init(place: theCrontab, bytes: new)], commands: []
        )
    }

    public static func planCronRemoval(profile: String?) throws -> Plan {
        let table = try crontab()
        let new = try Crontab.removing(profile: profile, from: table)
        return Plan(
            shown: [], changes: new == table ? [] : [.init(place: theCrontab, bytes: new)], commands: [],
            isRemoval: true
        )
    }

    /// When cron runs the job; nil when it does not, or when there is no cron.
    public static func cronTime(profile: String?, configuration: String) throws -> TimeOfDay? {
        do { return try Crontab.time(profile: profile, configuration: configuration, in: crontab()) } catch let error
            as BackupError
            where error.code == .notFound
        { return nil }
    }

    private static let theCrontab = "the crontab"

    private static func crontab() throws -> [UInt8] {
        let result = try runCrontab(["-l"], input: [])
        if result.status == 0 { return result.output }
        // "no crontab for ada" is not an error to us; POSIX gives it no code of its own.
        if result.errors.contains("no crontab") { return [] }
        throw BackupError(.failed, "cannot be read: \(firstLine(result.errors))", at: theCrontab)
    }

    private static func runCrontab(_ arguments: [String], input: [UInt8]) throws -> Subprocess.Result {
        do { return try Subprocess.run(["crontab"] + arguments, input: input) } catch let error
            as BackupError
            where error.code == .notFound
        {
            throw BackupError(
                .notFound, "cron is not installed: there is no program 'crontab'",
                remedy: "install cron, or use --systemd")
        }
    }

    // MARK: systemd

    public static func planSystemd(_ job: ScheduledJob, in folder: String, isUser: Bool) throws -> Plan {
        let units = SystemdUnits(job, isUser: isUser)
        let files = [("\(units.name).service", units.service), ("\(units.name).timer", units.timer)]
        if let old = try read("\(folder)/\(units.name).service"), !old.contains(units.configuration) {
            throw job.isTaken(by: "\(folder)/\(units.name).service")
        }
        var changes: [Plan.Change] = []
        for (name, text) in files where try read("\(folder)/\(name)") != text {
            changes.append(.init(place: "\(folder)/\(name)", bytes: Array(text.utf8)))
        }
        let control = ["systemctl"] + (isUser ? ["--user"] : [])
        let isInPlace = try changes.isEmpty && isEnabled("\(units.name).timer", in: folder)
        return Plan(
            shown: files.flatMap {
                ["# \(folder)/\($0.0)"] + $0.1.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            },
            changes: changes,
            commands: isInPlace
                ? [] : [control + ["daemon-reload"], control + ["enable", "--now", "\(units.name).timer"]])
    }

    public static func planSystemdRemoval(profile: String?, in folder: String, isUser: Bool) throws -> Plan {
        let name = ScheduledJob.name(profile)
        var changes: [Plan.Change] = []
        for ending in ["timer", "service"] where try FileStatus.ofName("\(folder)/\(name).\(ending)") != nil {
            changes.append(.init(place: "\(folder)/\(name).\(ending)", bytes: nil))
        }
        let control = ["systemctl"] + (isUser ? ["--user"] : [])
        return Plan(
            shown: [], changes: changes,
            commands: changes.isEmpty
                ? [] : [control + ["disable", "--now", "\(name).timer"], control + ["daemon-reload"]], isRemoval: true)
    }

    /// When the timer starts the next run with this configuration; nil when it is not enabled.
    public static func systemdTime(profile: String?, configuration: String, in folder: String) throws -> TimeOfDay? {
        let name = ScheduledJob.name(profile)
        guard try isEnabled("\(name).timer", in: folder),
            try read("\(folder)/\(name).service")?.contains(SystemdUnits.words(ofConfiguration: configuration)) == true
        else { return nil }
        return try read("\(folder)/\(name).timer").flatMap(SystemdUnits.time)
    }

    /// systemd links an enabled timer into this folder.
    private static func isEnabled(_ timer: String, in folder: String) throws -> Bool {
        try FileStatus.ofName("\(folder)/timers.target.wants/\(timer)") != nil
    }

    private static func read(_ path: String) throws -> String? {
        guard try FileStatus.ofTarget(path) != nil else { return nil }
        var bytes: [UInt8] = []
        try FileHandle.openForReading(path).forEachChunk { bytes += $0.prefix(1 << 20) }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Doing it

    /// Returns the commands that somebody has to run by hand, because systemd does not run here.
    public static func apply(_ plan: Plan) throws -> [[String]] {
        // What is switched off must be there while it is switched off.
        let canRun = try FileStatus.ofTarget("/run/systemd/system") != nil
        if plan.isRemoval, canRun, let first = plan.commands.first { try command(first) }
        for change in plan.changes {
            if change.place == theCrontab {
                let result = try runCrontab(["-"], input: change.bytes ?? [])
                guard result.status == 0 else {
                    throw BackupError(.failed, "was refused: \(firstLine(result.errors))", at: theCrontab)
                }
            } else if let bytes = change.bytes {
                try Directory.createAll(parent(of: change.place), mode: 0o755)
                let place = try OutputPlace.behindLinks(change.place)
                try AtomicFile.write(place, replace: true, mode: 0o644) { file in
                    try bytes.withUnsafeBytes { try file.write($0) }
                }
            } else {
                try AtomicFile.remove([change.place])
            }
        }
        guard canRun else { return plan.commands }
        for words in plan.commands.dropFirst(plan.isRemoval ? 1 : 0) { try command(words) }
        return []
    }

    private static func command(_ words: [String]) throws {
        let result = try Subprocess.run(words)
        guard result.status == 0 else {
            throw BackupError(
                .failed, "ended with \(result.status): \(firstLine(result.errors))", at: words.joined(separator: " "))
        }
    }

    private static func firstLine(_ text: String) -> String { String(text.prefix { $0 != "\n" }) }
}
