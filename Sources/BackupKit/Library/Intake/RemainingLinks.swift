/// The files of the records that `--mode replace` leaves as they are in the store.
///
/// Files are placed before the records that link them, and which records stay is known only when all were judged. So the
/// records are taken once to see that, by the very code of the restore, and what was written is taken back.
struct RemainingLinks {
    /// What records name that stay beside the backup's. A file of the backup never takes the place of one of these.
    private(set) var own: Set<ByteName> = []
    /// Also what records of kinds name that are not restored. None of these is removed.
    private(set) var all: Set<ByteName> = []

    init() {}

    /// `take` takes the records of the backup, and removes others. `isAskedFor`: somebody has named the file itself. Must run
    /// inside `batch`.
    init(
        beside intake: Intake, kinds: Set<Kind>, isAskedFor: (String) -> Bool, _ take: (Intake) throws -> Void
    ) throws {
        let store = intake.store
        guard intake.overwrite, intake.policy != .quarantine, try store.hasAssets() else { return }
        let joined: Set<RecordID>
        (joined, all, own) = try store.attempt {
            let trial = intake.beginTrial()
            try trial.findUnsoundRows()
            try take(trial)
            let books = trial.replacing
            func stays(_ namer: LivingLinks.Namer) -> Bool {
                guard !namer.isLocalOnly, trial.touched.contains(namer.id) else { return true }
                return books.left.contains(namer.id)
            }
            var all = LivingLinks(store, of: stays)
            var own = LivingLinks(store) { stays($0) && ($0.isLocalOnly || kinds.contains(Kind(recordType: $0.type))) }
            return try (books.joined, all.all(), own.all())
        }
        for id in joined {
            guard let stored = try store.record(id) else { continue }
            // The backup's version may name files of the store's other records, which are not its own.
            let links = try Store.links(of: stored.record).map { ByteName($0) }
            all.formUnion(links)
            own.formUnion(links)
        }
        guard intake.isAskedFor, !own.isEmpty else { return }
        var kept = LivingLinks(store) { $0.isLocalOnly }
        let keptHere = try kept.all()
        own = own.filter { keptHere.contains($0) || !isAskedFor($0.text) }
    }
}

extension Intake {
    /// What takes the same records in the same way, and says nothing of it.
    fileprivate func beginTrial() -> Intake {
        let trial = Intake(store)
        (trial.policy, trial.overwrite, trial.looksInside) = (policy, overwrite, looksInside)
        (trial.isAskedFor, trial.schema, trial.isFromImbib) = (isAskedFor, schema, isFromImbib)
        return trial
    }
}
