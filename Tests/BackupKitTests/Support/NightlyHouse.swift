import BackupKit
import TestSupport
import Testing

/// A vault of nothing but lists, which can be told to fail.
final class FakeVault: NightlyVault {
    func findSource() throws {}
    func checkCanWrite() throws {}
    var items: [RetentionItem] = []
    var censuses: [String: LibraryCensus] = [:]
    var census = LibraryCensus([.notes: 100, .attachments: 50])
    var failing: [String: BackupError] = [:]
    var damage: [Finding] = []
    var isPartial = false
    var drillsPass = true
    var failingDrills: Set<String> = []
    /// Called at the beginning of each step, with its name.
    var atStep: (String) throws -> Void = { _ in }
    var calls: [String] = []
    let clock: TestClock
    private var count = 0

    init(_ clock: TestClock) { self.clock = clock }

    private func call(_ name: String, _ detail: String = "") throws {
        calls.append(detail.isEmpty ? name : "\(name) \(detail)")
        try atStep(name)
        if let error = failing[name] { throw error }
    }

    private func add(tags: [String], original: String? = nil, at time: SnapshotTime? = nil) -> String {
        count += 1
        let id = "\(count)"
        items.append(
            RetentionItem(
                id: id, time: time ?? SnapshotTime(clock.now), tags: tags,
                isPartial: tags.contains(SnapshotTag.partial),
                original: original))
        return id
    }

    func snapshots() throws -> [RetentionItem] { items }

    func holds(_ snapshot: String) -> Bool { items.contains { $0.id == snapshot || $0.original == snapshot } }

    func takeSnapshot() throws -> NightlySnapshot {
        try call("snapshot")
        let id = add(tags: isPartial ? [SnapshotTag.partial] : [])
        censuses[id] = census
        return NightlySnapshot(id: id, isPartial: isPartial)
    }

    func census(of snapshot: String) throws -> LibraryCensus {
        try call("census")
        return censuses[snapshot] ?? LibraryCensus()
    }

    func addTag(_ tag: String, to snapshot: String) throws -> String {
        try call("tag", tag)
        guard let index = items.firstIndex(where: { $0.id == snapshot }) else { return snapshot }
        let old = items.remove(at: index)
        let id = add(tags: old.tags + [tag], original: old.original ?? old.id, at: old.time)
        censuses[id] = censuses[snapshot]
        return id
    }

    func forget(_ snapshots: [String]) throws {
        try call("forget")
        items.removeAll { snapshots.contains($0.id) }
    }

    func check(_ subset: CheckSubset?) throws -> [Finding] {
        try call("check", subset == nil ? "all" : "part")
        return damage
    }

    func drill(_ snapshot: String) throws -> DrillEntry {
        try call("drill", snapshot)
        let passes = drillsPass && !failingDrills.contains(snapshot)
        return DrillEntry(
            time: clock.now, path: "vault", snapshot: snapshot, madeAt: nil, isOK: passes, seconds: 1, files: 1,
            bytes: 1, contentDigest: nil, problems: passes ? [] : ["broken"])
    }

    func prune(ifUnusedOver percent: Double) throws -> (freed: Int64?, findings: [Finding]) {
        try call("prune")
        return (0, [])
    }

    func size() throws -> Int64 { 1000 }
}

/// Some nights at one vault.
final class House {
    let clock = TestClock()
    let vault: FakeVault
    var session: NightlySession
    var settings = NightlyRun.Settings()
    private(set) var reports: [NightlyRun.Report] = []

    init(_ folder: String) throws {
        vault = FakeVault(clock)
        session = NightlySession(profile: nil, stateFolder: folder) { $0 == nil ? 0 : $0 == .incomplete ? 3 : 1 }
        session.clock = clock.clock
        try settings.policy.set("last", "2")
    }

    @discardableResult func night() throws -> NightlyRun.Report {
        clock.advance(seconds: 86_400)
        vault.calls = []
        let report = try session.run(settings) { vault }.report
        reports.append(report)
        return report
    }

    var state: RunState { get throws { try session.state() } }
}

func withHouse(_ body: (House) throws -> Void) throws {
    try withTemporaryFolder { try body(try House($0)) }
}

/// What is left of what a house keeps when nearly all notes are gone.
let smallCensus = LibraryCensus([.notes: 10, .attachments: 50])
