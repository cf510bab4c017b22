/// What both sides knew of a record before one of them changed it.
struct Ancestor: Sendable {
    var fields: String
    var fieldTimes: [String: Timestamp] = [:]
    var modifiedAt: Timestamp
    var isDeleted = false
}

/// Merges a record that was changed here with what the hub has of it. The order of any two versions is total (time, then
/// device, then the value's canonical bytes), so every device decides alike; imports, where a person stands beside it,
/// keep the local value at equal times instead.
struct SyncMerge {
    /// Recomputes what depends on merged fields.
    typealias Derivation = (_ merged: [Field], _ local: [Field], _ other: [Field]) throws -> [Field]

    var derive: Derivation = { merged, _, _ in merged }

    /// The record as it is from now on; equal to `hub` when there is nothing to tell the hub. Both have one identity; their
    /// local ids may differ, since a tombstone may be called after what was deleted.
    func merge(_ local: Record, _ hub: Record, base: Ancestor?) throws -> Record {
        switch (local.isDeleted, hub.isDeleted) {
        case (true, true): return hub.joined(withTombstone: local)
        // What was written after a delete is not lost by it; nothing else brings the dead back.
        case (true, false):
            if hub.hasTakenIn(unknownTo: local) { return try hub.outliving(local) }
            return local.modifiedAt >= hub.latestTime ? local : hub
        case (false, true):
            if local.hasTakenIn(unknownTo: hub) { return try local.outliving(hub) }
            return hub.modifiedAt >= local.latestTime ? hub : local
        case (false, false): return try mergeFields(local, hub, base.flatMap { isOutdated($0, local, hub) ? nil : $0 })
        }
    }

    /// Whether the base does not tell any more what a side removed on purpose. When one side undid a merge that the other
    /// side has made once more since, what came with the merge is missing on the first side, and counts as not removed. So it
    /// does when the other side has deleted the merged work since, because this record holds it.
    private func isOutdated(_ base: Ancestor, _ local: Record, _ hub: Record) -> Bool {
        func reliesOnMerge(_ record: Record, _ other: Record) -> Bool {
            record.idsTakenIn.contains { id in
                let (merged, kept) = (Record.takenInMark + id, Record.keptMark + id)
                guard other.fieldTimes[merged] == nil, base.fieldTimes[merged] != nil else { return false }
                return [merged, kept].contains {
                    record.fieldTimes[$0] ?? .distantPast > base.fieldTimes[$0] ?? .distantPast
                }
            }
        }
        return base.isDeleted || reliesOnMerge(local, hub) || reliesOnMerge(hub, local)
    }

    private struct Side {
        let record: Record
        let fields: [Field]
        let values: [ByteName: String]
        /// Whether an event says of each field when it was written. A whole line that is new says one time for all.
        let hasTimesOfFields: Bool

        init(_ record: Record) throws {
            self.record = record
            fields = try Fields.parse(record.fields)
            values = Fields.values(fields)
            hasTimesOfFields =
                record.type == RecordType.event && fields.contains { record.fieldTimes[$0.name] != nil }
        }

        func isRenamed(since other: Side) -> Bool { record.isRenamed(fields, since: other.record, other.fields) }

        /// Silence about a field is no removal, unless a time says so.
        func time(of name: String) -> Timestamp {
            record.fieldTimes[name] ?? (values[ByteName(name)] != nil ? record.modifiedAt : .distantPast)
        }
    }

    private struct Before {
        let values: [ByteName: String]
        let base: Ancestor

        /// Whether a side left a field as it was. One that was set again on purpose, to the same value, was not left.
        func isAsBefore(_ name: String, in side: Side) throws -> Bool {
            let key = ByteName(name)
            let time = side.record.fieldTimes[name] ?? (side.hasTimesOfFields ? side.time(of: name) : nil)
            if let time, time > base.fieldTimes[name] ?? base.modifiedAt { return false }
            guard let now = side.values[key], let was = values[key] else {
                return side.values[key] == nil && values[key] == nil
            }
            return try Fields.same(now, was)
        }
    }

    private func mergeFields(_ local: Record, _ hub: Record, _ base: Ancestor?) throws -> Record {
        let (local, hub) = try EventText.comparable(local, hub)
        let (mine, theirs) = (try Side(local), try Side(hub))
        let before = try base.map { base in
            Before(values: Fields.values(try Fields.parse(base.fields)), base: base)
        }
        var names: [String] = []
        var seen: Set<ByteName> = []
        for name in theirs.fields.map(\.name) + mine.fields.map(\.name) + hub.fieldTimes.keys.sorted()
            + local.fieldTimes.keys.sorted() where seen.insert(ByteName(name)).inserted
        {
            names.append(name)
        }
        var merged: [Field] = []
        var times: [String: Timestamp] = [:]
        for name in names {
            let (value, time) = try settle(name, mine, theirs, before)
            times[name] = time
            if let value { merged.append(Field(name, value)) }
        }
        if let older = RawText.older(in: merged, time: { times[$0] ?? .distantPast }) {
            merged.removeAll { $0.name == older }
        }
        return try record(mine, theirs, merged, times)
    }

    /// The value of one field, nil for none, and when it was set.
    private func settle(
        _ name: String, _ mine: Side, _ theirs: Side, _ before: Before?
    ) throws -> (String?, Timestamp) {
        let (my, their) = (mine.values[ByteName(name)], theirs.values[ByteName(name)])
        let (myTime, theirTime) = (mine.time(of: name), theirs.time(of: name))
        if try same(my, their) { return (their, max(myTime, theirTime)) }
        if mine.record.type == RecordType.event, RecordFiles.mediaKeys.contains(name), let my, let their {
            // The name that stands for a file which was not there says nothing about it; the other device may have the file.
            let (hasMine, hasTheirs) = (!RecordFiles.isStandIn(my), !RecordFiles.isStandIn(their))
            if hasMine != hasTheirs { return (hasMine ? my : their, max(myTime, theirTime)) }
        }
        if name == WorkIdentity.keyField {
            if mine.isRenamed(since: theirs) { return (my, max(myTime, theirTime)) }
            if theirs.isRenamed(since: mine) { return (their, max(myTime, theirTime)) }
        }
        // A decision counts as of its time, also where it repeats what was before.
        let isDecision = mine.record.type == RecordType.conflict && name == RecordType.decisionField
        if let before, !isDecision {
            if try before.isAsBefore(name, in: mine) { return (their, theirTime) }
            if try before.isAsBefore(name, in: theirs) { return (my, myTime) }
        }
        let iWin = try isNewer(my, myTime, mine.record, than: their, theirTime, theirs.record)
        let newest = max(myTime, theirTime)
        if MergePolicy.setFields.contains(name), let my, let their,
            let set = try joined(name, iWin ? my : their, iWin ? their : my, base: before?.values[ByteName(name)])
        {
            return (set, newest)
        }
        return iWin ? (my, myTime) : (their, theirTime)
    }

    private func isNewer(
        _ value: String?, _ time: Timestamp, _ record: Record, than other: String?, _ otherTime: Timestamp,
        _ otherRecord: Record
    ) throws -> Bool {
        if time != otherTime { return time > otherTime }
        let (device, otherDevice) = (record.deviceID ?? "", otherRecord.deviceID ?? "")
        if !sameBytes(device, otherDevice) { return otherDevice.utf8.lexicographicallyPrecedes(device.utf8) }
        guard let value else { return false }
        guard let other else { return true }
        return try Fields.canonical(other).lexicographicallyPrecedes(Fields.canonical(value))
    }

    /// Two sets joined: what one side took out of the base is out, all else is in. Nil when one is no set.
    private func joined(_ name: String, _ winner: String, _ other: String, base: String?) throws -> String? {
        if let text = try Keywords.union(name, winner, other, base: base) { return text }
        guard let first = try JSON(parsing: winner).array, let second = try JSON(parsing: other).array else {
            return nil
        }
        let old = try base.flatMap { try JSON(parsing: $0).array } ?? []
        func keys(_ list: [JSON]) throws -> Set<[UInt8]> { Set(try list.map { try Fields.canonical($0.compact) }) }
        let (inFirst, inSecond, inBase) = (try keys(first), try keys(second), try keys(old))
        let kept = try first.filter {
            let key = try Fields.canonical($0.compact)
            return inSecond.contains(key) || !inBase.contains(key)
        }
        let added = try second.filter {
            let key = try Fields.canonical($0.compact)
            return !inFirst.contains(key) && !inBase.contains(key)
        }
        return added.isEmpty && kept.count == first.count ? winner : JSON.array(kept + added).compact
    }

    private func record(
        _ mine: Side, _ theirs: Side, _ merged: [Field], _ times: [String: Timestamp]
    ) throws -> Record {
        let (local, hub) = (mine.record, theirs.record)
        var result = hub
        let text = Fields.text(merged)
        // What somebody wrote stays as it was written.
        if try Fields.same(text, hub.fields) {
            result.fields = hub.fields
        } else if try Fields.same(text, local.fields) {
            result.fields = local.fields
        } else {
            result.fields = Fields.text(try derive(merged, mine.fields, theirs.fields))
        }
        result.modifiedAt = max(local.modifiedAt, hub.modifiedAt)
        result.createdAt = min(local.createdAt, hub.createdAt)
        result.schemaVersion = max(local.schemaVersion, hub.schemaVersion)
        let isMine =
            local.modifiedAt != hub.modifiedAt
            ? local.modifiedAt > hub.modifiedAt
            : (hub.deviceID ?? "").utf8.lexicographicallyPrecedes((local.deviceID ?? "").utf8)
        if isMine { result.deviceID = local.deviceID }
        // A time that equals the record's own says nothing new, but for a field that was removed.
        let present = Set(merged.map(\.name))
        result.fieldTimes = times.filter {
            $0.value != .distantPast && ($0.value != result.modifiedAt || !present.contains($0.key))
        }
        return result
    }

    private func same(_ left: String?, _ right: String?) throws -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return try Fields.same(left, right)
    }
}

extension Timestamp {
    static let distantPast = Timestamp(milliseconds: .min)
}

extension Record {
    /// Whether two records are the same to the byte; `==` would take two spellings of "é" for one text.
    func isSame(as other: Record) -> Bool {
        self == other && sameBytes(fields, other.fields) && id == other.id && sameBytes(localID, other.localID)
    }
}
