/// Files that records which have just come name, and that have not come with them.
extension Synchronizer {
    /// Takes note of what an arriving record names for the first time. Must run inside the `write` that takes the record: a
    /// sync that is killed leaves the files for the next one to name.
    func noteLinks(of record: Record, before: () throws -> Record?) throws {
        guard record.type == RecordType.publication, !record.isDeleted else { return }
        let links = try Store.links(of: record)
        guard !links.isEmpty else { return }
        let known = Set(try before().map { try Store.links(of: $0) }?.map { ByteName($0) } ?? [])
        for path in links where !known.contains(ByteName(path)) { try store.awaitFile(path) }
    }

    /// Names the files that are still not here; what is held is named by itself. Said once: nobody may ever send them.
    func reportMissingFiles() throws {
        let missing = try store.filesOnTheWay().filter { damagedAssets[ByteName($0)] == nil }
        guard !missing.isEmpty else { return }
        let what =
            missing.count == 1
            ? "the publications that came name this file, and the hub does not have it"
            : "the publications that came name \(missing.count) files that the hub does not have: \(firstNames(missing))"
        result.findings.append(
            Finding(
                .linkMissing, .warning, missing.count == 1 ? missing[0] : identity.location, what,
                remedy: "'backup-tool sync' on a device that has them sends them, unless they are too large for the hub"
            ))
    }
}

extension Finding {
    /// What is said of files that did not come yet; nil where there are none.
    public static func filesOnTheWay(_ paths: [String], to store: String, missingInBackup: Bool = false) -> Finding? {
        guard !paths.isEmpty else { return nil }
        let (files, are) = paths.count == 1 ? ("file", "is") : ("files", "are")
        return Finding(
            .linkMissing, .warning, store,
            "\(paths.count) \(files) did not come from the hub yet"
                + (missingInBackup ? " and \(are) not in this backup" : "") + ": \(firstNames(paths))",
            remedy: "run 'backup-tool sync'" + (missingInBackup ? ", then make this backup again" : ""))
    }
}

/// Files that did not come yet because a sync did not finish.
extension Store {
    fileprivate func awaitFile(_ path: String) throws {
        try database.statement("INSERT OR IGNORE INTO awaited_file VALUES (?)").bind(1, path).run()
    }

    func forgetAwaitedFile(_ path: String) throws {
        try database.statement("DELETE FROM awaited_file WHERE path = ?").bind(1, path).run()
    }

    /// The last step of a sync: of one that was killed before, the next one names them.
    func forgetAwaitedFiles() throws {
        guard try database.integer("SELECT EXISTS (SELECT 1 FROM awaited_file)") != 0 else { return }
        try write { try database.execute("DELETE FROM awaited_file") }
    }

    /// What the hub has and this store does not have yet, and what records link that came in a sync that did not finish.
    /// What is held is left out: it was tried, and is named with its reason.
    func filesOnTheWay() throws -> [String] {
        // A store that an older version wrote last has no such table.
        guard try !StoreSchema.isOld(database) else { return [] }
        let query = try database.prepare(
            """
            SELECT path FROM asset_sync LEFT JOIN asset USING (path)
            WHERE wanted AND asset_sync.sha256 IS NOT NULL AND asset.sha256 IS NOT asset_sync.sha256
            AND path NOT IN (SELECT name FROM held WHERE zone = '\(Self.assetZone)')
            UNION SELECT path FROM awaited_file WHERE path NOT IN (SELECT path FROM asset)
            AND path NOT IN (SELECT name FROM held WHERE zone = '\(Self.assetZone)') ORDER BY path
            """)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }
}
