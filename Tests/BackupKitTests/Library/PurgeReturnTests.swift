import TestSupport
import Testing

@testable import BackupKit

/// What was purged stays deleted, whatever would bring it back.
@Suite struct PurgeReturnTests {
    private func purge(_ store: Store, _ names: [String]) throws {
        var options = PurgeOptions()
        options.ids = names
        _ = try Purge.run(store, options)
    }

    private func edit(_ store: Store, with records: [Record]) throws -> IntakeResult {
        let intake = Intake(store)
        intake.isEdit = true
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            for record in records { try intake.take(record) }
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    private func isAlive(_ store: Store, _ name: String) throws -> Bool {
        try store.all().contains {
            !$0.isDeleted && ($0.localID == name || $0.fields.contains("secret \(name).") || $0.id.name.hasPrefix(name))
        }
    }

    @Test(arguments: testSeeds(20)) func whatWasPurgedStaysDeleted_whateverBringsItBack(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            let store = test.store
            let names = (0..<6).map { "r\($0)" }
            let backup = names.map {
                record($0, "{\"text\":\"secret \($0).\"}", at: Int64.random(in: 0...9, using: &random))
            }
            test.clock.advance()
            try store.bringBack(backup, .honor)
            let gone = names.filter { _ in Bool.random(using: &random) }
            guard !gone.isEmpty else { return }
            if Bool.random(using: &random) { try store.bringBack(backup, .quarantine) }
            test.clock.advance()
            _ = try store.curate(.delete, gone)
            try purge(store, gone)
            // Also versions that somebody wrote since, under the record's name or its local id alone.
            var versions = backup + names.map { record($0, "{\"text\":\"secret \($0). later\"}", at: 1 << 30) }
            versions += gone.map { record("other-\($0)", "{\"text\":\"secret \($0).\"}", at: 1 << 30, localID: $0) }
            for _ in 0..<12 {
                test.clock.advance()
                let chosen = versions.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                switch Int.random(in: 0..<8, using: &random) {
                case 0: try store.bringBack(chosen, .resurrect)
                case 1: try store.bringBack(chosen, .honor)
                case 2: try store.bringBack(chosen, .resurrect, replace: true)
                case 3: try store.bringBack(chosen, .honor, replace: true)
                case 4: try store.bringBack(chosen, .quarantine)
                case 5:
                    let result = try edit(store, with: chosen)
                    let namesPurged = result.findings.contains { $0.code == .leftOut }
                    #expect(namesPurged == chosen.contains { gone.contains($0.localID) })
                case 6: _ = try? store.undoLast()
                default: _ = try? store.redoLast()
                }
                for name in gone {
                    #expect(try !isAlive(store, name), "\(name)")
                    #expect(throws: BackupError.self) { try Quarantine.enableCloud([name], in: store) }
                }
            }
        }
    }

    @Test func whatWasPurged_comesBack_whenThatIsAllowed_orBySync() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"text\":\"secret r.\"}")
            let backup = try devices["A"].all()
            devices.clock.advance()
            _ = try devices["A"].curate(.delete, ["r"])
            try purge(devices["A"], ["r"])
            #expect(try devices["A"].bringBack(backup, .resurrect).findings.map(\.code) == [.leftOut])
            #expect(try devices["A"].allowReturn(of: ["r"], dryRun: true).count == 1)
            #expect(try !isAlive(devices["A"], "r"))
            #expect(try devices["A"].allowReturn(of: ["r"]).count == 1)
            #expect(throws: BackupError.self) { try devices["A"].allowReturn(of: ["r"]) }
            #expect(try devices["A"].bringBack(backup, .resurrect).findings.isEmpty)
            #expect(try isAlive(devices["A"], "r"))

            try devices.syncAll()
            devices.clock.advance()
            _ = try devices["A"].curate(.delete, ["r"])
            try purge(devices["A"], ["r"])
            devices.clock.advance()
            try devices.edit("B", "r", "{\"text\":\"written since\"}")
            try devices.syncAll()
            #expect(try isAlive(devices["A"], "r"))
            // Deleted once more, it is a deleted record like any other.
            devices.clock.advance()
            _ = try devices["A"].curate(.delete, ["r"])
            #expect(try devices["A"].bringBack(backup, .resurrect).findings.isEmpty)
            #expect(try isAlive(devices["A"], "r"))
        }
    }
}
