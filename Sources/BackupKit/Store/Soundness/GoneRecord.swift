/// What the index by local id still knows of a record whose row is gone.
struct GoneRecord: Hashable {
    let key: Int64
    let change: Int64
    /// As in the index: 0 of a tombstone, among others.
    let content: Int64
}

/// The rows that a pass over all records has met, to compare with the index by local id.
struct RowTally: Equatable {
    /// Of each number, so that sums of any number of rows stay in range.
    fileprivate static let bits: Int64 = 0x7FFF_FFFF

    private(set) var count: Int64 = 0
    private(set) var sum: Int64 = 0

    mutating func add(change: Int64) {
        count += 1
        sum += change & Self.bits
    }
}

extension GoneRecord {
    /// What every check and every backup says of records that are gone.
    static func message(_ count: Int) -> String {
        "\(count) \(count == 1 ? "record is" : "records are") gone: a disk error, or another program"
    }
}

extension Store {
    /// The same for whoever has met all rows on the way: where their number and the sum of theirs agree with the index, no
    /// record is gone, and none is looked up.
    func goneRecords(besides met: RowTally) throws -> [GoneRecord] {
        let index = try database.prepare("SELECT count(*), ifnull(sum(change & \(RowTally.bits)), 0) FROM local_key")
        if try index.step(), index.integer(0) == met.count, index.integer(1) == met.sum { return [] }
        return try goneRecords()
    }

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
