/// What a person does to single records: delete, keep on this device, give back to the cloud.
extension Store {
    /// Records that a person can mean by `text`: `zone/name`, a record name, or a local id. Tombstones included.
    public func find(_ text: String) throws -> [Record] {
        var found: [Record] = []
        if let slash = text.utf8.firstIndex(of: FilePath.slash) {
            let id = RecordID(zone: String(text[..<slash]), name: String(text[text.utf8.index(after: slash)...]))
            if let stored = try record(id) { return [stored.record] }
        }
        found = try records(localID: text).map(\.record)
        let query = try database.prepare("SELECT \(Self.recordColumns) FROM record WHERE name = ?").bind(1, text)
        while try query.step() {
            guard let record = try ifSound({ try RowReader.record(query).record }) else { continue }
            if !found.contains(record) { found.append(record) }
        }
        return found
    }

    /// The one live record that `text` names.
    private func live(_ text: String) throws -> StoredRecord {
        let matches = try find(text)
        var alive = matches.filter { !$0.isDeleted }
        if alive.isEmpty {
            // The cloud's name of a record that is kept here only.
            for tombstone in matches {
                // The tombstone of a publication may be called after its listing.
                let names = [tombstone.localID, tombstone.id.name]
                alive += try names.flatMap { try records(localID: $0).map(\.record) }
                    .filter { $0.isLocalOnly && !$0.isDeleted && $0.type == tombstone.type && !alive.contains($0) }
            }
        }
        if alive.count > 1 {
            let names = alive.map(\.id.description).joined(separator: ", ")
            throw BackupError(.failed, "names more than one record: \(names)", at: text, remedy: "use zone/name")
        }
        guard let record = alive.first, let stored = try self.record(record.id) else {
            if matches.isEmpty { throw try unknownID(text) }
            throw BackupError(
                .failed, "is deleted already", at: text,
                remedy: "'backup-tool store changes' lists the records and their ids")
        }
        return stored
    }

    /// What to say of a text that is no record's id.
    func unknownID(_ text: String) throws -> BackupError {
        var bearers: [String] = []
        try forEachCiteKey { key, id, _ in if sameBytes(key, text) { bearers.append(id.description) } }
        guard !bearers.isEmpty else {
            return BackupError(
                .failed, "no record has this id", at: text,
                remedy: "'backup-tool store changes' lists the records and their ids")
        }
        let ids = bearers.sorted().joined(separator: ", ")
        return BackupError(
            .failed, "no record has this id; a cite key is not an id", at: text,
            remedy: "use the id of the publication with this key: \(ids)")
    }

    /// Turns records into tombstones. All of them or none.
    public func delete(_ ids: [String]) throws -> [RecordID] {
        try write {
            try ids.map { text in
                let stored = try live(text)
                try bury(stored)
                return stored.record.id
            }
        }
    }

    /// Turns a live record into a tombstone, of `time` where nothing later is known of it.
    func bury(_ stored: StoredRecord, at decided: Timestamp = .distantPast) throws {
        // Nobody else has heard of what is in quarantine, and nobody is to.
        if stored.record.type == Quarantine.type { return try removeRow(stored) }
        let known = stored.record.isLocalOnly ? try cloudTombstone(of: stored.record) : nil
        let time =
            known == nil && decided > stored.record.latestTime ? decided : timeAfter(stored.record, known?.record)
        if let known {
            // The cloud has its tombstone; a newer one keeps old backups from bringing the copy back.
            let tombstone = try tombstone(known.record, endingCopy: stored.record, at: time)
            try removeRow(stored)
            try put(tombstone, replacing: known)
        } else {
            try put(tombstone(of: stored.record, at: time), replacing: stored)
        }
    }

    /// The tombstone of a copy for this device: a newer one of the record that the copy was made of, so that no old backup
    /// brings the copy back, whatever it has become here since.
    private func tombstone(_ known: Record, endingCopy copy: Record, at time: Timestamp) throws -> Record {
        try noteListing(of: copy, as: known.id)
        try moveListings(of: copy.id, to: known.id)
        var tombstone = known.tombstone(at: time)
        if known.type == RecordType.publication { try noteEarlierListings(of: copy, in: &tombstone) }
        return tombstone
    }

    /// Keeps records on this device alone: everybody else gets a tombstone, the copy here loses its cloud name.
    public func setLocal(_ ids: [String]) throws -> [RecordID] {
        try write {
            try ids.map { text in
                let stored = try live(text)
                return try stored.record.isLocalOnly ? stored.record.id : keepHere(stored)
            }
        }
    }

    /// Keeps a record on this device alone, and returns its name here. Must run inside `write`.
    func keepHere(_ stored: StoredRecord) throws -> RecordID {
        let time = timeAfter(stored.record)
        try put(tombstone(of: stored.record, at: time), replacing: stored)
        var local = stored.record
        let name = RecordID(zone: local.id.zone, name: Self.localPrefix + local.localID)
        local.id = try freeName(name, type: local.type)
        local.isLocalOnly = true
        // Not older than the tombstone beside it, so that a backup of both restores both.
        local.fieldTimes = try Fields.parse(local.fields).reduce(into: local.fieldTimes) { times, field in
            times[field.name] = times[field.name] ?? stored.record.modifiedAt
        }
        local.modifiedAt = time
        try put(local, replacing: nil)
        return local.id
    }

    /// Gives local-only records back to the cloud: the whole record, newer than its tombstone, overwrites it.
    public func enableCloud(_ ids: [String]) throws -> [RecordID] { try write { try ids.map(giveBack) } }

    /// Must run inside `write`.
    func giveBack(_ text: String) throws -> RecordID {
        let stored = try live(text)
        if stored.record.type == RecordType.conflict {
            throw BackupError(
                .refused, "is a conflict, which goes to the hub with its works", at: stored.record.id.description,
                remedy: "'backup-tool conflicts list' lists the conflicts and their works")
        }
        guard stored.record.isLocalOnly else { return stored.record.id }
        let tombstone = try cloudTombstone(of: stored.record)
        var record = stored.record
        record.isLocalOnly = false
        record.modifiedAt = timeAfter(record, tombstone?.record)
        record.fieldTimes = [:]
        if let tombstone {
            record.id = tombstone.record.id
            try moveListings(of: stored.record.id, to: record.id)
            try removeRow(stored)
        } else if record.id.name.hasPrefix(Self.localPrefix) {
            let name = RecordID(zone: record.id.zone, name: record.localID)
            if let other = try self.record(name)?.record, record.type == RecordType.publication {
                guard try !isOneRecord(other, record) else {
                    // Another device has brought it meanwhile.
                    try removeRow(stored)
                    return try ingest(record.identified(as: record.localID)).id
                }
                record = try freeID(of: record, beside: other)
            } else {
                record.id = try freeName(name, type: record.type)
            }
        }
        try put(record, replacing: tombstone ?? stored)
        return record.id
    }

    private static let localPrefix = "local:"

    /// The newest tombstone that the cloud knows a local-only record by. It may be called after the listing that it deletes.
    func cloudTombstone(of local: Record) throws -> StoredRecord? {
        let named = try record(RecordID(zone: local.id.zone, name: local.localID))
        // A sync may have given it the id of its listing.
        let listings = local.type == RecordType.publication ? try WorkID(local).listings : []
        let known = try ([local.localID] + listings).flatMap { try records(localID: $0) }
        return try (known + [named].compactMap(\.self))
            .filter { try $0.record.isDeleted && !$0.record.spares(local) && isOneRecord($0.record, local) }
            .max { $0.record.modifiedAt < $1.record.modifiedAt }
    }

    /// Now, but later than anything that is known of these.
    func timeAfter(_ record: Record, _ others: Record?...) -> Timestamp {
        let known = others.reduce(record.latestTime) { max($0, $1?.latestTime ?? $0) }
        return max(now(), known.next)
    }

    /// How much the store holds.
    public struct Info: Sendable {
        public var records: [Kind: Int] = [:]
        public var types: [(type: String, count: Int)] = []
        public var tombstones = 0
        public var localOnly = 0
        public var assets = 0
        public var assetBytes: Int64 = 0
        public var settings = 0
        public var conflicts = 0
        public var schemaVersion = 0

        /// Comments, macros, groups, text, and the order of entries.
        public var partsOfFiles: Int { types.first { $0.type == RecordType.bibliographyPart }?.count ?? 0 }
    }

    public func info() throws -> Info {
        var info = Info()
        let query = try database.prepare(
            """
            SELECT type, count(*) - count(deleted_at), count(deleted_at), count(nullif(local_only, 0)) FROM record
            GROUP BY type ORDER BY type
            """)
        while try query.step() {
            let live = Int(query.integer(1))
            if query.text(0) == RecordType.conflict { continue }
            info.types.append((query.text(0), live))
            if RecordType.isCounted(query.text(0)) {
                info.records[Kind(recordType: query.text(0)), default: 0] += live
            }
            info.tombstones += Int(query.integer(2))
            info.localOnly += Int(query.integer(3))
        }
        info.assets = Int(try database.integer("SELECT count(*) FROM asset"))
        info.assetBytes = try database.integer(
            "SELECT ifnull(sum(size), 0) FROM asset WHERE size BETWEEN 0 AND 1 << 50")
        info.settings = Int(try database.integer("SELECT count(*) FROM setting"))
        info.conflicts = try conflicts().count
        info.schemaVersion = try dataSchemaVersion
        return info
    }
}

extension Store {
    /// Adds members to a field that is a set. Sets merge by union whatever their times, so no time changes. Returns the
    /// version that was replaced, if any.
    @discardableResult
    func addToSet(_ name: String, _ values: [String], localID: String, type: String) throws -> StoredRecord? {
        guard
            let stored = try records(localID: localID).first(where: { $0.record.type == type && !$0.record.isDeleted })
        else { return nil }
        var fields = try Fields.parse(stored.record.fields)
        let present = Fields.strings(name, in: fields)
        let union = Set(present).union(values).sorted()
        guard union.count > present.count else { return nil }
        let value = Field(name, .array(union.map { .string($0) }))
        if let index = fields.firstIndex(where: { $0.name == name }) {
            fields[index] = value
        } else {
            fields.append(value)
        }
        var record = stored.record
        record.fields = Fields.text(fields)
        try put(record, replacing: stored)
        return stored
    }
}
