/// `notes.json` of an export: each note under the key that its publication has now.
extension StoreLayout {
    mutating func currentKey(of note: Record) throws -> String {
        let fields = try Fields.parse(note.fields)
        let work = try publication(of: fields)
        return work.flatMap { CiteKeys.key(of: $0) } ?? Fields.string(Publication.citeKey, in: fields) ?? ""
    }

    /// The living publication that a note names, be it one that has taken in the named one.
    private mutating func publication(of note: [Field]) throws -> Record? {
        guard let named = Fields.string(Note.publication, in: note) else { return nil }
        if let work = try store.publication(named) { return work.record }
        let takers = try self.takers ?? store.takers(type: RecordType.publication)
        self.takers = takers
        return try takers[named].flatMap { try store.publication($0)?.record }
    }

    /// imbib knows a note by its cite key alone. Where its publication is gone and another one has the key, it would pass for
    /// a note on that.
    mutating func omitNotesOfGoneWorks() throws {
        var keys: CiteKeys?
        var kept: [(key: String, localID: String, change: Int64)] = []
        for note in notes {
            if let record = try store.ifSound({ try store.record(change: note.change) }) {
                let fields = try Fields.parse(record.fields)
                if Fields.string(Note.publication, in: fields) != nil, try publication(of: fields) == nil {
                    let known = try keys ?? CiteKeys(store)
                    keys = known
                    if !known.holders(of: note.key).isEmpty {
                        omit(Layout.notes, "\(Omission.noteOfGoneWork)'\(note.key)'")
                        continue
                    }
                }
            }
            kept.append(note)
        }
        notes = kept
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
