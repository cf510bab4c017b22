/// A store for one purpose, gone afterwards.
enum ScratchStore {
    static func with<Result>(clock: Clock, _ body: (Store) throws -> Result) throws -> Result {
        let folder = "\(SpoolFile.folder)/backup-tool-scratch-\(RandomID.make())"
        try Directory.create(folder)
        let result: Result
        do { result = try body(try Store.create("\(folder)/store.db", clock: clock)) } catch {
            try Directory.removeTree(folder)
            throw error
        }
        try Directory.removeTree(folder)
        return result
    }
}

extension Store {
    /// Opens the store that an import or restore goes into, and makes it where there is none; a dry run, which must leave
    /// nothing behind, is then made on a scratch store.
    public static func withTarget<Result>(
        _ path: String, dryRun: Bool, clock: Clock = .system, _ body: (Store) throws -> Result
    ) throws -> Result {
        if try dryRun && FileStatus.ofTarget(path) == nil { return try ScratchStore.with(clock: clock, body) }
        return try body(try openOrCreate(path, clock: clock))
    }
}
