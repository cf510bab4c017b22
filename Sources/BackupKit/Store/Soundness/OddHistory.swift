/// Older versions in the undo history that are not what the store has kept there.
extension Store {
    /// Rows of `batch_record` with their hashes: `recordColumns`, `row_hash`.
    static let keptColumns = "\(recordColumns), row_hash"

    /// An older version; nil where it is damaged: then it is named, and the undo goes on without it. Must run inside `batch`.
    func keptVersion(_ row: Statement, hash column: Int32) throws -> StoredRecord? {
        do {
            return try RowReader.unchangedRecord(row, hasher, hash: row.optionalInteger(column))
        } catch let damage as DamagedRow {
            fileFindings.append(
                Finding(
                    .recordDamaged, .damage, damage.subject,
                    "stays as it is now: its older version in the undo history is damaged",
                    remedy: "'backup-tool restore BACKUP --match WORDS --mode replace' brings a version back"))
            return nil
        }
    }

    /// Refuses to take back a batch that has put a record into another one, or a copy in its place, where the record's older
    /// version is damaged: what it says would go with the other one, and not come back.
    func checkNothingGoes(with batch: Batch, as kind: String) throws {
        let damaged = try oddVersions(of: batch.id)
        guard !damaged.isEmpty else { return }
        let made = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record WHERE deleted_at IS NULL AND (change BETWEEN ?2 AND ?3
            OR change IN (SELECT after FROM batch_record WHERE batch = ?1)
            OR change IN (SELECT change FROM batch_added WHERE batch = ?1))
            """
        ).bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        while try made.step() {
            guard let record = try ifSound({ try RowReader.record(made).record }) else { continue }
            let holds = Set(record.idsTakenIn + (record.isLocalOnly ? [record.localID] : []))
            let lost = damaged.first { !$0.ids.isDisjoint(with: holds) && !$0.ids.contains(record.id.name) }
            guard let lost else { continue }
            let (act, done) = kind == Self.redoBatch ? ("redo", "redone") : ("undo", "undone")
            throw BackupError(
                .damaged,
                "nothing was \(done): the older version of this record is damaged, and the \(act) would remove what it "
                    + "said from \(record.id), too",
                at: lost.damage.subject,
                remedy: "'backup-tool restore BACKUP --match WORDS --mode replace' brings a version of it back")
        }
    }

    /// The damaged ones, of one batch or of all.
    func oddVersions(of batch: Int64? = nil) throws -> [OddVersion] {
        let query = try database.prepare(
            """
            SELECT \(Self.keptColumns), batch, rowid FROM batch_record \(batch == nil ? "" : "WHERE batch = ?")
            ORDER BY rowid
            """)
        if let batch { query.bind(1, batch) }
        var found: [OddVersion] = []
        while try query.step() {
            try Interrupt.check()
            if query.integer(0) == Self.purgedChange { continue }
            do {
                _ = try RowReader.unchangedRecord(query, hasher, hash: query.optionalInteger(13))
            } catch let damage as DamagedRow {
                let ids = Set([2, 4].compactMap { query.optionalText($0) })
                found.append(OddVersion(damage: damage, ids: ids, batch: query.integer(14), row: query.integer(15)))
            }
        }
        return found
    }
}

struct OddVersion {
    let damage: DamagedRow
    /// The name and the local id that the row says.
    let ids: Set<String>
    let batch: Int64
    let row: Int64

    var finding: Finding {
        let giveUp = damage.isChanged ? "takes it as it is" : "gives up the undo of this batch"
        return Finding(
            damage.isChanged ? .recordChanged : .recordDamaged, .error, damage.subject,
            "its older version in the undo history, batch \(batch), is damaged; an undo leaves it out",
            remedy: "'backup-tool store repair --accept' \(giveUp)")
    }
}

extension StoreRepair {
    /// Nothing tells what an older version was: it is taken as it is, or its batch can no longer be undone.
    mutating func mendVersions() throws {
        guard accepts else { return }
        var given: Set<Int64> = []
        for version in try store.oddVersions() {
            replaced.append(version.damage.line)
            if version.damage.isChanged {
                note(.accept, version.damage.subject, "its older version in the undo history was taken as it is")
                try store.database.statement("UPDATE batch_record SET row_hash = NULL WHERE rowid = ?")
                    .bind(1, version.row).run()
            } else if given.insert(version.batch).inserted {
                note(.accept, "batch \(version.batch)", "can no longer be undone")
                for (table, column) in [("batch_record", "batch"), ("batch", "id")] {
                    try store.database.statement("DELETE FROM \(table) WHERE \(column) = ?").bind(1, version.batch)
                        .run()
                }
            }
        }
    }
}
