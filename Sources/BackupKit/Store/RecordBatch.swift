/// New records on their way in, packed: their texts lie one behind the other in one buffer, so that thousands cost a
/// handful of allocations. They are live, of today's schema, and named after their local ids.
struct RecordBatch: Sendable {
    /// A zone and a type: what the records of one sort have in common.
    struct Sort: Sendable {
        let zone: String
        let type: String
        fileprivate let hash: UInt64
        fileprivate let zoneText: Range<Int>
        fileprivate let typeText: Range<Int>
    }

    struct Row: Sendable {
        fileprivate(set) var sort: Int
        fileprivate(set) var localID: Range<Int>
        fileprivate(set) var fields: Range<Int>
        fileprivate(set) var createdAt: Timestamp
        fileprivate(set) var modifiedAt: Timestamp
    }

    fileprivate let hasher: RecordHasher
    private(set) var sorts: [Sort] = []
    private(set) var rows: [Row] = []
    private(set) var bytes: [UInt8] = []

    init(_ hasher: RecordHasher, sorts: [(zone: String, type: String)]) {
        self.hasher = hasher
        for (zone, type) in sorts {
            let start = bytes.count
            bytes += zone.utf8
            let middle = bytes.count
            bytes += type.utf8
            self.sorts.append(
                Sort(
                    zone: zone, type: type, hash: hasher.kind(zone: zone, type: type), zoneText: start..<middle,
                    typeText: middle..<bytes.count))
        }
    }

    /// Makes room for other rows; the buffers stay.
    mutating func removeAll() {
        rows.removeAll(keepingCapacity: true)
        bytes.removeSubrange((sorts.last?.typeText.upperBound ?? 0)...)
    }

    mutating func reserve(bytes count: Int) { bytes.reserveCapacity(count) }

    /// Adds a record whose local id and fields the closures append to the buffer.
    mutating func add(
        sort: Int, createdAt: Timestamp, modifiedAt: Timestamp, localID: (inout [UInt8]) throws -> Void,
        fields: (inout [UInt8]) throws -> Void
    ) rethrows {
        let start = bytes.count
        try localID(&bytes)
        let middle = bytes.count
        try fields(&bytes)
        rows.append(
            Row(
                sort: sort, localID: start..<middle, fields: middle..<bytes.count, createdAt: createdAt,
                modifiedAt: modifiedAt))
    }

    /// The keys of all rows, in their order.
    fileprivate func keys() -> [LineKey] {
        bytes.withUnsafeBytes { all in
            var keys = rows.enumerated().map { index, row in
                let id = UnsafeRawBufferPointer(rebasing: all[row.localID])
                let text = UnsafeRawBufferPointer(rebasing: all[row.fields])
                return LineKey(
                    key: hasher.key(id), content: hasher.content(sorts[row.sort].hash, name: id, fields: text),
                    place: UInt64(index))
            }
            keys.sort { LineKey.precedes($0, $1) }
            return keys
        }
    }

    /// The last row of that local id.
    func row(localID: String) -> Int? {
        var localID = localID
        return localID.withUTF8 { id in
            bytes.withUnsafeBytes { bytes in
                let id = UnsafeRawBufferPointer(id)
                return rows.lastIndex { sameBytes(UnsafeRawBufferPointer(rebasing: bytes[$0.localID]), id) }
            }
        }
    }

    func localID(_ row: Int) -> String { String(decoding: bytes[rows[row].localID], as: UTF8.self) }

    /// A row as a record of its own.
    func record(_ row: Int) -> Record {
        let (found, id) = (rows[row], localID(row))
        let sort = sorts[found.sort]
        return Record(
            id: RecordID(zone: sort.zone, name: id), type: sort.type, localID: id,
            fields: String(decoding: bytes[found.fields], as: UTF8.self), createdAt: found.createdAt,
            modifiedAt: found.modifiedAt)
    }

    /// What came of a row.
    enum Verdict: UInt8, Sendable { case new, known, other }
}

extension Store {
    private static let rowsAtOnce = 128

    /// Inserts what is new of the batch and tells what is: `known` is in the store as it is, `other` has to be taken one by
    /// one. Must run inside `write`.
    func insertNew(of batch: RecordBatch) throws -> [RecordBatch.Verdict] {
        let keys = batch.keys()
        let verdicts = try classify(keys)
        let first = changeCounter + 1
        let new = batch.rows.indices.filter { verdicts[$0] == .new }
        try insertRows(of: batch, new)
        var changes = [Int64](repeating: 0, count: batch.rows.count)
        for (place, row) in new.enumerated() { changes[row] = first + Int64(place) }
        try insertKeys(keys.filter { verdicts[Int($0.place)] == .new }) { changes[Int($0)] }
        return verdicts
    }

    /// Inserts rows that are known to be new, under numbers that follow each other; whoever calls sees to their keys.
    func insertRows(of batch: RecordBatch, _ rows: [Int]) throws {
        var change = changeCounter
        try batch.bytes.withUnsafeBytes { bytes in
            try insertMany(Self.newRow, rows) { statement, at, row in
                change += 1
                Self.bind(batch, row, change, bytes, to: statement, at)
            }
        }
        changeCounter = change
        for row in rows { see(batch.rows[row].modifiedAt) }
    }

    /// Whether there is no record yet, not even a deleted one.
    func isEmpty() throws -> Bool { try database.integer("SELECT EXISTS (SELECT 1 FROM record)") == 0 }

    /// The fields of a row that `insertRows` wrote and that has no key yet.
    func fields(ofChange change: Int64) throws -> String {
        let query = try database.statement("SELECT fields FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        guard try query.step() else { throw BackupError(.failed, "a row that was just written is gone", at: path) }
        return query.text(0)
    }

    /// Takes such a row out again.
    func takeOut(_ change: Int64) throws {
        try database.statement("DELETE FROM record WHERE change = ?").bind(1, change).run()
    }

    /// Adds keys to the table of local ids; they MUST come in their order.
    func insertKeys(_ keys: [LineKey], change: (UInt64) -> Int64) throws {
        if let goneKeys { for key in keys where goneKeys.contains(key.key) { try dropKeyOfGone(key.key) } }
        try insertMany(Self.newKey, Array(keys.indices)) { statement, at, index in
            let key = keys[index]
            statement.bind(at, key.key).bind(at + 1, change(key.place)).bind(at + 2, key.content)
        }
    }

    private static let contentOfKey = Query("SELECT content, \(hasRow) FROM local_key WHERE key = ?")

    private func classify(_ keys: [LineKey]) throws -> [RecordBatch.Verdict] {
        var verdicts = [RecordBatch.Verdict](repeating: .new, count: keys.count)
        let query = try database.statement(Self.contentOfKey)
        var group = 0
        for (index, key) in keys.enumerated() {
            let row = Int(key.place)
            if index == 0 || keys[group].key != key.key {
                group = index
                query.bind(1, key.key)
                while try query.step() {
                    if query.integer(1) == 0, try isGone(key.key) { continue }
                    let same = query.integer(0) == key.content
                    if verdicts[row] != .known { verdicts[row] = same ? .known : .other }
                }
                query.reset()
            } else {
                // Twice in one batch: the first decides, unless they say the same.
                let isSame = keys[group..<index].contains { $0.content == key.content }
                verdicts[row] = isSame && verdicts[Int(keys[group].place)] != .other ? .known : .other
            }
        }
        return verdicts
    }

    private struct ManyRows {
        let one: Query
        let many: Query
        let width: Int32

        init(into table: String, width: Int32) {
            let row = "(" + [String](repeating: "?", count: Int(width)).joined(separator: ",") + ")"
            one = Query("INSERT INTO \(table) VALUES \(row)")
            many = Query(
                "INSERT INTO \(table) VALUES "
                    + [String](repeating: row, count: Store.rowsAtOnce).joined(separator: ","))
            self.width = width
        }
    }

    private static let newRow = ManyRows(
        into: "record (change, zone, type, local_id, fields, created_at, modified_at, schema_version, row_hash)",
        width: 9)
    private static let newKey = ManyRows(into: "local_key", width: 3)

    /// Many rows a statement: starting and ending one costs as much as inserting a row.
    private func insertMany(
        _ statements: ManyRows, _ rows: [Int], _ bind: (Statement, _ first: Int32, Int) -> Void
    ) throws {
        let many = try database.statement(statements.many)
        let single = try database.statement(statements.one)
        defer {
            // What was bound without a copy must not stay.
            many.reset()
            single.reset()
        }
        var start = 0
        while start < rows.count {
            let count = rows.count - start >= Self.rowsAtOnce ? Self.rowsAtOnce : 1
            let statement = count == 1 ? single : many
            for index in 0..<count {
                bind(statement, Int32(index) * statements.width + 1, rows[start + index])
            }
            try statement.run()
            start += count
        }
    }

    private static func bind(
        _ batch: RecordBatch, _ row: Int, _ change: Int64, _ bytes: UnsafeRawBufferPointer, to statement: Statement,
        _ first: Int32
    ) {
        let row = batch.rows[row]
        func text(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }
        statement.bind(first, change)
        statement.bind(first + 1, borrowed: text(batch.sorts[row.sort].zoneText))
        statement.bind(first + 2, borrowed: text(batch.sorts[row.sort].typeText))
        statement.bind(first + 3, borrowed: text(row.localID))
        statement.bind(first + 4, borrowed: text(row.fields))
        statement.bind(first + 5, row.createdAt.milliseconds)
        statement.bind(first + 6, row.modifiedAt.milliseconds)
        statement.bind(first + 7, Int64(SchemaVersion.current))
        statement.bind(
            first + 8,
            batch.hasher.row(
                change: change, zone: text(batch.sorts[row.sort].zoneText), type: text(batch.sorts[row.sort].typeText),
                localID: text(row.localID), fields: text(row.fields), createdAt: row.createdAt,
                modifiedAt: row.modifiedAt))
    }
}
