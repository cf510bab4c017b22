import Glibc

/// One import or restore, as `undo --list` shows it.
public struct Batch: Sendable, Equatable {
    public let id: Int64
    public let kind: String
    public let source: String
    public let startedAt: Timestamp
    public internal(set) var firstChange: Int64
    public internal(set) var lastChange: Int64
    public internal(set) var summary: String
    public let undoneAt: Timestamp?
}

/// What an undo did.
public struct UndoResult: Sendable, Equatable {
    public let batch: Batch
    public var removed = 0
    public var reverted = 0
    public var assets = 0
    public var settings = 0
    /// Conflicts that wait again.
    public var conflicts = 0
    /// Records that somebody changed after the batch: they stay as they are.
    public var keptNewer: [RecordID] = []
}

/// Ends a transaction that wrote nothing worth keeping, or that was a rehearsal.
private struct NothingToKeep: Error {}

extension Store {
    /// How many batches can be taken back; older ones are forgotten, with the bytes they kept.
    static let undoDepth = 20
    /// The kind of a batch that a sync puts files in place with, and forgets at once.
    static let syncBatch = "sync"

    /// Runs an import or restore: one transaction, recorded so that it can be undone. When `body` changed nothing, or
    /// says so (a dry run), nothing at all is written.
    public func batch<Result>(
        kind: String, source: String, dryRun: Bool = false, _ body: () throws -> (Result, summary: String)
    ) throws -> (result: Result, batch: Batch?) {
        var outcome: Result?
        var recorded: Batch?
        var forgotten: [Int64] = []
        // Left only when taking back the files of a batch before this one failed.
        try takeBackFiles(of: try database.integer(Self.nextBatch))
        do {
            try write {
                var batch = try begin(kind, source)
                currentBatch = batch
                rehearsal = dryRun
                defer {
                    currentBatch = nil
                    rehearsal = false
                }
                let (result, summary) = try body()
                outcome = result
                if dryRun || changeCounter < batch.firstChange { throw NothingToKeep() }
                batch.lastChange = changeCounter
                batch.summary = summary
                try database.statement("UPDATE batch SET last_change = ?, summary = ? WHERE id = ?")
                    .bind(1, changeCounter).bind(2, summary).bind(3, batch.id).run()
                forgotten = try forgetOldBatches()
                recorded = batch
            }
        } catch {
            // The rows are back. Files that cannot come back now do so when the next writer opens the store.
            placedFiles = nil
            let id = try database.integer(Self.nextBatch)
            guard error is NothingToKeep else {
                try? takeBackFiles(of: id)
                throw error
            }
            try takeBackFiles(of: id)
        }
        // The batch is done, whatever happens here; the next writer sweeps what is left.
        try? dropJournal()
        for id in forgotten { try? Directory.removeTree(keptFolder(of: id)) }
        guard let outcome else { throw BackupError(.failed, "the batch ended without a result", at: path) }
        return (outcome, recorded)
    }

    /// Runs `body` inside a transaction of its own that is rolled back, so that its answer is known and nothing is done.
    public func rehearse<Result>(_ body: () throws -> Result) throws -> Result {
        var outcome: Result?
        do {
            try write {
                outcome = try body()
                throw NothingToKeep()
            }
        } catch is NothingToKeep {}
        guard let outcome else { throw BackupError(.failed, "the rehearsal ended without a result", at: path) }
        return outcome
    }

    private static let nextBatch = "SELECT ifnull(max(id), 0) + 1 FROM batch"

    private func begin(_ kind: String, _ source: String) throws -> Batch {
        let id = try database.integer(Self.nextBatch)
        let batch = Batch(
            id: id, kind: kind, source: source, startedAt: clock.now(), firstChange: changeCounter + 1,
            lastChange: changeCounter, summary: "", undoneAt: nil)
        try database.statement("INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, '', NULL)")
            .bind(1, id).bind(2, kind).bind(3, source).bind(4, batch.startedAt.milliseconds)
            .bind(5, batch.firstChange).bind(6, batch.lastChange).run()
        return batch
    }

    /// Keeps the row as it was before the current batch changed it for the first time.
    func remember(_ old: StoredRecord, becomes change: Int64?) throws {
        guard let batch = currentBatch else { return try noteEdit(of: old.change, becomes: change) }
        if old.change >= batch.firstChange {
            // Changed a second time by the same batch: only its newest number is needed.
            try database.statement("UPDATE batch_record SET after = ? WHERE batch = ? AND after = ?")
                .bind(1, change).bind(2, batch.id).bind(3, old.change).run()
            return
        }
        let insert = try database.statement(Self.rememberRow)
        insert.bind(1, batch.id).bind(2, change)
        Self.bind(old.record, change: old.change, to: insert, from: 3)
        try insert.run()
    }

    private static let rememberRow = Query(
        "INSERT INTO batch_record (batch, after, \(recordColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")

    /// A person changes a row. When a batch added it, the undo of that batch has to say that it stays.
    func noteEdit(of old: Int64, becomes change: Int64?) throws {
        // A row that is gone for good needs no word.
        guard let change else { return }
        try database.statement("UPDATE batch_added SET change = ?, edited = 1 WHERE change = ?")
            .bind(1, change).bind(2, old).run()
        if database.changes > 0 { return }
        let replaced = try database.statement("SELECT 1 FROM batch_record WHERE after = ?").bind(1, old)
        defer { replaced.reset() }
        if try !replaced.step() { try noteAdded(old, becomes: change, edited: true) }
    }

    /// Follows a row that a batch added to its new number.
    private func noteAdded(_ old: Int64, becomes change: Int64, edited: Bool) throws {
        try database.statement(
            """
            INSERT INTO batch_added (change, edited, batch) SELECT ?1, ?2, id FROM batch
            WHERE undone_at IS NULL AND first_change <= ?3 AND last_change >= ?3
            """
        ).bind(1, change).bind(2, edited ? Int64(1) : 0).bind(3, old).run()
    }

    public func batches() throws -> [Batch] {
        let query = try database.prepare(
            "SELECT id, kind, source, started_at, first_change, last_change, summary, undone_at FROM batch ORDER BY id")
        var found: [Batch] = []
        while try query.step() {
            found.append(
                Batch(
                    id: query.integer(0), kind: query.text(1), source: query.text(2),
                    startedAt: Timestamp(milliseconds: query.integer(3)), firstChange: query.integer(4),
                    lastChange: query.integer(5), summary: query.text(6),
                    undoneAt: query.optionalInteger(7).map { Timestamp(milliseconds: $0) }))
        }
        return found
    }

    /// Takes back the last batch that was not undone yet. What was changed since by somebody else stays, and is listed.
    public func undoLast(dryRun: Bool = false) throws -> UndoResult {
        guard let batch = try batches().last(where: { $0.undoneAt == nil && $0.kind != Self.syncBatch }) else {
            throw BackupError(.failed, "there is nothing to undo", at: path)
        }
        var result = UndoResult(batch: batch)
        do {
            try write {
                try revertChanged(batch, &result)
                try removeAdded(batch, &result)
                try reinsertRemoved(batch, &result)
                try revertSettings(batch, &result)
                try revertAssetRows(batch, &result)
                result.conflicts = try reviveConflicts(of: batch)
                for table in ["conflict", "batch_record", "batch_added", "damaged"] {
                    try database.statement("DELETE FROM \(table) WHERE batch = ?").bind(1, batch.id).run()
                }
                try database.statement("UPDATE batch SET undone_at = ? WHERE id = ?")
                    .bind(1, clock.now().milliseconds).bind(2, batch.id).run()
                if dryRun { throw NothingToKeep() }
            }
        } catch is NothingToKeep { return result }
        try finishUndoneAssets()
        return result
    }

    /// Rows that the batch changed get their old content under a new number, unless somebody changed them since.
    private func revertChanged(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT \(Self.recordColumns), after FROM batch_record WHERE batch = ? AND after IS NOT NULL ORDER BY rowid"
        ).bind(1, batch.id)
        while try query.step() {
            guard let before = try ifSound({ try RowReader.record(query) }) else { continue }
            let change = nextChange()
            if try overwrite(query.integer(13), with: before.record, change) {
                try follow(before.change, to: change)
                result.reverted += 1
            } else {
                result.keptNewer.append(before.record.id)
            }
        }
    }

    /// Rows that the batch took out come back, unless somebody has put another in their place.
    private func reinsertRemoved(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT \(Self.recordColumns) FROM batch_record WHERE batch = ? AND after IS NULL ORDER BY rowid"
        ).bind(1, batch.id)
        while try query.step() {
            guard let before = try ifSound({ try RowReader.record(query) }) else { continue }
            if try ifSound({ try record(before.record.id) }).map({ $0 != nil }) ?? true {
                result.keptNewer.append(before.record.id)
                continue
            }
            try put(before.record, replacing: nil)
            try follow(before.change, to: changeCounter)
            result.reverted += 1
        }
    }

    /// An earlier batch may have written what this undo has just brought back: its own undo must find it.
    func follow(_ old: Int64, to change: Int64) throws {
        for table in [
            "UPDATE batch_record SET after = ? WHERE after = ?", "UPDATE batch_added SET change = ? WHERE change = ?",
        ] {
            try database.statement(table).bind(1, change).bind(2, old).run()
            if database.changes > 0 { return }
        }
        try noteAdded(old, becomes: change, edited: false)
    }

    private func removeAdded(_ batch: Batch, _ result: inout UndoResult) throws {
        try buryAdded(batch, &result)
        // Rows of the batch that replaced none are those it added; the others have newer numbers by now.
        let added = try database.prepare(
            """
            SELECT zone, ifnull(name, local_id), type, local_id FROM record
            WHERE change BETWEEN ?2 AND ?3 AND hub_version IS NULL
            UNION ALL SELECT zone, ifnull(name, local_id), type, local_id FROM batch_added JOIN record USING (change)
            WHERE batch = ?1 AND NOT edited AND hub_version IS NULL
            """
        ).bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        while try added.step() {
            let id = RecordID(zone: added.text(0), name: added.text(1))
            try noteRemoved(id, type: added.text(2), localID: added.text(3))
            result.removed += 1
        }
        try database.statement("DELETE FROM record WHERE change BETWEEN ? AND ? AND hub_version IS NULL")
            .bind(1, batch.firstChange).bind(2, batch.lastChange).run()
        try database.statement(
            """
            DELETE FROM record WHERE change IN (SELECT change FROM batch_added WHERE batch = ? AND NOT edited)
            AND hub_version IS NULL
            """
        ).bind(1, batch.id).run()
        if result.removed > 0 {
            try database.execute("DELETE FROM local_key WHERE change NOT IN (SELECT change FROM record)")
        }
        let edited = try database.prepare(
            "SELECT zone, ifnull(name, local_id) FROM batch_added JOIN record USING (change) WHERE batch = ? AND edited"
        ).bind(1, batch.id)
        while try edited.step() {
            result.keptNewer.append(RecordID(zone: edited.text(0), name: edited.text(1)))
        }
    }

    /// What a hub has got since becomes a tombstone: it must go from the other devices too.
    private func buryAdded(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record
            WHERE hub_version IS NOT NULL AND deleted_at IS NULL AND local_only = 0 AND (change BETWEEN ?2 AND ?3
            OR change IN (SELECT change FROM batch_added WHERE batch = ?1 AND NOT edited))
            """
        ).bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        var added: [StoredRecord] = []
        while try query.step() { if let row = try ifSound({ try RowReader.record(query) }) { added.append(row) } }
        for old in added {
            let tombstone = WorkLineage.tombstone(of: old.record, at: timeAfter(old.record))
            try overwrite(old.change, with: tombstone, nextChange())
            result.removed += 1
        }
    }

    private func revertSettings(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare("SELECT key, value, modified_at FROM batch_setting WHERE batch = ?")
            .bind(1, batch.id)
        while try query.step() {
            if let value = query.optionalText(1) {
                try database.statement("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)")
                    .bind(1, query.text(0)).bind(2, value).bind(3, query.integer(2)).run()
            } else {
                try database.statement("DELETE FROM setting WHERE key = ?").bind(1, query.text(0)).run()
            }
            result.settings += 1
        }
    }

    /// Returns the batches whose kept files may go once this is committed.
    private func forgetOldBatches() throws -> [Int64] {
        let query = try database.prepare("SELECT id FROM batch ORDER BY id DESC LIMIT -1 OFFSET ?")
            .bind(1, Int64(Self.undoDepth))
        var old: [Int64] = []
        while try query.step() { old.append(query.integer(0)) }
        for id in old { try database.statement("DELETE FROM batch WHERE id = ?").bind(1, id).run() }
        return old
    }
}
