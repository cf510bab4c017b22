/// The hashes in the table `local_key`, by which records are found and equal ones are recognised without reading them.
///
/// Not SHA-256: an import hashes every line twice. Each step multiplies two words of 64 bits to 128 and folds the
/// halves; the seed is random and the store's own, so nobody can prepare two texts that collide. Two records share a key
/// now and then, which costs a look at both; that an edited record has the same key and the same content as before is a
/// matter of 2⁻⁶⁴.
struct RecordHasher: Sendable {
    private let seed: UInt64
    /// The digits of π: any odd numbers without a pattern would do.
    private static let first: UInt64 = 0x243F_6A88_85A3_08D3
    private static let second: UInt64 = 0x1319_8A2E_0370_7345

    /// Whether UUIDs that differ in case have one key: not in a store that nobody has brought forward yet.
    private let foldsUUIDs: Bool

    init(seed: UInt64, foldsUUIDs: Bool = true) {
        self.seed = seed
        self.foldsUUIDs = foldsUUIDs
    }

    /// Swift writes UUIDs in capitals, JavaScript does not: they are one id.
    func key(_ localID: UnsafeRawBufferPointer) -> Int64 {
        guard foldsUUIDs, localID.count == Self.uuidBytes else { return Int64(bitPattern: hash(localID, seed)) }
        return withUnsafeTemporaryAllocation(byteCount: Self.uuidBytes, alignment: 8) { upper in
            let isUUID = Self.foldUUID(localID, into: upper)
            return Int64(bitPattern: hash(isUUID ? UnsafeRawBufferPointer(upper) : localID, seed))
        }
    }

    private static let uuidBytes = 36

    /// Writes the text of a UUID in capitals. Returns whether it is one. Eight bytes at once, which counts: this runs for
    /// every line of a log.
    private static func foldUUID(_ text: UnsafeRawBufferPointer, into upper: UnsafeMutableRawBufferPointer) -> Bool {
        let dash = UInt8(ascii: "-")
        guard text[8] == dash, text[13] == dash, text[18] == dash, text[23] == dash else { return false }
        return fold(text, 0, into: upper) && fold(text, 8, into: upper, dashes: 0x0000_8000_0000_0080)
            && fold(text, 16, into: upper, dashes: 0x8000_0000_0080_0000) && fold(text, 24, into: upper)
            && fold(text, 28, into: upper)
    }

    /// `dashes`: the highest bits of the bytes that are none of a number.
    @inline(__always)
    private static func fold(
        _ text: UnsafeRawBufferPointer, _ start: Int, into upper: UnsafeMutableRawBufferPointer, dashes: UInt64 = 0
    ) -> Bool {
        let bytes = UInt64(littleEndian: text.loadUnaligned(fromByteOffset: start, as: UInt64.self))
        let highest: UInt64 = 0x8080_8080_8080_8080
        guard bytes & highest == 0 else { return false }
        /// The highest bit of each byte that is in the range.
        func within(_ first: UInt64, _ last: UInt64) -> UInt64 {
            let every: UInt64 = 0x0101_0101_0101_0101
            return (bytes &+ every &* (0x80 - first)) & ~(bytes &+ every &* (0x7F - last)) & highest
        }
        let lowercase = within(0x61, 0x66)
        upper.storeBytes(of: (bytes &- lowercase >> 2).littleEndian, toByteOffset: start, as: UInt64.self)
        return lowercase | within(0x41, 0x46) | within(0x30, 0x39) | dashes == highest
    }

    func key(_ localID: String) -> Int64 {
        var localID = localID
        return localID.withUTF8 { key(UnsafeRawBufferPointer($0)) }
    }

    /// What records of one zone and type have in common.
    func kind(zone: String, type: String) -> UInt64 { hash(type, hash(zone, seed ^ Self.second)) }

    /// A live record's content, `fields` being its JSON text. Never 0, which stands for everything else.
    func content(_ kind: UInt64, name: UnsafeRawBufferPointer, fields: UnsafeRawBufferPointer) -> Int64 {
        let content = hash(fields, hash(name, kind))
        return content == 0 ? 1 : Int64(bitPattern: content)
    }

    /// Of any text.
    func text(_ bytes: UnsafeRawBufferPointer) -> UInt64 { hash(bytes, seed) }

    func text(_ text: String) -> UInt64 { hash(text, seed) }

    /// Of a text and all that came before it.
    func text(_ bytes: UnsafeRawBufferPointer, after state: UInt64) -> UInt64 { hash(bytes, state ^ seed) }

    func text(_ text: String, after state: UInt64) -> UInt64 { hash(text, state ^ seed) }

    func content(_ record: Record) -> Int64 {
        guard !record.isDeleted else { return 0 }
        var (name, fields) = (record.id.name, record.fields)
        return name.withUTF8 { name in
            fields.withUTF8 { fields in
                content(
                    kind(zone: record.id.zone, type: record.type), name: UnsafeRawBufferPointer(name),
                    fields: UnsafeRawBufferPointer(fields))
            }
        }
    }

    private func hash(_ text: String, _ state: UInt64) -> UInt64 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0), state) }
    }

    /// A row's values one after the other.
    struct RowState {
        fileprivate let hasher: RecordHasher
        fileprivate var state: UInt64

        mutating func add(_ bytes: UnsafeRawBufferPointer) { state = hasher.hash(bytes, state ^ RecordHasher.second) }
        mutating func add(_ text: String) { state = hasher.hash(text, state ^ RecordHasher.second) }
        mutating func add(_ text: String?) { if let text { add(text) } else { addNull() } }
        mutating func add(_ number: Int64) {
            state = RecordHasher.fold(
                state ^ UInt64(bitPattern: number) ^ RecordHasher.first, hasher.seed ^ RecordHasher.second)
        }
        mutating func add(_ number: Int64?) { if let number { add(number) } else { addNull() } }
        mutating func addNull() {
            state = RecordHasher.fold(state ^ RecordHasher.second, hasher.seed ^ RecordHasher.first)
        }

        var hash: Int64 { Int64(bitPattern: state) }
    }

    func newRow() -> RowState { RowState(hasher: self, state: seed) }

    private func hash(_ bytes: UnsafeRawBufferPointer, _ state: UInt64) -> UInt64 {
        var state = Self.fold(state ^ Self.first, UInt64(truncatingIfNeeded: bytes.count) ^ Self.second)
        var index = 0
        while bytes.count - index >= 16 {
            let low = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let high = bytes.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self)
            state = Self.fold(low ^ Self.first ^ state, high ^ Self.second)
            index += 16
        }
        let (low, high) = Self.rest(bytes, from: index)
        return Self.fold(low ^ Self.second ^ state, high ^ Self.first ^ seed)
    }

    /// The last bytes as two numbers, least first, with zeros behind; up to 15 are left.
    @inline(__always) private static func rest(_ bytes: UnsafeRawBufferPointer, from index: Int) -> (UInt64, UInt64) {
        let left = bytes.count - index
        if bytes.count >= 8, left > 0 {
            let last = bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self).littleEndian
            guard left > 8 else { return (last >> UInt64(64 - left * 8), 0) }
            let first = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
            return (first, last >> UInt64(128 - left * 8))
        }
        var low: UInt64 = 0
        for place in 0..<left { low |= UInt64(bytes[index + place]) << UInt64(place * 8) }
        return (low, 0)
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

extension RecordHasher {
    private static let seedName = "hash_seed"
    private static let foldName = "keys_fold_uuids"

    /// To a reader, every row of a store that has lost its seed is one that nothing proves, and is shown as it is. Where the
    /// table `meta` and what was noted of it differ, that seed is right which the hash of some row was made with.
    init(_ database: SQLite, forReading: Bool = false) throws {
        let isFolding = try !Self.told(Self.foldName, in: database).isEmpty
        let seeds = try Self.told(Self.seedName, in: database).compactMap { UInt64($0, radix: 16) }
        let hashers = seeds.map { RecordHasher(seed: $0, foldsUUIDs: isFolding) }
        let proved = try hashers.count > 1 ? Self.firstThatFits(hashers, database) : nil
        if let hasher = proved ?? hashers.first {
            self = hasher
        } else if forReading {
            self.init(seed: 0, foldsUUIDs: isFolding)
        } else {
            throw BackupError(.damaged, Self.lacksSeed, at: database.path, remedy: StoreRemedy.exportIntoNewStore)
        }
    }

    /// The values that `meta` and what was noted of it have for a key: one, where they agree.
    private static func told(_ key: String, in database: SQLite) throws -> [String] {
        let isNoted = try database.integer("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'witness')") != 0
        var values = try texts("SELECT value FROM meta WHERE key = ?", key, in: database)
        guard isNoted else { return values }
        do {
            let noted = try texts("SELECT row FROM witness WHERE place = 'meta' AND key = ?", key, in: database)
            values += noted.filter { !values.contains($0) }
        } catch let error as BackupError where error.code == .damaged && !values.isEmpty {
            // What says it twice is on a bad page; `store check` names that.
        }
        return values
    }

    private static func texts(_ sql: String, _ key: String, in database: SQLite) throws -> [String] {
        let query = try database.prepare(sql).bind(1, key)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }

    private static func firstThatFits(_ hashers: [RecordHasher], _ database: SQLite) throws -> RecordHasher? {
        let rows = try database.prepare(
            "SELECT \(Store.recordColumns), row_hash FROM record WHERE row_hash IS NOT NULL")
        while try rows.step() {
            if let hasher = hashers.first(where: { $0.row(of: rows) == rows.integer(13) }) { return hasher }
        }
        return nil
    }

    /// What `meta` has to say for these hashes.
    var metaRows: [(key: String, value: String)] {
        [(Self.seedName, String(seed, radix: 16))] + (foldsUUIDs ? [(Self.foldName, "1")] : [])
    }

    static let lacksSeed = "the table 'meta' has lost the seed of the store's hashes, so nothing proves its rows"

    var isWithoutSeed: Bool { seed == 0 }

    /// From here on UUIDs that differ in case have one key.
    static func foldUUIDs(_ database: SQLite) throws {
        let old = try RecordHasher(database)
        let new = RecordHasher(seed: old.seed)
        let update = try database.prepare("UPDATE local_key SET key = ? WHERE key = ? AND change = ?")
        let rows = try database.prepare(
            "SELECT change, local_id FROM record WHERE length(local_id) = 36 AND local_id GLOB '*[a-f]*'")
        while try rows.step() {
            let keys = (old: old.key(rows.bytes(1)), new: new.key(rows.bytes(1)))
            if keys.old != keys.new { try update.bind(1, keys.new).bind(2, keys.old).bind(3, rows.integer(0)).run() }
        }
        try database.statement("INSERT OR REPLACE INTO meta VALUES (?, '1')").bind(1, foldName).run()
    }

    /// Gives a store a seed, and its records their keys.
    static func fillKeys(_ database: SQLite) throws {
        var generator = SystemRandomNumberGenerator()
        let hasher = RecordHasher(seed: generator.next())
        try database.statement("INSERT INTO meta VALUES (?, ?)")
            .bind(1, seedName).bind(2, String(hasher.seed, radix: 16)).run()
        try hasher.fillKeys(database)
    }

    func fillKeys(_ database: SQLite) throws {
        // A damaged table may have a row twice.
        let insert = try database.prepare("INSERT OR IGNORE INTO local_key VALUES (?, ?, ?)")
        let records = try database.prepare("SELECT \(Store.recordColumns) FROM record")
        while try records.step() {
            try insert.bind(1, key(records.bytes(4))).bind(2, records.integer(0)).bind(3, content(of: records)).run()
        }
    }

    /// Somebody who wrote records with another program gave them no keys. The newest record tells; edits in place it
    /// does not.
    func mendKeys(_ database: SQLite) throws {
        let newest = try database.prepare(
            "SELECT \(Store.recordColumns), row_hash FROM record ORDER BY change DESC LIMIT 1")
        // With a hash it was written by us, and what is wrong with it is for a repair to find out.
        guard try newest.step(), newest.isNull(13) else { return }
        let known = try database.prepare("SELECT 1 FROM local_key WHERE key = ? AND change = ?")
            .bind(1, key(newest.bytes(4))).bind(2, newest.integer(0))
        newest.reset()
        if try known.step() { return }
        known.reset()
        try database.write {
            // What has no row is all that tells of records that are gone, unless they have another number now.
            try database.execute("DELETE FROM local_key WHERE \(Store.hasRow)")
            try fillKeys(database)
            try database.execute(
                """
                DELETE FROM local_key WHERE NOT \(Store.hasRow) AND EXISTS
                (SELECT 1 FROM local_key AS other JOIN record USING (change) WHERE other.key = local_key.key)
                """)
        }
    }
}

/// The hash of a whole row, `row_hash`.
extension RecordHasher {
    func row(_ record: Record, _ change: Int64) -> Int64 {
        var row = newRow()
        row.add(change)
        row.add(record.id.zone)
        row.add(record.id.name == record.localID ? nil : record.id.name)
        row.add(record.type)
        row.add(record.localID)
        row.add(record.fields)
        row.add(Store.timesText(record.fieldTimes))
        row.add(record.createdAt.milliseconds)
        row.add(record.modifiedAt.milliseconds)
        row.add(record.deviceID)
        row.add(Int64(record.schemaVersion))
        row.add(record.isLocalOnly ? Int64(1) : 0)
        row.add(record.deletedAt?.milliseconds)
        return row.hash
    }

    /// The same of a new record, named after its local id.
    func row(
        change: Int64, zone: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer, localID: UnsafeRawBufferPointer,
        fields: UnsafeRawBufferPointer, createdAt: Timestamp, modifiedAt: Timestamp
    ) -> Int64 {
        var row = newRow()
        row.add(change)
        row.add(zone)
        row.addNull()
        row.add(type)
        row.add(localID)
        row.add(fields)
        row.addNull()
        row.add(createdAt.milliseconds)
        row.add(modifiedAt.milliseconds)
        row.addNull()
        row.add(Int64(SchemaVersion.current))
        row.add(Int64(0))
        row.addNull()
        return row.hash
    }

    /// The same of a row of `Store.recordColumns`, whatever its columns hold. `change` takes the place of the first one.
    func row(of values: Statement, change: Int64? = nil) -> Int64 {
        var row = newRow()
        if let change { row.add(change) }
        for column in (change == nil ? 0 : 1)..<Int32(Store.recordColumnNames.count) {
            switch values.type(column) {
            case .integer: row.add(values.integer(column))
            case .null: row.addNull()
            case .text: row.add(values.bytes(column))
            case .blob, .real:
                row.addNull()
                row.add(values.bytes(column))
            }
        }
        return row.hash
    }

    /// What `local_key` says of such a row.
    func content(of row: Statement) -> Int64 {
        guard row.isNull(12) else { return 0 }
        let kind = hash(row.bytes(3), hash(row.bytes(1), seed ^ Self.second))
        return content(kind, name: row.bytes(row.isNull(2) ? 4 : 2), fields: row.bytes(5))
    }
}

/// The index by local id, asked about one row after another: it has no way from a change number to its key.
struct KeyIndex {
    private let hasher: RecordHasher
    private let known: Statement

    init(_ store: Store) throws {
        hasher = store.hasher
        known = try store.database.prepare("SELECT content FROM local_key WHERE key = ? AND change = ?")
    }

    /// Whether it says of a row of `recordColumns` what it should.
    func knows(_ row: Statement) throws -> Bool {
        known.reset()
        known.bind(1, hasher.key(row.bytes(4))).bind(2, row.integer(0))
        return try known.step() && known.integer(0) == hasher.content(of: row)
    }
}
