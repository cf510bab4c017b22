/// An entry that a mirrored file does not hold any more may be there with a correction: under another key, or as another work by
/// its title or identifier. What pointed at its publication goes over to the one that it is now.
final class BibliographyFollowers {
    /// A publication that stays.
    struct Follower {
        let record: Record
        let work: WorkIdentity
        /// Whether the file holds it, and whether it did so at its last import.
        let isHeld: Bool
        let wasHeld: Bool
        /// Whether the file has held it beside another entry of its key.
        let hadTwin: Bool
    }

    /// A publication that the file does not hold any more.
    struct Gone {
        let stored: Store.StoredRecord
        let work: WorkIdentity
        /// Whether the file held it at its last import.
        let wasHeld: Bool
        /// Whether the file has held it beside another entry of its key.
        let hadTwin: Bool
    }

    private let store: Store
    private var byMark: [String: [Follower]] = [:]
    private var byKey: [String: [Follower]] = [:]
    private var byPerson: [String: [Follower]] = [:]
    private var goneByKey: [String: [Gone]] = [:]
    private var notes: [String: [Store.StoredRecord]]?

    init(_ store: Store) { self.store = store }

    func add(_ follower: Follower) {
        for mark in follower.work.marks { byMark[mark, default: []].append(follower) }
        guard follower.isHeld else { return }
        byKey[follower.work.key, default: []].append(follower)
        if let first = Self.firstPerson(follower.work) { byPerson[first, default: []].append(follower) }
    }

    func add(_ gone: Gone) { goneByKey[gone.work.key, default: []].append(gone) }

    /// The publication that an entry is now; nil where it is gone, or where that is not certain.
    func follower(of gone: Gone) throws -> Follower? {
        let same = gone.work.marks.flatMap { byMark[$0] ?? [] }.filter {
            gone.work.verdict($0.work) == .same && !areBeside(gone, $0)
        }
        if let best = same.max(by: { precedes($0, $1, gone) }) { return best }
        let found = corrections(of: gone)
        guard found.count == 1, let next = found.first, try !isOtherByFiles(next, gone) else { return nil }
        let rivals = (goneByKey[gone.work.key] ?? []).filter { $0.stored.record.id != gone.stored.record.id }
        let isClaimedTwice = rivals.contains { corrections(of: $0).contains { $0.record.id == next.record.id } }
        return isClaimedTwice || hasRival(next, for: gone) ? nil : next
    }

    /// Whether the file has held both beside each other, and nothing but a guess says that they are one work: they are two
    /// entries, and what somebody wrote into one belongs to no other.
    private func areBeside(_ gone: Gone, _ follower: Follower) -> Bool {
        guard gone.wasHeld, follower.wasHeld else { return false }
        let (mine, other) = (gone.work, follower.work)
        return mine.key == other.key || mine.place != other.place || mine.volume != other.volume
            || mine.identifierCount != other.identifierCount
    }

    /// Whether a file of the entry that is gone belongs to another entry of its key, and none of them to this one.
    private func isOtherByFiles(_ follower: Follower, _ gone: Gone) throws -> Bool {
        let files = Set(try Store.links(of: gone.stored.record).map(ByteName.init))
        func hasOne(_ other: Follower) throws -> Bool {
            try Store.links(of: other.record).contains { files.contains(ByteName($0)) }
        }
        return try !files.isEmpty && !hasOne(follower) && (byKey[gone.work.key] ?? []).contains(where: hasOne)
    }

    /// Whether something has come under another key that says of an entry that is gone as much as what has come under its own.
    private func hasRival(_ next: Follower, for gone: Gone) -> Bool {
        let isNextSure = gone.work.sharesIdentifier(with: next.work) == true
        return gone.work.marks.lazy.flatMap { self.byMark[$0] ?? [] }.contains {
            guard $0.isHeld, $0.work.key != gone.work.key, self.hasCome($0, after: gone) else { return false }
            let isSure = gone.work.sharesIdentifier(with: $0.work) == true
            let hasTitle = $0.work.title != nil && $0.work.title == gone.work.title
            return isSure || !isNextSure && hasTitle && gone.work.mayBeCorrected(to: $0.work)
        }
    }

    /// What has come into the file under the key of an entry that is gone, and is another work.
    func stranger(inPlaceOf gone: Gone) -> Follower? { arrivals(inPlaceOf: gone).first }

    /// What has come into the file besides `stranger`, and may be an entry that is gone.
    func lookalike(of gone: Gone, besides stranger: Follower? = nil) -> Follower? {
        func mayBeIt(_ follower: Follower) -> Bool {
            follower.isHeld && follower.record.id != stranger?.record.id && hasCome(follower, after: gone)
                && gone.work.mayBeCorrected(to: follower.work)
        }
        for mark in gone.work.marks {
            if let found = byMark[mark]?.first(where: mayBeIt) { return found }
        }
        return Self.firstPerson(gone.work).flatMap { byPerson[$0]?.first(where: mayBeIt) }
    }

    private static func firstPerson(_ work: WorkIdentity) -> String? { work.people?.people.first?.family }

    private func corrections(of gone: Gone) -> [Follower] {
        arrivals(inPlaceOf: gone).filter { gone.work.isCorrected(to: $0.work) }
    }

    /// What has come under a key after the entry that had it: at this import, or at one before that removed nothing.
    private func arrivals(inPlaceOf gone: Gone) -> [Follower] {
        (byKey[gone.work.key] ?? []).filter { hasCome($0, after: gone) }
    }

    private func hasCome(_ follower: Follower, after gone: Gone) -> Bool {
        // Two that the file may have held beside each other are two works.
        if !follower.wasHeld { return true }
        let areTwins = follower.hadTwin && gone.hadTwin
        return !gone.wasHeld && !areTwins && follower.record.createdAt > gone.stored.record.createdAt
    }

    private func precedes(_ one: Follower, _ other: Follower, _ gone: Gone) -> Bool {
        func rank(_ follower: Follower) -> Int {
            // What the file held beside it comes last: it is another entry.
            (gone.wasHeld && follower.wasHeld ? 0 : 8) + (follower.work.key == gone.work.key ? 4 : 0)
                + (follower.isHeld ? 2 : 0) + (follower.wasHeld ? 0 : 1)
        }
        let (left, right) = (rank(one), rank(other))
        return left == right ? precedesBytewise(other.record.localID, one.record.localID) : left < right
    }

    /// The living notes on a publication.
    func notes(on localID: String) throws -> [Store.StoredRecord] { try allNotes()["on \(localID)"] ?? [] }

    /// The living notes that name a cite key, and no publication.
    func notes(underKey key: String) throws -> [Store.StoredRecord] { try allNotes()["key \(key)"] ?? [] }

    private func allNotes() throws -> [String: [Store.StoredRecord]] {
        if let notes { return notes }
        var found: [String: [Store.StoredRecord]] = [:]
        try store.forEachLive(type: RecordType.note) { stored in
            guard let fields = try store.ifReadable({ try Fields.parse(stored.record.fields) }) else { return }
            let named =
                Fields.string(Note.publication, in: fields).map { "on \($0)" }
                ?? "key \(Fields.string(Publication.citeKey, in: fields) ?? "")"
            found[named, default: []].append(stored)
        }
        notes = found
        return found
    }

    /// Notes have moved; what is known of them is old.
    func forgetNotes() { notes = nil }
}

extension BibliographyIntake {
    /// Removes entries that the file has lost, unless somebody has written something into them elsewhere. What points at one
    /// goes over to the publication that the entry is now.
    func remove(_ lost: [Store.StoredRecord], _ everElsewhere: Brought, _ state: inout FileState) throws {
        guard !lost.isEmpty else { return }
        let ids = Set(lost.map(\.record.id))
        let followers = BibliographyFollowers(store)
        try store.forEachLive(type: RecordType.publication) { stored in
            let record = stored.record
            guard !ids.contains(record.id), !record.isLocalOnly else { return }
            followers.add(
                BibliographyFollowers.Follower(
                    record: record, work: WorkIdentity(try Fields.parse(record.fields)),
                    isHeld: state.held[record.localID] != nil,
                    wasHeld: hasHeld(record.localID, state) && !state.arrived.contains(record.localID),
                    hadTwin: hadTwin(record.localID, state)))
        }
        let keys = Set(state.held.values.compactMap { Fields.string(Publication.citeKey, in: $0) }).sorted()
        let all = try lost.map { stored in
            let (localID, fields) = (stored.record.localID, try Fields.parse(stored.record.fields))
            // The file has it under the key that it had before somebody gave it another one here.
            let key = keys.first { hasBrought(key: $0, of: localID, state) } ?? ""
            return BibliographyFollowers.Gone(
                stored: stored, work: work(fields, of: localID, underKey: key, state),
                wasHeld: hasHeld(localID, state), hadTwin: hadTwin(localID, state))
        }
        all.forEach(followers.add)
        for gone in all { try remove(gone, everElsewhere, followers, &state) }
    }

    private func remove(
        _ gone: BibliographyFollowers.Gone, _ everElsewhere: Brought, _ followers: BibliographyFollowers,
        _ state: inout FileState
    ) throws {
        let own = memory(of: gone.stored.record.localID)
        let fields = try Fields.parse(gone.stored.record.fields)
        // A key that a decision about a conflict gave it is nothing that somebody wrote into it.
        let isKeyDecided = gone.stored.record.keysBefore.contains {
            hasBrought(key: $0, of: gone.stored.record.localID, state)
        }
        let foreign = fields.filter { field in
            !Publication.isText(field.name) && field.name != Publication.linkedFiles
                && !(isKeyDecided && field.name == Publication.citeKey)
                && !state.broughtBefore.contains(own.everBrought(field))
                && !everElsewhere.contains(own.everBrought(field))
        }
        let next = try followers.follower(of: gone)
        var carried = try next.flatMap { try carry(foreign, to: $0.record, own, state) }
        if isKeyDecided, next?.work.key == gone.work.key {
            carried = carried.map { $0 + fields.filter { $0.name == Publication.citeKey } }
        }
        guard !gone.stored.record.isLocalOnly, foreign.isEmpty || carried != nil else {
            intake.result.protected += 1
            guard isToldFirst(gone.stored.record.localID, &state) else { return }
            if gone.stored.record.isLocalOnly {
                let other = next ?? followers.lookalike(of: gone)
                return noteKeptHere(gone.stored.record, other?.record, key: other?.work.key ?? "")
            }
            return noteStays(
                gone.stored.record, .skipped, "is not in the file any more, but was changed elsewhere since")
        }
        if let next, let carried {
            for field in carried { try noteKnown(field, of: next.record.localID, &state) }
            return try handOver(
                gone.stored, Fields.strings(Publication.linkedFiles, in: fields), carried, to: next, followers)
        }
        intake.plan(
            .remove, gone.stored.record, id: gone.stored.record.id, reason: "the file does not hold it any more")
        intake.result.removed += 1
        try noteReplaced(gone, fields, followers, state)
        try store.bury(gone.stored)
    }

    /// The fields that somebody wrote into a publication elsewhere and that its follower is to have; nil where the file has
    /// another opinion about one of them, or where they say which work it is.
    private func carry(
        _ foreign: [Field], to next: Record, _ own: Brought.Record, _ state: FileState
    ) throws -> [Field]? {
        let said = try Fields.parse(next.fields)
        var carried: [Field] = []
        for field in foreign {
            let value = said.first { sameBytes($0.name, field.name) }
            if let value, try Fields.same(value.value, field.value) { continue }
            guard !WorkIdentity.tells(field.name) else { return nil }
            if let value, !state.broughtBefore.contains(own.everBrought(value)) { return nil }
            carried.append(field)
        }
        return carried
    }

    /// What points at a publication that goes points at another one from now on: that took it in.
    private func handOver(
        _ old: Store.StoredRecord, _ links: [String], _ carried: [Field], to next: BibliographyFollowers.Follower,
        _ followers: BibliographyFollowers
    ) throws {
        guard let kept = try store.record(next.record.id) else { return }
        let time = store.timeAfter(kept.record, old.record)
        let before = try Fields.parse(kept.record.fields)
        var after = before.filter { field in !carried.contains { sameBytes($0.name, field.name) } } + carried
        let present = Fields.strings(Publication.linkedFiles, in: before)
        let files = links.filter { link in !present.contains { sameBytes($0, link) } }
        if !files.isEmpty {
            let all = (present + files).sorted(by: precedesBytewise)
            after.removeAll { $0.name == Publication.linkedFiles }
            after.append(Field(Publication.linkedFiles, .array(all.map { .string($0) })))
        }
        after = try Publication.derive(merged: after, local: before, other: before)
        let changes = FieldChange.list(from: before, to: after)
        var record = try kept.record.edited(after, at: time)
        record.noteCorrection(of: old.record, at: time)
        if carried.contains(where: { $0.name == Publication.citeKey }) {
            record.noteRenamed(from: next.work.key, at: time)
        }
        try store.put(record.keptAlive(at: time.next), replacing: kept)
        if !changes.isEmpty {
            intake.plan(
                .update, record, id: record.id, changes: changes, reason: "takes over what \(old.record.id) had")
        }
        try moveNotes(from: old.record, to: record, followers)
        intake.plan(.remove, old.record, id: old.record.id, reason: "is \(record.id) now")
        intake.result.removed += 1
        try store.bury(old, at: time)
        try store.passOnConflicts(of: old.record.localID, to: record.localID)
    }

    private func moveNotes(from old: Record, to new: Record, _ followers: BibliographyFollowers) throws {
        let notes = try followers.notes(on: old.localID)
        for stored in notes {
            let fields = try Fields.parse(stored.record.fields)
            let moved = stored.record.setting(Note.publication, to: new.localID, in: fields)
            let after = try Fields.parse(moved.fields)
            let note = try stored.record.edited(after, at: store.timeAfter(stored.record))
            try store.put(note, replacing: stored)
            intake.plan(
                .update, note, id: note.id, changes: FieldChange.list(from: fields, to: after),
                reason: "is a note on \(new.id)")
        }
        if !notes.isEmpty { followers.forgetNotes() }
    }

    /// Another work has the key now, or one under another key may be this one: nobody can tell whether what pointed at the old
    /// one is about the new one.
    private func noteReplaced(
        _ gone: BibliographyFollowers.Gone, _ fields: [Field], _ followers: BibliographyFollowers, _ state: FileState
    ) throws {
        let old = gone.stored.record
        let stranger = followers.stranger(inPlaceOf: gone)
        let hasKey = stranger != nil
        let lookalike = followers.lookalike(of: gone, besides: stranger)?.work.key
        guard hasKey || lookalike != nil else { return }
        // A note that names a key alone is one on the work that has it.
        let ownKey = Fields.string(Publication.citeKey, in: fields) ?? ""
        let byKey = hasKey || ownKey.isEmpty ? 0 : try followers.notes(underKey: ownKey).count
        let lost = Self.counted(
            files: Fields.strings(Publication.linkedFiles, in: fields).count,
            notes: try followers.notes(on: old.localID).count + byKey)
        guard !lost.isEmpty else { return }
        let inItsPlace = hasKey ? "another work with this key" : nil
        let besides = lookalike.map { "\($0), which may be the same work with more than its key corrected" }
        let what = "the file now has \([inItsPlace, besides].compactMap(\.self).joined(separator: ", and "))"
        let way =
            hasKey
            ? "\(TypedCommand.quoted("import", [state.path])) keeps both, and 'backup-tool conflicts list' lists them"
            : "then correct the key alone, \(TypedCommand.quoted("import --mirror", [state.path])), and so the rest"
        intake.note(
            Finding(
                .leftOut, .warning, RecordLabel.text(of: old), "was removed: \(what); \(lost) did not go over to it",
                remedy: "if it is the same work, 'backup-tool undo' takes this import back, \(way)"))
    }

    /// "2 files and 1 note"
    private static func counted(files: Int, notes: Int) -> String {
        let parts = [(files, "file"), (notes, "note")].filter { $0.0 > 0 }
        return parts.map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }.joined(separator: " and ")
    }
}
