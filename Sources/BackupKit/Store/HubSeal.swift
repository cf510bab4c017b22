/// What vouches for `hub_version` and `clean_at` of a record: a number that each bit of both changes, also where they hold any
/// number. One that a disk or another program has changed would hide newer versions of the hub, or let an edit pass for one
/// that the hub has.
enum HubSeal {
    private static let prime: Int64 = 2_147_483_629
    private static let factor: Int64 = 48_271
    /// Stands for NULL: no version and no change number.
    private static let none: Int64 = -2

    /// `clean_at` of a record whose state on the hub was damaged. Its `hub_version` is 0.
    static let unknown: Int64 = -1

    /// NULL where both are: most records of a store without a hub need no seal.
    static func number(_ version: Int64?, _ cleanAt: Int64?) -> Int64? {
        if version == nil, cleanAt == nil { return nil }
        return ((version ?? none) % prime * factor + (cleanAt ?? none) % prime) % prime
    }

    /// The same in SQL.
    static func number(version: String, cleanAt: String) -> String {
        """
        iif(\(version) IS NULL AND \(cleanAt) IS NULL, NULL, (ifnull(\(version), \(none)) % \(prime) * \(factor)
        + ifnull(\(cleanAt), \(none)) % \(prime)) % \(prime))
        """
    }

    static let now = number(version: "hub_version", cleanAt: "clean_at")

    static let isSound = "(hub_seal IS \(now))"

    /// `hub_version`; of a record whose state is damaged it is 0, for some version.
    static let version = "iif(\(isSound), hub_version, 0)"

    private static let hasChanged = "hub_version > 0 AND clean_at IS NOT change"

    /// A record that has changed since the hub saw it, and whose version of then is lost. A purge removes that on purpose.
    static let lacksAncestor =
        """
        (\(hasChanged) AND NOT EXISTS (SELECT 1 FROM ancestor
            WHERE ancestor.zone = record.zone AND ancestor.name = ifnull(record.name, record.local_id))
        AND NOT (deleted_at IS NOT NULL AND (type = '\(RecordType.conflict)' OR EXISTS (SELECT 1 FROM purged
            WHERE purged.zone = record.zone AND purged.name = ifnull(record.name, record.local_id)))))
        """

    private static let isKnown = "hub_version IS NOT NULL OR clean_at IS NOT NULL"

    static func sealAll(_ hasher: RecordHasher, _ database: SQLite) throws {
        try database.execute(
            """
            ALTER TABLE record ADD COLUMN hub_seal INTEGER;
            UPDATE record SET hub_seal = \(now) WHERE \(isKnown);
            ALTER TABLE ancestor ADD COLUMN change INTEGER;
            ALTER TABLE ancestor ADD COLUMN type TEXT;
            ALTER TABLE ancestor ADD COLUMN local_id TEXT;
            ALTER TABLE ancestor ADD COLUMN created_at INTEGER;
            ALTER TABLE ancestor ADD COLUMN device_id TEXT;
            ALTER TABLE ancestor ADD COLUMN schema_version INTEGER;
            ALTER TABLE ancestor ADD COLUMN local_only INTEGER;
            ALTER TABLE ancestor ADD COLUMN row_hash INTEGER;
            DROP TRIGGER IF EXISTS record_keeps_ancestor;
            CREATE TRIGGER record_keeps_ancestor BEFORE UPDATE OF change ON record
                WHEN OLD.clean_at = OLD.change AND NEW.clean_at IS NOT NEW.change
                BEGIN INSERT OR REPLACE INTO ancestor (\(Store.recordColumns), row_hash) VALUES (OLD.change, OLD.zone,
                    ifnull(OLD.name, OLD.local_id), OLD.type, OLD.local_id, OLD.fields, OLD.field_times, OLD.created_at,
                    OLD.modified_at, OLD.device_id, OLD.schema_version, OLD.local_only, OLD.deleted_at, OLD.row_hash);
                END;
            """)
        let rows = try database.prepare("SELECT \(Store.ancestorColumns) FROM ancestor")
        var hashes: [(id: RecordID, hash: Int64)] = []
        while try rows.step() { hashes.append((Store.ancestorID(rows), hasher.row(of: rows))) }
        let update = try database.prepare("UPDATE ancestor SET row_hash = ? WHERE zone = ? AND name = ?")
        for (id, hash) in hashes { try update.bind(1, hash).bind(2, id.zone).bind(3, id.name).run() }
    }
}

// MARK: Records whose state on the hub is unknown

extension Store {
    /// Forgets what the hub has of a record: the next sync merges both versions, and keeps what loses. Must run inside `write`.
    func forgetHub(of change: Int64) throws {
        let query = try database.statement("SELECT \(Self.recordColumns), row_hash FROM record WHERE change = ?")
            .bind(1, change)
        defer { query.reset() }
        guard try query.step() else { return }
        // A new number would make a new hash, and hide what is wrong with the row.
        let stored = try RowReader.unchangedRecord(query, hasher, hash: query.optionalInteger(13))
        query.reset()
        try noteUnknown(change)
        try dropAncestor(stored.record.id)
        // What the last sync has passed over goes with the next one.
        try rewrite(stored, as: stored.record)
    }

    /// Notes that the state of a row on the hub is unknown; the row keeps its number. Must run inside `write`.
    func noteUnknown(_ change: Int64) throws {
        try database.statement("UPDATE record SET hub_version = 0, clean_at = ?, hub_seal = ? WHERE change = ?")
            .bind(1, HubSeal.unknown).bind(2, HubSeal.number(0, HubSeal.unknown)).bind(3, change).run()
    }

    /// Ancestors that are not what the store has written.
    func brokenAncestors() throws -> [RecordID] {
        let query = try database.prepare("SELECT \(Self.ancestorColumns) FROM ancestor")
        var found: [RecordID] = []
        while try query.step() {
            if !isAncestorAsWritten(query) { found.append(Self.ancestorID(query)) }
        }
        return found
    }

    func soundAncestors() throws -> Set<RecordID> {
        let query = try database.prepare("SELECT \(Self.ancestorColumns) FROM ancestor WHERE row_hash IS NOT NULL")
        var found: Set<RecordID> = []
        while try query.step() { if isAncestorAsWritten(query) { found.insert(Self.ancestorID(query)) } }
        return found
    }

    /// Takes these as they are now for what the store has written, where nothing proves them. Must run inside `write`.
    func sealAncestors(_ ids: Set<RecordID>) throws {
        let query = try database.prepare("SELECT \(Self.ancestorColumns) FROM ancestor WHERE row_hash IS NULL")
        var hashes: [RecordID: Int64] = [:]
        while try query.step() { hashes[Self.ancestorID(query)] = hasher.row(of: query) }
        for (id, hash) in hashes where ids.contains(id) {
            try database.statement("UPDATE ancestor SET row_hash = ? WHERE zone = ? AND name = ?")
                .bind(1, hash).bind(2, id.zone).bind(3, id.name).run()
        }
    }

    /// Of a record whose purge has removed what the hub had, and that may come back: both versions meet without a base. Must run
    /// inside `write`.
    func forgetBase(of change: Int64) throws {
        try database.statement(
            """
            UPDATE record SET hub_version = ?, clean_at = NULL, hub_seal = ?
            WHERE change = ? AND \(HubSeal.lacksAncestor)
            """
        ).bind(1, 0).bind(2, HubSeal.number(0, nil)).bind(3, change).run()
    }

    /// The columns of a record, and its hash.
    static let ancestorColumns =
        recordColumnNames.map { $0 == "name" ? "nullif(name, local_id)" : $0 }
        .joined(separator: ", ") + ", row_hash, name"

    static func ancestorID(_ row: Statement) -> RecordID { RecordID(zone: row.text(1), name: row.text(14)) }

    func isAncestorAsWritten(_ row: Statement) -> Bool {
        row.optionalInteger(13).map { $0 == hasher.row(of: row) } ?? true
    }
}
