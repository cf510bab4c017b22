/// What one device has written and the other had not heard of, and what a merge with the hub's version drops all the same: by a
/// later delete, or because no time says which of two values is right. The outcome stands; what was dropped goes into
/// quarantine where the two met, and the sync names it.
extension Synchronizer {
    struct Overruled {
        enum Reason {
            case deletedByOthers, deletedHere, asOld
            /// What the store knew of the hub's version was damaged.
            case unknown

            var isDelete: Bool { self == .deletedByOthers || self == .deletedHere }
        }

        let edit: Record
        let envelope: RecordID
        let base: Ancestor?
        let reason: Reason
        /// When it was deleted where it met the other version, and the local id of what was.
        let deletedAt: Timestamp?
        let deletedAs: String
    }

    /// Must run inside the `write` that takes the merged version.
    func putAside(
        _ local: Record, _ row: Store.SyncRow, _ hub: Record, mergedTo merged: Record, base: Ancestor?
    ) throws {
        if merged.isDeleted {
            // What a hub of before had seen need not have been seen by whoever deleted the record.
            let isUnseen = row.isUnseen || hub.hadNotHeard(of: local) || local.hadNotHeard(of: hub)
            let isSeen = try base == nil && (!isUnseen || store.isOfBatch(row.change, kind: "restore"))
            if !local.isDeleted, !isSeen { try putAside(local, base, .deletedByOthers, merged.modifiedAt) }
            if !hub.isDeleted, try base != nil || isUnseen && !hasReplaced(hub) {
                try putAside(hub, base, .deletedHere, merged.modifiedAt)
            }
            return
        }
        guard base == nil, !local.isDeleted, !hub.isDeleted, !sameBytes(local.fields, hub.fields) else { return }
        for (loser, other) in [(local, hub), (hub, local)]
        where try hasLost(loser, other, merged, atAnyTime: row.isUnknown) {
            try putAside(loser, nil, row.isUnknown ? .unknown : .asOld)
        }
    }

    /// Whether the undo history has a version that says the same: whoever wrote or deleted after it has seen that.
    private func hasReplaced(_ version: Record) throws -> Bool {
        let replaced = try replacedVersions ?? store.replacedVersions()
        replacedVersions = replaced
        return try replaced.contains(store.version(of: version.id, version.fields))
    }

    /// Whether a merge has dropped a value of one side though no time says that the other side's is newer. Of a note that two
    /// devices began each for itself, neither is a newer version. `atAnyTime`: also a value that is older, or that was removed.
    private func hasLost(
        _ loser: Record, _ other: Record, _ merged: Record, atAnyTime: Bool
    ) throws -> Bool {
        let (theirs, kept) = (
            Fields.values(try Fields.parse(other.fields)), Fields.values(try Fields.parse(merged.fields))
        )
        if atAnyTime, try hasLostRemoval(loser, kept) { return true }
        let isUntimed =
            try atAnyTime || loser.type == RecordType.note || EventText.isUndated(loser) && EventText.isUndated(other)
        return try Fields.parse(loser.fields).contains { field in
            guard !Self.isNoTie(field.name), let their = theirs[ByteName(field.name)],
                let now = kept[ByteName(field.name)],
                try !Fields.same(field.value, their) && !Fields.same(field.value, now),
                try loser.type != RecordType.event || !EventText.means(field, now)
            else { return false }
            let time = { (record: Record) in record.fieldTimes[field.name] ?? record.modifiedAt }
            return isUntimed || time(loser) == time(other)
        }
    }

    private func hasLostRemoval(_ loser: Record, _ kept: [ByteName: String]) throws -> Bool {
        let mine = Fields.values(try Fields.parse(loser.fields))
        return loser.fieldTimes.keys.contains {
            mine[ByteName($0)] == nil && kept[ByteName($0)] != nil && !Self.isNoTie($0)
        }
    }

    /// What follows from other fields, is joined, is one id in capitals or not, or names a file, of which each version is kept.
    private static func isNoTie(_ field: String) -> Bool {
        RawText.holds(field) || MergePolicy.setFields.contains(field) || ["id", "localId"].contains(field)
            || RecordFiles.mediaKeys.contains(field)
    }

    /// The same for a listing that is deleted under another id than its own. While the hub lacks the edit or the delete, neither
    /// device had heard of what the other one wrote.
    func putAside(_ edit: Record, deletedBy tombstone: Record, _ reason: Overruled.Reason) throws {
        let isUnheard = try isUnsent(edit) || isUnsent(tombstone)
        guard try tombstone.hadNotHeard(of: edit) || isUnheard && !hasReplaced(edit) else { return }
        try putAside(edit, store.ancestor(edit.id), reason, tombstone.modifiedAt, as: tombstone.id.name)
    }

    private func isUnsent(_ record: Record) throws -> Bool { try store.lookUp(record).row?.isClean == false }

    private func putAside(
        _ edit: Record, _ base: Ancestor?, _ reason: Overruled.Reason, _ deletedAt: Timestamp? = nil,
        as deleted: String? = nil
    ) throws {
        guard RecordType.isCounted(edit.type), !Share.isShare(edit) else { return }
        if try store.isPurged(edit) {
            return result.findings.append(
                Finding(
                    .protected, .warning, edit.id.description,
                    "was written on another device before it was purged here: it stays deleted, "
                        + "and nothing of it is kept"))
        }
        if let base {
            if try Fields.same(base.fields, edit.fields) { return }
            let changes = FieldChange.list(from: try Fields.parse(base.fields), to: try Fields.parse(edit.fields))
            // A file that it names has another name; nobody has written it.
            let areNames = changes.allSatisfy {
                $0.name == RecordFiles.links || RecordFiles.mediaKeys.contains($0.name)
            }
            if areNames, edit.modifiedAt == base.modifiedAt, edit.fieldTimes == base.fieldTimes { return }
            // A new cite key may come of a decision about a conflict, and another device has decided otherwise since.
            if edit.type == RecordType.publication, changes.allSatisfy({ Self.isName($0.name) }) { return }
        }
        var files: [ByteName: SHA256Digest] = [:]
        for path in try Store.links(of: edit) {
            files[ByteName(path)] = try store.ifSound { try store.asset(path) }??.digest
        }
        let envelope = try Quarantine.envelope(of: edit, files: files)
        guard try store.record(envelope.id) == nil else { return }
        try store.put(envelope, replacing: nil)
        overruled.append(
            Overruled(
                edit: edit, envelope: envelope.id, base: base, reason: reason, deletedAt: deletedAt,
                deletedAs: deleted ?? edit.localID))
    }

    /// Where a decision or `dedup` has put the record into another one, that one gets the edit. Must run outside of `write`,
    /// when all that the hub has is here.
    func carryOverruled() throws {
        guard overruled.contains(where: { $0.reason.isDelete }) else { return }
        try store.write {
            try overruled.removeAll { overruled in
                guard let deletedAt = overruled.deletedAt,
                    let survivor = try store.taker(
                        of: overruled.deletedAs, type: overruled.edit.type, deletedAt: deletedAt),
                    try carry(overruled, into: survivor)
                else { return false }
                if let envelope = try store.record(overruled.envelope) { try store.removeRow(envelope) }
                return true
            }
        }
    }

    /// Returns whether the survivor says it all.
    private func carry(_ overruled: Overruled, into survivor: Store.StoredRecord) throws -> Bool {
        let (mine, theirs) = (try Fields.parse(overruled.edit.fields), try Fields.parse(survivor.record.fields))
        guard let base = overruled.base else { return try fill(survivor, from: overruled.edit) }
        // The survivor alone says which work it is, also by what it lacks. It follows the edit only where it still says the
        // same as the edited work did before.
        let before = Fields.values(try Fields.parse(base.fields))
        func isAsBefore(_ field: Field) throws -> Bool {
            try before[ByteName(field.name)].map { try Fields.same($0, field.value) } ?? false
        }
        let said = WorkIdentity(theirs).mayBeFilled(from: WorkIdentity(mine)) ? theirs : theirs + mine
        let own = Set(theirs.map(\.name))
        func isOwn(_ field: Field) throws -> Bool { try !own.contains(field.name) || !isAsBefore(field) }
        let told = Set(try said.filter { try WorkIdentity.isOfWork($0.name) && isOwn($0) }.map(\.name))
        let isWhole = try mine.allSatisfy { try !told.contains($0.name) || isAsBefore($0) }
        // Under the survivor's key, which the text must say as well.
        let key = theirs.filter { $0.name == WorkIdentity.keyField }
        let named = mine.filter { $0.name != WorkIdentity.keyField } + key
        var edit = overruled.edit
        edit.fields = Fields.text(try derive(edit.type, named, mine, mine))
        let known = try baseWithoutGivenBack(base, overruled.edit, to: survivor.record)
        edit.localID = survivor.record.localID
        try carry(edit.without(told), into: survivor, base: known)
        return isWhole
    }

    /// A record that had taken in the survivor, and has given that back since, has removed nothing of it.
    private func baseWithoutGivenBack(_ base: Ancestor, _ edit: Record, to survivor: Record) throws -> Ancestor {
        var before = edit
        (before.fields, before.fieldTimes) = (base.fields, base.fieldTimes)
        guard before.succeeded(survivor.localID) != nil, edit.succeeded(survivor.localID) == nil else { return base }
        var result = base
        result.fields = try before.givingBack(to: survivor, as: edit) { [derive] in try derive(edit.type, $0, $1, $2) }
            .fields
        return result
    }

    static func isName(_ field: String) -> Bool {
        field == WorkIdentity.keyField || RawText.holds(field)
    }

    /// Names a work that outlives a later delete because the device that deleted it had not heard what was merged into it, or
    /// that it was kept instead of another one.
    func nameOutlived(_ local: Record, _ hub: Record, mergedTo merged: Record, isLast: Bool) {
        guard !merged.isDeleted, let (living, dead) = Record.livingAndDead(local, hub) else { return }
        if isLast { return nameKept(living, over: dead, isDeletedHere: local.isDeleted) }
        guard dead.modifiedAt >= living.latestTime, living.hasTakenIn(unknownTo: dead) else { return }
        let id = merged.id.description
        result.findings.append(
            Finding(
                .protected, .warning, id,
                local.isDeleted
                    ? "was deleted here, and is back: another device has merged another record into it"
                    : "stays, though another device has deleted it: that one had not heard what was merged into it here",
                remedy: TypedCommand.quoted("store delete", [id]) + " deletes both"))
    }

    /// A work that a file has under another key by now was deleted under the old one: it stays, and that is said.
    func reportHeirs() throws {
        let heirs = deletedTwice.isEmpty ? [] : try store.decidedRecords(type: RecordType.publication)
        for (first, last) in deletedTwice {
            for heir in heirs where heir.id != first.id && !heir.isLocalOnly {
                let times = [first.id.name, first.localID].compactMap { heir.succeeded($0) }
                guard let time = times.max(), first.modifiedAt <= time, time < last.modifiedAt else { continue }
                let id = heir.id.description
                result.findings.append(
                    Finding(
                        .protected, .warning, id,
                        "stays, though a device that had not heard of it has deleted \(first.id), which is this one now",
                        remedy: TypedCommand.quoted("store delete", [id]) + " deletes it"))
            }
        }
    }

    func reportOverruled() {
        for overruled in overruled {
            let id = overruled.edit.id.description
            let named = overruled.reason.isDelete ? id : overruled.envelope.description
            let way = overruled.reason.isDelete ? "brings it back" : "takes the one in quarantine"
            result.findings.append(
                Finding(
                    .protected, .warning, id, overruled.reason.message,
                    remedy: TypedCommand.quoted("store enable-cloud", [named]) + " \(way) on all devices"))
        }
    }
}

extension Synchronizer.Overruled.Reason {
    fileprivate var message: String {
        switch self {
        case .deletedByOthers:
            "was written here before another device deleted it: it stays deleted, "
                + "and what was written here is in quarantine"
        case .deletedHere:
            "was written on another device before it was deleted here: it stays deleted, "
                + "and what was written there is in quarantine"
        case .asOld:
            "says one thing here and another on another device, and no time tells which is right: "
                + "one version is kept, the other is in quarantine"
        case .unknown:
            "says one thing here and another on another device, and what this store knew of the hub's version was damaged: "
                + "one version is kept, the other is in quarantine"
        }
    }
}

extension Store {
    /// The living record that has taken in this one, and deleted it by that. What was deleted at another time may be another
    /// work, to which a second device has given the same id.
    fileprivate func taker(of localID: String, type: String, deletedAt: Timestamp) throws -> StoredRecord? {
        guard let id = try takers(type: type)[localID] else { return nil }
        return try soundRecords(localID: id).first {
            $0.record.type == type && !$0.record.isDeleted
                && $0.record.takenIn[Record.takenInMark + localID] == deletedAt
        }
    }

    /// Local ids of living records, or of deleted ones, by those of the records that they have taken in.
    func takers(type: String, areDeleted: Bool = false) throws -> [String: String] {
        var takers: [String: String] = [:]
        for taker in try decidedRecords(type: type, areDeleted: areDeleted) {
            for id in taker.idsTakenIn { takers[id] = taker.localID }
        }
        return takers
    }

    /// Living records, or deleted ones, that have taken in others, or were kept instead of others.
    func decidedRecords(type: String, areDeleted: Bool = false) throws -> [Record] {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record WHERE type = ?1 AND (deleted_at IS NOT NULL) = ?4
            AND (instr(field_times, ?2) > 0 OR instr(field_times, ?3) > 0)
            """
        ).bind(1, type).bind(2, Record.takenInMark).bind(3, Record.keptMark).bind(4, areDeleted ? 1 : 0)
        var found: [Record] = []
        while try query.step() {
            if let record = try ifSound({ try RowReader.record(query) })?.record { found.append(record) }
        }
        return found
    }

    /// Whether a batch of that kind, which was begun by then, has written the change.
    func isOfBatch(
        _ change: Int64, kind: String, startedBy time: Timestamp = Timestamp(milliseconds: .max)
    ) throws -> Bool {
        let query = try database.statement(
            "SELECT 1 FROM batch WHERE kind = ? AND ? BETWEEN first_change AND last_change AND started_at <= ?"
        ).bind(1, kind).bind(2, change).bind(3, time.milliseconds)
        defer { query.reset() }
        return try query.step()
    }

    /// All living versions that the undo history has.
    fileprivate func replacedVersions() throws -> Set<UInt64> {
        let query = try database.prepare(
            "SELECT zone, ifnull(name, local_id), fields FROM batch_record WHERE deleted_at IS NULL")
        var found: Set<UInt64> = []
        while try query.step() {
            let id = RecordID(zone: query.text(0), name: query.text(1))
            if let version = try ifSound({ try self.version(of: id, query.text(2)) }) { found.insert(version) }
        }
        return found
    }

    /// A hash of a record's name and of what it says.
    fileprivate func version(of id: RecordID, _ fields: String) throws -> UInt64 {
        try Fields.canonical(fields).withUnsafeBytes { hasher.text($0, after: hasher.text(id.description)) }
    }
}
