/// Rows of the table `record` and back.
extension Store {
    static let recordColumns = recordColumnNames.joined(separator: ", ")

    struct StoredRecord {
        let change: Int64
        var record: Record
        /// Whether the row is what the store has written; only those who visit all rows find out.
        var isAsWritten = true
    }

    /// The row as it is understood at best; `RowReader` is strict, and what a store's rows are read with.
    static func storedRecord(_ row: Statement) throws -> StoredRecord {
        let localID = row.text(4)
        let record = Record(
            id: RecordID(zone: row.text(1), name: row.optionalText(2) ?? localID), type: row.text(3), localID: localID,
            fields: row.text(5), fieldTimes: try times(row.optionalText(6)),
            createdAt: Timestamp(milliseconds: row.integer(7)), modifiedAt: Timestamp(milliseconds: row.integer(8)),
            deviceID: row.optionalText(9), schemaVersion: Int(row.integer(10)), isLocalOnly: row.integer(11) != 0,
            deletedAt: row.optionalInteger(12).map { Timestamp(milliseconds: $0) })
        return StoredRecord(change: row.integer(0), record: record)
    }

    static func times(_ text: String?) throws -> [String: Timestamp] {
        guard let text else { return [:] }
        var times: [String: Timestamp] = [:]
        for field in try Fields.parse(text) {
            guard let milliseconds = Int64(field.value) else { continue }
            times[field.name] = Timestamp(milliseconds: milliseconds)
        }
        return times
    }

    static func timesText(_ times: [String: Timestamp]) -> String? {
        guard !times.isEmpty else { return nil }
        let sorted = times.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        return Fields.text(sorted.map { Field($0.key, String($0.value.milliseconds)) })
    }

    /// Binds a record to parameters 1…13, in the order of `recordColumns`.
    static func bind(_ record: Record, change: Int64, to statement: Statement, from first: Int32 = 1) {
        statement.bind(first, change).bind(first + 1, record.id.zone)
            .bind(first + 2, record.id.name == record.localID ? nil : record.id.name)
            .bind(first + 3, record.type).bind(first + 4, record.localID).bind(first + 5, record.fields)
            .bind(first + 6, timesText(record.fieldTimes)).bind(first + 7, record.createdAt.milliseconds)
            .bind(first + 8, record.modifiedAt.milliseconds).bind(first + 9, record.deviceID)
            .bind(first + 10, Int64(record.schemaVersion)).bind(first + 11, record.isLocalOnly ? Int64(1) : 0)
            .bind(first + 12, record.deletedAt?.milliseconds)
    }

    /// Rows by the key of their local id, in the order of changes: a join, because for an IN SQLite fills a table of its
    /// own each time.
    static let byKey = "FROM local_key CROSS JOIN record USING (change) WHERE key = ?1"
    /// The same for one local id; of UUIDs, which are one id in whatever case.
    private static let byLocalID = Query(
        """
        SELECT \(recordColumns) \(byKey)
        AND (local_id = ?2 OR length(local_id) = 36 AND upper(local_id) = upper(?2)) ORDER BY change
        """)
    private static let byName = Query("SELECT \(recordColumns) FROM record WHERE name = ? AND zone = ?")
    private static let byImpliedName = Query(
        "SELECT \(recordColumns) \(byKey) AND local_id = ?2 AND name IS NULL AND zone = ?3")
    static let insert = Query(
        "INSERT INTO record (\(recordColumns), row_hash) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
    private static let insertKey = Query("INSERT INTO local_key VALUES (?, ?, ?)")
    private static let updateKey = Query(
        "UPDATE local_key SET key = ?, change = ?, content = ? WHERE key = ? AND change = ?")
    private static let deleteKey = Query("DELETE FROM local_key WHERE key = ? AND change = ?")
    private static let update = Query(
        "UPDATE record SET (\(recordColumns), row_hash) = (?,?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?")

    /// All records with this local id, of whatever type; the live ones first. Damaged ones are left out.
    func records(localID: String) throws -> [StoredRecord] {
        try records(localID: localID) { query in try ifSound { try RowReader.record(query) } }
    }

    /// The same for whoever writes a record with this local id: a damaged one may be the same, and is thrown.
    func soundRecords(localID: String) throws -> [StoredRecord] {
        try records(localID: localID) { try RowReader.record($0) }
    }

    private func records(
        localID: String, _ read: (Statement) throws -> StoredRecord?
    ) throws -> [StoredRecord] {
        let query = try database.statement(Self.byLocalID).bind(1, hasher.key(localID)).bind(2, localID)
        defer { query.reset() }
        var found: [StoredRecord] = []
        while try query.step() { if let stored = try read(query) { found.append(stored) } }
        return found.count < 2 ? found : found.filter { !$0.record.isDeleted } + found.filter { $0.record.isDeleted }
    }

    private static let keysOf = Query("SELECT content, \(hasRow) FROM local_key WHERE key = ?")

    /// What a first look at a record's local id shows.
    enum FirstLook { case nothing, sameContent, other }

    /// Tells what most of an import comes to, new records and known ones, without touching a record.
    func firstLook(_ record: Record) throws -> FirstLook {
        let key = hasher.key(record.localID)
        let query = try database.statement(Self.keysOf).bind(1, key)
        defer { query.reset() }
        var content: Int64?
        while try query.step() {
            if query.integer(1) == 0, try isGone(key) { continue }
            content = content ?? hasher.content(record)
            if query.integer(0) == content, content != 0 { return .sameContent }
        }
        return content == nil ? .nothing : .other
    }

    /// The record of this identity. Throws a `DamagedRow` when its row is damaged.
    func record(_ id: RecordID) throws -> StoredRecord? {
        if let named = try namedRecord(id) { return named }
        let query = try database.statement(Self.byImpliedName).bind(1, hasher.key(id.name)).bind(2, id.name)
        return try only(query.bind(3, id.zone))
    }

    /// The record of this identity, if its name is not just its local id.
    func namedRecord(_ id: RecordID) throws -> StoredRecord? {
        try only(database.statement(Self.byName).bind(1, id.name).bind(2, id.zone))
    }

    private func only(_ query: Statement) throws -> StoredRecord? {
        defer { query.reset() }
        return try query.step() ? try RowReader.record(query) : nil
    }

    /// `id`, or where another record has that name, one like it that is free.
    func freeName(_ id: RecordID, type: String) throws -> RecordID {
        var free = id
        while try record(free) != nil { free = RecordID(zone: id.zone, name: "\(type):\(free.name)") }
        return free
    }

    /// Writes a record under a new change number; `replacing` is the row that it takes the place of. `isVersion`: that row may
    /// be an earlier version of the record. Else it is another work's.
    func put(_ record: Record, replacing old: StoredRecord?, isVersion: Bool = true) throws {
        let change = nextChange()
        guard let old else {
            let insert = try database.statement(Self.insert)
            Self.bind(record, change: change, to: insert)
            try insert.bind(14, hasher.row(record, change)).run()
            try addKey(of: record, change)
            return try noteInserted(record)
        }
        try remember(old, becomes: change)
        if old.record.isDeleted, !record.isDeleted {
            try forgetPurge(of: old.record.id)
            if record.type == RecordType.conflict { try forgetBase(of: old.change) }
        }
        if record.isDeleted { try noteFiles(ofDeleted: old.record) }
        // A backup may have deleted another work under that id.
        let mayBeVersion = isVersion && !sameBytes(old.record.fields, record.fields)
        if mayBeVersion, try !record.isDeleted || isOneRecord(old.record, record) {
            try noteListing(of: old.record, as: record.id)
        }
        try overwrite(old.change, knownAs: old.record.localID, with: record, change)
    }

    /// Takes a record out of the index by local id.
    func removeKey(_ key: Int64, _ change: Int64) throws {
        try database.statement(Self.deleteKey).bind(1, key).bind(2, change).run()
    }

    /// A record that had no row so far.
    func noteInserted(_ record: Record) throws {
        see(record)
        if record.type == RecordType.conflict { try number(record.id) }
        try noteListings(in: record)
    }

    /// `knownAs` is the local id that the row has. Returns whether there was a row of the old number.
    @discardableResult
    func overwrite(_ old: Int64, knownAs localID: String, with record: Record, _ change: Int64) throws -> Bool {
        see(record)
        try noteListings(in: record)
        let update = try database.statement(Self.update)
        Self.bind(record, change: change, to: update)
        try update.bind(14, hasher.row(record, change)).bind(15, old).run()
        guard database.changes > 0 else { return false }
        try moveKey(of: record, from: old, knownAs: localID, to: change)
        return true
    }

    func addKey(of record: Record, _ change: Int64) throws {
        let key = hasher.key(record.localID)
        if goneKeys?.contains(key) ?? true { try dropKeyOfGone(key) }
        try database.statement(Self.insertKey)
            .bind(1, key).bind(2, change).bind(3, hasher.content(record)).run()
    }

    func moveKey(of record: Record, from old: Int64, knownAs localID: String, to change: Int64) throws {
        let key = hasher.key(record.localID)
        try database.statement(Self.updateKey)
            .bind(1, key).bind(2, change).bind(3, hasher.content(record)).bind(4, hasher.key(localID)).bind(5, old)
            .run()
        if database.changes > 0 { return }
        // The index and the row disagree, which is so rare that a walk through all keys will do.
        try database.statement("DELETE FROM local_key WHERE change = ?").bind(1, old).run()
        guard database.changes > 0 else {
            throw BackupError(
                .damaged, "the index by local id does not know record \(old)", at: path,
                remedy: "export what the store holds and import it into a new one")
        }
        try addKey(of: record, change)
    }

    /// Takes a row out without a tombstone; readers of the changes are told. What a hub knows leaves one all the same, or
    /// the others would keep it and the next full resync would bring it back.
    func removeRow(_ stored: StoredRecord) throws {
        if try !stored.record.isLocalOnly && isKnownToHub(stored.change) {
            guard !stored.record.isDeleted else { return }
            return try put(tombstone(of: stored.record, at: timeAfter(stored.record)), replacing: stored)
        }
        try remember(stored, becomes: nil)
        try database.statement("DELETE FROM record WHERE change = ?").bind(1, stored.change).run()
        try removeKey(hasher.key(stored.record.localID), stored.change)
        try noteRemoved(stored.record.id, type: stored.record.type, localID: stored.record.localID)
    }

    func isKnownToHub(_ change: Int64) throws -> Bool {
        let query = try database.statement("SELECT \(HubSeal.version) FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        return try query.step() && !query.isNull(0)
    }

    /// Whether the hub has this very version.
    func isOnHub(_ change: Int64) throws -> Bool {
        let query = try database.statement(
            "SELECT 1 FROM record WHERE change = ? AND clean_at = change AND \(HubSeal.isSound)"
        ).bind(1, change)
        defer { query.reset() }
        return try query.step()
    }

    func noteRemoved(_ id: RecordID, type: String, localID: String) throws {
        try database.statement("INSERT INTO removed VALUES (?, ?, ?, ?, ?)")
            .bind(1, nextChange()).bind(2, id.zone).bind(3, id.name).bind(4, type).bind(5, localID).run()
        // A record that is gone does not wait for the hub.
        try database.statement(Self.releaseGone).bind(1, id.zone).bind(2, id.name).run()
    }

    private static let releaseGone = Query(
        "DELETE FROM held WHERE zone = ? AND name = ? AND kind IN ('size', 'permission')")

    public enum Order { case identity, change }

    /// Visits every record, tombstones included. Damaged ones are handed to `damaged`.
    public func forEachRecord(
        order: Order = .change, damaged: ((DamagedRow) throws -> Void)? = nil, _ body: (Record) throws -> Void
    ) throws {
        try forEachStored(order: order, damaged: damaged) { try body($0.record) }
    }

    func forEachStored(
        order: Order, damaged: ((DamagedRow) throws -> Void)? = nil, _ body: (StoredRecord) throws -> Void
    ) throws {
        var tally = RowTally()
        try forEachStored(order: order, tally: &tally, damaged: damaged, body)
    }

    /// The same, and counts all rows, the damaged ones among them.
    func forEachStored(
        order: Order, tally: inout RowTally, damaged: ((DamagedRow) throws -> Void)? = nil,
        _ body: (StoredRecord) throws -> Void
    ) throws {
        switch order {
        case .identity:
            let cursor = try recordCursor(damaged: damaged)
            while let stored = try cursor.next() { try body(stored) }
            tally = cursor.tally
        case .change:
            // A statement of its own: the body may use the others.
            let query = try database.prepare("SELECT \(Self.recordColumns), row_hash FROM record ORDER BY change")
            while try query.step() {
                tally.add(change: query.integer(0))
                if let stored = try ifSound(damaged, { try StoredRecord(judging: query, hasher) }) { try body(stored) }
            }
        }
    }

    /// The record with that change number.
    func record(change: Int64) throws -> Record {
        guard let stored = try stored(change: change) else { throw DamagedRow(lost: change) }
        return stored.record
    }

    /// What a record says of which this transaction has found that it can be read.
    func fields(change: Int64) throws -> String {
        let query = try database.statement("SELECT fields FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        guard try query.step() else { throw DamagedRow(lost: change) }
        return query.text(0)
    }

    /// The row of that number; nil where there is none.
    func stored(change: Int64) throws -> StoredRecord? {
        let query = try database.statement("SELECT \(Self.recordColumns) FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        return try query.step() ? try RowReader.record(query) : nil
    }

    /// Visits the fields of the live events that were written after `change`, in the order of their rows; the bytes last
    /// until `body` returns.
    func forEachEvent(
        after change: Int64 = .min, _ body: (_ change: Int64, UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let query = try database.prepare(
            """
            SELECT change, fields FROM record
            WHERE change > ? AND type = 'PuppyEvent' AND deleted_at IS NULL ORDER BY change
            """
        ).bind(1, change)
        while try query.step() { try body(query.integer(0), query.bytes(1)) }
    }

    /// Visits the live records of a type other than events, by way of their index.
    func forEachLive(type: String, _ body: (StoredRecord) throws -> Void) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM \(rowsByType)
            WHERE type = ? AND type <> 'PuppyEvent' AND deleted_at IS NULL ORDER BY change
            """
        ).bind(1, type)
        while try query.step() { if let stored = try ifSound({ try RowReader.record(query) }) { try body(stored) } }
    }

    /// Visits the live publications by their cite keys, as far as these can be read, for a fraction of what `forEachLive`
    /// costs. `record` reads the whole record.
    func forEachCiteKey(
        _ body: (_ key: String, _ id: RecordID, _ record: () throws -> StoredRecord?) throws -> Void
    ) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM \(rowsByType)
            WHERE type = ? AND type <> 'PuppyEvent' AND deleted_at IS NULL
            """
        ).bind(1, RecordType.publication)
        while try query.step() {
            // Others report fields that cannot be read.
            guard let key = try? JSONScanner.firstString(named: Self.citeKeyField, in: query.bytes(5)) else { continue }
            let id = RecordID(zone: query.text(1), name: query.text(query.isNull(2) ? 4 : 2))
            try body(key, id) { try ifSound { try RowReader.record(query) } }
        }
    }
}

/// Walks the records in the order of their identities, one at a time.
///
/// To sort whole rows SQLite writes all of them into a file first. Where there are not many it sorts their numbers, and
/// each row is looked up; of a million that would take half as long again.
final class RecordCursor {
    private static let fewRows: Int64 = 50_000

    private let store: Store
    private let damaged: ((DamagedRow) throws -> Void)?
    private let order: Statement
    private let row: Statement?
    /// The rows so far.
    private(set) var tally = RowTally()

    fileprivate init(_ store: Store, _ damaged: ((DamagedRow) throws -> Void)?) throws {
        (self.store, self.damaged) = (store, damaged)
        let database = store.database
        let count = try database.prepare("SELECT count(*) FROM record")
        let areFew = try count.step() && count.integer(0) <= Self.fewRows
        let columns = areFew ? "change" : Store.recordColumns + ", row_hash"
        order = try database.prepare("SELECT \(columns) FROM record ORDER BY zone, ifnull(name, local_id)")
        row =
            areFew ? try database.prepare("SELECT \(Store.recordColumns), row_hash FROM record WHERE change = ?") : nil
    }

    /// The next one that is sound.
    func next() throws -> Store.StoredRecord? {
        while try order.step() {
            tally.add(change: order.integer(0))
            if let stored = try store.ifSound(damaged, { try current() }) { return stored }
        }
        return nil
    }

    private func current() throws -> Store.StoredRecord {
        guard let row else { return try Store.StoredRecord(judging: order, store.hasher) }
        defer { row.reset() }
        let change = order.integer(0)
        guard try row.bind(1, change).step() else { throw DamagedRow(lost: change) }
        return try Store.StoredRecord(judging: row, store.hasher)
    }
}

extension Store {
    func recordCursor(damaged: ((DamagedRow) throws -> Void)? = nil) throws -> RecordCursor {
        try RecordCursor(self, damaged)
    }
}
