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
}
