/// Files of a backup that were purged here with their records.
struct PurgedFiles {
    /// The purged record that names a file, by the file's name in the backup.
    private var owners: [ByteName: RecordID] = [:]
    /// What other records of the backup name.
    private var named: Set<ByteName> = []

    init(_ store: Store, _ naming: NamingRecords) throws {
        guard try store.hasPurged() else { return }
        _ = try naming.forEach { record, fields in
            let paths = RecordFiles.paths(in: fields).map { ByteName($0) }
            guard try store.isPurged(record) else { return self.named.formUnion(paths) }
            for path in paths { owners[path] = record.id }
        }
        for path in named { owners[path] = nil }
    }

    /// A backup that was made between the delete and the purge has the file without its record.
    fileprivate func owner(of file: Asset, in store: Store) throws -> RecordID? {
        if let owner = owners[ByteName(file.path)] { return owner }
        return named.contains(ByteName(file.path)) ? nil : try store.ownerOfPurged(file)
    }
}

extension Intake {
    /// Must run inside the batch, before files are taken.
    func findPurgedFiles(_ naming: NamingRecords) throws {
        purgedFiles = try PurgedFiles(store, naming)
    }

    /// Whether a file of a backup was purged with its record. It is left out and named, unless the store has it or a living
    /// record names it.
    func staysPurged(_ file: Asset) throws -> Bool {
        let name = file.path
        let path = moved[ByteName(name)] ?? name
        guard let owner = try purgedFiles?.owner(of: file, in: store),
            try store.ifSound({ try store.asset(path) }) ?? nil == nil
        else { return false }
        guard try !isNamedByLiving(path) else { return false }
        result.attachmentsLeftDeleted += 1
        note(
            Finding(
                .leftOut, .warning, name, "was purged with its record \(owner), so it stays away",
                remedy: Self.howPurgedReturn(owner)))
        return true
    }
}

extension Store {
    fileprivate func hasPurged() throws -> Bool { try database.integer("SELECT EXISTS (SELECT 1 FROM purged)") != 0 }
}
