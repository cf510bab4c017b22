import TestSupport
import Testing

@testable import BackupKit

/// How a sync merges, as a function of two records and what both knew.
@Suite struct SyncMergeTests {
    private func merge(_ local: Record, _ hub: Record, base: String? = nil) throws -> Record {
        let ancestor = base.map { Ancestor(fields: $0, modifiedAt: time(0)) }
        return try SyncMerge().merge(local, hub, base: ancestor)
    }

    @Test func whatOnlyOneSideChangedIsTakenWhateverTheTimesSay() throws {
        let mine = record("r", "{\"a\":2,\"b\":1}", at: 1)
        let theirs = record("r", "{\"a\":1,\"b\":2}", at: 9)
        #expect(try merge(mine, theirs, base: "{\"a\":1,\"b\":1}").fields == "{\"a\":2,\"b\":2}")
        #expect(try merge(theirs, mine, base: "{\"a\":1,\"b\":1}").fields == "{\"a\":2,\"b\":2}")
        #expect(try merge(mine, theirs).fields == "{\"a\":1,\"b\":2}")
    }

    @Test func aFieldThatWasSetBackOnPurposeWasNotLeftAlone() throws {
        let mine = record("r", "{\"a\":2}", at: 5, times: ["a": 5])
        let back = record("r", "{\"a\":1}", at: 9, times: ["a": 7])
        #expect(try merge(mine, back, base: "{\"a\":1}").fields == "{\"a\":1}")
        #expect(try merge(back, mine, base: "{\"a\":1}").fields == "{\"a\":1}")
        #expect(try merge(mine, record("r", "{\"a\":1}", at: 9), base: "{\"a\":1}").fields == "{\"a\":2}")
    }

    @Test func aFieldThatOneSideTookOutIsOut() throws {
        let without = record("r", "{\"b\":1}", at: 1)
        let with = record("r", "{\"a\":1,\"b\":2}", at: 2)
        #expect(try merge(without, with, base: "{\"a\":1,\"b\":1}").fields == "{\"b\":2}")
        #expect(try merge(with, without, base: "{\"a\":1,\"b\":1}").fields == "{\"b\":2}")
        // Without a base silence is no removal.
        #expect(try merge(without, with).fields == "{\"a\":1,\"b\":2}")
    }

    @Test func setsJoin_andWhatOneSideTookOutOfTheBaseIsOut() throws {
        let mine = record("r", "{\"tags\":[\"b\",\"c\"]}", at: 1)
        let theirs = record("r", "{\"tags\":[\"a\",\"b\",\"d\"]}", at: 2)
        #expect(try merge(mine, theirs, base: "{\"tags\":[\"a\",\"b\"]}").fields == "{\"tags\":[\"b\",\"d\",\"c\"]}")
        #expect(try merge(mine, theirs).fields == "{\"tags\":[\"a\",\"b\",\"d\",\"c\"]}")
    }

    @Test func equalTimesAreDecidedByTheDevice_thenByTheValue() throws {
        let left = record("r", "{\"a\":1}", at: 5, device: "pad")
        let right = record("r", "{\"a\":2}", at: 5, device: "phone")
        #expect(try merge(left, right).fields == "{\"a\":2}")
        #expect(try merge(right, left).fields == "{\"a\":2}")
        let (one, two) = (record("r", "{\"a\":1}", at: 5), record("r", "{\"a\":2}", at: 5))
        #expect(try merge(one, two).fields == merge(two, one).fields)
    }

    @Test func aDeleteWinsUnlessSomethingWasWrittenAfterIt() throws {
        let dead = record("r", at: 5, deleted: true)
        for seconds: Int64 in [4, 5, 6] {
            let live = record("r", "{\"a\":1}", at: seconds)
            #expect(try merge(live, dead).isDeleted == (seconds < 6))
            #expect(try merge(dead, live).isDeleted == (seconds < 6))
        }
        #expect(try merge(record("r", "{}", at: 1, times: ["a": 6]), dead).isDeleted == false)
        let later = record("r", at: 7, deleted: true)
        #expect(try merge(dead, later) == later && merge(later, dead) == later)
    }

    @Test func metadataJoinsToo_alsoWhereTheFieldsAreEqual() throws {
        var mine = record("r", "{\"a\":1}", at: 5, device: "pad")
        mine.createdAt = time(1)
        let theirs = record("r", "{\"a\" : 1}", at: 7, times: ["a": 3], device: "phone")
        let result = try merge(mine, theirs)
        #expect(result.fields == theirs.fields && result.createdAt == time(1) && result.modifiedAt == time(7))
        #expect(result.deviceID == "phone" && result.fieldTimes == ["a": time(5)])
    }

    /// Two devices that merge the same two versions come to the same, and merging again changes nothing.
    @Test(arguments: 0..<8)
    func theOrderIsTotal(part: UInt64) throws {
        let seed = testSeed() &+ part
        var random = SeededGenerator(seed: seed)
        // A record names the device of its newest field only, so which of two devices wrote a field at one instant is known
        // once: when their versions meet. Merging a second time is asked of records without a device.
        func side(_ devices: Int) -> Record {
            var fields: [Field] = []
            var times: [String: Int64] = [:]
            for name in ["a", "b", "tags", "c"] {
                if random.chance(3) { times[name] = Int64(random.below(4)) }
                if random.chance(4) { continue }
                let list = ["x", "y", "z"].filter { _ in random.chance(2) }.map { "\"\($0)\"" }.joined(separator: ",")
                fields.append(Field(name, name == "tags" ? "[\(list)]" : String(random.below(3))))
            }
            fields.shuffle(using: &random)
            return record(
                "r", random.chance(6) ? "{}" : Fields.text(fields), at: Int64(random.below(4)), times: times,
                device: devices == 0 ? nil : "d\(random.below(devices))")
        }
        func said(_ record: Record) throws -> String {
            var record = record
            let fields = try Fields.parse(record.fields).map { field -> Field in
                guard let list = try JSON(parsing: field.value).array else { return field }
                return Field(field.name, .array(list.sorted { $0.compact < $1.compact }))
            }
            record.fields = String(decoding: try Fields.canonical(Fields.text(fields)), as: UTF8.self)
            return
                "\(record.fields) \(record.fieldTimes.sorted { $0.key < $1.key }) \(record.modifiedAt) \(record.deviceID ?? "")"
        }
        for _ in 0..<300 {
            for devices in [0, 3] {
                let (one, two) = (side(devices), side(devices))
                let (left, right) = (try merge(one, two), try merge(two, one))
                #expect(try said(left) == said(right), "seed \(seed): \(one) \(two)")
                guard devices == 0 else { continue }
                #expect(try said(merge(left, two)) == said(left), "seed \(seed): \(one) \(two)")
                #expect(try said(merge(one, left)) == said(left), "seed \(seed): \(one) \(two)")
            }
        }
    }

    @Test func theTextOfAPublicationIsPutTogetherAgain() throws {
        try withDevices("A", "B") { devices in
            func bring(_ name: String, _ title: String, _ year: String) throws {
                devices.clock.advance()
                let now = devices.clock.now
                let raw = "@misc{k,\\n  title = {\(title)},\\n  year = {\(year)}\\n}"
                let fields =
                    "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"\(title)\",\"year\":\"\(year)\",\"rawBibTeX\":\"\(raw)\"}"
                try devices[name].take(
                    Record(
                        id: RecordID(zone: "Library", name: "P"), type: RecordType.publication, localID: "P",
                        fields: fields,
                        createdAt: now, modifiedAt: now))
            }
            func sync(_ name: String) throws {
                _ = try Synchronizer.sync(devices[name], with: devices.hub, SyncOptions())
            }
            try bring("A", "Old", "1999")
            for name in ["A", "B"] { try sync(name) }
            try bring("A", "New", "1999")
            try bring("B", "Old", "2020")
            for name in ["A", "B", "A"] { try sync(name) }
            let text = try Fields.strings(named: ["rawBibTeX"], of: try #require(try devices.shown("A", "P")))[0]
            #expect(text == "@misc{k,\n  title = {New},\n  year = {2020}\n}")
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }
}
