/// One event that two devices know from two forms of its log: from lines without ids, whose ids are made of what they say,
/// and from lines with the ids that its app gave them later. The record of the line without an id stays, takes the id,
/// and the other one goes, as in an import.
///
/// Only an event that the hub has not seen is joined with one that has just come. Two that the hub has, or two of this store,
/// are as many events as some log needs. What a hub of before has seen is new to one that was made anew.
extension Synchronizer {
    /// Whether two devices have given the event of a line without an id different ids since: then there are two such
    /// events. The record stays that of the hub's, which has the others of that text as it has this one.
    func areTwoEvents(_ local: Record, _ hub: Record, base: Ancestor?) throws -> Bool {
        guard local.type == RecordType.event, !local.isDeleted, !hub.isDeleted,
            store.hasher.key(local.localID) != store.hasher.key(hub.localID)
        else { return false }
        if DeterministicID.isMade(hub.localID) { return false }
        if DeterministicID.isMade(local.localID) {
            // Beside the one with that id, this is another one here.
            return try eventsGone.contains(store.hasher.key(hub.localID))
                || store.soundRecords(localID: hub.localID).contains {
                    isNamedByItsID($0.record) && !$0.record.isDeleted && !eventsApart.contains($0.record.id)
                }
        }
        // One of them had its id before, so the other side has made two of it already.
        return try base.map { try EventText.id(in: Fields.parse($0.fields)) == nil } ?? true
    }

    /// Gives an event a record of its own, named after its id, or as the next of its text without one. `joinEvents` takes
    /// it out again where its id has one already, or there is another one that says the same and has no id. Must run
    /// inside `write`.
    func keepApart(_ event: Record, from other: Record, base: Ancestor?) throws {
        eventsWithIDHere += try store.soundRecords(localID: other.localID).map(\.record.id).filter { $0 != other.id }
        if DeterministicID.isMade(event.localID) {
            let text = String(decoding: try Fields.canonical(event.fields), as: UTF8.self)
            let id = try store.freeMadeID(of: text, zone: event.id.zone)
            return try store.put(event.identified(as: id), replacing: nil)
        }
        let record = event.identified(as: event.localID)
        if let known = try store.record(record.id) {
            // The other side has brought it already, without what was written here.
            if !known.record.isDeleted, !known.record.isLocalOnly { try carry(event, into: known, base: base) }
            return
        }
        try store.put(record, replacing: nil)
        newEvents.insert(store.hasher.key(record.localID))
        eventsApart.insert(record.id)
    }

    /// Whether another local id says better which event it is than its own: it is the id of the line, or a line has it at all.
    func isKnown(_ event: Record, ratherBy localID: String) -> Bool {
        if let fields = try? Fields.parse(event.fields), let id = EventText.id(in: fields) {
            // UUIDs that differ in case are one.
            let key = store.hasher.key(id)
            if key == store.hasher.key(event.localID) { return false }
            if key == store.hasher.key(localID) { return true }
        }
        return DeterministicID.isMade(event.localID) && !DeterministicID.isMade(localID)
    }

    /// An event that gets an id is one that was not here under that id, and one that is deleted was the one of its id.
    func noteNewID(of record: Record, instead row: Store.SyncRow) {
        guard record.type == RecordType.event else { return }
        // UUIDs that differ in case are one.
        let key = store.hasher.key(row.localID)
        if !record.isDeleted {
            let id = store.hasher.key(record.localID)
            if id != key { newEvents.insert(id) }
            return
        }
        if !row.isDeleted, key == store.hasher.key(record.id.name) { eventsGone.insert(key) }
    }

    /// Must run outside of `write`, when all that the hub has is here.
    func joinEvents() throws {
        let new = newEvents
        newEvents = []
        try buryOtherForms(of: new)
        defer { (eventsApart, eventsWithIDHere, eventsGone, eventsByTime) = ([], [], [], nil) }
        let mayJoin = try !eventsWithIDHere.isEmpty || store.hasUnseenEvents(after: link.pushedThrough)
        guard !new.isEmpty, mayJoin else { return }
        try store.write {
            if !eventsApart.isEmpty { for id in eventsWithIDHere { try giveBackID(of: id) } }
            var givers = try unseenGivers(new)
            try arrivedGivers(new) { givers.append($0) }
            // The same pairs on every device.
            givers.sort { ($0.record.localID, $0.record.id) < ($1.record.localID, $1.record.id) }
            for giver in givers { try join(giver, new) }
        }
    }

    /// Events of this store with given ids, which the hub has not seen and which something that came may be.
    private func unseenGivers(_ new: Set<Int64>) throws -> [Store.StoredRecord] {
        var found: [Store.StoredRecord] = []
        try store.forEachEvent(after: link.pushedThrough) { stored, isUnseen in
            if isUnseen, try former(of: stored, new: new, isUnseen: true) != nil { found.append(stored) }
        }
        return found
    }

    /// Events with given ids that came, and which something that the hub has not seen may be.
    private func arrivedGivers(_ new: Set<Int64>, _ body: (Store.StoredRecord) -> Void) throws {
        try store.forEachEvent(after: link.pushedThrough) { stored, isUnseen in
            guard !isUnseen, new.contains(store.hasher.key(stored.record.localID)) else { return }
            if try former(of: stored, new: new, isUnseen: false) != nil { body(stored) }
        }
    }

    /// The other record of an event: under the id of its line without an id, or with its local id under another name.
    private func former(
        of giver: Store.StoredRecord, new: Set<Int64>, isUnseen: Bool
    ) throws -> Store.StoredRecord? {
        let record = giver.record
        func isOther(_ other: Store.StoredRecord) throws -> Bool {
            guard other.record.type == record.type, other.record.id.zone == record.id.zone,
                other.record.id != record.id, !other.record.isDeleted, !other.record.isLocalOnly
            else { return false }
            // An event that got its id on this device is that of the id, whatever the hub has of either.
            guard isUnseen else {
                return try eventsWithIDHere.contains(other.record.id) || store.isUnseen(other.change)
            }
            return eventsApart.contains(record.id) || new.contains(store.hasher.key(other.record.localID))
        }
        guard isNamedByItsID(record), !DeterministicID.isMade(record.localID) else { return nil }
        // Of two names that differ in case only, the hub's stays.
        if let named = try store.soundRecords(localID: record.localID).first(where: {
            try isOther($0) && (isUnseen || !isNamedByItsID($0.record))
        }) {
            return named
        }
        for text in try EventText.withoutID(record) {
            let found = try store.madeEvent(saying: text, zone: record.id.zone) {
                try sameBytes($0.record.localID, $0.record.id.name) && isOther($0)
                    && store.mayShareFiles($0, giver)
            }
            if let found { return found }
        }
        return try formerInOtherWords(giver, where: isOther)
    }

    /// The same where the line without the id said so in other words.
    private func formerInOtherWords(
        _ giver: Store.StoredRecord, where isOther: (Store.StoredRecord) throws -> Bool
    ) throws -> Store.StoredRecord? {
        guard let time = EventText.time(in: try Fields.parse(giver.record.fields))?.instant else { return nil }
        let events = try eventsByTime ?? EventsByTime(store)
        eventsByTime = events
        for meaning in try EventText.meanings(withID: giver.record) {
            let found = try events.made(meaning, at: time) {
                try sameBytes($0.record.localID, $0.record.id.name) && isOther($0) && store.mayShareFiles($0, giver)
            }
            if let found { return found }
        }
        return nil
    }

    /// UUIDs that differ in case are one.
    private func isNamedByItsID(_ record: Record) -> Bool {
        store.hasher.key(record.id.name) == store.hasher.key(record.localID)
    }

    /// Takes an id from a record that has it here only, when the hub has given it to another record of that text. The record
    /// is then as the hub has it, and the other one gets the edits.
    private func giveBackID(of id: RecordID) throws {
        guard let stored = try store.record(id), let base = try store.ancestor(id),
            let version = try store.hubVersion(stored.change), !DeterministicID.isMade(stored.record.localID),
            let other = try store.soundRecords(localID: stored.record.localID).first(where: {
                $0.record.type == RecordType.event && !$0.record.isDeleted && $0.record.id.zone == id.zone
                    && $0.record.id != id && !isNamedByItsID($0.record)
            })
        else { return }
        try carry(stored.record, into: other, base: nil)
        var former = stored.record
        former.localID = id.name
        (former.fields, former.fieldTimes, former.modifiedAt) = (base.fields, base.fieldTimes, base.modifiedAt)
        try store.replace(
            stored.change, knownAs: stored.record.localID, with: former, version: version, isClean: true)
        try store.dropAncestor(id)
    }

    private func join(_ giver: Store.StoredRecord, _ new: Set<Int64>) throws {
        let isUnseen = try store.isUnseen(giver.change)
        // Another one of the same words may have taken it.
        guard let former = try former(of: giver, new: new, isUnseen: isUnseen) else { return }
        let record = giver.record
        var joined = record.identified(as: former.record.id.name)
        if try EventText.hasNews(former.record, for: record) {
            joined = try merged(joined, former.record, base: nil)
        }
        joined = try joined.linking(Set([giver, former].flatMap { try store.knownFiles(of: $0).keys }))
        if !isUnseen { linkedByJoin.insert(joined.id) }
        joined.localID = record.localID
        try store.noteReplaced(isUnseen ? record : former.record, by: joined)
        // Where a hub of before has seen it, other devices know it by its name.
        let isKnown = try store.hubVersion(giver.change) != nil
        if isKnown { try store.put(record.foldedTombstone(at: store.timeAfter(record)), replacing: giver) }
        try store.put(joined, replacing: former)
        if !isKnown { try store.takeOut(giver.change, record, for: joined.id) }
        result.joined += 1
    }
}

extension Store {
    /// Whether the hub has seen no version of a row; a hub of before may have.
    fileprivate func isUnseen(_ change: Int64) throws -> Bool { try hubVersion(change) ?? 0 == 0 }

    /// Whether events wait for the hub that it has never seen.
    func hasUnseenEvents(after change: Int64) throws -> Bool {
        try database.integer(
            """
            SELECT EXISTS (SELECT 1 FROM record WHERE change > \(change) AND type = 'PuppyEvent'
            AND ifnull(\(HubSeal.version), 0) = 0 AND deleted_at IS NULL AND local_only = 0)
            """) != 0
    }

    /// Living events that have changed, and whether the hub has not seen them.
    func forEachEvent(after change: Int64, _ body: (StoredRecord, _ isUnseen: Bool) throws -> Void) throws {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns), ifnull(\(HubSeal.version), 0) = 0 FROM record
            WHERE change > ? AND type = 'PuppyEvent' AND deleted_at IS NULL AND local_only = 0 ORDER BY change
            """
        ).bind(1, change)
        while try query.step() {
            guard let stored = try ifSound({ try RowReader.record(query) }) else { continue }
            try body(stored, query.integer(13) != 0)
        }
    }
}
