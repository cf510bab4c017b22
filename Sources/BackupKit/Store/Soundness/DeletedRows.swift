/// Damaged tombstones. What was deleted does not come back because its row went bad.
extension StoreRepair {
    /// The tombstone that a row was. It says its time three times and little else, so the row's hash can tell.
    func tombstoneBefore(_ row: BadRow) throws -> Record? {
        guard let hash = row.hash else { return nil }
        return try ["deleted_at", "modified_at", "created_at"].compactMap { try bareTombstone(of: row, at: $0) }
            .first { store.hasher.row($0, row.change) == hash }
    }

    /// A tombstone under the names that a row has, of the time in one of its columns.
    func bareTombstone(of row: BadRow, at column: String) throws -> Record? {
        let query = try store.database.prepare(
            """
            SELECT zone, ifnull(name, local_id), type, local_id, schema_version, device_id, \(column)
            FROM record WHERE change = ?
            """
        ).bind(1, row.change)
        guard try query.step(), !query.isNull(6) else { return nil }
        let time = Timestamp(milliseconds: query.integer(6))
        return Record(
            id: RecordID(zone: query.text(0), name: query.text(1)), type: query.text(2), localID: query.text(3),
            fields: "{}", createdAt: time, modifiedAt: time, deviceID: query.optionalText(5),
            schemaVersion: Int(query.integer(4)), deletedAt: time)
    }

    /// A row that says that its record was deleted, and nothing tells when: it is deleted now.
    mutating func keepDeleted(_ row: BadRow, _ damage: DamagedRow, _ version: Record) throws {
        replaced.append(damage.line)
        note(.accept, damage.subject, "stays deleted")
        let tombstone = try store.tombstone(of: version, at: store.timeAfter(version))
        try write(tombstone, over: row.change, as: store.nextChange())
        try forgetHub(tombstone.id)
    }
}

extension DamagedRow {
    /// Whether the row says that its record was deleted.
    var isDeleted: Bool {
        guard let time = (try? JSON(parsing: line))?["row"]?["deleted_at"] else { return false }
        return time != .null
    }
}
