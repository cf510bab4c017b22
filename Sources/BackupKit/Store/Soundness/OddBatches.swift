/// Batches of the undo history of which it cannot be known what they did: an undo of one would do something else.
extension Store {
    /// A batch has the numbers of its own transaction: given out by this store, and after those of all earlier batches. Where
    /// some clash, those with the most clashes are wrong; two that only clash with each other are both doubted.
    func oddBatches() throws -> [Batch] {
        let last = try lastChange()
        var sound = try batches()
        func isPossible(_ batch: Batch) -> Bool {
            (1..<RowReader.changeLimit).contains(batch.id) && batch.firstChange >= 1
                && batch.firstChange <= batch.lastChange && batch.lastChange <= last
        }
        var odd = sound.filter { !isPossible($0) }
        sound.removeAll { !isPossible($0) }
        // They come in the order of their ids, so where no neighbours clash, none do.
        while zip(sound, sound.dropFirst()).contains(where: { $0.lastChange >= $1.firstChange }) {
            let clashes = sound.indices.map { mine in
                sound.indices.count {
                    $0 < mine && sound[$0].lastChange >= sound[mine].firstChange
                        || $0 > mine && sound[$0].firstChange <= sound[mine].lastChange
                }
            }
            let most = clashes.max() ?? 0
            odd += zip(sound, clashes).filter { $0.1 == most }.map(\.0)
            sound = zip(sound, clashes).filter { $0.1 < most }.map(\.0)
        }
        return odd.sorted { $0.id < $1.id }
    }

    /// The batches of which a row of the history is not what the store has written.
    func changedBatches() throws -> Set<Int64> {
        if try StoreSchema.isOld(database) { return [] }
        return try Set(Witness.ofHistory.flatMap(changedRows).compactMap(\.batch)).union(batchesWithBrokenSeals())
            .union(batchesWithLostVersions())
    }

    /// Where the older version of a record is gone, the batch seems to have added the record, and its undo would remove it.
    private func batchesWithLostVersions() throws -> Set<Int64> {
        let query = try database.prepare(
            """
            SELECT id FROM batch WHERE undone_at IS NULL
            AND versions <> (SELECT count(*) FROM batch_record WHERE batch = id)
            """)
        var found: Set<Int64> = []
        while try query.step() { found.insert(query.integer(0)) }
        return found
    }

    /// Throws when it cannot be known what a batch did; with nil, which batches there were.
    func checkIsSound(_ batch: Batch?) throws {
        let doubted = try changedRows(of: Witness.batch).compactMap(\.batch).min()
        let changed = try doubted ?? changedBatches().first { $0 == batch?.id }
        let odd = try changed.map(Batch.change) ?? oddBatches().first { $0.id == batch?.id }?.oddity
        guard let odd else { return }
        throw BackupError(.damaged, "nothing was taken back: \(odd)", at: path, remedy: Batch.giveUp)
    }

    /// What is wrong with batches, by their numbers.
    func batchDamage() throws -> [(id: Int64, message: String)] {
        let changed = try changedBatches()
        let odd = try oddBatches().filter { !changed.contains($0.id) }
        return changed.sorted().map { ($0, Batch.change(of: $0)) } + odd.map { ($0.id, $0.oddity) }
    }
}

extension ChangedRow {
    /// That a row of the history is of.
    fileprivate var batch: Int64? { Int64(key.prefix { $0 != " " }) }
}

extension Batch {
    static let giveUp =
        "'backup-tool store repair --accept' gives up the undo of this batch; then 'backup-tool undo' takes back older ones"

    fileprivate var oddity: String {
        "batch \(id), the \(kind) of \(source), claims the changes \(firstChange) to \(lastChange), which are not its own alone"
    }

    fileprivate static func change(of id: Int64) -> String {
        "the undo history of batch \(id) \(DamagedRow.changed)"
    }
}

extension StoreRepair {
    /// What a batch did is told by its own rows alone, so there is nothing to mend them from.
    mutating func mendBatches() throws {
        guard accepts else { return }
        for batch in try store.batchDamage() {
            note(.accept, "batch \(batch.id)", "can no longer be undone")
            try store.forgetBatch(batch.id)
        }
        try Witness.refresh(Witness.ofHistory, store.database)
    }
}
