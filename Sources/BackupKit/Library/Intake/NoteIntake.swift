/// Takes notes: each under an id of its work. A note that comes without an id names a cite key, which strangers share, and
/// so did the ids that older versions made.
final class NoteIntake {
    private let intake: Intake
    /// Local ids, in the store, of the source's publications with a key; nil where the source has none to tell.
    private let works: (String) throws -> [String]?
    private var keys: CiteKeys?
    private var notes: NotesOfStore?
    private var store: Store { intake.store }

    init(_ intake: Intake, works: @escaping (String) throws -> [String]?) {
        (self.intake, self.works) = (intake, works)
    }

    /// `isAmongSeveral`: the source has other notes with that key, and does not say which is about what.
    @discardableResult
    func take(_ note: Record, hasID: Bool, isAmongSeveral: Bool = false) throws -> Outcome? {
        do {
            // What is in quarantine stays as it came, and what replaces the store's records is what the backup has.
            let isPlain =
                try note.isDeleted || intake.policy == .quarantine || intake.overwrite && hasID && !hasMoved(note)
            return try intake.take(isPlain ? note : placed(note, hasID: hasID, isAmongSeveral: isAmongSeveral))
        } catch let row as DamagedRow {
            _ = try intake.refuse(note, row.inTheWay)
            return nil
        }
    }

    /// Whether the publication of a note has another id here.
    private func hasMoved(_ note: Record) throws -> Bool {
        try Fields.string(Note.publication, in: Fields.parse(note.fields)).map { intake.newIDs[$0] != nil } ?? false
    }

    private func placed(_ note: Record, hasID: Bool, isAmongSeveral: Bool) throws -> Record {
        let fields = try Fields.parse(note.fields)
        guard let key = Fields.string(Store.citeKeyField, in: fields) else { return note }
        if let named = Fields.string(Note.publication, in: fields) { return try following(note, fields, named) }
        guard sameBytes(note.localID, Note.id(byKey: key)) else { return note }
        let said = try works(key)
        let named = try said ?? publications(withKey: key)
        if let known = try noteSaying(fields, of: named) { return known }
        // Notes that come alone may come before their publications: what they are called must not depend on that.
        if hasID || said?.isEmpty != false { return try byKey(note, fields, named) }
        guard named.count == 1, !isAmongSeveral else { return oneOfSeveral(note, fields) }
        return try placed(note, fields, on: named[0])
    }

    /// A note that knows its publication, which may have another id here.
    private func following(_ note: Record, _ fields: [Field], _ named: String) throws -> Record {
        let moved = intake.newIDs[named] ?? named
        let moving = note.setting(Note.publication, to: moved, in: fields)
        guard let work = try store.soundPublication(moved) else {
            // It is not here, or stays deleted. The store may have this note on its survivor, or another that says the same.
            guard let known = try store.note(note.localID) else {
                return try noteSaying(fields, of: [moved]) ?? moving
            }
            let publication = Fields.string(Note.publication, in: try Fields.parse(known.fields))
            // The id is taken by the note of another work.
            if moved != named, publication != moved, DeterministicID.isMade(note.localID) {
                return moving.identified(as: Note.id(on: moved))
            }
            return note.setting(Note.publication, to: publication ?? named, in: fields)
        }
        // An id that an app has given says nothing of the work.
        guard moved != named, DeterministicID.isMade(note.localID) else { return moving }
        return try moving.identified(as: knownID(on: work) ?? Note.ids(on: work.record)[0])
    }

    /// A note that keeps the id of its key, unless the store has somebody else's note under that.
    private func byKey(_ note: Record, _ fields: [Field], _ named: [String]) throws -> Record {
        guard let known = try store.note(note.localID), !known.isDeleted, !named.isEmpty else { return note }
        let work = named.count == 1 ? try store.soundPublication(named[0]) : nil
        if try work.map({ try mayBe(known, on: $0) }) ?? false { return note }
        let free = try work.flatMap { work in try Note.ids(on: work.record).first { try store.note($0) == nil } }
        guard let work, let free else { return oneOfSeveral(note, fields) }
        return note.setting(Note.publication, to: work.record.localID, in: fields).identified(as: free)
    }

    /// A note beside its only publication: the one that the store has on that, or a new one.
    private func placed(_ note: Record, _ fields: [Field], on localID: String) throws -> Record {
        let about = note.setting(Note.publication, to: localID, in: fields)
        let known = try store.note(note.localID)
        guard let work = try store.soundPublication(localID) else {
            // The publication stays deleted, and so does its note. A tombstone may say its listing in place of its local id.
            let buried = try store.soundRecords(localID: localID).map(\.record.id.name)
            let ids = (buried + [localID]).map { Note.id(on: $0) }
            return known == nil ? about.identified(as: try ids.first { try store.note($0) != nil } ?? ids[0]) : note
        }
        if let known = try knownID(on: work) { return about.identified(as: known) }
        if try known.map({ try mayBe($0, on: work) }) ?? false { return note }
        let free = try Note.ids(on: work.record).first { try store.note($0) == nil }
        return free.map { about.identified(as: $0) } ?? note
    }

    /// The id of the note that an import has made on that publication, also of one that was deleted since.
    private func knownID(on work: Store.StoredRecord) throws -> String? {
        if let id = try notesOfStore().ids[work.record.localID] { return id }
        return try Note.ids(on: work.record).first { try store.note($0)?.isDeleted == true }
    }

    /// Whether a note that goes by its key may be one on that publication: nobody else had the key here.
    private func mayBe(_ note: Record, on work: Store.StoredRecord) throws -> Bool {
        if note.isDeleted { return try store.wasHere(work) }
        guard let key = Fields.string(Store.citeKeyField, in: try Fields.parse(note.fields)) else { return true }
        return try publications(withKey: key, before: true) == [work.record.localID]
    }

    /// A note may belong to any of several publications with its key. Its text tells it from other notes.
    private func oneOfSeveral(_ note: Record, _ fields: [Field]) -> Record {
        let (key, text) = (Fields.string(Store.citeKeyField, in: fields), Fields.string("note", in: fields))
        return note.identified(as: DeterministicID.make(RecordType.note, key ?? "", text ?? ""))
    }

    /// The store's note that says the same. Two notes of one backup that say the same stay two.
    private func noteSaying(_ fields: [Field], of works: [String]) throws -> Record? {
        try notesOfStore().saying(fields, of: works, before: intake.takesRecords)
    }

    private func notesOfStore() throws -> NotesOfStore {
        let known = try notes ?? NotesOfStore(store)
        notes = known
        return known
    }

    private func publications(withKey key: String, before: Bool = false) throws -> [String] {
        let keys = try self.keys ?? CiteKeys(store)
        self.keys = keys
        return try store.publications(withKey: key, among: keys, before: before)
    }
}

/// What the living notes of a store are about, as it was when somebody asked first.
private struct NotesOfStore {
    private struct Known {
        let localID: String
        let key: String?
        let publication: String?
    }

    /// Ids of the notes that imports have made, by the local ids of their publications.
    private(set) var ids: [String: String] = [:]
    private var byText: [UInt64: [Known]] = [:]
    private let store: Store

    init(_ store: Store) throws {
        self.store = store
        var (ids, byText) = ([String: String](), [UInt64: [Known]]())
        try store.forEachLive(type: RecordType.note) { stored in
            let localID = stored.record.localID
            guard let fields = try store.ifReadable({ try Fields.parse(stored.record.fields) }) else { return }
            let publication = Fields.string(Note.publication, in: fields)
            if let publication, DeterministicID.isMade(localID) {
                ids[publication] = min(ids[publication] ?? localID, localID)
            }
            let key = Fields.string(Store.citeKeyField, in: fields)
            byText[Self.text(fields, store), default: []].append(
                Known(localID: localID, key: key, publication: publication))
        }
        (self.ids, self.byText) = (ids, byText)
    }

    private static func text(_ fields: [Field], _ store: Store) -> UInt64 {
        store.hasher.text(Fields.string("note", in: fields) ?? "")
    }

    /// The store's note that says the same of one of these works, or under the same key. `before`: of those that the running
    /// batch has not added.
    func saying(_ fields: [Field], of works: [String], before: Bool) throws -> Record? {
        let (key, text) = (Fields.string(Store.citeKeyField, in: fields), Fields.string("note", in: fields))
        for known in byText[Self.text(fields, store), default: []]
        where known.publication.map(works.contains) ?? false || known.key == key {
            let notes = try store.soundRecords(localID: known.localID).filter { $0.record.type == RecordType.note }
            guard let stored = notes.first, !stored.record.isDeleted, try !before || store.wasHere(stored),
                try Fields.string("note", in: Fields.parse(stored.record.fields)) == text
            else { continue }
            return stored.record
        }
        return nil
    }
}
