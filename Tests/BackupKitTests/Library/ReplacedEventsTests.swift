import TestSupport
import Testing

@testable import BackupKit

/// Two devices without a hub may call one event by two names: one had its line before the app gave it an id.
@Suite struct ReplacedEventsTests {
    /// Imports some lines of one log, each in one of its forms.
    private func fill(_ device: String, _ devices: Devices, _ random: inout SeededGenerator) throws {
        for file in 0...random.below(3) {
            devices.clock.advance()
            let lines = (0..<4).filter { _ in random.chance(2) }.map { text in
                let id = random.chance(2) ? "\"id\":\"A0B1C2D3-E4F5-4A6B-8C7D-00000000000\(text)\"," : ""
                let note =
                    random.chance(4) ? ",\"note\":\"\(device)\(file)\",\"modified_at\":\"2026-02-14T16:00:00Z\"" : ""
                return "{\(id)\"time\":\"2026-02-14T15:0\(text):00+01:00\",\"type\":\"eten\"\(note)}\n"
            }
            let path = "\(devices.folder)/\(device)\(file).jsonl"
            try writeFile(path, lines.joined())
            _ = try Importer.run([path], into: devices[device], ImportOptions())
        }
    }

    private func counts(_ result: IntakeResult) -> [Int] {
        [result.added, result.updated, result.unchanged, result.protected, result.removed]
    }

    @Test(arguments: testSeeds(isTorture ? 250 : 40))
    func aReplaceGivesEventsTheNamesOfTheBackup(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B") { devices in
            for name in devices.names { try fill(name, devices, &random) }
            let (backup, store) = ("\(devices.folder)/backup", devices["B"])
            _ = try Exporter.export(devices["A"], to: backup, ExportOptions(form: .layout(.directory)))
            var options = RestoreOptions()
            options.mode = .replace
            options.dryRun = true
            let (before, wanted) = (try store.contentDigest(), try devices["A"].contentDigest())
            let plan = try Restorer.restore(backup, into: store, options)
            #expect(try store.contentDigest() == before)
            options.dryRun = false
            let done = try Restorer.restore(backup, into: store, options)
            #expect(counts(plan) == counts(done) && plan.findings == done.findings, "\(plan)\n\(done)")
            let told = Comment(rawValue: "\(try store.all())\n\(try devices["A"].all())")
            #expect(try store.contentDigest() == wanted, told)
            #expect(try Restorer.restore(backup, into: store, options).writes == 0)
            guard done.writes > 0 else { return }
            let batch = try #require(try store.undoable())
            #expect(try store.undoLast(batch.id).keptNewer.isEmpty && store.contentDigest() == before)
            #expect(try store.redoLast().keptNewer.isEmpty && store.contentDigest() == wanted)
        }
    }
}
