import TestSupport
import Testing

@testable import BackupKit

private func line(_ note: String, id: Int? = nil, modified: Int? = nil, clock: String = "15:00:00+01:00") -> String {
    let id = id.map { "\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-0000000000\(10 + $0)\"," } ?? ""
    let modified = modified.map { ",\"modified_at\":\"2026-02-15T10:\(10 + $0 / 60):\(10 + $0 % 60)+01:00\"" } ?? ""
    return "{\(id)\"time\":\"2026-02-14T\(clock)\",\"type\":\"eten\",\"note\":\"\(note)\"\(modified)}\n"
}

/// A log whose lines get ids and edits, one after the other.
private final class EventDedupWorld {
    private struct Line {
        var id: Int?
        var note: String
        var modified: Int?
        var clock = "15:00:00+01:00"

        var text: String { line(note, id: id, modified: modified, clock: clock) }
    }

    private let test: TestStore
    private var random: SeededGenerator
    private var lines: [Line] = []
    private var ids = 0
    private var edits = 0
    var story: [String] = []
    var faults: [String] = []

    init(_ seed: UInt64, _ test: TestStore) {
        self.test = test
        random = SeededGenerator(seed: seed)
    }

    private var text: String { ["a", "b"][random.below(2)] }

    private func newID() -> Int {
        ids += 1
        return ids
    }

    private func edit() {
        guard !lines.isEmpty, !random.chance(4) else {
            return lines.append(Line(id: random.chance(3) ? newID() : nil, note: text))
        }
        let place = random.below(lines.count)
        if lines[place].id == nil {
            lines[place].id = newID()
            // Its app may write the time in another form with it.
            lines[place].clock = ["15:00:00+01:00", "15:00+01:00", "14:00:00.000Z"][random.below(3)]
        } else if random.chance(2) {
            edits += 1
            lines[place].note = random.chance(3) ? "edit \(edits)" : text
            lines[place].modified = edits
        } else {
            lines.remove(at: place)
        }
    }

    func step() throws {
        for _ in 0...random.below(4) { edit() }
        test.clock.advance(seconds: 86400)
        let path = "\(test.folder)/log.jsonl"
        try writeFile(path, lines.map(\.text).joined())
        _ = try Importer.run([path], into: test.store, ImportOptions())
        story.append("import " + lines.map(\.text).joined().replacing("\n", with: " "))
        try look()
        guard random.chance(2) else { return }
        let before = try live()
        let result = try Deduplicator.run(on: test.store)
        story.append("dedup \(result.plan)")
        let after = try live()
        if Set(before.map(\.said)) != Set(after.map(\.said)) { faults.append("a text is lost") }
        let (had, has) = (before.filter { !$0.isMade }.map(\.fields), after.filter { !$0.isMade }.map(\.fields))
        if had != has { faults.append("events with ids are others: \(had) → \(has)") }
        if try Deduplicator.run(on: test.store).batch != nil { faults.append("the second dedup does something") }
        try look()
    }

    /// What a line with an id says is in the store, under its id or in the event that it was merged with.
    private func look() throws {
        let live = try live().map(\.said)
        for line in lines where line.id != nil {
            if try !live.contains(Self.said(line.text)) { faults.append("\(line.text) is not in the store") }
        }
    }

    private static func said(_ fields: String) throws -> String {
        let fields = try Fields.parse(fields).filter { !["id", "modified_at"].contains($0.name) }
        return Fields.text(fields.map { $0.name == "time" ? Field("time", "\"then\"") : $0 })
    }

    private func live() throws -> [(fields: String, said: String, isMade: Bool)] {
        try test.store.all().filter { !$0.isDeleted }.map { record in
            (record.fields, try Self.said(record.fields), DeterministicID.isMade(record.localID))
        }.sorted { $0.0 < $1.0 }
    }
}

@Suite struct EventDedupTests {
    private func importLog(_ lines: String..., into test: TestStore) throws {
        try writeFile("\(test.folder)/log.jsonl", lines.joined())
        test.clock.advance(seconds: 5 * 86400)
        _ = try Importer.run(["\(test.folder)/log.jsonl"], into: test.store, ImportOptions())
    }

    private func notes(_ store: Store) throws -> [String] {
        try store.all().filter { !$0.isDeleted }.compactMap {
            Fields.string("note", in: try Fields.parse($0.fields))
        }.sorted()
    }

    @Test func twoEventsWhoseLinesWereEqual_stayTwo_alsoAfterOneIsEdited() throws {
        for edited in [1, 2] {
            try withStore { test in
                try importLog(line("a"), line("a"), into: test)
                try importLog(line("a", id: 1), line("a", id: 2), into: test)
                #expect(try Deduplicator.run(on: test.store).batch == nil)
                #expect(try notes(test.store) == ["a", "a"])
                try importLog(
                    line(edited == 1 ? "edit" : "a", id: 1, modified: edited == 1 ? 1 : nil),
                    line(edited == 2 ? "edit" : "a", id: 2, modified: edited == 2 ? 1 : nil), into: test)
                #expect(try Deduplicator.run(on: test.store).batch == nil)
                #expect(try notes(test.store) == ["a", "edit"])
            }
        }
    }

    @Test func anEventIsNotItsOwnDuplicate_afterItsLineGotAnID() throws {
        try withStore { test in
            try importLog(line("a"), into: test)
            try importLog(line("a", id: 1), into: test)
            let result = try Deduplicator.run(on: test.store)
            #expect(result.folded == 0 && result.batch == nil && result.plan.isEmpty)
            #expect(try notes(test.store) == ["a"])
        }
    }

    /// Which line it was is known afterwards, and the others are other events.
    @Test func anEventIsOneLineWithoutAnID_andNotAllThatSayTheSame() throws {
        try withStore { test in
            try importLog(line("a", id: 1), into: test)
            try importLog(line("a"), line("a"), line("a"), into: test)
            #expect(try notes(test.store) == ["a", "a", "a"])
            #expect(try Deduplicator.run(on: test.store).folded == 1)
            #expect(try Deduplicator.run(on: test.store).batch == nil)
            #expect(try notes(test.store) == ["a", "a"])
        }
        // A log that has both has two events.
        try withStore { test in
            try importLog(line("a"), line("a", id: 1), into: test)
            #expect(try Deduplicator.run(on: test.store).batch == nil)
            #expect(try notes(test.store) == ["a", "a"])
        }
    }

    /// The event that a line was merged into is edited, and then the line gets an id of its own.
    @Test func aLineThatWasMerged_isAnEventAgainWhereNoOtherSaysSo() throws {
        for isEdited in [true, false] {
            try withStore { test in
                try importLog(line("a", id: 1), into: test)
                try importLog(line("a"), line("a"), into: test)
                #expect(try Deduplicator.run(on: test.store).folded == 1)
                let text = isEdited ? "edit" : "a"
                try importLog(line(text, id: 1, modified: 1), into: test)
                try importLog(line(text, id: 1, modified: 1), line("a", id: 2), into: test)
                #expect(try notes(test.store) == (isEdited ? ["a", "edit"] : ["a"]))
            }
        }
    }

    @Test func theRecordOfALineWithoutAnID_thatSaysSomethingElseByNow_isNoDuplicate() throws {
        try withStore { test in
            try importLog(line("a"), into: test)
            let made = try #require(try test.store.all().first)
            // An app, or a person who decides a conflict, changes the record.
            var other = made
            other.fields = made.fields.replacing("\"a\"", with: "\"edit\"")
            other.modifiedAt = time(90 * 86400)
            test.clock.advance(seconds: 100 * 86400)
            let id = "A0B1C2D3-E4F5-4A6B-8C7D-000000000011"
            let twin = Record(
                id: RecordID(zone: made.id.zone, name: id), type: RecordType.event, localID: id,
                fields: String(line("a", id: 1).dropLast()), createdAt: made.createdAt, modifiedAt: made.modifiedAt)
            try test.store.take(other, twin)
            #expect(try notes(test.store) == ["a", "edit"])
            #expect(try Deduplicator.run(on: test.store).batch == nil)
            #expect(try notes(test.store) == ["a", "edit"])
        }
    }

    /// BACKUP_TOOL_SEED=N runs the history N first.
    @Test(arguments: testSeeds(isTorture ? 250 : 40))
    func aDedup_losesNoTextAndNoEdit_andIsDoneAfterTheFirst(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            let world = EventDedupWorld(seed, test)
            for _ in 0..<10 where world.faults.isEmpty { try world.step() }
            if !world.faults.isEmpty { print("BACKUP_TOOL_SEED=\(seed)\n" + world.story.joined(separator: "\n")) }
            #expect(world.faults.isEmpty)
        }
    }
}
