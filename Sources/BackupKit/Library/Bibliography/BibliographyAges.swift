/// How old what a file says is: as old as the file was when it first said it. A file is saved again for the sake of one
/// entry; the others are no newer for that, and overwrite nothing that another device wrote meanwhile.
extension BibliographyIntake {
    /// The time since which the file says a value, and goes on to say it. `before` are the marks by which it said that of
    /// publications that were merged into this one. Whoever repeats what the store has says nothing newer than that, of `known`.
    @discardableResult func note(
        said mark: UInt64, before: [UInt64] = [], known: Timestamp? = nil, _ state: inout FileState
    ) -> Timestamp {
        let said = time(ofSaid: mark, before, state)
        let time = known.map { min($0, said) } ?? said
        // The time of a file that is dated ahead is the time of its import.
        state.said[min(time, state.importTime), default: []].append(mark)
        return time
    }

    private func time(ofSaid mark: UInt64, _ before: [UInt64], _ state: FileState) -> Timestamp {
        let known = state.saidBefore[mark] ?? before.lazy.compactMap { state.saidBefore[$0] }.min()
        return min(known ?? state.time, state.time)
    }

    /// What the file remembers of publications that were merged into this one since.
    func memoriesOfMerged(into localID: String, _ state: FileState) -> [Brought.Record] {
        guard let merged = mergedInto[localID], !state.saidBefore.isEmpty else { return [] }
        return merged.filter { hasBrought($0, state) }.map(memory)
    }

    /// The same of the part that the pen has written, and whether it is new in a file that was imported before.
    func noteSaid(part localID: String, _ state: inout FileState) -> (time: Timestamp, isNews: Bool) {
        guard state.memory != nil else { return (state.time, false) }
        let mark = Brought.Record(store.hasher, localID).whole(pen.written)
        let isNews = !state.saidBefore.isEmpty && state.saidBefore[mark] == nil
        return (note(said: mark, &state), isNews)
    }

    /// Imports a part, and counts it when it is new in the file and the store does not take it.
    func take(part: Record, isNews: Bool, _ state: inout FileState) throws {
        try flush()
        guard case .protect = try intake.take(part).decision, isNews, !BibliographyPart.isOrder(part) else { return }
        let fields = try Fields.parse(part.fields)
        let marks = marks(ofPart: Publication.writtenBytes(of: fields) ?? [], Fields.string("kind", in: fields) ?? "")
        // An older copy of the file may say again what it said before.
        if !state.broughtBefore.contains(marks.everBrought) { state.partsLeftOut += 1 }
    }

    /// The entry that the pen has written, as a version of a publication that the store has: each field with its own time.
    func dated(_ record: Record, over known: Record, _ state: FileState) -> Record {
        guard !state.saidBefore.isEmpty, !sameBytes(record.fields, known.fields) else { return record }
        var record = record
        let times = times(of: known.localID, state)
        record.modifiedAt = times.map(\.time).max() ?? state.time
        for (name, time) in times where time < record.modifiedAt { record.fieldTimes[name] = time }
        return record
    }

    /// The same where the store has no such publication, or a deleted one. Other spaces in its text make it no newer, and what
    /// was deleted is no newer in a copy of the file that said it.
    func dated(_ record: Record, as localID: String, _ state: FileState) throws -> Record {
        let dead = try deleted(localID)
        guard !state.saidBefore.isEmpty || !dead.isEmpty else { return record }
        var record = record
        var times = times(of: localID, state)
        if !dead.isEmpty {
            let others = try store.heldSinceByAny()
            // The name is what it was called while it was alive.
            for id in Set([localID] + dead.map(\.id.name)) {
                for (place, field) in marks(of: id).enumerated() {
                    if let time = others[field.mark] { times[place].time = min(times[place].time, time) }
                }
            }
        }
        let words = timeOfText(of: localID, state)
        record.modifiedAt = words ?? times.filter { !Publication.isText($0.name) }.map(\.time).max() ?? state.time
        record.createdAt = record.modifiedAt
        return record
    }

    /// Whether the file said all that the entry at hand says of that publication when it was imported last.
    func hasSaidAll(of localID: String, besides names: Set<String> = [], _ state: FileState) -> Bool {
        marks(of: localID).allSatisfy {
            Publication.isText($0.name) || names.contains($0.name) || state.saidBefore[$0.mark] != nil
        }
    }

    /// Since when the file has had the exact text of this entry for that publication; nil where its text was another.
    func timeOfText(of localID: String, _ state: FileState) -> Timestamp? {
        let text = pen.members.first { Publication.isText(part($0.name)) }
        return text.flatMap { state.saidBefore[mark(of: $0, in: memory(of: localID))] }
    }

    /// How many values of the entry at hand the file did not say of that publication when it was imported last.
    func unsaid(of localID: String, _ state: FileState) -> Int {
        marks(of: localID).count { !Publication.isText($0.name) && state.saidBefore[$0.mark] == nil }
    }

    private func times(of localID: String, _ state: FileState) -> [(name: String, time: Timestamp)] {
        let merged = memoriesOfMerged(into: localID, state).map { marks(in: $0) }
        return marks(of: localID).enumerated().map { place, field in
            (field.name, time(ofSaid: field.mark, merged.map { $0[place].mark }, state))
        }
    }

    /// The marks of what the entry at hand says, as said of that publication.
    private func marks(of localID: String) -> [(name: String, mark: UInt64)] { marks(in: memory(of: localID)) }

    private func marks(in record: Brought.Record) -> [(name: String, mark: UInt64)] {
        pen.members.map { (String(decoding: part($0.name), as: UTF8.self), mark(of: $0, in: record)) }
    }

    private func mark(of member: JSONPen.Member, in record: Brought.Record) -> UInt64 {
        record.field(part(member.name)).everBrought(part(member.value))
    }

    /// A part of what the pen has written.
    private func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: pen.written[range])
    }
}
