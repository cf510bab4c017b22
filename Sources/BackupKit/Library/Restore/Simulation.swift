/// What would become of one record of a backup.
public struct SimulatedRecord: Sendable, Equatable {
    public enum Outcome: String, Sendable, CaseIterable {
        /// Alive on every device when nothing waits any more.
        case everywhere = "alive-everywhere"
        /// Alive after the restore, and gone after the syncs.
        case deletedAgain = "deleted-again"
        /// Not brought back: it was deleted after the backup was made.
        case staysDeleted = "stays-deleted"
        case hereOnly = "kept-here-only"
        /// A person has to decide.
        case conflict
    }

    public let id: RecordID
    public let label: String
    public let outcome: Outcome
    public let reason: String?
}

public struct SimulationResult: Sendable {
    /// What the restore itself would do.
    public var restore = IntakeResult()
    public var devices = 0
    /// The hub that a copy was made of; nil: an empty one stood in.
    public var hub: String?
    /// How often every device had to sync until nothing waited.
    public var rounds = 0
    public var counts: [SimulatedRecord.Outcome: Int] = [:]
    /// What does not simply stay as it is, what ends badly first; cut off after `Intake.planLimit`.
    public var records: [SimulatedRecord] = []
    public var findings: [Finding] = []

    public var isGoneAgain: Bool { counts[.deletedAgain, default: 0] > 0 }
    public var needsAttention: Bool {
        // Each conflict is told as the fate of its record.
        isGoneAgain || (restore.findings + findings).contains { $0.severity != .note }
    }
}

/// Plays a restore and all syncs after it with copies, so that it is known what the restore comes to before anything of
/// the user's is touched. Files are not part of it.
public final class Simulation {
    private static let roundsMax = 20

    private let storePath: String
    private let clock: Clock
    private let folder: String
    private var devices: [Store] = []
    private var options = SyncOptions()
    private var result = SimulationResult()
    /// What the restore did with each record of the backup, by the hash of its identity.
    private var fates: [Int64: Fate] = [:]

    private enum Fate: UInt8 { case changed, left, dead, aside }

    /// `hub` is asked instead of the one of the last sync.
    public static func run(
        _ path: String, store: String, devices: Int, hub: String? = nil, clock: Clock = .system,
        _ options: RestoreOptions
    ) throws -> SimulationResult {
        try ScratchStore.withFolder { folder in
            try Simulation(store, folder, clock).run(path, max(2, devices), hub, options)
        }
    }

    private init(_ storePath: String, _ folder: String, _ clock: Clock) {
        (self.storePath, self.folder, self.clock) = (storePath, folder, clock)
        options.sleep = { _ in }
    }

    private func run(_ path: String, _ count: Int, _ hubPath: String?, _ options: RestoreOptions) throws
        -> SimulationResult
    {
        result.devices = count
        try makeDevices(count)
        let hub = try makeHub(hubPath)
        let known = try result.hub == nil ? nil : hub.identity().id
        for device in devices.dropFirst() { try device.standInAsOther(with: known) }
        // The others know what the hub knows; this device knows what it knows now, unless there is no hub to know more.
        for device in devices.dropFirst(result.hub == nil ? 0 : 1) { try sync(device, hub) }
        if result.hub == nil { try sync(devices[0], hub) }
        let conflicts = Set(try devices[0].conflicts().map(\.id))
        try restore(path, options)
        let mark = try devices[0].token().change
        try settle(hub)
        try judge(conflicts, mark)
        return result
    }

    // MARK: The stage

    private func makeDevices(_ count: Int) throws {
        let first = "\(folder)/device1.db"
        if try FileStatus.ofTarget(storePath) == nil {
            _ = try Store.create(first, clock: clock)
        } else {
            guard Store.isStore(storePath) else {
                throw Store.notStore(storePath)
            }
            try Store.copyDatabase(storePath, to: first)
        }
        for number in 2...count {
            let copy = "device\(number).db"
            _ = try RootDirectory(folder).copy(FileHandle.openForReading(first), to: copy)
        }
        for number in 1...count {
            devices.append(try Store("\(folder)/device\(number).db", .write, clock: clock))
            try devices[number - 1].standIn()
        }
    }

    private func makeHub(_ named: String?) throws -> FileHub {
        let link = try devices[0].hubLink()
        options.user = link?.user
        let place = "\(folder)/hub.db"
        guard let location = named ?? link?.location else { return try emptyHub(place) }
        do {
            // Whether it is one of ours, before SQLite is let near it.
            guard FileHub.isHub(location) else {
                throw BackupError(.notFound, "there is no hub here", at: location)
            }
            try Store.copyDatabase(location, to: place)
            let hub = try FileHub(place, allowingNetwork: true)
            try hub.standIn()
            result.hub = location
            return hub
        } catch let error as BackupError where named == nil {
            result.findings.append(
                Finding(
                    .skipped, .warning, location, "the hub cannot be reached: \(error.message)",
                    remedy: "deletes that only the hub knows are not in this; --hub names it where it is now"))
            return try emptyHub(place)
        }
    }

    private func emptyHub(_ place: String) throws -> FileHub {
        try Directory.removeTree(place)
        let hub = try FileHub.create(place, allowingNetwork: true)
        try hub.standIn()
        return hub
    }

    private func sync(_ device: Store, _ hub: FileHub) throws {
        _ = try Synchronizer.sync(device, with: hub, options)
    }

    // MARK: The play

    private func restore(_ path: String, _ options: RestoreOptions) throws {
        var options = options
        options.dryRun = false
        options.kinds.subtract([.attachments, .settings])
        options.kindOfBatch = "simulation"
        let hasher = devices[0].hasher
        options.heard = { [self] record, outcome in
            guard !record.isDeleted, record.type != RecordType.conflict else { return }
            let fate: Fate =
                switch outcome.decision {
                case .add, .update: .changed
                case .unchanged, .protect(.newer), .protect(.localOnly), .protect(.newerSchema),
                    .protect(.hasTakenIn), .protect(.keptInstead):
                    .left
                case .protect(.newerTombstone), .protect(.purged): .dead
                case .protect(.quarantined): .aside
                }
            fates[hasher.key(outcome.id.description)] = fate
        }
        result.restore = try Restorer.restore(path, into: devices[0], options)
    }

    private func settle(_ hub: FileHub) throws {
        while result.rounds < Self.roundsMax {
            result.rounds += 1
            var moved = 0
            for device in devices {
                let outcome = try Synchronizer.sync(device, with: hub, options)
                moved += outcome.pulled + outcome.pushed
            }
            if moved == 0 { return }
        }
        throw BackupError(.failed, "the simulated devices do not come to rest", at: storePath)
    }

    // MARK: The outcome

    private func judge(_ known: Set<Int64>, _ mark: Int64) throws {
        let held = Dictionary(
            try devices[0].held().filter { $0.kind != .local }.map { ($0.id, $0.reason) }, uniquingKeysWith: { $1 })
        let conflicting = Set(
            try devices[0].conflicts().filter { !known.contains($0.id) }.flatMap { [$0.existing, $0.incoming] })
        var (bad, other): ([SimulatedRecord], [SimulatedRecord]) = ([], [])
        try devices[0].forEachStored(order: .identity) { stored in
            let record = stored.record
            guard let fate = fates[devices[0].hasher.key(record.id.description)] else { return }
            var (outcome, reason) = try judge(record, fate, isLater: stored.change > mark)
            if !record.isDeleted, let why = held[record.id] { (outcome, reason) = (.hereOnly, why) }
            if !record.isDeleted, conflicting.contains(record.localID) {
                (outcome, reason) = (.conflict, "another record has the same name; a person decides")
            }
            result.counts[outcome, default: 0] += 1
            if fate == .left, outcome == .everywhere { return }
            let shown = SimulatedRecord(
                id: record.id, label: RecordLabel.text(of: record), outcome: outcome, reason: reason)
            if outcome == .deletedAgain || outcome == .conflict {
                if bad.count < Intake.planLimit { bad.append(shown) }
            } else if other.count < Intake.planLimit {
                other.append(shown)
            }
        }
        result.records = Array((bad + other).prefix(Intake.planLimit))
    }

    private func judge(
        _ record: Record, _ fate: Fate, isLater: Bool
    ) throws -> (SimulatedRecord.Outcome, String?) {
        if let time = record.deletedAt {
            let day = "\(time.iso8601.prefix(19))Z"
            if fate == .dead { return (.staysDeleted, "was deleted at \(day), after this version was written") }
            return (.deletedAgain, "was deleted at \(day), and this store has not heard of it yet")
        }
        if fate == .aside { return (.hereOnly, Protection.quarantined.rawValue) }
        if record.isLocalOnly { return (.hereOnly, Protection.localOnly.rawValue) }
        for device in devices.dropFirst() {
            guard let there = try device.record(record.id), !there.record.isDeleted else {
                return (.hereOnly, "does not reach the other devices")
            }
        }
        return (.everywhere, isLater ? "with what others have changed since" : nil)
    }
}
