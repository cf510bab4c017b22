/// The records of a backup that name files, including those that were not asked for.
struct NamingRecords {
    /// Where its records lie; nil where it has none, or they are not sound.
    let file: String?
    let limits: ReadLimits

    /// Visits those that are alive. What cannot be read is named by who takes it. Returns whether the backup has its records.
    func forEach(_ body: (Record, [Field]) throws -> Void) throws -> Bool {
        guard let file else { return false }
        try FileHandle.openText(file).forEachLine(limit: limits.lineBytes) { line in
            guard let bytes = line.bytes, RecordFiles.mayName(bytes), let record = try? Record(parsing: bytes),
                !record.isDeleted, let fields = try? Fields.parse(record.fields)
            else { return }
            try body(record, fields)
        }
        return true
    }

    /// The local ids of those that link each of these paths. Nil where the backup has no records to say it.
    func claims(on paths: Set<ByteName>) throws -> [ByteName: Set<ByteName>]? {
        var found: [ByteName: Set<ByteName>] = [:]
        let hasRecords = try forEach { record, fields in
            for path in RecordFiles.links(in: fields, type: record.type) where paths.contains(ByteName(path)) {
                found[ByteName(path), default: []].insert(ByteName(record.localID))
            }
        }
        return hasRecords ? found : nil
    }
}
