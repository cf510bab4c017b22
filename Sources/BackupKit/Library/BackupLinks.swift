/// The files that records of a backup link: those of the backup, and never another file that the store has under the path.
struct BackupLinks {
    /// The files of the backup, by their paths: also those that the manifest lists and that are damaged or not there.
    private let digests: [ByteName: SHA256Digest]
    /// Those that come with the records, or that the store has under another name.
    var coming: Set<ByteName>
    /// Paths of the backup's files that records of the store name, others than those of the backup, and that wait for a file.
    var meantElsewhere: Set<ByteName> = []
    /// What living records of the store link before the restore.
    private let linkedBefore: Set<ByteName>
    private let store: Store

    init(_ store: Store, digests: [ByteName: SHA256Digest], coming: Set<ByteName>) throws {
        (self.store, self.digests, self.coming) = (store, digests, coming)
        var links = LivingLinks(store)
        linkedBefore = try store.hasAssets() ? links.all() : []
    }

    func digest(of path: String) -> SHA256Digest? { digests[ByteName(path)] }

    /// The links of a record whose paths have files of other works in this store.
    func strange(in record: Record) throws -> [String] {
        guard !record.isDeleted else { return [] }
        let open = try Store.links(of: record).filter { !coming.contains(ByteName($0)) }
        guard !open.isEmpty else { return [] }
        // What the store's version of the record links is its own.
        let present = try store.linksOfLiving(record)
        return try open.filter { path in
            guard !present.contains(where: { sameBytes($0, path) }),
                let found = try store.ifSound({ try store.asset(path) }) ?? nil
            else { return false }
            if let digest = digest(of: path) { return digest != found.digest }
            return linkedBefore.contains(ByteName(path))
        }
    }
}

extension Intake {
    /// The record of a backup with the names that its files have in this store, and without links to files of others.
    func linkingOwnFiles(_ record: Record) throws -> Record {
        let strange = try backupLinks?.strange(in: record) ?? []
        guard !strange.isEmpty else { return try record.following(moved) }
        for path in strange {
            note(
                Finding(
                    .linkMissing, .warning, path,
                    "is named by \(RecordLabel.text(of: record)), but is not in the backup; "
                        + "the store has another file of that name, so it was not linked",
                    remedy: "restore it from a backup that has it, or import it with --attachments DIR"))
        }
        return try record.leaving(strange).following(moved)
    }
}

extension Intake {
    /// Which paths of these files are meant by other records of the store than those that `views` has for them.
    func pathsMeantElsewhere(of files: [Asset], _ views: LayoutViews) throws -> Set<ByteName> {
        // What replaces the store's records leaves few of the others.
        let files = overwrite ? files.filter { remaining.own.contains(ByteName($0.path)) } : files
        let free = try files.filter { file in try store.ifSound { try store.asset(file.path) } ?? nil == nil }
        let open = try OpenLinks(store, among: Set(free.map { ByteName($0.path) }))
        guard !open.paths.isEmpty, let claims = try views.claims(on: open.paths) else { return [] }
        return open.paths.filter { path in open.mean(path.text) { claims[path] ?? [] } }
    }
}

extension LayoutViews {
    /// The local ids of the backup's records that link each of these paths. Nil where it has no records to say it.
    fileprivate func claims(on paths: Set<ByteName>) throws -> [ByteName: Set<ByteName>]? {
        var found: [ByteName: Set<ByteName>] = [:]
        let hasRecords = try forEachNaming { record, fields in
            for path in RecordFiles.links(in: fields, type: record.type) where paths.contains(ByteName(path)) {
                found[ByteName(path), default: []].insert(ByteName(record.localID))
            }
        }
        return hasRecords ? found : nil
    }

    /// Visits the living records of the backup that name files, also those that nobody asked for. What cannot be read is
    /// named by who takes it. Returns whether the backup has its records.
    func forEachNaming(_ body: (Record, [Field]) throws -> Void) throws -> Bool {
        guard let file = sound(Layout.records) else { return false }
        var reader = LineReader(limit: limits.lineBytes)
        func take(_ line: LineReader.Line) throws {
            guard let bytes = line.bytes, RecordFiles.mayName(bytes), let record = try? Record(parsing: bytes),
                !record.isDeleted, let fields = try? Fields.parse(record.fields)
            else { return }
            try body(record, fields)
        }
        try FileHandle.openText(file).forEachChunk { try reader.feed($0, take) }
        try reader.finish(take)
        return true
    }
}
