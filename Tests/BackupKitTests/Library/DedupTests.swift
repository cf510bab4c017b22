import TestSupport
import Testing

@testable import BackupKit

extension Store {
    /// Rows as an app leaves them that makes a new record of every save; no import would.
    fileprivate func leave(_ records: [Record]) throws {
        try write { for record in records { try put(record, replacing: nil) } }
    }

    fileprivate func live() throws -> [Record] { try all().filter { !$0.isDeleted } }
}

private func save(_ number: Int64, of day: String = "D", zone: String = "Z", local: Bool = false) -> Record {
    record(
        "save\(number)", "{\"CD_date\":\"2026-02-01\",\"CD_line1\":\"os \(number)\"}", at: number, type: "CD_Daily",
        zone: zone, localID: day, local: local)
}

@Suite struct DedupTests {
    @Test func twentySixSavesBecomeOneRecordUnderTheOldestName() throws {
        try withStore { test in
            try test.store.leave((1...26).reversed().map { save($0) } + [save(1, of: "other", zone: "Y")])
            let before = try test.store.digest()
            let plan = try Deduplicator.run(on: test.store, dryRun: true)
            #expect(try test.store.digest() == before && plan.batch == nil)
            let result = try Deduplicator.run(on: test.store)
            #expect(result.records == 1 && result.folded == 25 && result.findings.isEmpty)
            #expect(result.plan == plan.plan && plan.plan.count == 26)
            let live = try test.store.live()
            #expect(live.map(\.id.description) == ["Y/save1", "Z/save1"])
            #expect(live[1].fields.contains("os 26") && live[1].createdAt == time(1) && live[1].localID == "D")
            #expect(try test.store.all().count { $0.isDeleted } == 25)
            let after = try test.store.digest()
            #expect(try Deduplicator.run(on: test.store).batch == nil)
            #expect(try test.store.digest() == after)
            _ = try test.store.undoLast(try #require(try test.store.undoable()).id)
            #expect(try test.store.digest() == before)
        }
    }

    @Test func aBackupOfWhatWasFoldedRestoresToTheSame() throws {
        try withStore { test in
            // One of the names is the local id itself, as an import would have made it.
            var named = save(3)
            named.id = RecordID(zone: "Z", name: "D")
            try test.store.leave([save(1), save(2), named])
            _ = try Deduplicator.run(on: test.store)
            let records = try test.store.all()
            #expect(records.count == 3)
            try withStore { other in
                other.clock.advance()
                // A restore reads the tombstones first.
                for record in records where record.isDeleted { try other.store.take(record) }
                for record in records where !record.isDeleted { try other.store.take(record) }
                #expect(try other.store.digest() == test.store.digest())
            }
        }
    }

    @Test func anotherDeviceThatHasAllTheNamesFoldsThemWhenItHears() throws {
        try withStore { test in
            var named = save(3)
            named.id = RecordID(zone: "Z", name: "D")
            let saves = [save(1), save(2), named]
            try test.store.leave(saves)
            _ = try Deduplicator.run(on: test.store)
            for tombstonesFirst in [true, false] {
                try withStore { other in
                    try other.store.leave(saves)
                    other.clock.advance()
                    for record in try test.store.all() where record.isDeleted == tombstonesFirst {
                        try other.store.take(record)
                    }
                    for record in try test.store.all() { try other.store.take(record) }
                    #expect(try other.store.digest() == test.store.digest())
                }
            }
        }
    }

    @Test func noOldVersionBringsAFoldedNameBack_andANewOneGoesToTheSurvivor() throws {
        try withStore { test in
            var named = save(3)
            named.id = RecordID(zone: "Z", name: "D")
            try test.store.leave([save(1), save(2), named])
            _ = try Deduplicator.run(on: test.store)
            let folded = try test.store.digest()
            for old in [save(1), save(2), named] { try test.store.take(old) }
            #expect(try test.store.digest() == folded)
            test.clock.advance(seconds: 100_000_000)
            for (number, name) in [(Int64(20_000_000), "save2"), (20_000_001, "D")] {
                var new = save(number)
                new.id = RecordID(zone: "Z", name: name)
                try test.store.take(new)
                let live = try test.store.live()
                #expect(live.map(\.id.name) == ["save1"] && live[0].fields.contains("os \(number)"))
            }
            // What is deleted under the surviving name is deleted under all.
            _ = try test.store.delete(["Z/save1"])
            for name in ["save2", "D"] {
                var old = save(30_000_000)
                old.id = RecordID(zone: "Z", name: name)
                try test.store.take(old)
                #expect(try test.store.live().isEmpty)
            }
        }
    }

    @Test func whatIsKeptOnThisDeviceOnlyIsNeverFoldedAway() throws {
        try withStore { test in
            var local = save(1, local: true)
            local.id = RecordID(zone: "Z", name: "local:D")
            try test.store.leave([local, save(2), save(3)])
            let result = try Deduplicator.run(on: test.store)
            #expect(result.folded == 1 && result.findings.map(\.code) == [.protected])
            #expect(try test.store.live().map(\.id.name) == ["local:D", "save2"])
            let untouched = try test.store.record(local.id)?.record
            #expect(untouched == local)
            #expect(try Deduplicator.run(on: test.store).batch == nil)
        }
    }

    @Test func recordsOfDifferentTypesAndZonesStayApart() throws {
        try withStore { test in
            var other = save(1)
            other.id = RecordID(zone: "Z", name: "monthly")
            other.type = "CD_Monthly"
            try test.store.leave([save(1), other, save(2, zone: "Shared")])
            let before = try test.store.digest()
            let result = try Deduplicator.run(on: test.store)
            #expect(result.folded == 0 && result.batch == nil && result.findings.map(\.severity) == [.warning])
            #expect(try test.store.digest() == before)
        }
    }

    @Test func publicationsKeepATextThatSaysWhatTheirFieldsSay() throws {
        try withStore { test in
            let texts = ["@misc{k, title = {A}, year = 1}", "@misc{k, title = {B}}"]
            let fields = [
                "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"A\",\"year\":\"1\",\"rawBibTeX\":\"\(texts[0])\"}",
                "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"B\",\"rawBibTeX\":\"\(texts[1])\"}",
            ]
            try test.store.leave(
                fields.enumerated().map {
                    record("p\($0)", $1, at: Int64($0), type: RecordType.publication, localID: "P")
                })
            _ = try Deduplicator.run(on: test.store)
            let merged = try Fields.parse(test.store.live()[0].fields)
            #expect(Fields.string("rawBibTeX", in: merged) == "@misc{k, title = {B}, year = 1}")
        }
    }

    /// Against a model that knows only: of each field the latest time counts, and at equal times the older name.
    @Test(arguments: 0..<12 as Range<UInt64>)
    func theFieldsAreThoseThatWereSetLast(run: UInt64) throws {
        let seed = testSeed() &+ run
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            var rows: [Record] = []
            for number in 0..<40 {
                var fields: [Field] = []
                var times: [String: Int64] = [:]
                for name in ["a", "b", "c", "d"] {
                    if !random.chance(3) { fields.append(Field(name, JSON(random.below(4)))) }
                    if random.chance(2) { times[name] = Int64(random.below(30)) }
                }
                var row = record(
                    "n\(number)", Fields.text(fields), at: Int64(random.below(30)), times: times,
                    localID: "L\(random.below(8))", local: random.chance(10), deleted: random.chance(10))
                row.createdAt = row.isDeleted ? row.createdAt : time(Int64(random.below(5)))
                rows.append(row.withoutRemains())
            }
            try test.store.leave(rows)
            let before = try test.store.digest()
            let result = try Deduplicator.run(on: test.store)
            let after = try test.store.all()
            for id in Set(rows.map(\.localID)) {
                let shared = rows.filter { $0.localID == id && !$0.isDeleted && !$0.isLocalOnly }
                    .sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) }
                guard let oldest = shared.first else { continue }
                let found = try #require(after.first { $0.id == oldest.id })
                #expect(try model(of: shared) == facts(of: found), "seed \(seed), \(id)")
                #expect(after.count { $0.localID == id && !$0.isDeleted && !$0.isLocalOnly } == 1, "seed \(seed)")
            }
            for local in rows where local.isLocalOnly { #expect(after.contains(local), "seed \(seed)") }
            let digest = try test.store.digest()
            for row in rows.shuffled(using: &random) where !row.isLocalOnly { try test.store.take(row) }
            #expect(try test.store.digest() == digest, "seed \(seed): an old version came back")
            #expect(try Deduplicator.run(on: test.store).batch == nil, "seed \(seed)")
            guard result.batch != nil else { return }
            _ = try test.store.undoLast(try #require(try test.store.undoable()).id)
            #expect(try test.store.digest() == before, "seed \(seed)")
        }
    }

    private func facts(of record: Record) throws -> [String: [String]] {
        var facts: [String: [String]] = [:]
        let fields = try Fields.parse(record.fields)
        for name in ["a", "b", "c", "d"] {
            let value = fields.first { $0.name == name }?.value
            let time = record.fieldTimes[name] ?? (value == nil ? nil : record.modifiedAt)
            facts[name] = [value ?? "none", time?.iso8601 ?? "never"]
        }
        return facts
    }

    private func model(of rows: [Record]) throws -> [String: [String]] {
        var model: [String: [String]] = [:]
        for row in rows {
            for (name, fact) in try facts(of: row) where fact[1] != "never" {
                if let known = model[name], known[1] >= fact[1], known[1] != "never" { continue }
                model[name] = fact
            }
        }
        for name in ["a", "b", "c", "d"] where model[name] == nil { model[name] = ["none", "never"] }
        return model
    }

    private let schema = """
        {"format": "backup-tool-schema", "formatVersion": 1, "version": 1, "entities": {"CD_Daily": {"key": ["CD_date"],
        "attributes": {"CD_date": {"type": "date"}, "CD_line1": {"type": "string", "optional": true}}},
        "CD_Memo": {"attributes": {"CD_text": {"type": "string"}}}}}
        """

    @Test func savesWithIdsOfTheirOwn_areOneRecordByTheKeyOfTheSchema() throws {
        var findings: [Finding] = []
        let schema = try Array(self.schema.utf8).withUnsafeBytes { try DataSchema(parsing: $0, &findings) }
        try withStore { test in
            var saves = (1...26).map { save($0, of: "id\($0)") }
            // The same day in other words; another day, another zone and a copy of this device only are none of them.
            saves[3].fields = "{\"CD_date\":\"2026-02-01T00:00:00Z\",\"CD_line2\":\"cl\"}"
            let others = [
                record("other", "{\"CD_date\":\"2026-02-02\"}", at: 1, type: "CD_Daily"),
                record("empty", "{\"CD_line1\":\"x\"}", at: 1, type: "CD_Daily"),
                save(30, of: "far", zone: "Y"), save(31, of: "mine", local: true),
                // The schema declares no key of these.
                record("memo1", "{\"CD_text\":\"x\"}", at: 1, type: "CD_Memo"),
                record("memo2", "{\"CD_text\":\"x\"}", at: 1, type: "CD_Memo"),
            ]
            try test.store.leave(saves + others)
            #expect(try Deduplicator.run(on: test.store).folded == 0)
            let before = try test.store.digest()
            let result = try Deduplicator.run(on: test.store, schema: schema)
            #expect(findings.isEmpty && result.records == 1 && result.folded == 25, "\(result)")
            let kept = try #require(try test.store.live().first { $0.id.name == "save1" })
            #expect(kept.fields.contains("os 26") && kept.fields.contains("\"cl\"") && kept.localID == "id1")
            #expect(try test.store.live().count == 7)
            // Whoever brings one of them again hears that it is gone.
            test.clock.advance()
            #expect(try test.store.take(saves[9]) == [.protect(.newerTombstone)])
            var renamed = saves[9]
            renamed.id = RecordID(zone: renamed.id.zone, name: "renamed")
            #expect(try test.store.take(renamed) == [.protect(.newerTombstone)])
            #expect(try Deduplicator.run(on: test.store, schema: schema).batch == nil)
            _ = try test.store.undoLast(try #require(try test.store.undoable()).id)
            #expect(try test.store.digest() == before)
        }
    }
}
