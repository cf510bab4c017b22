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
    /// Attachments whose lost files the batch had set back: they stay, as after a repair.
    public var setBack = 0
    public var settings = 0
    /// Conflicts that wait again.
    public var conflicts = 0
    /// Records that somebody changed after the batch: they stay as they are.
    public private(set) var keptNewer: [RecordID] = []
    /// What the undo would have brought back of them; of one that the batch had added there is no such version.
    private(set) var versions: [RecordID: Record] = [:]
    /// The numbers of the rows that are as they were before the batch.
    var broughtBack: Set<Int64> = []
    /// Records whose older version was purged: they stay as they are.
    public var purged: [RecordID] = []
    /// Files that an app had changed since, whose versions stay under other names, and files that wait for room.
    public var fileFindings: [Finding] = []

    mutating func keep(_ version: Record) {
        keep(version.id)
        versions[version.id] = version
    }

    mutating func keep(_ id: RecordID) { keptNewer.append(id) }
}

/// Ends a transaction that wrote nothing worth keeping, or that was a rehearsal.
private struct NothingToKeep: Error {}

extension Store {
    /// How many batches can be taken back; older ones are forgotten, with the bytes they kept.
    static let undoDepth = 20
    /// The kind of a batch that a sync puts files in place with, and forgets at once.
    static let syncBatch = "sync"
    /// The same of a repair.
    static let mendBatch = "mend"
    static let batchesWithoutUndo: Set = [syncBatch, mendBatch]
    /// The number of a row in the undo history whose content was purged; no row of the store has it.
    static let purgedChange: Int64 = 0
    /// What is kept of each batch for its undo; all have a column `batch`.
    static let historyTables = ["batch_record", "batch_added", "batch_asset", "batch_setting", "batch_said"]

    /// Runs an import or restore: one transaction, recorded so that it can be undone. When `body` changed nothing, or
    /// says so (a dry run), there is no batch to undo, and nothing is written; after an import of nothing new, only what its
    /// file holds. With `notesIdle` an undo will know that there was such a command.
    public func batch<Result>(
        kind: String, source: String, dryRun: Bool = false, notesIdle: Bool = false,
        _ body: () throws -> (Result, summary: String)
    ) throws -> (result: Result, batch: Batch?) {
        var outcome: Result?
        var recorded: Batch?
        (fileFindings, takenNames) = ([], nil)
        hasNewMarks = false
        do {
            try write {
                var batch = try begin(kind, source)
                currentBatch = batch
                rehearsal = dryRun || isPlaying
                defer {
                    currentBatch = nil
                    rehearsal = isPlaying
                }
                let (result, summary) = try body()
                outcome = result
                let isEmpty = changeCounter < batch.firstChange
                if dryRun || isEmpty && !hasNewMarks { throw NothingToKeep() }
                if isEmpty {
                    return try forgetBatch(batch.id)
                }
                batch.lastChange = changeCounter
                batch.summary = summary
                try database.statement(
                    """
                    UPDATE batch SET last_change = ?1, summary = ?2,
                    versions = (SELECT count(*) FROM batch_record WHERE batch = ?3) WHERE id = ?3
                    """
                ).bind(1, changeCounter).bind(2, summary).bind(3, batch.id).run()
                try forgetOldBatches()
                try syncNewBlobs()
                recorded = batch
            }
        } catch {
            hasNewBlobs = false
            // The rows are back, and their files were not touched. The next writer collects what this one cannot.
            if !dryRun, !isPlaying { _ = try? collectBlobs() }
            guard error is NothingToKeep else { throw error }
        }
        hasNewBlobs = false
        if recorded != nil, !isPlaying { noteUnsettledFiles(collecting: kind == Self.syncBatch ? .settled : .all) }
        if recorded != nil, !Self.batchesWithoutUndo.contains(kind) {
            try forgetIdle()
        } else if notesIdle, recorded == nil, !dryRun {
            try noteIdle(kind: kind, source: source)
        }
        guard let outcome else { throw BackupError(.failed, "the batch ended without a result", at: path) }
        return (outcome, recorded)
    }

    func syncNewBlobs() throws {
        if hasNewBlobs { try assets.openFolder(Self.blobFolder).sync() }
    }

    /// The batch is done, whatever happens here: readers need nothing of it, and the next writer finishes it.
    private func noteUnsettledFiles(collecting: Collecting) {
        do { fileFindings += try settleFiles(collecting: collecting) } catch {
            fileFindings.append(
                Finding(
                    .skipped, .warning, assetFolder, "the files are not in line with the store yet: \(error)",
                    remedy: "nothing is lost, and exports have them; the next command that writes tries again"))
        }
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

    private static let nextBatch =
        "SELECT max("
        + [("id", "batch"), ("batch", "batch_record"), ("batch", "batch_asset")].map { column, table in
            // A damaged number is none to go on from.
            "(SELECT ifnull(max(\(column)), 0) FROM \(table) WHERE \(column) < \(RowReader.changeLimit))"
        }.joined(separator: ", ") + ") + 1"

    private func begin(_ kind: String, _ source: String) throws -> Batch {
        let id = try database.integer(Self.nextBatch)
        let batch = Batch(
            id: id, kind: kind, source: source, startedAt: clock.now(), firstChange: changeCounter + 1,
            lastChange: changeCounter, summary: "", undoneAt: nil)
        try database.statement("INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, '', NULL, NULL)")
            .bind(1, id).bind(2, kind).bind(3, source).bind(4, batch.startedAt.milliseconds)
            .bind(5, batch.firstChange).bind(6, batch.lastChange).run()
        return batch
    }

    /// Keeps the row as it was before the current batch changed it for the first time.
    func remember(_ old: StoredRecord, becomes change: Int64?) throws {
        guard let batch = currentBatch else { return try noteEdit(of: old.change, becomes: change) }
        if old.change >= batch.firstChange {
            // Changed a second time by the same batch: only its newest number is needed.
            try database.statement(Self.renumberRow).bind(1, change).bind(2, batch.id).bind(3, old.change).run()
            return
        }
        let insert = try database.statement(Self.rememberRow)
        insert.bind(1, batch.id).bind(2, change)
        Self.bind(old.record, change: old.change, to: insert, from: 3)
        try insert.bind(16, hasher.row(old.record, old.change)).run()
    }

    private static let rememberRow = Query(
        """
        INSERT INTO batch_record (batch, after, \(keptColumns), seal)
        VALUES (?1,?2,?,?,?,?,?,?,?,?,?,?,?,?,?,?, \(HistorySeal.version(batch: "?1", after: "?2")))
        """)
    private static let renumberRow = Query(
        "UPDATE batch_record SET after = ?1, seal = \(HistorySeal.version(movedTo: "?1")) WHERE batch = ?2 AND after = ?3"
    )

    /// A person changes a row. When a batch added it, the undo of that batch has to say that it stays.
    func noteEdit(of old: Int64, becomes change: Int64?) throws {
        // A row that is gone for good needs no word.
        guard let change else { return }
        try database.statement(
            """
            UPDATE OR REPLACE batch_added SET change = ?1, edited = 1,
            seal = \(HistorySeal.added(movedTo: "?1", edited: "1")) WHERE change = ?2
            """
        ).bind(1, change).bind(2, old).run()
        if database.changes > 0 { return }
        let replaced = try database.statement("SELECT 1 FROM batch_record WHERE after = ?").bind(1, old)
        defer { replaced.reset() }
        if try !replaced.step() { try noteAdded(old, becomes: change, edited: true) }
    }

    /// Follows a row that a batch added to its new number. A damaged batch may claim the numbers of others, too: it claims
    /// more than they have.
    func noteAdded(_ old: Int64, becomes change: Int64, edited: Bool) throws {
        try database.statement(
            """
            INSERT OR REPLACE INTO batch_added (change, edited, batch, seal)
            SELECT ?1, ?2, id, \(HistorySeal.added(batch: "id", change: "?1", edited: "?2")) FROM batch
            WHERE undone_at IS NULL AND first_change <= ?3 AND last_change >= ?3
            ORDER BY last_change - first_change LIMIT 1
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

    /// The first attachments that a batch removed and that are not there again; nil when there are none.
    public func filesRemoved(by batch: Batch) throws -> String? {
        let query = try database.prepare(
            """
            SELECT path FROM batch_asset WHERE batch = ? AND sha256 IS NOT NULL AND path NOT IN (SELECT path FROM asset)
            ORDER BY path
            """
        ).bind(1, batch.id)
        var paths: [String] = []
        while try query.step() { paths.append(query.text(0)) }
        return paths.isEmpty ? nil : firstNames(paths)
    }

    /// Only so many batches can be taken back.
    private func forgetOldBatches() throws {
        for isUndo in ["=", "<>"] {
            let query = try database.prepare(
                "SELECT id FROM batch WHERE kind \(isUndo) ? ORDER BY id DESC LIMIT -1 OFFSET ?"
            ).bind(1, Self.undoBatch).bind(2, Int64(Self.undoDepth))
            var old: [Int64] = []
            while try query.step() { old.append(query.integer(0)) }
            for id in old { try forgetBatch(id) }
        }
    }

    /// Takes a batch out of the undo history, with all that is kept for it. Must run inside `write`.
    ///
    /// SQLite is not asked to do it: whoever has it enforce our foreign keys has it enforce those of other programs' tables,
    /// too, and then no row of ours can go that one of theirs names.
    func forgetBatch(_ id: Int64) throws {
        for table in Self.historyTables {
            try database.statement("DELETE FROM \(table) WHERE batch = ?").bind(1, id).run()
        }
        try database.statement("UPDATE damaged SET batch = NULL WHERE batch = ?").bind(1, id).run()
        try database.statement("DELETE FROM batch WHERE id = ?").bind(1, id).run()
    }
}
