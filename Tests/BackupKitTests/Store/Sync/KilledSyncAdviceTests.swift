import TestSupport
import Testing

@testable import BackupKit

/// What `store check` says after a sync that was killed, and what its advice does to the other devices.
@Suite struct KilledSyncAdviceTests {
    @Test func afterAKilledSync_noAdviceCostsAConflict() throws {
        var limits = HubLimits.file
        limits.recordsPerPage = 1
        try withDevices("A", "B", limits: limits) { devices in
            for name in devices.names {
                let store = devices[name]
                _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
                    for number in 0..<4 { try place("Attachments/\(number).pdf", "\(number) of \(name)", in: store) }
                    return ((), summary: "")
                }
                let fields = "{\"citeKey\":\"k\",\"title\":\"The work of \(name)\"}"
                try store.take(record("work-\(name)", fields, type: RecordType.publication, zone: "Library"))
            }
            try devices.syncAll()
            // The works come after their conflict now.
            for name in devices.names {
                let fields = "{\"citeKey\":\"k\",\"title\":\"The work of \(name)\",\"note\":\"edited\"}"
                try devices[name].take(
                    record("work-\(name)", fields, at: 9_000_000, type: RecordType.publication, zone: "Library"))
            }
            try devices.syncAll()
            #expect(try devices.names.allSatisfy { try devices[$0].conflicts().count == 5 })
            var steps = 20
            var messages: Set<String> = []
            var isKilled = true
            while isKilled {
                countRounds()
                isKilled = try syncNewStore(killedAfter: steps, devices, &messages)
                steps += isTorture ? 1 : 11
            }
            #expect(messages.count == 1, "\(messages)")
            #expect(messages.first?.contains("the first sync did not finish") == true)
            try devices.syncAll()
            #expect(try devices.names.allSatisfy { try devices[$0].conflicts().count == 5 })
        }
    }

    /// Returns whether the sync was killed; then its store was checked, mended, and synced.
    private func syncNewStore(
        killedAfter steps: Int, _ devices: Devices, _ messages: inout Set<String>
    ) throws -> Bool {
        let path = "\(devices.folder)/new-\(steps).db"
        do {
            let store = try Store.create(path, clock: devices.clock.clock)
            if try Synchronizer(store, devices.hub).run(killedBefore: steps) != nil { return false }
        }
        for finding in try StoreCheck.run(path).findings where finding.code == .conflict {
            messages.insert(finding.message)
            #expect(finding.remedy?.contains("backup-tool sync") == true)
        }
        let store = try Store(path, .write, clock: devices.clock.clock)
        _ = try StoreMending.run(store, StoreMending.Options())
        _ = try Synchronizer(store, devices.hub).run()
        #expect(try store.conflicts().count == 5, "after \(steps) steps")
        #expect(try StoreCheck.run(store).findings.isEmpty)
        return true
    }

    @Test func aRepairRemovesAConflict_onThisDeviceOnly() throws {
        try withDevices("A", "B") { devices in
            for name in devices.names {
                let fields = "{\"citeKey\":\"k\",\"title\":\"The work of \(name)\"}"
                try devices[name].take(record("work-\(name)", fields, type: RecordType.publication, zone: "Library"))
            }
            try devices.syncAll()
            let conflict = try #require(try devices["A"].all().first { $0.type == RecordType.conflict })
            let path = "\(devices.folder)/other.db"
            let other = try Store.create(path, clock: devices.clock.clock)
            try other.take(conflict)
            #expect(try StoreCheck.run(other).findings.first?.remedy?.contains("this store only") == true)
            _ = try StoreMending.run(other, StoreMending.Options())
            #expect(try other.all().isEmpty)
            _ = try Synchronizer(other, devices.hub, SyncOptions()).run()
            try devices.syncAll()
            #expect(try devices["A"].conflicts().count == 1 && other.conflicts().count == 1)
        }
    }
}
