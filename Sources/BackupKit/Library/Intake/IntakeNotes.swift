/// What an intake says of things that came in, and will not be as somebody may expect.
extension Intake {
    func noteOversize(_ subject: String) {
        note(Finding(.oversize, .warning, subject, "is larger than 1 MB: it was stored, and will never sync"))
    }

    /// What a file says for the first time, though the store's value is newer.
    func noteOlder(_ subject: String, in file: String, _ command: String = "import --overwrite") {
        note(
            Finding(
                .leftOut, .warning, subject,
                "has an older value in \(file), which was left out: the store's is newer",
                remedy: "\(TypedCommand.quoted(command, ["PATH"])) takes it all the same"))
    }

    /// Whether an event is still to come, and its line has no other time ahead. Then no clock is wrong.
    func isPlanned(_ record: Record) -> Bool {
        guard record.type == RecordType.event, !record.isDeleted, let fields = try? Fields.parse(record.fields) else {
            return false
        }
        let now = store.now()
        guard let time = EventText.time(in: fields), time.instant > now else { return false }
        return [("created_at", record.createdAt), ("modified_at", record.modifiedAt)]
            .allSatisfy { name, time in time <= now || !EventText.says(name, fields) }
    }

    /// The names of the fields in which the store keeps its own value over a different incoming one.
    func namesOfNewer(in merged: Record, than incoming: Record) -> [String] {
        guard !overwrite, !isEdit, !merged.isDeleted, !incoming.isDeleted else { return [] }
        return (try? differing(incoming, from: merged).map(\.field.name)) ?? []
    }

    /// The fields of which two versions hold different values, with the stored value. Derived fields are left out, and so are
    /// those that are joined, unless `alsoSets`.
    private func differing(
        _ incoming: Record, from stored: Record, alsoSets: Bool = false
    ) throws -> [(field: Field, own: String)] {
        let mine = Fields.values(try Fields.parse(stored.fields))
        return try Fields.parse(incoming.fields).compactMap { field in
            guard let own = mine[ByteName(field.name)], !Publication.isText(field.name),
                alsoSets || !MergePolicy.setFields.contains(field.name), try !Fields.same(own, field.value)
            else { return nil }
            return (field, own)
        }
    }

    /// Of two values with one time the store's stays. No time says which is right, so the other is not dropped silently.
    func noteLostTies(_ incoming: Record, _ outcome: Outcome) throws {
        let stored: Record
        switch outcome.decision {
        case .update(let merged, let changes):
            stored = merged
            if outcome.wasOfBatch { try noteReplacedLine(incoming, merged, changes, outcome.id) }
        case .protect(.newer):
            guard let known = try store.record(outcome.id)?.record else { return }
            stored = known
        case .add, .unchanged, .protect: return
        }
        guard !incoming.isDeleted, !stored.isDeleted, !outcome.clamped || isPlanned(incoming) else { return }
        if try noteDatedAhead(stored, incoming, outcome) { return }
        let isUndated = try EventText.isUndated(incoming)
        let areUndated = try !takesRecords && isUndated && EventText.isUndated(stored)
        // An undated line may be as late as its event was, if that has been.
        let mayBeLate = isUndated && !takesRecords && !isPlanned(incoming)
        let compared = try mayBeLate ? incoming : EventText.comparable(stored, incoming).1
        let lost = try differing(incoming, from: stored).filter { field, own in
            guard
                try isOtherValue(own, of: field, in: incoming),
                !reported.contains(field.name),
                // The key from which a decision has renamed the work is no newer, however late a file says it.
                field.name != Publication.citeKey || !isRenamed(stored, from: field),
                // The order of a file, from which entries were removed here.
                incoming.type != RecordType.bibliographyPart || !isPart(own, of: field)
            else { return false }
            let ownTime = stored.fieldTimes[field.name] ?? stored.modifiedAt
            return areUndated || (compared.fieldTimes[field.name] ?? compared.modifiedAt) >= ownTime
        }
        guard !lost.isEmpty else { return }
        let names = lost.map(\.field.name).joined(separator: ", ")
        if outcome.wasOfBatch, !takesRecords, incoming.modifiedAt == stored.modifiedAt {
            return noteTwice(incoming, names)
        }
        let reason =
            areUndated && incoming.modifiedAt != stored.modifiedAt
                || mayBeLate && incoming.modifiedAt > stored.latestTime
            ? "has no 'modified_at' that shows it to be newer than the store's version, but it has"
            : "has the same time as the store's version and"
        note(
            Finding(
                .protected, .warning, outcome.id.description,
                "\(reason) other values (\(names)); the store's were kept",
                remedy: takesRecords || isFromImbib
                    ? "'backup-tool restore BACKUP --match WORDS --mode replace' takes the values of the backup"
                    : "'backup-tool import --overwrite PATH' takes the values of the file"))
    }

    /// Whether an overwrite has taken this record already. The first entry of an import counts: if the last one did, each
    /// import would write all of them again.
    func isOverwritten(_ record: Record) -> Bool {
        overwriteKey(of: record.localID, record).map(overwritten.contains) ?? false
    }

    /// The record as the first entry has left it, with the fields that only this one has.
    func completing(_ record: Record) throws -> Record {
        let known = try store.soundRecords(localID: record.localID).map(\.record)
        guard let known = known.first(where: { $0.type == record.type && !$0.isDeleted }) else { return record }
        var whole = record
        let fields = try Fields.parse(known.fields)
        let names = Set(fields.map { ByteName($0.name) })
        let more = try Fields.parse(record.fields).filter { !names.contains(ByteName($0.name)) }
        whole.fields = Fields.text(fields + more)
        return whole
    }

    private func overwriteKey(of localID: String, _ record: Record) -> Int64? {
        let isCounted = ![RecordType.event, RecordType.bibliographyPart].contains(record.type)
        guard isCounted, !record.isDeleted else { return nil }
        let kind = store.hasher.kind(zone: record.id.zone, type: record.type)
        return store.hasher.key(localID) ^ Int64(bitPattern: kind)
    }

    /// Notes that an overwrite has taken the record, and names the fields in which the first entry of it differs.
    func noteOverwritten(_ record: Record, _ outcome: Outcome) throws {
        let isSecond = isOverwritten(record)
        overwritten.formUnion([record.localID, outcome.localID].compactMap { overwriteKey(of: $0, record) })
        guard isSecond, let stored = try store.record(outcome.id)?.record, !stored.isDeleted else { return }
        let names = try differing(record, from: stored, alsoSets: true).map(\.field.name)
        if !names.isEmpty { noteTwice(record, names.joined(separator: ", ")) }
    }

    /// Says that an import has a record twice. `record` is the second one, of which these fields do not count.
    private func noteTwice(_ record: Record, _ names: String) {
        let what =
            record.type == RecordType.event
            ? "lines of this import are this event" : "entries of this import are this record"
        note(
            Finding(
                .protected, .warning, RecordLabel.text(of: record),
                "two \(what) and differ (\(names)); the values of the first one count",
                remedy: "write the same values in both, and import them again"))
    }

    /// Counts a line of an event that is not taken, because a later line of the same import is.
    func passReplaced(_ line: Record, by later: Record) throws {
        passKnown()
        let changes = FieldChange.list(from: try Fields.parse(line.fields), to: try Fields.parse(later.fields))
        try noteReplacedLine(line, later, changes, later.id)
    }

    /// Reports an undated line of an event that a later line of the same import has replaced.
    private func noteReplacedLine(_ incoming: Record, _ stored: Record, _ changes: [FieldChange], _ id: RecordID) throws
    {
        guard incoming.type == RecordType.event, !takesRecords, !incoming.isDeleted,
            try EventText.isUndated(incoming) && EventText.isUndated(stored)
        else { return }
        let lost = try changes.filter { change in
            guard let before = change.before, let after = change.after else { return false }
            return try isOtherValue(after, of: Field(change.name, before), in: incoming)
        }
        guard !lost.isEmpty else { return }
        let names = lost.map(\.name).joined(separator: ", ")
        let winner = incoming.modifiedAt == stored.modifiedAt ? "last line" : "line with the later time"
        note(
            Finding(
                .protected, .warning, id.description,
                "two lines of this import are this event and differ (\(names)); the values of the \(winner) count, "
                    + "because neither has a 'modified_at'",
                remedy: "to keep the other line, remove this one from the file and import the file with --overwrite")
        )
    }

    /// Reports values of a file for a record that is kept on this device only, where they are newer or were asked for. The
    /// intake of `.bib` files tells of publications.
    func noteKeptHere(_ incoming: Record, _ outcome: Outcome) throws {
        guard case .protect(.localOnly) = outcome.decision, policy == .honor, !overwrite, !takesRecords, !isFromImbib,
            incoming.type != RecordType.publication,
            let stored = try store.record(outcome.id)?.record, isEdit || incoming.latestTime > stored.latestTime,
            try !differing(incoming, from: stored).isEmpty
        else { return }
        let id = outcome.id.description
        note(
            Finding(
                .protected, .warning, id, "\(Protection.localOnly.rawValue), so other values of the file were left out",
                remedy: "\(TypedCommand.quoted("store enable-cloud", [id])) shares it again; "
                    + "then 'backup-tool import --overwrite PATH' takes them"))
    }

    /// Reports values that lost against a time ahead of this device's clock: they may be later edits all the same.
    private func noteDatedAhead(_ stored: Record, _ incoming: Record, _ outcome: Outcome) throws -> Bool {
        guard case .protect(.newer) = outcome.decision, !takesRecords, !isFromImbib, !isPlanned(stored),
            stored.latestTime > store.clock.now(), try !differing(incoming, from: stored).isEmpty
        else { return false }
        note(
            Finding(
                .clockSkew, .warning, outcome.id.description,
                "the store's version is dated ahead of this device's clock; it was kept, and other values were left out",
                remedy: "'backup-tool import --overwrite PATH' takes the values of the file"))
        return true
    }

    /// A record that was left because the store had it newer says by now what the file says: nothing was left out.
    func takeBackPassedOver(_ record: Record) {
        guard let count = passedOver.removeValue(forKey: ByteName(record.localID)) else { return }
        result[keyPath: count] -= 1
        let subject = record.id.description
        result.plan.removeAll { $0.action == .protect && $0.subject == subject }
    }

    /// Whether two values of a field mean different things.
    private func isOtherValue(_ own: String, of field: Field, in record: Record) throws -> Bool {
        // The id that both go by, in capitals or not.
        if ["id", "localId"].contains(field.name), isOneID(own, field.value) { return false }
        guard record.type == RecordType.event else { return true }
        // A file may lie beside another one of its name here.
        return try !EventText.means(field, own) && !isVersion(own, of: field)
    }

    private func isRenamed(_ stored: Record, from key: Field) -> Bool {
        Fields.string(key.name, in: [key]).map(stored.wasRenamed) ?? false
    }

    private func isVersion(_ own: String, of field: Field) -> Bool {
        guard RecordFiles.mediaKeys.contains(field.name), let path = Fields.string(field.name, in: [field]),
            let mine = Fields.string(field.name, in: [Field(field.name, own)])
        else { return false }
        return Store.isVersionBeside(mine, of: path)
    }

    private func isPart(_ own: String, of field: Field) -> Bool {
        guard field.name == "items" else { return false }
        let mine = Fields.strings(field.name, in: [Field(field.name, own)])
        return Set(mine).isSubset(of: Fields.strings(field.name, in: [field]))
    }

    private func isOneID(_ left: String, _ right: String) -> Bool {
        store.hasher.key(String(left.dropFirst().dropLast())) == store.hasher.key(String(right.dropFirst().dropLast()))
    }

    /// What a record names that stays deleted.
    private func noteDeleted(_ record: Record, isPurged: Bool) {
        if let fields = try? Fields.parse(record.fields) {
            namedByDeleted.formUnion(RecordFiles.paths(in: fields).map { ByteName($0) })
        }
        guard record.type == RecordType.publication, let key = CiteKeys.key(of: record) else { return }
        if isPurged { purgedKeys.insert(key) }
    }

    /// A record stays deleted: its delete is newer, or it was purged.
    func countDeleted(_ record: Record, _ outcome: Outcome, _ reason: Protection) throws {
        let isPurged = try isPurged(record, outcome)
        noteDeleted(record, isPurged: isPurged)
        guard reason == .newerTombstone else { return try notePurged(record, outcome) }
        if overwrite { replacing.noteStaysDeleted(record) }
        result.stayedDeleted += 1
        if isPurged {
            result.stayedPurged += 1
            // Nothing but a permission brings it back.
            if overwrite || resurrects != nil { try notePurged(record, outcome) }
            return
        }
        guard let resurrects else { return }
        note(
            Finding(
                .protected, .warning, outcome.id.description,
                "stays deleted: it was deleted after this backup was made",
                remedy: "'\(resurrects)' brings it back"))
    }

    /// Whether a record that is not taken, or the one of the store that it is, was purged.
    func isPurged(_ record: Record, _ outcome: Outcome) throws -> Bool {
        try outcome.decision == .protect(.purged) || store.isPurged(record) || store.isPurged(outcome.id)
    }

    /// Names the record, or the one in an envelope.
    private func notePurged(_ record: Record, _ outcome: Outcome) throws {
        let inside = try store.ifReadable { try Quarantine.content(of: record) } ?? nil
        notePurged(inside?.id ?? outcome.id)
    }

    func notePurged(_ id: RecordID) {
        note(
            Finding(
                .leftOut, .warning, id.description, Protection.purged.rawValue, remedy: Self.howPurgedReturn(id)))
    }

    static func howPurgedReturn(_ id: RecordID) -> String {
        "\(TypedCommand.quoted("store purge --allow-return", [id.description])) lets it come back; "
            + "then repeat this command"
    }
}
