/// What `store purge` removed for good, or would remove.
public struct PurgeResult: Sendable {
    /// The deleted records; their tombstones stay.
    public internal(set) var records: [RecordID] = []
    /// Older versions: in the undo history, in quarantine, as ancestors of a merge, as damaged rows.
    public internal(set) var versions = 0
    /// Attachments whose bytes go: kept for an undo, or linked by nothing else and asked for.
    public internal(set) var files: [String] = []
    /// Attachments that stay, and of which an earlier file goes that was kept for an undo.
    public internal(set) var earlierFiles: [String] = []
    /// Attachments that only these records linked, and that stay.
    public internal(set) var linked: [String] = []
    /// Purged files that the hub still has: their names stay until a sync has told it.
    public internal(set) var unsynced: [String] = []
    /// Backups that still hold one of the records alive.
    public internal(set) var holders: [PurgeHolder] = []
    /// Backups that could not be searched, or not whole.
    public internal(set) var unsearched: [Finding] = []
    /// A purge that was cut short is finished, too.
    public internal(set) var finishesAnother = false
}

public struct PurgeOptions: Sendable {
    public var ids: [String] = []
    public var deletedBefore: Timestamp?
    /// Also remove attachments that nothing else links.
    public var withFiles = false
    public var dryRun = false
    /// Backups to look into: a store, an export, a snapshot, or a vault with all its snapshots.
    public var sources: [String] = []
    public var limits = ReadLimits()

    public init() {}
}

/// Removes every older version of deleted records from a store, so that its files hold no trace of them.
///
/// The rows go in one transaction, which also notes what is left to do: files, free pages, the log. A purge that is killed
/// there is finished by the next one, and `store check` says so.
public struct Purge {
    let store: Store
    let options: PurgeOptions
    var result = PurgeResult()
    private var scope: PurgeScope
    private var records: [Record] = []
    private var chosen: Set<RecordID> = []
    /// Files that the purged versions name, with the records that name them, and the cite keys of these.
    private var files: [String: Set<Store.FileOwner>] = [:]
    var keys: Set<String> = []
    /// The paths of files that an undo has taken back.
    private var takenBack: Set<String> = []
    /// Those that nothing else names.
    private var gone: [String] = []
    /// Paths below the assets' folder.
    private var unwanted: [String] = []

    public static func run(_ store: Store, _ options: PurgeOptions) throws -> PurgeResult {
        try store.checkTypeIndex()
        var purge = Purge(store, options)
        // A source that cannot be opened is reported before anything is removed.
        let sources = try options.sources.flatMap(PurgeHolder.expanded)
        for source in sources where !Store.isStore(source) {
            _ = try OpenedLayout.open(source, limits: options.limits)
        }
        purge.result.finishesAnother = try isPending(store)
        if options.dryRun {
            try store.rehearse { try purge.removeRows() }
        } else {
            // What is deleted from now on is overwritten with zeros.
            try store.database.execute("PRAGMA secure_delete = ON")
            try store.write {
                try purge.removeRows()
                try store.syncNewBlobs()
            }
            do {
                try purge.removeFromKeptRows()
                try finish(store)
            } catch let error as BackupError { throw isUnfinished(error, store) }
        }
        try purge.search(sources)
        return purge.result
    }

    private init(_ store: Store, _ options: PurgeOptions) {
        (self.store, self.options) = (store, options)
        // Who names records means them, whenever they were deleted.
        scope = PurgeScope(store, deletedBefore: options.ids.isEmpty ? options.deletedBefore : nil)
    }

    /// The purge is done, whatever a backup says.
    private mutating func search(_ sources: [String]) throws {
        guard !scope.ids.isEmpty else { return }
        for source in sources {
            do {
                let (records, damage) = try PurgeHolder.search(source, for: scope, options.limits)
                if !records.isEmpty { result.holders.append(PurgeHolder(source: source, records: records.sorted())) }
                if let damage { result.unsearched.append(PurgeHolder.unsearched(source, damage)) }
            } catch let error as BackupError where error.isVerdict {
                result.unsearched.append(PurgeHolder.unsearched(source, error.message))
            }
        }
    }

    // MARK: Which records

    private mutating func choose() throws {
        try scope.load()
        for text in options.ids {
            let found = try store.find(text)
            if found.contains(where: { !$0.isDeleted }) { throw Self.isNotDeleted(text) }
            for record in found { try add(record) }
            // The undo history may know the name, too, or alone.
            let isKnown = try scope.add(named: text, hasTombstone: !found.isEmpty)
            guard isKnown || !found.isEmpty else { throw try store.unknownID(text) }
        }
        if let time = options.deletedBefore {
            let query = try store.database.prepare("SELECT \(Store.recordColumns) FROM record WHERE deleted_at < ?")
                .bind(1, time.milliseconds)
            while try query.step() {
                if let row = try store.ifSound({ try RowReader.record(query) }) { try add(row.record) }
            }
            try scope.addTakenBack(before: time)
            try addFilesTakenBack(before: time)
        }
        result.records += try scope.grow()
        for record in try scope.tombstones().sorted(by: { $0.id < $1.id }) { try add(record) }
    }

    static func isNotDeleted(_ text: String) -> BackupError {
        BackupError(
            .refused, "is not deleted", at: text,
            remedy: "'backup-tool store delete ID' deletes it; then it can be purged")
    }

    private mutating func add(_ record: Record) throws {
        guard chosen.insert(record.id).inserted else { return }
        records.append(record)
        // One that was purged before is gone already, and one that is here under another name stays.
        if try !store.isPurged(record), try !scope.isAlive(record) { result.records.append(record.id) }
        for other in try scope.add(record) { try add(other) }
    }

    /// Files that only the undo history has, also where another one has the path by now.
    private mutating func addFilesTakenBack(before time: Timestamp) throws {
        let query = try store.database.prepare(
            """
            SELECT path FROM batch_asset JOIN batch ON id = batch WHERE path NOT IN (SELECT path FROM asset)
            GROUP BY path HAVING count(sha256) > 0 AND max(started_at) < ?
            """
        ).bind(1, time.milliseconds)
        while try query.step() { note([query.text(0)], of: []) }
        let others = try store.database.prepare(
            """
            SELECT path FROM batch_asset JOIN batch ON id = batch JOIN asset USING (path)
            WHERE batch.kind = ? AND started_at < ? AND batch_asset.sha256 IS NOT NULL
            """
        ).bind(1, Store.undoBatch).bind(2, time.milliseconds)
        while try others.step() { takenBack.insert(others.text(0)) }
    }

    // MARK: Rows

    private mutating func removeRows() throws {
        try choose()
        for record in records where try !scope.isAlive(record) { try store.markPurged(record) }
        let versions = try clearHistory(of: scope.takes, damaged: Set(store.oddVersions().map(\.row)))
        result.versions += versions
        try removeEnvelopes()
        try removeAncestors()
        try removeDamaged()
        try removeSettledConflicts()
        try removeFiles()
        try removeMentions()
        result.unsynced = try store.forgetPurgedAssets(gone)
        try store.forgetUnlinkedFilesElsewhere()
        guard !options.dryRun else { return }
        try store.notePurge(unwanted)
    }

    /// Turns versions in the undo history into tombstones, and returns how many. An undo leaves the record as it is, and
    /// says so. Nobody can tell whose a damaged version is, and no undo takes it: it goes, too.
    mutating func clearHistory(of isTaken: (Record) -> Bool, damaged: Set<Int64> = []) throws -> Int {
        var rows: [Int64] = []
        try store.forEachOldVersion { row, version in
            let inside = try store.ifReadable { try Quarantine.content(of: version) } ?? nil
            guard isTaken(version) || inside.map(isTaken) ?? false || damaged.contains(row) else { return }
            rows.append(row)
            try noteContent(of: inside ?? version)
        }
        for row in rows {
            try store.database.statement(
                """
                UPDATE batch_record SET change = \(Store.purgedChange), fields = '{}', field_times = NULL, device_id = NULL, row_hash = NULL, local_only = 0,
                deleted_at = ifnull(deleted_at, modified_at), created_at = ifnull(deleted_at, modified_at) WHERE rowid = ?
                """
            ).bind(1, row).run()
        }
        return rows.count
    }

    /// Notes the files and the cite key of a version that goes.
    private mutating func noteContent(of version: Record) throws {
        guard let fields = try store.ifReadable({ try Fields.parse(version.fields) }) else { return }
        note(
            RecordFiles.paths(in: fields),
            of: [Store.FileOwner(id: version.id, type: version.type, localID: version.localID)])
        if let key = Fields.string(Publication.citeKey, in: fields), !key.isEmpty { keys.insert(key) }
    }

    private mutating func note(_ paths: some Sequence<String>, of owners: Set<Store.FileOwner>) {
        for path in paths { files[path, default: []].formUnion(owners) }
    }

    private mutating func removeEnvelopes() throws {
        var envelopes: [RecordID] = []
        try store.forEachLive(type: Quarantine.type) { stored in
            guard let inside = try store.ifReadable({ try Quarantine.content(of: stored.record) }) ?? nil,
                scope.takes(inside)
            else { return }
            envelopes.append(stored.record.id)
        }
        for id in envelopes {
            if let stored = try store.record(id) {
                if let inside = try Quarantine.content(of: stored.record) { try noteContent(of: inside) }
                try store.bury(stored)
            }
        }
        result.versions += envelopes.count
    }

    private mutating func removeAncestors() throws {
        for id in scope.ids {
            if try store.ancestor(id) != nil { result.versions += 1 }
            try store.dropAncestor(id)
        }
    }

    private mutating func removeDamaged() throws {
        for row in try store.setAside() where scope.takes(row) {
            try store.database.statement("DELETE FROM damaged WHERE line = ?").bind(1, row.line).run()
            result.versions += 1
        }
    }

    /// Files of damaged values that a repair has put beside the store.
    private func removeFromKeptRows() throws {
        let folder = parent(of: store.path)
        let prefix = lastComponent(of: store.path) + ".damaged-"
        for name in try Directory.names(in: folder) where name.hasPrefix(prefix) && name.hasSuffix(".jsonl") {
            let path = "\(folder)/\(name)"
            var text: [UInt8] = []
            try FileHandle.openForReading(path).forEachChunk { text += $0 }
            let lines = text.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
            let kept = try lines.filter { line in
                try store.ifReadable { try DamagedRow(line: line) }.map { !scope.takes($0) } ?? true
            }
            guard kept.count < lines.count else { continue }
            guard !kept.isEmpty else {
                try AtomicFile.remove([path])
                continue
            }
            let bytes = Array(kept.map { "\($0)\n" }.joined().utf8)
            try AtomicFile.write(path, replace: true) { file in try bytes.withUnsafeBytes { try file.write($0) } }
        }
    }

    /// Whether a purge was cut short after its commit.
    public static func isPending(_ store: Store) throws -> Bool { try store.meta(Store.pendingPurge) != nil }

    private mutating func removeSettledConflicts() throws {
        for batch in try store.batches() {
            let settled = batch.settledConflicts
            let kept = settled.filter { conflict in
                ![conflict.existing, conflict.incoming].contains { scope.takesPublication($0) }
            }
            guard kept.count < settled.count else { continue }
            result.versions += settled.count - kept.count
            try store.setSettledConflicts(kept, of: batch)
        }
    }

    // MARK: Files

    /// Files that only these versions name, their copies in quarantine, and other versions of them.
    private mutating func removeFiles() throws {
        try noteFilesOfDeleted()
        guard !files.isEmpty || !takenBack.isEmpty else { return }
        for conflict in try store.conflictsOfFiles() where conflict.isOfOneFile {
            let paths = [conflict.existing, conflict.incoming]
            let owners = paths.compactMap { files[$0] }
            if !owners.isEmpty { note(paths, of: owners.reduce([]) { $0.union($1) }) }
        }
        for (path, owners) in files { note([Intake.quarantined(path)], of: owners) }
        gone = try Set(files.keys).subtracting(filesInUse()).sorted()
        for path in gone {
            if let asset = try store.ifSound({ try store.asset(path) }) ?? nil {
                guard options.withFiles || path.hasPrefix("\(Quarantine.zone)/") else {
                    result.linked.append(path)
                    try store.noteFile(path, of: files[path] ?? [])
                    continue
                }
                try store.purgeAsset(asset, dryRun: options.dryRun)
                try store.markPurged(asset, of: files[path] ?? [])
                unwanted.append(path)
                result.files.append(path)
            } else if try store.pending(path) != nil {
                // What an undo would put there is not wanted either.
                try store.setPending(path, was: nil)
                unwanted.append(path)
            }
            try removeKept(path)
        }
        let used = takenBack.union(files.keys).subtracting(gone)
        if !used.isEmpty {
            let kept = try KeptFiles(store)
            result.earlierFiles = try used.sorted().filter(kept.removeUnmeant)
        }
        try store.forgetGoneFilesOfDeleted()
    }

    /// Files of records whose versions are gone: of a purge before that left them, or of a delete long ago or elsewhere.
    private mutating func noteFilesOfDeleted() throws {
        for (path, owners) in try store.filesOfDeleted() {
            let ours = owners.filter { scope.takes($0.id, type: $0.type, localID: $0.localID) }
            if !ours.isEmpty { note([path], of: ours) }
        }
    }

    /// What other records name, alive, in quarantine, or in the undo history, of which the purged versions are gone by now.
    private func filesInUse() throws -> Set<String> {
        var used: Set<String> = []
        func use(_ record: Record) throws {
            guard !record.isDeleted, let fields = try store.ifReadable({ try Fields.parse(record.fields) }) else {
                return
            }
            used.formUnion(RecordFiles.paths(in: fields))
            guard let inside = try store.ifReadable({ try Quarantine.content(of: record) }) ?? nil,
                let held = try store.ifReadable({ try Fields.parse(inside.fields) })
            else { return }
            used.formUnion(RecordFiles.paths(in: held).map(Intake.quarantined))
        }
        try store.forEachRecord(use)
        try store.forEachOldVersion { try use($1) }
        return used
    }

    /// The copies that wait for an undo.
    private mutating func removeKept(_ path: String) throws {
        let query = try store.database.prepare(
            "SELECT 1 FROM batch_asset WHERE path = ?1 AND kept IS NOT NULL AND kept <> ?1"
        ).bind(1, path)
        if try query.step(), !result.files.contains(path) { result.files.append(path) }
        try store.database.statement("DELETE FROM batch_asset WHERE path = ?").bind(1, path).run()
    }

    // MARK: Free pages and the log

    /// What comes after the commit; each part can be repeated.
    private static func finish(_ store: Store) throws {
        guard try store.filesToPurge() != nil else { return }
        try store.removePurgedFiles()
        try store.finishPurge()
    }

    /// The commit stands, whatever comes in the way afterwards.
    private static func isUnfinished(_ error: BackupError, _ store: Store) -> BackupError {
        let next = "'backup-tool store purge --confirm' finishes what is left"
        return BackupError(
            error.code,
            "the records are already purged, but free pages and files may still hold them: \(error.message)",
            at: error.subject ?? store.path, remedy: error.remedy.map { "\($0); \(next)" } ?? next)
    }
}

extension Store {
    /// Of a row of the undo history.
    static let hasContent = "(fields <> '{}' OR field_times IS NOT NULL OR device_id IS NOT NULL)"

    /// Calls `body` with each version in the undo history that has fields, and its row.
    func forEachOldVersion(_ body: (Int64, Record) throws -> Void) throws {
        let query = try database.prepare(
            """
            SELECT rowid, zone, ifnull(name, local_id), type, local_id, fields FROM batch_record
            WHERE \(Self.hasContent)
            """)
        while try query.step() {
            let id = RecordID(zone: query.text(1), name: query.text(2))
            try body(
                query.integer(0),
                Record(
                    id: id, type: query.text(3), localID: query.text(4), fields: query.text(5), createdAt: .distantPast,
                    modifiedAt: .distantPast))
        }
    }
}
