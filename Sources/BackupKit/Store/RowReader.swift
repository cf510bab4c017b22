/// Reads rows of the store, which may hold anything: a disk forgets, other programs write. What `records.jsonl` could not
/// say again to the byte is damage, and is thrown as a `DamagedRow`.
enum RowReader {
    /// Numbers of changes lie below this, so that counting on cannot overflow.
    static let changeLimit: Int64 = 1 << 60

    private struct Problem: Error { let reason: String }

    /// A row of `Store.recordColumns`; `anyChange` takes any change number. `isProven`: its hash
    /// matches, and a row gets a hash only when its fields can be read.
    static func record(
        _ row: Statement, anyChange: Bool = false, isProven: Bool = false
    ) throws -> Store.StoredRecord {
        do {
            let localID = try text(row, 4, "local_id")
            let name = row.type(2) == .null ? localID : try text(row, 2, "name")
            let fields = try text(row, 5, "fields")
            if !isProven { try checkFields(fields) }
            let record = Record(
                id: RecordID(zone: try text(row, 1, "zone"), name: name), type: try text(row, 3, "type"),
                localID: localID, fields: fields, fieldTimes: try fieldTimes(row, 6),
                createdAt: try time(row, 7, "created_at"), modifiedAt: try time(row, 8, "modified_at"),
                deviceID: row.type(9) == .null ? nil : try text(row, 9, "device_id", mayBeEmpty: true),
                schemaVersion: Int(try integer(row, 10, "schema_version", in: 1...Int64(Int32.max))),
                isLocalOnly: try integer(row, 11, "local_only", in: 0...1) != 0,
                deletedAt: row.type(12) == .null ? nil : try time(row, 12, "deleted_at"))
            if record.hasRemains { throw Problem(reason: DamagedRow.tombstoneWithData) }
            return Store.StoredRecord(
                change: try integer(row, 0, "change", in: anyChange ? .min ... .max : 1...changeLimit), record: record)
        } catch let problem as Problem {
            let name = row.type(2) == .null ? row.text(4) : row.text(2)
            throw DamagedRow(
                .record, "\(row.text(1))/\(name)", problem.reason, kind: Kind(recordType: row.text(3)),
                columns: Store.recordColumnNames, of: row)
        }
    }

    /// A row of `Store.assetColumnNames`.
    static func asset(_ row: Statement) throws -> Asset {
        do {
            let path = try text(row, 0, "path")
            do { try Store.checkPlace(path) } catch let error as BackupError {
                throw Problem(reason: "'path' \(error.message)")
            }
            let size = try integer(row, 1, "size", in: 0...(1 << 60))
            let hex = Array(try text(row, 2, "sha256").utf8)
            guard let digest = hex.withUnsafeBytes({ SHA256Digest(hexBytes: $0[...]) }) else {
                throw Problem(reason: "'sha256' is not a SHA-256 value")
            }
            return Asset(
                path: path, size: size, digest: digest,
                isLocalOnly: try integer(row, 3, "local_only", in: 0...1) != 0,
                modifiedNanoseconds: try integer(row, 4, "modified_ns", in: .min ... .max))
        } catch let problem as Problem {
            throw DamagedRow(
                .asset, row.text(0), problem.reason, kind: .attachments, columns: Store.assetColumnNames, of: row)
        }
    }

    /// A row of `Store.settingColumnNames`: the key and the JSON text of its value.
    static func setting(_ row: Statement) throws -> Field {
        do {
            let field = Field(try text(row, 0, "key", mayBeEmpty: true), try text(row, 1, "value"))
            _ = try time(row, 2, "modified_at")
            do { _ = try Fields.canonical(field.value) } catch let error as BackupError {
                throw Problem(reason: "'value' \(error.message)")
            }
            return field
        } catch let problem as Problem {
            throw DamagedRow(
                .setting, row.text(0), problem.reason, kind: .settings, columns: Store.settingColumnNames, of: row)
        }
    }

    // MARK: Rows whose key an earlier row has

    static func repeatedAsset(_ row: Statement) -> DamagedRow {
        repeated(.asset, .attachments, Store.assetColumnNames, row)
    }

    static func repeatedSetting(_ row: Statement) -> DamagedRow {
        repeated(.setting, .settings, Store.settingColumnNames, row)
    }

    private static func repeated(
        _ table: DamagedRow.Table, _ kind: Kind, _ columns: [String], _ row: Statement
    ) -> DamagedRow {
        DamagedRow(table, row.text(0), "is there twice", kind: kind, columns: columns, of: row)
    }

    // MARK: Values

    private static func text(
        _ row: Statement, _ column: Int32, _ name: String, mayBeEmpty: Bool = false
    ) throws -> String {
        guard row.type(column) == .text else { throw Problem(reason: "'\(name)' is not a text") }
        guard let text = row.validText(column) else { throw Problem(reason: "'\(name)' is not UTF-8") }
        guard mayBeEmpty || !text.isEmpty else { throw Problem(reason: "'\(name)' is empty") }
        return text
    }

    private static func integer(
        _ row: Statement, _ column: Int32, _ name: String, in range: ClosedRange<Int64>
    ) throws -> Int64 {
        guard row.type(column) == .integer else { throw Problem(reason: "'\(name)' is not a whole number") }
        let value = row.integer(column)
        guard range.contains(value) else { throw Problem(reason: "'\(name)' is out of range: \(value)") }
        return value
    }

    private static func time(_ row: Statement, _ column: Int32, _ name: String) throws -> Timestamp {
        Timestamp(milliseconds: try integer(row, column, name, in: Timestamp.range))
    }

    private static func fieldTimes(_ row: Statement, _ column: Int32) throws -> [String: Timestamp] {
        guard row.type(column) != .null else { return [:] }
        let text = try text(row, column, "field_times")
        var times: [String: Timestamp] = [:]
        do {
            for field in try Fields.parse(text) {
                guard let milliseconds = Int64(field.value), Timestamp.range.contains(milliseconds) else {
                    throw Problem(reason: "'field_times' has no time for '\(field.name)'")
                }
                times[field.name] = Timestamp(milliseconds: milliseconds)
            }
        } catch let error as BackupError { throw Problem(reason: "'field_times' \(error.message)") }
        return times
    }

    /// One JSON object on one line, every name in it once.
    private static func checkFields(_ fields: String) throws {
        do { try Fields.check(fields) } catch let error as BackupError {
            throw Problem(reason: "'fields' \(error.message)")
        }
        var fields = fields
        let isOneLine = fields.withUTF8 { bytes in !bytes.contains { $0 == 0x0A || $0 == 0x0D } }
        if !isOneLine { throw Problem(reason: "'fields' has more than one line") }
    }
}

extension RowReader {
    /// A row of `Store.recordColumns` as it was written, by what the store noted of it then.
    static func unchangedRecord(_ row: Statement, _ hasher: RecordHasher, hash: Int64?) throws -> Store.StoredRecord {
        let stored = try record(row)
        guard let hash, hash != hasher.row(of: row) else { return stored }
        throw DamagedRow(
            .record, "\(stored.record.id)", DamagedRow.changed,
            kind: Kind(recordType: stored.record.type),
            columns: Store.recordColumnNames, of: row)
    }
}

extension RecordHasher {
    /// Gives every row that can be read its hash as it is now.
    func sealRows(_ database: SQLite) throws {
        let rows = try database.prepare(
            "SELECT \(Store.recordColumns) FROM record WHERE change > ? AND row_hash IS NULL ORDER BY change LIMIT 10000"
        )
        let update = try database.prepare("UPDATE record SET row_hash = ? WHERE change = ?")
        var (last, isEnd, hashes) = (Int64.min, false, [(change: Int64, hash: Int64)]())
        while !isEnd {
            hashes.removeAll(keepingCapacity: true)
            rows.reset()
            rows.bind(1, last)
            isEnd = true
            while try rows.step() {
                (last, isEnd) = (rows.integer(0), false)
                do { _ = try RowReader.record(rows, anyChange: true) } catch is DamagedRow { continue }
                hashes.append((last, row(of: rows)))
            }
            for (change, hash) in hashes { try update.bind(1, hash).bind(2, change).run() }
        }
    }
}

extension Store.StoredRecord {
    /// A row of `Store.recordColumns` and its hash.
    init(judging row: Statement, _ hasher: RecordHasher) throws {
        try self.init(judging: row, as: row.isNull(13) ? 0 : hasher.row(of: row))
    }

    /// The same where the hash of the row as it is now is known.
    init(judging row: Statement, as hash: Int64) throws {
        let isProven = row.optionalInteger(13).map { $0 == hash }
        self = try RowReader.record(row, isProven: isProven == true)
        isAsWritten = isProven ?? true
    }
}

extension Store {
    /// A row that waits for the hub; what is not as this tool wrote it does not go to others.
    func rowToPush(_ row: Statement) throws -> StoredRecord {
        try RowReader.unchangedRecord(row, hasher, hash: row.optionalInteger(14))
    }

    /// Whether a record or an attachment is as the store wrote it, or there is none.
    func isAsWritten(_ id: RecordID) throws -> Bool {
        if id.zone == Self.assetZone {
            return try !changedSmallRows(of: "asset").contains { sameBytes($0.key, id.name) }
        }
        do {
            // Not by the indexes, which may be as damaged.
            let query = try database.prepare(
                "SELECT \(Self.recordColumns), row_hash FROM record WHERE zone = ? AND ifnull(name, local_id) = ?"
            ).bind(1, id.zone).bind(2, id.name)
            if try query.step() { _ = try RowReader.unchangedRecord(query, hasher, hash: query.optionalInteger(13)) }
        } catch is DamagedRow { return false }
        return true
    }

    static let recordColumnNames = [
        "change", "zone", "name", "type", "local_id", "fields", "field_times", "created_at", "modified_at", "device_id",
        "schema_version", "local_only", "deleted_at",
    ]
    static let assetColumnNames = ["path", "size", "sha256", "local_only", "modified_ns"]
    static let settingColumnNames = ["key", "value", "modified_at"]

    /// The row, or nil where it is damaged: then it is noted, and the caller goes on without it.
    func ifSound<Row>(_ read: () throws -> Row) throws -> Row? { try ifSound(nil, read) }

    /// The same, and hands the damaged row on.
    func ifSound<Row>(_ damaged: ((DamagedRow) throws -> Void)?, _ read: () throws -> Row) throws -> Row? {
        do { return try read() } catch let row as DamagedRow {
            damage.note(row)
            try damaged?(row)
            return nil
        }
    }
}
