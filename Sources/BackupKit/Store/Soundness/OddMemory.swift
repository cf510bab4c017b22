/// What a store remembers beside records, and no backup holds: what each imported file has brought, what publications were
/// before, which deletes were undone, whose the files of deleted records are. What damage takes from it is missed much later.
extension Store {
    func memoryDamage() throws -> [Finding] {
        if try StoreSchema.isOld(database) { return [] }
        let rows = try Witness.ofMemory.flatMap(changedRows).map { ($0.memory, $0.reason) }
        return try rows.map { Finding(.recordChanged, .error, $0, $1, remedy: StoreRemedy.repair) } + importDamage()
    }

    /// Imported files of which it is not known what they have brought.
    func importDamage() throws -> [Finding] {
        try RowSeal.imported.broken(in: self).map {
            Finding(
                .recordChanged, .error, "imported_file \($0)",
                "what the store has noted of this file \(DamagedRow.changed)", remedy: StoreRemedy.repair)
        }
    }

    /// Whether a row is again what was noted of it.
    fileprivate func putBack(_ row: ChangedRow, of witness: Witness) throws -> Bool {
        let columns = witness.place + witness.rest
        guard let texts = row.notedTexts, texts.count == columns.count else { return false }
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        let query = try database.statement(
            "INSERT OR REPLACE INTO \(witness.table) (\(columns.joined(separator: ", "))) VALUES (\(marks))")
        for (place, text) in texts.enumerated() { query.bind(Int32(place + 1), text) }
        // A note may be what is damaged, and fit no column.
        do { try query.run() } catch let error as BackupError where error.code == .failed { return false }
        return true
    }
}

extension ChangedRow {
    fileprivate var memory: String { "\(table) \(notedTexts?.joined(separator: " ") ?? key)" }
}

extension StoreRepair {
    /// Puts back what was noted, and lets stay what is there besides: a row too many keeps nothing away.
    mutating func mendMemory() throws {
        for witness in Witness.ofMemory {
            let changed = try store.changedRows(of: witness)
            for row in changed {
                let isBack = try store.putBack(row, of: witness)
                note(isBack ? .exact : .accept, row.memory, isBack ? "is as it was written" : "is taken as it is now")
            }
            if !changed.isEmpty { try witness.refresh(store.database) }
        }
        for path in try RowSeal.imported.broken(in: store) {
            try RowSeal.imported.seal(path, store)
            note(
                .accept, "imported_file \(path)",
                "is taken as it is now: the next import may take for new what the file has brought before, and --mirror may "
                    + "leave it")
        }
    }
}
