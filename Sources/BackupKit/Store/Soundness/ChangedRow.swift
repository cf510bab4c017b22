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
    func changedSmallRows() throws -> [ChangedRow] {
        var found: [ChangedRow] = []
        for (table, key, row) in StoreSchema.witnessed {
            let differing = try database.prepare(
                """
                SELECT ifnull(\(key), seen), \(key) IS NULL, row FROM (SELECT \(key), \(row) AS told FROM \(table))
                FULL JOIN (SELECT key AS seen, row FROM witness WHERE place = '\(table)') ON seen = \(key)
                WHERE told IS NOT row
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
