/// What the index by local id still knows of a record whose row is gone.
struct GoneRecord: Hashable {
    let key: Int64
    let change: Int64
    /// As in the index: 0 of a tombstone, among others.
    let content: Int64
}

extension Store {
    /// Rows that have another number now are not gone.
    func goneRecords() throws -> [GoneRecord] {
        let orphans = try database.prepare(
            "SELECT key, change, content FROM local_key WHERE change NOT IN (SELECT change FROM record) ORDER BY change"
        )
        var found: [GoneRecord] = []
        while try orphans.step() {
            found.append(
                GoneRecord(key: orphans.integer(0), change: orphans.integer(1), content: orphans.integer(2)))
        }
        guard !found.isEmpty else { return [] }
        let moved = try database.prepare(
            "SELECT local_id FROM record WHERE change NOT IN (SELECT change FROM local_key)")
        while try moved.step() {
            let key = hasher.key(moved.bytes(0))
            if let place = found.firstIndex(where: { $0.key == key }) { found.remove(at: place) }
        }
        return found
    }

    /// Keeps in the index what it knows of records that are gone: nothing else does. Must run inside `write`.
    func putKeys(_ gone: [GoneRecord]) throws {
        let insert = try database.prepare("INSERT OR REPLACE INTO local_key VALUES (?, ?, ?)")
        for record in gone {
            try insert.bind(1, record.key).bind(2, record.change).bind(3, record.content).run()
        }
    }
}

extension StoreRepair {
    /// Brings back what the backup has of records that are gone. Returns those that stay so.
    mutating func mendGone() throws -> [GoneRecord] {
        var gone = try store.goneRecords()
        guard !gone.isEmpty else { return [] }
        var found: [(record: Record, gone: GoneRecord)] = []
        try source?.forEachRecord { record in
            let key = store.hasher.key(record.localID)
            guard let place = gone.firstIndex(where: { $0.key == key }), try isFree(record.id, besides: .min) else {
                return
            }
            // Of a record that was deleted an older backup knows nothing.
            if gone[place].content == 0, !record.isDeleted { return }
            found.append((record, gone.remove(at: place)))
        }
        for (record, gone) in found {
            let isExact = gone.content == store.hasher.content(record)
            note(
                isExact ? .exact : .older, "\(record.id)",
                isExact
                    ? "was gone, and is back as it was"
                    : "was gone, and is back in the version of the backup, of \(record.modifiedAt.iso8601)")
            try store.removeKey(gone.key, gone.change)
            try store.put(record, replacing: nil)
        }
        guard accepts, !gone.isEmpty else { return gone }
        let what = gone.count == 1 ? "1 record is" : "\(gone.count) records are"
        note(.accept, store.path, "\(what) gone, and no longer missed")
        for record in gone { try store.removeKey(record.key, record.change) }
        return []
    }
}
