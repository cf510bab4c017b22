/// What the line of an event says without the id that its app gave it later: events whose lines say the same may be one.
enum EventText {
    static func id(in fields: [Field]) -> String? {
        Fields.string("id", in: fields) ?? Fields.string("localId", in: fields)
    }

    /// What the line of a record may have said before the app gave it an id, and with it perhaps its times.
    static func withoutID(_ record: Record) throws -> [String] {
        let fields = try Fields.parse(record.fields)
        // UUIDs that differ in case are one.
        guard let id = id(in: fields), sameBytes(id.lowercased(), record.localID.lowercased()) else { return [] }
        return try withoutID(fields)
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
