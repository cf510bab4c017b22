/// Batches of the undo history whose change numbers cannot be right. An undo of one would take back what others did.
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

    /// Throws when it cannot be known what a batch did.
    func checkNumbers(of batch: Batch) throws {
        guard try oddBatches().contains(where: { $0.id == batch.id }) else { return }
        throw BackupError(
            .damaged, "nothing was taken back: \(batch.oddity)", at: path, remedy: Batch.giveUp)
    }
}

extension Batch {
    fileprivate static let giveUp =
        "'backup-tool store repair --accept' gives up the undo of this batch; then 'backup-tool undo' takes back older ones"

    fileprivate var oddity: String {
        "batch \(id), the \(kind) of \(source), claims the changes \(firstChange) to \(lastChange), which are not its own alone"
    }

    var oddNumbers: Finding { Finding(.recordChanged, .error, "batch \(id)", oddity, remedy: Self.giveUp) }
}

extension StoreRepair {
    /// What a batch did is told by its numbers alone, so there is nothing to mend them from.
    mutating func mendBatches() throws {
        guard accepts else { return }
        for batch in try store.oddBatches() {
            note(.accept, "batch \(batch.id)", "can no longer be undone")
            try store.forgetBatch(batch.id)
        }
    }
}
