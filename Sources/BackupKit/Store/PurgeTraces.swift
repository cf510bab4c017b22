/// What a purge, or a later command, has to know of files and cite keys whose records are gone.
extension Store {
    /// A record as it was when it was deleted or purged.
    struct FileOwner: Hashable {
        let id: RecordID
        let type: String
        let localID: String
    }

    private enum Trace: String {
        /// A file, by its path, that deleted records had linked.
        case leftFile = "left"
        /// A file that was purged, by a hash of its path and bytes.
        case purgedFile = "file"
        /// The same, once the hub has been told that it is gone. Who has it then has it again.
        case toldHub = "told"
        /// A cite key that was purged, by a hash.
        case purgedKey = "key"
    }

    private func trace(_ kind: Trace, _ name: String) throws -> Set<FileOwner>? {
        let query = try database.statement("SELECT records FROM purge_trace WHERE kind = ? AND name = ?")
            .bind(1, kind.rawValue).bind(2, name)
        defer { query.reset() }
        return try query.step() ? owners(in: query.text(0)) : nil
    }

    private func owners(in text: String) throws -> Set<FileOwner> {
        let words = try ifReadable { try JSON(parsing: text).array } ?? nil
        return Set((words ?? []).compactMap(FileOwner.init))
    }

    private func traces(_ kind: Trace) throws -> [String: Set<FileOwner>] {
        let query = try database.prepare("SELECT name, records FROM purge_trace WHERE kind = ?").bind(1, kind.rawValue)
        var found: [String: Set<FileOwner>] = [:]
        while try query.step() { found[query.text(0)] = try owners(in: query.text(1)) }
        return found
    }

    private func setTrace(_ kind: Trace, _ name: String, _ owners: Set<FileOwner>) throws {
        try database.statement("INSERT OR REPLACE INTO purge_trace VALUES (?, ?, ?)")
            .bind(1, kind.rawValue).bind(2, name)
            .bind(3, JSON.array(owners.sorted { $0.id < $1.id }.map(\.json)).compact).run()
    }

    private func forgetTrace(_ kind: Trace, _ name: String) throws {
        try database.statement("DELETE FROM purge_trace WHERE kind = ? AND name = ?")
            .bind(1, kind.rawValue).bind(2, name).run()
    }

    // MARK: Files that deleted records had linked: a purge of these takes them, also when no version of the records is left

    /// Who had linked them, by their paths.
    func filesOfDeleted() throws -> [String: Set<FileOwner>] {
        try StoreSchema.isOld(database) ? [:] : traces(.leftFile)
    }

    /// Notes whose the files are that a record links which becomes a tombstone. Must run inside `write`.
    func noteFiles(ofDeleted old: Record) throws {
        guard !old.isDeleted, let links = try ifReadable({ try Self.links(of: old) }) else { return }
        for path in links where try hasAsset(path) || hubAsset(path) != nil {
            try noteFile(path, of: [FileOwner(id: old.id, type: old.type, localID: old.localID)])
        }
    }

    /// Must run inside `write`.
    func noteFile(_ path: String, of owners: Set<FileOwner>) throws {
        try setTrace(.leftFile, path, owners.union(trace(.leftFile, path) ?? []))
    }

    /// A new file at the path is not theirs. Must run inside `write`.
    func forgetOwners(ofGone path: String) throws { try forgetTrace(.leftFile, path) }

    /// Their file has another name. Must run inside `write`.
    func moveOwners(of path: String, to new: String) throws {
        guard let owners = try trace(.leftFile, path) else { return }
        try noteFile(new, of: owners)
        try forgetTrace(.leftFile, path)
    }

    /// Not even the name stays of a file that is gone, from the undo history, too. Must run inside `write`.
    func forgetGoneFilesOfDeleted() throws {
        try database.execute(
            """
            DELETE FROM purge_trace WHERE kind = '\(Trace.leftFile.rawValue)'
            AND name NOT IN (SELECT path FROM asset) AND name NOT IN (SELECT path FROM batch_asset)
            """)
    }

    // MARK: What was purged: a backup may have it without the record that says whose it is

    private func hash(_ file: Asset) -> String {
        String(hasher.text(file.digest.hex, after: hasher.text(file.path)), radix: 16)
    }

    /// Must run inside `write`.
    func markPurged(_ file: Asset, of owners: Set<FileOwner>) throws {
        guard let owner = owners.min(by: { $0.id < $1.id }) else { return }
        try setTrace(.purgedFile, hash(file), [owner])
        try forgetTrace(.toldHub, hash(file))
    }

    func ownerOfPurged(_ file: Asset) throws -> RecordID? { try trace(.purgedFile, hash(file))?.first?.id }

    /// The same where a hub has it, and was not told yet.
    func ownerOfPurged(onHub file: Asset) throws -> RecordID? {
        try trace(.toldHub, hash(file)) == nil ? ownerOfPurged(file) : nil
    }

    /// Lets the next push tell the hub that the file is gone. Must run inside `write`.
    func removeFromHub(_ file: Asset) throws {
        try setTrace(.toldHub, hash(file), [])
        try settleAsset(file.path, file.digest)
        try waitForHub()
    }

    /// Lets the files come back with their record. Must run inside `write`.
    func forgetPurgedFiles(of id: RecordID) throws {
        for (hash, owners) in try traces(.purgedFile) where owners.contains(where: { $0.id == id }) {
            try forgetTrace(.purgedFile, hash)
            try forgetTrace(.toldHub, hash)
        }
    }

    private func hash(citeKey: String) -> String { String(hasher.text(citeKey), radix: 16) }

    /// Must run inside `write`.
    func markPurged(citeKeys: Set<String>) throws {
        for key in citeKeys { try setTrace(.purgedKey, hash(citeKey: key), []) }
    }

    func isPurged(citeKey: String) throws -> Bool { try trace(.purgedKey, hash(citeKey: citeKey)) != nil }
}

extension Store.FileOwner {
    fileprivate init?(_ json: JSON) {
        guard let words = json.array?.compactMap(\.string), words.count == 4 else { return nil }
        (id, type, localID) = (RecordID(zone: words[0], name: words[1]), words[2], words[3])
    }

    fileprivate var json: JSON { .array([id.zone, id.name, type, localID].map { .string($0) }) }
}
