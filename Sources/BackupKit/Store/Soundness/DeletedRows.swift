/// Damaged tombstones. What was deleted does not come back because its row went bad.
extension StoreRepair {
    /// The tombstone that a row was. It says its time three times and little else, so the row's hash can tell.
    func tombstoneBefore(_ row: BadRow) throws -> Record? {
        guard let hash = row.hash else { return nil }
        let query = try store.database.prepare(
            """
            SELECT zone, ifnull(name, local_id), type, local_id, schema_version, device_id,
            deleted_at, modified_at, created_at FROM record WHERE change = ?
            """
        ).bind(1, row.change)
        guard try query.step() else { return nil }
        for column in [6, 7, 8] as [Int32] where !query.isNull(column) {
            let time = Timestamp(milliseconds: query.integer(column))
            var tombstone = Record(
                id: RecordID(zone: query.text(0), name: query.text(1)), type: query.text(2), localID: query.text(3),
                fields: "{}", createdAt: time, modifiedAt: time, schemaVersion: Int(query.integer(4)), deletedAt: time)
            tombstone.deviceID = query.optionalText(5)
            if store.hasher.row(tombstone, row.change) == hash { return tombstone }
        }
        return nil
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
