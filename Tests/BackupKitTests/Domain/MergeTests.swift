import TestSupport
import Testing

@testable import BackupKit

/// The rules of merging, one test a rule.
@Suite struct MergeTests {
    private let now = time(1_000_000)

    private func decide(_ existing: Record?, _ incoming: Record, resurrect: Bool = false) throws -> Decision {
        try MergePolicy(resurrect: resurrect, now: now).decide(existing: existing, incoming: incoming)
    }

    private func merged(_ existing: Record, _ incoming: Record) throws -> Record? {
        if case .update(let record, _) = try decide(existing, incoming) { record } else { nil }
    }

    @Test(arguments: [1, 9]) func theOlderTimeOfCreationIsKept(mine: Int64) throws {
        for (local, other) in [(10, 20), (20, 10)] as [(Int64, Int64)] {
            var existing = record("a", "{\"x\":1}", at: local)
            var incoming = record("a", "{\"x\":2,\"y\":1}", at: other, times: ["x": other])
            (existing.createdAt, incoming.createdAt) = (time(mine), time(10 - mine))
            let decision = try MergePolicy(now: time(100)).decide(existing: existing, incoming: incoming)
            guard case .update(let merged, _) = decision else {
                Issue.record("\(decision)")
                return
            }
            #expect(merged.createdAt == time(1))
        }
    }

    @Test(arguments: [(1, 100), (100, 1)]) func theNewerSchemaVersionIsKept(mine: Int, theirs: Int) throws {
        var existing = record("a", "{\"x\":1}", at: 10)
        var incoming = record("a", "{\"x\":2}", at: 20)
        (existing.schemaVersion, incoming.schemaVersion) = (mine, theirs)
        #expect(try merged(existing, incoming)?.schemaVersion == 100)
    }

    @Test func aRecordNobodyKnowsIsAdded() throws {
        let new = record("a", "{\"x\":1}")
        #expect(try decide(nil, new) == .add(new))
    }

    @Test func theNewerFieldTimeWinsFieldByField() throws {
        let mine = record("a", "{\"x\":1,\"y\":1}", at: 9, times: ["x": 5, "y": 1])
        let theirs = record("a", "{\"x\":2,\"y\":2}", at: 8, times: ["x": 4, "y": 2])
        let result = try #require(try merged(mine, theirs))
        #expect(result.fields == "{\"x\":1,\"y\":2}")
        #expect(result.fieldTimes == ["x": time(5), "y": time(2)])
        #expect(result.modifiedAt == time(9))
        #expect(
            try decide(mine, theirs) == .update(result, [FieldChange(name: "y", before: "1", after: "2")]))
    }

    @Test func oneNameInTwoFormsOfUnicodeIsTwoFields() throws {
        let mine = record("a", "{\"\u{e9}\":1,\"e\u{301}\":2}", at: 5)
        let theirs = record("a", "{\"\u{e9}\":1,\"e\u{301}\":3,\"x\":4}", at: 9)
        let expected = "{\"\u{e9}\":1,\"e\u{301}\":3,\"x\":4}"
        #expect(try merged(mine, theirs).map { sameBytes($0.fields, expected) } == true)
        #expect(try sameBytes(SyncMerge().merge(mine, theirs, base: nil).fields, expected))
        #expect(try Fields.string("\u{e9}", in: Fields.parse("{\"e\u{301}\":\"x\"}")) == nil)
    }

    @Test func equalTimesKeepTheLocalValue() throws {
        #expect(try decide(record("a", "{\"x\":1}", at: 5), record("a", "{\"x\":2}", at: 5)) == .protect(.newer))
    }

    @Test func missingFieldTimesFallBackToTheRecordsOwn() throws {
        let timed = record("a", "{\"x\":1}", at: 9, times: ["x": 3])
        #expect(try merged(timed, record("a", "{\"x\":2}", at: 4))?.fields == "{\"x\":2}")
        #expect(try decide(record("a", "{\"x\":1}", at: 4), timed.with("{\"x\":2}")) == .protect(.newer))
    }

    @Test func aFieldThatAgreesKeepsTheNewerOfItsTimes() throws {
        let mine = record("a", "{\"x\":1,\"y\":1}", at: 1)
        let result = try #require(try merged(mine, record("a", "{\"x\":1,\"y\":2}", at: 7, times: ["x": 3])))
        #expect(result.fieldTimes == ["x": time(3)])
        #expect(try decide(result, record("a", "{\"x\":9,\"y\":2}", at: 2)) == .protect(.newer))
    }

    @Test(arguments: ["authors", "keywords", "tags", "collections"])
    func setsMergeByUnionInTheOrderOfTheNewerSide(name: String) throws {
        let mine = record("a", "{\"\(name)\":[\"p\", \"q\"]}", at: 5)
        #expect(
            try merged(mine, record("a", "{\"\(name)\":[\"r\",\"p\"]}", at: 4))?.fields
                == "{\"\(name)\":[\"p\",\"q\",\"r\"]}")
        #expect(
            try merged(mine, record("a", "{\"\(name)\":[\"r\",\"p\"]}", at: 6))?.fields
                == "{\"\(name)\":[\"r\",\"p\",\"q\"]}")
        #expect(
            try merged(mine, record("a", "{\"\(name)\":[\"q\",\"p\"]}", at: 6))?.fields == "{\"\(name)\":[\"q\",\"p\"]}"
        )
        // What adds nothing changes nothing, spaces in the text included.
        #expect(try decide(mine, record("a", "{\"\(name)\":[\"q\"]}", at: 4)) == .protect(.newer))
    }

    @Test func aSetThatIsNoArrayGoesByItsTime() throws {
        let mine = record("a", "{\"tags\":[\"p\"]}", at: 5)
        #expect(try merged(mine, record("a", "{\"tags\":\"x\"}", at: 6))?.fields == "{\"tags\":\"x\"}")
        #expect(try decide(mine, record("a", "{\"tags\":null}", at: 4)) == .protect(.newer))
    }

    @Test func fieldsNobodyKnowsSurviveAsTheyWereWritten() throws {
        let mine = record("a", "{\"odd\":{\"b\": 1.50, \"a\":\"\\u0041\"},\"x\":1}", at: 5)
        let result = try merged(mine, record("a", "{\"odd\":{\"a\":\"A\",\"b\":1.50},\"x\":2,\"new\":[ ]}", at: 6))
        #expect(result?.fields == "{\"odd\":{\"a\":\"A\",\"b\":1.50},\"x\":2,\"new\":[ ]}")
        let partly = try merged(mine.timed(["x": 1]), record("a", "{\"odd\":0,\"x\":2}", at: 4))
        #expect(partly?.fields == "{\"odd\":{\"b\": 1.50, \"a\":\"\\u0041\"},\"x\":2}")
    }

    @Test func aFieldThatOneSideDoesNotKnowIsKept() throws {
        let mine = record("a", "{\"x\":1,\"y\":1}", at: 5)
        #expect(try decide(mine, record("a", "{\"x\":1}", at: 6)) == .protect(.newer))
        #expect(try decide(mine, record("a", "{\"x\":1}", at: 4)) == .protect(.newer))
        #expect(try merged(mine, record("a", "{\"x\":1,\"z\":2}", at: 4))?.fields == "{\"x\":1,\"y\":1,\"z\":2}")
        #expect(try merged(mine, record("a", "{\"x\":3}", at: 6))?.fields == "{\"x\":3,\"y\":1}")
    }

    @Test func aFieldWhoseRemovalIsNewerGoesAndStaysAway() throws {
        let mine = record("a", "{\"x\":1,\"y\":1}", at: 5)
        let result = try #require(try merged(mine, record("a", "{\"x\":1}", at: 6, times: ["y": 6])))
        #expect(result.fields == "{\"x\":1}")
        #expect(result.fieldTimes["y"] == time(6))
        #expect(try decide(result, mine) == .protect(.newer))
        #expect(try decide(mine, record("a", "{\"x\":1}", at: 6, times: ["y": 4])) == .protect(.newer))
    }

    @Test func theTimeOfARemovalOutlivesLaterMerges() throws {
        let removed = record("a", "{\"x\":1}", at: 9, times: ["y": 5, "x": 1])
        let result = try #require(try merged(removed, record("a", "{\"x\":2}", at: 3, times: ["y": 2])))
        #expect(result.fieldTimes == ["x": time(3), "y": time(5)])
        #expect(try merged(result, record("a", "{\"x\":2,\"y\":7}", at: 6))?.fields == "{\"x\":2,\"y\":7}")
        #expect(try decide(result, record("a", "{\"x\":2,\"y\":7}", at: 4, times: ["x": 3])) == .protect(.newer))
    }

    @Test func equalContentInOtherFormattingIsUnchanged() throws {
        let mine = record("a", "{\"x\":\"A\",\"y\":[1]}", at: 5)
        #expect(try decide(mine, record("a", "{ \"y\" : [ 1 ], \"x\":\"\\u0041\" }", at: 9)) == .unchanged)
    }

    @Test func twoSpellingsOfOneAccentAreTwoValues() throws {
        let result = try merged(record("a", "{\"x\":\"\u{E9}\"}", at: 1), record("a", "{\"x\":\"e\u{301}\"}", at: 2))
        #expect(result.map { Array($0.fields.utf8) } == Array("{\"x\":\"e\u{301}\"}".utf8))
    }

    @Test func aTombstoneDeletesWhatIsNotNewer() throws {
        let mine = record("a", "{\"x\":1}", at: 5, times: ["x": 4])
        #expect(try decide(mine, record("a", at: 4, deleted: true)) == .protect(.newer))
        for seconds in [5, 6] as [Int64] {
            let tombstone = record("a", at: seconds, deleted: true)
            #expect(try decide(mine, tombstone) == .update(tombstone, []))
        }
        #expect(try decide(mine.timed(["x": 7]), record("a", at: 6, deleted: true)) == .protect(.newer))
    }

    @Test func whatIsNotNewerThanItsTombstoneStaysDead() throws {
        let tombstone = record("a", at: 5, deleted: true)
        for seconds in [4, 5] as [Int64] {
            #expect(try decide(tombstone, record("a", "{\"x\":1}", at: seconds)) == .protect(.newerTombstone))
        }
        let newer = record("a", "{\"x\":1}", at: 6)
        #expect(try decide(tombstone, newer) == .update(newer, [FieldChange(name: "x", before: nil, after: "1")]))
    }

    @Test func onRequestTheDeadComeBackNewerThanTheirTombstone() throws {
        let old = record("a", "{\"x\":1}", at: 4, times: ["x": 3])
        for deleted in [5, 2_000_000] as [Int64] {
            guard case .update(let back, _) = try decide(record("a", at: deleted, deleted: true), old, resurrect: true)
            else {
                Issue.record("not brought back")
                continue
            }
            #expect(back.modifiedAt > time(deleted) && back.modifiedAt >= now)
            #expect(back.fieldTimes.keys.sorted() == ["x"] && !back.isDeleted)
            #expect(back.fieldTimes.values.allSatisfy { $0 > time(deleted) && $0 < back.modifiedAt })
        }
    }

    @Test func theLaterOfTwoTombstonesStands() throws {
        let later = record("a", at: 6, deleted: true)
        #expect(try decide(record("a", at: 5, deleted: true), later) == .update(later, []))
        #expect(try decide(later, record("a", at: 5, deleted: true)) == .unchanged)
    }

    @Test func aTombstoneBringsNoDataIn() throws {
        var dirty = record("a", "{\"name\":\"secret\"}", at: 6, times: ["name": 2], device: "phone", deleted: true)
        dirty.createdAt = time(1)
        for existing in [nil, record("a", "{\"x\":1}", at: 5), record("a", at: 5, deleted: true)] {
            let stored: Record
            switch try decide(existing, dirty) {
            case .add(let record), .update(let record, _): stored = record
            default: throw BackupError(.failed, "not taken")
            }
            #expect(stored == record("a", at: 6, deleted: true))
        }
    }

    @Test func aLocalOnlyRecordIsProtectedFromTheCloud() throws {
        let mine = record("a", "{\"x\":1}", at: 1, local: true)
        #expect(try decide(mine, record("a", "{\"x\":2}", at: 9)) == .protect(.localOnly))
        #expect(try decide(mine, record("a", at: 9, deleted: true)) == .protect(.localOnly))
        #expect(try decide(mine, record("a", "{\"x\":1}", at: 9)) == .unchanged)
        // A backup of the local copy is not the cloud.
        #expect(try merged(mine, record("a", "{\"x\":2}", at: 9, local: true))?.isLocalOnly == true)
    }

    @Test func whatDependsOnMergedFieldsIsRecomputedOnlyWhenSomethingWasTaken() throws {
        func decide(_ seconds: Int64) throws -> Decision {
            try MergePolicy(now: now).decide(
                existing: record("a", "{\"x\":1}", at: 5), incoming: record("a", "{\"x\":2}", at: seconds)
            ) { fields, _, _ in fields + [Field("raw", "0")] }
        }
        #expect(try decide(4) == .protect(.newer))
        guard case .update(let result, let changes) = try decide(6) else { throw BackupError(.failed, "not merged") }
        #expect(result.fields == "{\"x\":2,\"raw\":0}")
        #expect(changes.map(\.name) == ["x", "raw"])
    }

    @Test func fieldsThatNobodyCouldReadAreRefused() {
        for fields in ["", "[]", "{", "{}x", "{\"a\":1,\"a\":2}"] {
            #expect(throws: BackupError.self) { try decide(nil, record("a", fields)) }
            #expect(throws: BackupError.self) { try decide(record("a", "{\"x\":1}"), record("a", fields, at: 9)) }
            #expect(throws: BackupError.self) { try decide(record("a", deleted: true), record("a", fields, at: 9)) }
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func mergingTheSameTwiceChangesNothingTheSecondTime(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let (mine, theirs) = (randomVersion(&random), randomVersion(&random))
            guard case .update(let once, _) = try decide(mine, theirs) else { continue }
            switch try decide(once, theirs) {
            case .unchanged, .protect: break
            case .add, .update: Issue.record("\(mine) and \(theirs)")
            }
        }
    }

    // Times that never tie and values that never repeat: the cases in which the rules decide alone.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func versionsOfARecordGiveTheSameWhateverTheOrder(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let versions = (1...5).map { randomVersion(&random, number: $0) }
        var digests: Set<String> = []
        for _ in 0..<6 {
            let order = versions.shuffled(using: &random)
            var state: Record?
            for version in order {
                switch try decide(state, version) {
                case .add(let record), .update(let record, _): state = record
                case .unchanged, .protect: break
                }
            }
            let final = try #require(state)
            digests.insert(
                final.isDeleted ? "deleted at \(final.modifiedAt.milliseconds)" : final.fields.sorted().description)
        }
        #expect(digests.count == 1)
    }
}

extension Record {
    fileprivate func with(_ fields: String) -> Record {
        var copy = self
        copy.fields = fields
        return copy
    }

    fileprivate func timed(_ times: [String: Int64]) -> Record {
        var copy = self
        copy.fieldTimes = times.mapValues(time)
        return copy
    }
}

/// A version of record "a": with a number, all its times and values are its own.
private func randomVersion(_ random: inout SeededGenerator, number: Int? = nil) -> Record {
    let unit = number.map(Int64.init) ?? Int64(random.below(8))
    let at = number.map { Int64($0) * 1000 } ?? Int64(random.below(8))
    if number == nil && random.chance(6) { return record("a", at: at, deleted: true) }
    var members: [String] = []
    var times: [String: Int64] = [:]
    for name in ["p", "q", "r"] {
        members.append("\"\(name)\":\(number == nil ? random.below(3) : random.below(1000) * 10 + Int(unit))")
        if random.chance(2) { times[name] = Int64(random.below(900)) + at - (number == nil ? 4 : 900) }
    }
    return record("a", "{\(members.joined(separator: ","))}", at: at, times: times)
}
