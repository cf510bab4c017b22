/// Mends a store from a backup of any kind.
public enum StoreMending {
    public struct Options: Sendable {
        /// A store, or anything that can be restored.
        public var from: String?
        /// Take what another program wrote as it is, and go on without what no backup has.
        public var accept = false
        public var dryRun = false
        public var limits = ReadLimits()

        public init() {}
    }

    /// The same of the store at `path`, which may be one that nothing else can open.
    public static func run(_ path: String, _ options: Options) throws -> StoreRepairResult {
        let steps = try Store.mendDefinitions(of: path, dryRun: options.dryRun)
        // What else there is to mend can be seen afterwards only.
        if options.dryRun, !steps.isEmpty { return StoreRepairResult(steps: steps) }
        var result = try run(Store(path, .write), options)
        result.steps.insert(contentsOf: steps, at: 0)
        return result
    }

    public static func run(_ store: Store, _ options: Options) throws -> StoreRepairResult {
        var result = try mendRows(store, options)
        if let from = options.from {
            let (steps, left) = try FileMending.run(store, from: from, limits: options.limits, dryRun: options.dryRun)
            let subjects = Set((steps.map(\.subject) + left.map(\.subject)).map { ByteName($0) })
            result.left.removeAll { $0.severity == .damage && subjects.contains(ByteName($0.subject)) }
            result.steps += steps
            result.left += left
        }
        let named = try giveNames(store, dryRun: options.dryRun)
        let subjects = Set(named.map { ByteName($0.subject) })
        result.left.removeAll { $0.code == .entryRefused && subjects.contains(ByteName($0.subject)) }
        result.steps += named
        if !options.dryRun { result.left += try store.filesInTheWay() }
        guard options.accept else { return result }
        let accepted = try store.acceptFiles(dryRun: options.dryRun)
        let mended = Set(result.steps.map { ByteName($0.subject) })
        let given = accepted.filter { !mended.contains(ByteName($0.subject)) }
        result.steps += given
        let harm: Set<Finding.Code> = [.entryMissing, .digestMismatch, .sizeMismatch]
        let subjectsGiven = Set(given.map { ByteName($0.subject) })
        result.left.removeAll { harm.contains($0.code) && subjectsGiven.contains(ByteName($0.subject)) }
        return result
    }

    /// For files whose names cannot lie side by side.
    private static func giveNames(_ store: Store, dryRun: Bool) throws -> [StoreRepairResult.Step] {
        guard try !store.namesApart().moving.isEmpty else { return [] }
        let steps = try store.batch(kind: Store.mendBatch, source: store.path, dryRun: dryRun) {
            let steps = try store.moveApart(store.namesApart().moving).map {
                StoreRepairResult.Step(
                    action: .name, subject: $0.asset.path, message: "is called \($0.path) from now on")
            }
            return (steps, summary: JSON.object([JSON.Member("files", JSON(steps.count))]).compact)
        }.result
        if !dryRun { try store.forgetBatches(of: Store.mendBatch) }
        return steps
    }

    private static func mendRows(_ store: Store, _ options: Options) throws -> StoreRepairResult {
        guard let from = options.from else { return try mend(store, from: nil, options) }
        if Store.isStore(from) { return try mend(store, from: try Store(from, .read), options) }
        return try ScratchStore.with { scratch in
            var restore = RestoreOptions()
            restore.kinds = Set(Kind.allCases).subtracting([.attachments])
            restore.limits = options.limits
            restore.allowDamage = true
            restore.takesDoubtful = false
            let found = try Restorer.restore(from, into: scratch, restore).findings
            var isFileUnknown = false
            try store.forEachAsset(damaged: { _ in isFileUnknown = true }) { _ in }
            if isFileUnknown { try knowFiles(of: from, options, in: scratch) }
            let suspects = Set(found.filter { $0.code == .recordChanged }.map(\.subject))
            let isDamaged = found.contains { $0.severity == .damage }
            return try mend(store, from: scratch, suspects: suspects, damagedAt: isDamaged ? from : nil, options)
        }
    }

    /// What the backup's manifest says of its attachments, without their bytes.
    private static func knowFiles(of path: String, _ options: Options, in scratch: Store) throws {
        let layout = try OpenedLayout.open(path, limits: options.limits)
        try scratch.write {
            for (name, facts) in layout.expected where layout.role(of: name) == .attachment {
                try scratch.putRow(
                    Asset(
                        path: String(name.dropFirst(layout.prefix.count)), size: facts.size, digest: facts.digest,
                        isLocalOnly: facts.isLocalOnly))
            }
        }
    }

    private static func mend(
        _ store: Store, from source: Store?, suspects: Set<String> = [], damagedAt: String? = nil, _ options: Options
    ) throws -> StoreRepairResult {
        var result = StoreRepairResult()
        func mend() throws {
            let (found, replaced) = try StoreRepair.run(
                on: store, from: source.map { .init(store: $0, suspects: suspects, damagedAt: damagedAt) },
                accepts: options.accept)
            result = found
            guard !replaced.isEmpty, !options.dryRun else { return }
            // Before the commit: what is replaced is nowhere else.
            let path = "\(store.path).damaged-\(store.clock.now().iso8601.filter { $0 != ":" }).jsonl"
            _ = try AtomicFile.write(path, replace: false) { file in
                let text = replaced.map { "\($0)\n" }.joined()
                try Array(text.utf8).withUnsafeBytes { try file.write($0) }
            }
            result.keptIn = path
        }
        if options.dryRun { try store.rehearse(mend) } else { try store.write(mend) }
        return result
    }
}
