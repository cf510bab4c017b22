/// Mends a store from a backup of any kind.
public enum StoreMending {
    public struct Options: Sendable {
        /// A store, or anything that can be restored.
        public var from: String?
        /// Take what another program wrote as it is.
        public var accept = false
        public var dryRun = false
        public var limits = ReadLimits()

        public init() {}
    }

    public static func run(_ store: Store, _ options: Options) throws -> StoreRepairResult {
        guard let from = options.from else { return try mend(store, from: nil, options) }
        if Store.isStore(from) { return try mend(store, from: try Store(from, .read), options) }
        return try ScratchStore.with { scratch in
            var restore = RestoreOptions()
            restore.kinds = Set(Kind.allCases).subtracting([.attachments])
            restore.limits = options.limits
            restore.allowDamage = true
            let found = try Restorer.restore(from, into: scratch, restore).findings
            let suspects = Set(found.filter { $0.code == .recordChanged }.map(\.subject))
            return try mend(store, from: scratch, suspects: suspects, options)
        }
    }

    private static func mend(
        _ store: Store, from source: Store?, suspects: Set<String> = [], _ options: Options
    ) throws -> StoreRepairResult {
        var result = StoreRepairResult()
        func mend() throws {
            let (found, replaced) = try StoreRepair.run(
                on: store, from: source, suspects: suspects, accepts: options.accept)
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
