/// Proves indexes before a command relies on them: what a damaged index leaves out looks as if it were gone.
extension SQLite {
    /// What SQLite's integrity check says against a table and its indexes, or against the whole database.
    func integrityFaults(of table: String? = nil) throws -> [String] {
        let check = try prepare("PRAGMA integrity_check\(table.map { "(\($0))" } ?? "")")
        var faults: [String] = []
        while try check.step() {
            try Interrupt.check()
            let text = check.text(0).split(separator: "\n").filter { !$0.hasPrefix("***") }.joined(separator: "; ")
            if text != "ok" { faults.append("SQLite's integrity check says: \(text)") }
        }
        return faults
    }
}

extension Store {
    /// Throws where a page or an index is damaged: an undo would take back what another batch did, or write over rows of which
    /// nobody knows.
    func checkPagesAndIndexes() throws {
        guard let fault = try database.integrityFaults().first else { return }
        throw BackupError(
            .damaged, "nothing was taken back: the store is damaged; \(fault)", at: path,
            remedy: StoreCheck.isOfIndex(fault) ? StoreRemedy.repair : StoreRemedy.repairOrNewStore)
    }
}

// MARK: The index of records by type

extension Store {
    /// Types of which a read by type does not find the rows that the table holds.
    private static let typesMisread = """
        SELECT count(*) FROM (SELECT type, count(*) AS found, sum(change & 4294967295) AS places
        FROM record NOT INDEXED WHERE type <> 'PuppyEvent' GROUP BY type) AS told
        WHERE (found, places) IS NOT (SELECT count(*), sum(change & 4294967295) FROM record
        WHERE type = told.type AND type <> 'PuppyEvent')
        """

    /// Looks at every row.
    private func isTypeIndexSound(_ database: SQLite) throws -> Bool {
        do { return try database.integer(Self.typesMisread) == 0 } catch let error as BackupError
            where error.code == .damaged
        {
            // A table that cannot be read is no matter of its indexes.
            _ = try database.integer("SELECT count(*) FROM record NOT INDEXED")
            return false
        }
    }

    /// Makes this reader go without the index by type where it is damaged, and returns what to say about that. Looks at
    /// every row.
    public func leaveOutDamagedTypeIndex() throws -> Finding? {
        rowsByType = "record"
        // A transaction that has met a bad page cannot end well.
        let reader = try writerLock == nil ? Self.connectReader(path) : database
        if try isTypeIndexSound(reader) { return nil }
        rowsByType = "record NOT INDEXED"
        return Finding(
            .indexMismatch, .damage, path, "\(Self.damagedTypeIndex), so it was not used; nothing was left out",
            remedy: StoreRemedy.repairOrNewStore)
    }

    /// Throws where the index by type is damaged, for commands that remove or decide by it. Looks at every row.
    func checkTypeIndex() throws {
        if try isTypeIndexSound(database) { return }
        throw BackupError(
            .damaged, "nothing was changed: \(Self.damagedTypeIndex)", at: path,
            remedy: StoreRemedy.repairOrNewStore)
    }

    private static let damagedTypeIndex = "the index 'record_by_type' does not fit the records"
}
