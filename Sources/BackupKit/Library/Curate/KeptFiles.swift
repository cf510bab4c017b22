/// Which of the files that the undo history keeps are still meant by a version of a record.
///
/// A link names a path, and a path has one file after the other. A version means those that lay there while it was what its
/// record said.
struct KeptFiles {
    private struct Use {
        let from: Int64
        let to: Int64
    }

    private let store: Store
    private var uses: [ByteName: [Use]] = [:]
    /// When the batches of the history wrote, by change numbers.
    private let batches: [ClosedRange<Int64>]
    /// The first change of the batch that has made what has this number by now.
    private var made: [Int64: Int64] = [:]

    /// In the transaction of a purge, once it has cleared the versions that go.
    init(_ store: Store) throws {
        self.store = store
        batches = try store.batches().filter { $0.firstChange <= $0.lastChange }.map { $0.firstChange...$0.lastChange }
        try readMade()
        try readUses()
    }

    private mutating func readMade() throws {
        let query = try store.database.prepare(
            """
            SELECT change, first_change FROM batch_added JOIN batch ON id = batch
            UNION ALL SELECT after, first_change FROM batch_record JOIN batch ON id = batch WHERE after IS NOT NULL
            """)
        while try query.step() {
            made[query.integer(0)] = min(query.integer(1), made[query.integer(0)] ?? .max)
        }
    }

    private mutating func readUses() throws {
        let query = try store.database.prepare(
            """
            SELECT change, \(Int64.max), type, fields FROM record WHERE deleted_at IS NULL
            UNION ALL SELECT change, first_change, type, fields FROM batch_record JOIN batch ON id = batch
            WHERE \(Store.hasContent)
            """)
        while try query.step() {
            guard let fields = try store.ifReadable({ try Fields.parse(query.text(3)) }) else { continue }
            let use = Use(from: start(of: query.integer(0)), to: query.integer(1))
            for path in RecordFiles.paths(in: fields) { uses[ByteName(path), default: []].append(use) }
        }
    }

    /// Since when a version has been there; always, where that is not known.
    private func start(of change: Int64) -> Int64 {
        made[change] ?? (batches.contains { $0.contains(change) } ? change : 0)
    }

    /// Removes from the history the files of a path that nothing means any more. Returns whether bytes were kept for one.
    func removeUnmeant(at path: String) throws -> Bool {
        let now = try store.ifSound({ try store.asset(path) })??.digest.hex
        let query = try store.database.prepare(
            """
            SELECT batch, first_change, sha256, kept FROM batch_asset JOIN batch ON id = batch WHERE path = ?
            ORDER BY batch
            """
        ).bind(1, path)
        var (since, unmeant, hasBytes) = (Int64(0), [Int64](), false)
        while try query.step() {
            let before = query.integer(1)
            defer { since = before }
            guard !query.isNull(2), query.optionalText(3) ?? query.text(2) != now,
                !(uses[ByteName(path)] ?? []).contains(where: { $0.from < before && $0.to > since })
            else { continue }
            unmeant.append(query.integer(0))
            hasBytes = hasBytes || !query.isNull(3)
        }
        query.reset()
        for batch in unmeant {
            try store.database.statement("DELETE FROM batch_asset WHERE batch = ? AND path = ?")
                .bind(1, batch).bind(2, path).run()
        }
        return hasBytes
    }
}
