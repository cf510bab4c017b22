/// `notes.json`: imbib's array of `{"citeKey", "note"}`, with our `localId` and times beside them.
public enum NotesFile {
    /// Reads the file; `time` stands in where a note has none. What is no note is reported with its place.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, time: Timestamp, problem: (BackupError) -> Void
    ) throws -> [Record] {
        var records: [Record] = []
        var number = 0
        var scanner = JSONScanner(bytes)
        try scanner.forEachElement { _, range in
            number += 1
            // One note at a time: a document of the whole file would take many times its size.
            let note = try JSON(parsing: UnsafeRawBufferPointer(rebasing: bytes[range]))
            guard let members = note.members, let key = note["citeKey"]?.string, note["note"]?.string != nil else {
                return problem(BackupError(.damaged, "note \(number) has no 'citeKey' or no 'note'"))
            }
            let own = ["localId", "createdAt", "modifiedAt"]
            let fields = members.filter { !own.contains($0.key) }.map { Field($0.key, $0.value) }
            let modified = note["modifiedAt"]?.string.flatMap { Timestamp(iso8601: $0) } ?? time
            records.append(
                Record(
                    id: RecordID(zone: RecordType.libraryZone, name: ""), type: RecordType.note, localID: "",
                    fields: Fields.text(fields),
                    createdAt: note["createdAt"]?.string.flatMap { Timestamp(iso8601: $0) } ?? modified,
                    modifiedAt: modified
                ).identified(as: note["localId"]?.string ?? DeterministicID.make(RecordType.note, key)))
        }
        try scanner.expectEnd()
        return records
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
