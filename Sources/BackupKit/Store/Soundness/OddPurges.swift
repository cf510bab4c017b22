/// Which records were purged is written down twice: what a flipped bit takes from the list could come back.
extension Store {
    private func changedPurges() throws -> [ChangedRow] {
        try StoreSchema.isOld(database) ? [] : changedRows(of: Witness.purged)
    }

    /// Throws where it cannot be known which records were purged: what comes in may be one of them.
    func checkPurges() throws {
        let isSound = try changedPurges().isEmpty && database.integrityFaults(of: "purged").isEmpty
        guard !isSound else { return }
        throw BackupError(
            .damaged, "nothing was changed: the list of purged records is damaged, and they could come back", at: path,
            remedy: StoreRemedy.repair)
    }

    /// What is wrong with purges that were made, or begun.
    func purgeFindings() throws -> [Finding] {
        let changed = try changedPurges().map { row in
            Finding(
                .recordChanged, .damage, "purged \(PurgeMark(row)?.id.description ?? row.key)", row.reason,
                remedy: StoreRemedy.repair)
        }
        guard try meta(Self.pendingPurge) != nil else { return changed }
        return changed + [
            Finding(
                .queueStuck, .warning, path, "a purge was cut short: free pages may still hold what it removed",
                remedy: "'backup-tool store purge --confirm' finishes it")
        ]
    }

    /// Puts back what was noted, and notes what is there: of two words for one purge both are kept, for a mark of a record
    /// that never was keeps nothing away. Returns the records.
    fileprivate func mendPurges() throws -> [RecordID] {
        let changed = try changedPurges()
        guard !changed.isEmpty else { return [] }
        for row in changed {
            guard let mark = PurgeMark(row), row.isGone || (try? record(mark.id)?.record.localID) == mark.localID else {
                continue
            }
            try database.statement("INSERT OR REPLACE INTO purged VALUES (?, ?, ?, ?)")
                .bind(1, mark.id.zone).bind(2, mark.id.name).bind(3, mark.type).bind(4, mark.localID).run()
        }
        try Witness.purged.refresh(database)
        return changed.compactMap { PurgeMark($0)?.id }
    }
}

extension StoreRepair {
    mutating func mendPurges() throws {
        for id in try store.mendPurges() { note(.exact, "purged \(id)", "is known to be purged again") }
    }
}

/// What was noted of a purge.
private struct PurgeMark {
    let id: RecordID
    let type: String
    let localID: String

    init?(_ row: ChangedRow) {
        guard let texts = row.notedTexts, texts.count == 4 else { return nil }
        (id, type, localID) = (RecordID(zone: texts[0], name: texts[1]), texts[2], texts[3])
    }
}
