/// Which listings a publication was before it was edited, renamed or given an identifier. A delete of a record is a delete of
/// all its versions: an older backup or file knows the record by what it said then. Only ids are kept, no text.
extension Store {
    /// Notes what a version was that another one takes the place of. Must run inside `write`.
    func noteListing(of old: Record, as id: RecordID) throws {
        guard old.type == RecordType.publication, !old.isDeleted, DeterministicID.isMade(old.localID),
            let work = try? WorkID(old)
        else { return }
        try noteListing(work.listing, of: id)
    }

    func noteListing(_ listing: String, of id: RecordID) throws {
        try database.statement("INSERT OR IGNORE INTO listed VALUES (?, ?, ?)")
            .bind(1, listing).bind(2, id.zone).bind(3, id.name).run()
        if database.changes > 0 { hasNewMarks = true }
    }

    /// Another device has noted what a record was that it has deleted.
    func noteListings(in tombstone: Record) throws {
        guard tombstone.isDeleted, tombstone.type == RecordType.publication else { return }
        for listing in tombstone.earlierListings { try noteListing(listing, of: tombstone.id) }
    }

    /// The record is called otherwise from now on: its old name may be another work's.
    func moveListings(of old: RecordID, to id: RecordID) throws {
        try database.statement("UPDATE OR REPLACE listed SET zone = ?, name = ? WHERE zone = ? AND name = ?")
            .bind(1, id.zone).bind(2, id.name).bind(3, old.zone).bind(4, old.name).run()
    }

    func earlierListings(of id: RecordID) throws -> [String] {
        let query = try database.statement("SELECT listing FROM listed WHERE name = ? AND zone = ? ORDER BY listing")
            .bind(1, id.name).bind(2, id.zone)
        defer { query.reset() }
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }

    /// What publications were before they were edited and deleted.
    func deletedListings() throws -> [String] {
        let query = try database.prepare(
            """
            SELECT DISTINCT listing FROM listed JOIN record USING (zone)
            WHERE ifnull(record.name, record.local_id) = listed.name AND deleted_at IS NOT NULL
            AND type = 'Publication' AND type <> 'PuppyEvent'
            """)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }

    /// The tombstone of a publication that said once what the incoming one says, and that was edited and deleted since.
    func deletedSinceItWas(_ work: @autoclosure () throws -> WorkID, _ incoming: Record) throws -> StoredRecord? {
        guard try hasListings() else { return nil }
        for id in try work().listings.flatMap(records(listedAs:)) {
            guard let known = try ifSound({ try record(id) }) ?? nil, known.record.isDeleted,
                !known.record.spares(incoming), known.record.modifiedAt >= incoming.latestTime,
                try backup?.hasTombstone(of: id) != true
            else { continue }
            return known
        }
        return nil
    }

    private func records(listedAs listing: String) throws -> [RecordID] {
        let query = try database.statement("SELECT zone, name FROM listed WHERE listing = ? ORDER BY zone, name")
            .bind(1, listing)
        defer { query.reset() }
        var found: [RecordID] = []
        while try query.step() { found.append(RecordID(zone: query.text(0), name: query.text(1))) }
        return found
    }

    /// Most stores have no such publication, and then nobody need ask what another one is.
    private func hasListings() throws -> Bool {
        let query = try database.statement("SELECT 1 FROM listed LIMIT 1")
        defer { query.reset() }
        return try query.step()
    }

    /// Whether two records under one id are versions of one, also where an edit has made another listing of it since.
    func isOneRecord(_ known: Record, _ incoming: Record) throws -> Bool {
        if try WorkLineage.isOneRecord(known, incoming) { return true }
        guard known.type == incoming.type, let (record, tombstone) = Record.livingAndDead(known, incoming) else {
            return false
        }
        // What is noted under the name that both have is of the one that the store has.
        let haveOneName = record.id == tombstone.id
        let (isNotedOfRecord, isNotedOfTombstone) = (!haveOneName || !known.isDeleted, !haveOneName || known.isDeleted)
        let deleted = [tombstone.localID] + tombstone.earlierListings
        if isNotedOfRecord, try earlierListings(of: record.id).contains(where: deleted.contains) { return true }
        let earlier = isNotedOfTombstone ? try earlierListings(of: tombstone.id) : []
        return try !earlier.isEmpty && WorkID(record).listings.contains { earlier.contains($0) }
    }
}
