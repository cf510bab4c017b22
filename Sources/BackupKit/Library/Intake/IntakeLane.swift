/// The fast lane of an intake: records that are probably new are packed into batches, and while one batch is written the
/// next is read. What turns out to be known under another content takes the usual way, one by one.
final class IntakeLane {
    /// What the caller wants to hear of a record when it is known what came of it.
    typealias Heard = (Record, Decision) throws -> Void

    private static let batchBytes = 1 << 20

    private let intake: Intake
    private var batch: RecordBatch
    /// The one that is being written, or the one before, to be filled again.
    private var other: RecordBatch
    private var running: Aside<[RecordBatch.Verdict]>?
    /// Told of each record that was not simply new or known.
    private let heard: Heard

    init(_ intake: Intake, sorts: [(zone: String, type: String)], heard: @escaping Heard) {
        self.intake = intake
        self.heard = heard
        batch = RecordBatch(intake.store.hasher, sorts: sorts)
        other = RecordBatch(intake.store.hasher, sorts: sorts)
    }

    func add(
        sort: Int, createdAt: Timestamp, modifiedAt: Timestamp, localID: (inout [UInt8]) throws -> Void,
        fields: (inout [UInt8]) throws -> Void
    ) throws {
        try batch.add(
            sort: sort, createdAt: createdAt, modifiedAt: modifiedAt, localID: localID, fields: fields)
        if batch.bytes.count >= Self.batchBytes { try turn() }
    }

    /// The record of that local id that waits to be written.
    func waiting(_ localID: String) -> Record? { batch.row(localID: localID).map(batch.record) }

    /// Waits until everything so far is in the store. Nothing else may touch the store before.
    func flush() throws {
        if !batch.rows.isEmpty { try turn() }
        try settle()
    }

    private func turn() throws {
        try settle()
        try Interrupt.check()
        swap(&batch, &other)
        batch.removeAll()
        let (full, store) = (other, intake.store)
        running = Aside { try store.insertNew(of: full) }
    }

    /// Waits for the batch that is being written, and takes what is left of it. Then the store knows all but what waits.
    func settle() throws {
        guard let job = running else { return }
        running = nil
        let verdicts = try job.finish()
        var (new, known) = (0, 0)
        var others: [Int] = []
        for (row, verdict) in verdicts.enumerated() {
            switch verdict {
            case .new: new += 1
            case .known: known += 1
            case .other: others.append(row)
            }
        }
        intake.count(added: new, unchanged: known)
        for row in others {
            let record = other.record(row)
            try heard(record, intake.take(record).decision)
        }
    }
}
