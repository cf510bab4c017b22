/// Events whose lines have no id: theirs is made of what the line says, and of its number among the equal lines of a log.
extension Store {
    private static let isMade = "(length(local_id) = 36 AND substr(local_id, 15, 1) = '8')"

    private static func madeID(_ text: String, _ number: Int, zone: String) -> RecordID {
        RecordID(zone: zone, name: DeterministicID.make(RecordType.event, text, String(number)))
    }

    /// The first event of this text that passes. The search ends at the first id without a sound record.
    func madeEvent(
        saying text: String, zone: String, where passes: (StoredRecord) throws -> Bool
    ) throws -> StoredRecord? {
        var number = 1
        while let known = try ifSound({ try record(Self.madeID(text, number, zone: zone)) }) ?? nil {
            if try passes(known) { return known }
            number += 1
        }
        return nil
    }

    /// The first id of this text that no record has.
    func freeMadeID(of text: String, zone: String) throws -> String {
        var number = 1
        while try record(Self.madeID(text, number, zone: zone)) != nil { number += 1 }
        return Self.madeID(text, number, zone: zone).name
    }

    /// Whether the store holds events whose ids were made from what they say, for they had none.
    func hasEventsWithMadeIDs() throws -> Bool { try hasEvents(Self.isMade) }

    /// Whether it holds events whose ids their app has given them.
    func hasEventsWithGivenIDs() throws -> Bool { try hasEvents("NOT \(Self.isMade)") }

    /// Whether it holds events that may be known by a `localId`; a deleted one does not say.
    func hasEventsWithLocalIDs() throws -> Bool {
        try hasEvents("(deleted_at IS NOT NULL OR instr(fields, '\"localId\"') > 0)")
    }

    /// Whether it holds living events of both forms, one of them written since `change` and the other before.
    func hasEventsOfBothForms(meetingAt change: Int64) throws -> Bool {
        func has(_ form: String, _ place: String) throws -> Bool {
            try hasEvents("change \(place) \(change) AND deleted_at IS NULL AND \(form)")
        }
        let (made, given) = (Self.isMade, "NOT \(Self.isMade)")
        let withLocalID = "instr(fields, '\"localId\"') > 0"
        let pairs = [(made, given), (given, made), (withLocalID, withLocalID)]
        return try pairs.contains { try has($0, ">=") && has($1, "<") }
    }

    private func hasEvents(_ condition: String) throws -> Bool {
        try database.integer("SELECT EXISTS (SELECT 1 FROM record WHERE type = 'PuppyEvent' AND \(condition))") != 0
    }
}

extension Store {
    /// The tombstone of the same event, which was deleted in another form of its line. Either that one had this one's `localId`
    /// beside its id, or took it in, or it was known by the `localId` that this one has beside its id. Must run inside `batch`
    /// or `write`.
    func deletedEvent(having event: Record) throws -> StoredRecord? {
        guard event.type == RecordType.event, !event.isDeleted else { return nil }
        let deleted = try deletedEvents()
        if let taken = deleted.taken[hasher.key(event.localID)], EventText.isKnownByLocalID(event) {
            return try tombstone(taken.by, of: event)
        }
        guard !deleted.ids.isEmpty, let other = EventText.idBeside(event), deleted.ids.contains(hasher.key(other)),
            let tombstone = try tombstone(other, of: event)
        else { return nil }
        // It was folded into another one, and not deleted, where that one or the backup says so.
        let isFolded = try foldedEvents().contains(hasher.key(other))
        return try isFolded || backup?.hasTombstone(of: tombstone.record.id) == true ? nil : tombstone
    }

    private func tombstone(_ id: String, of event: Record) throws -> StoredRecord? {
        let known = try soundRecords(localID: id).filter { $0.record.type == event.type }
        return known.allSatisfy(\.record.isDeleted) ? known.first { $0.record.id.zone == event.id.zone } : nil
    }

    /// What is known of deleted events: by keys of local ids.
    struct DeletedEvents {
        /// Their own.
        var ids: Set<Int64> = []
        /// What they had beside their ids, and what was merged into them.
        var taken: [Int64: (id: String, by: String)] = [:]
    }

    /// What living events have taken in.
    private func foldedEvents() throws -> Set<Int64> {
        let folded = try seen.foldedEvents ?? Set(takers(type: RecordType.event).keys.map { hasher.key($0) })
        seen.foldedEvents = folded
        return folded
    }

    func deletedEvents() throws -> DeletedEvents {
        if let known = seen.deletedEvents { return known }
        var deleted = DeletedEvents()
        let query = try database.prepare("SELECT local_id FROM record WHERE type = ? AND deleted_at IS NOT NULL")
            .bind(1, RecordType.event)
        while try query.step() { deleted.ids.insert(hasher.key(query.text(0))) }
        if !deleted.ids.isEmpty {
            for (id, taker) in try takers(type: RecordType.event, areDeleted: true) {
                deleted.taken[hasher.key(id)] = (id, taker)
            }
        }
        seen.deletedEvents = deleted
        return deleted
    }
}
