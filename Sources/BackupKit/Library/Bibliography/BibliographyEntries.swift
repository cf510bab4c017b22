/// The entries of a file: which publication each is.
extension BibliographyIntake {
    func takeEntry(_ block: BibBlock, _ state: inout FileState, _ wanted: Wanted?) throws {
        let key = block.key
        state.items.append(BibliographyPart.keyItem + key)
        state.key = key
        let text = store.hasher.text(block.raw)
        state.entries[text, default: 0] += 1
        let links = placesInStore(of: state.links, state)
        write(block, links: links, state.macros)
        state.links = []
        func entry() -> EntryWaiting {
            EntryWaiting(
                raw: Array(block.raw), key: key, text: text, number: state.entries[text] ?? 1, links: links,
                wishes: state.wishes, macros: state.macros)
        }
        if try mayBeKeptHere(state) { return state.waiting.append(entry()) }
        if lane != nil, pen.written.count > CloudLimits.recordBytes { intake.noteOversize(key) }
        // Neither the key nor the work can be known.
        if let lane, !key.isEmpty, known[key] == nil, try deletedWork(&state) == nil, let id = try newID() {
            return try add(id, key, text, to: lane, &state)
        }
        let slow = entry()
        if try !takeSlow(slow, within: 0, &state, wanted) { state.waiting.append(slow) }
    }

    /// Writes an entry with the pen.
    func write(_ block: BibBlock, links: [String], _ macros: BibMacros) {
        pen.clear()
        Publication.write(block, links: links, with: &pen) { block.value(of: block.fields[$0], macros: macros) }
    }

    /// What our own comments before an entry link. A file of a backup may have another name in the store; one that lies
    /// beside the `.bib` file is linked when it has its place.
    private func placesInStore(of links: [String], _ state: FileState) -> [String] {
        links.filter { namedFiles?.isBeside(state.path, $0) != true }.map { intake.moved[ByteName($0)] ?? $0 }
    }

    /// Adds the entry that the pen has written as a publication that nobody can know.
    private func add(_ id: String, _ key: String, _ text: UInt64, to lane: IntakeLane, _ state: inout FileState) throws
    {
        used.insert(store.hasher.key(id))
        noteBrought(to: id, &state)
        noteKey(key, Candidate(localID: id, text: text, file: state.number))
        try lane.add(sort: 0, createdAt: state.time, modifiedAt: state.time) {
            $0 += id.utf8
        } fields: {
            $0 += pen.written
        }
    }

    /// The id of the entry that the pen has written, where no publication can be the same work; else nil.
    private func newID() throws -> String? {
        if wasEmpty {
            // Whoever has another id of the work came after one with the first.
            let id = try WorkID.first(pen, hasher) ?? WorkID(Fields.parse(pen.written), hasher).first
            return isFree(id) ? id : nil
        }
        let work = WorkID(try Fields.parse(pen.written), hasher)
        return work.made.allSatisfy(isFree) ? work.first : nil
    }

    /// Whether no publication has, or had, that id.
    func isFree(_ id: String) -> Bool { !used.contains(store.hasher.key(id)) }

    /// Two keys that differ only in case have to be looked at, too.
    private func noteKey(_ key: String, _ candidate: Candidate) {
        if known[key] != nil || !folded.insert(store.hasher.text(key.lowercased())).inserted {
            intake.citeKeys.insert(key)
        }
        known[key, default: []].append(candidate)
    }

    /// A hash of the entry's text that a record holds.
    func text(of fields: [Field]) -> UInt64 {
        if let raw = Fields.string(Publication.raw, in: fields) { return store.hasher.text(raw) }
        let bytes = Fields.string(Publication.rawBase64, in: fields).flatMap(BibBase64.decode) ?? []
        return bytes.withUnsafeBytes { store.hasher.text($0) }
    }

    /// Takes the entry that the pen has written. Returns false, and takes nothing, where its publication may be another entry of
    /// its key in the file: it says more than `limit` values that were never said of that publication.
    func takeSlow(
        _ entry: EntryWaiting, within limit: Int = .max, _ state: inout FileState, _ wanted: Wanted?
    ) throws -> Bool {
        let key = entry.key
        let record = writtenRecord(state)
        guard wanted?(record) != false else {
            state.hasUnwanted = true
            return true
        }
        let incoming = try Fields.parse(record.fields)
        let work = WorkID(bibTeX(incoming), hasher)
        let near = try publication(key, incoming, work, record, &state)
        if let near, near.distance > limit, try standsTwice(key, &state) { return false }
        if let near {
            try take(record, incoming, work, of: key, as: near.match, &state)
        } else {
            try takeNew(entry, record, incoming, work, &state)
        }
        noteTwins(key, &state)
        return true
    }

    /// Takes the entry that the pen has written as that publication.
    private func take(
        _ record: Record, _ incoming: [Field], _ work: WorkID, of key: String, as match: Match,
        _ state: inout FileState
    ) throws {
        known[match.key]?[match.index].file = state.number
        // The file has another key: whoever deletes the publication deletes what such a file says, too.
        if match.key != key { try store.noteListing(work.listing, of: match.record.id) }
        if match.key != key, Publication.withoutKey(match.fields) == Publication.withoutKey(incoming) {
            state.renamed.insert(match.localID)
            noteBrought(to: match.localID, &state)
            if intake.overwrite { intake.touched.insert(match.record.id) }
            return intake.passKnown()
        }
        if mirrors { state.held[match.localID] = incoming }
        let version = dated(carryLinks(from: match.fields, to: record, incoming), over: match.record, state)
        try flush()
        store.joinsKeywords = !intake.isEdit && mayLackKeywords(match, incoming, state)
        store.removableKeywords = try removableKeywords(match, incoming, work, &state)
        defer { (store.joinsKeywords, store.removableKeywords) = (false, nil) }
        try take(version, of: key, as: match, incoming, &state)
    }

    /// Takes the entry that the pen has written as one that no living publication is.
    private func takeNew(
        _ entry: EntryWaiting, _ record: Record, _ incoming: [Field], _ work: WorkID, _ state: inout FileState
    ) throws {
        let (key, text, number) = (entry.key, entry.text, entry.number)
        let deleted = try deletedWork(&state)
        guard let id = try deleted ?? (number > 1 ? work.twin(number) : id(of: work, record, incoming, &state)) else {
            return intake.passKnown()
        }
        // Where there was no publication, what has a new id is new.
        if wasEmpty, let lane, isFree(id) { return try add(id, key, text, to: lane, &state) }
        try flush()
        // It is none of those with its key, or it would not be new.
        store.otherEntries = Set(known[key, default: []].map(\.localID))
        defer { store.otherEntries = [] }
        let version = try movedHere(dated(record, as: id, state).identified(as: id), state)
        let outcome = try intake.take(version, keepsID: deleted != nil && timeOfText(of: id, state) != nil)
        noteBrought(to: outcome.localID, &state)
        if mirrors { state.held[outcome.localID] = incoming }
        if case .protect(let reason) = outcome.decision {
            let wasHeld = (work.made + [outcome.localID]).contains { hasHeld($0, state) }
            if reason == .newerTombstone, state.realPath != nil, !wasHeld {
                state.leftOut[reason, default: []].append(key)
            }
            return try noteStillHeld(work, incoming, besides: outcome.localID, &state)
        }
        state.arrived.insert(outcome.localID)
        used.insert(store.hasher.key(outcome.localID))
        noteKey(key, Candidate(localID: outcome.localID, text: text, file: state.number))
    }

    /// Takes a version of a publication that the store has.
    private func take(
        _ version: Record, of key: String, as match: Match, _ incoming: [Field], _ state: inout FileState
    ) throws {
        let differences = try differences(of: match, incoming, &state)
        intake.reported = Set(differences.map(\.field.name))
        defer { intake.reported = [] }
        if mirrors { noteNamedFiles(by: match.localID, match.fields, &state) }
        // A page or volume that was corrected would be another work's, were this not the same entry of the same file.
        let outcome = try intake.take(version.identified(as: match.localID), keepsID: true)
        switch outcome.decision {
        case .update(let merged, _):
            let stored = try Fields.parse(merged.fields)
            try noteDifferences(differences, key, stored: stored, &state)
            noteNews(of: key, match, .newer, besides: try names(of: incoming, in: stored), &state)
        case .protect(.localOnly): break
        case .protect(let reason):
            try noteDifferences(differences, key, stored: match.fields, &state)
            noteNews(of: key, match, reason, besides: keywordsTaken(match, incoming), &state)
        case .add, .unchanged: break
        }
        if match.record.isLocalOnly { try noteLeftHere(match.record, match.fields, incoming, &state) }
        noteBrought(to: outcome.localID, known: match, &state)
    }

    /// Notes that values are left out which the file says for the first time, but for those that are reported by themselves.
    private func noteNews(
        of key: String, _ match: Match, _ reason: Protection, besides taken: Set<String>, _ state: inout FileState
    ) {
        guard !intake.isEdit, !state.saidBefore.isEmpty,
            !hasSaidAll(of: match.localID, besides: intake.reported.union(taken), state)
        else { return }
        state.leftOut[reason, default: []].append(key)
    }

    /// The names of the fields whose values a publication has, or has joined with its own.
    private func names(of incoming: [Field], in stored: [Field]) throws -> Set<String> {
        let values = Fields.values(stored)
        let same = try incoming.filter { field in
            try MergePolicy.setFields.contains(field.name)
                || values[ByteName(field.name)].map { try Fields.same($0, field.value) } ?? false
        }
        return Set(same.map(\.name))
    }

    /// Reports new entries and new values of the file that the store did not take. They are reported once: the next import
    /// knows them.
    func noteLeftOut(_ state: FileState) {
        for (reason, keys) in state.leftOut.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            let isOne = keys.count == 1
            let what = Self.list(keys)
            let message =
                reason == .newerTombstone
                ? "\(what) \(isOne ? "was" : "were") deleted in this store after the file was changed, "
                    + "and \(isOne ? "stays" : "stay") deleted"
                : "new values of \(what) were left out: the publication \(reason.rawValue)"
            let command = TypedCommand.quoted("import --overwrite", [state.path])
            intake.note(
                Finding(
                    .protected, .warning, state.path, message,
                    remedy: "\(command) takes \(isOne ? "it" : "them") all the same"))
        }
        notePartsLeftOut(state)
    }

    func notePartsLeftOut(_ state: FileState) {
        guard state.partsLeftOut > 0 else { return }
        let count = state.partsLeftOut
        let what = count == 1 ? "a new macro, group or comment was" : "\(count) new macros, groups or comments were"
        intake.note(
            Finding(
                .protected, .warning, state.path, "\(what) left out: the store has newer ones",
                remedy: "\(TypedCommand.quoted("import --overwrite", [state.path])) takes what the file says"))
    }

    /// Whether the stored keywords may hold some that came from elsewhere: this file has not brought the stored value, and
    /// its own value is new.
    private func mayLackKeywords(_ match: Match, _ incoming: [Field], _ state: FileState) -> Bool {
        guard state.realPath != nil, !state.isExport,
            let stored = match.fields.first(where: { $0.name == Keywords.field }),
            let said = incoming.first(where: { $0.name == Keywords.field })
        else { return false }
        let memory = memory(of: match.localID)
        return state.saidBefore[memory.everBrought(said)] == nil
            && !state.broughtBefore.contains(memory.everBrought(stored))
    }

    struct Match {
        /// The key that the publication has, and its place among those of that key.
        let key: String
        let index: Int
        let record: Record
        let fields: [Field]
        var localID: String { record.localID }
    }

    /// The store's publication of that key that an entry is: the same text, else the same work, and of several the one
    /// that says most of what the entry says. One that another entry of the file was already is nobody else's.
    func match(
        _ key: String, _ incoming: [Field], _ work: WorkID, _ state: FileState
    ) throws -> Match? {
        guard let candidates = known[key] else { return nil }
        let mine = bibTeX(incoming)
        var found: Match?
        var most = -1
        let mayBeEdited = state.isAtItsPlace && candidates.count == 1
        for (index, candidate) in candidates.enumerated() where candidate.file != state.number {
            guard let existing = try live(candidate.localID) else { continue }
            let fields = try Fields.parse(existing.fields)
            if bibTeX(fields) == mine { return Match(key: key, index: index, record: existing, fields: fields) }
            let known = WorkIdentity(fields)
            let isSame =
                try known.verdict(work.identity) == .same
                || mayBeEdited && known.isEdited(to: work.identity)
                    && isOwn(candidate.localID, work, state)
            guard !key.isEmpty, isSame else { continue }
            let equal = fields.count { mine.contains($0) }
            if equal > most { (found, most) = (Match(key: key, index: index, record: existing, fields: fields), equal) }
        }
        return found
    }

    /// Whether this file held that publication when it was imported last, and no other publication of the store is the
    /// entry's work. A publication of another work may have the same key and title.
    func isOwn(_ localID: String, _ work: WorkID, _ state: FileState) throws -> Bool {
        guard hasHeld(localID, state) else { return false }
        return try !work.all.contains { id in
            guard !sameBytes(id, localID), let other = try live(id) else { return false }
            return try WorkIdentity(Fields.parse(other.fields)).verdict(work.identity) == .same
        }
    }

    func live(_ localID: String) throws -> Record? {
        isFree(localID) ? nil : try records(localID).first { $0.type == RecordType.publication && !$0.isDeleted }
    }

    /// All records of that local id, also one that is on its way into the store.
    func records(_ localID: String) throws -> [Record] {
        if let record = lane?.waiting(localID) { return [record] }
        try lane?.settle()
        return try store.soundRecords(localID: localID).map(\.record)
    }

    /// The id of an entry that is none of the publications with its key; nil where it is one that has another key by now.
    private func id(
        of work: WorkID, _ record: Record, _ incoming: [Field], _ state: inout FileState
    ) throws -> String? {
        let twin = work.twin()
        let others = (work.listings + [work.legacy, twin]).filter { !isFree($0) }
        var holders: [String: [Field]] = [:]
        for id in work.all + others {
            guard let holder = try live(id) else { continue }
            let fields = try Fields.parse(holder.fields)
            if try isRenamed(holder, fields, work, twin: twin, incoming, state) {
                state.renamed.insert(id)
                noteBrought(to: id, &state)
                if intake.overwrite { intake.touched.insert(holder.id) }
                return nil
            }
            holders[id] = fields
        }
        // What was deleted since stays so, whichever of its ids it had.
        for id in others {
            let isDead = try deleted(id).contains { dead in
                try dead.modifiedAt >= dated(record, as: id, state).modifiedAt
                    && !work.ranked.contains(where: dead.idsBeside.contains)
            }
            if isDead { return id }
        }
        for id in work.ranked {
            guard let holder = holders[id] else { return id }
            let identity = WorkIdentity(holder)
            guard identity.verdict(work.identity) == .same else { continue }
            // One work under two keys is two publications; a second entry of one key is one more by its text.
            if identity.key != work.identity.key, try live(work.listing) == nil { return work.listing }
            break
        }
        return twin
    }

    /// Whether a publication is an entry that has got another key since: nobody's file takes the new key back.
    private func isRenamed(
        _ known: Record, _ fields: [Field], _ work: WorkID, twin: String, _ incoming: [Field], _ state: FileState
    ) throws -> Bool {
        guard !state.renamed.contains(known.localID),
            Fields.string(Publication.citeKey, in: fields) != work.identity.key,
            Publication.withoutKey(fields) == Publication.withoutKey(incoming)
        else { return false }
        // Its id was made of the old key, its key is newer than the rest of it, or a decision has buried the old text.
        if known.localID == work.legacy || known.localID == twin || known.wasRenamed(from: work.identity.key)
            || known.isKeyNewest(among: fields) && !known.isKeyDecided
        {
            return true
        }
        return try records(twin).contains { $0.isDeleted }
    }

    func bibTeX(_ fields: [Field]) -> [Field] { fields.filter { $0.name != Publication.linkedFiles } }

    /// A `.bib` file does not know which files the store has linked; its silence removes none but those that a restore has
    /// taken away.
    private func carryLinks(from existing: [Field], to record: Record, _ incoming: [Field]) -> Record {
        if incoming.contains(where: { $0.name == Publication.linkedFiles }) { return record }
        let links = Fields.strings(Publication.linkedFiles, in: existing)
            .filter { !intake.replacing.filesRemoved.contains(ByteName($0)) }
        if links.isEmpty { return record }
        var record = record
        record.fields = Fields.text(incoming + [Field(Publication.linkedFiles, .array(links.map { .string($0) }))])
        return record
    }
}

extension Record {
    /// Whether its cite key was set after all that the entry says.
    fileprivate func isKeyNewest(among fields: [Field]) -> Bool {
        let key = fieldTimes[Publication.citeKey] ?? modifiedAt
        let others = fields.filter { Publication.isBibTeXField($0.name) }
        return !others.isEmpty && others.allSatisfy { fieldTimes[$0.name] ?? modifiedAt < key }
    }
}
