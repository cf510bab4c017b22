/// Damaged tombstones. What was deleted does not come back because its row went bad.
extension StoreRepair {
    /// The tombstone that a row was. It says its time three times and little else, so the row's hash can tell.
    func tombstoneBefore(_ row: BadRow, _ damage: DamagedRow) throws -> Record? {
        guard let hash = row.hash else { return nil }
        func isWhatItWas(_ tombstone: Record) -> Bool { store.hasher.row(tombstone, row.change) == hash }
        let bare = try ["deleted_at", "modified_at", "created_at"].compactMap { try bareTombstone(of: row, at: $0) }
        if let found = bare.first(where: isWhatItWas) { return found }
        // What it knew of is gone; the version that was deleted tells the same.
        guard let version = try candidate(for: row, damage)?.record, !version.isDeleted else { return nil }
        return bare.map { tombstone in
            var tombstone = tombstone
            tombstone.fieldTimes = version.tombstone(at: tombstone.modifiedAt).fieldTimes
            return tombstone
        }.first(where: isWhatItWas)
    }

    /// A tombstone under the names that a row has, of the time in one of its columns.
    func bareTombstone(of row: BadRow, at column: String) throws -> Record? {
        let query = try store.database.prepare(
            """
            SELECT zone, ifnull(name, local_id), type, local_id, schema_version, device_id, \(column), field_times
            FROM record WHERE change = ?
            """
        ).bind(1, row.change)
        guard try query.step(), !query.isNull(6) else { return nil }
        let time = Timestamp(milliseconds: query.integer(6))
        var tombstone = Record(
            id: RecordID(zone: query.text(0), name: query.text(1)), type: query.text(2), localID: query.text(3),
            fields: "{}", createdAt: time, modifiedAt: time, deviceID: query.optionalText(5),
            schemaVersion: Int(query.integer(4)), deletedAt: time)
        tombstone.fieldTimes = try store.ifReadable { try Store.times(query.optionalText(7)) } ?? [:]
        tombstone.fieldTimes = tombstone.knownTimes
        return tombstone
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
