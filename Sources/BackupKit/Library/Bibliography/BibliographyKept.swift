/// What a file says of publications that are kept on this device only goes to nobody else, also where the file has one under
/// another key or with a correction. What is left out is named, once for each difference.
extension BibliographyIntake {
    private enum Likeness { case same, corrected, lookalike }

    private typealias Like = (kept: KeptPublications.Kept, likeness: Likeness)

    /// Whether the entry that the pen has written may be one of these.
    func mayBeKeptHere(_ state: FileState) throws -> Bool {
        guard !kept.isEmpty, state.realPath != nil, intake.policy == .honor else { return false }
        return try !likes(of: WorkIdentity(Fields.parse(pen.written)), state).isEmpty
    }

    private func likes(of entry: WorkIdentity, _ state: FileState) -> [Like] {
        kept.candidates(for: entry).compactMap { kept in
            if kept.work.verdict(entry) == .same { return (kept, .same) }
            let said = work(kept.fields, of: kept.localID, underKey: entry.key, state)
            if said.key == entry.key, said.isCorrected(to: entry) { return (kept, .corrected) }
            let isOwn = hasBrought(kept.localID, state)
            return isOwn && kept.work.mayBeCorrected(to: entry) ? (kept, .lookalike) : nil
        }
    }

    /// A publication as the work that the file knows it as: under a key of the file, where it has got another one since.
    func work(_ fields: [Field], of localID: String, underKey key: String, _ state: FileState) -> WorkIdentity {
        let own = Fields.string(Publication.citeKey, in: fields) ?? ""
        guard !sameBytes(own, key), !hasBrought(key: own, of: localID, state), hasBrought(key: key, of: localID, state)
        else { return WorkIdentity(fields) }
        return WorkIdentity(
            fields.map { $0.name == Publication.citeKey ? Field(Publication.citeKey, .string(key)) : $0 })
    }

    /// Whether an earlier import of the file said that the publication has that key.
    func hasBrought(key: String, of localID: String, _ state: FileState) -> Bool {
        let field = Field(Publication.citeKey, .string(key))
        return !key.isEmpty && state.broughtBefore.contains(memory(of: localID).everBrought(field))
    }

    /// Takes the entries that waited. Those that the store has come first: what they are, no other entry is.
    func takeWaiting(_ state: inout FileState, _ wanted: Wanted?) throws {
        guard !state.waiting.isEmpty else { return }
        try flush()
        let waiting = state.waiting
        state.waiting = []
        let new = try takeKnown(waiting, &state, wanted)
        let likes = try new.map { entry in
            write(entry, &state)
            return try self.likes(of: WorkIdentity(Fields.parse(pen.written)), state)
        }
        let owners = owners(likes, state)
        for (place, entry) in new.enumerated() {
            write(entry, &state)
            try sparing(&state) { state in
                if let kept = owners[place] { return try take(entry, as: kept, &state) }
                try take(entry, besides: likes[place], &state, wanted)
            }
        }
    }

    func write(_ entry: EntryWaiting, _ state: inout FileState) {
        (state.key, state.wishes) = (entry.key, entry.wishes)
        entry.raw.withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                if block.kind == .entry { write(block, links: entry.links, entry.macros) }
            }
        }
    }

    /// Which publication that the file does not hold by itself any more each entry is, as a mirror would find it for one that
    /// everybody has: the same work, or the only correction under its key.
    private func owners(_ likes: [[Like]], _ state: FileState) -> [Int: KeptPublications.Kept] {
        var owners: [Int: KeptPublications.Kept] = [:]
        var lost: [String: KeptPublications.Kept] = [:]
        for (kept, _) in likes.joined() where hasBrought(kept.localID, state) && !isHeld(kept, state) {
            lost[kept.localID] = kept
        }
        func places(of kept: KeptPublications.Kept, _ likeness: Likeness) -> [Int] {
            likes.indices.filter { place in
                owners[place] == nil
                    && likes[place].contains { $0.kept.localID == kept.localID && $0.likeness == likeness }
            }
        }
        for (localID, kept) in lost.sorted(by: { precedesBytewise($0.key, $1.key) }) {
            guard let place = places(of: kept, .same).first else { continue }
            owners[place] = kept
            lost[localID] = nil
        }
        let corrections = lost.mapValues { places(of: $0, .corrected) }
        for (localID, places) in corrections {
            guard places.count == 1, corrections.values.count(where: { $0.contains(places[0]) }) == 1 else { continue }
            owners[places[0]] = lost[localID]
        }
        return owners
    }

    /// Whether an entry of the file was that publication already.
    private func isHeld(_ kept: KeptPublications.Kept, _ state: FileState) -> Bool {
        known[kept.work.key]?.contains { $0.localID == kept.localID && $0.file == state.number } ?? false
    }

    /// The entry is that publication with a correction, which is left out as any other new value is.
    private func take(_ entry: EntryWaiting, as kept: KeptPublications.Kept, _ state: inout FileState) throws {
        let incoming = try Fields.parse(pen.written)
        if let index = known[kept.work.key]?.firstIndex(where: { $0.localID == kept.localID }) {
            known[kept.work.key]?[index].file = state.number
        }
        // Whoever deletes the publication deletes what the file says, too.
        try store.noteListing(WorkID(bibTeX(incoming), hasher).listing, of: kept.record.id)
        if mirrors { state.held[kept.localID] = incoming }
        intake.result.read += 1
        intake.result.protected += 1
        intake.plan(.protect, kept.record, id: kept.record.id, reason: Protection.localOnly.rawValue)
        try noteLeftHere(kept.record, kept.fields, incoming, isCorrected: true, &state)
        // Of a publication that is shared again the next import takes the key.
        noteBrought(to: kept.localID, besides: Publication.citeKey, &state)
    }

    /// The entry is another publication, as far as anybody can tell.
    private func take(
        _ entry: EntryWaiting, besides likes: [Like], _ state: inout FileState, _ wanted: Wanted?
    ) throws {
        let before = (new: intake.result.added + intake.result.broughtBack, arrived: state.arrived)
        _ = try takeSlow(entry, &state, wanted)
        guard intake.result.added + intake.result.broughtBack > before.new,
            let localID = state.arrived.subtracting(before.arrived).first, let record = try live(localID),
            let like = likes.first(where: { $0.likeness == .same || !isHeld($0.kept, state) })
        else { return }
        intake.note(
            Finding(
                .willNotSync, .warning, RecordLabel.text(of: record),
                "was added for every device, and \(like.likeness == .same ? "is" : "may be") the work of "
                    + "'\(like.kept.work.key)', which is kept on this device only",
                remedy: "\(TypedCommand.quoted("store set-local", [record.id.description])) keeps this one here, too; "
                    + "do that before the next sync"))
    }

    // MARK: What stays

    /// Whether a publication stays that the file has lost, and nobody has been told: in the import in which it loses that, or
    /// in the first one that looks.
    func isToldFirst(_ localID: String, _ state: inout FileState) -> Bool {
        let mark = store.hasher.text("stays", after: memory(of: localID).everBrought) & ~1
        state.brought.append(mark)
        return hasHeld(localID, state) || !state.broughtBefore.contains(mark)
    }

    /// Names a publication that the file has lost and that is kept on this device only. `other` is one for every device that
    /// may be the same work.
    func noteKeptHere(_ record: Record, _ other: Record?, key: String) {
        guard let other else {
            return noteStays(record, .skipped, "is not in the file any more, but is kept on this device only")
        }
        let ids = [other, record].map(\.id.description)
        intake.note(
            Finding(
                .skipped, .warning, RecordLabel.text(of: record),
                "is not in the file any more, but is kept on this device only; it stays. '\(key)', which may be the same "
                    + "work, is on every device",
                remedy: "\(TypedCommand.quoted("store set-local", [ids[0]])) keeps that one here, too; "
                    + "then \(TypedCommand.quoted("store delete", [ids[1]])) removes this one"))
    }

    // MARK: What is left out

    /// Notes values of the entry at hand that were left out, because its publication is kept on this device only. Who mirrors or
    /// overwrites asks for all of them, else what the file says for the first time counts.
    func noteLeftHere(
        _ record: Record, _ stored: [Field], _ incoming: [Field], isCorrected: Bool = false, _ state: inout FileState
    ) throws {
        guard state.realPath != nil, intake.policy == .honor else { return }
        let memory = memory(of: record.localID)
        let asksForAll = mirrors || intake.isEdit
        var isNews = false
        let found = try differing(stored, incoming) + labels(stored, incoming, withKey: isCorrected)
        for (own, said) in found + keywords(stored, incoming, memory, state) {
            if let said, !asksForAll {
                if state.saidBefore[memory.everBrought(said)] != nil { continue }
                let time = own.map { record.fieldTimes[$0.name] ?? record.modifiedAt }
                if state.saidBefore.isEmpty, let time, state.time <= time { continue }
            }
            if said == nil, let own {
                guard mirrors, state.broughtBefore.contains(memory.everBrought(own)) else { continue }
            }
            let mark = difference(record.localID, own, said)
            let isFirst = try isNew(mark, &state)
            // Who asks for the values of the file is told even so, once.
            let isAnswer = try intake.isEdit && isNew(store.hasher.text("asked", after: mark) & ~1, &state)
            if isAnswer || isFirst { isNews = true }
        }
        guard isNews else { return }
        let key = Fields.string(Publication.citeKey, in: stored) ?? ""
        state.leftHere.append((sameBytes(key, state.key) ? "'\(key)'" : "'\(state.key)' ('\(key)' here)", record.id))
    }

    /// The type, and the key where the file has corrected that.
    private func labels(
        _ stored: [Field], _ incoming: [Field], withKey: Bool
    ) throws -> [(own: Field?, said: Field?)] {
        try ([Publication.entryType] + (withKey ? [Publication.citeKey] : [])).compactMap { name in
            guard let own = stored.first(where: { $0.name == name }),
                let said = incoming.first(where: { $0.name == name }),
                try !Fields.same(own.value, said.value)
            else { return nil }
            return (own, said)
        }
    }

    /// The keywords, where the file has one that the store has not, or has dropped one that it had.
    private func keywords(
        _ stored: [Field], _ incoming: [Field], _ memory: Brought.Record, _ state: FileState
    ) -> [(own: Field?, said: Field?)] {
        let (mine, theirs) = (words(of: stored), words(of: incoming))
        let isAdded = theirs.contains { word in !mine.contains { sameBytes($0, word) } }
        let isDropped = mine.contains { word in
            !theirs.contains { sameBytes($0, word) } && state.broughtBefore.contains(memory.keyword(word).everBrought)
        }
        guard isAdded || mirrors && isDropped else { return [] }
        func field(_ fields: [Field]) -> Field? { fields.first { $0.name == Keywords.field } }
        return [(field(stored), field(incoming))]
    }

    func reportLeftHere(_ state: FileState) {
        guard let first = state.leftHere.first else { return }
        let more = state.leftHere.count - 1
        let names = more == 0 ? first.name : "\(first.name) and \(more) more \(more == 1 ? "entry" : "entries")"
        let ids = state.leftHere.map(\.id.description)
        let command = TypedCommand.quoted("import\(mirrors ? " --mirror" : "") --overwrite", [state.path])
        intake.note(
            Finding(
                .protected, .warning, state.path,
                "new values of \(names) were left out: "
                    + "\(more == 0 ? "the publication is" : "these publications are") kept on this device only",
                remedy: "\(TypedCommand.quoted("store enable-cloud", ids)) shares \(more == 0 ? "it" : "them") again; "
                    + "then \(command) takes them"))
    }
}
