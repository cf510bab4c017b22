import TestSupport
import Testing

@testable import BackupKit

/// Whatever was done with a work before it was deleted: after a purge no file of its store holds a word of it.
@Suite struct PurgeRandomTests {
    private static let secret = "SECRETWORD"

    @Test(arguments: testSeeds(isTorture ? 150 : 30)) func afterAnyHistory_noFileOfTheStoreHoldsWhatWasPurged(
        seed: UInt64
    ) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B") { devices in
            let store = devices["A"]
            var backup: [Record] = []
            var story: [String] = []
            try importWork("A", 0, devices)
            for _ in 0..<random.below(10) {
                devices.clock.advance(seconds: 60)
                let step = random.below(11)
                story.append("\(step)")
                let live = try secrets(of: store)
                switch step {
                case 0: try importWork("A", random.below(3), devices)
                case 1: try importWork("A", random.below(3), devices, overwrite: true)
                case 2: _ = try? store.keepOnThisDevice(Array(live.prefix(1)))
                case 3: _ = try? Quarantine.enableCloud(Array(live.prefix(1)), in: store)
                case 4: _ = try? store.curate(.delete, Array(live.suffix(1)))
                case 5: _ = try? store.undoLast()
                case 6: _ = try? store.redoLast()
                case 7:
                    if backup.isEmpty { backup = try store.all() } else { _ = try store.bringBack(backup, .quarantine) }
                case 8:
                    guard let conflict = try store.conflicts().first else { break }
                    let choices = conflict.isAboutAssets ? ConflictChoice.forAssets : ConflictChoice.allCases
                    let choice = choices[random.below(choices.count)]
                    _ = try? ConflictResolver.resolve([conflict.id], with: choice, in: store)
                case 9: try sync("A", devices)
                default:
                    try importWork("B", random.below(3), devices)
                    for name in ["B", "A"] { try sync(name, devices) }
                }
            }
            devices.clock.advance(seconds: 60)
            // Taken back or deleted.
            if random.below(3) == 0 { while (try? store.undoLast()) != nil {} }
            let live = try secrets(of: store)
            if !live.isEmpty { _ = try store.curate(.delete, live) }
            devices.clock.advance(seconds: 60)
            var options = PurgeOptions()
            options.deletedBefore = devices.clock.now
            options.withFiles = true
            _ = try Purge.run(store, options)
            // The hub hears of the files that are gone.
            try sync("A", devices)
            // What was alive on another device all the while comes back by a sync, once no copy of this device stands for it.
            let back = try secrets(of: store)
            if !back.isEmpty {
                for name in ["B", "A"] { try sync(name, devices) }
                #expect(try Set(secrets(of: store)).isSubset(of: secrets(of: devices["B"])), "seed \(seed)")
                return
            }
            let found = try runProcess([
                "sh", "-c", "grep -rlaF \(Self.secret) \"$0\"*; find \"$0\"* -name '*\(Self.secret)*'",
                devices.path("A"),
            ])
            let rows = try runProcess(["sh", "-c", "sqlite3 \"$0\" .dump | grep -aF \(Self.secret)", devices.path("A")])
            #expect(
                found.stdout == "",
                "seed \(seed), steps \(story.joined(separator: " ")): \(found.stdout)\(rows.stdout)")
        }
    }

    /// Ids of live records that hold the word.
    private func secrets(of store: Store) throws -> [String] {
        try store.all().filter {
            !$0.isDeleted && RecordType.isCounted($0.type) && $0.type != Quarantine.type
                && $0.fields.contains(Self.secret)
        }.map(\.id.description)
    }

    /// Works 0 and 1 have one cite key; each has a file of the same name, with bytes of its own.
    private func importWork(_ name: String, _ number: Int, _ devices: Devices, overwrite: Bool = false) throws {
        let folder = "\(devices.folder)/\(name)\(number)\(overwrite)"
        try Directory.createAll(folder)
        try writeFile("\(folder)/\(Self.secret).pdf", "%PDF \(Self.secret) \(number) \(overwrite)")
        try writeFile(
            "\(folder)/refs.bib",
            """
            @misc{\(Self.secret)\(number / 2), title={\(Self.secret) \(number)}, doi={10.1/\(number)},
              note={\(Self.secret) \(overwrite)}, file={:\(Self.secret).pdf:PDF}}
            @misc{other, title={Other}, doi={10.1/other}}

            """)
        var options = ImportOptions()
        options.overwrite = overwrite
        _ = try Importer.run(["\(folder)/refs.bib"], into: devices[name], options)
    }

    private func sync(_ name: String, _ devices: Devices) throws {
        devices.clock.advance()
        var options = SyncOptions(user: nil)
        options.sleep = { _ in }
        _ = try Synchronizer.sync(devices[name], with: devices.hub, options)
    }
}
