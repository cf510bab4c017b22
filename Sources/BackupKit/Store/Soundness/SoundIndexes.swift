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
    /// Throws where the tables of the undo history or their indexes are damaged: an undo would take back what another
    /// batch did.
    func checkHistory() throws {
        for table in Self.historyTables {
            guard let fault = try database.integrityFaults(of: table).first else { continue }
            throw BackupError(
                .damaged, "nothing was taken back: the undo history is damaged; \(fault)", at: path,
                remedy: StoreCheck.isOfIndex(fault) ? StoreCheck.repair : StoreCheck.repairOrNewStore)
        }
    }
}
