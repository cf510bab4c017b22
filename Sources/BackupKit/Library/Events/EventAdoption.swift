/// Which events of the store the lines of foreign logs are. The lines of one log are as many events, unless they have one id. A
/// line without an id may be an event of another log or of the store that says the same, with an id or without: there are
/// never more events of one text than some log needs. So nothing depends on the order of logs and commands.
final class EventAdoption {
    private let intake: Intake
    private var store: Store { intake.store }
    /// Whether the store has events whose ids their app has given them, once that was asked.
    private var hasGivenIDs: Bool?
    private var events: EventsByTime?
    /// Those of which each may get one id, once a line with an id had another form than theirs.
    private var made: EventsByTime?
    /// How many lines without an id of one log events with ids stand for: by what the lines mean, and by their words.
    private var served: [UInt64: [UInt64: Int]] = [:]
    /// Which new id is that of a buried event, by the local id of that.
    private var buried: [String: String] = [:]
    /// What events mean that stand for lines in both forms, by its hashes, and how many of them got an id here.
    private var shared: [UInt64: Int] = [:]
    private var sharedTimes: Set<Timestamp> = []
    /// Events that got an id here and kept what they said, which is newer than the line with the id: by what they said.
    private var newer: [ByteName: [(event: Record, line: Record)]] = [:]
    private var otherIDs: OtherIDs
    private var linesAhead: LinesAhead
    /// Which living event has taken in which, once that was asked.
    private var takers: [String: String]?

    /// `hasGivenIDs`: whether the store has such events, where that is known.
    init(_ intake: Intake, hasGivenIDs: Bool? = nil) throws {
        self.intake = intake
        self.hasGivenIDs = hasGivenIDs
        linesAhead = try LinesAhead(intake.store)
        otherIDs = OtherIDs(intake.store)
    }

    /// The lines without an id that follow are those of another log.
    func beginLog() { served.removeAll() }

    /// Takes the event of a line without an id, the `number`th of its log that says so. MUST come before lines with an id.
    func take(_ record: Record, number: Int) throws {
        let outcome = try intake.take(linesAhead.dated(record)) {
            try (self.look($0) == .nothing ? self.takeWithoutID($0, number) : nil) ?? self.takeWithItsFiles($0)
        }
        try linesAhead.note(record, outcome)
    }

    /// Takes the event of a line with an id.
    func take(_ record: Record) throws {
        let outcome = try intake.take(linesAhead.dated(record)) {
            try self.takeAsKnown($0) ?? self.takeWithItsFiles($0)
        }
        try linesAhead.note(record, outcome)
    }

    /// The line of an event whose files gave way to others goes on to mean them.
    private func takeWithItsFiles(_ record: Record) throws -> Outcome? {
        var fields = record.fields
        guard intake.policy != .quarantine, fields.withUTF8({ RecordFiles.mayName(.init($0)) }) else { return nil }
        var moved: [ByteName: String] = [:]
        for link in try store.linksOfLiving(record) {
            if let former = RecordFiles.formerPath(link) { moved[ByteName(former)] = link }
        }
        return try moved.isEmpty ? nil : intake.put(record.following(moved))
    }

    /// The event goes on to be that of the line without an id, and the line with the id gets another one.
    private func part(_ event: Record, from line: Record) throws {
        guard let known = try store.record(event.id) else { return }
        try store.put(event, replacing: known)
        try intake.take(line)
        intake.result.read -= 1
        intake.result.protected -= 1
        shared[store.hasher.text(try EventText.meaning(Fields.parse(line.fields))), default: 0] -= 1
    }

    /// Nil where the line is taken for itself.
    private func look(_ record: Record) throws -> Store.FirstLook? {
        try intake.overwrite || intake.policy == .quarantine ? nil : store.firstLook(record)
    }

    private func takeAsKnown(_ record: Record) throws -> Outcome? {
        switch try look(record) {
        case .nothing: try takeByOtherID(record) ?? giveID(record)
        case .other: try takeByTaker(record)
        case .sameContent, nil: nil
        }
    }

    private func former(_ record: Record, _ text: String, _ number: Int) -> Record {
        record.identified(as: DeterministicID.make(RecordType.event, text, String(number)))
    }

    private func counted() throws -> EventsByTime {
        let counted = try events ?? EventsByTime(store)
        events = counted
        return counted
    }

    private func takeWithoutID(_ record: Record, _ number: Int) throws -> Outcome? {
        let hasGivenIDs = try self.hasGivenIDs ?? store.hasEventsWithGivenIDs()
        self.hasGivenIDs = hasGivenIDs
        guard try hasGivenIDs || Store.links(of: record).contains(where: RecordFiles.mayHaveGivenWay) else {
            return nil
        }
        let words = try EventWords(record)
        if try isServed(words, number) {
            note(words.meaning, words.time)
            return Outcome(id: record.id, localID: record.localID, decision: .unchanged)
        }
        guard try store.record(record.id) == nil else { return nil }
        return try putNext(record, words)
    }

    /// Whether an event stands for the line already: one without an id in its words, or one with an id that means the same
    /// and that no other line of the log needs.
    private func isServed(_ words: EventWords, _ number: Int) throws -> Bool {
        let missing = try number - counted().written(words.text, at: words.time)
        if missing <= 0 { return true }
        let (text, meaning) = (store.hasher.text(words.text), store.hasher.text(words.meaning))
        let others = (served[meaning] ?? [:]).reduce(0) { $1.key == text ? $0 : $0 + $1.value }
        guard try missing + others <= counted().given(words.meaning, at: words.time) else { return false }
        served[meaning, default: [:]][text] = missing
        return true
    }

    private func note(_ meaning: String, _ time: Timestamp, adopted: Int = 0) {
        shared[store.hasher.text(meaning), default: 0] += adopted
        sharedTimes.insert(time)
    }

    /// Under the first number that is free.
    private func putNext(_ record: Record, _ words: EventWords) throws -> Outcome {
        let next = record.identified(as: try store.freeMadeID(of: words.text, zone: record.id.zone))
        try events?.add(words.text, words.meaning, at: words.time)
        return try intake.put(next)
    }

    /// Gives the record of the line without an id the line's id, and takes the line.
    private func giveID(_ record: Record) throws -> Outcome? {
        for text in try EventText.withoutID(record) {
            var number = 1
            while true {
                let former = former(record, text, number)
                number += 1
                guard let known = try known(as: former) else {
                    // Of equal lines each gets an id of its own.
                    if try store.record(former.id) != nil { continue }
                    break
                }
                guard known.record.isDeleted || known.record.isLocalOnly else {
                    note(try EventText.meaning(Fields.parse(text)), try EventWords(record).time, adopted: 1)
                    return try adopt(record, known)
                }
                if try known.record.isDeleted && isMergedIntoAnother(former, text) { continue }
                // What was deleted, or is kept on this device only, is that under its old id.
                let owner = buried[former.localID] ?? record.localID
                buried[former.localID] = owner
                if store.hasher.key(owner) == store.hasher.key(record.localID) { return try intake.put(former) }
            }
        }
        return try giveIDInOtherWords(record)
    }

    /// The same where the line without the id said so in other words.
    private func giveIDInOtherWords(_ record: Record) throws -> Outcome? {
        let made = try self.made ?? EventsByTime(store)
        self.made = made
        let time = try EventWords(record).time
        for meaning in try EventText.meanings(withID: record) {
            guard let known = try made.takeMade(meaning, at: time, where: { $0.record.id.zone == record.id.zone })
            else { continue }
            if known.record.isLocalOnly { return try intake.put(record.identified(as: known.record.localID)) }
            note(meaning, time, adopted: 1)
            return try adopt(record, known)
        }
        return nil
    }

    /// Whether the event of a line without an id was merged into one that says something else by now. Then a line that says
    /// what it said, and has an id of its own, is another event.
    private func isMergedIntoAnother(_ former: Record, _ text: String) throws -> Bool {
        let takers = try self.takers ?? store.takers(type: RecordType.event)
        self.takers = takers
        guard let id = takers[former.localID] else { return false }
        let taker = try store.soundRecords(localID: id).first {
            $0.record.type == RecordType.event && !$0.record.isDeleted
        }
        let meaning = try EventText.meaning(Fields.parse(text))
        return try taker.map { try !EventText.meanings(withID: $0.record).contains { sameBytes($0, meaning) } } ?? false
    }

    private func known(as former: Record) throws -> Store.StoredRecord? {
        try store.soundRecords(localID: former.localID).first { $0.record.type == former.type }
    }

    private func adopt(_ record: Record, _ known: Store.StoredRecord) throws -> Outcome {
        var new = known.record
        new.localID = record.localID
        let isNewer = record.modifiedAt >= known.record.latestTime
        if !isNewer { newer[ByteName(known.record.fields), default: []].append((known.record, record)) }
        if isNewer {
            (new.fields, new.modifiedAt) = (record.fields, min(record.modifiedAt, store.now()))
        } else {
            new.fields = try withIDs(of: record, new)
        }
        try store.put(new, replacing: known)
        let outcome = try intake.put(record)
        guard isNewer, case .unchanged = outcome.decision else { return outcome }
        let changes = FieldChange.list(
            from: try Fields.parse(known.record.fields), to: try Fields.parse(record.fields))
        return Outcome(id: new.id, localID: new.localID, decision: .update(new, changes), wasAlive: true)
    }

    /// What an event says, with the ids that a line gives it.
    private func withIDs(of line: Record, _ event: Record) throws -> String {
        guard try EventText.fieldsWithID(event) == nil else { return event.fields }
        let ids = try Fields.parse(line.fields).filter { ["id", "localId"].contains($0.name) }
        let others = try Fields.parse(event.fields).filter { field in !ids.contains { $0.name == field.name } }
        return Fields.text(ids + others)
    }

    // MARK: Lines with a `localId`

    /// A line is known by its id, else by its `localId`: it may have got its id later, or be older than that.
    private func takeByOtherID(_ record: Record) throws -> Outcome? {
        guard let otherID = try EventText.otherID(in: Fields.parse(record.fields)) else { return nil }
        let key = store.hasher.key(otherID)
        guard key == store.hasher.key(record.localID) else {
            otherIDs.note(key, record.localID)
            guard
                let known = try store.soundRecords(localID: otherID).first(where: {
                    $0.record.type == record.type && ($0.record.isDeleted || EventText.isKnownByLocalID($0.record))
                })
            else { return nil }
            let isKept = known.record.isDeleted || known.record.isLocalOnly
            guard isKept else { return try adopt(record, known) }
            return try intake.put(record.identified(as: known.record.localID))
        }
        guard let id = try otherIDs.event(with: otherID),
            let known = try store.soundRecords(localID: id).first(where: { $0.record.type == record.type })
        else { return nil }
        var line = record.identified(as: id)
        line.fields = try withIDs(of: known.record, line)
        return try intake.put(line)
    }

    /// The line of an event that was made one with a living one that has an id: it is a line of that.
    private func takeByTaker(_ record: Record) throws -> Outcome? {
        guard EventText.isKnownByLocalID(record),
            try store.soundRecords(localID: record.localID).allSatisfy(\.record.isDeleted),
            let id = try otherIDs.event(with: record.localID),
            try !store.soundRecords(localID: id).allSatisfy(\.record.isDeleted)
        else { return nil }
        return try takeByOtherID(record)
    }

    // MARK: Logs with lines of both forms

    /// Adds what `logs`, which have lines with ids and lines without, need: of one text their own ids are other events than
    /// their lines without. Comes last.
    func finish(_ logs: [LineWindows]) throws {
        try linesAhead.remember()
        guard !shared.isEmpty, !logs.isEmpty else { return }
        events = nil
        for log in logs {
            for lines in try linesOfBothForms(log).values {
                guard let words = lines.without.first?.words else { continue }
                let own = try lines.ids.values.count { try isLive($0, meaning: words.meaning) }
                let found = try counted().all(words.meaning, at: words.time)
                let missing = lines.without.count + own - found
                guard missing > 0 else { continue }
                for line in try unsaidFirst(lines.without).prefix(missing) { try addAfterAll(line.record, line.words) }
                try counted().readAgain(words.time)
            }
        }
    }

    private typealias Line = (record: Record, words: EventWords)

    private struct Lines {
        /// By their keys in the store.
        var ids: [Int64: String] = [:]
        var without: [Line] = []
    }

    /// Lines without an id that mean one thing, first those in whose words no event says it any more.
    private func unsaidFirst(_ lines: [Line]) throws -> [Line] {
        guard let words = lines.first?.words else { return [] }
        let events = try counted().allMade(words.meaning, at: words.time)
        // Who says it in the very bytes of a line stands for that line, and not for an equal one.
        var bytes = events.reduce(into: [ByteName: Int]()) { $0[ByteName($1.fields), default: 0] += 1 }
        var unsaid = lines.filter { !Self.take(&bytes, $0.record.fields) }
        var texts: [ByteName: Int] = [:]
        for event in events where Self.take(&bytes, event.fields) {
            guard let text = try EventText.asWritten(Fields.parse(event.fields)).last else { continue }
            texts[ByteName(text), default: 0] += 1
        }
        unsaid.removeAll { Self.take(&texts, $0.words.text) }
        return unsaid + lines
    }

    /// Returns whether there was one, which is there no more.
    private static func take(_ counts: inout [ByteName: Int], _ text: String) -> Bool {
        guard let count = counts[ByteName(text)], count > 0 else { return false }
        counts[ByteName(text)] = count - 1
        return true
    }

    /// The lines that say what an event says which stands for lines in both forms.
    private func linesOfBothForms(_ log: LineWindows) throws -> [UInt64: Lines] {
        var found: [UInt64: Lines] = [:]
        var buffer: [UInt8] = []
        func note(_ record: Record, hasID: Bool) throws {
            let words = try EventWords(record)
            guard sharedTimes.contains(words.time) else { return }
            for meaning in hasID ? try EventText.meanings(withID: record) : [words.meaning] {
                let hash = store.hasher.text(meaning)
                guard shared[hash] != nil else { continue }
                if hasID {
                    found[hash, default: Lines()].ids[store.hasher.key(record.localID)] = record.localID
                } else {
                    found[hash, default: Lines()].without.append((record, words))
                }
            }
        }
        for window in 0..<log.count {
            try log.forEachLine(of: window, in: &buffer) { line, _ in
                // What is no event was rejected before.
                guard let line, let (record, hasID) = try? EventLine.recordAndForm(line) else { return }
                try note(record, hasID: hasID)
            }
        }
        return found
    }

    private func isLive(_ id: String, meaning: String) throws -> Bool {
        try store.records(localID: id).contains { stored in
            try stored.record.type == RecordType.event && !stored.record.isDeleted
                && EventText.meanings(Fields.parse(stored.record.fields)).contains { sameBytes($0, meaning) }
        }
    }

    /// The line was counted before: its event got an id, or was one that has one.
    private func addAfterAll(_ record: Record, _ words: EventWords) throws {
        if let taken = newer[ByteName(record.fields)]?.popLast() { return try part(taken.event, from: taken.line) }
        try intake.take(record) { try self.putNext($0, words) }
        intake.result.read -= 1
        let meaning = store.hasher.text(words.meaning)
        if let adopted = shared[meaning], adopted > 0 {
            shared[meaning] = adopted - 1
            intake.result.updated -= 1
        } else {
            intake.result.unchanged -= 1
        }
    }
}

/// What the line of an event says: in which words, what that means, and when it was.
private struct EventWords {
    let text: String
    let meaning: String
    let time: Timestamp

    init(_ record: Record) throws {
        let fields = try Fields.parse(record.fields)
        text = String(decoding: try Fields.canonical(record.fields), as: UTF8.self)
        meaning = try EventText.meaning(fields)
        time = EventText.time(in: fields)?.instant ?? record.createdAt
    }
}

extension EventLine {
    /// `number` is asked which of equal lines one without an id is.
    static func recordAndForm(
        _ line: UnsafeRawBufferPointer, number: (_ canonical: String) -> Int = { _ in 1 }
    ) throws -> (Record, hasID: Bool) {
        var hasID = true
        let record = try record(line) { canonical in
            hasID = false
            return number(canonical)
        }
        return (record, hasID)
    }
}
