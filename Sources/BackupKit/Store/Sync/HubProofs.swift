/// What vouches for the rows of a hub in a file. A bit that flips in one leaves it well formed, and every device would take it.
///
/// The table came after version 0.1.0, which neither reads it nor writes it. A row that it has written since has another place,
/// and nothing vouches for it.
extension FileHub {
    static let proofTable = """
        -- What each row was when it was written, by its place: a hash, or NULL where that is not known. A damaged row is
        -- announced once, by a new place.
        CREATE TABLE IF NOT EXISTS proof (change INTEGER PRIMARY KEY, hash INTEGER, is_announced INTEGER NOT NULL) STRICT;
        """

    /// Of a row, and what vouches for it.
    static let columns =
        "\(Store.recordColumns), version, (SELECT hash FROM proof WHERE proof.change = record.change)"

    private static let insertProof = Query("INSERT OR REPLACE INTO proof VALUES (?, ?, ?)")
    private static let deleteProof = Query("DELETE FROM proof WHERE change = ?")

    /// Vouches for a row that was just written.
    func prove(_ record: Record, version: Int64) throws {
        var record = record
        record.isLocalOnly = false
        try database.statement(Self.insertProof).bind(1, version).bind(2, hasher.row(record, version)).bind(3, Int64(0))
            .run()
    }

    func dropProof(at place: Int64) throws { try database.statement(Self.deleteProof).bind(1, place).run() }

    /// Gives a row another place. Its hash stays, for it is made with the version.
    func move(_ place: Int64, of id: RecordID, to new: Int64) throws {
        try database.statement("UPDATE record SET change = ? WHERE change = ?").bind(1, new).bind(2, place).run()
        try database.statement("UPDATE OR REPLACE proof SET change = ? WHERE change = ?").bind(1, new).bind(2, place)
            .run()
        try notePlace(of: id, new)
    }

    /// A row's place is its version when it is written, and grows when the row moves. A store that took a higher version from
    /// a damaged row would ignore all later edits.
    static func version(_ told: Int64, at place: Int64) -> Int64 { 1...max(1, place) ~= told ? told : place }

    /// The version of a row of `columns`; nil where the row is not as it was written. A row that has not moved says its version
    /// twice.
    func soundVersion(_ row: Statement) -> Int64? {
        let told = Self.version(row.integer(13), at: row.integer(0))
        if row.isNull(14) { return told }
        return [told, row.integer(0)].first { hasher.row(of: row, change: $0) == row.integer(14) }
    }

    /// Brings damaged rows behind every token that was given out, once: a device that has the record as it was hears of it
    /// then, and sends it again.
    func announce(_ places: [Int64]) throws {
        guard !places.isEmpty else { return }
        try database.write {
            let start = try last()
            var last = start
            for place in places where try !isAnnounced(place) {
                let id = try identity(at: place)
                guard id != HubDefect.row(place), last < Self.highest else { continue }
                last += 1
                // A version that cannot be right is no version of the new place, either.
                try database.statement(
                    "UPDATE record SET version = change WHERE change = ? AND version NOT BETWEEN 1 AND change"
                )
                .bind(1, place).run()
                // What it was called before goes on to lead here.
                for keys in ["identity", "recent"] {
                    try database.statement("INSERT OR IGNORE INTO recent SELECT key, ? FROM \(keys) WHERE change = ?")
                        .bind(1, last).bind(2, place).run()
                }
                try move(place, of: id, to: last)
                try database.statement("INSERT OR IGNORE INTO proof VALUES (?, NULL, 0)").bind(1, last).run()
                try database.statement("UPDATE proof SET is_announced = 1 WHERE change = ?").bind(1, last).run()
            }
            if last > start { try note(RandomID.make(), from: start, through: last) }
        }
    }

    static let shareUnreadable = "of the zone's share cannot be read"

    /// Whether there is a row that was once called so, and whose name is damaged since.
    func hasDamagedName(_ id: RecordID) throws -> Bool {
        try forEachPlace(of: id) { place in
            let row = try database.prepare("SELECT \(Self.columns) FROM record WHERE change = ?").bind(1, place)
            return try row.step() && soundVersion(row) == nil
        }
    }

    /// The row of a share that cannot be read, which closes its zone to everybody: who it was for cannot be told, so everybody
    /// hears of it.
    func defectOfShare(in zone: String, _ row: Statement) throws -> HubDefect? {
        let (place, version) = (row.integer(0), Self.version(row.integer(13), at: row.integer(0)))
        let id = try identity(at: place)
        guard id == Share.id(of: zone) || soundVersion(row) == nil else { return nil }
        return HubDefect(id: id, reason: Self.shareUnreadable, version: version)
    }

    /// The row that an item of a push replaces. Where nobody knows any more which record it was, its version tells.
    func place(replacedBy item: HubPush.Item) throws -> (change: Int64, version: Int64)? {
        if let found = try place(of: item.record.id) { return found }
        guard let base = item.base else { return nil }
        let query = try database.prepare("SELECT \(Self.columns) FROM record WHERE version = ?").bind(1, base)
        while try query.step() {
            if soundVersion(query) == nil { return (query.integer(0), base) }
        }
        return nil
    }

    /// Rows that stood behind a token and are somewhere else come behind every token again. True when there were some. What
    /// vouches for no row there is left of one that version 0.1.0 has replaced.
    func findStrayed(_ orphans: [Int64]) throws -> Bool {
        guard !orphans.isEmpty else { return false }
        return try database.write {
            let start = try last()
            var last = start
            for orphan in orphans where last < Self.highest {
                let hash = try database.integer("SELECT ifnull(hash, 0) FROM proof WHERE change = \(orphan)")
                try dropProof(at: orphan)
                guard let (place, id) = try strayed(hash) else { continue }
                last += 1
                try database.statement(Self.insertProof).bind(1, place).bind(2, hash).bind(3, Int64(0)).run()
                try move(place, of: id, to: last)
            }
            if last > start { try note(RandomID.make(), from: start, through: last) }
            return last > start
        }
    }

    /// The row without anything that vouches for it to which this hash belongs.
    private func strayed(_ hash: Int64) throws -> (place: Int64, id: RecordID)? {
        let rows = try database.prepare(
            "SELECT \(Self.columns) FROM record WHERE change NOT IN (SELECT change FROM proof)")
        while try rows.step() {
            guard hasher.row(of: rows, change: rows.integer(13)) == hash else { continue }
            return (rows.integer(0), try identity(at: rows.integer(0)))
        }
        return nil
    }

    /// Places where something vouches for a row that is not there.
    func orphans(from first: Int64, through last: Int64) throws -> [Int64] {
        let query = try database.statement(
            """
            SELECT proof.change FROM proof LEFT JOIN record USING (change)
            WHERE proof.change BETWEEN ? AND ? AND record.change IS NULL LIMIT 1000
            """
        ).bind(1, first).bind(2, last)
        defer { query.reset() }
        var found: [Int64] = []
        while try query.step() { found.append(query.integer(0)) }
        return found
    }

    private func isAnnounced(_ place: Int64) throws -> Bool {
        try database.integer("SELECT count(*) FROM proof WHERE change = \(place) AND is_announced = 1") > 0
    }
}
