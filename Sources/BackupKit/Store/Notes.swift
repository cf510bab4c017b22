/// The notes of a store, and the publications that they belong to.
extension Store {
    /// The note under a local id, be it deleted.
    func note(_ localID: String) throws -> Record? {
        try soundRecords(localID: localID).map(\.record).first { $0.type == RecordType.note }
    }

    /// For whoever writes a note on it: a damaged one is thrown.
    func soundPublication(_ localID: String) throws -> StoredRecord? {
        try soundRecords(localID: localID).first { $0.record.type == RecordType.publication && !$0.record.isDeleted }
    }

    /// Local ids of the live publications with that very cite key; `before`: without those that the running batch has added.
    func publications(withKey key: String, among keys: CiteKeys, before: Bool = false) throws -> [String] {
        try keys.live(key).filter { stored in
            guard let own = CiteKeys.key(of: stored.record), sameBytes(own, key) else { return false }
            return try !before || wasHere(stored)
        }.map(\.record.localID)
    }

    /// Whether a record was here before the batch that is running, be it with other words.
    func wasHere(_ stored: StoredRecord) throws -> Bool {
        guard let batch = currentBatch, stored.change >= batch.firstChange else { return true }
        let query = try database.statement("SELECT 1 FROM batch_record WHERE batch = ? AND after = ?")
            .bind(1, batch.id).bind(2, stored.change)
        defer { query.reset() }
        return try query.step()
    }

    /// A publication gets another local id, or another row stands for it. Its notes and conflicts follow, except those that
    /// a hub has seen; the old id belongs to another work now.
    func moveLinks(of old: Record, to new: Record) throws {
        let (old, new) = (old.idInLinks, new.idInLinks)
        guard !sameBytes(old, new) else { return }
        try moveNotes(of: old, to: new)
        try moveConflicts(of: old, to: new)
    }

    private func moveNotes(of old: String, to new: String) throws {
        let query = try database.prepare(
            "SELECT change FROM record WHERE type = ? AND deleted_at IS NULL AND \(HubSeal.version) IS NULL AND instr(fields, ?) > 0"
        ).bind(1, RecordType.note).bind(2, old)
        var changes: [Int64] = []
        while try query.step() { changes.append(query.integer(0)) }
        for change in changes {
            guard let note = try ifSound({ try record(change: change) }),
                let fields = try ifReadable({ try Fields.parse(note.fields) }),
                Fields.string(Note.publication, in: fields) == old
            else { continue }
            let moved = note.setting(Note.publication, to: new, in: fields)
            // Else the work that has the old id now could not have a note.
            if sameBytes(note.localID, Note.id(on: old)) {
                try move(note, change, to: moved, on: new)
            } else {
                try rewrite(StoredRecord(change: change, record: note), as: moved)
            }
        }
    }

    /// The publication may have another note already; one that says the same takes this one's place.
    private func move(_ note: Record, _ change: Int64, to moved: Record, on publication: String) throws {
        let id = Note.id(on: publication)
        guard let other = try self.note(id) else { return try reidentify(change, note, to: moved.identified(as: id)) }
        let text = Fields.string("note", in: try Fields.parse(note.fields)) ?? ""
        if !other.isDeleted, try Fields.string("note", in: Fields.parse(other.fields)) == text {
            return try takeOut(change, note, for: other.id)
        }
        let free = Note.id(on: publication, saying: text)
        if try self.note(free) == nil { return try reidentify(change, note, to: moved.identified(as: free)) }
        try rewrite(StoredRecord(change: change, record: note), as: moved)
    }
}

extension Record {
    /// The id that notes and conflicts have for a publication: its local id. A tombstone may have the local id of its listing
    /// instead; they still have the old one, which is its name.
    var idInLinks: String {
        let keepsIDAsName = isDeleted && DeterministicID.isMade(id.name) && DeterministicID.isMade(localID)
        return keepsIDAsName ? id.name : localID
    }

    /// The record with a text in one of its fields, in its place or at their end.
    func setting(_ name: String, to text: String, in fields: [Field]) -> Record {
        var record = self
        let field = Field(name, .string(text))
        let place = fields.firstIndex { $0.name == name }
        var fields = fields
        if let place { fields[place] = field } else { fields.append(field) }
        record.fields = Fields.text(fields)
        return record
    }
}
