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
    /// Records that somebody changed after the batch: they stay as they are.
    public var keptNewer: [RecordID] = []
}

/// Ends a transaction that wrote nothing worth keeping, or that was a rehearsal.
private struct NothingToKeep: Error {}

extension Store {
    /// How many batches can be taken back; older ones are forgotten, with the bytes they kept.
    static let undoDepth = 20

    /// Runs an import or restore: one transaction, recorded so that it can be undone. When `body` changed nothing, or
    /// says so (a dry run), nothing at all is written.
    public func batch<Result>(
        kind: String, source: String, dryRun: Bool = false, _ body: () throws -> (Result, summary: String)
    ) throws -> (result: Result, batch: Batch?) {
        var outcome: Result?
        var recorded: Batch?
        do {
            try write {
                let id = try database.integer("SELECT ifnull(max(id), 0) + 1 FROM batch")
                try database.statement("INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, '', NULL)")
                    .bind(1, id).bind(2, kind).bind(3, source).bind(4, clock.now().milliseconds)
                    .bind(5, changeCounter + 1).bind(6, changeCounter).run()
                var batch = Batch(
                    id: id, kind: kind, source: source, startedAt: clock.now(), firstChange: changeCounter + 1,
                    lastChange: changeCounter, summary: "", undoneAt: nil)
                currentBatch = batch
                defer { currentBatch = nil }
                let (result, summary) = try body()
                outcome = result
                if dryRun || changeCounter < batch.firstChange { throw NothingToKeep() }
                batch.lastChange = changeCounter
                batch.summary = summary
                try database.statement("UPDATE batch SET last_change = ?, summary = ? WHERE id = ?")
                    .bind(1, changeCounter).bind(2, summary).bind(3, id).run()
                recorded = batch
            }
        } catch is NothingToKeep {}
        guard let outcome else { throw BackupError(.failed, "the batch ended without a result", at: path) }
        if recorded != nil { try forgetOldBatches() }
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

    /// Keeps the row as it was before the current batch changed it for the first time.
    func remember(_ old: StoredRecord, becomes change: Int64?) throws {
        guard let batch = currentBatch else { return }
        if old.change >= batch.firstChange {
            // Changed a second time by the same batch: only its newest number is needed.
            try database.statement("UPDATE batch_record SET after = ? WHERE batch = ? AND after = ?")
                .bind(1, change).bind(2, batch.id).bind(3, old.change).run()
            return
        }
        let insert = try database.statement(
            "INSERT INTO batch_record (batch, after, \(Self.recordColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
        insert.bind(1, batch.id).bind(2, change)
        Self.bind(old.record, change: old.change, to: insert, from: 3)
        try insert.run()
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
        guard let batch = try batches().last(where: { $0.undoneAt == nil }) else {
            throw BackupError(.failed, "there is nothing to undo", at: path)
        }
        var result = UndoResult(batch: batch)
        do {
            try write {
                try revertRecords(batch, &result)
                try removeAdded(batch, &result)
                try revertSettings(batch, &result)
                try revertAssetRows(batch, &result)
                try database.statement("DELETE FROM conflict WHERE batch = ?").bind(1, batch.id).run()
                try database.statement("UPDATE batch SET undone_at = ? WHERE id = ?")
                    .bind(1, clock.now().milliseconds).bind(2, batch.id).run()
                if dryRun { throw NothingToKeep() }
            }
        } catch is NothingToKeep { return result }
        try finishUndoneAssets()
        return result
    }

    private func revertRecords(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT \(Self.recordColumns), after FROM batch_record WHERE batch = ? ORDER BY after"
        ).bind(1, batch.id)
        while try query.step() {
            let before = try Self.storedRecord(query).record
            guard let after = query.optionalInteger(13) else {
                try put(before, replacing: nil)
                result.reverted += 1
                continue
            }
            let update = try database.statement(
                "UPDATE record SET (\(Self.recordColumns)) = (?,?,?,?,?,?,?,?,?,?,?,?,?) WHERE change = ?")
            Self.bind(before, change: nextChange(), to: update)
            try update.bind(14, after).run()
            if database.changes == 0 { result.keptNewer.append(before.id) } else { result.reverted += 1 }
        }
    }

    private func removeAdded(_ batch: Batch, _ result: inout UndoResult) throws {
        // Rows of the batch that replaced none are those it added; rows that were changed since have newer numbers.
        let range = "change BETWEEN \(batch.firstChange) AND \(batch.lastChange)"
        let added = try database.prepare(
            "SELECT zone, ifnull(name, local_id), type, local_id FROM record WHERE \(range)")
        let note = try database.prepare("INSERT INTO removed VALUES (?, ?, ?, ?, ?)")
        while try added.step() {
            try note.bind(1, nextChange()).bind(2, added.text(0)).bind(3, added.text(1)).bind(4, added.text(2))
                .bind(5, added.text(3)).run()
            result.removed += 1
        }
        try database.execute("DELETE FROM record WHERE \(range)")
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

    private func forgetOldBatches() throws {
        let known = try batches()
        guard known.count > Self.undoDepth else { return }
        for batch in known.dropLast(Self.undoDepth) {
            try database.write {
                try database.statement("DELETE FROM batch WHERE id = ?").bind(1, batch.id).run()
            }
            try Directory.removeTree("\(assetFolder)/\(Self.keptFolder)/\(batch.id)")
        }
    }
}
