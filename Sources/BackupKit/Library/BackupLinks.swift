/// The files that records of a backup link: those of the backup, and never another file that the store has under the path.
struct BackupLinks {
    /// The files of the backup, by their paths: also those that the manifest lists and that are damaged or not there.
    private let digests: [ByteName: SHA256Digest]
    /// Those that come with the records, or that the store has under another name.
    var coming: Set<ByteName>
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
        guard record.type == RecordType.publication, !record.isDeleted else { return [] }
        let open = try Store.links(of: record).filter { !coming.contains(ByteName($0)) }
        guard !open.isEmpty else { return [] }
        // What the store's version of the record links is its own.
        let present = try store.livePublication(record.localID).map { try Store.links(of: $0.record) } ?? []
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
        let own = try Store.links(of: record).filter { path in !strange.contains { sameBytes($0, path) } }
        return try record.linking(own).following(moved)
    }
}
