import Glibc
import TestSupport
import Testing

@testable import BackupKit

extension Synchronizer {
    /// Nil when it was killed before that step of the store's database.
    func run(killedBefore step: Int) throws -> SyncResult? {
        struct Killed: Error {}
        var left = step
        store.database.beforeStep = {
            left -= 1
            if left <= 0 { throw Killed() }
        }
        defer { store.database.beforeStep = nil }
        do { return try run() } catch is Killed { return nil }
    }
}

/// What a store says of files that did not come because a sync was killed.
@Suite struct UnfinishedSyncTests {
    @Test func filesThatAKilledSyncDidNotBring_areNamedByExportsAndByTheNextSync() throws {
        try withDevices("A") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.lose(Papers.paths[0], on: "A")
            try papers.add("k2", "bytes of k2", at: Papers.paths[1], on: "A")
            try devices.sync("A")
            var (steps, waits, isKilled) = (1, 0, true)
            while isKilled {
                countRounds()
                let path = "\(devices.folder)/new-\(steps).db"
                do { _ = try Store.create(path, clock: devices.clock.clock) }
                isKilled = try sync(path, devices, killedAfter: steps).findings.isEmpty
                let (named, lacking) = try look(path)
                #expect(named == (isKilled ? lacking : []), "killed after \(steps)")
                waits += named.isEmpty ? 0 : 1
                if isKilled {
                    let told = try sync(path, devices).findings
                    #expect(told.map(\.subject) == [Papers.paths[0]] && told[0].severity == .warning, "\(told)")
                }
                #expect(try sync(path, devices).findings.isEmpty)
                let last = try look(path)
                #expect(last.named.isEmpty && last.lacking == [Papers.paths[0]])
                steps += isTorture ? 1 : 3
            }
            #expect(waits > 3)
        }
    }

    @Test func aHeldFileThatIsBackInItsPlace_isSentByTheNextSync() throws {
        try withDevices("A", "B") { devices in
            try Papers(devices).add("k1", "bytes of k1", on: "A")
            let file = "\(devices["A"].assetFolder)/\(Papers.paths[0])"
            #expect(rename(file, "\(devices.folder)/aside") == 0)
            #expect(try devices.sync("A").assetsSent == 0)
            #expect(try devices["A"].held().map(\.reason) == ["its file is not in the store's folder"])
            try writeFile(file, "other bytes")
            try devices.sync("A")
            #expect(try devices["A"].held().allSatisfy { $0.reason.contains("store adopt") })
            unlink(file)
            #expect(rename("\(devices.folder)/aside", file) == 0)
            #expect(try devices.sync("A").assetsSent == 1)
            #expect(try devices["A"].held().isEmpty)
            try devices.sync("B")
            #expect(try devices["B"].asset(Papers.paths[0]) != nil)
            #expect(try devices.sync("A").assetsSent == 0)
        }
    }

    /// Empty where it was killed.
    private func sync(_ path: String, _ devices: Devices, killedAfter steps: Int = .max) throws -> SyncResult {
        devices.clock.advance()
        let store = try Store(path, .write, clock: devices.clock.clock)
        return try Synchronizer(store, devices.hub).run(killedBefore: steps) ?? SyncResult()
    }

    /// The files that an export says did not come, and those that the store's publications link and that are not here.
    private func look(_ path: String) throws -> (named: Set<String>, lacking: Set<String>) {
        let store = try Store(path, .read)
        let publications = try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }
        let lacking = try publications.flatMap { try Store.links(of: $0) }.filter { try store.asset($0) == nil }
        var layout = try StoreLayout(store, ExportOptions(form: .layout(.directory)))
        try layout.gather()
        let told = layout.result.warnings.filter { $0.code == .linkMissing }
        #expect(told.count < 2 && layout.result.isComplete == told.isEmpty)
        return (Set(Papers.paths.filter { told.first?.message.contains($0) == true }), Set(lacking))
    }
}
