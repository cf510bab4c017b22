/// One line of an event log (Ollie's `YYYY-MM-DD.jsonl`). The line itself is the record's fields, so what the app does not
/// know survives, and a line that nobody edited is exported as it came.
public enum EventLine {
    /// Reads a line. `occurrence` counts equal lines of one file, from 1: two equal lines are two events.
    public static func record(
        _ line: UnsafeRawBufferPointer, occurrence: (_ canonical: String) -> Int
    ) throws -> Record {
        let fields = try Fields.parse(foreign: line)
        guard let time = EventText.time(in: fields) else {
            throw BackupError(.damaged, "has no 'time' that is a time", remedy: "a time is 2026-02-14T15:00+01:00")
        }
        guard let type = Fields.string("type", in: fields) ?? Fields.string("eventType", in: fields), !type.isEmpty
        else {
            throw BackupError(.damaged, "has no 'type'")
        }
        for key in RecordFiles.mediaKeys { try checkMedia(key, fields) }
        let created = try optionalTime("created_at", fields) ?? time.instant
        let modified = try optionalTime("modified_at", fields) ?? time.instant
        return Record(
            id: RecordID(zone: RecordType.eventZone, name: ""), type: RecordType.event, localID: "",
            fields: String(decoding: line, as: UTF8.self), createdAt: created, modifiedAt: modified
        ).identified(as: try id(fields, line, occurrence))
    }

    private static func id(
        _ fields: [Field], _ line: UnsafeRawBufferPointer, _ occurrence: (String) -> Int
    ) throws -> String {
        if let id = EventText.id(in: fields) {
            let texts = fields.filter { $0.name == "id" || $0.name == "localId" }.map(\.value)
            // An escape that is no character: all of them would be one id.
            guard !id.unicodeScalars.contains("\u{FFFD}") || texts.allSatisfy({ !$0.utf8.contains(UInt8(ascii: "\\")) })
            else { throw BackupError(.damaged, "'id' is no text: \(texts[0])") }
            return id
        }
        var canonical: [UInt8] = []
        try CanonicalJSON.append(line, to: &canonical)
        let text = String(decoding: canonical, as: UTF8.self)
        return DeterministicID.make(RecordType.event, text, String(occurrence(text)))
    }

    private static func optionalTime(_ key: String, _ fields: [Field]) throws -> Timestamp? {
        guard let value = fields.first(where: { $0.name == key })?.value, value != "null" else { return nil }
        guard let text = Fields.string(key, in: fields), let time = Timestamp(iso8601: text) else {
            throw BackupError(.damaged, "'\(key)' is no time: \(value)")
        }
        return time
    }

    private static func checkMedia(_ key: String, _ fields: [Field]) throws {
        guard let path = Fields.string(key, in: fields), !path.contains("://"), leadsOutside(path) else { return }
        throw BackupError(.refused, "'\(key)' leads outside: \(path)")
    }

    static func leadsOutside(_ path: String) -> Bool {
        // A backslash parts names on some systems.
        let parts = path.utf8.split(omittingEmptySubsequences: false) {
            $0 == FilePath.slash || $0 == UInt8(ascii: "\\")
        }
        guard !path.isEmpty, let first = parts.first else { return false }
        return first.isEmpty || first.last == UInt8(ascii: ":") || parts.contains { $0.elementsEqual("..".utf8) }
    }
}
