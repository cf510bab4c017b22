import TestSupport
import Testing

@testable import BackupKit

/// The line of an event has one time for all that it says.
@Suite struct MergedLineTests {
    private func line(_ note: String, _ who: String, day: Int) -> String {
        "{\"id\":\"a\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\"note\":\"\(note)\",\"who\":\"\(who)\","
            + "\"modified_at\":\"2026-02-\(14 + day)T15:00:00+01:00\"}\n"
    }

    private func take(_ line: String, on name: String, _ devices: Devices, overwrite: Bool = false) throws
        -> IntakeResult
    {
        devices.clock.advance()
        let path = "\(devices.folder)/log.jsonl"
        try writeFile(path, line)
        var options = ImportOptions()
        options.overwrite = overwrite
        return try Importer.run([path], into: devices[name], options)
    }

    private func says(_ store: Store, _ words: String...) throws -> Bool {
        let live = try store.all().filter { !$0.isDeleted && $0.type == RecordType.event }
        return words.allSatisfy { word in live.count == 1 && live[0].fields.contains(word) }
    }

    /// Two devices have changed an event, and a sync has merged them. Each imports its own log again, as a nightly run does.
    @Test(arguments: ["AB", "BA", "BAAB", "AABB"])
    func aLogThatIsImportedAgain_takesBackNothingThatASyncHasMerged(_ order: String) throws {
        try withDevices("A", "B") { devices in
            _ = try take(line("one", "ann", day: 1), on: "A", devices)
            for _ in 0..<2 { for name in devices.names { try devices.sync(name) } }
            let logs = ["A": line("NEW", "ann", day: 2), "B": line("one", "BOB", day: 3)]
            for (name, log) in logs { #expect(try take(log, on: name, devices).updated == 1) }
            try devices.syncAll(rounds: 2)
            for name in order.map(String.init) {
                #expect(try says(devices[name], "NEW", "BOB"))
                let result = try take(logs[name] ?? "", on: name, devices)
                #expect(result.updated == 0 && result.added == 0 && result.findings.isEmpty, "\(name): \(result)")
                try devices.sync(name)
            }
            try devices.syncAll(rounds: 2)
            for store in devices.stores { #expect(try says(store, "NEW", "BOB")) }
            // What is written later, or asked for on purpose, is taken.
            #expect(try take(line("LATER", "BOB", day: 4), on: "B", devices).updated == 1)
            #expect(try take(logs["B"] ?? "", on: "B", devices, overwrite: true).updated == 1)
            #expect(try says(devices["B"], "one", "BOB"))
            try checkSound(devices["B"].path)
        }
    }

    /// Whoever goes back to an old value after the log has said the new one means it; and so does whoever asks for it.
    @Test(arguments: [false, true])
    func aLogThatHasSaidTheNewValue_mayGoBackToTheOldOne(isExact: Bool) throws {
        try withDevices("A", "B") { devices in
            for name in devices.names { _ = try take(line("one", "ann", day: 1), on: name, devices) }
            try devices.syncAll(rounds: 2)
            #expect(try take(line("NEW", "ann", day: 2), on: "A", devices).updated == 1)
            try devices.syncAll(rounds: 2)
            // The log of B says the old note again.
            #expect(try take(line("one", "BOB", day: 3), on: "B", devices).updated == 1)
            #expect(try says(devices["B"], "NEW", "BOB"))
            // Then the new one, in the very words of the store or in others; and then the old one.
            let heard = try #require(try devices["B"].all().first { $0.type == RecordType.event }).fields
            let now = isExact ? heard + "\n" : line("NEW", "bob", day: 4)
            #expect(try take(now, on: "B", devices).updated == (isExact ? 0 : 1))
            #expect(try take(line("one", "bob", day: 5), on: "B", devices).updated == 1)
            #expect(try says(devices["B"], "one", "bob"))
            try devices.syncAll(rounds: 2)
            for store in devices.stores { #expect(try says(store, "one", "bob")) }
        }
    }

    /// What counts is what the log said, and not what a sync has brought in between.
    @Test func aLogThatIsBehindTwice_takesBackNothing() throws {
        try withDevices("A", "B") { devices in
            for name in devices.names { _ = try take(line("one", "ann", day: 1), on: name, devices) }
            try devices.syncAll(rounds: 2)
            for (day, note) in [(2, "NEW"), (3, "NEWER")] {
                #expect(try take(line(note, "ann", day: day), on: "A", devices).updated == 1)
                try devices.syncAll(rounds: 2)
            }
            #expect(try take(line("one", "BOB", day: 4), on: "B", devices).updated == 1)
            #expect(try says(devices["B"], "NEWER", "BOB"))
            // The log of B has never said this.
            #expect(try take(line("NEW", "BOB", day: 5), on: "B", devices).updated == 1)
            #expect(try says(devices["B"], "NEW\"", "BOB"))
        }
    }

    /// An event that is still to come is no newer than what was written about it since.
    @Test func anUndatedLineOfAnEventToCome_isOlderThanAllThatIsDated() throws {
        try withDevices("A", "B") { devices in
            func line(_ note: String, _ who: String, day: Int?) -> String {
                "{\"id\":\"a\",\"time\":\"2026-12-24T15:00:00+01:00\",\"type\":\"eten\",\"note\":\"\(note)\",\"who\":\"\(who)\""
                    + (day.map { ",\"modified_at\":\"2026-02-\($0)T15:00:00+01:00\"" } ?? "") + "}\n"
            }
            for name in devices.names { _ = try take(line("one", "ann", day: nil), on: name, devices) }
            #expect(try take(line("one", "BOB", day: 15), on: "B", devices).updated == 1)
            #expect(try take(line("NEW", "ann", day: 16), on: "A", devices).updated == 1)
            try devices.syncAll(rounds: 2)
            for store in devices.stores { #expect(try says(store, "NEW", "BOB")) }
        }
    }

    /// Two devices have the event under its id in either case, and the sync makes one of both.
    @Test(arguments: [false, true])
    func aJoin_forgetsNothingThatALogHasSaid(isUpperFirst: Bool) throws {
        try withDevices("A", "B") { devices in
            let id = "aaaaaaaa-0000-4000-8000-00000000000a"
            func line(_ note: String, _ who: String, day: Int, on name: String) -> String {
                let own = (name == "A") == isUpperFirst ? id.uppercased() : id
                return self.line(note, who, day: day).replacing("\"id\":\"a\"", with: "\"id\":\"\(own)\"")
            }
            for name in devices.names { _ = try take(line("one", "ann", day: 1, on: name), on: name, devices) }
            #expect(try take(line("NEW", "ann", day: 2, on: "A"), on: "A", devices).updated == 1)
            for name in devices.names { try devices.sync(name) }
            #expect(try take(line("one", "BOB", day: 3, on: "B"), on: "B", devices).updated == 1)
            try devices.syncAll(rounds: 2)
            for store in devices.stores { #expect(try says(store, "NEW", "BOB")) }
        }
    }

    @Test func whatALogSaidOfAPurgedEvent_isForgotten() throws {
        try withDevices("A", "B") { devices in
            for name in devices.names { _ = try take(line("one", "ann", day: 1), on: name, devices) }
            try devices.syncAll(rounds: 2)
            _ = try take(line("NEW", "ann", day: 2), on: "A", devices)
            try devices.syncAll(rounds: 2)
            let store = devices["B"]
            #expect(try store.keysOfSaidValues().count == 1)
            _ = try store.delete(["a"])
            var options = PurgeOptions()
            options.ids = ["a"]
            _ = try Purge.run(store, options)
            #expect(try store.keysOfSaidValues().isEmpty)
        }
    }

    /// What a device's app says of one event: each edit changes one field, and moves the time of the whole line.
    private struct App {
        var values = ["note": "n0", "who": "w0", "place": "p0"]
        var day = 1

        var line: String {
            let said = values.sorted { $0.key < $1.key }.map { ",\"\($0.key)\":\"\($0.value)\"" }.joined()
            return "{\"id\":\"a\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\"\(said),"
                + "\"modified_at\":\"2026-02-\(14 + day)T15:00:00+01:00\"}\n"
        }
    }

    private enum Meeting: CaseIterable {
        case firstSync, newHub, backup, syncsBetween, backupsBetween

        var isBetween: Bool { self == .syncsBetween || self == .backupsBetween }
    }

    /// Restores a backup of the other device.
    private func restore(into name: String, _ devices: Devices) throws {
        devices.clock.advance()
        let path = "\(devices.folder)/backup-\(devices.clock.now.milliseconds)"
        _ = try Exporter.export(
            devices[name == "A" ? "B" : "A"], to: path, ExportOptions(form: .layout(.directory)))
        _ = try Restorer.restore(path, into: devices[name], RestoreOptions())
    }

    /// Devices that have the first line of an event each by itself edit it, and then meet. Each field is what was written last.
    @Test(arguments: testSeeds(isTorture ? 250 : 40))
    func aLineMakesNoFieldNewerThatItDoesNotChange(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let meeting = Meeting.allCases[random.below(Meeting.allCases.count)]
        try withDevices("A", "B") { devices in
            var apps = [App(), App()]
            var last = App().values
            for (name, app) in zip(devices.names, apps) {
                _ = try take(app.line, on: name, devices)
                if meeting == .newHub { try devices.syncAll(rounds: 1) }
            }
            if meeting.isBetween { try devices.syncAll(rounds: 2) }
            for edit in 1...2 + random.below(meeting.isBetween ? 12 : 4) {
                // The apps write on what they have written, and hear nothing of what a sync or a restore brings.
                if meeting.isBetween, random.chance(2) {
                    let name = devices.names[random.below(2)]
                    if meeting == .syncsBetween {
                        try devices.sync(name)
                    } else {
                        try restore(into: name, devices)
                    }
                }
                let number = random.below(2)
                let field = ["note", "who", "place"][random.below(3)]
                // Some go back to what was there at first.
                let first = String(field.prefix(1)) + "0"
                let isBack =
                    try random.chance(4) && apps[number].values[field] != first
                    && !says(devices[devices.names[number]], first)
                let value = isBack ? first : "\(field)\(edit)"
                apps[number].values[field] = value
                apps[number].day = edit + 1
                last[field] = value
                #expect(try take(apps[number].line, on: devices.names[number], devices).updated == 1)
            }
            switch meeting {
            case .firstSync, .syncsBetween, .backupsBetween: break
            case .newHub: devices.hub = try FileHub.create("\(devices.folder)/new.db")
            case .backup:
                let other = random.chance(2) ? "A" : "B"
                try restore(into: other, devices)
                for value in last.values { #expect(try says(devices[other], value), "\(value): \(apps)") }
            }
            try devices.syncAll(rounds: 2)
            for store in devices.stores {
                for value in last.values { #expect(try says(store, value), "\(meeting), \(value): \(apps)") }
            }
        }
    }
}
