/// Files that somebody put into the store's folder and that no row names. No backup has them.
extension Store {
    private static let adoptNew =
        "'backup-tool store adopt --new' takes all such files in, 'backup-tool store adopt PATH' one of them"

    /// What lies in the store's folder under names that no attachment had.
    struct UnknownFiles: Sendable {
        fileprivate(set) var files: [(path: String, status: FileStatus)] = []
        fileprivate(set) var obstacles: [Finding] = []
    }

    /// Names them, with the way to take them in.
    public func strayFiles() throws -> [Finding] { try strayFiles(among: lookForUnknownFiles()) }

    /// Goes through the store's folder on a thread of its own; nil where there is none to go through.
    func lookForUnknownFiles() throws -> Aside<UnknownFiles>? {
        // A store that nothing can write to may be of a version that lacks these tables.
        guard try !StoreSchema.isOld(database), try FileStatus.ofTarget(treeFolder)?.isDirectory == true else {
            return nil
        }
        // The check of each attachment says so.
        if FileHandle.isDenied(treeFolder) { return nil }
        // Keyed hashes: no outsider can choose names that collide.
        var known = Set(Self.ownFolders.map { hasher.text($0) })
        let paths = try database.prepare("SELECT path FROM asset")
        while try paths.step() { known.insert(hasher.text(paths.bytes(0))) }
        return Aside { [known, treeFolder, hasher] in
            var unknown = UnknownFiles()
            try Directory.walk(
                treeFolder, skip: { known.contains(hasher.text($0)) },
                obstacle: { unknown.obstacles.append(Self.outOfReach($0, $1)) }
            ) { path, status in
                if !status.isDirectory, !EntryName.isClutter(path) { unknown.files.append((path, status)) }
            }
            return unknown
        }
    }

    /// Those of them that are not about to be known.
    func strayFiles(among unknown: Aside<UnknownFiles>?) throws -> [Finding] {
        guard let unknown = try unknown?.finish() else { return [] }
        var found = try lateChanges() + unknown.obstacles
        var newest: SQLite?
        for (path, status) in unknown.files where try !Self.hasRow(of: path, in: database) {
            // A writer may have brought it since this transaction began.
            if try newest == nil && FileStatus.ofName(self.path) != nil { newest = try Self.connectReader(self.path) }
            if let newest, try Self.hasRow(of: path, in: newest) { continue }
            guard try FileStatus.ofName("\(treeFolder)/\(path)") != nil else { continue }
            found.append(Self.stray(path, status))
        }
        return found
    }

    private static func stray(_ path: String, _ status: FileStatus) -> Finding {
        do { try check(path) } catch { return outOfReach(path, (error as? BackupError)?.message ?? "\(error)") }
        guard status.isRegular else { return outOfReach(path, "it is \(status.kindText)") }
        return Finding(
            .entryUnexpected, .warning, path,
            "lies in the store's folder, but the store does not know it: the next backup will lack it",
            remedy: adoptNew)
    }

    private static func outOfReach(_ path: String, _ reason: String) -> Finding {
        Finding(
            .entryUnexpected, .warning, path, "lies in the store's folder, and no backup has it: \(reason)",
            remedy: "mend its name or its permissions, or move it out of the folder")
    }

    /// Whether a row names a file, or has named it and is lost, or a change of it is not finished.
    private static func hasRow(of path: String, in database: SQLite) throws -> Bool {
        let query = try database.statement(
            """
            SELECT 1 FROM asset WHERE path = ?1 UNION ALL SELECT 1 FROM asset_pending WHERE path = ?1
            UNION ALL SELECT 1 FROM witness WHERE place = 'asset' AND key = ?1
            """
        ).bind(1, path)
        defer { query.reset() }
        return try query.step()
    }
}
