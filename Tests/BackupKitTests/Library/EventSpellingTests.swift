import TestSupport
import Testing

@testable import BackupKit

/// An app that decodes the lines of a log and encodes them again, with an id, says the same in other words.
@Suite struct EventSpellingTests {
    private static let ids = (1...3).map { "7D1C3A52-0B7E-4C1A-9F63-0D2E5B8A7C1\($0)" }
    private static let created = "\"created_at\":\"2026-05-01T09:00:00+02:00\""
    private static let modified = "\"modified_at\":\"2026-05-02T09:00:00+02:00\""
    /// Of each pair the first is of a line without an id, and the second of one with an id, or the other way round.
    private static let spellings: [(one: String, other: String)] = [
        (time("08:00+02:00"), time("08:00:00+02:00")),
        (time("08:00+02:00"), time("08:00:00.000+02:00")),
        (time("08:00+02:00"), time("06:00:00Z")),
        (time("08:00+02:00"), time("06:00:00.000Z")),
        (time("08:00+02:00"), "\"time\":\"2026-05-01 08:00+02:00\""),
        ("\"time\":\"2026-05-01\"", time("00:00:00Z")),
        (time("08:00:00+02:00"), time("08:00:00+0200")),
        (time("08:00+02:00") + "," + created, time("08:00+02:00") + "," + created + "," + modified),
        (time("08:00+02:00") + "," + modified, time("08:00:00+02:00") + "," + created),
        (time("08:00+02:00") + ",\"grams\":1.0", time("08:00+02:00") + ",\"grams\":1"),
        (time("08:00+02:00") + ",\"grams\":150", time("08:00+02:00") + ",\"grams\":1.5E+2"),
        (time("08:00+02:00") + ",\"grams\":-0.0", time("08:00+02:00") + ",\"grams\":0"),
        (time("08:00+02:00") + ",\"note\":null", time("08:00+02:00")),
        (time("08:00+02:00") + ",\"at\":{\"x\":1.50,\"y\":null}", "\"at\":{\"x\":1.5}," + time("08:00+02:00")),
        (
            time("08:00+02:00") + ",\"end\":\"2026-05-01T09:30+02:00\"",
            time("08:00+02:00") + ",\"end\":\"2026-05-01T07:30:00Z\""
        ),
    ]
    /// What two lines say that are never one event.
    private static let others: [(one: String, other: String)] = [
        (time("08:00+02:00"), time("08:00:01+02:00")),
        (time("08:00+02:00"), time("08:00:00.001+02:00")),
        (time("08:00:00.0001+02:00"), time("08:00:00.0002+02:00")),
        (time("08:00+02:00"), time("08:00Z")),
        (
            time("08:00+02:00") + ",\"grams\":12345678901234567890",
            time("08:00+02:00") + ",\"grams\":12345678901234567891"
        ),
        (time("08:00+02:00") + ",\"grams\":1", time("08:00+02:00") + ",\"grams\":\"1\""),
        (time("08:00+02:00") + ",\"grams\":[1,null]", time("08:00+02:00") + ",\"grams\":[1]"),
        (time("08:00+02:00") + ",\"note\":\"\"", time("08:00+02:00")),
        (time("08:00+02:00") + ",\"note\":\"é\"", time("08:00+02:00") + ",\"note\":\"e\u{301}\""),
        (time("08:00+02:00") + ",\"note\":\"\\ud800\"", time("08:00+02:00") + ",\"note\":\"\\ud801\""),
        (time("08:00+02:00") + ",\"end\":\"2026-05-01\"", time("08:00+02:00") + ",\"end\":\"2026-05-01T00:00Z\""),
    ]

    private static func time(_ clock: String) -> String { "\"time\":\"2026-05-01T\(clock)\"" }

    private func line(_ rest: String, id: Int? = nil) -> String {
        "{\(id.map { "\"id\":\"\(Self.ids[$0])\"," } ?? "")\"type\":\"eten\",\(rest)}\n"
    }

    private func take(_ lines: String..., into test: TestStore) throws -> IntakeResult {
        try writeFile("\(test.folder)/log.jsonl", lines.joined())
        test.clock.advance(seconds: 3600)
        return try Importer.run(["\(test.folder)/log.jsonl"], into: test.store, ImportOptions())
    }

    private func live(_ test: TestStore) throws -> [String] {
        try test.store.all().filter { !$0.isDeleted }.map(\.fields).sorted()
    }

    private func pairs(_ spellings: [(one: String, other: String)]) -> [(one: String, other: String)] {
        spellings + spellings.map { ($0.other, $0.one) }
    }

    @Test func aLineThatGetsItsIDInOtherWords_isTheEventItWas() throws {
        for (one, other) in pairs(Self.spellings) {
            try withStore { test in
                _ = try take(line(one), into: test)
                let result = try take(line(other, id: 0), into: test)
                let fields = try live(test)
                #expect(result.added == 0 && fields.count == 1, "\(one) → \(other): \(fields)")
                #expect(fields.allSatisfy { $0.contains(Self.ids[0]) }, "\(one) → \(other): \(fields)")
                for known in [line(one), line(other, id: 0)] { #expect(try take(known, into: test).added == 0) }
                #expect(try live(test) == fields)
                #expect(try Deduplicator.run(on: test.store).batch == nil)
                try checkSound("\(test.folder)/store.db")
            }
        }
    }

    @Test func aLineWithoutAnID_isTheEventThatSaysSoInOtherWords() throws {
        for (one, other) in pairs(Self.spellings) {
            try withStore { test in
                _ = try take(line(other, id: 0), into: test)
                let (before, digest) = (try live(test), try test.store.digest())
                let result = try take(line(one), into: test)
                #expect(
                    result.added == 0 && result.unchanged == 1 && result.writes == 0, "\(other) → \(one): \(result)")
                #expect(try live(test) == before && test.store.digest() == digest)
                // A second line of one log is another event, in whichever words.
                _ = try take(line(one), line(other), into: test)
                #expect(try live(test).count == 2, "\(other) → \(one)")
                _ = try take(line(one), line(other), into: test)
                #expect(try live(test).count == 2, "\(other) → \(one)")
            }
        }
    }

    @Test func bothFormsInOneLog_areTwoEvents_whateverTheirWords() throws {
        for (one, other) in pairs(Self.spellings) {
            try withStore { test in
                for _ in 0..<2 {
                    _ = try take(line(one), line(other, id: 0), into: test)
                    #expect(try live(test).count == 2, "\(one), \(other)")
                }
            }
        }
    }

    /// Stores of earlier versions have both.
    @Test func aDedup_mergesWhatSaysTheSameInOtherWords_andNothingElse() throws {
        for (spellings, count) in [(Self.spellings, 1), (Self.others, 2)] {
            for (one, other) in pairs(spellings) {
                try withStore { test in
                    for text in [line(one), line(other, id: 0)] {
                        var bytes = text
                        let record = try bytes.withUTF8 { try EventLine.record(.init($0)) { _ in 1 } }
                        test.clock.advance(seconds: 3600)
                        try test.store.take(record)
                    }
                    #expect(try live(test).count == 2)
                    let result = try Deduplicator.run(on: test.store)
                    #expect(try result.folded == 2 - count && live(test).count == count, "\(one), \(other)")
                    #expect(try live(test).contains { $0.contains(Self.ids[0]) })
                    #expect(try Deduplicator.run(on: test.store).batch == nil)
                    #expect(try EventTwins(store: test.store).count(meetingSince: 2) == 0)
                }
            }
        }
    }

    @Test func linesThatSaySomethingElse_areTwoEvents_inEitherOrder() throws {
        for (one, other) in pairs(Self.others) {
            for isFirst in [true, false] {
                try withStore { test in
                    for text in isFirst ? [line(one), line(other, id: 0)] : [line(other, id: 0), line(one)] {
                        _ = try take(text, into: test)
                    }
                    #expect(try live(test).count == 2, "\(one), \(other)")
                }
            }
        }
    }

    @Test func ofEqualLines_eachGetsAnIDOfItsOwn_inOtherWords() throws {
        let (one, other) = Self.spellings[0]
        try withStore { test in
            _ = try take(line(one), line(one), into: test)
            let result = try take(line(other, id: 0), line(other, id: 1), line(other, id: 2), into: test)
            #expect(result.added == 1 && result.updated == 2, "\(result)")
            #expect(try live(test).count == 3)
            #expect(try take(line(one), line(one), line(one), into: test).added == 0)
        }
    }

    @Test func anEventThatIsKeptHere_staysAsItIs_whenItsLineGetsAnIDInOtherWords() throws {
        let (one, other) = Self.spellings[0]
        try withStore { test in
            _ = try take(line(one), into: test)
            _ = try test.store.setLocal([try #require(try test.store.all().first).id.description])
            let before = try test.store.all()
            let result = try take(line(other + "," + Self.modified, id: 0), into: test)
            #expect(result.added == 0 && result.protected == 1, "\(result)")
            #expect(try test.store.all() == before)
            // It is one event, and no other id is its own.
            let more = try take(line(other, id: 0), line(other, id: 1), into: test)
            #expect(try more.added == 1 && live(test).count == 2, "\(more)")
        }
    }
}
