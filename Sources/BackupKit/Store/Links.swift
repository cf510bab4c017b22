/// Links of publications to files of the store.
extension Store {
    /// Whose file a link means where this store and a hub have two of one path.
    enum Meaning { case ours, theirs, both }

    static func links(of record: Record) throws -> [String] { try links(in: record.fields) }

    static func links(in fields: String) throws -> [String] {
        var fields = fields
        // Most have none, and looking is cheaper than parsing.
        guard fields.withUTF8({ contains("\"linkedFiles\"", in: UnsafeRawBufferPointer($0)) }) else {
            return []
        }
        return Fields.strings(RecordFiles.links, in: try Fields.parse(fields))
    }

    func hasAssets() throws -> Bool { try database.integer("SELECT EXISTS (SELECT 1 FROM asset)") != 0 }

    /// The fields of a record as the hub has them, as far as this store knows.
    func hubVersion(of stored: StoredRecord) throws -> String? {
        if let ancestor = try ancestor(stored.record.id) { return ancestor.isDeleted ? nil : ancestor.fields }
        let query = try database.prepare("SELECT 1 FROM record WHERE change = ? AND clean_at = change")
            .bind(1, stored.change)
        return try query.step() ? stored.record.fields : nil
    }

    /// The number of the hub's version that a record was last compared with.
    func hubVersionNumber(of stored: StoredRecord) throws -> Int64 {
        let query = try database.statement("SELECT ifnull(hub_version, 0) FROM record WHERE change = ?")
            .bind(1, stored.change)
        defer { query.reset() }
        return try query.step() ? query.integer(0) : 0
    }

    /// Files have other names: the links of all publications follow. No time changes, as with `addToSet`, and an undo of the
    /// import that brought a record still finds it. Must run inside `write`.
    func relink(_ moved: [ByteName: String], meaning: (StoredRecord, String) throws -> Meaning) throws {
        guard !moved.isEmpty else { return }
        var changed: [(StoredRecord, [String])] = []
        try forEachLive(type: RecordType.publication) { stored in
            let links = try Self.links(of: stored.record)
            guard links.contains(where: { moved[ByteName($0)] != nil }) else { return }
            let new = try links.flatMap { link -> [String] in
                guard let path = moved[ByteName(link)] else { return [link] }
                return switch try meaning(stored, link) {
                case .ours: [path]
                case .theirs: [link]
                case .both: [link, path]
                }
            }
            changed.append((stored, new))
        }
        for (stored, links) in changed {
            let record = try stored.record.linking(links)
            guard record != stored.record else { continue }
            let change = nextChange()
            try overwrite(stored.change, with: record, change)
            try follow(stored.change, to: change)
        }
    }
}

extension Record {
    /// The record where files that it names have other names.
    func following(_ moved: [ByteName: String]) throws -> Record {
        guard !moved.isEmpty, !isDeleted else { return self }
        if type == RecordType.conflict { return try Conflict.following(self, moved) ?? self }
        guard type == RecordType.publication else { return self }
        let links = try Store.links(of: self)
        guard links.contains(where: { moved[ByteName($0)] != nil }) else { return self }
        return try linking(links.map { moved[ByteName($0)] ?? $0 })
    }

    /// The record with these links, where it has any.
    func linking(_ paths: [String]) throws -> Record {
        var fields = try Fields.parse(fields)
        guard let index = fields.firstIndex(where: { $0.name == RecordFiles.links }) else { return self }
        let links = Set(paths.map { ByteName($0) }).map(\.text).sorted(by: precedesBytewise)
        fields[index] = Field(RecordFiles.links, .array(links.map { .string($0) }))
        var record = self
        record.fields = Fields.text(fields)
        return record
    }
}
