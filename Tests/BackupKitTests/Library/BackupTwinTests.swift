import TestSupport
import Testing

@testable import BackupKit

/// Backups with several records of one local id.
@Suite struct BackupTwinTests {
    private func save(_ name: String, _ localID: String, _ type: String, on device: String, _ devices: Devices) throws {
        devices.clock.advance()
        let now = devices.clock.now
        let id = RecordID(zone: "Z", name: name)
        let store = devices[device]
        let record = Record(
            id: id, type: type, localID: localID, fields: "{\"citeKey\":\"\(name)\",\"title\":\"\(name) of \(now)\"}",
            createdAt: now, modifiedAt: now)
        // As an app writes it: by its name.
        try store.write { try store.put(record, replacing: store.record(id)) }
    }

    private func delete(_ name: String, on device: String, _ devices: Devices) throws {
        devices.clock.advance()
        _ = try? devices[device].delete(["Z/\(name)"])
    }

    private func restored(_ backup: String, _ devices: Devices, into path: String) throws -> Store {
        // Nothing is of the future.
        devices.clock.advance()
        let store = try Store.create("\(devices.folder)/\(path).db", clock: devices.clock.clock)
        _ = try Restorer.restore(backup, into: store, RestoreOptions())
        return store
    }

    private func backUp(_ store: Store, _ devices: Devices, _ number: Int) throws -> String {
        let path = "\(devices.folder)/backup-\(number)"
        _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
        return path
    }

    @Test(arguments: ["Item", RecordType.publication])
    func aRecordBesideATombstoneOfItsLocalId_comesBack(_ type: String) throws {
        try withDevices("A", "B") { devices in
            try save("kept", "one", type, on: "A", devices)
            let early = try backUp(devices["A"], devices, 1)
            try save("gone", "one", type, on: "A", devices)
            try delete("gone", on: "A", devices)
            let late = try backUp(devices["A"], devices, 2)
            #expect(try restored(late, devices, into: "new").digest() == devices["A"].digest())
            // A store that knows the one that is alive, and not the tombstone.
            let older = try restored(early, devices, into: "older")
            _ = try Restorer.restore(late, into: older, RestoreOptions())
            #expect(try older.digest() == devices["A"].digest())
            #expect(try Restorer.restore(late, into: older, RestoreOptions()).writes == 0)
        }
    }

    /// Once two copies of one local id were kept on this device only.
    @Test(arguments: testSeeds(isTorture ? 150 : 20) + [791_256_810])
    func whateverHasOneLocalId_theBackupRestoresWhole(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B") { devices in
            var log: [String] = []
            for _ in 0..<14 {
                let (device, name) = (devices.names[random.below(2)], ["x", "y", "z"][random.below(3)])
                let type = random.chance(2) ? "Item" : RecordType.publication
                log.append("\(device) \(name) \(type)")
                switch random.below(8) {
                case 0..<3: try save("\(name)-\(type)", "id\(random.below(2))", type, on: device, devices)
                case 3, 4: try delete("\(name)-\(type)", on: device, devices)
                case 5: _ = try? devices[device].setLocal(["Z/\(name)-\(type)"])
                case 6: _ = try Deduplicator.run(on: devices[device])
                default: try devices.sync(device)
                }
            }
            for (number, name) in devices.names.enumerated() {
                let backup = try backUp(devices[name], devices, number)
                let new = try restored(backup, devices, into: "new-\(number)")
                #expect(try new.digest() == devices[name].digest(), "\(name), seed \(seed): \(log)")
                #expect(try Restorer.restore(backup, into: new, RestoreOptions()).writes == 0)
            }
        }
    }
}
