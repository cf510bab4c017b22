/// The works that a purge takes, under every name that the store ever gave them.
///
/// The undo history has versions under names that no row has any more: of a record that was kept on this device only, or
/// whose import was taken back.
struct PurgeScope {
    private struct Work: Hashable {
        let type: ByteName
        let localID: ByteName

        init(_ type: String, _ localID: String) { (self.type, self.localID) = (ByteName(type), ByteName(localID)) }
    }

    /// A row of the undo history.
    private struct Version {
        let id: RecordID
        let work: Work
        let change: Int64
        let after: Int64?
        let time: Timestamp
        /// An earlier purge has removed its content.
        let isCleared: Bool
        /// Not that of a tombstone, of which there is nothing to remove.
        let hasContent: Bool
    }

    private(set) var ids: Set<RecordID> = []
    private var works: Set<Work> = []
    private let store: Store
    /// What was deleted later is not to be taken.
    private let limit: Timestamp?
    private var versions: [Version] = []
    /// Which version had a change number.
    private var places: [Int64: Int] = [:]

    init(_ store: Store, deletedBefore limit: Timestamp?) { (self.store, self.limit) = (store, limit) }

    /// Reads the undo history; in the transaction of the purge.
    mutating func load() throws {
        let query = try store.database.prepare(
            """
            SELECT change, after, zone, ifnull(name, local_id), type, local_id, started_at, \(Store.hasContent)
            FROM batch_record JOIN batch ON batch.id = batch
            """)
        while try query.step() {
            let isCleared = query.integer(0) == Store.purgedChange
            if !isCleared { places[query.integer(0)] = versions.count }
            versions.append(
                Version(
                    id: RecordID(zone: query.text(2), name: query.text(3)),
                    work: Work(query.text(4), query.text(5)), change: query.integer(0), after: query.optionalInteger(1),
                    time: Timestamp(milliseconds: query.integer(6)), isCleared: isCleared,
                    hasContent: query.integer(7) != 0))
        }
    }

    func takes(_ id: RecordID, type: String, localID: String) -> Bool {
        ids.contains(id) || works.contains(Work(type, localID))
    }

    func takes(_ record: Record) -> Bool { takes(record.id, type: record.type, localID: record.localID) }

    func takes(_ row: DamagedRow) -> Bool {
        let (type, localID) = row.work
        return takes(row.id, type: type, localID: localID)
    }

    func takesPublication(_ localID: String) -> Bool { works.contains(Work(RecordType.publication, localID)) }

    /// Whether the store has the record alive under another name, as when it is kept on this device only, or had until
    /// the limit.
    func isAlive(_ record: Record) throws -> Bool {
        // The cloud's tombstone of what is kept on this device only may be called after the listing that it deletes.
        try isAlive(Work(record.type, record.localID))
            || rows(of: Work(record.type, record.id.name)).contains { $0.isLocalOnly && !isGone($0) }
    }

    private func isAlive(_ work: Work) throws -> Bool { try rows(of: work).contains { !isGone($0) } }

    private func isGone(_ record: Record) -> Bool {
        guard let deletedAt = record.deletedAt else { return false }
        return limit.map { deletedAt < $0 } ?? true
    }

    private func rows(of work: Work) throws -> [Record] {
        try store.records(localID: work.localID.text).map(\.record).filter { sameBytes($0.type, work.type.text) }
    }

    private func row(_ id: RecordID) throws -> Record? { try store.ifSound({ try store.record(id) })??.record }

    // MARK: What is taken

    /// Takes a tombstone, unless the record is here under another name: its older versions are those of a living record.
    /// Returns the tombstones of the works that were merged into it.
    mutating func add(_ tombstone: Record) throws -> [Record] {
        if try isAlive(tombstone) { return [] }
        ids.insert(tombstone.id)
        let merged = tombstone.idsTakenIn
        for localID in [tombstone.localID, tombstone.id.name] + merged {
            let work = Work(tombstone.type, localID)
            if try !isAlive(work) { works.insert(work) }
        }
        return try merged.flatMap { try store.find($0) }.filter {
            try $0.isDeleted && sameBytes($0.type, tombstone.type) && !isAlive($0)
        }
    }

    /// Takes what the history knows by this name; false when there is nothing.
    mutating func add(named text: String, hasTombstone: Bool) throws -> Bool {
        let found = versions.filter {
            sameBytes($0.id.description, text) || sameBytes($0.id.name, text) || sameBytes($0.work.localID.text, text)
        }
        for version in found {
            if try !isAlive(version.work) {
                take(version)
            } else if !hasTombstone {
                throw Purge.isNotDeleted(text)
            }
        }
        return !found.isEmpty
    }

    /// Takes what was taken back before this time and is only in the history. What was deleted has a tombstone, which
    /// tells when.
    mutating func addTakenBack(before time: Timestamp) throws {
        var latest: [Work: Timestamp] = [:]
        for version in versions { latest[version.work] = max(latest[version.work] ?? version.time, version.time) }
        for version in versions where latest[version.work] ?? time < time {
            if try !isCurrent(version), try rows(of: version.work).isEmpty,
                try row(RecordID(zone: version.id.zone, name: version.work.localID.text)) == nil
            {
                take(version)
            }
        }
    }

    private mutating func take(_ version: Version) {
        ids.insert(version.id)
        works.insert(version.work)
    }

    /// Whether the version, or what came after it, is a row of the store.
    private func isCurrent(_ version: Version) throws -> Bool {
        if try row(version.id) != nil { return true }
        guard let after = version.after else { return false }
        let query = try store.database.statement("SELECT 1 FROM record WHERE change = ?").bind(1, after)
        defer { query.reset() }
        if try query.step() { return true }
        guard let next = places[after].map({ versions[$0] }), next.change > version.change else { return false }
        return try isCurrent(next)
    }

    /// Adds the other names of what is taken, until there are none. Returns records that no row has any more.
    mutating func grow() throws -> [RecordID] {
        var count = -1
        while count != ids.count + works.count {
            count = ids.count + works.count
            for version in versions where takes(version) {
                if try !isAlive(version.work) { works.insert(version.work) }
                if try row(version.id).map(isGone) ?? true { ids.insert(version.id) }
            }
        }
        var known: Set<Work> = []
        return try versions.filter {
            try takes($0) && !$0.isCleared && $0.hasContent && RecordType.isCounted($0.work.type.text)
                && !sameBytes($0.work.type.text, Quarantine.type) && known.insert($0.work).inserted
                && rows(of: $0.work).isEmpty && row($0.id) == nil
                && row(RecordID(zone: $0.id.zone, name: $0.work.localID.text)) == nil
        }.map(\.id)
    }

    /// The tombstones of all that is taken.
    func tombstones() throws -> [Record] {
        try (ids.compactMap(row) + works.flatMap(rows)).filter(isGone)
    }

    private func takes(_ version: Version) -> Bool { ids.contains(version.id) || works.contains(version.work) }
}
