/// `notes.json`: imbib's array of `{"citeKey", "note"}`, with our `localId` and times beside them.
public enum NotesFile {
    /// Reads the file; `time` stands in where a note has none. What is no note is reported with its place.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, time: Timestamp, problem: (BackupError) -> Void
    ) throws -> [Record] {
        guard let notes = try JSON(parsing: bytes).array else {
            throw BackupError(.damaged, "is no list of notes")
        }
        var records: [Record] = []
        for (index, note) in notes.enumerated() {
            guard let members = note.members, let key = note["citeKey"]?.string, note["note"]?.string != nil else {
                problem(BackupError(.damaged, "note \(index + 1) has no 'citeKey' or no 'note'"))
                continue
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
