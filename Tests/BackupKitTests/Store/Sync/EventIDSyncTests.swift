import TestSupport
import Testing

@testable import BackupKit

/// One event whose line has its ids in several forms: the `localId` alone, an id beside it, and UUIDs in either case.
@Suite struct EventIDSyncTests {
    private static let said = "\"time\":\"2020-02-14T15:00:00+01:00\",\"type\":\"eten\""
    private static let id = "a0b1c2d3-e4f5-4a6b-8c7d-000000000001"

    private func take(_ line: String, on name: String, in devices: Devices) throws -> IntakeResult {
        devices.clock.advance()
        let path = "\(devices.folder)/\(name).jsonl"
        try writeFile(path, "{\(line)}\n")
        return try Importer.run([path], into: devices[name], ImportOptions())
    }

    private func living(_ store: Store) throws -> [Record] {
        try store.all().filter { $0.type == RecordType.event && !$0.isDeleted }
    }

    /// Each device brings the form that it has, in any order of imports and syncs. Where they are one event, it is one everywhere,
    /// and what a device has brought it never brings again.
    @Test(arguments: testSeeds(isTorture ? 300 : 40))
    func theFormsOfOneEvent_areOneOnAllDevices(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let hasLocalID = random.chance(2)
        let ids = [Self.id, Self.id.uppercased()]
        func form() -> String {
            let id = "\"id\":\"\(ids[random.below(2)])\","
            if !hasLocalID { return id + Self.said }
            return (random.chance(2) ? id : "") + "\"localId\":\"L-1\"," + Self.said
        }
        let names = ["A", "B", "C"]
        try withDevices("A", "B", "C") { devices in
            var lines: [String: String] = [:]
            var story: [String] = []
            for _ in 0..<8 {
                let name = names[random.below(3)]
                if random.chance(2) {
                    let line = form()
                    // A line never loses its id again.
                    if lines[name]?.contains("\"id\"") == true, !line.contains("\"id\"") { continue }
                    lines[name] = line
                    _ = try take(line, on: name, in: devices)
                    story.append("\(name): \(line)")
                } else {
                    try devices.sync(name)
                    story.append("sync \(name)")
                }
            }
            try devices.syncAll(rounds: 3)
            // Two devices may have one form each, and then 'dedup' is told.
            _ = try Deduplicator.run(on: devices["A"])
            try devices.syncAll(rounds: 2)
            let told = Comment(rawValue: "seed \(seed): \(story.joined(separator: "\n"))")
            for name in names {
                #expect(try living(devices[name]).count == (lines.isEmpty ? 0 : 1), told)
                guard let line = lines[name] else { continue }
                let again = try take(line, on: name, in: devices)
                #expect(again.added == 0, "\(name) again: \(again) \(told)")
            }
        }
    }

    /// A delete is of the event, whichever device has told the hub first, and in whichever case each writes the id.
    @Test(arguments: [["A", "B"], ["B", "A"]], [false, true])
    func anEventThatWasDeletedBeforeItWasSent_staysDeleted(order: [String], isOther: Bool) throws {
        try withDevices("A", "B") { devices in
            _ = try take("\"id\":\"\(Self.id)\",\(Self.said)", on: "A", in: devices)
            let id = isOther ? Self.id.uppercased() : Self.id
            _ = try take("\"id\":\"\(id)\",\(Self.said)", on: "B", in: devices)
            devices.clock.advance()
            _ = try devices["B"].curate(.delete, [id])
            for name in order { try devices.sync(name) }
            try devices.syncAll()
            for store in devices.stores { #expect(try living(store).isEmpty) }
        }
    }

    /// What a device has cleared stays cleared, whoever brings the line with its id in the other case.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func aNewerEdit_outlivesTheJoinOfTwoIDs(order: [String]) throws {
        try withDevices("A", "B") { devices in
            let edits =
                ["", ",\"note\":\"typo\",\"modified_at\":\"2020-03-10T10:00:00Z\""]
                + [",\"note\":null,\"modified_at\":\"2020-04-01T10:00:00Z\""]
            for edit in edits { _ = try take("\"id\":\"\(Self.id)\",\(Self.said)\(edit)", on: "A", in: devices) }
            _ = try take("\"id\":\"\(Self.id.uppercased())\",\(Self.said)", on: "B", in: devices)
            for name in order + order { try devices.sync(name) }
            let older = ",\"note\":\"older\",\"modified_at\":\"2020-03-20T10:00:00Z\""
            _ = try take("\"id\":\"\(Self.id.uppercased())\",\(Self.said)\(older)", on: "B", in: devices)
            try devices.syncAll()
            for store in devices.stores {
                let fields = try #require(living(store).first).fields
                #expect(fields.contains("2020-04-01") && !fields.contains("older"), "\(fields)")
            }
        }
    }

    /// A backup of before it got its id does not bring it back.
    @Test func anEventThatWasDeletedUnderItsID_isNotRestoredUnderItsLocalID() throws {
        try withDevices("A", "B") { devices in
            _ = try take("\"localId\":\"L-1\",\(Self.said)", on: "A", in: devices)
            let backup = "\(devices.folder)/backup"
            _ = try Exporter.export(devices["A"], to: backup, ExportOptions(form: .layout(.directory)))
            _ = try take("\"id\":\"\(Self.id)\",\"localId\":\"L-1\",\(Self.said)", on: "B", in: devices)
            devices.clock.advance()
            _ = try devices["B"].curate(.delete, [Self.id])
            _ = try Restorer.restore(backup, into: devices["B"], RestoreOptions())
            #expect(try living(devices["B"]).isEmpty)
        }
    }

    /// Nor does a sync, from a device that knows it by its `localId` alone, whichever of them the hub hears first, and in
    /// whichever case each writes the `localId`.
    @Test(arguments: [["A", "B"], ["B", "A"]], [false, true])
    func anEventThatWasDeletedUnderItsID_isDeletedUnderItsLocalID(order: [String], isEdited: Bool) throws {
        for other in ["L-1", Self.other, Self.other.uppercased()] {
            try withDevices("A", "B") { devices in
                _ = try take("\"localId\":\"\(other)\",\(Self.said)", on: "A", in: devices)
                let beside = "\"localId\":\"\(other.lowercased() == Self.other ? Self.other : other)\""
                _ = try take("\"id\":\"\(Self.id)\",\(beside),\(Self.said)", on: "B", in: devices)
                devices.clock.advance()
                _ = try devices["B"].curate(.delete, [Self.id])
                devices.clock.advance()
                let edit = ",\"note\":\"later\",\"modified_at\":\"\(devices.clock.now.iso8601)\""
                if isEdited { _ = try take("\"localId\":\"\(other)\",\(Self.said)\(edit)", on: "A", in: devices) }
                for name in order { try devices.sync(name) }
                try devices.syncAll()
                for store in devices.stores { #expect(try living(store).count == (isEdited ? 1 : 0)) }
            }
        }
    }

    private static let other = "b0b1c2d3-e4f5-4a6b-8c7d-000000000002"

    /// The other way round, by a sync as by a restore.
    @Test(arguments: [["A", "B"], ["B", "A"], []])
    func anEventThatWasDeletedUnderItsLocalID_isDeletedUnderItsID(order: [String]) throws {
        try withDevices("A", "B") { devices in
            _ = try take("\"id\":\"\(Self.id)\",\"localId\":\"L-1\",\(Self.said)", on: "A", in: devices)
            let backup = "\(devices.folder)/backup"
            _ = try Exporter.export(devices["A"], to: backup, ExportOptions(form: .layout(.directory)))
            _ = try take("\"localId\":\"L-1\",\(Self.said)", on: "B", in: devices)
            devices.clock.advance()
            _ = try devices["B"].curate(.delete, ["L-1"])
            guard !order.isEmpty else {
                _ = try Restorer.restore(backup, into: devices["B"], RestoreOptions())
                return #expect(try living(devices["B"]).isEmpty)
            }
            for name in order { try devices.sync(name) }
            try devices.syncAll()
            for store in devices.stores { #expect(try living(store).isEmpty) }
        }
    }

    /// The two forms met as two records.
    private func merged(_ edit: String, _ devices: Devices) throws {
        _ = try take("\"id\":\"\(Self.id)\",\"localId\":\"L-1\",\(Self.said)", on: "A", in: devices)
        try devices.sync("A")
        _ = try take("\"localId\":\"L-1\",\(Self.said)\(edit)", on: "B", in: devices)
        try devices.syncAll()
        devices.clock.advance()
        _ = try Deduplicator.run(on: devices["A"])
        try devices.syncAll()
    }

    @Test(arguments: ["", ",\"modified_at\":\"2020-03-10T10:00:00Z\""])
    func theLineWithoutTheID_saysMore(dated: String) throws {
        try withDevices("A", "B") { devices in
            try merged(",\"note\":\"mine\"\(dated)", devices)
            for store in devices.stores {
                let events = try living(store)
                #expect(events.count == 1 && events[0].fields.contains("mine"), "\(events)")
            }
        }
    }

    @Test func aLineWithoutTheID_editsTheEventThatItWasMergedInto() throws {
        try withDevices("A", "B") { devices in
            try merged("", devices)
            devices.clock.advance()
            let dates = ["2020-03-10T10:00:00Z", devices.clock.now.iso8601]
            for (number, date) in dates.enumerated() {
                let edit = ",\"note\":\"edit \(number)\",\"modified_at\":\"\(date)\""
                _ = try take("\"localId\":\"L-1\",\(Self.said)\(edit)", on: "B", in: devices)
                try devices.syncAll()
                for store in devices.stores {
                    let events = try living(store)
                    #expect(events.count == 1 && events[0].fields.contains("edit \(number)"), "\(events)")
                }
            }
        }
    }
}
