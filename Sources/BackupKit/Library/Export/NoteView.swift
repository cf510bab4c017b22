/// `notes.json` of an export: each note under the key that its publication has now.
extension StoreLayout {
    mutating func currentKey(of note: Record) throws -> String {
        let fields = try Fields.parse(note.fields)
        let work = try publication(of: fields)
        return work.flatMap { CiteKeys.key(of: $0) } ?? Fields.string(Publication.citeKey, in: fields) ?? ""
    }

    /// The living publication that a note names, or the one that a decision merged it into.
    private mutating func publication(of note: [Field]) throws -> Record? {
        guard let named = Fields.string(Note.publication, in: note) else { return nil }
        if let work = try store.livePublication(named) { return work.record }
        let takers = try self.takers ?? store.takers(type: RecordType.publication)
        self.takers = takers
        return try takers[named].flatMap { try store.livePublication($0)?.record }
    }

    /// Leaves out notes whose publication is gone, where another one has the cite key: imbib knows a note by that alone.
    mutating func omitNotesOfGoneWorks() throws {
        var orphans: [(key: String, change: Int64)] = []
        for note in notes where try isOrphan(change: note.change) { orphans.append((note.key, note.change)) }
        guard !orphans.isEmpty else { return }
        let keys = try CiteKeys(store)
        orphans.removeAll { keys.holders(of: $0.key).isEmpty }
        for note in orphans { omit(Layout.notes, "\(Omission.noteOfGoneWork)'\(note.key)'") }
        let omitted = Set(orphans.map(\.change))
        notes.removeAll { omitted.contains($0.change) }
    }

    /// Whether a note names a publication that is gone.
    private mutating func isOrphan(change: Int64) throws -> Bool {
        guard let note = try store.ifSound({ try store.record(change: change) }) else { return false }
        let fields = try Fields.parse(note.fields)
        return try Fields.string(Note.publication, in: fields) != nil && publication(of: fields) == nil
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
