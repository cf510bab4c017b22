/// Files of a backup that were purged here with their records.
struct PurgedFiles {
    /// The purged record that names a file, by the file's name in the backup.
    private var owners: [ByteName: RecordID] = [:]

    /// Only the backup's records say whose a file is.
    init(_ store: Store, _ views: LayoutViews) throws {
        guard try store.hasPurged() else { return }
        var named: Set<ByteName> = []
        _ = try views.forEachNaming { record, fields in
            let paths = RecordFiles.paths(in: fields).map { ByteName($0) }
            guard try store.isPurged(record) else { return named.formUnion(paths) }
            for path in paths { owners[path] = record.id }
        }
        for path in named { owners[path] = nil }
    }

    fileprivate func owner(of name: String) -> RecordID? { owners[ByteName(name)] }
}

extension Intake {
    /// Must run inside the batch, before files are taken.
    func findPurgedFiles(_ views: LayoutViews) throws {
        purgedFiles = try PurgedFiles(store, views)
    }

    /// Whether a file of a backup was purged with its record. It is left out and named, unless the store has it or a living
    /// record names it.
    func staysPurged(_ name: String) throws -> Bool {
        let path = moved[ByteName(name)] ?? name
        guard let owner = purgedFiles?.owner(of: name), try store.ifSound({ try store.asset(path) }) ?? nil == nil
        else {
            return false
        }
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
