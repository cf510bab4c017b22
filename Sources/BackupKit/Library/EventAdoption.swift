/// Which events of the store the lines of foreign logs are. The lines of one log are as many events, unless they have one id. A
/// line without an id may be an event of another log or of the store that says the same, with an id or without: there are
/// never more events of one text than some log needs. So nothing depends on the order of logs and commands.
final class EventAdoption {
    private let intake: Intake
    private var store: Store { intake.store }
    /// Whether the store has events whose ids their app has given them, once that was asked.
    private var hasGivenIDs: Bool?
    private var events: EventsByText?
    /// Which new id is that of a buried event, by the local id of that.
    private var buried: [String: String] = [:]
    /// Texts, by their hashes, of events that stand for lines in both forms, and how many of them got an id here.
    private var shared: [UInt64: Int] = [:]
    private var linesAhead: LinesAhead
    /// Which living event has taken in which, once that was asked.
    private var takers: [String: String]?

    /// `hasGivenIDs`: whether the store has such events, where that is known.
    init(_ intake: Intake, hasGivenIDs: Bool? = nil) throws {
        self.intake = intake
        self.hasGivenIDs = hasGivenIDs
        linesAhead = try LinesAhead(intake.store)
    }

    /// Takes the event of a line without an id, the `number`th of its log that says so. MUST come before lines with an id.
    func take(_ record: Record, number: Int) throws {
        try intake.take(linesAhead.dated(record)) {
            try (self.mayAdopt($0) ? self.takeWithoutID($0, number) : nil) ?? self.takeWithItsFiles($0)
        }
    }

    /// Takes the event of a line with an id.
    func take(_ record: Record) throws {
        try intake.take(linesAhead.dated(record)) {
            try (self.mayAdopt($0) ? self.giveID($0) : nil) ?? self.takeWithItsFiles($0)
        }
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

    private func mayAdopt(_ record: Record) throws -> Bool {
        try !intake.overwrite && intake.policy != .quarantine && store.firstLook(record) == .nothing
    }

    private func former(_ record: Record, _ text: String, _ number: Int) -> Record {
        record.identified(as: DeterministicID.make(RecordType.event, text, String(number)))
    }

    private func counted() throws -> EventsByText {
        let counted = try events ?? EventsByText(store)
        events = counted
        return counted
    }

    private func takeWithoutID(_ record: Record, _ number: Int) throws -> Outcome? {
        let hasGivenIDs = try self.hasGivenIDs ?? store.hasEventsWithGivenIDs()
        self.hasGivenIDs = hasGivenIDs
        guard try hasGivenIDs || Store.links(of: record).contains(where: RecordFiles.mayHaveGivenWay) else {
            return nil
        }
        let text = String(decoding: try Fields.canonical(record.fields), as: UTF8.self)
        if number <= (try counted().count(of: text, store)) {
            shared[store.hasher.text(text), default: 0] += 0
            return Outcome(id: record.id, localID: record.localID, decision: .unchanged)
        }
        guard try store.record(record.id) == nil else { return nil }
        return try putNext(record, text)
    }

    /// Under the first number that is free.
    private func putNext(_ record: Record, _ text: String) throws -> Outcome {
        let next = record.identified(as: try store.freeMadeID(of: text, zone: record.id.zone))
        events?.add(text, store)
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
                    shared[store.hasher.text(text), default: 0] += 1
                    return try adopt(record, known)
                }
                if try known.record.isDeleted && isMergedIntoAnother(former, text) { continue }
                // What was deleted, or is kept on this device only, is that under its old id.
                let owner = buried[former.localID] ?? record.localID
                buried[former.localID] = owner
                if store.hasher.key(owner) == store.hasher.key(record.localID) { return try intake.put(former) }
            }
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
        return try taker.map { try !EventText.withoutID($0.record).contains { sameBytes($0, text) } } ?? false
    }

    private func known(as former: Record) throws -> Store.StoredRecord? {
        try store.soundRecords(localID: former.localID).first { $0.record.type == former.type }
    }

    private func adopt(_ record: Record, _ known: Store.StoredRecord) throws -> Outcome {
        var new = known.record
        new.localID = record.localID
        let isNewer = record.modifiedAt >= known.record.latestTime
        if isNewer { (new.fields, new.modifiedAt) = (record.fields, min(record.modifiedAt, store.now())) }
        try store.put(new, replacing: known)
        let outcome = try intake.put(record)
        guard isNewer, case .unchanged = outcome.decision else { return outcome }
        let changes = FieldChange.list(
            from: try Fields.parse(known.record.fields), to: try Fields.parse(record.fields))
        return Outcome(id: new.id, localID: new.localID, decision: .update(new, changes), wasAlive: true)
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
                guard let (record, text) = lines.first else { continue }
                let own = try lines.ids.values.count { try isLive($0, saying: text) }
                for _ in 0..<max(0, lines.count + own - (try counted().count(of: text, store))) {
                    try addAfterAll(record, text)
                }
            }
        }
    }

    private struct Lines {
        /// By their keys in the store.
        var ids: [Int64: String] = [:]
        var count = 0
        var first: (Record, text: String)?
    }

    /// The lines that say what an event says which stands for lines in both forms.
    private func linesOfBothForms(_ log: LineWindows) throws -> [UInt64: Lines] {
        var found: [UInt64: Lines] = [:]
        var buffer: [UInt8] = []
        func note(_ record: Record, _ text: String?) throws {
            for form in try text.map({ [$0] }) ?? EventText.withoutID(record) {
                let hash = store.hasher.text(form)
                guard shared[hash] != nil else { continue }
                if text == nil {
                    found[hash, default: Lines()].ids[store.hasher.key(record.localID)] = record.localID
                } else {
                    var lines = found[hash] ?? Lines()
                    lines.count += 1
                    lines.first = lines.first ?? (record, form)
                    found[hash] = lines
                }
            }
        }
        for window in 0..<log.count {
            try log.forEachLine(of: window, in: &buffer) { line, _ in
                // What is no event was rejected before.
                guard let line, let (record, text) = try? EventLine.recordAndText(line) else { return }
                try note(record, text)
            }
        }
        return found
    }

    private func isLive(_ id: String, saying text: String) throws -> Bool {
        try store.records(localID: id).contains { stored in
            try stored.record.type == RecordType.event && !stored.record.isDeleted
                && EventText.withoutID(Fields.parse(stored.record.fields)).contains { sameBytes($0, text) }
        }
    }

    /// The line was counted before: its event got an id, or was one that has one.
    private func addAfterAll(_ record: Record, _ text: String) throws {
        try intake.take(record) { try self.putNext($0, text) }
        intake.result.read -= 1
        if let adopted = shared[store.hasher.text(text)], adopted > 0 {
            shared[store.hasher.text(text)] = adopted - 1
            intake.result.updated -= 1
        } else {
            intake.result.unchanged -= 1
        }
    }
}

/// How many events of a store say the same, but for their ids.
struct EventsByText {
    private var counts: [UInt64: Int] = [:]

    init(_ store: Store) throws {
        try store.forEachEvent { _, bytes in
            guard let fields = try store.ifReadable({ try Fields.parse(bytes) }) else { return }
            let hasID = EventText.id(in: fields) != nil
            for text in try hasID ? EventText.withoutID(fields) : EventText.asWritten(fields) {
                counts[store.hasher.text(text), default: 0] += 1
            }
        }
    }

    func count(of text: String, _ store: Store) -> Int { counts[store.hasher.text(text)] ?? 0 }

    mutating func add(_ text: String, _ store: Store) { counts[store.hasher.text(text), default: 0] += 1 }
}

extension EventLine {
    /// The text is nil of a line that has an id.
    fileprivate static func recordAndText(_ line: UnsafeRawBufferPointer) throws -> (Record, text: String?) {
        var text: String?
        let record = try record(line) { canonical in
            text = canonical
            return 1
        }
        return (record, text)
    }
}
