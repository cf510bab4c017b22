/// A row of a small table that is not what was noted of it when the store wrote it.
struct ChangedRow {
    let table: String
    let key: String
    /// What is noted of it is all that is left.
    let isGone: Bool
    let noted: String?

    var subject: String { "\(table) \(key)" }
    var reason: String { isGone ? "is gone: a disk error, or another program" : DamagedRow.changed }
}

extension Store {
    /// Rows of settings, attachments and `meta`, or of one of these tables, that differ from what was noted of them.
    func changedSmallRows(of only: String? = nil) throws -> [ChangedRow] {
        var found: [ChangedRow] = []
        for (table, key, row) in StoreSchema.witnessed where only == nil || table == only {
            // Two queries that can each use an index; a full join would compare every row with every other one.
            let differing = try database.prepare(
                """
                SELECT told.\(key), 0, seen.row FROM \(table) AS told
                    LEFT JOIN witness AS seen ON seen.place = '\(table)' AND seen.key = told.\(key)
                    WHERE (\(row)) IS NOT seen.row
                UNION ALL
                SELECT seen.key, 1, seen.row FROM witness AS seen WHERE seen.place = '\(table)'
                    AND NOT EXISTS (SELECT 1 FROM \(table) AS told WHERE told.\(key) = seen.key)
                """)
            while try differing.step() {
                found.append(
                    ChangedRow(
                        table: table, key: differing.text(0), isGone: differing.integer(1) != 0,
                        noted: differing.isNull(2) ? nil : differing.text(2)))
            }
        }
        return found
    }
}
