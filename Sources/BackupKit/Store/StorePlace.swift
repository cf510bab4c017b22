/// What may lie where a store is named, and beside it.
extension Store {
    /// Whether `path` is a store of ours; never changes the file.
    public static func isStore(_ path: String) -> Bool {
        SQLite.applicationID(of: path) == StoreSchema.applicationID
    }

    static func mustBeStore(_ path: String) throws {
        guard let status = try FileStatus.ofTarget(path) else {
            try DatabasePlace.refuseLostLink(path)
            throw BackupError(
                .notFound, "there is no store here", at: path,
                remedy: path.hasSuffix("/")
                    ? "a store is a file: leave out the '/' at the end" : "make one with 'backup-tool store init'")
        }
        guard status.isRegular else { throw notStore(path) }
        try FileHandle.checkReadable(path)
        guard isStore(path) else { throw notStore(path) }
        try DatabasePlace.checkCompanions(of: path)
    }

    /// Throws where a vault would lie in the folder of a store's attachments.
    public static func refuseVault(at path: String) throws {
        var folder = Directory.real(path) ?? Directory.real(parent(of: path)) ?? path
        while folder != "/", folder != "." {
            if folder.hasSuffix(".assets"), isStore(String(folder.dropLast(7))) {
                throw BackupError(
                    .refused,
                    "lies in \(folder), where a store keeps its attachments: its files would be taken for attachments",
                    at: path, remedy: "choose another place")
            }
            folder = parent(of: folder)
        }
    }

    /// What else may lie in the place of the folder of attachments.
    private static func mustHaveAssetFolder(_ path: String) throws {
        let folder = assetFolder(of: path)
        guard try FileStatus.ofTarget(folder)?.isDirectory != true, let status = try FileStatus.ofName(folder) else {
            return
        }
        let what = try Directory.target(ofLink: folder).map { "a link to '\($0)', which is no folder" }
        throw BackupError(
            .refused, "is \(what ?? status.kindName), and not the folder of the store's attachments", at: folder,
            remedy: "bring the folder back, or move this away; 'backup-tool store check' then names what is missing")
    }

    /// A dry run, too, takes the writer's lock and reads through the writer's log, so that it says what the run does.
    static func mustBeWritable(_ path: String) throws {
        try mustHaveAssetFolder(path)
        for place in [path, parent(of: path), assetFolder(of: path)] { try BackupError.mustBeWritable(place) }
    }

    /// Whether a file has attachments beside it as a store has, or is as long as one: in whole pages.
    private static func mayHaveBeenStore(_ path: String) -> Bool {
        guard let status = try? FileStatus.ofTarget(path), status.isRegular else { return false }
        return (try? FileStatus.ofTarget(assetFolder(of: path)))?.isDirectory == true
            || status.size % Int64(StoreSchema.pageSize) == 0
    }

    static func notStore(_ path: String) -> BackupError {
        if let status = try? FileStatus.ofTarget(path), status.isRegular, status.size == 0 {
            return BackupError(
                .notFound, "is an empty file, not a store", at: path,
                remedy:
                    "remove it; then 'backup-tool store init' makes a store there, and 'backup-tool restore BACKUP' fills it"
            )
        }
        if mayHaveBeenStore(path) {
            return BackupError(
                .notFound, "is no store of backup-tool, or is damaged at its beginning, and was not touched", at: path,
                remedy: "name another store with --store; if it was one, keep the file: \(StoreRemedy.intoNewStore)")
        }
        let isFolder = (try? FileStatus.ofTarget(path))?.isDirectory == true
        return BackupError(
            .notFound, "\(isFolder ? "is a folder, not" : "is not") a store of backup-tool and was not touched",
            at: path,
            remedy:
                "name the store with --store, or make one in another place with 'backup-tool store init --store NEW'")
    }
}
