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

    private static let insertProof = Query("INSERT INTO proof VALUES (?, ?, ?)")
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
        try database.statement("UPDATE proof SET change = ? WHERE change = ?").bind(1, new).bind(2, place).run()
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
                try move(place, of: id, to: last)
                try database.statement("INSERT OR IGNORE INTO proof VALUES (?, NULL, 0)").bind(1, last).run()
                try database.statement("UPDATE proof SET is_announced = 1 WHERE change = ?").bind(1, last).run()
            }
            if last > start { try note(RandomID.make(), from: start, through: last) }
        }
    }

    /// The row of a share that cannot be read, which closes its zone to everybody: who it was for cannot be told, so everybody
    /// hears of it.
    func defectOfShare(in zone: String, at place: Int64) throws -> HubDefect? {
        let id = Share.id(of: zone)
        guard try identity(at: place) == id else { return nil }
        return HubDefect(
            id: id, reason: "of the zone's share cannot be read", version: try self.place(of: id)?.version)
    }

    private func isAnnounced(_ place: Int64) throws -> Bool {
        try database.integer("SELECT count(*) FROM proof WHERE change = \(place) AND is_announced = 1") > 0
    }
}
