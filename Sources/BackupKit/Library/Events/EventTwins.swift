/// Events that a store has twice: as a line without an id, whose id is made of what it says, and as the line with the id that
/// its app gave it later. A log with both lines has two events, so only a person can decide that they are one.
struct EventTwins {
    let store: Store

    /// Each event with a given id, and the one that says the same without it; of several each has its own.
    func forEach(_ body: (_ given: Store.StoredRecord, _ made: Store.StoredRecord) throws -> Void) throws {
        var taken: Set<Int64> = []
        var events: EventsByTime?
        try store.forEachEvent(after: .min) { given, _ in
            guard !DeterministicID.isMade(given.record.localID), !hasItsLineWithoutID(given.record) else { return }
            if let made = try made(of: given, besides: taken, &events) {
                taken.insert(made.change)
                try body(given, made)
            }
        }
    }

    /// How many pairs there are of which one was written since `change`, and the other before.
    func count(meetingSince change: Int64) throws -> Int {
        guard try store.hasEventsOfBothForms(meetingAt: change) else { return 0 }
        var count = 0
        try forEach { given, made in
            if (given.change < change) != (made.change < change) { count += 1 }
        }
        return count
    }

    /// Whether it is known which line without an id an event was: the one that got its id, or the one that was merged into it.
    /// Another line of that text is another event.
    private func hasItsLineWithoutID(_ event: Record) -> Bool {
        DeterministicID.isMade(event.id.name) || event.idsTakenIn.contains { DeterministicID.isMade($0) }
    }

    private func made(
        of given: Store.StoredRecord, besides taken: Set<Int64>, _ events: inout EventsByTime?
    ) throws -> Store.StoredRecord? {
        func mayBe(_ made: Store.StoredRecord) throws -> Bool {
            try made.record.id.zone == given.record.id.zone && !made.record.isLocalOnly && !taken.contains(made.change)
                && store.mayShareFiles(made, given)
        }
        if let other = EventText.idBeside(given.record),
            let known = try store.soundRecords(localID: other).first(where: {
                try EventText.isKnownByLocalID($0.record) && !$0.record.isDeleted && mayBe($0)
            })
        {
            return known
        }
        for text in try EventText.withoutID(given.record) {
            let found = try store.madeEvent(saying: text, zone: given.record.id.zone) {
                try isMade($0.record, stillSaying: text) && mayBe($0)
            }
            if let found { return found }
        }
        guard let time = EventText.time(in: try Fields.parse(given.record.fields))?.instant else { return nil }
        // In other words.
        let others = try events ?? EventsByTime(store)
        events = others
        for meaning in try EventText.meanings(withID: given.record) {
            if let found = try others.takeMade(meaning, at: time, where: mayBe) { return found }
        }
        return nil
    }

    /// Whether a record is that of a line without an id, and says what the line said. The name of a record tells what it once
    /// said: its event may have got an id since, and may have been edited.
    private func isMade(_ record: Record, stillSaying text: String) throws -> Bool {
        guard record.type == RecordType.event, !record.isDeleted else { return false }
        return try EventText.asWritten(Fields.parse(record.fields)).contains { sameBytes($0, text) }
    }
}
