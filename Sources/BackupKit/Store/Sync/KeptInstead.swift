/// What depends on other records than the two versions that meet, which may come with a later page.
///
/// A work that a decision has kept instead of others, and that a device has deleted which had not heard of the decision, stays
/// where it is the last of them: whoever decided has deleted the others only because it was to stay. And a work that took over
/// something of another one gives it back where a later decision keeps both.
extension Synchronizer {
    /// Whether the versions of a record meet when everything is here. Until then the row stays as it is, so that a sync which
    /// is killed meanwhile asks again. Must run inside `write`.
    func putOff(_ incoming: HubRecord, meeting local: Record) throws -> Bool {
        if isDecidingPutOff { return false }
        let hub = incoming.record
        let taken = [local.takenOver(beforeDecisionOf: hub), hub.takenOver(beforeDecisionOf: local)]
        guard
            try Record.dependOnOthers(local, hub) || taken.contains(where: { !$0.isEmpty })
                || mayBeOnAnotherWork(local, hub)
        else { return false }
        meetingsPutOff.append(incoming)
        return true
    }

    /// Whether two notes may have one id only because their works have: where the hub's work comes, this device's gets an id
    /// of its own, and the note with it.
    private func mayBeOnAnotherWork(_ local: Record, _ hub: Record) throws -> Bool {
        guard local.type == RecordType.note, hub.type == local.type, !local.isDeleted, !hub.isDeleted,
            let fields = try store.ifReadable({ try Fields.parse(local.fields) }),
            let work = Fields.string(Note.publication, in: fields),
            let known = try store.soundPublication(work)
                ?? store.ifSound({ try store.record(RecordID(zone: local.id.zone, name: work)) }) ?? nil
        else { return false }
        return try !store.isKnownToHub(known.change)
    }

    /// A version without what it took over from records that a later decision in `other` keeps beside it.
    func separated(_ version: Record, from other: Record) throws -> Record {
        var result = version
        for (id, time) in version.takenOver(beforeDecisionOf: other).sorted(by: { precedesBytewise($0.key, $1.key) }) {
            let kept = try store.soundRecords(localID: id).map(\.record).first {
                $0.type == version.type && $0.id.zone == version.id.zone && !$0.isDeleted && !$0.isLocalOnly
                    && $0.decidedAt.map { $0 > time } ?? false
            }
            guard let kept else { continue }
            result = try result.givingBack(to: kept, as: other) { [derive] in try derive(version.type, $0, $1, $2) }
        }
        return result
    }

    /// Must run outside of `write`, when all that the hub has is here.
    func settlePutOff() throws {
        guard !meetingsPutOff.isEmpty || !listingsPutOff.isEmpty else { return }
        try store.write { try decidePutOff() }
    }

    /// Must run inside `write`.
    func decidePutOff() throws {
        let (incoming, listings) = (meetingsPutOff, listingsPutOff)
        (meetingsPutOff, listingsPutOff) = ([], [])
        isDecidingPutOff = true
        defer { isDecidingPutOff = false }
        for record in incoming { try apply(record) }
        for (id, deletes, reason) in listings {
            guard let stored = try store.record(id), !stored.record.isDeleted else { continue }
            try bury(stored, by: deletes, reason)
        }
        try notePublications(incoming)
    }

    /// Makes the living version stay where it is the last of the works that a decision was about. Returns whether it does.
    func keepLast(_ local: Record, _ hub: Record, _ merged: inout Record) throws -> Bool {
        guard merged.isDeleted, let (living, dead) = Record.livingAndDead(local, hub) else { return false }
        guard try store.isLast(living, deletedBy: dead) else {
            try store.passOn(living, deletedBy: dead)
            return false
        }
        merged = try living.outliving(dead)
        return true
    }

    /// The same for a work whose delete came under another id of its listing. Returns whether it stays for now.
    func keepLast(
        _ stored: Store.StoredRecord, deletedBy latest: Record, among deletes: [Record], _ reason: Overruled.Reason
    ) throws -> Bool {
        guard !stored.record.keptInstead(unknownTo: latest).isEmpty else { return false }
        guard isDecidingPutOff else {
            listingsPutOff.append((stored.record.id, deletes, reason))
            return true
        }
        guard try store.isLast(stored.record, deletedBy: latest) else { return false }
        try store.put(stored.record.outliving(latest), replacing: stored)
        nameKept(stored.record, over: latest, isDeletedHere: false)
        return true
    }

    func nameKept(_ living: Record, over dead: Record, isDeletedHere: Bool) {
        let others = living.keptInstead(unknownTo: dead).keys.sorted(by: precedesBytewise)
            .map { RecordID(zone: living.id.zone, name: $0).description }.joined(separator: ", ")
        let id = living.id.description
        result.findings.append(
            Finding(
                .protected, .warning, id,
                isDeletedHere
                    ? "was deleted here, and is back: another device has kept it and deleted \(others) instead"
                    : "stays, though another device has deleted it: a decision had kept it and deleted \(others) instead",
                remedy: TypedCommand.quoted("store delete", [id]) + " deletes it on all devices"))
    }
}

extension Record {
    /// Whether one version is a delete that had not heard of a decision which kept the record instead of others: what becomes
    /// of those says which version stays.
    static func dependOnOthers(_ one: Record, _ other: Record) -> Bool {
        guard let (living, dead) = livingAndDead(one, other) else { return false }
        return dead.modifiedAt >= living.latestTime && !living.keptInstead(unknownTo: dead).isEmpty
    }
}

extension Store {
    /// Whether a record of a backup and the store's version of it are two such versions.
    func dependsOnOthers(_ incoming: Record) throws -> Bool {
        guard incoming.isDeleted || !incoming.keptInstead().isEmpty else { return false }
        let known = try ifSound { try match(incoming, among: soundRecords(localID: incoming.localID)).main } ?? nil
        return known.map { Record.dependOnOthers($0.record, incoming) } ?? false
    }

    /// Whether a record was kept instead of one that is gone by that decision, and no other decision has put it, or one that
    /// stays, in its place.
    func isLast(_ living: Record, deletedBy tombstone: Record) throws -> Bool {
        let unheard = living.keptInstead(unknownTo: tombstone)
        guard try unheard.contains(where: { try isGone($0, like: living, since: $1) }) else { return false }
        return try !hasSuccessor(of: living, since: tombstone.modifiedAt)
    }

    /// Whether nobody has the other record, and nobody has deleted it since.
    func isGone(_ localID: String, like record: Record, since time: Timestamp) throws -> Bool {
        let named = try ifSound { try self.record(RecordID(zone: record.id.zone, name: localID)) } ?? nil
        let all = try soundRecords(localID: localID) + [named].compactMap(\.self)
        return all.map(\.record).filter { $0.type == record.type && $0.id.zone == record.id.zone && !$0.isLocalOnly }
            .allSatisfy { $0.isDeleted && $0.modifiedAt <= time }
    }

    /// Tells the records for which a decision has deleted this one what this one had been kept instead of. Must run inside
    /// `write`.
    func passOn(_ record: Record, deletedBy tombstone: Record) throws {
        let unheard = record.keptInstead(unknownTo: tombstone)
        guard !unheard.isEmpty else { return }
        for heir in try successors(of: record, since: tombstone.modifiedAt) {
            guard let stored = try self.record(heir.id) else { continue }
            var heir = stored.record
            for (id, time) in unheard where !sameBytes(id, heir.localID) { heir.noteKept(insteadOf: id, at: time) }
            if heir != stored.record { try rewrite(stored, as: heir) }
        }
    }

    /// Whether the delete of a record comes from a decision for a record that is alive.
    private func hasSuccessor(of record: Record, since time: Timestamp) throws -> Bool {
        try !successors(of: record, since: time).isEmpty
    }

    /// The living records for which a decision has deleted a record.
    private func successors(of record: Record, since time: Timestamp) throws -> [Record] {
        try decidedRecords(type: record.type).filter {
            !$0.isLocalOnly && $0.id != record.id && $0.succeeded(record.localID).map { $0 >= time } ?? false
        }
    }
}
