/// A row beside the newest one of the same record.
struct TwinRow {
    let stored: Store.StoredRecord
    /// The row as a repair keeps it.
    let damage: DamagedRow
}

/// A store has one row of each zone and name. No index of SQLite sees to it, because most rows have no name of their own.
extension Store {
    func twinRows() throws -> [TwinRow] {
        // Rows of one local id lie side by side in the index.
        let keys = try database.prepare("SELECT key FROM local_key GROUP BY key HAVING count(*) > 1")
        var twins: [TwinRow] = []
        while try keys.step() {
            try Interrupt.check()
            let rows = try database.statement(Self.rowsOfKey).bind(1, keys.integer(0))
            defer { rows.reset() }
            var newest: [RecordID: TwinRow] = [:]
            while try rows.step() {
                guard let stored = try ifSound({ try RowReader.record(rows) }) else { continue }
                let (id, latest) = (stored.record.id, stored.record.latestTime)
                let damage = DamagedRow(
                    .record, "\(id)", "has two rows; this one was last changed at \(latest.iso8601)",
                    kind: Kind(recordType: stored.record.type), columns: Self.recordColumnNames, of: rows)
                if let older = newest.updateValue(TwinRow(stored: stored, damage: damage), forKey: id) {
                    twins.append(older)
                }
            }
        }
        return twins
    }

    private static let rowsOfKey = Query("SELECT \(recordColumns) \(byKey) ORDER BY change")

    /// Must run inside `write`.
    func removeTwin(_ row: TwinRow) throws {
        try database.statement("DELETE FROM record WHERE change = ?").bind(1, row.stored.change).run()
        try removeKey(hasher.key(row.stored.record.localID), row.stored.change)
        _ = nextChange()
    }
}
