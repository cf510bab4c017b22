/// Notes as backups and files of the apps have them.
extension FileIntake {
    /// Notes come when it is known which publications their works are here.
    func takeNotes(in spool: SpoolFile, ofRecords path: String) throws {
        guard spool.size > 0 else { return }
        var works: [String: [String]]?
        let notes = NoteIntake(intake) { key in
            let found = try works ?? self.works(ofRecords: path)
            works = found
            return found[key] ?? []
        }
        try forEachRecord(in: spool) { try notes.take($0, hasID: true) }
    }

    private func forEachRecord(in spool: SpoolFile, _ body: (Record) throws -> Void) throws {
        func take(_ line: LineReader.Line) throws {
            guard let bytes = line.bytes, bytes.count > 0 else { return }
            try body(Record(parsing: bytes))
        }
        var reader = LineReader(limit: limits.lineBytes)
        try spool.forEachChunk { try reader.feed($0, take) }
        try reader.finish(take)
    }

    /// The local ids of the publications that notes name.
    func works(of notes: SpoolFile) throws -> Set<ByteName> {
        var named: Set<ByteName> = []
        try forEachRecord(in: notes) { note in
            if let id = Fields.string(Note.publication, in: try Fields.parse(note.fields)) {
                named.insert(ByteName(id))
            }
        }
        return named
    }

    /// Notes and conflicts that somebody chose come without some of their publications, which may have other ids here all
    /// the same.
    func noteIDsOfWorks(_ named: Set<ByteName>, in path: String, isLeftOut: (Record) -> Bool) throws {
        guard !named.isEmpty else { return }
        try forEachPublication(of: path) { record, _ in
            if named.contains(ByteName(record.idInLinks)), isLeftOut(record) { try intake.noteNewID(of: record) }
        }
    }

    /// The publications of a backup by their keys, as the store calls them.
    private func works(ofRecords path: String) throws -> [String: [String]] {
        var works: [String: [String]] = [:]
        try forEachPublication(of: path) { record, _ in
            guard !record.isDeleted, let key = CiteKeys.key(of: record) else { return }
            works[key, default: []].append(intake.newIDs[record.localID] ?? record.localID)
        }
        return works
    }

    /// `works`: the publications of the same source, by their keys.
    func takeNotes(
        path: String, name: String, time: Timestamp, works: [String: [String]]? = nil, origin: FileOrigin = .place,
        wanted: (Record) -> Bool = { _ in true }
    ) throws {
        let entries: [NotesFile.Entry]
        do {
            entries = try document(path).withUnsafeBytes { bytes in
                try NotesFile.read(bytes, time: time) { intake.reject(name, $0.message) }
            }
        } catch let error as BackupError where error.code == .damaged { return intake.reject(name, error.message) }
        let notes = NoteIntake(intake) { key in works.map { Array(Set($0[key] ?? [])) } }
        var count: [String: Int] = [:]
        for entry in entries where !entry.hasID { count[entry.note.localID, default: 0] += 1 }
        var ages = try FileAges(intake.store, of: path, origin, time)
        for entry in entries {
            let said = ages?.note(entry.note.localID, entry.note.fields)
            guard wanted(entry.note) else { continue }
            let isAmongSeveral = count[entry.note.localID, default: 0] > 1
            if let odd = entry.oddTimes.first {
                intake.note(
                    Finding(
                        .malformed, .warning, name,
                        "\(try label(of: entry.note)): '\(odd)' is no time; the time of the file was used",
                        remedy: "correct it in the file, and import it again"))
            }
            let note = said.map { entry.note.noNewer(than: $0.since) } ?? entry.note
            let outcome = try notes.take(note, hasID: entry.hasID, isAmongSeveral: isAmongSeveral)
            if said?.isKnown == false, case .protect(.newer)? = outcome?.decision, let id = outcome?.id,
                let known = try intake.store.record(id)?.record,
                // At equal times it is told that no time says which is right.
                (known.fieldTimes["note"] ?? known.modifiedAt) > note.modifiedAt
            {
                intake.noteOlder(try label(of: note), in: name)
            }
        }
        try ages?.remember()
    }

    private func label(of note: Record) throws -> String {
        "the note of \(Fields.string(Store.citeKeyField, in: try Fields.parse(note.fields)) ?? note.localID)"
    }
}
