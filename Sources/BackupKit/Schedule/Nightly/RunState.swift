import Glibc

/// What the nightly runs of one store into one vault left behind for the next, for `schedule status` and for metrics.
public struct RunState: Sendable, Equatable {
    /// A store and the vault that it is backed up into, by their full paths.
    public struct Route: Sendable, Equatable {
        public let store: String
        public let vault: String

        public init(store: String, vault: String) { (self.store, self.vault) = (store, vault) }
    }

    public struct Run: Sendable, Equatable {
        public var started: Timestamp
        public var seconds: Double
        /// As the command ended.
        public var exitCode: Int32
        public var snapshot: String?
        /// What was wrong, in a few words.
        public var message: String?

        public init(
            started: Timestamp, seconds: Double, exitCode: Int32, snapshot: String? = nil, message: String? = nil
        ) {
            (self.started, self.seconds, self.exitCode) = (started, seconds, exitCode)
            (self.snapshot, self.message) = (snapshot, message)
        }
    }

    public struct DrillResult: Sendable, Equatable {
        public var time: Timestamp
        public var isOK: Bool
        public var seconds: Double

        public init(time: Timestamp, isOK: Bool, seconds: Double) {
            (self.time, self.isOK, self.seconds) = (time, isOK, seconds)
        }
    }

    /// The last snapshot that nothing was suspicious about, by the name that it first had, and what it held.
    public struct Good: Sendable, Equatable {
        public var snapshot: String
        public var census: LibraryCensus
        /// When it was taken, by the clock of then.
        public var time: Timestamp?

        public init(snapshot: String, census: LibraryCensus, time: Timestamp? = nil) {
            (self.snapshot, self.census, self.time) = (snapshot, census, time)
        }
    }

    /// The file that said what to do.
    public var configuration: String?
    /// What the last run backed up, and where.
    public var route: Route?
    public var lastRun: Run?
    /// When a run began that has not ended: it is at work, or was killed.
    public var begun: Timestamp?
    /// A failed run does not take this away.
    public var lastSuccess: Run?
    /// Those before it, the newest first and fewer the older: after a clock that was ahead, one of them is the last.
    public private(set) var earlierSuccesses: [Run] = []
    public var lastDrill: DrillResult?
    /// The last line of `drills.jsonl`, by its digest: lines taken from its end are missed.
    public var drillHead: String?
    public var good: Good?
    /// The snapshot for which retention is frozen, and what was suspicious about it.
    public var suspect: String? { didSet { if suspect == nil { suspectOrigin = nil } } }
    public var suspicions: [String] = []
    /// The name that it first had.
    public var suspectOrigin: String?
    /// Suspicious snapshots that somebody has looked at and found right.
    public var acknowledged: [String] = []
    /// The snapshots that were there when the last run compared, by the names that they first had.
    public var judged: [String] = []
    /// When the last run was that went by the clock to remove what is old, and how many seconds after the one before.
    public var lastForget: Timestamp?
    public var forgetGap: Int64 = 0
    /// What of the file could not be understood.
    public var doubt: String?
    /// What the last check found damage in; the next one reads everything.
    public var damagedParts: [String] = []
    public var snapshots: Int?
    public var vaultBytes: Int64?

    public init() {}

    /// What the runs of all profiles remember of the drills in `folder`, with the names of their files.
    public static func drillHeads(in folder: String) throws -> [(file: String, head: String)] {
        guard try FileStatus.ofTarget(folder) != nil else { return [] }
        return try Directory.names(in: folder).sorted().compactMap { name in
            guard name.hasPrefix("run-"), name.hasSuffix(".json"), let state = try? read("\(folder)/\(name)"),
                let head = state.drillHead
            else { return nil }
            return (name, head)
        }
    }

    /// The stores and vaults of all runs of a profile that have a state in `folder`.
    public static func routes(in folder: String, profile: String?) throws -> [Route] {
        guard try FileStatus.ofTarget(folder) != nil else { return [] }
        let start = lastComponent(of: path(in: folder, profile: profile)).dropLast(".json".count)
        return try Directory.names(in: folder).sorted().compactMap { name in
            guard name == "\(start).json" || name.hasPrefix("\(start)@") else { return nil }
            return (try? read("\(folder)/\(name)"))?.route
        }
    }

    // MARK: As a file

    /// `route` is named where it is not the configuration's.
    public static func path(in folder: String, profile: String?, _ route: Route? = nil) -> String {
        let mark = route.map { "@\(SHA256Digest.of("\($0.store)\0\($0.vault)").hex.prefix(8))" } ?? ""
        return "\(folder)/run-\(profile ?? "default")\(mark).json"
    }

    /// Nil when there is none yet.
    public static func read(_ path: String) throws -> RunState? {
        guard try FileStatus.ofTarget(path) != nil else { return nil }
        var bytes: [UInt8] = []
        try FileHandle.openForReading(path).forEachChunk { chunk in
            bytes += chunk
            guard bytes.count <= 4 << 20 else {
                throw BackupError(.damaged, "is larger than any state of a run should be", at: path)
            }
        }
        do {
            let json = try bytes.withUnsafeBytes { try JSON(parsing: $0) }
            var state = RunState(json)
            // What cannot be understood is not to be taken for what is not there.
            guard let members = json.members, !members.isEmpty else {
                throw BackupError(.damaged, "is no state of a run")
            }
            for name in members.map(\.key) where Self.vital.contains(name) && state.json[name] == nil {
                state.doubt = "its '\(name)' cannot be understood"
            }
            return state
        } catch let error as BackupError {
            throw BackupError(
                .damaged, error.message, at: path,
                remedy: "the next run writes a new one")
        }
    }

    /// Without these a run would remove what it must not.
    private static let vital: Set<String> = ["good", "suspect", "lastRun", "lastDrill", "drillHead", "damagedParts"]

    /// What the next run will not know of must not be removed.
    mutating func note(_ problem: BackupError?) { doubt = doubt ?? problem?.message }

    public func write(_ path: String) throws {
        try Directory.createAll(parent(of: path))
        try AtomicFile.write(path, replace: true) { try $0.write(json.pretty) }
    }

    public init(_ json: JSON) {
        configuration = json["configuration"]?.string
        if let store = json["store"]?.string, let vault = json["vault"]?.string {
            route = Route(store: store, vault: vault)
        }
        lastRun = json["lastRun"].flatMap(Run.init)
        begun = json.time("begun")
        lastSuccess = json["lastSuccess"].flatMap(Run.init)
        earlierSuccesses = json["earlierSuccesses"]?.array?.compactMap(Run.init) ?? []
        if let drill = json["lastDrill"], let time = drill.time("time"), let isOK = drill["ok"]?.bool {
            lastDrill = DrillResult(time: time, isOK: isOK, seconds: drill["seconds"]?.double ?? 0)
        }
        drillHead = json["drillHead"]?.string
        if let good = json["good"], let snapshot = good["snapshot"]?.string {
            self.good = Good(
                snapshot: snapshot, census: LibraryCensus(good["census"] ?? .null), time: good.time("time"))
        }
        suspect = json["suspect"]?.string
        suspicions = json["suspicions"]?.array?.compactMap(\.string) ?? []
        acknowledged = json["acknowledged"]?.array?.compactMap(\.string) ?? []
        judged = json["judged"]?.array?.compactMap(\.string) ?? []
        lastForget = json.time("lastForget")
        forgetGap = max(0, json["forgetGap"]?.integer ?? 0)
        suspectOrigin = json["suspectOrigin"]?.string
        damagedParts = json["damagedParts"]?.array?.compactMap(\.string) ?? []
        snapshots = json["snapshots"]?.integer.map { Int(clamping: $0) }
        vaultBytes = json["vaultBytes"]?.integer
    }

    public var json: JSON {
        var members: [JSON.Member] = []
        func add(_ name: String, _ value: JSON?) { if let value { members.append(.init(name, value)) } }
        add("configuration", configuration.map { .string($0) })
        add("store", route.map { .string($0.store) })
        add("vault", route.map { .string($0.vault) })
        add("lastRun", lastRun?.json)
        add("begun", begun.map { .string($0.iso8601) })
        add("lastSuccess", lastSuccess?.json)
        if !earlierSuccesses.isEmpty { add("earlierSuccesses", .array(earlierSuccesses.map(\.json))) }
        add(
            "lastDrill",
            lastDrill.map {
                ["time": .string($0.time.iso8601), "ok": .bool($0.isOK), "seconds": .seconds($0.seconds)]
            })
        add("drillHead", drillHead.map { .string($0) })
        add(
            "good",
            good.map { good in
                let time = good.time.map { [JSON.Member("time", .string($0.iso8601))] } ?? []
                return .object([.init("snapshot", .string(good.snapshot)), .init("census", good.census.json)] + time)
            })
        add("suspect", suspect.map { .string($0) })
        if !suspicions.isEmpty { add("suspicions", .array(suspicions.map { .string($0) })) }
        if !acknowledged.isEmpty { add("acknowledged", .array(acknowledged.map { .string($0) })) }
        if !judged.isEmpty { add("judged", .array(judged.map { .string($0) })) }
        add("lastForget", lastForget.map { .string($0.iso8601) })
        if forgetGap > 0 { add("forgetGap", JSON(forgetGap)) }
        add("suspectOrigin", suspectOrigin.map { .string($0) })
        if !damagedParts.isEmpty { add("damagedParts", .array(damagedParts.map { .string($0) })) }
        add("snapshots", snapshots.map { JSON($0) })
        add("vaultBytes", vaultBytes.map { JSON($0) })
        return .object(members)
    }
}

extension RunState {
    private var allSuccesses: [Run] { [lastSuccess].compactMap(\.self) + earlierSuccesses }

    private func isBelieved(_ run: Run, at now: Timestamp) -> Bool { run.age(at: now) >= ScheduleStatus.future }

    /// The good runs that are not dated in the future, the newest first. One by a clock a little ahead comes last.
    private func successes(at now: Timestamp) -> [Run] {
        func rank(_ run: Run) -> (Int, Timestamp) { (run.started <= now ? 1 : 0, run.started) }
        return allSuccesses.filter { isBelieved($0, at: now) }.sorted { rank($0) > rank($1) }
    }

    private func successes(after now: Timestamp) -> [Run] { allSuccesses.filter { !isBelieved($0, at: now) } }

    public func success(at now: Timestamp) -> Run? { successes(at: now).first }

    /// Good runs dated in the future do not count as the last one. They are kept, because this clock may be the wrong one.
    mutating func passOverSuccesses(after now: Timestamp) {
        let (believed, ahead) = (successes(at: now), successes(after: now))
        (lastSuccess, earlierSuccesses) = (believed.first, believed.dropFirst() + ahead)
    }

    /// Each that is remembered is twice as old as the one before, so that a year of nights is a handful, and no number of
    /// nights by a wrong clock displaces the last one by the right clock.
    mutating func succeed(_ run: Run) {
        var oldest: Int64 = 0
        let ahead = successes(after: run.ended)
        let kept = successes(at: run.ended).filter { success in
            let age = max(0, success.age(at: run.ended))
            guard age >= 2 * oldest else { return false }
            oldest = age
            return true
        }
        (lastSuccess, earlierSuccesses) = (run, kept + ahead)
    }
}

extension RunState {
    /// By a clock that is a year ahead everything is old, so no run that finds such a jump removes anything. It is told once:
    /// the next run goes by that clock, or by one that was put right. While nothing may be removed, it stays to be told.
    mutating func jumpOfClock(at now: Timestamp, isFrozen: Bool) -> Finding? {
        guard let last = lastForget else {
            lastForget = now
            return nil
        }
        let passed = (now.milliseconds - last.milliseconds) / 1000
        // Who runs once a month has no clock that jumps.
        let jumps = passed > 8 * 86_400 && passed > forgetGap + forgetGap / 2
        if jumps, isFrozen { return nil }
        lastForget = now
        // Nobody runs as rarely as a clock that was put right makes it look: the next jump must not pass for usual.
        if passed < 100 * 86_400 { forgetGap = max(0, passed) }
        guard jumps else { return nil }
        return Finding(
            .suspiciousLoss, .warning, "the clock",
            "says that the last run was \(ScheduleStatus.span(passed)) ago, so nothing is removed this time",
            remedy: "look whether it is right; the next run takes it for right")
    }
}

extension DrillEntry {
    /// The newest is tried first, and its time to recover counts; all of them have to pass.
    public func result(after first: RunState.DrillResult?) -> RunState.DrillResult {
        .init(time: time, isOK: first?.isOK != false && isOK, seconds: first?.seconds ?? seconds)
    }
}

extension RunState.Run {
    fileprivate init?(_ json: JSON) {
        guard let started = json.time("started"), let code = json["exitCode"]?.integer else { return nil }
        self.init(
            started: started, seconds: json["seconds"]?.double ?? 0, exitCode: Int32(clamping: code),
            snapshot: json["snapshot"]?.string, message: json["message"]?.string)
    }

    public var json: JSON {
        [
            "started": .string(started.iso8601), "seconds": .seconds(seconds), "exitCode": JSON(exitCode),
            "snapshot": snapshot.map { .string($0) } ?? .null, "message": message.map { .string($0) } ?? .null,
        ]
    }

    /// Seconds since it was over; less than 0 by a clock that was ahead.
    func age(at now: Timestamp) -> Int64 { (now.milliseconds - ended.milliseconds) / 1000 }

    /// When it was over.
    public var ended: Timestamp {
        Timestamp(milliseconds: started.milliseconds + Int64(max(0, min(seconds, 1e9)) * 1000))
    }
}

extension JSON {
    fileprivate func time(_ name: String) -> Timestamp? { self[name]?.string.flatMap { Timestamp(iso8601: $0) } }

    /// To the millisecond.
    static func seconds(_ value: Double) -> JSON { .number(String((value * 1000).rounded() / 1000)) }
}
