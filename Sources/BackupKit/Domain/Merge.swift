/// One field that a merge changed; the values are JSON text, nil where the field was or became absent.
public struct FieldChange: Sendable, Equatable {
    public let name: String
    public let before: String?
    public let after: String?
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
    case newer = "is newer in the store"
}

/// The merge rules of `DOMAIN.md` §2, as a function of two records and nothing else.
public struct MergePolicy: Sendable {
    /// Bring back what a newer tombstone deleted.
    public var resurrect = false
    public var now: Timestamp

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
        guard let existing else { return .add(incoming) }
        switch (existing.isDeleted, incoming.isDeleted) {
        case (true, true): return decideTombstones(existing, incoming)
        case (true, false): return try decideReturn(of: incoming, over: existing)
        case (false, true): return decideDelete(existing, incoming)
        case (false, false):
            let decision = try decideFields(existing, incoming, derive)
            if existing.isLocalOnly, decision != .unchanged { return .protect(.localOnly) }
            return decision
        }
    }

    private func decideTombstones(_ existing: Record, _ incoming: Record) -> Decision {
        guard incoming.modifiedAt > existing.modifiedAt else { return .unchanged }
        var merged = incoming
        merged.id = existing.id
        return .update(merged, [])
    }

    private func decideReturn(of incoming: Record, over tombstone: Record) throws -> Decision {
        var back = incoming
        back.id = tombstone.id
        if latest(incoming) <= tombstone.modifiedAt {
            guard resurrect else { return .protect(.newerTombstone) }
            // Later than the tombstone, or the next sync would delete it again.
            back.modifiedAt = max(now, Timestamp(milliseconds: tombstone.modifiedAt.milliseconds + 1))
            back.fieldTimes = [:]
        }
        return .update(back, changes(from: [], to: try Fields.parse(incoming.fields)))
    }

    private func decideDelete(_ existing: Record, _ tombstone: Record) -> Decision {
        if existing.isLocalOnly { return .protect(.localOnly) }
        guard tombstone.modifiedAt >= latest(existing) else { return .protect(.newer) }
        var merged = tombstone
        merged.id = existing.id
        return .update(merged, [])
    }

    private func latest(_ record: Record) -> Timestamp {
        record.fieldTimes.values.reduce(record.modifiedAt, max)
    }

    private func decideFields(
        _ existing: Record, _ incoming: Record, _ derive: ([Field], [Field], [Field]) throws -> [Field]
    ) throws -> Decision {
        if existing.fields == incoming.fields { return .unchanged }
        let local = try Fields.parse(existing.fields)
        let other = try Fields.parse(incoming.fields)
        var merged = local
        var times: [String: Timestamp] = [:]
        var differs = false
        let incomingByName = Dictionary(other.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        for name in local.map(\.name) + other.map(\.name).filter({ name in !local.contains { $0.name == name } }) {
            let mine = local.first { $0.name == name }?.value
            let theirs = incomingByName[name]
            let myTime = existing.fieldTimes[name] ?? existing.modifiedAt
            let theirTime = incoming.fieldTimes[name] ?? incoming.modifiedAt
            if try same(mine, theirs) {
                times[name] = max(myTime, theirTime)
                continue
            }
            differs = true
            let chosen: String?
            if Self.setFields.contains(name), let mine, let theirs, let union = try union(mine, theirs) {
                chosen = union
                times[name] = max(myTime, theirTime)
            } else {
                chosen = theirTime > myTime ? theirs : mine
                times[name] = max(myTime, theirTime)
            }
            set(name, chosen, in: &merged)
        }
        guard differs else { return .unchanged }
        merged = try derive(merged, local, other)
        let changed = changes(from: local, to: merged)
        if changed.isEmpty { return .protect(.newer) }
        return .update(try record(existing, incoming, merged, times), changed)
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
        // A time that equals the record's own says nothing new.
        result.fieldTimes = times.filter { $0.value != result.modifiedAt }
        return result
    }

    private func same(_ left: String?, _ right: String?) throws -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return try Fields.same(left, right)
    }

    /// The union of two arrays, in order of first appearance; nil when one is no array.
    private func union(_ mine: String, _ theirs: String) throws -> String? {
        guard let left = try JSON(parsing: mine).array, let right = try JSON(parsing: theirs).array else { return nil }
        return JSON.array(left + right.filter { !left.contains($0) }).compact
    }

    private func set(_ name: String, _ value: String?, in fields: inout [Field]) {
        let index = fields.firstIndex { $0.name == name }
        switch (index, value) {
        case (let index?, let value?): fields[index].value = value
        case (let index?, nil): fields.remove(at: index)
        case (nil, let value?): fields.append(Field(name, value))
        case (nil, nil): break
        }
    }

    private func changes(from before: [Field], to after: [Field]) -> [FieldChange] {
        var changes: [FieldChange] = []
        for field in before {
            let now = after.first { $0.name == field.name }?.value
            if now != field.value { changes.append(FieldChange(name: field.name, before: field.value, after: now)) }
        }
        for field in after where !before.contains(where: { $0.name == field.name }) {
            changes.append(FieldChange(name: field.name, before: nil, after: field.value))
        }
        return changes
    }
}
