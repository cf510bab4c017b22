/// `notes.json`: imbib's array of `{"citeKey", "note"}`, with our `localId` and times beside them.
public enum NotesFile {
    public struct Entry {
        public let note: Record
        /// Whether the file says which note it is. Without that it goes by its cite key, which strangers share.
        public let hasID: Bool
        /// The members that should say a time and say none; the file's time stands in for them.
        public let oddTimes: [String]
    }

    /// Reads the file; `time` stands in where a note has none. What is no note is reported with its place.
    public static func read(
        _ text: UnsafeRawBufferPointer, time: Timestamp, problem: (BackupError) -> Void
    ) throws -> [Entry] {
        let bytes = text.withoutByteOrderMark
        var entries: [Entry] = []
        var number = 0
        var scanner = JSONScanner(bytes)
        if let first = bytes.first(where: { $0 > 0x20 }), first != UInt8(ascii: "["), (try? JSON(parsing: bytes)) != nil
        {
            throw BackupError(.damaged, "is not an array of notes")
        }
        try scanner.forEachElement { _, range in
            number += 1
            // One note at a time: a document of the whole file would take many times its size.
            let members: [Field]
            do { members = try Fields.parse(foreign: UnsafeRawBufferPointer(rebasing: bytes[range])) } catch let error
                as BackupError
            {
                return problem(BackupError(.damaged, "note \(number) \(error.message)"))
            }
            func text(_ name: String) -> String? { Fields.string(name, in: members) }
            guard let key = text("citeKey"), text("note") != nil else {
                return problem(BackupError(.damaged, "note \(number) has no 'citeKey' or no 'note' that is a text"))
            }
            let own = ["localId", "createdAt", "modifiedAt"]
            // A text stays as it was written: no other form can hold half a surrogate pair.
            let fields = try members.filter { !own.contains($0.name) }.map { field in
                field.value.hasPrefix("\"") ? field : Field(field.name, try JSON(parsing: field.value))
            }
            func said(_ name: String) -> Timestamp? { text(name).flatMap { Timestamp(iso8601: $0) } }
            let oddTimes = ["createdAt", "modifiedAt"].filter { name in
                said(name) == nil && members.contains { $0.name == name && $0.value != "null" }
            }
            let modified = said("modifiedAt") ?? time
            let note = Record(
                id: RecordID(zone: RecordType.libraryZone, name: ""), type: RecordType.note, localID: "",
                fields: Fields.text(fields),
                createdAt: said("createdAt") ?? modified, modifiedAt: modified)
            let id = text("localId")
            entries.append(
                Entry(note: note.identified(as: id ?? Note.id(byKey: key)), hasID: id != nil, oddTimes: oddTimes))
        }
        try scanner.expectEnd()
        return entries
    }

    /// One note as it stands in the file, without the comma after it.
    static func text(of note: Record) throws -> String {
        let fields = try Fields.parse(note.fields)
        let text = Fields.text(
            fields + [
                Field("localId", .string(note.localID)), Field("createdAt", .string(note.createdAt.iso8601)),
                Field("modifiedAt", .string(note.modifiedAt.iso8601)),
            ])
        return text
    }
}
