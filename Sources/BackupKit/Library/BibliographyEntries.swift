/// The entries of a file: which publication each is.
extension BibliographyIntake {
    func takeEntry(_ block: BibBlock, _ state: inout FileState, _ wanted: Wanted?) throws {
        let key = block.key
        state.items.append("key:" + key)
        if state.isKnown { state.keys[key, default: 0] += 1 }
        let text = store.hasher.text(block.raw)
        pen.clear()
        Publication.write(block, with: &pen) { block.value(of: block.fields[$0], macros: state.macros) }
        if lane != nil, pen.written.count > CloudLimits.recordBytes { intake.noteOversize(key) }
        if let lane, !key.isEmpty, known[key] == nil, localIDs.isEmpty, state.links.isEmpty {
            // Neither the key nor the id that belongs to it can be known.
            let id = DeterministicID.make(hasher, RecordType.publication, key)
            known[key] = [Candidate(localID: id, text: text, file: state.number)]
            return try lane.add(sort: 0, createdAt: state.time, modifiedAt: state.time) {
                $0 += id.utf8
            } fields: {
                $0 += pen.written
            }
        }
        if !state.links.isEmpty {
            let links = JSON.array(state.links.map { .string($0) })
            let all = try Fields.parse(pen.written) + [Field(Publication.linkedFiles, links)]
            pen.clear()
            pen.write(json: Fields.text(all))
            state.links = []
        }
        guard lane == nil else { return try takeFast(key, text, &state) }
        try takeSlow(key, &state, wanted)
    }

    /// What is neither of a known key nor of a known text is new, and goes into a batch.
    private func takeFast(_ key: String, _ text: UInt64, _ state: inout FileState) throws {
        func add(_ id: String) throws {
            known[key, default: []].append(Candidate(localID: id, text: text, file: state.number))
            try lane?.add(sort: 0, createdAt: state.time, modifiedAt: state.time) {
                $0 += id.utf8
            } fields: {
                $0 += pen.written
            }
        }
        guard let candidates = known[key], !key.isEmpty else {
            let id = DeterministicID.make(hasher, RecordType.publication, key)
            if key.isEmpty || localIDs.contains(id) { return try takeSlow(key, &state, nil) }
            return try add(id)
        }
        // Somebody may have renamed the twin that the store had. One that another entry of this file is, this is not.
        let file = state.number
        if state.isKnown || !localIDs.isEmpty || candidates.contains(where: { $0.text == text && $0.file != file }) {
            return try takeSlow(key, &state, nil)
        }
        let id = twinID(key, pen.written, &state)
        if let first = candidates.first { conflicts.append((key, first.localID, id)) }
        try add(id)
    }

    /// A hash of the entry's text that a record holds.
    func text(of fields: [Field]) -> UInt64 {
        if let raw = Fields.string(Publication.raw, in: fields) { return store.hasher.text(raw) }
        let bytes = Fields.string(Publication.rawBase64, in: fields).flatMap(BibBase64.decode) ?? []
        return bytes.withUnsafeBytes { store.hasher.text($0) }
    }

    private func takeSlow(_ key: String, _ state: inout FileState, _ wanted: Wanted?) throws {
        let record = Record(
            id: RecordID(zone: RecordType.libraryZone, name: ""), type: RecordType.publication, localID: "",
            fields: String(decoding: pen.written, as: UTF8.self), createdAt: state.time, modifiedAt: state.time)
        guard wanted?(record) != false else { return }
        try flush()
        let incoming = try Fields.parse(record.fields)
        if known[key] == nil, !key.isEmpty {
            let usual = DeterministicID.make(hasher, RecordType.publication, key)
            // A publication of that id and another key was renamed since; it is no other entry's to become.
            if !localIDs.contains(usual) {
                return try takeNew(record.identified(as: usual), incoming, key: key, &state)
            }
        }
        if let match = try match(key, incoming, state) {
            known[key]?[match.index].file = state.number
            try intake.take(carryLinks(from: match.fields, to: record, incoming).identified(as: match.localID))
        } else {
            try takeTwin(record, incoming, key: key, &state)
        }
    }

    private func takeNew(_ record: Record, _ incoming: [Field], key: String, _ state: inout FileState) throws {
        let outcome = try intake.take(record)
        if case .protect = outcome.decision { return }
        let text = text(of: incoming)
        known[key, default: []].append(Candidate(localID: record.localID, text: text, file: state.number))
    }

    /// Another work under a known key, or an entry without a key: its id is made from its text.
    private func takeTwin(_ record: Record, _ incoming: [Field], key: String, _ state: inout FileState) throws {
        var text = Fields.text(bibTeX(incoming))
        let id = text.withUTF8 { twinID(key, UnsafeRawBufferPointer($0), &state) }
        for known in [DeterministicID.make(hasher, RecordType.publication, key), id]
        where try isRenamed(known, incoming, state) {
            state.renamed.insert(known)
            return intake.passKnown()
        }
        let outcome = try intake.take(record.identified(as: id))
        guard case .add = outcome.decision else { return }
        let first = known[key]?.first
        known[key, default: []].append(
            Candidate(localID: id, text: self.text(of: incoming), file: state.number))
        if let first, !key.isEmpty {
            try intake.conflict(kind: "publication", subject: key, existing: first.localID, incoming: id)
        }
    }

    private func twinID(_ key: String, _ fields: UnsafeRawBufferPointer, _ state: inout FileState) -> String {
        hasher.update(fields)
        let text = hasher.finish().hex
        state.texts[text, default: 0] += 1
        return Publication.twinID(key: key, textDigest: text, number: state.texts[text] ?? 1)
    }

    /// The store's publication that an entry is: the same text, else, for the first entry of that key in its file, the
    /// same work. One that another entry of the file was already is nobody else's.
    private func match(
        _ key: String, _ incoming: [Field], _ state: FileState
    ) throws -> (index: Int, localID: String, fields: [Field])? {
        guard let candidates = known[key] else { return nil }
        let mine = bibTeX(incoming)
        var work: (index: Int, localID: String, fields: [Field])?
        for (index, candidate) in candidates.enumerated() where candidate.file != state.number {
            guard
                let existing = try store.records(localID: candidate.localID)
                    .first(where: { $0.record.type == RecordType.publication && !$0.record.isDeleted })
            else { continue }
            let fields = try Fields.parse(existing.record.fields)
            if bibTeX(fields) == mine { return (index, candidate.localID, fields) }
            if work == nil, state.isKnown, !key.isEmpty, state.keys[key] == 1, Publication.isSameWork(fields, incoming)
            {
                work = (index, candidate.localID, fields)
            }
        }
        return work
    }

    /// Whether a publication is an entry that has got another key since: nobody's file takes the new key back.
    private func isRenamed(_ localID: String, _ incoming: [Field], _ state: FileState) throws -> Bool {
        guard localIDs.contains(localID), !state.renamed.contains(localID) else { return false }
        let known = try store.records(localID: localID)
            .first { $0.record.type == RecordType.publication && !$0.record.isDeleted }
        guard let known else { return false }
        let fields = try Fields.parse(known.record.fields)
        let key = Fields.string(Publication.citeKey, in: fields)
        return key != Fields.string(Publication.citeKey, in: incoming)
            && Publication.withoutKey(fields) == Publication.withoutKey(incoming)
    }

    func bibTeX(_ fields: [Field]) -> [Field] { fields.filter { $0.name != Publication.linkedFiles } }

    /// A `.bib` file does not know which files the store has linked; its silence removes none.
    private func carryLinks(from existing: [Field], to record: Record, _ incoming: [Field]) -> Record {
        guard let links = existing.first(where: { $0.name == Publication.linkedFiles }),
            !incoming.contains(where: { $0.name == Publication.linkedFiles })
        else { return record }
        var record = record
        record.fields = Fields.text(incoming + [links])
        return record
    }
}
