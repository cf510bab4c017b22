/// Rows of the table `record` and back.
extension Store {
    static let recordColumns = """
        change, zone, name, type, local_id, fields, field_times, created_at, modified_at, device_id, \
        schema_version, local_only, deleted_at
        """

    struct StoredRecord {
        let change: Int64
        var record: Record
    }

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

    private static let byLocalID = Query(
        "SELECT \(recordColumns) FROM record WHERE local_id = ? ORDER BY change")
    private static let byName = Query("SELECT \(recordColumns) FROM record WHERE name = ? AND zone = ?")
    private static let byImpliedName = Query(
        "SELECT \(recordColumns) FROM record WHERE local_id = ? AND name IS NULL AND zone = ?")
    private static let insert = Query(
        "INSERT INTO record (\(recordColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)")
    private static let update = Query(
        "UPDATE record SET (\(recordColumns)) = (?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?")

    /// All records with this local id, of whatever type; the live ones first.
    func records(localID: String) throws -> [StoredRecord] {
        let query = try database.statement(Self.byLocalID).bind(1, localID)
        defer { query.reset() }
        var found: [StoredRecord] = []
        while try query.step() { found.append(try Self.storedRecord(query)) }
        return found.count < 2 ? found : found.filter { !$0.record.isDeleted } + found.filter { $0.record.isDeleted }
    }

    /// What a first look at a record's local id shows.
    enum FirstLook { case nothing, sameContent, other }

    /// Tells what most of an import comes to, new records and known ones, without building a record.
    func firstLook(_ record: Record) throws -> FirstLook {
        let query = try database.statement(Self.byLocalID).bind(1, record.localID)
        defer { query.reset() }
        guard try query.step() else { return .nothing }
        let same =
            !record.isDeleted && query.isNull(12) && query.equals(5, record.fields) && query.equals(3, record.type)
            && query.equals(1, record.id.zone) && query.equals(query.isNull(2) ? 4 : 2, record.id.name)
        return same ? .sameContent : .other
    }

    /// The record of this identity.
    func record(_ id: RecordID) throws -> StoredRecord? {
        try namedRecord(id) ?? only(Self.byImpliedName, id)
    }

    /// The record of this identity, if its name is not just its local id.
    func namedRecord(_ id: RecordID) throws -> StoredRecord? { try only(Self.byName, id) }

    private func only(_ query: Query, _ id: RecordID) throws -> StoredRecord? {
        let query = try database.statement(query).bind(1, id.name).bind(2, id.zone)
        defer { query.reset() }
        return try query.step() ? try Self.storedRecord(query) : nil
    }

    /// `id`, or where another record has that name, one like it that is free.
    func freeName(_ id: RecordID, type: String) throws -> RecordID {
        var free = id
        while try record(free) != nil { free = RecordID(zone: id.zone, name: "\(type):\(free.name)") }
        return free
    }

    /// Writes a record under a new change number; `replacing` is the row that it takes the place of.
    func put(_ record: Record, replacing old: StoredRecord?) throws {
        let change = nextChange()
        guard let old else {
            let insert = try database.statement(Self.insert)
            Self.bind(record, change: change, to: insert)
            return try insert.run()
        }
        try remember(old, becomes: change)
        try overwrite(old.change, with: record, change)
    }

    /// Whether there was a row of the old number.
    @discardableResult
    func overwrite(_ old: Int64, with record: Record, _ change: Int64) throws -> Bool {
        let update = try database.statement(Self.update)
        Self.bind(record, change: change, to: update)
        try update.bind(14, old).run()
        return database.changes > 0
    }

    /// Takes a row out without a tombstone; readers of the changes are told. What a hub knows leaves one all the same, or
    /// the others would keep it and the next full resync would bring it back.
    func removeRow(_ stored: StoredRecord) throws {
        if try !stored.record.isLocalOnly && isKnownToHub(stored.change) {
            guard !stored.record.isDeleted else { return }
            return try put(stored.record.tombstone(at: timeAfter(stored.record)), replacing: stored)
        }
        try remember(stored, becomes: nil)
        try database.statement("DELETE FROM record WHERE change = ?").bind(1, stored.change).run()
        try noteRemoved(stored.record.id, type: stored.record.type, localID: stored.record.localID)
    }

    private func isKnownToHub(_ change: Int64) throws -> Bool {
        let query = try database.statement("SELECT hub_version FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        return try query.step() && !query.isNull(0)
    }

    func noteRemoved(_ id: RecordID, type: String, localID: String) throws {
        try database.statement("INSERT INTO removed VALUES (?, ?, ?, ?, ?)")
            .bind(1, nextChange()).bind(2, id.zone).bind(3, id.name).bind(4, type).bind(5, localID).run()
    }

    public enum Order { case identity, change }

    /// Visits every record, tombstones included.
    public func forEachRecord(order: Order = .change, _ body: (Record) throws -> Void) throws {
        try forEachStored(order: order) { try body($0.record) }
    }

    func forEachStored(order: Order, _ body: (StoredRecord) throws -> Void) throws {
        let sorting = order == .change ? "change" : "zone, ifnull(name, local_id)"
        // A statement of its own: the body may use the others.
        let query = try database.prepare("SELECT \(Self.recordColumns) FROM record ORDER BY \(sorting)")
        while try query.step() { try body(try Self.storedRecord(query)) }
    }

    /// The record with that change number.
    func record(change: Int64) throws -> Record {
        let query = try database.statement("SELECT \(Self.recordColumns) FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        guard try query.step() else { throw BackupError(.failed, "record \(change) is gone", at: path) }
        return try Self.storedRecord(query).record
    }

    /// Visits the live records of a type other than events, by way of their index.
    func forEachLive(type: String, _ body: (StoredRecord) throws -> Void) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record
            WHERE type = ? AND type <> 'PuppyEvent' AND deleted_at IS NULL ORDER BY change
            """
        ).bind(1, type)
        while try query.step() { try body(try Self.storedRecord(query)) }
    }
}

/// Walks the records in the order of their identities, one at a time.
final class RecordCursor {
    private let query: Statement

    init(_ query: Statement) { self.query = query }

    func next() throws -> Record? { try query.step() ? try Store.storedRecord(query).record : nil }
}

extension Store {
    func recordCursor() throws -> RecordCursor {
        RecordCursor(
            try database.prepare("SELECT \(Self.recordColumns) FROM record ORDER BY zone, ifnull(name, local_id)"))
    }
}
