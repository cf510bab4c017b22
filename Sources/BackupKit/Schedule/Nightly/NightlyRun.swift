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
        /// How to see what is gone since the last good snapshot, and to bring it back.
        public var recovery: @Sendable (_ good: String, _ loss: LibraryCensus.Loss) -> String? = { _, _ in nil }

        public init() {}
    }

    private let vault: any NightlyVault
    private let settings: Settings
    private let drillLog: DrillLog
    private let clock: Clock
    private let heard: (Report.Line) -> Void
    private let remember: (RunState) -> BackupError?
    private var report = Report()
    private var state: RunState
    /// No run before this one came so far that it could have removed something.
    private let isFirst: Bool
    /// A run before this one came to its end.
    private let hasState: Bool
    /// Whether the tripwire had its say.
    private var isCompared = false
    private var isChecked = false
    /// Lines are gone from the log of drills, and nobody knows what they proved.
    private var hasLostDrills = false
    /// Snapshots are there, and nothing that the runs remembered which took them: no measure, no proof.
    private var hasLostMemory = false
    /// Earlier snapshots that could not be counted tonight.
    private var unread: Set<String> = []

    /// `remember` is told the state after each step that changed it, and says what keeps it from writing that down.
    public init(
        _ vault: any NightlyVault, _ settings: Settings, state: RunState, drillLog: DrillLog, clock: Clock = .system,
        heard: @escaping (Report.Line) -> Void = { _ in }, remember: @escaping (RunState) -> BackupError? = { _ in nil }
    ) {
        (self.vault, self.settings, self.state, self.drillLog) = (vault, settings, state, drillLog)
        (self.clock, self.heard, self.remember) = (clock, heard, remember)
        (isFirst, hasState) = (state.lastForget == nil, state.snapshots != nil)
    }

    /// Throws only when it was interrupted.
    public mutating func run(random: inout some RandomNumberGenerator) throws -> (report: Report, state: RunState) {
        try step(.snapshot) { try $0.takeSnapshot() }
        try step(.tripwire) { try $0.compare() }
        try step(.drill) { try $0.lookAtDrillLog() }
        try step(.forget) { try $0.forget() }
        try step(.check) { try $0.check() }
        var chance = AnyGenerator(random)
        try step(.drill) { try $0.drillWhenDue(&chance) }
        try step(.prune) { try $0.prune() }
        try step(.prune) { run in
            run.state.snapshots = try run.vault.snapshots().count
            run.state.vaultBytes = try run.vault.size()
        }
        // The check names what a step has named before.
        var told: Set<Finding> = []
        report.findings = report.findings.filter { told.insert($0).inserted }
        return (report, state)
    }

    private mutating func step(_ step: Report.Step, _ body: (inout NightlyRun) throws -> Void) throws {
        try Interrupt.check()
        let before = state
        defer { if state != before { state.note(remember(state)) } }
        do { try body(&self) } catch let error as BackupError {
            if error.code == .interrupted { throw error }
            report.add(error, endOf: step)
        }
    }

    private mutating func say(_ step: Report.Step, _ text: String) {
        let line = Report.Line(step: step, text: text)
        report.lines.append(line)
        heard(line)
    }

    /// What a run would do tonight, as far as that can be told without a snapshot: it is taken for a sound one. Nothing is
    /// changed.
    public mutating func rehearse() throws -> [Report.Line] {
        try vault.findSource()
        try vault.checkCanWrite()
        say(.snapshot, "would be taken")
        let items = try vault.snapshots()
        hasLostMemory = try countWithoutMemory(drillLog.history()) > 0
        if let doubt {
            say(.forget, "nothing would be removed: \(doubt)")
        } else if !settings.policy.isEmpty, let newest = items.max(by: { $0.time.instant < $1.time.instant }) {
            let tags = newest.tags.filter { !SnapshotTag.isDoubt($0) }
            let next = RetentionItem(
                id: "next", time: SnapshotTime(clock.now()), host: newest.host, paths: newest.paths, tags: tags)
            for group in try plan(items + [next], frozen: nil, lastGood: next).groups {
                for kept in group.keep where kept.item != next {
                    say(.forget, "\(kept.item.id.prefix(8)) stays: \(kept.reasons.joined(separator: ", "))")
                }
                for item in group.remove { say(.forget, "\(item.id.prefix(8)) would be removed") }
            }
        }
        say(.check, "\(subset?.text ?? "all of it") would be read")
        if let every = settings.drillEvery {
            say(.drill, isDue(every) ? "is due" : "is not due yet")
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
        let items = try vault.snapshots()
        let own = items.first { $0.id == snapshot }
        let origin = own?.origin ?? snapshot
        try judgeEarlier(items, than: snapshot)
        let advice = advice(try sourceOfRecovery(items), LibraryCensus.Loss(of: state.good?.census, in: census))
        let suspicions =
            try lostHistory(items)
            + settings.tripwire.compare(census, with: state.good?.census).map { $0.advising(advice) }
        isCompared = true
        // This one is judged once it is found good, or has its tag.
        state.judged = items.map(\.origin).filter { $0 != origin && !unread.contains($0) }
        guard !suspicions.isEmpty else {
            state.judged.append(origin)
            // A partial one may lack what a whole one has, and is no measure for the next, but for want of a better.
            if !report.isPartial || state.good == nil {
                state.good = .init(snapshot: origin, census: census, time: own?.time.instant)
            }
            if state.suspect != nil, !report.isPartial {
                say(.tripwire, "what was missing is there again")
                (state.suspect, state.suspicions) = (nil, [])
            }
            return
        }
        report.findings += suspicions
        // Known before it is tagged: whatever happens to the tag, retention is frozen.
        (state.suspect, state.suspectOrigin) = (snapshot, origin)
        state.suspicions = suspicions.map(\.sentence)
        state.note(remember(state))
        let tagged = try vault.addTag(SnapshotTag.suspect, to: snapshot)
        (state.suspect, report.snapshot) = (tagged, tagged)
        state.judged.append(origin)
        say(
            .tripwire,
            "the snapshot was tagged as suspect; its new id is \(tagged.prefix(8)). Nothing is removed until "
                + "\(TypedCommand.quoted("run", options: ["ack": String(tagged.prefix(8))])) accepts the loss")
    }

    /// What to do about a suspicious loss.
    private func advice(_ good: String?, _ loss: LibraryCensus.Loss) -> String {
        [
            good.flatMap { settings.recovery($0, loss) },
            "if it was meant: 'backup-tool run --ack latest' (until then nothing is removed)",
        ]
        .compactMap(\.self).joined(separator: "\n")
    }

    /// The last good snapshot; where somebody has removed it, the newest before tonight's that is whole.
    private func sourceOfRecovery(_ items: [RetentionItem]) throws -> String? {
        if let good = lastGood(in: items) { return good.id }
        if let good = state.good, try vault.holds(good.snapshot) { return good.snapshot }
        let others = items.filter { $0.id != report.snapshot && !$0.isPartial && !$0.isSuspect }
        return others.max { $0.time < $1.time }?.id
    }

    private func lastGood(in items: [RetentionItem]) -> RetentionItem? {
        state.good.flatMap { good in items.first { $0.isOrWas(good.snapshot) } }
    }

    /// No run removes the last good snapshot. Where it is gone, all others may be, and what they need must not be pruned.
    private func lostHistory(_ items: [RetentionItem]) throws -> [Finding] {
        guard let good = state.good, lastGood(in: items) == nil, try !vault.holds(good.snapshot) else { return [] }
        // One that is dated ahead was removed on our own advice, and so was one that a newer one has replaced in a drill.
        let time = good.time ?? .distantPast
        if time > clock.now() { return [] }
        let proved = try drillLog.history().proved(among: sound(items), now: clock.now())
        if items.contains(where: { proved.contains($0.id) && $0.time.instant > time }) { return [] }
        return [
            Finding(
                .suspiciousLoss, .warning, String(good.snapshot.prefix(8)),
                "the last good snapshot is gone from the vault",
                remedy: "look whether this is the right vault and its disk is there; "
                    + "'backup-tool run --ack latest' accepts what it holds")
        ]
    }

    /// Snapshots that nobody has judged: of a run that was killed before it could, or of one whose state is lost. They
    /// must neither pass for good ones nor, when there is no other measure, be passed over.
    private mutating func judgeEarlier(_ items: [RetentionItem], than snapshot: String) throws {
        let now = clock.now()
        // By their times alone, one that was taken while the clock was wrong would put all others in doubt.
        let judged = Set(state.judged)
        let unjudged = items.filter { item in
            item.id != snapshot && !item.isPartial && !item.isSuspect
                && !state.acknowledged.contains(where: item.isOrWas) && !judged.contains(item.origin)
                && item.time.instant <= now
        }
        guard let good = state.good else {
            guard let newest = unjudged.max(by: { $0.time < $1.time }), let census = try census(ofEarlier: newest.id),
                !census.isEmpty
            else { return }
            state.good = .init(snapshot: newest.origin, census: census, time: newest.time.instant)
            return
        }
        guard let measure = lastGood(in: items) else { return }
        for item in unjudged where item.time > measure.time {
            guard let census = try census(ofEarlier: item.id) else {
                unread.insert(item.origin)
                continue
            }
            guard !settings.tripwire.compare(census, with: good.census).isEmpty else { continue }
            let tagged = try vault.addTag(SnapshotTag.suspect, to: item.id)
            say(.tripwire, "\(tagged.prefix(8)) of an earlier run is suspect")
        }
    }

    /// One that cannot be read is a finding, and no reason to leave tonight's unjudged.
    private mutating func census(ofEarlier snapshot: String) throws -> LibraryCensus? {
        do { return try vault.census(of: snapshot) } catch let error as BackupError where error.code != .interrupted {
            report.findings.append(
                Finding(.unreadable, .warning, String(snapshot.prefix(8)), "could not be counted: \(error.message)"))
            return nil
        }
    }

    // MARK: Forget

    /// What earlier nights left in doubt.
    private var doubt: String? {
        if state.doubt != nil { return "frozen: what earlier runs left cannot be understood" }
        if state.suspect != nil { return "frozen: a snapshot is suspect" }
        if !state.damagedParts.isEmpty { return "frozen: the last check found damage" }
        if hasLostMemory { return "frozen: nothing is known of earlier runs" }
        return state.lastDrill?.isOK == false ? "frozen: the last drill failed" : nil
    }

    /// Why nothing may be removed tonight.
    private var frozen: String? {
        if let doubt { return doubt }
        if report.snapshot == nil { return "frozen: no snapshot was taken" }
        if !isCompared { return "frozen: what the new snapshot holds is not known" }
        if hasLostDrills { return "frozen: lines are gone from the log of drills" }
        if report.findings.contains(where: { $0.severity == .damage }) {
            return "frozen: the store or the vault is damaged"
        }
        return nil
    }

    private mutating func forget() throws {
        let items = try vault.snapshots()
        let retention = Retention(settings.policy, now: clock.now())
        guard !settings.policy.isEmpty else { return report.findings += retention.findings(sound(items)) }
        let plan = try plan(items, frozen: frozen)
        report.findings += plan.findings
        let isFrozen = frozen != nil
        let jump = state.jumpOfClock(at: clock.now(), isFrozen: isFrozen)
        if let jump { report.findings.append(jump) }
        guard jump == nil, !isFrozen, !plan.removed.isEmpty else { return }
        try vault.forget(plan.removed)
        report.forgotten = plan.removed
        say(.forget, "\(plan.removed.count) removed, \(items.count - plan.removed.count) kept")
    }

    private func plan(
        _ items: [RetentionItem], frozen: String?, lastGood: RetentionItem? = nil
    ) throws -> RetentionPlan {
        var retention = Retention(settings.policy, now: clock.now())
        retention.grouping = settings.grouping
        retention.frozen = frozen
        let history = try drillLog.history()
        // What is suspect stands for no sound one, and has been proved all the same.
        for id in history.proved(among: sound(items), now: clock.now())
            .union(history.proved(among: items, now: clock.now()))
        {
            retention.protected[id] = "the last that passed a drill"
        }
        if let item = lastGood ?? self.lastGood(in: items) {
            retention.protected[item.id] = "the last that nothing is suspicious about"
        }
        return try retention.plan(sound(items))
    }

    private func sound(_ items: [RetentionItem]) -> [RetentionItem] {
        items.map { $0.uncountedWhenSuspect(except: state.acknowledged) }
    }

    // MARK: Check, drill, prune

    /// After damage, or a drill that failed, everything is read, until all is well.
    private var subset: CheckSubset? {
        guard state.damagedParts.isEmpty, state.lastDrill?.isOK != false else { return nil }
        return CheckSubset(on: SnapshotTime(clock.now()).day, parts: settings.checkParts)
    }

    private mutating func check() throws {
        let subset = subset
        let findings = try vault.check(subset).map(drillFirst(try provedSnapshots()))
        isChecked = true
        report.findings += findings
        let isDamaged = findings.contains { $0.severity == .damage }
        state.damagedParts = isDamaged ? [subset?.text ?? "all"] : []
        say(.check, "\(subset?.text ?? "all of it"): \(isDamaged ? "damage" : "no damage")")
    }

    /// The snapshots that nobody may remove until another one has passed a drill.
    private func provedSnapshots() throws -> Set<String> {
        // The check itself names a snapshot that cannot be read.
        guard let items = try? vault.snapshots() else { return [] }
        return try drillLog.history().proved(among: items, now: clock.now())
    }

    private func drillFirst(_ proved: Set<String>) -> (Finding) -> Finding {
        { finding in
            guard let remedy = finding.remedy,
                proved.contains(where: {
                    finding.subject.hasPrefix("\($0.prefix(8)):") && remedy.contains("vault forget \($0.prefix(8))")
                })
            else { return finding }
            return finding.advising(
                "this is the last snapshot that passed a drill: run 'backup-tool drill' first; \(remedy)")
        }
    }

    private mutating func lookAtDrillLog() throws {
        let history = try drillLog.history()
        report.findings += history.findings.filter { $0.severity == .damage }
        let others = try countWithoutMemory(history)
        if others > 0 {
            hasLostMemory = true
            let place = history.entries.isEmpty ? drillLog.path : parent(of: drillLog.path)
            report.findings.append(
                Finding(
                    .suspiciousLoss, .warning, place,
                    "the notes about \(others == 1 ? "the earlier snapshot" : "the \(others) earlier snapshots") are missing, "
                        + "so nothing is removed this time",
                    remedy: "look whether 'state' names the right folder, and its disk is there"))
        }
        if let loss = drillLog.loss(state.drillHead, from: history, rememberedIn: "the state of this profile") {
            report.findings.append(
                Finding(loss.code, .warning, loss.subject, loss.message, remedy: loss.remedy))
            hasLostDrills = true
            // A new drill has to prove it again. Without drills in the configuration, the loss is named once.
            if settings.drillEvery == nil { state.drillHead = history.head } else { state.lastDrill = nil }
        }
    }

    /// How many earlier snapshots there are though no run has left its state. The log of drills alone tells nothing of damage
    /// or of a suspicion, and others write to it.
    private func countWithoutMemory(_ history: DrillLog.History) throws -> Int {
        let isLost = history.entries.isEmpty || !hasState && state.doubt == nil
        guard isFirst, !settings.policy.isEmpty, isLost else { return 0 }
        return try vault.snapshots().count { $0.id != report.snapshot }
    }

    private mutating func drillWhenDue(_ random: inout AnyGenerator) throws {
        guard let every = settings.drillEvery, isDue(every) else { return }
        let history = try drillLog.history()
        let chosen = Drill.choice(of: try vault.snapshots(), history, now: clock.now(), using: &random)
        var state = state
        defer { self.state = state }
        try Drill.run(chosen, in: vault, drillLog, &state) { item, entry in
            report.drills.append(entry)
            say(.drill, "\(item.id.prefix(8)): \(entry.verdict)")
        }
    }

    /// By this profile's own runs: others write into the same log. A drill that failed is repeated the next night.
    private func isDue(_ every: CalendarSpan) -> Bool {
        guard let last = state.lastDrill, last.isOK else { return true }
        // An hour of grace: runs do not begin at the same second each night.
        let age = clock.now().milliseconds - last.time.milliseconds + 3_600_000
        return age >= every.approximateSeconds * 1000 || age < 0
    }

    private mutating func prune() throws {
        guard frozen == nil, isChecked, !report.findings.contains(where: { $0.severity == .damage }) else { return }
        let (freed, findings) = try vault.prune(ifUnusedOver: settings.maxUnusedPercent)
        report.findings += findings
        if let freed { say(.prune, "\(freed) bytes became free") }
    }
}
