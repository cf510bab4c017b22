/// Publications that come in by import or restore: which record of the store is which work.
extension Store {
    /// The incoming record and the one of the store that it is a version of. Where the store has another work under that id,
    /// it gets an id of its own work; where the store has the work under the id of another time, it is matched with that.
    func settleWork(of incoming: Record, _ found: Match) throws -> (Record, Match) {
        guard incoming.type == RecordType.publication else { return (incoming, found) }
        guard let main = found.main?.record else {
            return (incoming, try known(as: incoming).map { ($0, false) } ?? found)
        }
        if try isOneRecord(main, incoming) {
            // The listing may have been deleted later, under an id that another device gave it.
            let later = main.isDeleted ? try listing(of: incoming) : nil
            return (incoming, later?.record.isDeleted == true ? (later, false) : found)
        }
        if let known = try known(as: incoming) { return (incoming, (known, false)) }
        // A delete of another work is remembered under that work's own id.
        let ids = try incoming.isDeleted ? [incoming.localID] : WorkID(incoming).ids(beside: main)
        for id in ids where id != incoming.localID || incoming.isDeleted {
            let moved = incoming.identified(as: id)
            let match = try match(moved, among: soundRecords(localID: id))
            guard let main = match.main?.record else { return (moved, match) }
            if try isOneRecord(main, moved) { return (moved, match) }
        }
        return (incoming, found)
    }

    /// The record under another id that an incoming one is a version of.
    private func known(as incoming: Record) throws -> StoredRecord? {
        if let (work, batch) = try workToLookFor(incoming),
            let known = try listing(work, of: incoming, before: batch) ?? namesake(work, of: incoming, before: batch)
        {
            return known
        }
        guard !incoming.isDeleted, !incoming.isLocalOnly else { return nil }
        return try deletedSinceItWas(WorkID(incoming), incoming)
    }

    /// The work of a publication that the store may have had before this batch under another id; nil where it had none.
    private func workToLookFor(_ incoming: Record) throws -> (work: WorkID, batch: Batch)? {
        guard !incoming.isDeleted, !incoming.isLocalOnly, DeterministicID.isMade(incoming.localID),
            let batch = currentBatch, try hadPublications(before: batch)
        else { return nil }
        let work = try WorkID(incoming)
        return work.mayHaveMade(incoming.localID) ? (work, batch) : nil
    }

    /// The tombstone of a publication whose id another work has by now: it was deleted, or merged into that work, after this
    /// version of it was written.
    func buriedSince(_ incoming: Record) throws -> StoredRecord? {
        guard incoming.type == RecordType.publication, !incoming.isDeleted, !incoming.isLocalOnly else { return nil }
        let work = try WorkID(incoming)
        for id in work.listings + [work.twin()] {
            for stored in try soundRecords(localID: id) where stored.record.isDeleted {
                let (tombstone, latest) = (stored.record, incoming.latestTime)
                if tombstone.type == incoming.type, tombstone.modifiedAt >= latest, !tombstone.spares(incoming) {
                    return stored
                }
            }
        }
        return try deletedSinceItWas(work, incoming)
    }

    /// The record under the first id of its work that is free, where another work has the one that it would get.
    func freeID(of record: Record, beside other: Record) throws -> Record {
        for id in try WorkID(record).ids(beside: other) where id != record.localID {
            let moved = record.identified(as: id)
            if try soundRecords(localID: id).isEmpty, try self.record(moved.id) == nil { return moved }
        }
        var record = record
        record.id = try freeName(RecordID(zone: record.id.zone, name: record.localID), type: record.type)
        return record
    }

    /// The row of a publication that a hub knows under another id than the backup which replaces it. Hubs keep their ids, and
    /// to delete that row would delete the work everywhere.
    func hubListing(of incoming: Record) throws -> StoredRecord? {
        guard incoming.type == RecordType.publication, !incoming.isDeleted, !incoming.isLocalOnly else { return nil }
        guard let known = try listing(of: incoming), !known.record.isDeleted, !aliveInBackup.contains(known.record.id),
            try isKnownToHub(known.change)
        else { return nil }
        return known
    }

    /// What the store had before this batch of the same work under the same key, with an id that another version of the
    /// tool, or another file, has given it.
    func listing(of incoming: Record) throws -> StoredRecord? {
        guard let (work, batch) = try workToLookFor(incoming) else { return nil }
        return try listing(work, of: incoming, before: batch)
    }

    private func listing(_ work: WorkID, of incoming: Record, before batch: Batch) throws -> StoredRecord? {
        for id in [work.legacy] + work.all + work.listings where id != incoming.localID {
            for stored in try soundRecords(localID: id) where stored.change < batch.firstChange {
                let known = stored.record
                guard known.type == RecordType.publication, known.id.zone == incoming.id.zone else { continue }
                if known.isDeleted {
                    if work.listings.contains(known.localID), !known.spares(incoming),
                        try known.modifiedAt >= incoming.latestTime || isPurged(known)
                    {
                        return stored
                    }
                    continue
                }
                let identity = WorkIdentity(try Fields.parse(known.fields))
                guard identity.key == work.identity.key, identity.verdict(work.identity) == .same else { continue }
                // The file has another entry for it, or the backup another record.
                if try otherEntries.contains(known.localID) || backup?.has(known) == true { continue }
                return stored
            }
        }
        return nil
    }

    /// The publication of the same work and key that the store had before this restore, and that the backup does not have:
    /// one of the two has an identifier that the other lacks, so none of its ids leads there.
    private func namesake(_ work: WorkID, of incoming: Record, before batch: Batch) throws -> StoredRecord? {
        guard let backup, !work.identity.key.isEmpty else { return nil }
        let found = try citeKeys().live(work.identity.key).filter { stored in
            let known = stored.record
            guard stored.change < batch.firstChange, !known.isLocalOnly, known.id.zone == incoming.id.zone,
                DeterministicID.isMade(known.localID)
            else { return false }
            let identity = WorkIdentity(try Fields.parse(known.fields))
            return identity.key == work.identity.key && identity.verdict(work.identity) == .same
        }
        return found.count == 1 ? try found.first { try backup.leavesFree($0.record.id) } : nil
    }

    /// Makes room for another work that gets the row of this publication: the files have not brought that work. A tombstone
    /// stays, under the id of its own work.
    func giveWay(_ known: Record) throws {
        try noteBrought([known.localID], areThere: false)
        guard known.isDeleted, known.type == RecordType.publication, !sameBytes(known.localID, known.id.name) else {
            return
        }
        let moved = known.identified(as: known.localID)
        if try record(moved.id) == nil { try put(moved, replacing: nil) }
        try moveListings(of: known.id, to: moved.id)
    }

    /// The tombstone of a record, which says which listing of which work was deleted.
    func tombstone(of record: Record, at time: Timestamp) throws -> Record {
        var tombstone = try WorkLineage.tombstone(of: record, at: time) { work in
            return try citeKeys().holders(of: work.identity.key).allSatisfy { id in
                guard id != record.id, let other = try ifSound({ try self.record(id) }) ?? nil, !other.record.isDeleted
                else { return true }
                let identity = WorkIdentity(try Fields.parse(other.record.fields))
                return identity.key != work.identity.key || identity.verdict(work.identity) != .same
            }
        }
        if record.type == RecordType.publication {
            try noteEarlierListings(of: record, in: &tombstone)
        }
        return tombstone
    }

    /// Notes in the tombstone of a publication which listings it was before, and which other living publications a listing
    /// that it deletes may be, too.
    func noteEarlierListings(of record: Record, in tombstone: inout Record) throws {
        let earlier = try earlierListings(of: tombstone.id)
        tombstone.noteEarlierListings(earlier)
        let deleted = [tombstone.localID] + tombstone.earlierListings
        // An earlier version may have had another key.
        let others =
            try earlier.isEmpty
            ? citeKeys().holders(of: CiteKeys.key(of: record) ?? "")
            : Set(deleted.flatMap { try listings()[$0] ?? [] })
        for id in others where id != record.id {
            guard let other = try ifSound({ try self.record(id) }) ?? nil, !other.record.isDeleted,
                let work = try? WorkID(other.record), work.listings.contains(where: deleted.contains)
            else { continue }
            tombstone.noteBeside(other.record.localID)
        }
    }

    private func citeKeys() throws -> CiteKeys {
        let keys = try seen.citeKeys ?? CiteKeys(self)
        seen.citeKeys = keys
        return keys
    }

    /// The living publications by their listings.
    private func listings() throws -> [String: [RecordID]] {
        if let known = seen.listings { return known }
        var found: [String: [RecordID]] = [:]
        try forEachCiteKey { _, id, record in
            guard let stored = try record(), let work = try? WorkID(stored.record) else { return }
            for listing in work.listings { found[listing, default: []].append(id) }
        }
        seen.listings = found
        return found
    }

    private func hadPublications(before batch: Batch) throws -> Bool {
        if let known = publicationsBefore, known.batch == batch.id { return known.any }
        let query = try database.statement("SELECT 1 FROM record WHERE type = ? AND change < ? LIMIT 1")
            .bind(1, RecordType.publication).bind(2, batch.firstChange)
        defer { query.reset() }
        let any = try query.step()
        publicationsBefore = (batch.id, any)
        return any
    }

    /// Hashes of the local ids of all records of a type, deleted ones included.
    func localIDs(type: String) throws -> Set<Int64> {
        let query = try database.prepare("SELECT local_id, name FROM record WHERE type = ? AND type <> 'PuppyEvent'")
            .bind(1, type)
        var found: Set<Int64> = []
        while try query.step() {
            found.insert(hasher.key(query.text(0)))
            if let name = query.optionalText(1) { found.insert(hasher.key(name)) }
        }
        return found
    }

    /// The local ids of the deleted records of a type, and the names of those that have other ones.
    func deletedLocalIDs(type: String) throws -> [String] {
        let query = try database.prepare("SELECT local_id, name FROM record WHERE type = ? AND deleted_at IS NOT NULL")
            .bind(1, type)
        var found: [String] = []
        while try query.step() {
            let localID = query.text(0)
            found.append(localID)
            if let name = query.optionalText(1), !sameBytes(name, localID) { found.append(name) }
        }
        return found
    }
}
