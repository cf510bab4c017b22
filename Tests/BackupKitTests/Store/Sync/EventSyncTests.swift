import TestSupport
import Testing

@testable import BackupKit

/// One log on several devices: as it was before its events had ids, with their ids, or with both forms of lines.
private struct LogWorld {
    /// How many events of each text the log has.
    private static let copies = [1, 2, 1]

    var random: SeededGenerator
    let devices: Devices
    var story: [String] = []
    private var logs = 0
    /// Logs that lack lines of others: no rule finds out then which lines are which, but none may be lost.
    private let hasPartialLogs: Bool
    /// Of each log and text: the ids, and how many lines have none.
    private var lines: [[(ids: Set<Int>, without: Int)]] = []
    private var edits = 0
    /// Of each text, how many of its events were edited before every device knew their ids.
    private var edited: Set<Int> = []

    private let hasNewHubs: Bool
    private var hubs = 1

    init(_ seed: UInt64, _ devices: Devices) {
        random = SeededGenerator(seed: seed)
        self.devices = devices
        hasPartialLogs = random.below(3) == 0
        hasNewHubs = random.chance(2)
    }

    /// The time of a text. The app that gives ids may write it in another form.
    private static func clocks(_ text: Int) -> [String] {
        ["15:0\(text):00+01:00", "15:0\(text)+01:00", "14:0\(text):00.000Z"]
    }

    private static func says(_ text: Int, _ event: Record) -> Bool {
        clocks(text).contains { event.fields.contains("T\($0)\"") }
    }

    private func line(_ text: Int, _ copy: Int?, created: Bool = false, lower: Bool = false, clock: Int = 0) -> String {
        let uuid = copy.map { "A0B1C2D3-E4F5-4A6B-8C7D-0000000000\(text)\($0)" }
        let id = uuid.map { "\"id\":\"\(lower ? $0.lowercased() : $0)\"," } ?? ""
        let times = created ? ",\"created_at\":\"2026-02-14T14:00:00+01:00\"" : ""
        let photo = text == 2 ? ",\"photo\":\"p.jpg\"" : ""
        return "{\(id)\"time\":\"2026-02-14T\(Self.clocks(text)[clock])\",\"type\":\"eten\"\(photo)\(times)}"
    }

    mutating func act() throws {
        let name = devices.names[random.below(devices.names.count)]
        devices.clock.advance()
        switch random.below(hasNewHubs ? 10 : 9) {
        case 0...3: try importLog(name)
        case 4: try edit(name)
        case 5: try importStranger(name)
        case 9:
            hubs += 1
            story.append("the hub is made anew")
            devices.hub = try FileHub.create("\(devices.folder)/hub\(hubs).db")
        default:
            story.append("\(name) syncs")
            try devices.sync(name)
        }
    }

    private mutating func importLog(_ name: String) throws {
        // A log that lacks lines and has both forms says that two lines are two events; nobody else can know that.
        let form = random.below(hasPartialLogs ? 2 : 3)
        var lines: [String] = []
        var counts = Self.copies.map { _ in (ids: Set<Int>(), without: 0) }
        for text in Self.copies.indices where random.below(3) > 0 {
            for copy in 0..<Self.copies[text] where !hasPartialLogs || random.chance(2) {
                let hasID = form == 1 || form == 2 && random.chance(2)
                let created = hasID && random.chance(2)
                let clock = hasID ? random.below(3) : 0
                lines.append(
                    line(text, hasID ? copy : nil, created: created, lower: random.chance(3), clock: clock))
                if hasID { counts[text].ids.insert(copy) } else { counts[text].without += 1 }
            }
        }
        self.lines.append(counts)
        let path = "\(devices.folder)/\(logs).jsonl"
        logs += 1
        try writeFile(path, lines.map { $0 + "\n" }.joined())
        // A log may come without its photo.
        let hasPhoto = random.below(3) > 0
        if hasPhoto { try writeFile("\(devices.folder)/p.jpg", Self.photo) }
        story.append("\(name) imports \(lines) \(hasPhoto)")
        defer { try? Directory.removeTree("\(devices.folder)/p.jpg") }
        _ = try Importer.run([path], into: devices[name], ImportOptions())
    }

    private static let photo = "the photo of 2"
    private static let strangersPhoto = "another photo of that name"

    /// A log of something else, with a photo of the same name.
    private mutating func importStranger(_ name: String) throws {
        let folder = "\(devices.folder)/stranger"
        if try FileStatus.ofName(folder) == nil { try Directory.create(folder) }
        try writeFile("\(folder)/p.jpg", Self.strangersPhoto)
        let line = #"{"id":"stranger","time":"2026-02-14T16:00:00+01:00","type":"eten","photo":"p.jpg"}"#
        try writeFile("\(folder)/log.jsonl", line + "\n")
        story.append("\(name) imports the stranger")
        _ = try Importer.run(["\(folder)/log.jsonl"], into: devices[name], ImportOptions())
    }

    private func judgePhotos(_ live: [Record], in store: Store) throws {
        for event in live where Self.says(2, event) || event.localID == "stranger" {
            let photo = event.localID == "stranger" ? Self.strangersPhoto : Self.photo
            for path in try Store.links(of: event) {
                guard let found = try store.asset(path)?.digest else { continue }
                #expect(
                    found == SHA256Digest.of(photo),
                    "\(event.fields)\n\(store.path)\n\(story.joined(separator: "\n"))")
            }
        }
    }

    /// A person writes a note.
    private mutating func edit(_ name: String) throws {
        let events = try devices[name].all().filter { !$0.isDeleted && $0.type == RecordType.event }
        guard let event = events.isEmpty ? nil : events[random.below(events.count)] else { return }
        edits += 1
        var record = event
        let fields = try Fields.parse(event.fields).filter { $0.name != "note" }
        record.fields = Fields.text(fields + [Field("note", .string("n\(edits)"))])
        record.modifiedAt = devices.clock.now
        story.append("\(name) writes n\(edits) into \(event.id.name) \(event.fields)")
        for text in Self.copies.indices where Self.says(text, event) { edited.insert(text) }
        try devices[name].write { try devices[name].put(record, replacing: try devices[name].record(event.id)) }
    }

    private func expected(_ text: Int) -> Int {
        let all = lines.reduce(into: Set<Int>()) { $0.formUnion($1[text].ids) }
        return all.count
            + lines.map { max(0, $0[text].without - all.subtracting($0[text].ids).count) }.reduce(0, max)
    }

    func judge() throws {
        try devices.syncAll(rounds: 3)
        let first = try devices.stores[0].all()
        for store in devices.stores {
            let live = try store.all().filter { !$0.isDeleted && $0.type == RecordType.event }
            for text in Self.copies.indices {
                let count = live.count { Self.says(text, $0) }
                let expected = expected(text)
                // What was edited first does not say any more which line it was.
                #expect(
                    count == expected || count > expected && (hasPartialLogs || edited.contains(text)),
                    "text \(text): \(count) of \(expected)\n\(story.joined(separator: "\n"))\n\(live.map { "\($0.id.name) \($0.localID) \($0.fields)" }.joined(separator: "\n"))"
                )
            }
            #expect(
                edits == 0 || live.contains { $0.fields.contains("\"n\(edits)\"") },
                "the last note is lost\n\(story.joined(separator: "\n"))")
            try judgePhotos(live, in: store)
            #expect(try store.all() == first, "\(story.joined(separator: "\n"))")
            #expect(try StoreCheck.run(store).findings.isEmpty)
        }
        for device in devices.names {
            let result = try devices.sync(device)
            #expect(result.pulled == 0 && result.pushed == 0 && result.joined == 0)
        }
    }
}

@Suite struct EventSyncTests {
    @Test(arguments: testSeeds(isTorture ? 300 : 60))
    func oneLogOnSeveralDevices_isAsManyEventsOnAllOfThem(seed: UInt64) throws {
        countRounds()
        try withDevices("A", "B", "C") { devices in
            var world = LogWorld(seed, devices)
            for _ in 0...world.random.below(9) { try world.act() }
            try world.judge()
        }
    }

    /// One device has the log with its photo, the other one has the other form of it, and no photo.
    @Test(arguments: [true, false], [true, false])
    func anEventThatIsJoined_keepsItsPhoto(aHasIDs: Bool, photoIsOnA: Bool) throws {
        try withDevices("A", "B") { devices in
            func take(on name: String, hasID: Bool, hasPhoto: Bool) throws {
                devices.clock.advance()
                let folder = "\(devices.folder)/\(name)"
                try Directory.create(folder)
                let id = hasID ? "\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-000000000001\"," : ""
                try writeFile(
                    "\(folder)/log.jsonl",
                    "{\(id)\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\"photo\":\"p.jpg\"}\n")
                if hasPhoto { try writeFile("\(folder)/p.jpg", "its photo") }
                _ = try Importer.run(["\(folder)/log.jsonl"], into: devices[name], ImportOptions())
            }
            try take(on: "A", hasID: aHasIDs, hasPhoto: photoIsOnA)
            try take(on: "B", hasID: !aHasIDs, hasPhoto: !photoIsOnA)
            try devices.syncAll(rounds: 3)
            for store in devices.stores {
                let live = try store.all().filter { !$0.isDeleted && $0.type == RecordType.event }
                #expect(live.count == 1, "\(live.map(\.fields))")
                let path = try #require(try live.flatMap { try Store.links(of: $0) }.first)
                #expect(try store.asset(path)?.digest == SHA256Digest.of("its photo"), "\(live.map(\.fields))")
            }
        }
    }

    /// One device has an event with its photo, and the other one took its line alone, beside a photo of that name of its own.
    @Test(arguments: [["A", "B"], ["B", "A"]])
    func anEventWithItsPhoto_keepsIt_whenTheOtherDeviceHasTheLineAlone(_ order: [String]) throws {
        try withDevices("A", "B") { devices in
            func take(_ name: String, _ event: String, photo: String?) throws {
                devices.clock.advance()
                let folder = "\(devices.folder)/\(name)\(event)"
                try Directory.create(folder)
                try writeFile(
                    "\(folder)/log.jsonl",
                    "{\"id\":\"\(event)\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\"photo\":\"p.jpg\"}\n"
                )
                if let photo { try writeFile("\(folder)/p.jpg", photo) }
                _ = try Importer.run(["\(folder)/log.jsonl"], into: devices[name], ImportOptions())
            }
            try take("A", "one", photo: "the photo of one")
            try take("B", "two", photo: "the photo of two")
            try take("B", "one", photo: nil)
            for name in order + order + order { try devices.sync(name) }
            for store in devices.stores {
                for event in try store.all() where !event.isDeleted && event.type == RecordType.event {
                    let path = try #require(try Store.links(of: event).first)
                    #expect(
                        try store.asset(path)?.digest == SHA256Digest.of("the photo of \(event.localID)"),
                        "\(event.fields)")
                }
                try checkSound(store.path)
            }
        }
    }

    /// Its record may have given way to that of another device.
    @Test(arguments: [true, false], [["A", "B", "A"], ["B", "A", "B"]])
    func theUndoOfAnImport_namesTheEventThatASyncHasJoined(aHasIDs: Bool, order: [String]) throws {
        try withDevices("A", "B") { devices in
            for name in devices.names {
                devices.clock.advance()
                let id = (name == "A") == aHasIDs ? "\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-000000000001\"," : ""
                try writeFile(
                    "\(devices.folder)/\(name).jsonl",
                    "{\(id)\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n")
                _ = try Importer.run(["\(devices.folder)/\(name).jsonl"], into: devices[name], ImportOptions())
            }
            for name in order + order { try devices.sync(name) }
            for store in devices.stores {
                let result = try store.undoLast()
                #expect(result.removed == 0 && result.keptNewer.count == 1, "\(store.path): \(result)")
                #expect(try store.all().count { !$0.isDeleted } == 1)
            }
        }
    }

    /// A device that has not synced yet has the event under its id in another case.
    @Test(arguments: [false, true]) func aDeleteIsOfTheEventWhoseIDIsInOtherCase(isOther: Bool) throws {
        try withDevices("A", "B") { devices in
            let id = "a0b1c2d3-e4f5-4a6b-8c7d-000000000001"
            func take(_ id: String, on name: String) throws {
                let path = "\(devices.folder)/\(name).jsonl"
                try writeFile(path, "{\"id\":\"\(id)\",\"time\":\"2020-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n")
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            try take(id, on: "B")
            try devices.sync("B")
            devices.clock.advance()
            _ = try devices["B"].curate(.delete, [id])
            try devices.sync("B")
            try take(isOther ? id.uppercased() : id, on: "A")
            try devices.syncAll(rounds: 2)
            for store in devices.stores {
                #expect(try !store.all().contains { $0.type == RecordType.event && !$0.isDeleted })
            }
        }
    }

    /// Two lines of one text, of which one is that of the id.
    @Test func anIDInOtherCase_isNoNewEvent() throws {
        try withDevices("A", "B", "C") { devices in
            func take(_ ids: [String?], on name: String) throws {
                devices.clock.advance()
                let path = "\(devices.folder)/\(name).jsonl"
                let lines = ids.map { id in
                    "{\(id.map { "\"id\":\"\($0)\"," } ?? "")\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n"
                }
                try writeFile(path, lines.joined())
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            let id = "a0b1c2d3-e4f5-4a6b-8c7d-000000000001"
            try take([id], on: "C")
            for name in ["C", "B"] { try devices.sync(name) }
            try take([nil, nil], on: "B")
            try take([id.uppercased()], on: "A")
            try devices.syncAll(rounds: 3)
            for store in devices.stores { #expect(try store.all().count { !$0.isDeleted } == 2) }
        }
    }

    /// Each device has heard of one id, or of both in another order.
    @Test(arguments: [["0"], ["0", "1"]], [["1"], ["1", "0"]])
    func twoIDsForOneLine_areTwoEvents(onA: [String], onB: [String]) throws {
        try withDevices("A", "B") { devices in
            var files = 0
            func take(_ lines: [String], on name: String) throws {
                devices.clock.advance()
                files += 1
                let path = "\(devices.folder)/\(files).jsonl"
                try writeFile(path, lines.map { $0 + "\n" }.joined())
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            let rest = "\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}"
            let count = max(onA.count, onB.count)
            try take(Array(repeating: "{\(rest)", count: count), on: "A")
            for name in ["A", "B"] { try devices.sync(name) }
            for (name, ids) in [("A", onA), ("B", onB)] {
                for id in ids { try take(["{\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-00000000000\(id)\",\(rest)"], on: name) }
            }
            for name in ["A", "B", "A", "B"] { try devices.sync(name) }
            for name in devices.names {
                let live = try devices[name].all().filter { !$0.isDeleted }
                #expect(live.count == 2 && Set(live.map(\.localID)).count == 2, "\(live.map(\.fields))")
                for event in live { #expect(event.fields.contains(event.localID)) }
            }
        }
    }

    /// Another device has given the line's event another id of the log, and has the event of this id by itself.
    @Test func aNote_outlivesTheIDThatAnotherDeviceGaveItsEvent() throws {
        try withDevices("A", "B") { devices in
            func take(_ ids: [String], on name: String) throws {
                devices.clock.advance()
                let path = "\(devices.folder)/\(name).jsonl"
                let lines = ids.map { id in
                    let given = id.isEmpty ? "" : "\"id\":\"\(id)-C7D0-4A6B-8C7D-000000000001\","
                    return "{\(given)\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n"
                }
                try writeFile(path, lines.joined())
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            // Of these two the sync takes the first in the order of bytes, the import the first in the log.
            let ids = ["b0b1c2d3", "A0B1C2D3"]
            try take(ids, on: "A")
            try take([""], on: "B")
            try devices.sync("B")
            try take(ids, on: "B")
            devices.clock.advance()
            var event = try #require(try devices["B"].all().first { $0.localID.hasPrefix(ids[0]) })
            event.fields = Fields.text(try Fields.parse(event.fields) + [Field("note", "\"it\"")])
            event.modifiedAt = devices.clock.now
            try devices["B"].write { try devices["B"].put(event, replacing: try devices["B"].record(event.id)) }
            try devices.syncAll(rounds: 3)
            for store in devices.stores {
                let live = try store.all().filter { !$0.isDeleted }
                #expect(live.count == 2 && live.contains { $0.fields.contains("\"it\"") }, "\(live.map(\.fields))")
            }
        }
    }

    @Test func aNote_outlivesTheJoinOfAnEvent_whoseIDCameInBothCases() throws {
        try withDevices("A", "B", "C") { devices in
            func take(_ id: String, on name: String) throws {
                devices.clock.advance()
                let path = "\(devices.folder)/\(name).jsonl"
                try writeFile(path, "{\(id)\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}\n")
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            try take("", on: "A")
            try take("\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-000000000001\",", on: "C")
            try devices.sync("C")
            try take("\"id\":\"a0b1c2d3-e4f5-4a6b-8c7d-000000000001\",", on: "B")
            try devices.sync("B")
            devices.clock.advance()
            var event = try #require(try devices["C"].all().first)
            event.fields = Fields.text(try Fields.parse(event.fields) + [Field("note", "\"it\"")])
            event.modifiedAt = devices.clock.now
            try devices["C"].write { try devices["C"].put(event, replacing: try devices["C"].record(event.id)) }
            for name in ["A", "C", "A", "B"] { try devices.sync(name) }
            for name in devices.names {
                let live = try devices[name].all().filter { !$0.isDeleted }
                #expect(live.count == 1 && live.allSatisfy { $0.fields.contains("\"note\"") }, "\(name): \(live)")
            }
        }
    }

    /// One of the two is on the hub, and was written again since.
    @Test func twoEventsThatOneLogNeeds_stayTwo_whenAnEventComes() throws {
        try withDevices("A", "B") { devices in
            func take(_ lines: String..., on name: String, as file: String) throws {
                devices.clock.advance()
                let path = "\(devices.folder)/\(file).jsonl"
                try writeFile(path, lines.map { $0 + "\n" }.joined())
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            }
            let rest = "\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"}"
            let line = "{\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-000000000001\",\(rest)"
            try take(line, on: "A", as: "first")
            try devices.sync("A")
            let store = devices["A"]
            var event = try #require(try store.all().first)
            event.modifiedAt = devices.clock.now
            try store.write { try store.put(event, replacing: try store.record(event.id)) }
            try take(line, "{\(rest)", on: "A", as: "second")
            try take("{\"id\":\"other\",\(rest.replacing("15:00", with: "16:00"))", on: "B", as: "third")
            for name in ["B", "A", "B"] { try devices.sync(name) }
            for name in devices.names { #expect(try devices[name].all().count { !$0.isDeleted } == 3) }
        }
    }
}
