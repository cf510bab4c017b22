/// Rows of `record` as a sync sees them.
extension Store {
    /// The member of a publication that people cite it by.
    static let citeKeyField = "citeKey"

    struct SyncRow {
        let change: Int64
        let localID: String
        let hubVersion: Int64?
        let isClean: Bool
        /// No hub has seen what it says, neither this one nor one of before (`forgetHub`).
        private(set) var isUnseen: Bool
        let isDeleted: Bool
        /// Kept on this device only, and alive.
        let isLocal: Bool
        let isSameType: Bool
        /// Whether `hub_version` and `clean_at` are what the store has written.
        let isSealed: Bool
        /// What the store knew of the hub's version was damaged.
        private(set) var isUnknown: Bool

        /// The same where what both sides knew of a changed record is lost.
        func without(_ base: Ancestor?) -> SyncRow {
            guard base == nil, hubVersion ?? 0 > 0 else { return self }
            var row = self
            (row.isUnseen, row.isUnknown) = (true, true)
            return row
        }
    }

    private static let columns =
        "change, zone, name, type, local_id, local_only, deleted_at, hub_version, clean_at, hub_seal"
    private static let rowsByLocalID = Query("SELECT \(columns) \(byKey) AND local_id = ?2")
    private static let rowByName = Query("SELECT \(columns) FROM record WHERE name = ?2 AND zone = ?3")
    private static let rowByImpliedName = Query(
        "SELECT \(columns) \(byKey) AND local_id = ?2 AND name IS NULL AND zone = ?3")

    private static func syncRow(_ row: Statement, type: String) -> SyncRow {
        let isDeleted = !row.isNull(6)
        return SyncRow(
            change: row.integer(0), localID: row.text(4), hubVersion: row.optionalInteger(7),
            isClean: !row.isNull(8) && row.integer(8) == row.integer(0),
            isUnseen: row.isNull(7) || row.integer(7) == 0 && !row.isNull(8), isDeleted: isDeleted,
            isLocal: row.integer(5) != 0 && !isDeleted, isSameType: row.equals(3, type),
            isSealed: row.optionalInteger(9) == HubSeal.number(row.optionalInteger(7), row.optionalInteger(8)),
            isUnknown: row.optionalInteger(7) == 0 && row.optionalInteger(8) == HubSeal.unknown)
    }

    /// The row of an incoming record's identity, and whether a local-only copy of the record lies beside it. A sync goes
    /// by identity alone: matching by local id is for imports, and for `dedup`.
    func lookUp(_ record: Record) throws -> (row: SyncRow?, hasCopy: Bool) {
        var found: SyncRow?
        var hasCopy = false
        let same = try database.statement(Self.rowsByLocalID).bind(1, hasher.key(record.localID))
            .bind(2, record.localID)
        while try same.step() {
            let row = Self.syncRow(same, type: record.type)
            if same.equals(1, record.id.zone), same.equals(same.isNull(2) ? 4 : 2, record.id.name) {
                found = row
            } else if row.isLocal, row.isSameType {
                hasCopy = true
            }
        }
        same.reset()
        if let found { return (found, hasCopy) }
        found = try row(database.statement(Self.rowByName), record)
        // With the local id for a name it would have been found above.
        if found == nil, record.id.name != record.localID {
            let query = try database.statement(Self.rowByImpliedName).bind(1, hasher.key(record.id.name))
            found = try row(query, record)
        }
        return (found, hasCopy)
    }

    private func row(_ query: Statement, _ record: Record) throws -> SyncRow? {
        query.bind(2, record.id.name).bind(3, record.id.zone)
        defer { query.reset() }
        return try query.step() ? Self.syncRow(query, type: record.type) : nil
    }

    /// Whether a live local-only record stands in the place of the one of this identity.
    func hasLocalCopy(for id: RecordID) throws -> Bool {
        // Without a row of that identity nobody can tell what it was called here.
        guard let stored = try ifSound({ try record(id) }) ?? nil else { return false }
        // A tombstone may have the id of its listing (`WorkID.tombstone`). The copy has the one of before, which is the name.
        return try [stored.record.localID, id.name].contains { localID in
            try records(localID: localID).contains {
                $0.record.isLocalOnly && !$0.record.isDeleted && $0.record.type == stored.record.type
            }
        }
    }

    private static let insertRow = Query(
        """
        INSERT INTO record (\(recordColumns), hub_version, clean_at, row_hash, hub_seal)
        VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
        """)
    private static let updateRow = Query(
        """
        UPDATE record SET (\(recordColumns), hub_version, clean_at, row_hash, hub_seal)
            = (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
        WHERE change = ?
        """)

    func insert(_ record: Record, version: Int64, isClean: Bool) throws {
        let change = nextChange()
        let insert = try database.statement(Self.insertRow)
        Self.bind(record, change: change, to: insert)
        try insert.bind(14, version).bind(15, isClean ? change : nil).bind(16, hasher.row(record, change))
            .bind(17, HubSeal.number(version, isClean ? change : nil)).run()
        try addKey(of: record, change)
        try noteInserted(record)
    }

    func replace(_ old: Int64, knownAs localID: String, with record: Record, version: Int64, isClean: Bool) throws {
        let change = nextChange()
        see(record)
        let isAsked = record.type == RecordType.publication || record.isDeleted
        let known = try isAsked ? ifSound { try stored(change: old)?.record } ?? nil : nil
        if let known { try noteListing(of: known, as: record.id) }
        if let known, record.isDeleted { try noteFiles(ofDeleted: known) }
        try noteListings(in: record)
        if !record.isDeleted { try forgetPurge(of: record.id) }
        // Another device may have added what it knew to a tombstone: the undo of that delete still takes it back.
        if let deletedAt = record.deletedAt, known?.deletedAt == deletedAt {
            try follow(old, to: change)
        } else {
            // What somebody changed since an import stays when that is undone, and so does what came from the hub.
            try noteEdit(of: old, becomes: change)
        }
        let update = try database.statement(Self.updateRow)
        Self.bind(record, change: change, to: update)
        try update.bind(14, version).bind(15, isClean ? change : nil).bind(16, hasher.row(record, change))
            .bind(17, HubSeal.number(version, isClean ? change : nil)).bind(18, old).run()
        try moveKey(of: record, from: old, knownAs: localID, to: change)
    }

    func noteVersion(_ change: Int64, _ version: Int64, isClean: Bool) throws {
        try database.statement("UPDATE record SET hub_version = ?, clean_at = ?, hub_seal = ? WHERE change = ?")
            .bind(1, version).bind(2, isClean ? change : nil)
            .bind(3, HubSeal.number(version, isClean ? change : nil)).bind(4, change).run()
    }

    /// Whether a row is as it was, and as far behind the hub.
    func isStill(_ change: Int64, onVersion base: Int64?) throws -> Bool {
        let query = try database.statement(
            "SELECT ifnull(\(HubSeal.version), 0) = ? FROM record WHERE change = ? AND \(Self.isPending)"
        ).bind(1, base ?? 0).bind(2, change)
        defer { query.reset() }
        return try query.step() && query.integer(0) != 0
    }

    func markClean(_ change: Int64) throws {
        // One that was damaged before stays so, for the next sync to notice.
        try database.statement(
            """
            UPDATE record SET clean_at = change,
            hub_seal = iif(\(HubSeal.isSound), \(HubSeal.number(version: "hub_version", cleanAt: "change")), hub_seal)
            WHERE change = ?
            """
        ).bind(1, change).run()
    }

    /// Another type of record has this name on the hub: ours takes another name, as on an import.
    func moveAside(_ change: Int64) throws {
        var record = try record(change: change)
        let old = record.id
        record.id = try freeName(old, type: record.type)
        try replace(change, knownAs: record.localID, with: record, version: 0, isClean: false)
        try database.statement("UPDATE record SET hub_version = NULL, hub_seal = NULL WHERE change = ?").bind(
            1, changeCounter
        ).run()
        try dropAncestor(old)
    }
}
