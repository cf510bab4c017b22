/// Events that a store has twice: as a line without an id, whose id is made of what it says, and as the line with the id that
/// its app gave it later. A log that holds both means both, so only a person can say that they are one.
struct EventTwins {
    let store: Store

    /// Whether there are events of both forms, one of them written since `change` and the other before.
    func mayMeet(since change: Int64) throws -> Bool {
        func has(made: Bool, _ place: String) throws -> Bool {
            try store.database.integer(
                """
                SELECT EXISTS (SELECT 1 FROM record WHERE change \(place) \(change) AND type = '\(RecordType.event)'
                AND deleted_at IS NULL AND (length(local_id) = 36 AND substr(local_id, 15, 1) = '8') = \(made))
                """) != 0
        }
        for isMade in [false, true] where try has(made: isMade, ">=") && has(made: !isMade, "<") { return true }
        return false
    }

    /// Each event with a given id, and the one that says the same without it; of several each has its own.
    func forEach(_ body: (_ given: Store.StoredRecord, _ made: Store.StoredRecord) throws -> Void) throws {
        var taken: Set<Int64> = []
        try store.forEachEvent(after: .min) { given, _ in
            guard !DeterministicID.isMade(given.record.localID) else { return }
            if let made = try made(of: given.record, besides: taken) {
                taken.insert(made.change)
                try body(given, made)
            }
        }
    }

    /// How many pairs there are of which one was written since `change`, and the other before.
    func count(meetingSince change: Int64) throws -> Int {
        guard try mayMeet(since: change) else { return 0 }
        var count = 0
        try forEach { given, made in
            if (given.change < change) != (made.change < change) { count += 1 }
        }
        return count
    }

    private func made(of given: Record, besides taken: Set<Int64>) throws -> Store.StoredRecord? {
        for text in try EventText.withoutID(given) {
            var number = 1
            while let known = try store.ifSound({
                try store.record(
                    RecordID(
                        zone: given.id.zone, name: DeterministicID.make(RecordType.event, text, String(number))))
            }) ?? nil {
                number += 1
                let record = known.record
                if record.type == RecordType.event, !record.isDeleted, !record.isLocalOnly,
                    !taken.contains(known.change)
                {
                    return known
                }
            }
        }
        return nil
    }
}
