/// What `store purge` removed for good, or would remove.
public struct PurgeResult: Sendable {
    /// The deleted records; their tombstones stay.
    public internal(set) var records: [RecordID] = []
    /// Older versions: in the undo history, in quarantine, as ancestors of a merge, as damaged rows.
    public internal(set) var versions = 0
    /// Attachments whose bytes go: kept for an undo, or linked by nothing else and asked for.
    public internal(set) var files: [String] = []
    /// Attachments that only these records linked, and that stay.
    public internal(set) var linked: [String] = []
    /// Backups that still hold one of the records alive.
    public internal(set) var holders: [PurgeHolder] = []
}

/// A backup that still holds purged records.
public struct PurgeHolder: Sendable, Equatable {
    public let source: String
    public let records: [RecordID]
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
    static let pending = StoreCheck.pendingPurge

    private let store: Store
    private let options: PurgeOptions
    private var result = PurgeResult()
    private var ids: Set<RecordID> = []
    private var localIDs: Set<String> = []
    /// Files that the purged versions link.
    private var links: Set<String> = []
    /// Paths below the assets' folder.
    private var unwanted: [String] = []

    public static func run(_ store: Store, _ options: PurgeOptions) throws -> PurgeResult {
        var purge = Purge(store: store, options: options)
        if options.dryRun {
            try store.rehearse { try purge.removeRows() }
        } else {
            // What is deleted from now on is overwritten with zeros.
            try store.database.execute("PRAGMA secure_delete = ON")
            try store.write { try purge.removeRows() }
            try purge.removeFromKeptRows()
            try finish(store)
        }
        purge.result.holders = try PurgeHolder.find(purge.ids, in: options.sources, options.limits)
        return purge.result
    }

    private init(store: Store, options: PurgeOptions) { (self.store, self.options) = (store, options) }

    // MARK: Which records

    private mutating func choose() throws {
        for text in options.ids {
            let found = try store.find(text)
            guard !found.isEmpty else {
                throw BackupError(
                    .failed, "there is no such record", at: text, remedy: "'backup-tool store changes' lists the ids")
            }
            if found.contains(where: { !$0.isDeleted }) {
                throw BackupError(
                    .refused, "is not deleted", at: text,
                    remedy: "'backup-tool store delete' deletes it; then it can be purged")
            }
            for record in found { add(record.id, record.localID) }
        }
        guard let time = options.deletedBefore else { return }
        let query = try store.database.prepare(
            "SELECT zone, ifnull(name, local_id), local_id FROM record WHERE deleted_at < ?"
        ).bind(1, time.milliseconds)
        while try query.step() {
            add(RecordID(zone: query.text(0), name: query.text(1)), query.text(2))
        }
    }

    private mutating func add(_ id: RecordID, _ localID: String) {
        guard ids.insert(id).inserted else { return }
        localIDs.insert(localID)
        result.records.append(id)
    }

    // MARK: Rows

    private mutating func removeRows() throws {
        try choose()
        try removeFromHistory()
        try removeEnvelopes()
        try removeAncestors()
        try removeDamaged()
        try removeConflicts()
        try removeFiles()
        guard !options.dryRun else { return }
        let before = try store.meta(Self.pending).map { try JSON(parsing: $0).array?.compactMap(\.string) ?? [] } ?? []
        let list = JSON.array((before + unwanted).map { .string($0) }).compact
        try store.database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)").bind(1, Self.pending).bind(2, list)
            .run()
    }

    /// An undo brings the tombstone back, where it would have brought the record.
    private mutating func removeFromHistory() throws {
        let query = try store.database.prepare(
            """
            SELECT rowid, zone, ifnull(name, local_id), fields FROM batch_record
            WHERE fields <> '{}' OR field_times IS NOT NULL OR device_id IS NOT NULL
            """)
        var rows: [Int64] = []
        while try query.step() {
            guard ids.contains(RecordID(zone: query.text(1), name: query.text(2))) else { continue }
            rows.append(query.integer(0))
            try noteLinks(query.text(3))
        }
        for row in rows {
            try store.database.statement(
                """
                UPDATE batch_record SET fields = '{}', field_times = NULL, device_id = NULL, local_only = 0,
                deleted_at = ifnull(deleted_at, modified_at), created_at = ifnull(deleted_at, modified_at) WHERE rowid = ?
                """
            ).bind(1, row).run()
        }
        result.versions += rows.count
    }

    private mutating func noteLinks(_ fields: String) throws {
        guard let fields = try store.ifReadable({ try Fields.parse(fields) }) else { return }
        links.formUnion(Fields.strings(Publication.linkedFiles, in: fields))
        for path in EventLine.media(in: fields) { links.formUnion(["Attachments/" + path, path]) }
    }

    private mutating func removeEnvelopes() throws {
        var envelopes: [RecordID] = []
        try store.forEachLive(type: Quarantine.type) { stored in
            guard let inside = try store.ifReadable({ try Quarantine.content(of: stored.record) }) ?? nil,
                ids.contains(inside.id)
            else { return }
            envelopes.append(stored.record.id)
        }
        for id in envelopes {
            if let stored = try store.record(id) {
                try noteLinks(try Quarantine.content(of: stored.record)?.fields ?? "{}")
                try store.bury(stored)
            }
        }
        result.versions += envelopes.count
    }

    private mutating func removeAncestors() throws {
        for id in ids {
            if try store.ancestor(id) != nil { result.versions += 1 }
            try store.dropAncestor(id)
        }
    }

    private mutating func removeDamaged() throws {
        for row in try store.setAside() where ids.contains(row.id) {
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
                try store.ifReadable { try DamagedRow(line: line) }.map { !ids.contains($0.id) } ?? true
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
    public static func isPending(_ store: Store) throws -> Bool { try store.meta(pending) != nil }

    /// Version 0.1.0 wrote the cite keys and titles of decided conflicts into its batches.
    private mutating func removeConflicts() throws {
        for batch in try store.batches() {
            guard let summary = try store.ifReadable({ try JSON(parsing: batch.summary) }),
                let settled = summary["settled"]?.array
            else { continue }
            let kept = settled.filter { entry in
                !["existing", "incoming"].contains { localIDs.contains(entry[$0]?.string ?? "") }
            }
            guard kept.count < settled.count else { continue }
            result.versions += settled.count - kept.count
            let members = (summary.members ?? []).map { $0.key == "settled" ? .init($0.key, .array(kept)) : $0 }
            try store.database.statement("UPDATE batch SET summary = ? WHERE id = ?")
                .bind(1, JSON.object(members).compact).bind(2, batch.id).run()
        }
    }

    // MARK: Files

    private mutating func removeFiles() throws {
        guard !links.isEmpty else { return }
        var others: Set<String> = []
        try store.forEachRecord { record in
            guard !record.isDeleted, let fields = try store.ifReadable({ try Fields.parse(record.fields) }) else {
                return
            }
            others.formUnion(Fields.strings(Publication.linkedFiles, in: fields))
            for path in EventLine.media(in: fields) { others.formUnion(["Attachments/" + path, path]) }
        }
        for path in links.subtracting(others).sorted() {
            if try store.ifSound({ try store.asset(path) }) ?? nil != nil {
                guard options.withFiles else {
                    result.linked.append(path)
                    continue
                }
                try store.database.statement("DELETE FROM asset WHERE path = ?").bind(1, path).run()
                _ = store.nextChange()
                unwanted.append(path)
                result.files.append(path)
            }
            try removeKept(path)
        }
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
        guard let text = try store.meta(pending) else { return }
        let files = try JSON(parsing: text).array?.compactMap(\.string) ?? []
        for path in files { try Store.check(path) }
        try AtomicFile.remove(files.map { "\(store.assetFolder)/\($0)" })
        guard try store.collectBlobs() else { throw isBeingRead(store) }
        try store.database.execute("VACUUM")
        try emptyLog(store)
        try store.write { try store.database.statement("DELETE FROM meta WHERE key = ?").bind(1, pending).run() }
        try emptyLog(store)
    }

    private static func emptyLog(_ store: Store) throws {
        let checkpoint = try store.database.prepare("PRAGMA wal_checkpoint(TRUNCATE)")
        guard try checkpoint.step(), checkpoint.integer(0) == 0 else { throw isBeingRead(store) }
    }

    private static func isBeingRead(_ store: Store) -> BackupError {
        BackupError(
            .temporary, "another program is reading the store, so some of what was purged is still there",
            at: store.path,
            remedy: "end that program, and run 'backup-tool store purge' again: it finishes what is left")
    }
}

extension PurgeHolder {
    /// Which of the sources still hold one of these records alive. A vault without a snapshot stands for all its snapshots.
    static func find(_ ids: Set<RecordID>, in sources: [String], _ limits: ReadLimits) throws -> [PurgeHolder] {
        guard !ids.isEmpty else { return [] }
        var holders: [PurgeHolder] = []
        for source in try sources.flatMap(expanded) {
            let found = try records(of: source, limits, among: ids)
            if !found.isEmpty { holders.append(PurgeHolder(source: source, records: found.sorted())) }
        }
        return holders
    }

    private static func expanded(_ source: String) throws -> [String] {
        guard let address = VaultAddress(source), address.word == nil else { return [source] }
        return try address.vault().snapshots().snapshots.filter(\.file.isLibrary).map {
            "\(source)@\($0.id.hex.prefix(12))"
        }
    }

    private static func records(
        of source: String, _ limits: ReadLimits, among ids: Set<RecordID>
    ) throws -> Set<RecordID> {
        var found: Set<RecordID> = []
        func look(_ record: Record) throws {
            if !record.isDeleted, ids.contains(record.id) { found.insert(record.id) }
            if let inside = try Quarantine.content(of: record), ids.contains(inside.id) { found.insert(inside.id) }
        }
        if Store.isStore(source) {
            try Store(source, .read).forEachRecord(look)
            return found
        }
        let layout = try OpenedLayout.open(source, limits: limits)
        for entry in layout.entries where [.records, .damaged].contains(layout.role(of: entry.path)) {
            let isDamaged = layout.role(of: entry.path) == .damaged
            var lines = LineReader(limit: limits.lineBytes)
            func take(_ line: LineReader.Line) throws {
                guard let bytes = line.bytes, bytes.count > 0 else { return }
                guard isDamaged else { return try look(Record(parsing: bytes)) }
                let row = try DamagedRow(line: String(decoding: bytes, as: UTF8.self))
                if ids.contains(row.id) { found.insert(row.id) }
            }
            try layout.reader.read(entry.path) { try lines.feed($0, take) }
            try lines.finish(take)
        }
        return found
    }
}
