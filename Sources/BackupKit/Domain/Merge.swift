/// One field that a merge changed; the values are JSON text, nil where the field was or became absent.
public struct FieldChange: Sendable, Equatable {
    public let name: String
    public let before: String?
    public let after: String?
}

extension FieldChange {
    /// What differs between two states of a record's fields, byte for byte.
    static func list(from before: [Field], to after: [Field]) -> [FieldChange] {
        let (old, new) = (Fields.values(before), Fields.values(after))
        let changed = before.filter { field in new[ByteName(field.name)].map { !sameBytes($0, field.value) } ?? true }
            .map { FieldChange(name: $0.name, before: $0.value, after: new[ByteName($0.name)]) }
        let added = after.filter { old[ByteName($0.name)] == nil }
            .map { FieldChange(name: $0.name, before: nil, after: $0.value) }
        return changed + added
    }
}

extension Record {
    /// The record with fields that a person has decided on: what changed is as old as the decision, the rest as old as it was.
    func edited(_ new: [Field], at time: Timestamp) throws -> Record {
        let before = try Fields.parse(fields)
        var record = self
        record.fields = Fields.text(new)
        record.modifiedAt = time
        for field in before { record.fieldTimes[field.name] = fieldTimes[field.name] ?? modifiedAt }
        for change in FieldChange.list(from: before, to: new) {
            // A field that is there is as old as its record where nothing else is said.
            record.fieldTimes[change.name] = change.after == nil ? time : nil
        }
        return record
    }
}

/// What is to be done with an incoming record.
public enum Decision: Sendable, Equatable {
    case add(Record)
    case update(Record, [FieldChange])
    case unchanged
    case protect(Protection)
}

/// Why an incoming record was not taken.
public enum Protection: String, Sendable {
    case newerTombstone = "was deleted after this version was written"
    case localOnly = "is kept on this device only"
    case newer = "is as new or newer in the store"
    case purged = "was purged, so it stays deleted"
    case hasTakenIn = "another record was merged into it since"
    case keptInstead = "a decision has kept it and deleted another record instead"
    case newerSchema = "is of a schema that this backup-tool does not know"
    case quarantined = "is in quarantine"
}

/// The merge rules of `docs/domain.md`, as a function of two records and nothing else.
public struct MergePolicy: Sendable {
    /// Bring back what a newer tombstone deleted, and let what is brought outlive tombstones that arrive later.
    public var resurrect = false
    public var now: Timestamp
    /// With `resurrect`: the latest time that is known of the record apart from the two versions.
    public var known = Timestamp.distantPast
    /// Keywords in BibTeX text merge by union, too.
    public var joinsKeywords = false
    /// The stored keywords that a newer version removes by not having them; it is joined with the others. Nil where a newer
    /// version replaces all of them.
    var removableKeywords: [String]?
    /// With `resurrect`: what is alive and has nothing to gain outlives them too.
    public var keepsAlive = false
    /// The incoming version says one time for all of its fields: those that it does not change are as old as they were.
    public var isLine = false
    /// The fields in which it says again what its log said before somebody else wrote something newer.
    var saidBefore: Set<ByteName> = []
    /// The living one of the two is all that is left of works about which the other one had heard of no decision.
    var isLast = false
    /// Whether all that the living version has taken in, and the delete does not know of, is alive by itself.
    var hasAllTakenIn = false
    /// An undo has taken the delete back.
    var isUndone = false
    /// The store has purged the record: nothing alive takes its place.
    public var isPurged = false

    public init(resurrect: Bool = false, now: Timestamp) {
        self.resurrect = resurrect
        self.now = now
    }

    /// Sets, in CloudKit terms: lists whose order means nothing and that merge by union.
    static let setFields: Set<String> = ["authors", "keywords", "tags", "collections", "linkedFiles"]

    /// `derive` may recompute what depends on merged fields; it gets the merged fields and the two sides.
    public func decide(
        existing: Record?, incoming: Record,
        derive: (_ merged: [Field], _ local: [Field], _ incoming: [Field]) throws -> [Field] = { merged, _, _ in merged
        }
    ) throws -> Decision {
        let decision = try merge(existing, incoming, derive)
        guard resurrect, !incoming.isDeleted, !incoming.isLocalOnly, existing?.isLocalOnly != true else {
            return decision
        }
        func alive(_ record: Record) throws -> Record {
            try record.isKeptAlive() && record.latestTime >= now ? record : record.keptAlive(at: now, known: known)
        }
        switch decision {
        case .add(let new): return .add(try alive(new))
        case .update(let new, let changes): return .update(try alive(new), changes)
        case .unchanged, .protect(.newer):
            guard keepsAlive, let existing, !existing.isDeleted, try !existing.isKeptAlive() else { return decision }
            return .update(try alive(existing), [])
        case .protect: return decision
        }
    }

    private func merge(
        _ existing: Record?, _ incoming: Record,
        _ derive: (_ merged: [Field], _ local: [Field], _ incoming: [Field]) throws -> [Field]
    ) throws -> Decision {
        let incoming = incoming.withoutRemains()
        guard let existing else {
            if isPurged, !incoming.isDeleted { return .protect(.purged) }
            // What is merged later must be readable later, so it is read once now.
            if !incoming.isDeleted { try Fields.check(incoming.fields) }
            return .add(incoming)
        }
        // The cloud has no say in what is kept on this device; another copy of the local record has.
        let protected = existing.isLocalOnly && !incoming.isLocalOnly
        switch (existing.isDeleted, incoming.isDeleted) {
        case (true, true): return decideTombstones(existing, incoming)
        case (true, false): return try decideReturn(of: incoming, over: existing)
        case (false, true) where isUndone: return .protect(.newer)
        case (false, true): return protected ? .protect(.localOnly) : decideDelete(existing, incoming)
        case (false, false):
            let decision = try decideFields(existing, incoming, derive)
            return protected && decision != .unchanged ? .protect(.localOnly) : decision
        }
    }

    private func decideTombstones(_ existing: Record, _ incoming: Record) -> Decision {
        let joined = existing.joined(withTombstone: incoming)
        if joined.modifiedAt == existing.modifiedAt, joined.fieldTimes == existing.fieldTimes { return .unchanged }
        return .update(withName(of: existing, joined), [])
    }

    private func decideReturn(of incoming: Record, over tombstone: Record) throws -> Decision {
        // A local copy carries the time of the tombstone that it left behind for everybody else.
        let isCopy = incoming.isLocalOnly && incoming.id != tombstone.id
        let isOlder =
            incoming.latestTime < tombstone.modifiedAt || (incoming.latestTime == tombstone.modifiedAt && !isCopy)
        if isPurged { return .protect(isOlder && !resurrect ? .newerTombstone : .purged) }
        var back = incoming
        if isLast || !hasAllTakenIn && incoming.hasTakenIn(unknownTo: tombstone) {
            back = try incoming.outliving(tombstone)
        } else if isOlder {
            guard resurrect else { return .protect(.newerTombstone) }
            // Later than the tombstone and all else, or the next sync would delete it again or take its fields.
            back = try incoming.restored(at: now, known: max(known, tombstone.modifiedAt))
            back.isLocalOnly = incoming.isLocalOnly
        }
        let changed = FieldChange.list(from: [], to: try Fields.parse(incoming.fields))
        // A tombstone may be called after the work that it was; the record knows its own local id.
        return isCopy ? .add(back) : .update(withName(of: tombstone, back), changed)
    }

    private func decideDelete(_ existing: Record, _ tombstone: Record) -> Decision {
        if existing.hasTakenIn(unknownTo: tombstone) { return .protect(.hasTakenIn) }
        guard tombstone.modifiedAt >= existing.latestTime else { return .protect(.newer) }
        if isLast { return .protect(.keptInstead) }
        return .update(withName(of: existing, tombstone), [])
    }

    /// A save of a known record keeps its name and its local id.
    private func withIdentity(of known: Record, _ record: Record) -> Record {
        var record = record
        record.id = known.id
        record.localID = known.localID
        return record
    }

    /// What arrives under this very name knows best what it is called: a tombstone may be called after the work that was
    /// deleted, or after its own name when that was folded into another record.
    private func withName(of known: Record, _ record: Record) -> Record {
        known.id == record.id ? record : withIdentity(of: known, record)
    }

    private func decideFields(
        _ existing: Record, _ incoming: Record, _ derive: ([Field], [Field], [Field]) throws -> [Field]
    ) throws -> Decision {
        if sameBytes(existing.fields, incoming.fields) { return try decideLifetime(existing, incoming) }
        let said = existing.modifiedAt
        var (existing, incoming) = try EventText.comparable(existing, incoming)
        // An undated line is older than whatever has a time, and so is what the new line leaves of it.
        if isLine, existing.modifiedAt < said { existing.modifiedAt = min(existing.modifiedAt, .init(milliseconds: 0)) }
        let local = try Fields.parse(existing.fields)
        let other = try Fields.parse(incoming.fields)
        let merged = try merge(existing, local, incoming, other)
        guard merged.differs else { return try decideLifetime(existing, incoming) }
        guard merged.takes else { return .protect(.newer) }
        let fields = try derive(merged.fields, local, other)
        let changed = FieldChange.list(from: local, to: fields)
        if changed.isEmpty { return .protect(.newer) }
        return .update(try record(existing, incoming, fields, merged.times), changed)
    }

    /// The fields are the same. A version that was kept alive on purpose, later than this one, brings that along, or a
    /// tombstone that it outlives would delete the record here.
    private func decideLifetime(_ existing: Record, _ incoming: Record) throws -> Decision {
        guard incoming.modifiedAt > existing.latestTime, !incoming.fieldTimes.isEmpty, !existing.isLocalOnly,
            try incoming.isKeptAlive()
        else { return .unchanged }
        var record = existing
        for field in try Fields.parse(existing.fields) {
            record.fieldTimes[field.name] = existing.fieldTimes[field.name] ?? existing.modifiedAt
        }
        record.fieldTimes.merge(incoming.fieldTimes) { max($0, $1) }
        record.modifiedAt = incoming.modifiedAt
        record.deviceID = incoming.deviceID
        record.createdAt = min(existing.createdAt, incoming.createdAt)
        return .update(record, [])
    }

    private struct Merged {
        var fields: [Field] = []
        var times: [String: Timestamp] = [:]
        /// Whether the two sides say different things, and whether any of theirs was taken.
        var differs = false
        var takes = false
    }

    private func merge(_ existing: Record, _ local: [Field], _ incoming: Record, _ other: [Field]) throws -> Merged {
        var merged = Merged()
        let theirs = Fields.values(other)
        let isTheirs = incoming.isRenamed(other, since: existing, local)
        let isRenamed = isTheirs || existing.isRenamed(local, since: incoming, other)
        func settle(_ name: String, _ mine: String?, _ theirs: String?) throws {
            let myTime = time(of: name, in: existing, isThere: mine != nil)
            let theirTime = time(of: name, in: incoming, isThere: theirs != nil)
            merged.times[name] = max(myTime, theirTime)
            var chosen = mine
            if saidBefore.contains(ByteName(name)) {
                merged.times[name] = myTime
            } else if try same(mine, theirs) {
                if isLine, mine != nil { merged.times[name] = myTime }
            } else {
                merged.differs = true
                let newer = theirTime > myTime
                let takes = isRenamed && name == WorkIdentity.keyField ? isTheirs : newer
                chosen = takes ? theirs : mine
                if Self.setFields.contains(name), let mine, let theirs {
                    let (first, second) = newer ? (theirs, mine) : (mine, theirs)
                    let gone = newer ? removableKeywords : nil
                    let joins = joinsKeywords || gone != nil
                    let text = joins ? try Keywords.union(name, first, second, without: gone ?? []) : nil
                    chosen = try union(first, second) ?? text ?? chosen
                }
                if mine == nil || !sameBytes(chosen, mine ?? "") { merged.takes = true }
            }
            if let chosen { merged.fields.append(Field(name, chosen)) }
        }
        var settled: Set<ByteName> = []
        for field in local where settled.insert(ByteName(field.name)).inserted {
            try settle(field.name, field.value, theirs[ByteName(field.name)])
        }
        for field in other where settled.insert(ByteName(field.name)).inserted {
            try settle(field.name, nil, field.value)
        }
        // What both sides have removed keeps the time of its removal.
        for name in Array(existing.fieldTimes.keys) + Array(incoming.fieldTimes.keys)
        where settled.insert(ByteName(name)).inserted {
            try settle(name, nil, nil)
        }
        let own = local.first { RawText.holds($0.name) }?.name ?? RawText.plain
        if let older = RawText.older(in: merged.fields, atEqualTimes: own, time: { merged.times[$0] ?? .distantPast }) {
            merged.fields.removeAll { $0.name == older }
            if local.contains(where: { $0.name == older }) { merged.takes = true }
        }
        return merged
    }

    /// A field without a time of its own is as old as its record. A field that is not there says nothing unless a time says
    /// when it was removed: most sources of records do not know every field, and their silence must not delete.
    private func time(of name: String, in record: Record, isThere: Bool) -> Timestamp {
        record.fieldTimes[name] ?? (isThere ? record.modifiedAt : Timestamp(milliseconds: .min))
    }

    private func record(
        _ existing: Record, _ incoming: Record, _ merged: [Field], _ times: [String: Timestamp]
    ) throws -> Record {
        var result = existing
        let text = Fields.text(merged)
        // What somebody wrote stays as it was written.
        result.fields = try Fields.same(text, incoming.fields) ? incoming.fields : text
        result.modifiedAt = max(existing.modifiedAt, incoming.modifiedAt)
        result.createdAt = min(existing.createdAt, incoming.createdAt)
        result.schemaVersion = max(existing.schemaVersion, incoming.schemaVersion)
        if incoming.modifiedAt > existing.modifiedAt { result.deviceID = incoming.deviceID }
        // A time that equals the record's own says nothing new, but for a field that was removed.
        let present = Set(merged.map(\.name))
        result.fieldTimes = times.filter { $0.value != result.modifiedAt || !present.contains($0.key) }
        return result
    }

    private func same(_ left: String?, _ right: String?) throws -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return try Fields.same(left, right)
    }

    /// The union of two arrays: the first in its order, then what only the second has. Nil when one is no array.
    private func union(_ first: String, _ second: String) throws -> String? {
        guard let left = try JSON(parsing: first).array, let right = try JSON(parsing: second).array else { return nil }
        var known = Set(try left.map { try Fields.canonical($0.compact) })
        let more = try right.filter { known.insert(try Fields.canonical($0.compact)).inserted }
        return more.isEmpty ? first : JSON.array(left + more).compact
    }

    private func sameBytes(_ left: String?, _ right: String) -> Bool {
        guard let left else { return false }
        return BackupKit.sameBytes(left, right)
    }
}
