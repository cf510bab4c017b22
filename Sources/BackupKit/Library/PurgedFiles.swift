/// Files of a backup that were purged here with their records.
struct PurgedFiles {
    /// The purged record that names a file, by the file's name in the backup.
    private var owners: [ByteName: RecordID] = [:]

    /// Reads the backup's records, also those that nobody asked for: only they say whose a file is.
    init(_ store: Store, records path: String, limits: ReadLimits) throws {
        guard try store.hasPurged() else { return }
        var named: Set<ByteName> = []
        var reader = LineReader(limit: limits.lineBytes)
        func take(_ line: LineReader.Line) throws {
            guard let bytes = line.bytes, bytes.count > 0,
                let record = try store.ifReadable({ try Record(parsing: bytes) }), !record.isDeleted,
                let fields = try store.ifReadable({ try Fields.parse(record.fields) })
            else { return }
            let paths = RecordFiles.paths(in: fields).map { ByteName($0) }
            guard try store.isPurged(record) else { return named.formUnion(paths) }
            for path in paths { owners[path] = record.id }
        }
        try FileHandle.openText(path).forEachChunk { try reader.feed($0, take) }
        try reader.finish(take)
        for path in named { owners[path] = nil }
    }

    fileprivate func owner(of name: String) -> RecordID? { owners[ByteName(name)] }
}

extension Intake {
    /// Must run inside the batch, before files are taken.
    func findPurgedFiles(_ views: LayoutViews) throws {
        purgedFiles = try views.sound(Layout.records).map {
            try PurgedFiles(store, records: $0, limits: views.limits)
        }
    }

    /// Whether a file of a backup was purged with its record. It is left out and named, unless the store has it or a living
    /// record names it.
    func staysPurged(_ name: String) throws -> Bool {
        let path = moved[ByteName(name)] ?? name
        guard let owner = purgedFiles?.owner(of: name), try store.ifSound({ try store.asset(path) }) ?? nil == nil
        else {
            return false
        }
        if namedByLiving == nil { namedByLiving = LivingLinks(store) }
        guard try namedByLiving?.contains(path) == false else { return false }
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
