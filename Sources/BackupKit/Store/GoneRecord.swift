/// What the index by local id still knows of a record whose row is gone.
struct GoneRecord: Hashable {
    let key: Int64
    let change: Int64
    /// As in the index: 0 of a tombstone, among others.
    let content: Int64
}

/// The rows that a pass over all records has met, to compare with the index by local id.
struct RowTally {
    /// Of each number, so that sums of any number of rows stay in range.
    fileprivate static let bits: Int64 = 0x7FFF_FFFF

    fileprivate(set) var count: Int64 = 0
    fileprivate(set) var sum: Int64 = 0

    mutating func add(change: Int64) {
        count += 1
        sum += change & Self.bits
    }
}

extension GoneRecord {
    /// What every check and every backup says of records that are gone.
    static func message(_ count: Int) -> String {
        "\(self.count(count)) gone: a disk error, or another program"
    }

    static func count(_ count: Int) -> String { count == 1 ? "1 record is" : "\(count) records are" }
}

extension Store {
    /// The same for whoever has met all rows on the way: where their number and the sum of theirs agree with the index, no
    /// record is gone, and none is looked up.
    func goneRecords(besides met: RowTally) throws -> [GoneRecord] {
        let index = try database.prepare("SELECT count(*), ifnull(sum(change & \(RowTally.bits)), 0) FROM local_key")
        if try index.step(), index.integer(0) == met.count, index.integer(1) == met.sum { return [] }
        return try goneRecords()
    }

    /// The same for whoever meets no rows: they are counted.
    func countedGoneRecords() throws -> [GoneRecord] {
        let rows = try database.prepare("SELECT count(*), ifnull(sum(change & \(RowTally.bits)), 0) FROM record")
        var tally = RowTally()
        if try rows.step() { (tally.count, tally.sum) = (rows.integer(0), rows.integer(1)) }
        return try goneRecords(besides: tally)
    }

    /// Whether an entry of the index has its row.
    static let hasRow = "EXISTS (SELECT 1 FROM record WHERE record.change = local_key.change)"

    /// How many more entries the index by local id has than there are records.
    func surplusOfKeys() throws -> Int64 {
        try database.integer("SELECT (SELECT count(*) FROM local_key) - (SELECT count(*) FROM record)")
    }

    /// Looks for records that are gone. Must run inside `write`.
    func isAnyGone() throws -> Bool {
        // `mendKeys` has given rows of another program their keys, so the counts suffice, and they cost half.
        let keys = try surplusOfKeys() == 0 ? [] : Set(goneRecords().map(\.key))
        goneKeys = keys
        return !keys.isEmpty
    }

    /// Whether an entry of the index without a row is one of a record that is gone. Must run inside `write`.
    func isGone(_ key: Int64) throws -> Bool {
        if goneKeys == nil { goneKeys = Set(try goneRecords().map(\.key)) }
        return goneKeys?.contains(key) ?? false
    }

    /// Whether a key has a row by now, under another number.
    func isBack(_ key: Int64) throws -> Bool {
        try database.prepare("SELECT 1 FROM local_key WHERE key = ? AND \(Self.hasRow)").bind(1, key).step()
    }

    private static let deleteKeyOfGone = Query("DELETE FROM local_key WHERE key = ? AND NOT \(hasRow)")

    /// The record of this key comes back: nothing is missed any more. Must run inside `write`.
    func dropKeyOfGone(_ key: Int64) throws {
        try database.statement(Self.deleteKeyOfGone).bind(1, key).run()
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
