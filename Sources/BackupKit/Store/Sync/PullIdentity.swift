/// Which record of this device an arriving publication is. An id that was made here may be another work's on the hub, and
/// a work may have got another id there; the hub's records keep their ids, and what the hub has not seen yet gives way.
extension Synchronizer {
    /// Moves rows of this device so that `incoming` meets the publication that it is, or none. True when any was moved. Must
    /// run inside `write`.
    func settleIdentity(of incoming: Record, _ row: Store.SyncRow?) throws -> Bool {
        guard incoming.type == RecordType.publication else { return try row == nil && giveName(of: incoming) }
        guard let row else { return try adopt(incoming) }
        guard row.isSameType else { return false }
        // However much a record was edited, it is the one that this hub knows.
        let isKnown = row.hubVersion ?? 0 > 0
        let local = try isKnown ? nil : store.record(change: row.change)
        guard let local, try !isOneRecord(local, incoming, wasOnAHub: row.hubVersion != nil) else {
            return try row.isDeleted && !incoming.isDeleted && returnInto(row.change, incoming)
        }
        try giveWay(row.change, local, to: incoming)
        _ = try adopt(incoming)
        return true
    }

    /// Gives an event of this device the name that it has on the hub, where one of both is deleted, no hub has seen it from
    /// here, and its UUID is in another case. Returns whether there is such an event.
    private func giveName(of incoming: Record) throws -> Bool {
        guard incoming.type == RecordType.event else { return false }
        let (name, zone) = (incoming.id.name, incoming.id.zone)
        let key = store.hasher.key(name)
        // What was folded into another record is not deleted.
        guard store.hasher.key(incoming.localID) == key else { return false }
        guard try incoming.isDeleted || eventsDeletedUnseen().contains(key) else { return false }
        for stored in try store.soundRecords(localID: name) {
            let record = stored.record
            guard record.type == incoming.type, record.id.zone == zone, !record.isLocalOnly,
                record.isDeleted != incoming.isDeleted, store.hasher.key(record.id.name) == key,
                try store.hubVersion(stored.change) == nil
            else { continue }
            try store.reidentify(stored.change, record, to: record.identified(as: name))
            return true
        }
        return false
    }

    /// Events that were deleted here and that no hub has seen, by the keys of their local ids.
    func eventsDeletedUnseen() throws -> Set<Int64> {
        if let known = deletedUnseen { return known }
        let query = try store.database.prepare(
            """
            SELECT local_id FROM record
            WHERE change > ? AND type = 'PuppyEvent' AND deleted_at IS NOT NULL AND hub_version IS NULL
            """
        ).bind(1, link.pushedThrough)
        var found: Set<Int64> = []
        while try query.step() { found.insert(store.hasher.key(query.text(0))) }
        deletedUnseen = found
        return found
    }

    func isOneRecord(_ local: Record, _ incoming: Record, wasOnAHub: Bool) throws -> Bool {
        // The hub may have been made anew, or be another one.
        if wasOnAHub, local.isDeleted || incoming.isDeleted || local.createdAt == incoming.createdAt { return true }
        guard try WorkLineage.isOneRecord(local, incoming) else { return false }
        guard let (record, tombstone) = Record.livingAndDead(local, incoming) else { return true }
        // Version 0.1.0 deleted by cite key: nobody knows which work that was, so it deletes nothing of anybody else.
        guard sameBytes(tombstone.localID, tombstone.id.name), record.localID == tombstone.localID else { return true }
        return try WorkID(record).legacy != record.localID
    }

    /// Another work has the id on the hub: this device's gets the id of its own work, the same on every device.
    private func giveWay(_ change: Int64, _ local: Record, to incoming: Record) throws {
        unseenListings = nil
        let work = try local.isDeleted ? nil : WorkID(local)
        var ids = try (work?.ids(beside: incoming) ?? [local.localID])[...]
        while let id = ids.popFirst() {
            if id == local.id.name { continue }
            var moved = local.identified(as: id)
            if local.isDeleted { try store.moveCopies(beside: local, to: moved) }
            guard let occupant = try store.record(moved.id) else {
                citeKeys?.note(moved)
                for key in moved.keysBefore { renamedWorks?[key, default: []].append(moved.id) }
                return try store.reidentify(change, local, to: moved)
            }
            guard occupant.record.type == local.type, try WorkLineage.isOneRecord(occupant.record, moved) else {
                // One work under two keys is two publications, here as in an import.
                if let work, work.all.contains(id), try work.isListed(as: occupant.record) {
                    ids = [work.listing, work.twin()]
                }
                continue
            }
            moved.localID = occupant.record.localID
            if try !store.isBrought(moved.localID) { try store.moveMemory(of: local, to: moved.localID) }
            try store.moveLinks(of: local, to: occupant.record)
            try carry(moved, into: occupant, base: nil)
            return try store.takeOut(change, local, for: occupant.record.id)
        }
        // Nothing tells which work was deleted here.
        try store.takeOut(change, local)
    }

    /// The publication of this device that an unknown id of the hub is about: the same listing of the same work, which no
    /// hub has seen yet. It takes the hub's id.
    private func adopt(_ incoming: Record) throws -> Bool {
        guard let (change, local) = try incoming.isDeleted ? deletedListing(incoming) : sameListing(incoming) else {
            return false
        }
        unseenListings = nil
        let buried = try store.ancestor(local.id)
        try store.reidentify(change, local, to: local.identified(as: incoming.id.name))
        // What the hub knows as deleted under its old id stays so.
        if let buried { try store.put(WorkLineage.tombstone(of: local, at: buried.modifiedAt), replacing: nil) }
        return true
    }

    /// A listing that was deleted is alive again on the hub under its old id. Where this device had given it a new one, which
    /// no hub has seen, its row goes back to the old id.
    private func returnInto(_ change: Int64, _ incoming: Record) throws -> Bool {
        guard let (new, local) = try sameListing(incoming), try store.ancestor(local.id) == nil else { return false }
        unseenListings = nil
        let tombstone = Store.StoredRecord(change: change, record: try store.record(change: change))
        try store.put(local.identified(as: incoming.id.name), replacing: tombstone)
        try store.moveLinks(of: local, to: local.identified(as: incoming.id.name))
        try store.takeOut(new, local, for: incoming.id)
        return true
    }

    func sameListing(_ incoming: Record) throws -> (Int64, Record)? {
        let candidates = try publicationsWithKeys(of: incoming)
        if candidates.isEmpty { return nil }
        let work = try WorkID(incoming)
        let known = [work.identity.key] + incoming.keysBefore
        // A work that is deleted under the id that its words make may be alive under an app's id or one of its cite key. Under
        // another that words make, it is another entry.
        let isOfItsWords =
            DeterministicID.isMade(incoming.localID)
            && !known.contains { sameBytes(WorkID.legacy(key: $0), incoming.localID) }
        var found: [(change: Int64, record: Record, isEqual: Bool)] = []
        for id in candidates where id != incoming.id && id.zone == incoming.id.zone {
            guard let (change, record, mine) = try unseen(id),
                known.contains(where: { sameBytes(mine.identity.key, $0) || record.wasRenamed(from: $0) }),
                mine.identity.verdict(work.identity) == .same
            else { continue }
            guard !ownListings.contains(id) || deletedListings.contains(id) && !isOfItsWords else { continue }
            found.append((change, record, sameBytes(mine.identity.text, work.identity.text)))
        }
        let best = found.min { ($0.isEqual ? 0 : 1, $0.record.id) < ($1.isEqual ? 0 : 1, $1.record.id) }
        return best.map { ($0.change, $0.record) }
    }

    /// The publications here whose cite key, now or before a decision, is one that the record has now or had before one.
    func publicationsWithKeys(of record: Record) throws -> [RecordID] {
        guard let key = CiteKeys.key(of: record) else { return [] }
        let renamed = try unseenRenamed()
        return try ([key] + record.keysBefore).flatMap { try keys().holders(of: $0) + renamed[$0, default: []] }
    }

    /// A tombstone may say which listing it was.
    private func deletedListing(_ tombstone: Record) throws -> (Int64, Record)? {
        guard !sameBytes(tombstone.localID, tombstone.id.name) else { return nil }
        for id in try listingsUnseen()[tombstone.localID] ?? [] where !ownListings.contains(id) {
            guard let (change, record, work) = try unseen(id), work.listings.contains(tombstone.localID),
                tombstone.ends(record)
            else { continue }
            return (change, record)
        }
        return nil
    }

    /// The publications that no hub has seen, by what their tombstones would be called.
    func listingsUnseen() throws -> [String: [RecordID]] {
        if let known = unseenListings { return known }
        var listings: [String: [RecordID]] = [:]
        for id in try store.unseenPublications() {
            guard let (_, _, work) = try unseen(id) else { continue }
            for listing in work.listings { listings[listing, default: []].append(id) }
        }
        unseenListings = listings
        return listings
    }

    /// The publications that no hub has seen, by the cite keys that decisions have taken from them.
    func unseenRenamed() throws -> [String: [RecordID]] {
        if let known = renamedWorks { return known }
        var found: [String: [RecordID]] = [:]
        for id in try store.unseenPublications(with: Record.renamedMark) {
            guard let stored = try store.ifSound({ try store.record(id) }) ?? nil else { continue }
            for key in stored.record.keysBefore { found[key, default: []].append(id) }
        }
        renamedWorks = found
        return found
    }

    /// A live publication that an import named and that no hub has seen, or only as deleted.
    func unseen(_ id: RecordID) throws -> (Int64, Record, WorkID)? {
        guard let stored = try store.ifSound({ try store.record(id) }) ?? nil, !stored.record.isDeleted,
            !stored.record.isLocalOnly,
            try store.hubVersion(stored.change) == nil || store.ancestor(id)?.isDeleted == true
        else { return nil }
        let work = try WorkID(stored.record)
        return work.mayHaveMade(stored.record.localID) ? (stored.change, stored.record, work) : nil
    }

    func keys() throws -> CiteKeys {
        let keys = try citeKeys ?? CiteKeys(store)
        citeKeys = keys
        return keys
    }

    /// A tombstone that says which listing was deleted deletes it under its own id, too: another device may know it by that.
    /// Must run inside `write`, when all of a page has been taken.
    func buryListings(_ records: [HubRecord]) throws {
        try buryArrivals(records)
        for arrived in records.map(\.record) where arrived.type == RecordType.publication {
            let sameListing = try store.soundRecords(localID: arrived.localID).filter {
                $0.record.type == RecordType.publication && $0.record.id.zone == arrived.id.zone
            }
            let deletes = sameListing.map(\.record).filter(\.isDeleted)
            for stored in sameListing where !stored.record.isDeleted && !stored.record.isLocalOnly {
                try bury(stored, by: deletes, .deletedByOthers)
            }
        }
    }

    /// A listing that was deleted here under an id of its own may arrive under another that its words make.
    private func buryArrivals(_ records: [HubRecord]) throws {
        let living = records.map(\.record).filter { $0.type == RecordType.publication && !$0.isDeleted }
        guard !living.isEmpty, try store.hasDeletedPublications() else { return }
        for id in living.map(\.id) {
            guard let stored = try store.ifSound({ try store.record(id) }) ?? nil, !stored.record.isDeleted,
                let work = try? WorkID(stored.record), work.all.contains(stored.record.localID)
            else { continue }
            let deletes = try work.listings.flatMap { try store.records(localID: $0) }.map(\.record)
                .filter { $0.isDeleted && $0.type == RecordType.publication && $0.id.zone == id.zone }
            try bury(stored, by: deletes, .deletedHere)
        }
    }

    /// A publication goes by the latest delete of its listing. Another work that was merged into it does not.
    func bury(_ stored: Store.StoredRecord, by deletes: [Record], _ reason: Overruled.Reason) throws {
        let ending = deletes.filter { $0.ends(stored.record) }
        guard let latest = ending.max(by: { $0.modifiedAt < $1.modifiedAt }) else { return }
        if try keepLast(stored, deletedBy: latest, among: deletes, reason) { return }
        try putAside(stored.record, deletedBy: latest, reason)
        var tombstone = try WorkLineage.tombstone(of: stored.record, at: latest.modifiedAt)
        for id in latest.idsBeside { tombstone.noteBeside(id) }
        try store.put(tombstone, replacing: stored)
    }

    // MARK: One cite key, two publications

    /// Two publications with one cite key are both kept, and a person decides.
    func notePublications(_ records: [HubRecord]) throws {
        let arrived = Set(records.filter { $0.record.type == RecordType.publication }.map(\.record.id))
        guard !arrived.isEmpty else { return }
        var named: Set<String> = []
        for id in arrived {
            guard let stored = try store.ifSound({ try store.record(id) }) ?? nil, !stored.record.isDeleted,
                let key = CiteKeys.key(of: stored.record)
            else { continue }
            try keys().note(stored.record)
            named.insert(key)
        }
        result.findings += try keys().report(on: named) { arrived.contains($0.record.id) ? .new : .known }
    }
}

extension Record {
    /// Whether this tombstone is later than all of a record of the same listing, knows of all that was merged into it, and is
    /// not of another one beside it.
    fileprivate func ends(_ record: Record) -> Bool {
        modifiedAt >= record.latestTime && !record.hasTakenIn(unknownTo: self) && !spares(record)
    }
}

extension Store {
    /// Gives a row another identity. What batches know of it follows, so that their undo finds it.
    func reidentify(_ change: Int64, _ old: Record, to record: Record) throws {
        let next = nextChange()
        try overwrite(change, knownAs: old.localID, with: record, next)
        try database.statement(
            "UPDATE record SET hub_version = NULL, clean_at = NULL, hub_seal = NULL WHERE change = ?"
        )
        .bind(1, next).run()
        try follow(change, to: next)
        try database.statement("UPDATE batch_record SET name = NULL, local_id = ?, row_hash = NULL WHERE after = ?")
            .bind(1, record.localID).bind(2, next).run()
        if record.type == RecordType.publication {
            try moveMemory(of: old, to: record.localID)
            try moveListings(of: old.id, to: record.id)
            try moveLinks(of: old, to: record)
        }
        try dropAncestor(old.id)
        if record.isDeleted, try isPurged(old) { try markPurged(record) }
        try release(old.id)
        try noteRemoved(old.id, type: old.type, localID: old.localID)
    }

    /// A copy that is kept on this device only goes with the tombstone that stands for it everywhere else.
    func moveCopies(beside tombstone: Record, to moved: Record) throws {
        for stored in try soundRecords(localID: tombstone.id.name) {
            var copy = stored.record
            guard copy.isLocalOnly, !copy.isDeleted, try isOneRecord(tombstone, copy) else { continue }
            copy.localID = moved.localID
            try rewrite(stored, as: copy)
        }
    }

    /// Takes a row out that the row of `kept` stands for now. When a batch added it, the undo of that batch has to say so.
    func takeOut(_ change: Int64, _ record: Record, for kept: RecordID? = nil) throws {
        if let kept { try noteEdit(of: change, becomes: self.record(kept)?.change) }
        try takeOut(change)
        try removeKey(hasher.key(record.localID), change)
        try dropAncestor(record.id)
        try noteRemoved(record.id, type: record.type, localID: record.localID)
    }

    func hubVersion(_ change: Int64) throws -> Int64? {
        let query = try database.statement("SELECT \(HubSeal.version) FROM record WHERE change = ?").bind(1, change)
        defer { query.reset() }
        return try query.step() ? query.optionalInteger(0) : nil
    }

    /// The record that is on the hub with that version and was not changed here since; looks at every row.
    func record(ofHubVersion version: Int64) throws -> StoredRecord? {
        let query = try database.prepare(
            "SELECT change FROM record WHERE hub_version = ? AND clean_at = change AND \(HubSeal.isSound)"
        )
        .bind(1, version)
        guard try query.step() else { return nil }
        let change = query.integer(0)
        guard try !query.step() else { return nil }
        return try ifSound { StoredRecord(change: change, record: try record(change: change)) }
    }

    func hasDeletedPublications() throws -> Bool {
        try database.integer(
            """
            SELECT EXISTS (SELECT 1 FROM record WHERE type = 'Publication' AND type <> 'PuppyEvent'
            AND deleted_at IS NOT NULL)
            """) != 0
    }

    /// Live publications that no hub has seen; with `mark`, only those whose field times have it.
    func unseenPublications(with mark: String = "") throws -> [RecordID] {
        let query = try database.prepare(
            """
            SELECT zone, ifnull(name, local_id) FROM record WHERE type = ? AND type <> 'PuppyEvent'
            AND deleted_at IS NULL AND local_only = 0 AND \(HubSeal.version) IS NULL
            AND instr(ifnull(field_times, ''), ?) > 0
            """
        ).bind(1, RecordType.publication).bind(2, mark)
        var found: [RecordID] = []
        while try query.step() { found.append(RecordID(zone: query.text(0), name: query.text(1))) }
        return found
    }
}
