/// Edits of a record that another device has folded into one of the same local id: they belong to that one, whose version may
/// come with a later page than the tombstone of the folded name.
extension Synchronizer {
    /// Keeps an edited record until everything is here. False where `incoming` is no tombstone of a folded name. Must run
    /// inside `write`.
    func keepEdit(of local: Record, _ row: Store.SyncRow, _ incoming: HubRecord) throws -> Bool {
        // A publication's tombstone always has a local id of its own.
        guard incoming.record.isFoldedName(of: local), local.type != RecordType.publication else { return false }
        foldedEdits.append(incoming)
        try store.noteVersion(row.change, incoming.version, isClean: false)
        return true
    }

    /// Must run outside of `write`, when all that the hub has is here.
    func carryEdits() throws {
        let folded = foldedEdits
        foldedEdits = []
        guard !folded.isEmpty else { return }
        try store.write { for tombstone in folded { try carryEdit(from: tombstone) } }
    }

    private func carryEdit(from tombstone: HubRecord) throws {
        guard let stored = try store.record(tombstone.record.id), !stored.record.isDeleted else { return }
        let edited = stored.record
        // Where nobody has the other record, this one stays.
        guard let survivor = try survivor(of: edited) else { return }
        let base = try store.ancestor(edited.id)
        try store.replace(
            stored.change, knownAs: edited.localID, with: tombstone.record, version: tombstone.version, isClean: true)
        try store.dropAncestor(edited.id)
        try carry(edited, into: survivor, base: base)
        result.merged += 1
    }

    /// The record of the same local id that a folded one belongs to.
    private func survivor(of folded: Record) throws -> Store.StoredRecord? {
        try store.soundRecords(localID: folded.localID).first {
            $0.record.type == folded.type && $0.record.id != folded.id && !$0.record.isDeleted
                && !$0.record.isLocalOnly
        }
    }

    /// The other way round: an edit arrives under a name that was folded here. False where `local` is no tombstone of that
    /// name, or it had heard of the edit. Must run inside `write`.
    func carryArrival(of incoming: Record, over local: Record, base: Ancestor?) throws -> Bool {
        guard local.isFoldedName(of: incoming), incoming.type != RecordType.publication,
            local.hadNotHeard(of: incoming), let survivor = try survivor(of: incoming)
        else { return false }
        try carry(incoming, into: survivor, base: base)
        return true
    }

    /// Merges a version of a record into the one that it belongs to now. Must run inside `write`.
    func carry(_ edited: Record, into survivor: Store.StoredRecord, base: Ancestor?) throws {
        var mine = edited
        mine.id = survivor.record.id
        let merged = try merged(mine, survivor.record, base: base)
        if !merged.isSame(as: survivor.record) { try store.put(merged, replacing: survivor) }
    }

    func merged(_ local: Record, _ hub: Record, base: Ancestor?) throws -> Record {
        try SyncMerge { [derive] in try derive(hub.type, $0, $1, $2) }.merge(local, hub, base: base)
    }
}
