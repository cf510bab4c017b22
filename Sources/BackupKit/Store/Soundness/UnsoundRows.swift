/// The rows of records that are not what the store has written, for a restore: it takes none of them for the record that it
/// was.
final class UnsoundRows {
    struct Row {
        let change: Int64
        let hash: Int64?
        let damage: DamagedRow
        /// The numbers that the index by local id has for it and its record.
        var numbers: Set<Int64>
    }

    /// By their numbers.
    private(set) var rows: [Int64: Row] = [:]
    private var byKey: [Int64: Set<Int64>] = [:]
    private var byID: [RecordID: Int64] = [:]

    /// Looks at all rows. Sound ones that the index by local id has under another key get theirs again. Must run inside
    /// `write`.
    init(_ store: Store) throws {
        let index = try KeyIndex(store)
        let query = try store.database.prepare("SELECT \(Store.recordColumns), row_hash FROM record")
        var lost: [Store.StoredRecord] = []
        while try query.step() {
            try Interrupt.check()
            let (change, hash) = (query.integer(0), query.optionalInteger(13))
            do {
                let stored = try RowReader.unchangedRecord(query, store.hasher, hash: hash)
                if try !index.knows(query) { lost.append(stored) }
            } catch let damage as DamagedRow {
                rows[change] = Row(change: change, hash: hash, damage: damage, numbers: [change])
                byKey[store.hasher.key(query.bytes(4)), default: []].insert(change)
                byID[damage.id] = change
            }
        }
        if !rows.isEmpty { try follow(in: store) }
        try store.putKeysAgain(of: lost)
    }

    /// The index may still know the local id that a row had, and the number.
    private func follow(in store: Store) throws {
        let keys = try store.database.prepare("SELECT key, change FROM local_key")
        while try keys.step() {
            let (key, change) = (keys.integer(0), keys.integer(1))
            if rows[change] != nil { byKey[key, default: []].insert(change) }
            for other in byKey[key] ?? [] { rows[other]?.numbers.insert(change) }
        }
    }

    /// The row that is, or was, a version of a record.
    func row(of record: Record, _ hasher: RecordHasher) -> Row? {
        if rows.isEmpty { return nil }
        let found = (byKey[hasher.key(record.localID)] ?? []).union([byID[record.id]].compactMap(\.self))
        let candidates = found.compactMap { rows[$0] }
        return candidates.first { $0.number(of: record, hasher) != nil } ?? candidates.min { $0.change < $1.change }
    }

    func isUnsound(_ stored: Store.StoredRecord) -> Bool { rows[stored.change] != nil }

    func forget(_ row: Row) { rows[row.change] = nil }
}

extension UnsoundRows.Row {
    /// The number under which the store has written this very record, by the row's hash.
    fileprivate func number(of record: Record, _ hasher: RecordHasher) -> Int64? {
        guard let hash else { return nil }
        return numbers.sorted().first { hasher.row(record, $0) == hash }
    }
}

extension Store {
    /// Writes a record again over the row that was damaged. False where the row's hash does not prove that it was this very
    /// record. Must run inside `batch`.
    func mend(_ row: UnsoundRows.Row, with record: Record) throws -> Bool {
        guard let change = row.number(of: record, hasher) else { return false }
        let others = try database.prepare(
            "SELECT 1 FROM record WHERE change <> ?1 AND (change = ?2 OR zone = ?3 AND ifnull(name, local_id) = ?4)"
        ).bind(1, row.change).bind(2, change).bind(3, record.id.zone).bind(4, record.id.name)
        guard try !others.step() else { return false }
        try dropKeys(of: [row.change, change])
        let update = try database.prepare(
            "UPDATE record SET (\(Self.recordColumns), row_hash) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?")
        Self.bind(record, change: change, to: update)
        try update.bind(14, hasher.row(record, change)).bind(15, row.change).run()
        try addKey(of: record, change)
        // The row has its old number, and the batch would be empty.
        _ = nextChange()
        return true
    }

    fileprivate func putKeysAgain(of records: [StoredRecord]) throws {
        guard !records.isEmpty else { return }
        try dropKeys(of: records.map(\.change))
        for stored in records { try addKey(of: stored.record, stored.change) }
    }

    /// In one walk: the index has no way from a number to its key.
    private func dropKeys(of changes: [Int64]) throws {
        let list = JSON.array(changes.map { JSON($0) }).compact
        try database.prepare("DELETE FROM local_key WHERE change IN (SELECT value FROM json_each(?))")
            .bind(1, list).run()
    }
}
