/// The cite keys of publications that are kept on this device only. A key tells whose work it is, and of what year, so the
/// orders of files, which go to everybody, do not list them.
extension Store {
    /// Keeps records on this device alone.
    public func keepOnThisDevice(_ ids: [String], dryRun: Bool = false) throws -> Curated {
        let (kept, batch) = try curate("set-local", ids, dryRun: dryRun) {
            let kept = try setLocal(ids)
            try removeKeptKeysFromOrders()
            return kept
        }
        return Curated(ids: kept, batch: batch?.id)
    }

    /// What goes to a hub names none of them, however the order has got it: a backup may have had it, or an undo.
    func removeKeptKeysFromPendingOrders() throws {
        let query = try database.prepare(
            "SELECT change FROM record WHERE type = ? AND deleted_at IS NULL AND \(Self.isPending)"
        ).bind(1, RecordType.bibliographyPart)
        var pending: Set<Int64> = []
        while try query.step() { pending.insert(query.integer(0)) }
        guard !pending.isEmpty else { return }
        try write { try removeKeptKeysFromOrders { pending.contains($0.change) } }
    }

    private func removeKeptKeysFromOrders(where isMeant: (StoredRecord) -> Bool = { _ in true }) throws {
        let keys = try citeKeysKeptHere()
        guard !keys.isEmpty else { return }
        for (old, fields) in try orders(withoutKeys: keys) where !old.record.isLocalOnly && isMeant(old) {
            try put(old.record.edited(Fields.parse(fields), at: timeAfter(old.record)), replacing: old)
        }
    }

    /// The orders that list any of these cite keys, and what they say without them.
    func orders(withoutKeys keys: Set<String>) throws -> [(old: StoredRecord, fields: String)] {
        var orders: [(old: StoredRecord, fields: String)] = []
        try forEachLive(type: RecordType.bibliographyPart) { stored in
            let fields = try ifReadable { try BibliographyPart.fields(stored.record.fields, withoutKeys: keys) } ?? nil
            if let fields { orders.append((stored, fields)) }
        }
        return orders
    }

    /// Those that no other publication has.
    func citeKeysKeptHere() throws -> Set<String> { try withoutSharedKeys(citeKeysOfKept()) }

    func citeKeysOfKept() throws -> Set<String> {
        let query = try database.prepare(
            "SELECT fields FROM record WHERE local_only = 1 AND type = ? AND deleted_at IS NULL"
        ).bind(1, RecordType.publication)
        var keys: Set<String> = []
        while try query.step() {
            if let key = try? JSONScanner.firstString(named: Self.citeKeyField, in: query.bytes(0)) { keys.insert(key) }
        }
        return keys
    }

    /// Those of the cite keys that no living publication has which goes to all devices.
    func withoutSharedKeys(_ keys: Set<String>) throws -> Set<String> {
        guard !keys.isEmpty else { return [] }
        var keys = keys
        try forEachCiteKey { key, _, record in
            if keys.contains(key), try record()?.record.isLocalOnly == false { keys.remove(key) }
        }
        return keys
    }
}

extension BibliographyIntake {
    /// What an order of the file lists. Of a replace the intake decides, when others have gone.
    func wantedItems(_ state: FileState) throws -> [String] {
        if intake.overwrite { return state.items }
        let purged = intake.purgedKeys.filter { known[$0]?.isEmpty ?? true }
        return BibliographyPart.items(state.items, withoutKeys: purged.union(try keysKeptHere()))
    }

    /// The same while a file comes in.
    func keysKeptHere() throws -> Set<String> {
        if wasEmpty { return [] }
        try flush()
        let keys = try keysHere ?? store.citeKeysKeptHere()
        keysHere = keys
        return keys
    }
}
