/// A row of a small table that is not what was noted of it when the store wrote it.
struct ChangedRow {
    let table: String
    let key: String
    /// What is noted of it is all that is left.
    let isGone: Bool
    let noted: String?

    var subject: String { "\(table) \(key)" }
    /// The columns of a row that is noted whole; nil of one of which nothing that can be read is noted.
    var notedTexts: [String]? {
        guard let noted else { return nil }
        let words = (key + (noted.isEmpty ? "" : " \(noted)")).split(separator: " ", omittingEmptySubsequences: false)
        let texts = words.compactMap { Self.text(ofHex: $0) }
        return texts.count == words.count ? texts : nil
    }

    private static func text(ofHex hex: Substring) -> String? {
        let digits = hex.utf8.compactMap(hexValue)
        guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        let bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        return String(validating: bytes, as: UTF8.self)
    }

    var reason: String { isGone ? "is gone: a disk error, or another program" : DamagedRow.changed }
}

extension Store {
    /// Rows of settings, attachments and `meta`, or of one of these tables, that differ from what was noted of them.
    func changedSmallRows(of only: String? = nil) throws -> [ChangedRow] {
        try Witness.ofData.filter { only == nil || $0.table == only }.flatMap(changedRows)
    }

    /// Whether the row of an attachment is what was noted of it.
    func isAsNoted(_ asset: Asset) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM \(StoreSchema.unchangedAssets) WHERE path = ?")
            .bind(1, asset.path)
        defer { query.reset() }
        return try query.step()
    }

    /// Walks rows and notes side by side, in the order of their keys. A damaged page can break that order, so rows and notes
    /// that did not meet are compared by their keys at the end.
    func changedRows(of witness: Witness) throws -> [ChangedRow] {
        let (table, key) = (witness.table, witness.key(""))
        let rows = try database.prepare("SELECT \(key), \(witness.row) FROM \(table) ORDER BY \(key)")
        let notes = try database.prepare("SELECT key, row FROM witness WHERE place = '\(table)' ORDER BY key")
        var unmet = (rows: [[UInt8]: [UInt8]?](), notes: [[UInt8]: [UInt8]]())
        var (hasRow, hasNote) = (try rows.step(), try notes.step())
        while hasRow || hasNote {
            try Interrupt.check()
            let takesRow = hasRow && !(hasNote && precedesBytewise(notes.bytes(0), rows.bytes(0)))
            let takesNote = hasNote && !(hasRow && precedesBytewise(rows.bytes(0), notes.bytes(0)))
            if !(takesRow && takesNote && sameBytes(rows.bytes(1), notes.bytes(1))) {
                if takesRow { unmet.rows[Array(rows.bytes(0))] = .some(rows.isNull(1) ? nil : Array(rows.bytes(1))) }
                if takesNote { unmet.notes[Array(notes.bytes(0))] = Array(notes.bytes(1)) }
            }
            if takesRow { hasRow = try rows.step() }
            if takesNote { hasNote = try notes.step() }
        }
        return Set(unmet.rows.keys).union(unmet.notes.keys).sorted(by: precedes).compactMap { key in
            let (row, note) = (unmet.rows[key], unmet.notes[key])
            if let row, row == note { return nil }
            func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
            return ChangedRow(table: table, key: text(key), isGone: row == nil, noted: note.map(text))
        }
    }
}
