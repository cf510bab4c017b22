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
    /// Which paths of these files are meant by other records of the store than those that the backup has for them.
    func pathsMeantElsewhere(of files: [Asset], _ naming: NamingRecords) throws -> Set<ByteName> {
        // What replaces the store's records leaves few of the others.
        let files = overwrite ? files.filter { remaining.own.contains(ByteName($0.path)) } : files
        let free = try files.filter { file in try store.ifSound { try store.asset(file.path) } ?? nil == nil }
        let open = try OpenLinks(store, among: Set(free.map { ByteName($0.path) }))
        guard !open.paths.isEmpty, let claims = try naming.claims(on: open.paths) else { return [] }
        return open.paths.filter { path in open.mean(path.text) { claims[path] ?? [] } }
    }
}
