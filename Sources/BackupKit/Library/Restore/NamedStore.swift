import Glibc

/// Stores that a command names: one may be missing, or stand where a backup was meant.
extension Store {
    public static func mustBeThere(_ path: String) throws {
        guard try FileStatus.ofTarget(path) == nil else { return }
        throw BackupError(
            .notFound, "there is no store of this name", at: path,
            remedy: "check the name, or add --create to make a new store")
    }

    /// Runs `body` on the store at `path`. Where there is none, one is made, and taken away again when `body` fails; a
    /// dry run gets a scratch store instead, so that it leaves nothing. Without `mayCreate` a missing store is an error.
    public static func withStore<Result>(
        _ path: String, dryRun: Bool, mayCreate: Bool = true, _ body: (Store) throws -> Result
    ) throws -> Result {
        // A link whose target is away is a store that cannot be had now.
        if try FileStatus.ofName(path) != nil { return try body(try Store(path, .write)) }
        if !mayCreate { try mustBeThere(path) }
        if dryRun { return try ScratchStore.with(standingFor: path, body) }
        let newFolders = try Directory.missing(above: path)
        let hadFolder = try FileStatus.ofName(assetFolder(of: path)) != nil
        do {
            let store = try createAside(path)
            let result = try body(store)
            // It is there even when nothing was written into it.
            try store.publish()
            return result
        } catch {
            for ending in ["", "-wal", "-shm"] { unlink(path + ending) }
            if !hadFolder { removeEmptyAssetFolder(of: path) }
            for folder in newFolders { rmdir(folder) }
            throw error
        }
    }
}

extension Store {
    /// Throws where somebody names a store, or a hub, in the place of a backup.
    static func refuseAsBackup(_ path: String) throws {
        if isStore(path) {
            throw BackupError(
                .notFound, "is a store, not a backup", at: path,
                remedy: "\(TypedCommand.quoted("store check", options: ["store": path])) checks it; "
                    + "\(TypedCommand.quoted("export -o DIR", options: ["store": path])) makes a backup of it")
        }
        if FileHub.isHub(path) {
            throw BackupError(
                .notFound, "is a hub, not a backup", at: path,
                remedy: "\(TypedCommand.quoted("sync", options: ["hub": path])) brings what it has into a store")
        }
    }
}
