import Glibc

/// How the nightly runs are doing, in the manner of a monitoring plugin.
public struct ScheduleStatus: Sendable, Equatable {
    public enum Level: Int32, Sendable, Comparable {
        case ok = 0
        case warning = 1
        case critical = 2

        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

        public var word: String {
            switch self {
            case .ok: "OK"
            case .warning: "WARNING"
            case .critical: "CRITICAL"
            }
        }
    }

    /// Seconds of age from which on a time is one that cannot have been.
    static let future: Int64 = -3600
    /// The number of a run that found damage (docs/exit-codes.md).
    private static let damage: Int32 = 4

    public private(set) var level = Level.ok
    /// What is not as it should be, and what is worth knowing.
    public private(set) var parts: [String] = []
    public let lastSuccessAge: Int64?

    /// `isAtWork`: a run has not ended yet.
    public init(_ state: RunState?, now: Timestamp, maxAge: Int64, isAtWork: Bool = false) {
        let success = state?.success(at: now)
        lastSuccessAge = success?.age(at: now)
        if let age = lastSuccessAge {
            add(age > maxAge ? .critical : .ok, "last success \(Self.span(age)) ago")
        }
        // A clock that was wrong must not hide that nothing runs any more.
        if let last = state?.lastSuccess, last != success {
            add(
                success == nil ? .critical : .warning,
                "a good run is dated ahead (\(last.ended.iso8601.prefix(16))Z); is the clock right?")
        } else if success == nil {
            add(.critical, state?.lastRun == nil ? "never ran" : "never succeeded")
        }
        if let begun = state?.begun {
            let age = Self.span((now.milliseconds - begun.milliseconds) / 1000)
            let end = isAtWork ? "" : ": it was cut short"
            add(isAtWork ? .ok : .warning, "a run began \(age) ago and has not ended\(end)")
        }
        if let run = state?.lastRun, run.exitCode != 0 {
            add(
                run.exitCode == Self.damage ? .critical : .warning,
                "last run ended with \(run.exitCode)\(run.message.map { " (\($0))" } ?? "")")
        }
        if let suspect = state?.suspect {
            let loss = state?.suspicions.first ?? "much is gone"
            add(.warning, "nothing is removed any more: \(loss) (snapshot \(suspect.prefix(8)))")
        }
        if let drill = state?.lastDrill {
            let age = Self.span((now.milliseconds - drill.time.milliseconds) / 1000)
            add(drill.isOK ? .ok : .critical, "last drill \(drill.isOK ? "passed" : "failed") \(age) ago")
        }
    }

    /// Adds the commands that show the other runs of this profile.
    public mutating func add(others: [RunState.Route]) {
        for route in others {
            let command = TypedCommand.quoted(
                "schedule status", options: ["store": route.store, "vault": route.vault])
            parts.append("\(command) shows the runs of \(route.store)")
        }
    }

    /// Adds what will keep the next runs from being known here.
    public mutating func add(_ problem: BackupError) {
        add(.warning, problem.description)
    }

    private mutating func add(_ level: Level, _ text: String) {
        self.level = max(self.level, level)
        // The worst comes first.
        if level > .ok { parts.insert(text, at: 0) } else { parts.append(text) }
    }

    /// "3 h", "2 d": enough to judge by.
    static func span(_ seconds: Int64) -> String {
        let seconds = max(0, seconds)
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) d"
    }

    /// The next time that a clock on this wall shows `time`.
    public static func next(_ time: TimeOfDay, after now: Timestamp) -> Timestamp? {
        var seconds = time_t(now.milliseconds / 1000)
        var wall = tm()
        guard localtime_r(&seconds, &wall) != nil else { return nil }
        for _ in 0..<2 {
            (wall.tm_hour, wall.tm_min, wall.tm_sec) = (Int32(time.hour), Int32(time.minute), 0)
            wall.tm_isdst = -1
            var copy = wall
            let next = mktime(&copy)
            if next > seconds { return Timestamp(milliseconds: Int64(next) * 1000) }
            wall.tm_mday += 1
        }
        return nil
    }
}
