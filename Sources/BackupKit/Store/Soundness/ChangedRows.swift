/// Rows that are not what the store has written: their hash tells.
extension Store {
    /// Visits the fields of all live events, in the order of their rows. A row that is not as the store has written it is noted.
    func forEachJudgedEvent(_ body: (_ change: Int64, UnsafeRawBufferPointer) throws -> Void) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns), row_hash, (name, field_times, device_id, schema_version, local_only)
                IS (NULL, NULL, NULL, \(SchemaVersion.current), 0)
            FROM record WHERE type = 'PuppyEvent' AND deleted_at IS NULL ORDER BY change
            """)
        while try query.step() {
            let (change, fields) = (query.integer(0), query.bytes(5))
            if !isNewEvent(query, change, fields) { noteIfChanged(query) }
            try body(change, fields)
        }
    }

    /// Whether the row is as an import writes a new event, which most are. This asks for half of the columns.
    private func isNewEvent(_ row: Statement, _ change: Int64, _ fields: UnsafeRawBufferPointer) -> Bool {
        row.integer(14) != 0
            && row.integer(13)
                == hasher.row(
                    change: change, zone: row.bytes(1), type: row.bytes(3), localID: row.bytes(4), fields: fields,
                    createdAt: Timestamp(milliseconds: row.integer(7)),
                    modifiedAt: Timestamp(milliseconds: row.integer(8)))
    }

    /// Notes a row of `recordColumns` and its hash, where the store has not written it so.
    func noteIfChanged(_ row: Statement) {
        guard let hash = row.optionalInteger(13), hash != hasher.row(of: row) else { return }
        damage.noteChanged("\(RecordID(zone: row.text(1), name: row.text(row.isNull(2) ? 4 : 2)))")
    }

    /// The same of a row that was read without its hash.
    func noteIfChanged(_ stored: StoredRecord) throws {
        let row = try database.statement("SELECT \(Self.recordColumns), row_hash FROM record WHERE change = ?")
            .bind(1, stored.change)
        defer { row.reset() }
        if try row.step() { noteIfChanged(row) }
    }
}
