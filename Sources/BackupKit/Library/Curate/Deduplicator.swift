/// What a folding of duplicates did, or would do.
public struct DedupResult: Sendable {
    /// Records that had several names.
    public internal(set) var records = 0
    /// Names that were given up.
    public internal(set) var folded = 0
    public internal(set) var plan: [PlanItem] = []
    public internal(set) var findings: [Finding] = []
    public internal(set) var batch: Int64?
}

/// Folds records that are one: of one type, one zone and one local id, with several names. The oldest name survives, the
/// fields merge as they would on the way in, the other names become tombstones. What is kept on this device only is
/// left alone, and so is what lies in different zones, which may be shared with different people.
///
/// The survivor is alive later than the tombstones of the other names: a device that chose another survivor meanwhile must
/// not leave all names deleted.
///
/// A tombstone of a folded name is for that name alone. It gives up the record's local id: with it, whoever looks the
/// record up by its local id would find it deleted (decision 021).
public struct Deduplicator {
    private let store: Store
    private var result = DedupResult()

    private init(_ store: Store) { self.store = store }

    /// `schema` may declare keys: records of one type that agree in them are one, whatever their ids.
    public static func run(on store: Store, schema: DataSchema? = nil, dryRun: Bool = false) throws -> DedupResult {
        var folding = Deduplicator(store)
        let (_, batch) = try store.batch(
            kind: Store.dedupBatch, source: lastComponent(of: store.path), dryRun: dryRun, notesIdle: true
        ) {
            for localID in try store.repeatedLocalIDs() { try folding.fold(localID) }
            try folding.foldEvents()
            if let schema { try folding.foldByKeys(schema) }
            let summary = JSON.object([
                JSON.Member("records", JSON(folding.result.records)),
                JSON.Member("folded", JSON(folding.result.folded)),
            ])
            return ((), summary: summary.compact)
        }
        var result = folding.result
        result.batch = batch?.id
        return result
    }

    private mutating func fold(_ localID: String) throws {
        try Interrupt.check()
        let live = try store.records(localID: localID).filter { !$0.record.isDeleted }
        for type in Set(live.map(\.record.type)).sorted() {
            let same = live.filter { $0.record.type == type }
            guard same.count > 1 else { continue }
            for local in same where local.record.isLocalOnly {
                note(.protected, .warning, local, "is kept on this device only and was left alone")
            }
            let shared = same.filter { !$0.record.isLocalOnly }
            let zones = Set(shared.map(\.record.id.zone)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for zone in zones { try fold(shared.filter { sameBytes($0.record.id.zone, zone) }) }
            if zones.count > 1, let first = shared.first {
                let list = zones.map(printable).joined(separator: ", ")
                note(
                    .skipped, .warning, first, "is in several zones (\(list)), which may be shared; each keeps its own")
            }
        }
    }

    private mutating func note(
        _ code: Finding.Code, _ severity: Finding.Severity, _ stored: Store.StoredRecord, _ text: String
    ) {
        guard result.findings.count < Finding.toldOneByOne else { return }
        result.findings.append(Finding(code, severity, stored.record.id.description, text))
    }

    // MARK: Events in two forms

    private mutating func foldEvents() throws {
        var pairs: [(given: Int64, made: Int64)] = []
        try EventTwins(store: store).forEach { pairs.append(($0.change, $1.change)) }
        for pair in pairs {
            try Interrupt.check()
            let (given, made) = (try store.record(change: pair.given), try store.record(change: pair.made))
            let time = max(store.now(), store.timeAfter(given), store.timeAfter(made))
            try fold(
                [Store.StoredRecord(change: pair.made, record: made)],
                into: Store.StoredRecord(change: pair.given, record: given), as: union(made, into: given, at: time),
                at: time
            ) { ($0.tombstone(at: $1), " (the same event, with its id)") }
        }
    }

    private func union(_ made: Record, into given: Record, at time: Timestamp) throws -> Record {
        guard try EventText.hasNews(made, for: given) else { return given }
        let (mine, theirs) = try EventText.comparable(given, made)
        return try MergePolicy(now: time).union(theirs, into: mine) { try Intake.derive(given.type, $0, $1, $2) }
    }

    // MARK: Keys that a schema declares

    private mutating func foldByKeys(_ schema: DataSchema) throws {
        let entities = Dictionary(
            schema.entities.filter { !$0.key.isEmpty }.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        if entities.isEmpty { return }
        var groups: [[String]: [Int64]] = [:]
        try store.forEachStored(order: .change) { stored in
            let record = stored.record
            guard !record.isDeleted, let entity = entities[record.type], let key = try entity.key(of: record) else {
                return
            }
            groups[[record.type, record.id.zone] + key, default: []].append(stored.change)
        }
        for (key, changes) in groups.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) where changes.count > 1 {
            let same = try changes.compactMap { change in
                try store.ifSound { Store.StoredRecord(change: change, record: try store.record(change: change)) }
            }
            for local in same where local.record.isLocalOnly {
                note(.protected, .note, local, "is kept on this device only and was left alone")
            }
            let text = key.dropFirst(2).joined(separator: ", ")
            try fold(same.filter { !$0.record.isLocalOnly }, by: text)
        }
    }

    /// `key` is what they have in common where it is not the local id. Then each has an id of its own, which its tombstone
    /// keeps: whoever brings that record again hears that it is gone.
    private mutating func fold(_ names: [Store.StoredRecord], by key: String? = nil) throws {
        let sorted = names.sorted {
            ($0.record.createdAt, $0.record.id) < ($1.record.createdAt, $1.record.id)
        }
        guard let survivor = sorted.first, sorted.count > 1 else { return }
        let time = sorted.reduce(store.now()) { max($0, store.timeAfter($1.record)) }
        let policy = MergePolicy(now: time)
        var merged = survivor.record
        for other in sorted.dropFirst() {
            merged = try policy.union(other.record, into: merged) {
                try Intake.derive(survivor.record.type, $0, $1, $2)
            }
        }
        try fold(Array(sorted.dropFirst()), into: survivor, as: merged, at: time) { other, time in
            guard let key else { return (other.foldedTombstone(at: time), "") }
            return (other.tombstone(at: time), " (both are \(key))")
        }
    }

    /// Writes `merged` over the survivor and buries the others, each with the tombstone and the reason that `ghost` gives.
    private mutating func fold(
        _ others: [Store.StoredRecord], into survivor: Store.StoredRecord, as merged: Record, at time: Timestamp,
        ghost: (Record, Timestamp) -> (tombstone: Record, reason: String)
    ) throws {
        result.records += 1
        let changes = FieldChange.list(
            from: try Fields.parse(survivor.record.fields), to: try Fields.parse(merged.fields))
        var merged = merged
        for other in others { merged.noteTakenIn(other.record, at: time) }
        try store.put(merged.keptAlive(at: time.next), replacing: survivor)
        if !changes.isEmpty { plan(.update, merged, changes, nil) }
        for other in others {
            let (tombstone, reason) = ghost(other.record, time)
            try store.put(tombstone, replacing: other)
            result.folded += 1
            plan(.remove, other.record, [], "merged into \(survivor.record.id)\(reason)")
        }
    }

    private mutating func plan(
        _ action: PlanItem.Action, _ record: Record, _ changes: [FieldChange], _ reason: String?
    ) {
        guard result.plan.count < Intake.planLimit else { return }
        result.plan.append(
            PlanItem(
                action: action, subject: record.id.description, label: RecordLabel.text(of: record), changes: changes,
                reason: reason))
    }
}

extension MergePolicy {
    /// One record of two, under the name of `kept`: of each field the value that was set last, with its time.
    func union(
        _ other: Record, into kept: Record,
        derive: (_ merged: [Field], _ local: [Field], _ incoming: [Field]) throws -> [Field]
    ) throws -> Record {
        var incoming = other
        incoming.id = kept.id
        incoming.localID = kept.localID
        var policy = self
        policy.joinsKeywords = true
        let decision = try policy.decide(existing: kept, incoming: incoming, derive: derive)
        guard case .update(var merged, let changes) = decision, !changes.isEmpty else {
            return try Self.withTimes(of: incoming, kept)
        }
        // What was made of both, a text or a set, was made now: at its old time nobody would take it.
        for change in changes {
            let before = kept.fieldTimes[change.name] ?? (change.before == nil ? .distantPast : kept.modifiedAt)
            if merged.fieldTimes[change.name] ?? merged.modifiedAt <= before { merged.fieldTimes[change.name] = now }
        }
        return merged
    }

    /// Nothing of the other one was taken, but its times count: of two equal values the newer time is the truth.
    private static func withTimes(of other: Record, _ kept: Record) throws -> Record {
        let mine = Set(try Fields.parse(kept.fields).map(\.name))
        let theirs = Set(try Fields.parse(other.fields).map(\.name))
        var result = kept
        result.modifiedAt = max(kept.modifiedAt, other.modifiedAt)
        result.createdAt = min(kept.createdAt, other.createdAt)
        result.schemaVersion = max(kept.schemaVersion, other.schemaVersion)
        if other.modifiedAt > kept.modifiedAt { result.deviceID = other.deviceID }
        result.fieldTimes = [:]
        for name in mine.union(theirs).union(kept.fieldTimes.keys).union(other.fieldTimes.keys) {
            let times = [
                kept.fieldTimes[name] ?? (mine.contains(name) ? kept.modifiedAt : nil),
                other.fieldTimes[name] ?? (theirs.contains(name) ? other.modifiedAt : nil),
            ]
            guard let latest = times.compactMap(\.self).max() else { continue }
            if latest != result.modifiedAt || !mine.contains(name) { result.fieldTimes[name] = latest }
        }
        return result
    }
}

extension DataSchema.Entity {
    /// What a record says in the fields of the key, in a form that can be compared; nil when it lacks one of them, or says
    /// nothing in any: a default that a restore has put in is a missing value, and defaults and empty texts alone are no key.
    fileprivate func key(of record: Record) throws -> [String]? {
        let fields = try Fields.parse(record.fields)
        var values: [String] = []
        var saysSomething = false
        for name in key {
            guard let field = fields.first(where: { sameBytes($0.name, name) }), field.value != "null" else {
                return nil
            }
            let text = Fields.string(name, in: fields)
            let attribute = attributes.first { sameBytes($0.name, name) }
            let isDefault = try attribute?.defaultValue.map { try Fields.same($0.compact, field.value) } ?? false
            if isDefault, record.fieldTimes[name] == DataSchema.defaultTime { return nil }
            saysSomething = saysSomething || !isDefault && text?.allSatisfy(\.isWhitespace) != true
            switch attribute?.type {
            case "date": values.append(text.flatMap { Timestamp(iso8601: $0) }?.iso8601 ?? field.value)
            case "uuid": values.append(text?.uppercased() ?? field.value)
            default: values.append(String(decoding: try Fields.canonical(field.value), as: UTF8.self))
            }
        }
        return saysSomething ? values : nil
    }
}

extension Store {
    /// Local ids that several rows have, tombstones included, and now and then one that only shares a hash.
    func repeatedLocalIDs() throws -> [String] {
        let query = try database.prepare(
            """
            SELECT DISTINCT local_id FROM record WHERE change IN (SELECT change FROM local_key WHERE key IN
            (SELECT key FROM local_key GROUP BY key HAVING count(*) > 1)) ORDER BY local_id
            """)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }
}
