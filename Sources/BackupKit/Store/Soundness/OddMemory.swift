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

    /// Restores a row from its note. False where the note cannot be right, so that the note is what is damaged.
    fileprivate func putBack(_ row: ChangedRow, of witness: Witness) throws -> Bool {
        let columns = witness.place + witness.rest
        guard let texts = row.notedTexts, texts.count == columns.count, try mayBe(texts, witness.table) else {
            return false
        }
        let marks = columns.map { _ in "?" }.joined(separator: ", ")
        let query = try database.statement(
            "INSERT OR REPLACE INTO \(witness.table) (\(columns.joined(separator: ", "))) VALUES (\(marks))")
        for (place, text) in texts.enumerated() { query.bind(Int32(place + 1), text) }
        do { try query.run() } catch let error as BackupError where error.code == .failed { return false }
        return true
    }

    private func mayBe(_ texts: [String], _ table: String) throws -> Bool {
        switch table {
        case "conflict_number": try known(RecordID(zone: texts[1], name: texts[2]))?.type == RecordType.conflict
        case "purge_trace": (try? JSON(parsing: texts[2]).array) != nil
        case "file_elsewhere": SHA256Digest(hex: texts[2]) != nil
        default: true
        }
    }

    private func known(_ id: RecordID) throws -> Record? { try ifSound { try record(id)?.record } ?? nil }

    /// Removes imported files whose paths are not valid UTF-8: no import names them again. Returns these paths.
    fileprivate func forgetUnnamedImports() throws -> [String] {
        let query = try database.prepare("SELECT rowid, path FROM imported_file")
        var unnamed: [(row: Int64, path: String)] = []
        while try query.step() {
            if !query.isUTF8(1) { unnamed.append((query.integer(0), query.text(1))) }
        }
        for file in unnamed {
            try database.statement("DELETE FROM imported_file WHERE rowid = ?").bind(1, file.row).run()
        }
        return unnamed.map(\.path)
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
                let message = isBack ? "was restored from its second copy" : "is taken as it is now"
                note(isBack ? .exact : .accept, row.memory, message)
            }
            if !changed.isEmpty { try witness.refresh(store.database) }
        }
        for path in try store.forgetUnnamedImports() {
            note(.accept, "imported_file \(path)", "was removed: its path is not valid UTF-8; \(Self.takenForNew)")
        }
        for path in try RowSeal.imported.broken(in: store) {
            try RowSeal.imported.seal(path, store)
            note(.accept, "imported_file \(path)", "is taken as it is now: \(Self.takenForNew)")
        }
    }

    private static let takenForNew =
        "the next import may take for new what the file has brought before, and --mirror may leave it"
}
