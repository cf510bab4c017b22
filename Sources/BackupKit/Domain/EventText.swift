/// What the line of an event says: when it was, and what it said before its app gave it an id. Events whose lines say the same
/// may be one.
enum EventText {
    /// When the event was, by its own clock; the day decides which file it stands in.
    static func time(in fields: [Field]) -> LocalTime? {
        (Fields.string("time", in: fields) ?? Fields.string("eventTime", in: fields)).flatMap { LocalTime($0) }
    }

    /// Whether the line has a time of this name. Where it has none, the event's own time stands for it.
    static func says(_ key: String, _ fields: [Field]) -> Bool {
        fields.contains { $0.name == key && $0.value != "null" }
    }

    /// Whether a version is the line of an event, which has one time for all that it says.
    static func isLine(_ version: Record) -> Bool {
        version.type == RecordType.event && !version.isDeleted && version.fieldTimes.isEmpty
    }

    /// Whether the line of an event does not say when it was edited last. The event's own time stands for that, and an event
    /// that is moved to an earlier one is no older.
    static func isUndated(_ event: Record) throws -> Bool { try undatedTime(of: event) != nil }

    /// When an event was whose line is undated; nil of all others.
    private static func undatedTime(of event: Record) throws -> Timestamp? {
        guard event.type == RecordType.event else { return nil }
        let fields = try Fields.parse(event.fields)
        guard !says("modified_at", fields), let time = time(in: fields) else { return nil }
        return event.latestTime <= time.instant ? time.instant : nil
    }

    /// Two versions of an event as they are compared. A line that does not say when it was written is older than one that
    /// does, whenever the event is. Two such lines about one time are of one age.
    static func comparable(_ one: Record, _ other: Record) throws -> (Record, Record) {
        guard one.type == RecordType.event, other.type == RecordType.event, !one.isDeleted, !other.isDeleted else {
            return (one, other)
        }
        var (one, other) = (one, other)
        switch (try undatedTime(of: one), try undatedTime(of: other)) {
        case (_?, nil): one.modifiedAt = min(one.modifiedAt, other.latestTime.previous)
        case (nil, _?): other.modifiedAt = min(other.modifiedAt, one.latestTime.previous)
        case (let mine?, let theirs?) where mine == theirs:
            let both = min(one.modifiedAt, other.modifiedAt)
            (one.modifiedAt, other.modifiedAt) = (both, both)
        default: break
        }
        return (one, other)
    }

    /// Whether the line without an id says something that the event with it does not, or is newer.
    static func hasNews(_ line: Record, for event: Record) throws -> Bool {
        let said = try meanings(Fields.parse(line.fields))
        if try !meanings(withID: event).contains(where: { now in said.contains { sameBytes($0, now) } }) { return true }
        // Equal content may still carry a newer time.
        let (mine, theirs) = try comparable(event, line)
        return theirs.latestTime > mine.latestTime
    }

    static func id(in fields: [Field]) -> String? {
        let id = Fields.string("id", in: fields) ?? Fields.string("localId", in: fields)
        return id?.isEmpty == true ? nil : id
    }

    /// The `localId` of a line that has an `id` beside it, or may get one later.
    static func otherID(in fields: [Field]) -> String? {
        guard let other = Fields.string("localId", in: fields), !other.isEmpty else { return nil }
        let id = Fields.string("id", in: fields)
        return id.map { isOneID($0, other) } == true ? nil : other
    }

    /// The `localId` that an event has beside its id.
    static func idBeside(_ event: Record) -> String? {
        guard event.type == RecordType.event,
            let ids = try? Fields.strings(named: ["id", "localId"], of: event.fields),
            let id = ids[0], let other = ids[1], !other.isEmpty
        else { return nil }
        return [id, event.localID].contains { isOneID($0, other) } ? nil : other
    }

    /// UUIDs that differ in case are one.
    private static func isOneID(_ one: String, _ other: String) -> Bool {
        sameBytes(one.lowercased(), other.lowercased())
    }

    /// Whether an event is known by the `localId` of its line, and may get an id beside it. Where the event has an id, a line
    /// with that as its `localId` is another event.
    static func isKnownByLocalID(_ event: Record) -> Bool {
        guard event.type == RecordType.event, let fields = try? Fields.parse(event.fields) else { return false }
        return localIDForm(in: fields) == .alone
    }

    /// Whether a line has a `localId` beside its id, or that alone.
    enum LocalIDForm { case none, beside, alone }

    static func localIDForm(in fields: [Field]) -> LocalIDForm {
        guard otherID(in: fields) != nil else { return .none }
        return Fields.string("id", in: fields) == nil ? .alone : .beside
    }

    /// The fields of a record that has the id of its line; nil of all others. UUIDs that differ in case are one.
    static func fieldsWithID(_ record: Record) throws -> [Field]? {
        let fields = try Fields.parse(record.fields)
        guard let id = id(in: fields), sameBytes(id.lowercased(), record.localID.lowercased()) else { return nil }
        return fields
    }

    /// What the line of a record may have said before the app gave it an id, and with it perhaps its times.
    static func withoutID(_ record: Record) throws -> [String] {
        try fieldsWithID(record).map { try withoutID($0) } ?? []
    }

    static func withoutID(_ fields: [Field]) throws -> [String] {
        try texts(fields, without: [["id", "localId"], ["id", "localId", "created_at", "modified_at"]])
    }

    /// What the line of an event that has no id said.
    static func asWritten(_ fields: [Field]) throws -> [String] { try texts(fields, without: [[]]) }

    private static func texts(_ fields: [Field], without names: [[String]]) throws -> [String] {
        var texts: [String] = []
        for spelled in [fields, RecordFiles.asInLog(fields)].compactMap(\.self) {
            for names in names {
                let rest = spelled.filter { !names.contains($0.name) }
                let text = String(decoding: try Fields.canonical(Fields.text(rest)), as: UTF8.self)
                if !texts.contains(text) { texts.append(text) }
            }
        }
        return texts
    }
}
