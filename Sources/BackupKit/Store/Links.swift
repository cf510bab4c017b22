/// Links of publications and events to files of the store.
extension Store {
    /// Whose file a link means where this store and a hub have two of one path.
    enum Meaning { case ours, theirs, both }

    static func links(of record: Record) throws -> [String] { try links(in: record.fields, type: record.type) }

    static func links(in fields: String, type: String) throws -> [String] {
        var fields = fields
        guard fields.withUTF8({ RecordFiles.mayName(UnsafeRawBufferPointer($0)) }) else { return [] }
        return RecordFiles.links(in: try Fields.parse(fields), type: type)
    }

    /// Visits the living records that link files, as far as they can be read.
    func forEachLinking(_ body: (StoredRecord) throws -> Void) throws {
        try forEachLive(type: RecordType.publication, body)
        try forEachEvent { change, fields in
            guard RecordFiles.mayName(fields), let stored = try storedRecord(change: change) else { return }
            try body(stored)
        }
    }

    private func storedRecord(change: Int64) throws -> StoredRecord? {
        let query = try database.statement("SELECT \(Self.recordColumns) FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        return try query.step() ? ifSound { try RowReader.record(query) } : nil
    }

    /// What the living records link that have the local id and the type of this one.
    func linksOfLiving(_ record: Record) throws -> [String] {
        try records(localID: record.localID).map(\.record).filter { $0.type == record.type && !$0.isDeleted }
            .flatMap { try Self.links(of: $0) }
    }

    /// The files that a record links, as far as they are here or awaited, by their paths. A path that no hub has heard of
    /// from this record is not the hub's file.
    func knownFiles(of stored: StoredRecord) throws -> [ByteName: SHA256Digest] {
        let isUnseen = try hubVersion(stored.change) == nil
        var found: [ByteName: SHA256Digest] = [:]
        for path in try Self.links(of: stored.record) {
            let here = try ifSound { try asset(path) }??.digest
            found[ByteName(path)] = try here ?? (isUnseen ? nil : hubAsset(path)?.digest)
        }
        return found
    }

    /// Whether two records may be one, as far as their files tell: those of one of them are the other's, under whatever names.
    func mayShareFiles(_ one: StoredRecord, _ other: StoredRecord) throws -> Bool {
        let (mine, theirs) = (Set(try knownFiles(of: one).values), Set(try knownFiles(of: other).values))
        return mine.isEmpty || theirs.isEmpty || mine == theirs
    }

    func hasAssets() throws -> Bool { try database.integer("SELECT EXISTS (SELECT 1 FROM asset)") != 0 }

    /// The fields of a record as the hub has them, as far as this store knows.
    func hubVersion(of stored: StoredRecord) throws -> String? {
        if let ancestor = try ancestor(stored.record.id) { return ancestor.isDeleted ? nil : ancestor.fields }
        return try isOnHub(stored.change) ? stored.record.fields : nil
    }

    /// The versions of the hub that say what a record links: its own, and those of records that it has taken in and of which the
    /// hub may not know that. What another device wrote into one of these went into this one.
    func hubVersions(of stored: StoredRecord) throws -> [(fields: String, number: Int64)] {
        let zone = stored.record.id.zone
        // The tombstone of a publication may have the local id of its listing.
        let merged = try stored.record.idsTakenIn.flatMap { localID in
            try records(localID: localID)
                + [ifSound { try record(RecordID(zone: zone, name: localID)) } ?? nil].compactMap { $0 }
        }.filter { $0.record.type == stored.record.type && $0.record.isDeleted }
        let all = [stored] + merged
        return try all.compactMap { one in
            try hubVersion(of: one).map { ($0, try hubVersionNumber(of: one)) }
        }
    }

    /// The number of the hub's version that a record was last compared with.
    func hubVersionNumber(of stored: StoredRecord) throws -> Int64 {
        let query = try database.statement("SELECT ifnull(\(HubSeal.version), 0) FROM record WHERE change = ?")
            .bind(1, stored.change)
        defer { query.reset() }
        return try query.step() ? query.integer(0) : 0
    }

    /// Files have other names: the links of all records follow. No time changes, as with `addToSet`, and an undo of the
    /// import that brought a record still finds it. Must run inside `write`.
    func relink(_ moved: [ByteName: String], meaning: (StoredRecord, String) throws -> Meaning) throws {
        guard !moved.isEmpty else { return }
        var changed: [(StoredRecord, Record)] = []
        try forEachLinking { stored in
            let links = try Self.links(of: stored.record)
            var ours: [ByteName: String] = [:]
            var others: [String] = []
            for link in links {
                guard let path = moved[ByteName(link)] else { continue }
                switch try meaning(stored, link) {
                case .ours: ours[ByteName(link)] = path
                case .theirs: break
                case .both: others.append(path)
                }
            }
            var record = try stored.record.following(ours)
            // An event has one file of a kind.
            if !others.isEmpty, record.type == RecordType.publication {
                record = try record.linking(Self.links(of: record) + others)
            }
            if record != stored.record { changed.append((stored, record)) }
        }
        for (stored, record) in changed { try rewrite(stored, as: record) }
    }

    /// Changes what a record says, and neither its times nor what brought it. Must run inside `write`.
    func rewrite(_ stored: StoredRecord, as record: Record) throws {
        let change = nextChange()
        try overwrite(stored.change, knownAs: stored.record.localID, with: record, change)
        try follow(stored.change, to: change)
    }
}

extension Record {
    /// The record without links to these paths, which have files of others. An event goes on to name a file: one that is not
    /// there.
    func leaving(_ paths: [String]) throws -> Record {
        guard !paths.isEmpty, !isDeleted else { return self }
        if type == RecordType.publication {
            return try linking(Store.links(of: self).filter { path in !paths.contains { sameBytes($0, path) } })
        }
        let names = paths.map { (ByteName($0), Store.missingName(of: $0, for: id)) }
        return try following(Dictionary(names, uniquingKeysWith: { $1 }))
    }

    /// The record where it links a known file under the name that this has by now.
    func linking(_ known: Set<ByteName>) throws -> Record {
        func former(_ path: String) -> ByteName { ByteName(RecordFiles.formerPath(path) ?? path) }
        var moved: [ByteName: String] = [:]
        for path in try Store.links(of: self) where !known.contains(ByteName(path)) {
            moved[ByteName(path)] = known.first { former($0.text) == former(path) }?.text
        }
        return try following(moved)
    }

    /// The record where files that it names have other names.
    func following(_ moved: [ByteName: String]) throws -> Record {
        guard !moved.isEmpty, !isDeleted else { return self }
        if type == RecordType.conflict { return try Conflict.following(self, files: moved) ?? self }
        guard try Store.links(of: self).contains(where: { moved[ByteName($0)] != nil }),
            let new = RecordFiles.following(moved, in: try Fields.parse(fields), type: type)
        else { return self }
        var record = self
        record.fields = Fields.text(new)
        return record
    }

    /// The publication with these links, where it has any.
    func linking(_ paths: [String]) throws -> Record {
        let old = try Fields.parse(fields)
        let new = RecordFiles.linking(paths, in: old)
        if old == new { return self }
        var record = self
        record.fields = Fields.text(new)
        return record
    }
}
