/// Which publication of the store an entry is, where the file has several entries of its key: the one that it says most of,
/// whichever entry stands first.
extension BibliographyIntake {
    /// A publication, and how far the entry at hand is from it.
    typealias Near = (match: Match, distance: Int)

    /// The living publication that an entry is: under its key, or under one that it has got since.
    func publication(
        _ key: String, _ incoming: [Field], _ work: WorkID, _ record: Record, _ state: inout FileState
    ) throws -> Near? {
        var namesake = try match(key, incoming, work, state)
        if let match = namesake, try isOfDeleted(work, besides: match, record, &state) { namesake = nil }
        let near = namesake.map { ($0, distance(to: $0, incoming, state)) } as Near?
        // The one that this file brought, before one of that key that it did not.
        let own = near.flatMap { hasBrought($0.match.localID, state) ? $0 : nil }
        if own?.distance == 0 { return near }
        guard let other = try renamed(key, incoming, work, &state) else {
            return try near ?? renamedByDecision(key, incoming, work, &state)
        }
        return own.map { $0.distance <= other.distance } == true ? near : other
    }

    /// The entry that the pen has written, as a record that has no name yet.
    func writtenRecord(_ state: FileState) -> Record {
        Record(
            id: RecordID(zone: RecordType.libraryZone, name: ""), type: RecordType.publication, localID: "",
            fields: String(decoding: pen.written, as: UTF8.self), createdAt: state.time, modifiedAt: state.time)
    }

    /// The publication that this file brought under that key, where it has got another key since: by a decision, or by a
    /// person. What the file says of the work goes on to be said of it.
    private func renamed(
        _ key: String, _ incoming: [Field], _ work: WorkID, _ state: inout FileState
    ) throws -> Near? {
        guard !state.saidBefore.isEmpty, !key.isEmpty else { return nil }
        if state.moved == nil { state.moved = publicationsWithNewKeys(state) }
        var found: [Near] = []
        for (other, index) in state.moved ?? [] where other != key {
            guard let candidate = known[other]?[index], candidate.file != state.number,
                said(key, of: candidate.localID, state), let existing = try live(candidate.localID)
            else { continue }
            let fields = try Fields.parse(existing.fields)
            guard Fields.string(Publication.citeKey, in: fields) == other,
                WorkIdentity(fields).verdict(work.identity, isRelated: true) == .same,
                try isOwn(candidate.localID, work, state)
            else { continue }
            let match = Match(key: other, index: index, record: existing, fields: fields)
            guard try !isNearerToDeleted(work, than: match, &state) else { continue }
            found.append((match, distance(to: match, incoming, state)))
        }
        let least = found.map(\.distance).min()
        let nearest = found.filter { $0.distance == least }
        return nearest.count == 1 ? nearest[0] : nil
    }

    /// The publication that a decision has renamed from that key, whichever file brought it: the old key is no newer, and makes
    /// no second publication of the work.
    private func renamedByDecision(
        _ key: String, _ incoming: [Field], _ work: WorkID, _ state: inout FileState
    ) throws -> Near? {
        guard !key.isEmpty, !wasEmpty else { return nil }
        for id in work.made {
            guard let existing = try live(id), existing.wasRenamed(from: key) else { continue }
            let fields = try Fields.parse(existing.fields)
            guard let other = Fields.string(Publication.citeKey, in: fields), other != key,
                WorkIdentity(fields).verdict(work.identity) == .same,
                let index = known[other]?.firstIndex(where: { $0.localID == id && $0.file != state.number })
            else { continue }
            let match = Match(key: other, index: index, record: existing, fields: fields)
            if try isNearerToDeleted(work, than: match, &state) { continue }
            return (match, distance(to: match, incoming, state))
        }
        return nil
    }

    /// Those that the file brought, and that have a key which it did not say of them.
    private func publicationsWithNewKeys(_ state: FileState) -> [(key: String, index: Int)] {
        known.flatMap { key, candidates in
            candidates.indices.filter { index in
                let localID = candidates[index].localID
                return hasBrought(localID, state) && !said(key, of: localID, state)
            }.map { (key, $0) }
        }
    }

    /// Whether the file said at its last import that the publication has that key.
    func said(_ key: String, of localID: String, _ state: FileState) -> Bool {
        let field = Field(Publication.citeKey, .string(key))
        return state.saidBefore[memory(of: localID).everBrought(field)] != nil
    }

    /// How many values of the entry at hand nobody has said of a publication, and how many of those that were said the entry
    /// lacks. What counts is what its file said, or the store where that file did not hold it.
    func distance(to match: Match, _ incoming: [Field], _ state: FileState) -> Int {
        let (mine, theirs) = (bibTeX(incoming), bibTeX(match.fields))
        if theirs == mine { return 0 }
        let (isHeld, memory) = (hasHeld(match.localID, state), memory(of: match.localID))
        let lacking = theirs.count { field in
            !Publication.isText(field.name) && !mine.contains { $0.name == field.name }
                && (!isHeld || state.broughtBefore.contains(memory.held(field)))
        }
        if isHeld { return lacking + unsaid(of: match.localID, state) }
        return lacking + mine.count { !Publication.isText($0.name) && !match.fields.contains($0) }
    }

    /// Whether the file has more than one entry of that key.
    func standsTwice(_ key: String, _ state: inout FileState) throws -> Bool {
        if let twins = state.twins { return twins.contains(store.hasher.text(key)) }
        var (once, twins): (Set<UInt64>, Set<UInt64>) = ([], [])
        var reader = BibReader()
        func note(_ block: BibBlock) {
            guard block.kind == .entry else { return }
            let key = store.hasher.text(block.key)
            if !once.insert(key).inserted { twins.insert(key) }
        }
        try state.text.forEachChunk { reader.feed($0, emit: note) }
        reader.finish(emit: note)
        state.twins = twins
        return twins.contains(store.hasher.text(key))
    }

    /// Notes for later imports which publications the file has beside each other under a key.
    func noteTwins(_ key: String, _ state: inout FileState) {
        guard let all = known[key], all.count > 1 else { return }
        let here = all.indices.filter { all[$0].file == state.number }
        guard here.count > 1 else { return }
        for index in here where all[index].fileWithTwin != state.number {
            known[key]?[index].fileWithTwin = state.number
            state.brought.append(twinMark(all[index].localID))
        }
    }

    /// Whether an earlier import of the file had that publication beside another one of its key.
    func hadTwin(_ localID: String, _ state: FileState) -> Bool { state.broughtBefore.contains(twinMark(localID)) }

    private func twinMark(_ localID: String) -> UInt64 {
        store.hasher.text("twin", after: memory(of: localID).everBrought) & ~1
    }

    /// Takes those of the entries that waited that the store has, the nearest first: what they are, no other entry is. Returns
    /// the others.
    func takeKnown(
        _ waiting: [EntryWaiting], _ state: inout FileState, _ wanted: Wanted?
    ) throws -> [EntryWaiting] {
        var rest = Array(waiting.enumerated())
        while true {
            var (near, done): ([(distance: Int, place: Int)], Set<Int>) = ([], [])
            for (place, entry) in rest {
                let isSound = try sparing(&state) { state in
                    if let distance = try distanceToKnown(entry, &state) { near.append((distance, place)) }
                    return true
                }
                if isSound == nil { done.insert(place) }
            }
            for (distance, place) in near.sorted(by: { $0 < $1 }) {
                write(waiting[place], &state)
                // What was nearest may be another entry by now.
                let isTaken = try sparing(&state) { try takeSlow(waiting[place], within: distance, &$0, wanted) }
                if isTaken != false { done.insert(place) }
            }
            rest.removeAll { done.contains($0.offset) }
            if done.isEmpty { return rest.map(\.element) }
        }
    }

    /// Does something for one block of the file. A damaged row of the store that may be the same costs this block alone; then the
    /// result is nil.
    @discardableResult
    func sparing<Result>(
        _ state: inout FileState, _ body: (inout FileState) throws -> Result
    ) throws -> Result? {
        do { return try body(&state) } catch let row as DamagedRow {
            state.damagedRow = row.subject
            intake.reject(row.inTheWay)
            return nil
        }
    }

    /// How far an entry is from the publication that it is; nil where the store has none.
    private func distanceToKnown(_ entry: EntryWaiting, _ state: inout FileState) throws -> Int? {
        write(entry, &state)
        let record = writtenRecord(state)
        let incoming = try Fields.parse(record.fields)
        let work = WorkID(bibTeX(incoming), hasher)
        if let near = try publication(entry.key, incoming, work, record, &state) { return near.distance }
        return try match(entry.key, incoming, work, state) == nil ? nil : .max
    }
}
