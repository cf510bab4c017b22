import TestSupport
import Testing

@testable import BackupKit

/// A dry run of a sync says what the run does, and changes nothing.
@Suite struct SyncRehearsalTests {
    private static let runs = isTorture ? 600 : 60

    /// All numbers and names, but for the paths of copies.
    private func said(_ result: SyncResult) -> [String] {
        [
            "\(result.pulled) pulled", "\(result.pushed) pushed", "\(result.merged) merged",
            "\(result.conflicts) conflicts", "\(result.clamped) clamped", "\(result.assetsFetched) fetched",
            "\(result.assetsSent) sent", "resynced \(result.resynced)",
        ] + result.held.map { "held \($0.id) \($0.kind) \($0.reason)" } + result.findings.map { "\($0)" }
    }

    private func state(_ world: World, _ number: Int) throws -> [String] {
        let store = world.devices[number]
        let files = try Directory.names(in: store.assetFolder).sorted()
        return [try "\(store.lastChange())", try "\(store.hubLink() as Any)", try "\(store.held())"] + files
    }

    @Test(arguments: testSeeds(4))
    func whateverTwoStoresAre_aDryRunSaysWhatTheRunDoes(seed: UInt64) throws {
        try withQuickFolder { folder in
            let template = try World.template(in: folder, recordsPerPush: 3)
            for run in 0..<(Self.runs / 4) {
                let place = "\(folder)/\(run)"
                countRounds()
                try Directory.create(place)
                let world = try World(seed: seed &+ UInt64(run), in: place, template: template)
                for _ in 0..<30 { try world.step() }
                for number in world.devices.indices {
                    try compare(world, number, "seed \(seed) run \(run)")
                }
                try Directory.removeTree(place)
            }
        }
    }

    private func compare(_ world: World, _ number: Int, _ place: String) throws {
        let hub = try #require(world.simulator.real as? FileHub)
        var options = SyncOptions(user: [nil, nil, "ann", "ben"][world.random.below(4)])
        options.changesUser = true
        options.sleep = { _ in }
        if world.random.chance(4) { try harmAttachment(world, number) }
        let before = try state(world, number)
        options.dryRun = true
        let dry = try said(Synchronizer.sync(world.devices[number], with: hub, options))
        #expect(try state(world, number) == before, "\(place): the dry run of device\(number) changed something")
        options.dryRun = false
        let run = try said(Synchronizer.sync(world.devices[number], with: hub, options))
        #expect(dry == run, "\(place), device\(number)")
    }

    /// A file of the store or the hub that is lost, or is not what it was.
    private func harmAttachment(_ world: World, _ number: Int) throws {
        let hubFiles = (world.simulator.real as? FileHub)?.path ?? ""
        let folder = world.random.chance(2) ? world.devices[number].assetFolder : "\(hubFiles).assets"
        guard try FileStatus.ofName(folder) != nil else { return }
        var files: [String] = []
        try Directory.walk(folder) { path, status in
            if status.isRegular, !path.hasPrefix(".") { files.append("\(folder)/\(path)") }
        }
        guard let file = files.sorted().first else { return }
        try Directory.removeTree(file)
        if world.random.chance(2) { try FileHandle.create(file).write("not what it was") }
    }
}
