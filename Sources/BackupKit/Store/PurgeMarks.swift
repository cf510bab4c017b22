/// What a purge has removed for good. A mark beside the tombstone keeps every later command from bringing the record back:
/// the merge policy asks for it, so restore, import, quarantine and repair need not. A sync does not ask, because all
/// devices must come to one state.
extension Store {
    private static let ofRecord = "FROM purged WHERE (zone = ?1 AND name = ?2) OR (local_id = ?4 AND type = ?3)"
    private static let marked = Query("SELECT 1 \(ofRecord) LIMIT 1")

    /// Whether the record, under its name or its local id, or the one in an envelope, was purged here.
    func isPurged(_ record: Record) throws -> Bool {
        if let inside = try ifReadable({ try Quarantine.content(of: record) }) ?? nil, try isPurged(inside) {
            return true
        }
        let query = try bound(record, to: database.statement(Self.marked))
        defer { query.reset() }
        return try query.step()
    }

    func isPurged(_ id: RecordID) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM purged WHERE zone = ? AND name = ?")
            .bind(1, id.zone).bind(2, id.name)
        defer { query.reset() }
        return try query.step()
    }

    /// Must run inside `write`.
    func markPurged(_ record: Record) throws {
        try bound(record, to: database.statement("INSERT OR REPLACE INTO purged VALUES (?, ?, ?, ?)")).run()
        try forgetSaidValues(of: [hasher.key(record.localID)])
    }

    private func bound(_ record: Record, to statement: Statement) -> Statement {
        statement.bind(1, record.id.zone).bind(2, record.id.name).bind(3, record.type).bind(4, record.localID)
    }

    /// Where a sync has brought what somebody wrote since, it is a record like any other.
    func forgetPurge(of id: RecordID) throws {
        try database.statement("DELETE FROM purged WHERE zone = ? AND name = ?").bind(1, id.zone).bind(2, id.name).run()
    }

    /// Lets purged records come back by the next restore or import that asks for it. Returns their identities.
    public func allowReturn(of ids: [String], dryRun: Bool = false) throws -> [RecordID] {
        var allowed: [RecordID] = []
        func allow() throws {
            for text in ids {
                let found = try find(text).filter { try $0.isDeleted && isPurged($0) }
                guard !found.isEmpty else {
                    throw BackupError(
                        .failed, "no record of this name was purged from this store", at: text,
                        remedy: "'backup-tool store changes' lists the ids of deleted records")
                }
                for record in found {
                    try bound(record, to: database.statement("DELETE \(Self.ofRecord)")).run()
                    if let stored = try self.record(record.id) { try forgetBase(of: stored.change) }
                    try forgetPurgedFiles(of: record.id)
                    allowed.append(record.id)
                }
            }
        }
        if dryRun { try rehearse(allow) } else { try write(allow) }
        return allowed
    }
}

/// What a purge has still to do once its rows are gone.
extension Store {
    static let pendingPurge = "purge_pending"
    /// The hub has to hear of files that were purged, and until then their names are needed.
    private static let waitingPurge = "purge_waits"

    /// Files that an unfinished purge has to remove, as far as they can be read; nil where none is unfinished.
    func filesToPurge() throws -> [String]? {
        try meta(Self.pendingPurge).map { text in
            try ifReadable { try JSON(parsing: text).array?.compactMap(\.string) ?? [] } ?? []
        }
    }

    /// Must run inside `write`.
    func notePurge(_ files: [String]) throws {
        let list = JSON.array(try ((filesToPurge() ?? []) + files).map { .string($0) }).compact
        try setMeta(Self.pendingPurge, list)
    }

    func setMeta(_ key: String, _ value: String?) throws {
        guard let value else {
            return try database.statement("DELETE FROM meta WHERE key = ?").bind(1, key).run()
        }
        try database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)").bind(1, key).bind(2, value).run()
    }

    /// Takes out an asset for good. Readers of the state before have its bytes until the purge ends. Must run inside `write`.
    func purgeAsset(_ asset: Asset, dryRun: Bool) throws {
        // What lies there, also where an app has changed it since.
        try setPending(asset.path, was: dryRun ? nil : keepBytes(of: asset))
        try database.statement("DELETE FROM asset WHERE path = ?").bind(1, asset.path).run()
        _ = nextChange()
    }

    /// Removes the files of a purge whose rows are gone. Throws where one cannot be removed, or may lie elsewhere because
    /// something is in its place: then they stay noted.
    func removePurgedFiles() throws {
        guard let noted = try filesToPurge(), !noted.isEmpty else { return }
        let unsettled = try settleFiles()
        for path in noted where try ifSound({ try asset(path) }).map({ $0 == nil }) ?? false {
            if let left = unsettled.first(where: { sameBytes($0.subject, path) }) {
                throw BackupError(.failed, left.message, at: "\(assetFolder)/\(path)")
            }
            if let status = try assetStatus(path), !status.isRegular {
                let (place, side) = (try assets.link(on: path) ?? path, status.isLink ? "behind it" : "elsewhere")
                throw BackupError(
                    .refused, "is \(status.kindName), and the file may lie \(side)", at: "\(assetFolder)/\(place)",
                    remedy: "remove \(path) where it lies, and move this away")
            }
        }
        try write { try setMeta(Self.pendingPurge, JSON.array([]).compact) }
    }

    /// Writes the database anew and empties its log: nothing is left of what was removed. Each part can be repeated.
    func finishPurge() throws {
        guard try collectBlobs() else { throw isBeingRead }
        try database.execute("VACUUM")
        try emptyLog()
        try write { try setMeta(Self.pendingPurge, nil) }
        try emptyLog()
    }

    private func emptyLog() throws {
        let checkpoint = try database.prepare("PRAGMA wal_checkpoint(TRUNCATE)")
        guard try checkpoint.step(), checkpoint.integer(0) == 0 else { throw isBeingRead }
    }

    private var isBeingRead: BackupError {
        BackupError(.temporary, "another program is reading the store", at: path, remedy: "end that program")
    }

    // MARK: Names of files

    /// Removes what the tables say of paths that have no file any more. Returns those that the hub still has. Must run
    /// inside `write`.
    func forgetPurgedAssets(_ paths: [String]) throws -> [String] {
        var unsynced: [String] = []
        for path in paths {
            guard try ifSound({ try asset(path) }).map({ $0 == nil }) ?? false else { continue }
            try database.statement("DELETE FROM held WHERE zone = ? AND name = ?")
                .bind(1, Self.assetZone).bind(2, path).run()
            try forgetAwaitedFile(path)
            if let known = try hubAsset(path), !known.isWanted, known.base != nil || known.digest != nil {
                unsynced.append(path)
            }
        }
        try forgetKeptChanges()
        _ = try forgetDeletedAssets()
        if !unsynced.isEmpty { try waitForHub() }
        return unsynced
    }

    /// What is left of names goes with the sync that tells the hub. Must run inside `write`.
    func waitForHub() throws { try setMeta(Self.waitingPurge, "1") }

    /// After a sync: names of files that neither side has any more go, and what a purge left of them.
    func forgetSyncedAssets() throws {
        let isWaiting = try meta(Self.waitingPurge) != nil
        if isWaiting { try database.execute("PRAGMA secure_delete = ON") }
        let isAlone = try write {
            guard try forgetDeletedAssets(), isWaiting else { return false }
            try setMeta(Self.waitingPurge, nil)
            guard try filesToPurge() == nil else { return false }
            try notePurge([])
            return true
        }
        if isAlone { try finishPurge() }
    }
}
