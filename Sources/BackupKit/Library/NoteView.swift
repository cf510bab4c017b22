/// `notes.json` of an export: each note under the key that its publication has now.
extension StoreLayout {
    func currentKey(of note: Record) throws -> String {
        let fields = try Fields.parse(note.fields)
        let work = try Fields.string(Note.publication, in: fields).flatMap { try store.publication($0)?.record }
        return work.flatMap { CiteKeys.key(of: $0) } ?? Fields.string(Publication.citeKey, in: fields) ?? ""
    }

    /// `notes.json`, by cite key; `text` writes one note.
    func writeNotes(to sink: TextSink, text: (Record) throws -> String = NotesFile.text) throws {
        var separator = "[\n  "
        for note in notes.sorted(by: { ($0.key, $0.localID) < ($1.key, $1.localID) }) {
            guard let record = try store.ifSound({ try store.record(change: note.change) }) else { continue }
            let fields = try Fields.parse(record.fields)
            let hasKey =
                Fields.string(Publication.citeKey, in: fields).map { sameBytes($0, note.key) } ?? note.key.isEmpty
            let line = try text(hasKey ? record : record.setting(Publication.citeKey, to: note.key, in: fields))
            try sink { $0 += (separator + line).utf8 }
            separator = ",\n  "
        }
        try sink { $0 += (separator == "[\n  " ? "[]\n" : "\n]\n").utf8 }
    }
}
