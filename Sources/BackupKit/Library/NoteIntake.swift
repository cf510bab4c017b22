/// Takes notes: each under an id of its work. A note that comes without an id names a cite key, which strangers share, and
/// so did the ids that older versions made.
final class NoteIntake {
    private let intake: Intake
    /// Local ids, in the store, of the source's publications with a key; nil where the source has none to tell.
    private let works: (String) throws -> [String]?
    private var keys: CiteKeys?
    private var store: Store { intake.store }

    init(_ intake: Intake, works: @escaping (String) throws -> [String]?) {
        (self.intake, self.works) = (intake, works)
    }

    func take(_ note: Record, hasID: Bool) throws {
        // What is in quarantine stays as it came, and what replaces the store's records is what the backup has.
        let isPlain = note.isDeleted || intake.policy == .quarantine || intake.overwrite && hasID
        do { try intake.take(isPlain ? note : placed(note, hasID: hasID)) } catch let row as DamagedRow {
            _ = try intake.refuse(note, row.inTheWay)
        }
    }

    private func placed(_ note: Record, hasID: Bool) throws -> Record {
        let fields = try Fields.parse(note.fields)
        guard let key = Fields.string(Store.citeKeyField, in: fields) else { return note }
        if let named = Fields.string(Note.publication, in: fields) {
            guard let moved = intake.newIDs[named], let work = try store.publication(moved)?.record else { return note }
            return note.about(work, fields, id: try Note.ids(on: work)[0])
        }
        guard sameBytes(note.localID, Note.id(byKey: key)) else { return note }
        let known = try works(key)
        let named = try known ?? publications(withKey: key)
        // Notes that come alone may come before their publications: what they are called must not depend on that.
        let isNamed = hasID || known == nil
        guard named.count == 1, let work = try store.publication(named[0]) else {
            return try named.count > 1 && !isNamed ? oneOfSeveral(note, fields, key) : note
        }
        return try placed(note, fields, on: work, isNamed: isNamed)
    }

    /// The note as the one that the store has on that publication, or as a new one.
    private func placed(
        _ note: Record, _ fields: [Field], on work: Store.StoredRecord, isNamed: Bool
    ) throws -> Record {
        var free: String?
        for id in try Note.ids(on: work.record) {
            guard let known = try store.note(id) else {
                free = free ?? id
                continue
            }
            if try known.isDeleted || isAbout(work.record.localID, known) {
                return note.about(work.record, fields, id: id)
            }
        }
        let known = try store.note(note.localID)
        if try known.map({ try mayBe($0, on: work) }) ?? isNamed { return note }
        return free.map { note.about(work.record, fields, id: $0) } ?? note
    }

    private func isAbout(_ work: String, _ note: Record) throws -> Bool {
        try Fields.string(Note.publication, in: Fields.parse(note.fields)) == work
    }

    /// Whether a note that goes by its key may be one on that publication: nobody else had the key here.
    private func mayBe(_ note: Record, on work: Store.StoredRecord) throws -> Bool {
        if note.isDeleted { return try store.wasHere(work) }
        guard let key = Fields.string(Store.citeKeyField, in: try Fields.parse(note.fields)) else { return true }
        let holders = try publications(withKey: key, before: true)
        return holders.isEmpty || holders.contains(work.record.localID)
    }

    /// Of several publications with its key a note may be about any. It is told from another one by what it says.
    private func oneOfSeveral(_ note: Record, _ fields: [Field], _ key: String) throws -> Record {
        if let known = try store.note(note.localID), try Fields.same(known.fields, note.fields) { return note }
        let text = Fields.string("note", in: fields) ?? ""
        return note.identified(as: DeterministicID.make(RecordType.note, key, text))
    }

    private func publications(withKey key: String, before: Bool = false) throws -> [String] {
        let keys = try self.keys ?? CiteKeys(store)
        self.keys = keys
        return try store.publications(withKey: key, among: keys, before: before)
    }
}

extension Record {
    /// A note, as one on that publication.
    fileprivate func about(_ work: Record, _ fields: [Field], id: String) -> Record {
        setting(Note.publication, to: work.localID, in: fields).identified(as: id)
    }
}
