/// Decisions about files, in a batch that is undone, or undone again.
struct BatchDecisions {
    /// A conflict as it is before the batch is reverted.
    struct Item {
        let conflict: RecordID
        let paths: [String]
        let decision: FileDecision?
        /// Whether the batch has made that decision; else another one counts by now.
        let isOfBatch: Bool
    }

    let items: [Item]
    /// Whether it is the decision that is taken back, and not its undo.
    let isResolve: Bool

    /// The files of decisions of the batch that do not count any more: there is nothing to take back.
    var overruledPaths: Set<ByteName> {
        Set(items.filter { $0.decision != nil && !$0.isOfBatch }.flatMap { $0.paths.map { ByteName($0) } })
    }
}

extension Store {
    func fileDecisions(in batch: Batch) throws -> BatchDecisions {
        let choice = (try? JSON(parsing: batch.summary))?["choice"]?.string
        let query = try database.prepare(
            "SELECT \(Self.recordColumns) FROM batch_record WHERE batch = ? AND type = ?"
        ).bind(1, batch.id).bind(2, RecordType.conflict)
        var items: [BatchDecisions.Item] = []
        while try query.step() {
            guard let before = try ifSound({ try RowReader.record(query) })?.record,
                let now = try ifSound({ try record(before.id)?.record }) ?? nil,
                let conflict = try Conflict(now), conflict.isAboutAssets
            else { continue }
            items.append(
                BatchDecisions.Item(
                    conflict: now.id, paths: [conflict.existing, conflict.incoming], decision: conflict.fileDecision,
                    isOfBatch: conflict.fileDecision.map { choice == nil || $0.choice.rawValue == choice } ?? true))
        }
        return BatchDecisions(items: items, isResolve: choice != nil)
    }

    /// Links go where the files are by now, and what was decided waits again also where a sync has touched its conflict
    /// since. Must run inside `batch`, once the records and files of the batch are back.
    func followDecisions(_ decisions: BatchDecisions) throws {
        for item in decisions.items {
            guard var stored = try record(item.conflict) else { continue }
            if decisions.isResolve, item.isOfBatch, item.decision != nil,
                try Conflict.fileDecision(in: stored.record.fields) == item.decision
            {
                try put(Conflict.reopened(stored.record, at: timeAfter(stored.record)), replacing: stored)
                stored = try record(item.conflict) ?? stored
            }
            let now = try Conflict.fileDecision(in: stored.record.fields)
            if let now, try counts(now, at: item.paths) {
                try relink(by: now, at: item.paths)
            } else if let before = item.decision, try item.paths.allSatisfy(hasAsset) {
                try relink(by: before.undecided, at: item.paths, isTaken: before.choice == .keepIncoming)
                try followMoved(before.existing, from: item.paths[0], besides: before.incoming)
                try followMoved(before.incoming, from: item.paths[1], besides: before.existing)
            }
        }
    }

    /// Another file may have the path of a version by now. That version is back under a name of its own, and the records
    /// whose file it was link it there.
    private func followMoved(
        _ version: FileDecision.Version, from path: String, besides other: FileDecision.Version
    ) throws {
        guard try ifSound({ try asset(path)?.digest }) != version.digest else { return }
        let query = try database.prepare(
            "SELECT path FROM asset JOIN batch_asset USING (path) WHERE batch = ?1 AND asset.sha256 = ?2 ORDER BY path")
        guard try query.bind(1, currentBatch?.id).bind(2, version.digest.hex).step() else { return }
        let place = query.text(0)
        query.reset()
        try relink([ByteName(path): place]) { stored, _ in
            guard version.isOwned(by: stored.record) else { return .theirs }
            return other.isOwned(by: stored.record) ? .both : .ours
        }
    }
}
