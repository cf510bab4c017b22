/// Lines that get an id later. The app has given its old events ids; a line with one is the line without it, whichever of
/// them comes first.
extension Intake {
    /// Takes an event that the store has, with an id or without, under another local id. Nil when there is none, or when the
    /// local id is known.
    func adopt(_ record: Record) throws -> Outcome? {
        guard record.type == RecordType.event, !record.isDeleted, !overwrite, policy != .quarantine,
            try store.firstLook(record) == .nothing
        else { return nil }
        return try isLogWithoutIDs ? takeWithoutID(record) : giveID(record)
    }

    /// A line without an id is one of the events that say the same, as long as there are as many of them as the file has of
    /// such lines; one more gets the first number that is free.
    private func takeWithoutID(_ record: Record) throws -> Outcome? {
        let text = String(decoding: try Fields.canonical(record.fields), as: UTF8.self)
        func former(_ number: Int) -> Record {
            record.identified(as: DeterministicID.make(RecordType.event, text, String(number)))
        }
        let events = try eventsByText ?? EventsByText(store)
        eventsByText = events
        let count = events.count(of: text, store)
        guard count > 0, try store.record(record.id) == nil else { return nil }
        if (1...count).contains(where: { former($0).localID == record.localID }) {
            return Outcome(id: record.id, localID: record.localID, decision: .unchanged)
        }
        var number = 1
        while try store.record(former(number).id) != nil { number += 1 }
        return try put(former(number))
    }

    /// Gives the record of the line without an id the line's id, and takes the line.
    private func giveID(_ record: Record) throws -> Outcome? {
        for text in try EventLine.textsWithoutID(record) {
            var number = 1
            while true {
                let former = record.identified(as: DeterministicID.make(RecordType.event, text, String(number)))
                if let known = try store.soundRecords(localID: former.localID).first(where: {
                    $0.record.type == record.type
                }) {
                    return try adopt(record, former, known)
                }
                // Of equal lines each gets an id of its own.
                guard try store.record(former.id) != nil else { break }
                number += 1
            }
        }
        return nil
    }

    private func adopt(_ record: Record, _ former: Record, _ known: Store.StoredRecord) throws -> Outcome {
        // What was deleted, or is kept on this device only, is that under its old id.
        if known.record.isDeleted || known.record.isLocalOnly { return try put(former) }
        var new = known.record
        new.localID = record.localID
        let isNewer = record.modifiedAt >= known.record.latestTime
        if isNewer { (new.fields, new.modifiedAt) = (record.fields, record.modifiedAt) }
        try store.putUnderNewLocalID(new, replacing: known)
        let outcome = try put(record)
        guard isNewer, case .unchanged = outcome.decision else { return outcome }
        let changes = FieldChange.list(
            from: try Fields.parse(known.record.fields), to: try Fields.parse(record.fields))
        return Outcome(id: new.id, localID: new.localID, decision: .update(new, changes))
    }
}

/// How many events of a store say the same, but for their ids.
struct EventsByText {
    private var counts: [UInt64: Int] = [:]

    init(_ store: Store) throws {
        try store.forEachEvent { _, bytes in
            guard let fields = try store.ifReadable({ try Fields.parse(bytes) }) else { return }
            let texts = try EventLine.textsWithoutID(fields)
            for text in EventLine.id(in: fields) == nil ? texts.prefix(1) : texts[...] {
                counts[store.hasher.text(text), default: 0] += 1
            }
        }
    }

    func count(of text: String, _ store: Store) -> Int { counts[store.hasher.text(text)] ?? 0 }
}

extension EventLine {
    fileprivate static func id(in fields: [Field]) -> String? {
        Fields.string("id", in: fields) ?? Fields.string("localId", in: fields)
    }

    /// What the line of a record may have said before the app gave it an id, and with it perhaps its times.
    static func textsWithoutID(_ record: Record) throws -> [String] {
        let fields = try Fields.parse(record.fields)
        guard let id = id(in: fields), sameBytes(id, record.localID) else { return [] }
        return try textsWithoutID(fields)
    }

    fileprivate static func textsWithoutID(_ fields: [Field]) throws -> [String] {
        var texts: [String] = []
        for added in [["id", "localId"], ["id", "localId", "created_at", "modified_at"]] {
            let rest = fields.filter { !added.contains($0.name) }
            let text = String(decoding: try Fields.canonical(Fields.text(rest)), as: UTF8.self)
            if !texts.contains(text) { texts.append(text) }
        }
        return texts
    }
}
