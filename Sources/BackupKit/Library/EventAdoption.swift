/// Lines that get an id later. The app has given its old events ids; a line with one is the line without it that came before.
extension Intake {
    /// Gives the record of the line without an id the line's id, and takes the line. Nil when there is none, or when the id
    /// is known.
    func adopt(_ record: Record) throws -> Outcome? {
        guard record.type == RecordType.event, !record.isDeleted, !overwrite, policy != .quarantine,
            try store.firstLook(record) == .nothing
        else { return nil }
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

extension EventLine {
    /// What the line of a record may have said before the app gave it an id, and with it perhaps its times.
    static func textsWithoutID(_ record: Record) throws -> [String] {
        let fields = try Fields.parse(record.fields)
        guard let id = Fields.string("id", in: fields) ?? Fields.string("localId", in: fields),
            sameBytes(id, record.localID)
        else { return [] }
        var texts: [String] = []
        for added in [["id", "localId"], ["id", "localId", "created_at", "modified_at"]] {
            let rest = fields.filter { !added.contains($0.name) }
            let text = String(decoding: try Fields.canonical(Fields.text(rest)), as: UTF8.self)
            if !texts.contains(text) { texts.append(text) }
        }
        return texts
    }
}
