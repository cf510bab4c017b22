/// One night: snapshot, tripwire, forget, check, drill, prune. A step that fails does not keep the later ones from what
/// they can do without it; nothing is removed while anything is in doubt.
public struct NightlyRun {
    public struct Settings: Sendable {
        public var policy = RetentionPolicy()
        public var grouping = RetentionGrouping()
        public var tripwire = Tripwire()
        public var checkParts = 30
        /// Nil is never.
        public var drillEvery = CalendarSpan("7d")
        public var maxUnusedPercent = 5.0

        public init() {}
    }

    /// What came of it, in the order in which it happened.
    public struct Report: Sendable {
        public enum Step: String, Sendable { case snapshot, tripwire, forget, check, drill, prune }

        public struct Line: Sendable, Equatable {
            public let step: Step
            public let text: String
        }

        public internal(set) var lines: [Line] = []
        public internal(set) var findings: [Finding] = []
        public internal(set) var errors: [BackupError] = []
        public internal(set) var snapshot: String?
        public internal(set) var forgotten: [String] = []
        public internal(set) var drills: [DrillEntry] = []
        public internal(set) var isPartial = false

        /// The worst that happened: damage, then a step that failed, then what wants to be looked at. Nil is fine.
        public var worst: ErrorCode? {
            if findings.contains(where: { $0.severity == .damage }) || drills.contains(where: { !$0.isOK }) {
                return .damaged
            }
            let ranks: [ErrorCode] = [.damaged, .notFound, .wrongPassword, .failed, .locked, .temporary, .incomplete]
            let codes = errors.map { ranks.contains($0.code) ? $0.code : .failed }
            if let worst = ranks.first(where: codes.contains) { return worst }
            let needsAttention = findings.contains { $0.severity == .warning || $0.severity == .error }
            return needsAttention || isPartial ? .incomplete : nil
        }

        /// For a watchdog and for the state: what was wrong first, in a line.
        public var headline: String? {
            if let error = errors.first { return error.description }
            if let drill = drills.first(where: { !$0.isOK }) {
                return "a drill failed: \(drill.problems.first ?? "")"
            }
            return findings.first { $0.severity != .note }.map { "\($0.subject): \($0.message)" }
        }

        public var log: String {
            var texts = lines.map { "\($0.step.rawValue): \($0.text)" }
            texts += findings.map { "\($0.severity.rawValue): \($0.subject): \($0.message)" }
            texts += errors.map { "error: \($0.description)" }
            return texts.joined(separator: "\n")
        }
    }

    private let vault: any NightlyVault
    private let settings: Settings
    private let drillLog: DrillLog
    private let clock: Clock
    private let heard: (Report.Line) -> Void
    private var report = Report()
    private var state: RunState
    /// Whether the tripwire had its say.
    private var isCompared = false

    public init(
        _ vault: any NightlyVault, _ settings: Settings, state: RunState, drillLog: DrillLog, clock: Clock = .system,
        heard: @escaping (Report.Line) -> Void = { _ in }
    ) {
        (self.vault, self.settings, self.state, self.drillLog) = (vault, settings, state, drillLog)
        (self.clock, self.heard) = (clock, heard)
    }

    /// Throws only when it was interrupted.
    public mutating func run(random: inout some RandomNumberGenerator) throws -> (report: Report, state: RunState) {
        try step(.snapshot) { try $0.takeSnapshot() }
        try step(.tripwire) { try $0.compare() }
        try step(.forget) { try $0.forget() }
        try step(.check) { try $0.check() }
        var chance = AnyGenerator(random)
        try step(.drill) { try $0.drillWhenDue(&chance) }
        try step(.prune) { try $0.prune() }
        try step(.prune) { run in
            run.state.snapshots = try run.vault.snapshots().count
            run.state.vaultBytes = try run.vault.size()
        }
        return (report, state)
    }

    private mutating func step(_ step: Report.Step, _ body: (inout NightlyRun) throws -> Void) throws {
        try Interrupt.check()
        do { try body(&self) } catch let error as BackupError {
            if error.code == .interrupted { throw error }
            report.errors.append(error)
        }
    }

    private mutating func say(_ step: Report.Step, _ text: String) {
        let line = Report.Line(step: step, text: text)
        report.lines.append(line)
        heard(line)
    }

    /// What a run would do tonight, as far as that can be told without a snapshot. Nothing is changed.
    public mutating func rehearse() throws -> [Report.Line] {
        say(.snapshot, "would be taken")
        let items = try vault.snapshots()
        if state.suspect != nil || !state.damagedParts.isEmpty, let frozen {
            say(.forget, "nothing would be removed: \(frozen)")
        } else if !settings.policy.isEmpty, !items.isEmpty {
            for group in try plan(items, frozen: nil).groups {
                for kept in group.keep {
                    say(.forget, "\(kept.item.id.prefix(8)) stays: \(kept.reasons.joined(separator: ", "))")
                }
                for item in group.remove { say(.forget, "\(item.id.prefix(8)) would be removed") }
            }
        }
        say(.check, "\(subset?.text ?? "all of it") would be read")
        if let every = settings.drillEvery {
            let isDue = try isDue(drillLog.history(), every)
            say(.drill, isDue ? "is due" : "is not due yet")
        }
        return report.lines
    }

    // MARK: Snapshot and tripwire

    private mutating func takeSnapshot() throws {
        let taken = try vault.takeSnapshot()
        report.snapshot = taken.id
        report.isPartial = taken.isPartial
        report.findings += taken.findings
        say(.snapshot, "\(taken.id.prefix(8))\(taken.isPartial ? ", not whole" : "")")
    }

    private mutating func compare() throws {
        guard let snapshot = report.snapshot else { return }
        let census = try vault.census(of: snapshot)
        let suspicions = settings.tripwire.compare(census, with: state.good?.census)
        isCompared = true
        guard !suspicions.isEmpty else {
            // A partial one may lack what a whole one has, and is no measure for the next.
            if !report.isPartial { state.good = .init(snapshot: snapshot, census: census) }
            if state.suspect != nil, !report.isPartial {
                say(.tripwire, "what was missing is there again")
                (state.suspect, state.suspicions) = (nil, [])
            }
            return
        }
        report.findings += suspicions
        // Known before it is tagged: whatever happens to the tag, retention is frozen.
        state.suspect = snapshot
        state.suspicions = suspicions.map { "\($0.subject): \($0.message)" }
        let tagged = try vault.addTag(SnapshotTag.suspect, to: snapshot)
        (state.suspect, report.snapshot) = (tagged, tagged)
        say(.tripwire, "\(tagged.prefix(8)) is suspect; nothing is removed until 'run --ack \(tagged.prefix(8))'")
    }

    // MARK: Forget

    /// Why nothing may be removed tonight.
    private var frozen: String? {
        if state.suspect != nil { return "frozen: a snapshot is suspect" }
        if !state.damagedParts.isEmpty { return "frozen: the last check found damage" }
        if report.snapshot == nil { return "frozen: no snapshot was taken" }
        if !isCompared { return "frozen: what the new snapshot holds is not known" }
        return nil
    }

    private mutating func forget() throws {
        guard !settings.policy.isEmpty else { return }
        let items = try vault.snapshots()
        let plan = try plan(items, frozen: frozen)
        report.findings += plan.findings
        guard frozen == nil, !plan.removed.isEmpty else { return }
        try vault.forget(plan.removed)
        report.forgotten = plan.removed
        say(.forget, "\(plan.removed.count) removed, \(items.count - plan.removed.count) kept")
    }

    private func plan(_ items: [RetentionItem], frozen: String?) throws -> RetentionPlan {
        var retention = Retention(settings.policy, now: clock.now())
        retention.grouping = settings.grouping
        retention.frozen = frozen
        if let proved = try lastProved(items) { retention.protected[proved] = "the last that passed a drill" }
        if let good = state.good?.snapshot { retention.protected[good] = "the last that nothing is suspicious about" }
        return try retention.plan(items.map { $0.uncountedWhenSuspect(state.acknowledged) })
    }

    /// The newest drill's snapshot that is still there.
    private func lastProved(_ items: [RetentionItem]) throws -> String? {
        let here = Set(items.map(\.id))
        return try drillLog.history().entries.last { $0.isOK && $0.snapshot.map(here.contains) == true }?.snapshot
    }

    // MARK: Check, drill, prune

    /// After damage everything is read, until there is none.
    private var subset: CheckSubset? {
        state.damagedParts.isEmpty ? CheckSubset(on: SnapshotTime(clock.now()).day, parts: settings.checkParts) : nil
    }

    private mutating func check() throws {
        let subset = subset
        let findings = try vault.check(subset)
        report.findings += findings
        let isDamaged = findings.contains { $0.severity == .damage }
        state.damagedParts = isDamaged ? [subset?.text ?? "all"] : []
        say(.check, "\(subset?.text ?? "all of it"): \(isDamaged ? "damage" : "no damage")")
    }

    private mutating func drillWhenDue(_ random: inout AnyGenerator) throws {
        let history = try drillLog.history()
        report.findings += history.findings.filter { $0.severity == .damage }
        if let head = state.drillHead, history.head != head, !history.heads.contains(head) {
            report.findings.append(
                Finding(
                    .contentMismatch, .warning, drillLog.path, "has lost lines that were in it",
                    remedy: "drills of the past are no proof any more"))
        }
        guard let every = settings.drillEvery, isDue(history, every) else { return }
        let sorted = try vault.snapshots().sorted { $0.time > $1.time }
        guard let newest = sorted.first else { return }
        let older = sorted.dropFirst().randomElement(using: &random)
        for item in [newest, older].compactMap(\.self) {
            let entry = try vault.drill(item.id)
            try drillLog.append(entry)
            report.drills.append(entry)
            state.lastDrill = .init(time: entry.time, isOK: entry.isOK, seconds: entry.seconds)
            say(.drill, "\(item.id.prefix(8)): \(entry.isOK ? "passed" : "failed: \(entry.problems.first ?? "")")")
        }
        state.drillHead = try drillLog.history().head
    }

    /// A drill that failed is repeated the next night.
    private func isDue(_ history: DrillLog.History, _ every: CalendarSpan) -> Bool {
        guard let last = history.entries.last, last.isOK else { return true }
        // An hour of grace: runs do not begin at the same second each night.
        let age = clock.now().milliseconds - last.time.milliseconds + 3_600_000
        return age >= every.approximateSeconds * 1000 || age < 0
    }

    private mutating func prune() throws {
        guard frozen == nil, !report.findings.contains(where: { $0.severity == .damage }) else { return }
        if let freed = try vault.prune(ifUnusedOver: settings.maxUnusedPercent) {
            say(.prune, "\(freed) bytes became free")
        }
    }
}

extension RetentionItem {
    /// A suspect snapshot is kept like a partial one: in its own right, and never instead of a sound one.
    fileprivate func uncountedWhenSuspect(_ acknowledged: [String]) -> RetentionItem {
        guard tags.contains(SnapshotTag.suspect), !acknowledged.contains(id) else { return self }
        return RetentionItem(
            id: id, time: time, host: host, paths: paths, tags: tags, parent: parent, isPartial: true)
    }
}

/// A generator of any kind, for functions that cannot be generic.
struct AnyGenerator: RandomNumberGenerator {
    private var generator: any RandomNumberGenerator

    init(_ generator: some RandomNumberGenerator) { self.generator = generator }

    mutating func next() -> UInt64 { generator.next() }
}
