/// Takes batches back, the last one first. An undo is a batch, too, so that it can be taken back itself: a redo.
extension Store {
    public static let undoBatch = "undo"
    static let redoBatch = "redo"
    static let decisionBatch = "resolve"
    static let dedupBatch = "dedup"

    /// Takes back the last batch that was not undone yet. What was changed since by somebody else stays, and is listed.
    ///
    /// After a command that changed nothing, the batch must be named: nobody who undoes that command means an older one.
    public func undoLast(_ id: Int64? = nil, dryRun: Bool = false) throws -> UndoResult {
        guard let batch = try undoable() else {
            try checkIsSound(nil)
            throw BackupError(
                .failed, "there is nothing to undo", at: path, remedy: "'backup-tool undo --list' shows what was done")
        }
        if let id, id != batch.id {
            let isKnown = try batches().contains { $0.id == id }
            throw BackupError(
                isKnown ? .refused : .failed,
                isKnown ? "batch \(id) is not the last one: that is \(batch.id)" : "there is no batch \(id)", at: path,
                remedy:
                    "'backup-tool undo --list' shows all; they are taken back one after the other, the last one first")
        }
        if id == nil, let idle = try idleCommand(), idle.at >= batch.startedAt {
            throw BackupError(
                .refused,
                "the last command, the \(idle.kind) of \(idle.source), changed nothing, so there is nothing to take back",
                at: path,
                remedy: """
                    \(TypedCommand.quoted("undo", options: ["batch": "\(batch.id)"])) takes back what was done before it: \
                    the \(batch.kind) of \(batch.source), \(batch.startedAt.iso8601)
                    """)
        }
        return try revert(batch, as: Self.undoBatch, dryRun: dryRun)
    }

    /// Takes back the last undo. What was changed since by somebody else stays, and is listed.
    public func redoLast(dryRun: Bool = false) throws -> UndoResult {
        let changes = try batches().filter { !Self.batchesWithoutUndo.contains($0.kind) }
        func nothing(_ reason: String = "") -> BackupError {
            BackupError(
                .failed, "there is nothing to redo\(reason)", at: path,
                remedy: "'backup-tool undo --list' shows what was done")
        }
        guard let last = changes.last(where: { $0.undoneAt == nil }) else {
            try checkIsSound(nil)
            throw nothing()
        }
        // What was redone is no newer work.
        let newest = changes.last { $0.undoneAt == nil && $0.kind != Self.redoBatch }
        guard let newest, newest.kind == Self.undoBatch else {
            try checkIsSound(nil)
            let what = last.kind == Self.redoBatch ? "the \(last.source)" : last.source
            throw nothing(": the last change is the \(last.kind) of \(what)")
        }
        let ofUndo = [Self.undoBatch, Self.redoBatch]
        guard !changes.contains(where: { $0.id > newest.id && !ofUndo.contains($0.kind) }) else {
            throw nothing(": something else was done since the undo of \(newest.source)")
        }
        return try revert(newest, as: Self.redoBatch, dryRun: dryRun)
    }

    /// The batch that an undo takes back.
    public func undoable() throws -> Batch? {
        let others = Self.batchesWithoutUndo.union([Self.undoBatch])
        return try batches().last { $0.undoneAt == nil && !others.contains($0.kind) }
    }

    private func revert(_ batch: Batch, as kind: String, dryRun: Bool) throws -> UndoResult {
        try checkPagesAndIndexes()
        try checkPurges()
        try checkIsSound(batch)
        try checkNothingGoes(with: batch, as: kind)
        var result = UndoResult(batch: batch)
        // Both an undo and its redo are of the work itself.
        let isOfWork = ![Self.undoBatch, Self.redoBatch].contains(batch.kind)
        _ = try self.batch(
            kind: kind, source: isOfWork ? "\(batch.kind) of \(batch.source)" : batch.source, dryRun: dryRun
        ) {
            let waiting = Set(try conflicts().map(\.id))
            let letGo = try filesLetGo(by: batch)
            let decisions = try fileDecisions(in: batch)
            try revertChanged(batch, &result)
            try removeAdded(batch, &result)
            try reinsertRemoved(batch, &result)
            if kind == Self.redoBatch, let left = result.keptNewer.first { try checkIsWhole(batch, without: left) }
            try revertSettings(batch, &result)
            try revertAssets(batch, letGo, but: decisions.overruledPaths, &result)
            try followDecisions(decisions)
            try noteConflicts(settledBy: batch)
            result.conflicts = try Set(conflicts().map(\.id)).subtracting(waiting).count
            try returnSaid(batch)
            let rows = try revertSetAside(batch)
            let summary = JSON.object([JSON.Member(Self.damagedRows, .array(rows.map { .string($0) }))]).compact
            for table in Self.historyTables {
                try database.statement("DELETE FROM \(table) WHERE batch = ?").bind(1, batch.id).run()
            }
            try database.statement("UPDATE batch SET undone_at = ? WHERE id = ?")
                .bind(1, clock.now().milliseconds).bind(2, batch.id).run()
            // Also an undo that finds everything changed since is one.
            _ = nextChange()
            return ((), summary: summary)
        }
        result.fileFindings = fileFindings
        return result
    }

    /// What a decision or `dedup` deletes stands in another record from then on. Without that one it would be lost.
    private func checkIsWhole(_ undo: Batch, without left: RecordID) throws {
        guard Self.isOfDecision(undo.source) else { return }
        let isDecision = undo.source.hasPrefix("\(Self.decisionBatch) of ")
        throw BackupError(
            .failed,
            "nothing was redone: this record was changed or deleted since, and the rest alone would lose data",
            at: left.description,
            remedy: isDecision
                ? "'backup-tool conflicts list' shows what waits; decide again"
                : "'backup-tool dedup' merges what is there now")
    }

    /// Whether that is the source of an undo or a redo of a decision or of `dedup`.
    private static func isOfDecision(_ source: String) -> Bool {
        decisionKinds.contains { source.hasPrefix("\($0) of ") }
    }

    private static let decisionKinds = [decisionBatch, dedupBatch]

    /// Rows that the batch changed get their old content under a new number, unless somebody changed them since.
    private func revertChanged(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT \(Self.recordColumns), after, row_hash FROM batch_record WHERE batch = ? AND after IS NOT NULL ORDER BY rowid"
        ).bind(1, batch.id)
        let copies = try localCopies(addedBy: batch)
        while try query.step() {
            let kept = try isPurged(query) ? nil : keptVersion(query, hash: 14)
            guard let before = kept else {
                if isPurged(query) { notePurged(query, &result) }
                if let now = try ifSound({ try stored(change: query.integer(13)) }) ?? nil {
                    // A new number, or it would count as added by the batch; and a version for the redo, or it would count as
                    // added by the undo.
                    try remember(now, becomes: changeCounter + 1)
                    try rewrite(now, as: now.record)
                }
                continue
            }
            let (after, change) = (query.integer(13), nextChange())
            let now = try ifSound({ try stored(change: after) }) ?? nil
            if let now { try remember(now, becomes: change) }
            var back = before.record
            if let now { back = try returning(back, over: now.record, change: after, of: batch) }
            // The row may have got another id since, and another record its old one.
            if let now, now.record.id != back.id, try record(back.id) != nil {
                back = back.identified(as: now.record.id.name)
            }
            if try overwrite(after, knownAs: (now ?? before).record.localID, with: back, change) {
                try follow(before.change, to: change)
                result.broughtBack.insert(change)
                if before.record.type != RecordType.conflict { result.reverted += 1 }
            } else if before.record.type != RecordType.conflict {
                result.keep(before.record)
                // The batch that had added it will not find it either.
                try noteEdit(of: before.change, becomes: standing(for: before.record)?.change)
                try keepCopies(of: before.record, among: copies)
            }
        }
    }

    /// The version that comes back. An undo is an act of now: what others have heard of is overwritten or outlived, or a file, a
    /// backup, a hub that is made anew or another device would make it the newest again.
    private func returning(
        _ before: Record, over other: Record, change: Int64, of batch: Batch
    ) throws -> Record {
        guard !before.isLocalOnly, !other.isLocalOnly else { return before }
        if other.isDeleted, !before.isDeleted {
            if try isKnownToHub(change) { return try before.outliving(other) }
            // A delete that a restore has brought comes again when that is repeated.
            if other.modifiedAt >= batch.startedAt { try noteOutlived(other) }
            return before
        }
        // What a decision has put together comes apart as it was: later than the decision of another device, one part would hold
        // and the other would not.
        let endsDecision =
            Self.decisionKinds.contains(batch.kind) || batch.kind == Self.redoBatch && Self.isOfDecision(batch.source)
        guard try !endsDecision && !other.isDeleted && isOnHub(change) else { return before }
        let time = timeAfter(other, before)
        return before.isDeleted
            ? before.joined(withTombstone: try tombstone(of: other, at: time))
            : try before.written(at: time, over: other)
    }

    /// The row of a record, or the one that a sync has made of it and of another device's.
    private func standing(for record: Record) throws -> StoredRecord? {
        let own = try ifSound { try self.record(record.id) } ?? nil
        return try own ?? soundRecords(localID: record.localID).first { $0.record.type == record.type }
    }

    /// Where somebody has deleted a record since, the copy for this device that the batch made of it is all that is left.
    private func keepCopies(of record: Record, among copies: [StoredRecord]) throws {
        if record.isDeleted || record.isLocalOnly { return }
        for copy in copies where try Self.isVersion(copy.record, of: record) {
            let isAlive = try soundRecords(localID: copy.record.localID).contains {
                try !$0.record.isDeleted && !$0.record.isLocalOnly && Self.isVersion($0.record, of: record)
            }
            if isAlive { continue }
            // Under a new number it does not count as added by the batch.
            try overwrite(copy.change, knownAs: copy.record.localID, with: copy.record, nextChange())
        }
    }

    /// Another work may have got the id of a publication since, and its copy another one.
    private static func isVersion(_ one: Record, of other: Record) throws -> Bool {
        guard one.type == other.type else { return false }
        return try one.type == RecordType.publication
            ? WorkLineage.isOneRecord(one, other) : one.localID == other.localID
    }

    /// What the batch has made for this device alone.
    private func localCopies(addedBy batch: Batch) throws -> [StoredRecord] {
        let query = try database.prepare("SELECT \(Self.recordColumns) \(Self.rowsAdded) AND local_only = 1")
            .bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        var copies: [StoredRecord] = []
        while try query.step() { if let row = try ifSound({ try RowReader.record(query) }) { copies.append(row) } }
        return copies
    }

    /// A purge has taken the version out of the history, and its number with it.
    private func isPurged(_ row: Statement) -> Bool { row.integer(0) == Self.purgedChange }

    private func notePurged(_ row: Statement, _ result: inout UndoResult) {
        guard RecordType.isCounted(row.text(3)) else { return }
        result.purged.append(RecordID(zone: row.text(1), name: row.text(row.isNull(2) ? 4 : 2)))
    }

    /// Rows that the batch took out come back, unless somebody has put another in their place.
    private func reinsertRemoved(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT \(Self.keptColumns) FROM batch_record WHERE batch = ? AND after IS NULL ORDER BY rowid"
        ).bind(1, batch.id)
        var back: [String] = []
        while try query.step() {
            if isPurged(query) {
                notePurged(query, &result)
                continue
            }
            guard let before = try keptVersion(query, hash: 13) else { continue }
            if try isCopyOfKept(before.record, result) { continue }
            if try ifSound({ try record(before.record.id) }).map({ $0 != nil }) ?? true {
                result.keep(before.record)
                continue
            }
            try put(before.record, replacing: nil)
            try follow(before.change, to: changeCounter)
            result.broughtBack.insert(changeCounter)
            if before.record.type == RecordType.publication { back.append(before.record.localID) }
            if before.record.type != RecordType.conflict { result.reverted += 1 }
        }
        try noteBrought(back, areThere: true)
    }

    /// A copy for this device of a record that stays in the cloud, because it was changed since.
    private func isCopyOfKept(_ record: Record, _ result: UndoResult) throws -> Bool {
        guard record.isLocalOnly else { return false }
        return try soundRecords(localID: record.localID).contains {
            try !$0.record.isDeleted && result.keptNewer.contains($0.record.id)
                && Self.isVersion($0.record, of: record)
        }
    }

    /// An earlier batch may have written what this undo has just brought back: its own undo must find it.
    func follow(_ old: Int64, to change: Int64) throws {
        var isNoted = false
        for update in [
            "UPDATE batch_record SET after = ?1, seal = \(HistorySeal.version(movedTo: "?1")) WHERE after = ?2",
            "UPDATE batch_added SET change = ?1, seal = \(HistorySeal.added(movedTo: "?1")) WHERE change = ?2",
        ] {
            try database.statement(update).bind(1, change).bind(2, old).run()
            isNoted = isNoted || database.changes > 0
        }
        if isNoted { return }
        try noteAdded(old, becomes: change, edited: false)
    }

    private static let rowsAdded = """
        FROM record WHERE \(HubSeal.version) IS NULL AND (change BETWEEN ?2 AND ?3
        OR change IN (SELECT change FROM batch_added WHERE batch = ?1 AND NOT edited))
        AND NOT EXISTS (SELECT 1 FROM purged WHERE purged.zone = record.zone AND deleted_at IS NOT NULL
        AND purged.name = ifnull(record.name, record.local_id))
        """

    /// Rows of the batch that replaced none are those it added; the others have newer numbers by now.
    private func removeAdded(_ batch: Batch, _ result: inout UndoResult) throws {
        try buryAdded(batch, &result)
        func bound(_ sql: String) throws -> Statement {
            try database.prepare(sql).bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        }
        let added = try bound("SELECT zone, ifnull(name, local_id), type, local_id \(Self.rowsAdded)")
        var (isAnyRemoved, gone) = (false, [String]())
        while try added.step() {
            isAnyRemoved = true
            if added.text(2) == RecordType.publication { gone.append(added.text(3)) }
            let id = RecordID(zone: added.text(0), name: added.text(1))
            try noteRemoved(id, type: added.text(2), localID: added.text(3))
            if added.text(2) != RecordType.conflict { result.removed += 1 }
        }
        if isAnyRemoved {
            let keep = try bound(
                """
                INSERT INTO batch_record (batch, after, \(Self.keptColumns), seal)
                SELECT ?4, NULL, \(Self.keptColumns), \(HistorySeal.version(batch: "?4", after: "NULL")) \(Self.rowsAdded)
                """
            ).bind(4, currentBatch?.id)
            do { try keep.run() } catch let error as BackupError where error.isVerdict {
                // Only a damaged row is one that another table does not take.
                let rows = try bound("SELECT \(Self.recordColumns) \(Self.rowsAdded)")
                while try rows.step() { _ = try RowReader.record(rows) }
                throw error
            }
            try bound("DELETE FROM local_key WHERE change IN (SELECT change \(Self.rowsAdded))").run()
            try bound("DELETE \(Self.rowsAdded)").run()
            try noteBrought(gone, areThere: false)
        }
        let edited = try database.prepare(
            """
            SELECT zone, ifnull(name, local_id) FROM batch_added JOIN record USING (change)
            WHERE batch = ? AND edited AND type <> ?
            """
        ).bind(1, batch.id).bind(2, RecordType.conflict)
        while try edited.step() {
            result.keep(RecordID(zone: edited.text(0), name: edited.text(1)))
        }
    }

    /// What a hub has got since becomes a tombstone: it must go from the other devices too.
    private func buryAdded(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record
            WHERE \(HubSeal.version) IS NOT NULL AND deleted_at IS NULL AND local_only = 0 AND (change BETWEEN ?2 AND ?3
            OR change IN (SELECT change FROM batch_added WHERE batch = ?1 AND NOT edited))
            """
        ).bind(1, batch.id).bind(2, batch.firstChange).bind(3, batch.lastChange)
        var added: [StoredRecord] = []
        while try query.step() { if let row = try ifSound({ try RowReader.record(query) }) { added.append(row) } }
        for old in added {
            try put(tombstone(of: old.record, at: timeAfter(old.record)), replacing: old)
            if old.record.type != RecordType.conflict { result.removed += 1 }
        }
    }

    private func revertSettings(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare("SELECT key, value, modified_at FROM batch_setting WHERE batch = ?")
            .bind(1, batch.id)
        var before: [(key: String, value: String?, time: Int64)] = []
        while try query.step() { before.append((query.text(0), query.optionalText(1), query.integer(2))) }
        for (key, value, time) in before {
            try rememberSetting(key, try storedSetting(key))
            if let value {
                try database.statement("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)")
                    .bind(1, key).bind(2, value).bind(3, time).run()
            } else {
                try database.statement("DELETE FROM setting WHERE key = ?").bind(1, key).run()
            }
            result.settings += 1
        }
    }

    private static let damagedRows = "damaged"

    /// Damaged rows that the batch had set aside go. Returns them: a redo brings them back from the undo's summary.
    private func revertSetAside(_ batch: Batch) throws -> [String] {
        let query = try database.prepare("SELECT line FROM damaged WHERE batch = ? ORDER BY line").bind(1, batch.id)
        var lines: [String] = []
        while try query.step() { lines.append(query.text(0)) }
        try database.statement("DELETE FROM damaged WHERE batch = ?").bind(1, batch.id).run()
        for line in (try? JSON(parsing: batch.summary))?[Self.damagedRows]?.array?.compactMap(\.string) ?? [] {
            _ = try setAside(DamagedRow(line: line))
        }
        return lines
    }
}
