/// What became of one incoming record.
public struct Outcome: Sendable, Equatable {
    public let id: RecordID
    public let localID: String
    public let decision: Decision
    /// The incoming time lay in the future and was set back.
    public var clamped = false
    /// Whether the store had it alive.
    public var wasAlive = false
    /// Whether another record was merged into the store's that the incoming version knows nothing of.
    var holdsAlone = false
    /// Whether the store's version is of the same batch.
    var wasOfBatch = false
    /// The record of another work that has the id which this one came with.
    public var otherWork: RecordID?

    /// Whether a tombstone has deleted a record of another name, by the local id. It says what became of its own name, too.
    fileprivate func hasDeleted(beside tombstone: Record) -> Bool {
        guard tombstone.isDeleted, wasAlive, id != tombstone.id, case .update = decision else { return false }
        return true
    }
}

/// Takes records from outside into the store by the rules of identity and merging.
extension Store {
    /// Recomputes what depends on merged fields; the formats know how, the store does not.
    public typealias Derivation = (_ type: String, _ merged: [Field], _ local: [Field], _ other: [Field]) throws ->
        [Field]

    /// `keepsID`: the record is taken under its id, whatever work the store has there. Must run inside `write`.
    public func ingest(
        _ record: Record, resurrect: Bool = false, keepsID: Bool = false,
        derive: Derivation = { _, merged, _, _ in merged }
    ) throws -> Outcome {
        try ingest(record, resurrect, keepsID: keepsID, derive)
    }

    private func ingest(
        _ record: Record, _ resurrect: Bool, keepsID: Bool, _ derive: Derivation = { _, merged, _, _ in merged }
    ) throws -> Outcome {
        do {
            return try take(record, resurrect, keepsID, derive)
        } catch let error as BackupError where error.subject == nil {
            throw BackupError(error.code, error.message, at: record.id.description, remedy: error.remedy)
        }
    }

    private func take(_ record: Record, _ resurrect: Bool, _ keepsID: Bool, _ derive: Derivation) throws -> Outcome {
        let now = self.now()
        // As in a sync: setting times back would change the order of edits and deletes.
        let keepsTimes = takesBackup && hybridClock.reaches(latest(of: record))
        if keepsTimes { see(record) }
        let (incoming, clamped) = keepsTimes ? (record, false) : clamp(record, to: now)
        let look = try firstLook(incoming)
        // Times of fields may say that it was kept alive since.
        let unchanged = Outcome(id: incoming.id, localID: incoming.localID, decision: .unchanged, clamped: clamped)
        // The tombstone of a listing may be here under another name.
        let mayHaveOtherName = incoming.isDeleted && WorkLineage.saysListing(incoming)
        if look == .sameContent, !resurrect, incoming.fieldTimes.isEmpty, !mayHaveOtherName { return unchanged }
        let found = try match(incoming, among: look == .nothing ? [] : soundRecords(localID: incoming.localID))
        var (taken, existing) = try keepsID ? (incoming, found) : settleWork(of: incoming, found)
        if takesBackup, !keepsID, found.main != nil, existing.main == nil, let buried = try buriedSince(incoming) {
            (taken, existing) = (incoming.identified(as: buried.record.localID), (buried, false))
        }
        if takesBackup, existing.main == nil, let deleted = try deletedEvent(having: taken) {
            (taken, existing) = (taken.identified(as: deleted.record.localID), (deleted, false))
        }
        var policy = try policy(resurrect, now, existing.main?.record, taken)
        if policy.isLine, !resurrect, let known = existing.main?.record, !known.isDeleted {
            policy.saidBefore = try fieldsSaidAgain(by: taken, of: known)
        }
        if clamped, !resurrect, !policy.isPurged, let deleted = existing.main?.record.deletedAt, !taken.isDeleted {
            // A time in the future does not show that the record is later than its delete.
            taken = taken.noNewer(than: deleted.previous)
        }
        var outcome = try settle(taken, existing, policy, derive, clamped)
        if takesBackup, !resurrect, case .update(let new, _) = outcome.decision, let old = existing.main?.record {
            try noteReplaced(old, by: new)
        }
        outcome.wasOfBatch = existing.main.map { $0.change >= currentBatch?.firstChange ?? .max } ?? false
        if !sameBytes(taken.localID, incoming.localID) { outcome.otherWork = found.main?.record.id }
        if outcome.hasDeleted(beside: taken) { _ = try take(record, resurrect, keepsID, derive) }
        return outcome
    }

    /// Takes a record whose fields are newer than all that is known, by our own word: its times need no clamping, and its
    /// fields win. Must run inside `write`.
    func release(_ record: Record, keepsID: Bool = false, derive: Derivation) throws -> Outcome {
        let (taken, existing) = try find(record, keepsID)
        return try release(taken, existing, derive)
    }

    private func release(_ taken: Record, _ existing: Match, _ derive: Derivation) throws -> Outcome {
        if existing.main?.record.isLocalOnly == true, existing.main?.record.isDeleted == false {
            throw BackupError(
                .failed, "a copy of it is kept on this device only", at: taken.id.description,
                remedy: "give that back first, or delete it")
        }
        let policy = try policy(true, now(), existing.main?.record, taken)
        let latest = max(policy.known, existing.main?.record.latestTime ?? .distantPast)
        return try settle(taken.restored(at: policy.now, known: latest), existing, policy, derive, false)
    }

    /// Takes what the record says as an edit of this moment, which wins over what is newer and over a delete. A copy that
    /// is kept on this device only is protected all the same. Must run inside `write`.
    func edit(with record: Record, keepsID: Bool = false, derive: Derivation) throws -> Outcome {
        guard !record.isDeleted else { return try ingest(record, keepsID: keepsID, derive: derive) }
        let (incoming, _) = clamp(record, to: now())
        let (taken, existing) = try find(incoming, keepsID)
        switch try policy(false, now(), existing.main?.record, taken).decide(
            existing: existing.main?.record, incoming: taken)
        {
        case .update, .protect(.newer), .protect(.newerTombstone): return try release(taken, existing, derive)
        case .add, .unchanged, .protect: return try ingest(record, keepsID: keepsID, derive: derive)
        }
    }

    private func policy(
        _ resurrect: Bool, _ now: Timestamp, _ existing: Record?, _ incoming: Record
    ) throws -> MergePolicy {
        var policy = MergePolicy(resurrect: resurrect, now: now)
        policy.joinsKeywords = joinsKeywords
        policy.removableKeywords = removableKeywords
        policy.isLine = EventText.isLine(incoming) && !takesBackup
        if !incoming.isDeleted, existing?.isDeleted != false {
            policy.isPurged = try existing.map(isPurged) ?? false || isPurged(incoming)
        }
        policy.isUndone = try takesBackup && existing.map { try hasOutlived($0, incoming) } ?? false
        guard resurrect else {
            if let (living, dead) = existing.flatMap({ Record.livingAndDead($0, incoming) }) {
                policy.isLast = try isLast(living, deletedBy: dead)
                policy.hasAllTakenIn = try !incoming.isDeleted && !holdsAlone(living, unknownTo: dead)
            }
            return policy
        }
        // Where no hub is known there is no tombstone that we have not heard of.
        policy.keepsAlive = try hubLink() != nil
        // What the hub has of it as far as we know, where this side has changed it since.
        if let existing, let ancestor = try ancestor(existing.id) {
            policy.known = ancestor.fieldTimes.values.reduce(ancestor.modifiedAt, max)
        }
        return policy
    }

    private func settle(
        _ incoming: Record, _ existing: Match, _ policy: MergePolicy,
        _ derive: Derivation, _ clamped: Bool
    ) throws -> Outcome {
        let decision = try policy.decide(existing: existing.main?.record, incoming: incoming) {
            try derive(incoming.type, $0, $1, $2)
        }
        var (id, localID) = (existing.main?.record.id ?? incoming.id, incoming.localID)
        // A delete of the record will be one of this version, too, whether it is taken now or not.
        if let known = existing.main?.record, !known.isDeleted, !sameBytes(known.fields, incoming.fields) {
            try noteListing(of: incoming, as: known.id)
        }
        switch decision {
        case .add(var new):
            if existing.nameTaken { new.id = try freeName(new.id, type: new.type) }
            new.fields = Self.oneLine(new.fields)
            id = new.id
            try put(new, replacing: nil)
        case .update(var new, _):
            new.fields = Self.oneLine(new.fields)
            if let tombstone = existing.main?.record, tombstone.isDeleted, !new.isDeleted,
                tombstone.idInLinks != tombstone.localID
            {
                // Its notes still have that id.
                new.localID = tombstone.idInLinks
                localID = new.localID
            }
            try put(new, replacing: existing.main)
        case .unchanged, .protect: break
        }
        return Outcome(
            id: id, localID: localID, decision: decision, clamped: clamped,
            wasAlive: existing.main?.record.isDeleted == false)
    }

    /// What `match` found.
    typealias Match = (main: StoredRecord?, nameTaken: Bool)

    /// The record that an incoming one is a version of: the same identity, or the same type and local id.
    func match(_ incoming: Record, among sameLocalID: [StoredRecord]) throws -> Match {
        let sameType = try sameLocalID.filter { try $0.record.type == incoming.type && !liesBeside($0, incoming) }
        let same = sameType.first { $0.record.id == incoming.id }
        // A live local-only copy stands for the record, whatever arrives under its old name. Tombstones are for that
        // name alone: they are kept beside the copy, for everybody else.
        let copies = sameType.filter { $0.record.isLocalOnly && !$0.record.isDeleted }
        let local = copies.first { $0.record.id == incoming.id } ?? copies.first
        if let local, same != nil || !incoming.isDeleted { return (incoming.isDeleted ? same : local, false) }
        // What is folded into a live record under another name goes on to be that record.
        let live = sameType.first { !$0.record.isDeleted }
        if let same { return (same.record.isDeleted && !incoming.isDeleted ? live ?? same : same, false) }
        var named = sameLocalID.first { $0.record.id == incoming.id }
        if named == nil { named = try namedRecord(incoming.id) }
        if named == nil, incoming.id.name != incoming.localID { named = try self.record(incoming.id) }
        // The tombstone of a name that was folded into a record has another local id, and says nothing of the record.
        let isFolded = named?.record.isDeleted == true && !sameType.isEmpty && !incoming.isDeleted
        if let named, named.record.type == incoming.type, !isFolded { return (named, false) }
        if local != nil { return (nil, named != nil) }
        let other =
            try live ?? sameType.max { $0.record.modifiedAt < $1.record.modifiedAt } ?? tombstone(beside: incoming)
        if let other, WorkLineage.areBesideEachOther(other.record, incoming) { return (nil, named != nil) }
        return (other, named != nil)
    }

    /// The tombstone that a copy for this device left behind for everybody else, where it is called after its listing. Who
    /// deletes the copy makes that tombstone newer.
    private func tombstone(beside copy: Record) throws -> StoredRecord? {
        guard copy.isLocalOnly, !copy.isDeleted, let found = try cloudTombstone(of: copy) else { return nil }
        return try liesBeside(found, copy) ? nil : found
    }

    /// Whether a record is alive that has the local id of a tombstone, and another name.
    func hasLive(beside tombstone: Record) throws -> Bool {
        let known = try records(localID: tombstone.localID).map(\.record).filter { $0.type == tombstone.type }
        return known.contains { !$0.isDeleted && !$0.isLocalOnly } && !known.contains { $0.id == tombstone.id }
    }

    /// Whether a record came with the same backup as an incoming one of its local id, under another name.
    private func liesBeside(_ stored: StoredRecord, _ incoming: Record) throws -> Bool {
        guard takesBackup, stored.record.id != incoming.id else { return false }
        // The copy of a backup is as late as the tombstone beside it there; this one was here before, and is later.
        if incoming.isLocalOnly, stored.record.isDeleted, stored.record.modifiedAt > incoming.latestTime {
            if try wasHere(stored) { return false }
        }
        return currentBatch.map { stored.change >= $0.firstChange } == true || aliveInBackup.contains(stored.record.id)
    }

    private func latest(of record: Record) -> Timestamp {
        max(record.latestTime, record.createdAt, record.deletedAt ?? record.createdAt)
    }

    func clamp(_ record: Record, to now: Timestamp) -> (Record, Bool) {
        latest(of: record) > now ? (record.noNewer(than: now), true) : (record, false)
    }

    /// A line end in JSON can only be white space; records live on one line each.
    static func oneLine(_ fields: String) -> String {
        var fields = fields
        guard fields.withUTF8({ $0.contains { $0 == 0x0A || $0 == 0x0D } }) else { return fields }
        return String(decoding: fields.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
    }
}

/// Replacing: what a restore with `--mode replace` does.
extension Store {
    /// Takes the record as it is, whatever the times say. A newer tombstone still wins unless `resurrect`, and a local-only
    /// record still is protected. Must run inside `batch`.
    public func overwrite(with record: Record, resurrect: Bool) throws -> Outcome {
        let merged = try decision(on: record, resurrect: resurrect, keepsID: true)
        // The tombstone of another work does not forbid this one; it gets an id of its own.
        if [.protect(.newerTombstone), .protect(.purged)].contains(merged.decision) {
            return try ingest(record, resurrect: resurrect)
        }
        let matched = try match(record, among: soundRecords(localID: record.localID))
        let found = matched.main
        let isOneRecord = try found.map { try self.isOneRecord($0.record, record) } ?? false
        if let found, !found.record.isDeleted, !record.isDeleted,
            try merged.decision == .protect(.localOnly) || !isOneRecord && isKnownToHub(found.change),
            let moved = try besideAnotherWork(record, matched)
        {
            return try overwrite(with: moved, resurrect: resurrect)
        }
        if [.protect(.localOnly), .protect(.hasTakenIn), .protect(.keptInstead)].contains(merged.decision) {
            return merged
        }
        // A hub knows the id as that of a work that is deleted since, and this one is alive under its own.
        if let found, found.record.isDeleted, !record.isDeleted, !isOneRecord, try isKnownToHub(found.change),
            let moved = try besideAnotherWork(record, matched), try soundPublication(moved.localID) != nil
        {
            return try overwrite(with: moved, resurrect: resurrect)
        }
        if !resurrect, found?.record.isDeleted != false, try listing(of: record)?.record.isDeleted == true {
            return try ingest(record, resurrect: false)
        }
        if found?.record.isDeleted != false || !isOneRecord, let known = try hubListing(of: record) {
            return try overwrite(with: record.identified(as: known.record.localID), resurrect: resurrect)
        }
        guard let existing = found else { return try ingest(record, resurrect, keepsID: true) }
        // Equal fields are no reason to give it back to the cloud, and another copy's fields none to change this one.
        if existing.record.isLocalOnly, !existing.record.isDeleted {
            let isEqual = merged.decision == .unchanged
            return Outcome(
                id: merged.id, localID: merged.localID, decision: isEqual ? .unchanged : .protect(.localOnly))
        }
        // The backup's version would lose the record that was merged into this one.
        if try holdsAlone(existing.record, unknownTo: record) {
            let isEqual = merged.decision == .unchanged
            return Outcome(
                id: merged.id, localID: merged.localID, decision: isEqual ? .unchanged : .protect(.hasTakenIn),
                holdsAlone: true)
        }
        // Of two deletes of one work the later one counts: it says which versions stay dead.
        if existing.record.isDeleted, record.isDeleted || isOneRecord {
            return try ingest(record, resurrect, keepsID: isOneRecord)
        }
        var new = record.withoutRemains()
        let takesName = try mayTakeName(of: record, existing)
        if !takesName { new.id = existing.record.id }
        // What is kept on one device only has no deletes of others to outlive.
        if resurrect, !record.isDeleted, !record.isLocalOnly {
            // The same fields already: they may have to outlive a tombstone, and nothing else.
            if try !takesName && Fields.same(existing.record.fields, record.fields) {
                return try ingest(record, true, keepsID: true)
            }
            let policy = try policy(true, now(), existing.record, record)
            new = try new.restored(at: policy.now, known: max(policy.known, existing.record.latestTime))
        }
        new.fields = Self.oneLine(new.fields)
        if !resurrect { new = try keepingOthersFiles(new, existing.record) }
        // Equal, only newer: it outlived a delete by a device that had not heard of the merge, or of the decision.
        let hasOutlived =
            !new.knownTimes.isEmpty && new.knownTimes == existing.record.knownTimes
            && existing.record.modifiedAt > new.modifiedAt && sameBytes(existing.record.fields, new.fields)
        if existing.record == new || hasOutlived {
            return Outcome(id: new.id, localID: new.localID, decision: .unchanged)
        }
        if !isOneRecord { try giveWay(existing.record) }
        if takesName { try removeRow(existing) }
        try put(new, replacing: takesName ? nil : existing, isVersion: isOneRecord)
        let changes = try FieldChange.list(
            from: Fields.parse(existing.record.fields), to: Fields.parse(new.fields))
        let outcome = Outcome(
            id: new.id, localID: new.localID, decision: .update(new, changes), wasAlive: !existing.record.isDeleted)
        if outcome.hasDeleted(beside: record) { _ = try ingest(record, resurrect, keepsID: true) }
        return outcome
    }

    /// A backup's version knows nothing of a work that a decision has deleted since because this record stays: it goes on to
    /// stand for that work, and to link the files that nothing else links.
    private func keepingOthersFiles(_ version: Record, _ known: Record) throws -> Record {
        guard !version.isDeleted else { return version }
        let instead = try known.keptInstead(unknownTo: version).filter { id, time in
            try isGone(id, like: known, since: time)
        }
        guard !instead.isEmpty else { return version }
        var result = version
        for (id, time) in instead { result.fieldTimes[Record.keptMark + id] = time }
        let own = try Self.links(of: version)
        var others = LivingLinks(self) { $0.id != known.id }
        let orphans = try Self.links(of: known).filter { path in
            try !own.contains { sameBytes($0, path) } && hasAsset(path) && !others.contains(path)
        }
        guard !orphans.isEmpty else { return result }
        let all = (own + orphans).sorted(by: precedesBytewise)
        let field = Field(RecordFiles.links, .array(all.map { .string($0) }))
        result.fields = Fields.text(try Fields.parse(version.fields).filter { $0.name != field.name } + [field])
        return result
    }

    /// Whether a row gets the name that a version of its record has in a backup. A name that a hub knows stays.
    private func mayTakeName(of version: Record, _ existing: StoredRecord) throws -> Bool {
        guard existing.record.id != version.id, !existing.record.isDeleted, !version.isDeleted, !version.isLocalOnly
        else { return false }
        return try !isKnownToHub(existing.change) && record(version.id) == nil && !isPurged(version)
    }

    /// The record under the id that it gets where another work has its id for good: a copy that is kept on this device only
    /// does not stand for it, and what a hub knows under an id stays that work on all devices.
    private func besideAnotherWork(_ record: Record, _ matched: Match) throws -> Record? {
        let (own, known) = try settleWork(of: record, matched)
        let id = known.main?.record.localID ?? own.localID
        return id == record.localID ? nil : record.identified(as: id)
    }

    /// Whether another record was merged into this one that `version` knows nothing of and that is not alive by itself.
    func holdsAlone(_ record: Record, unknownTo version: Record? = nil) throws -> Bool {
        guard version.map(record.hasTakenIn) ?? !record.isDeleted else { return false }
        return try record.takenIn.contains { name, time in
            if let version, time <= version.fieldTimes[name] ?? .distantPast { return false }
            return try !soundRecords(localID: String(name.dropFirst(Record.takenInMark.count))).contains {
                !$0.record.isDeleted && $0.record.type == record.type && $0.record.id != record.id
            }
        }
    }

    /// What would be done with a record, and nothing more.
    func decision(on record: Record, resurrect: Bool = false, keepsID: Bool = false) throws -> Outcome {
        let (taken, existing) = try find(record, keepsID)
        let decision = try policy(resurrect, now(), existing.main?.record, taken).decide(
            existing: existing.main?.record, incoming: taken)
        return Outcome(id: existing.main?.record.id ?? taken.id, localID: taken.localID, decision: decision)
    }

    /// The record as the store takes it, and what it is a version of.
    private func find(_ record: Record, _ keepsID: Bool) throws -> (Record, Match) {
        let found = try match(record, among: soundRecords(localID: record.localID))
        return try keepsID ? (record, found) : settleWork(of: record, found)
    }

    /// Takes a live record out altogether; the batch remembers it. Must run inside `batch`.
    public func remove(_ id: RecordID) throws {
        if let stored = try record(id) { try removeRow(stored) }
    }
}
