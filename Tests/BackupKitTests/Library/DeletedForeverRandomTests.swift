import TestSupport
import Testing

@testable import BackupKit

/// Two devices with a hub on which works are imported, edited, renamed by decisions, kept on one device and given back, in any
/// order. Then some works are deleted by name, on every device that has them, and every backup and every file that ever was
/// is taken in again.
private final class Deleted {
    private struct Entry {
        let work: Int
        var key: String
        var note = 0
        var hasDOI = false
        var hasJournal = false
        var title = 0

        var text: String {
            var fields = ["title={Work \(work)\(title == 0 ? "" : " revised \(title)")}", "author={A\(work), B}"]
            if work.isMultiple(of: 2) { fields.append("year={200\(work)}") }
            if hasDOI { fields.append("doi={10.1000/w\(work)}") }
            if hasJournal { fields.append("journal={Journal \(work)}") }
            return "@article{\(key), \(fields.joined(separator: ", ")), note={\(note)}, mark={MARK\(work)X}}\n"
        }
    }

    private static let works = 5
    private let devices: Devices
    private let test: String
    private var random: SeededGenerator
    private var files: [String: [Entry]] = [:]
    private var oldFiles: [String] = []
    private var exports: [String] = []
    /// A file that was saved later brings such a work back under the key that it had then.
    private var deletedBefore: Set<Int> = []
    private(set) var log: [String] = []
    private(set) var faults: [String] = []

    init(_ seed: UInt64, _ devices: Devices, _ test: String = #function) {
        (random, self.devices, self.test) = (SeededGenerator(seed: seed), devices, test)
    }

    private func living(_ name: String, _ work: Int? = nil) throws -> [Record] {
        try devices[name].all().filter {
            $0.type == RecordType.publication && !$0.isDeleted
                && $0.fields.contains(work.map { "MARK\($0)X" } ?? "MARK")
        }
    }

    func step() throws {
        devices.clock.advance(seconds: 60)
        let name = devices.names[random.below(devices.names.count)]
        let store = devices[name]
        switch random.below(12) {
        case 0..<4: try importFile(name)
        case 4: try change(name, "set-local") { _ = try store.keepOnThisDevice([$0]) }
        case 5: try change(name, "enable-cloud") { _ = try store.curate(.enableCloud, [$0]) }
        case 6:
            try change(name, "delete") { id in
                deletedBefore.formUnion(
                    try (0..<Self.works).filter { try living(name, $0).contains { $0.id.description == id } })
                _ = try store.curate(.delete, [id])
            }
        case 7, 8: try decide(name)
        case 9:
            log.append("\(name) syncs")
            try devices.syncLibrary(name)
        default:
            let path = "\(devices.folder)/export\(exports.count)"
            _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
            exports.append(path)
            log.append("\(name) is exported")
        }
    }

    private func importFile(_ name: String) throws {
        let path = "\(devices.folder)/\(name)\(random.below(2)).bib"
        var entries = files[path] ?? []
        if let place = entries.indices.last(where: { _ in random.chance(2) }) {
            switch random.below(4) {
            case 0: entries[place].note += 1
            case 1: entries[place].hasDOI.toggle()
            case 2: entries[place].hasJournal.toggle()
            default: entries[place].title += 1
            }
        } else {
            let work = random.below(Self.works)
            if !entries.contains(where: { $0.work == work }) {
                entries.append(Entry(work: work, key: random.chance(2) ? "k\(work)" : "same"))
            }
        }
        files[path] = entries
        let text = entries.map(\.text).joined()
        try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000)
        // A copy that is kept on this device takes nothing from a file, so what the file says was never in the store.
        let kept = try living(name).filter(\.isLocalOnly)
        if !entries.contains(where: { entry in kept.contains { $0.fields.contains("MARK\(entry.work)X") } }) {
            oldFiles.append("\(devices.folder)/old\(oldFiles.count).bib")
            try writeFile(oldFiles[oldFiles.count - 1], text, modified: devices.clock.now.milliseconds / 1000)
        }
        devices.clock.advance(seconds: 60)
        _ = try Importer.run([path], into: devices[name], ImportOptions())
        log.append("\(name) imports \(lastComponent(of: path)): \(text)")
    }

    private func change(_ name: String, _ what: String, _ body: (String) throws -> Void) throws {
        let live = try living(name)
        guard !live.isEmpty else { return }
        let one = live[random.below(live.count)]
        try body(one.id.description)
        log.append("\(name) \(what) \(one.id) \(one.fields)")
    }

    private func decide(_ name: String) throws {
        let waiting = try devices[name].conflicts().filter { !$0.isAboutAssets }
        guard !waiting.isEmpty else { return }
        let conflict = waiting[random.below(waiting.count)]
        let choices: [ConflictChoice] = [.renameIncoming, .renameExisting, .keepBoth, .keepExisting, .keepIncoming]
        let choice = choices[random.below(choices.count)]
        do { _ = try ConflictResolver.resolve([conflict.id], with: choice, in: devices[name]) } catch is BackupError {}
        log.append("\(name) \(choice) \(conflict.existing) \(conflict.incoming)")
    }

    /// Deletes works on all devices, and takes in again whatever was.
    func end() throws {
        for _ in 0..<2 { for name in devices.names { try devices.syncLibrary(name) } }
        let dead = try (0..<Self.works).filter { work in
            try !deletedBefore.contains(work) && random.chance(2)
                && devices.names.contains { try !living($0, work).isEmpty }
        }
        devices.clock.advance(seconds: 60)
        for name in devices.names {
            for record in try dead.flatMap({ try living(name, $0) }) {
                _ = try devices[name].curate(.delete, [record.id.description])
                log.append("\(name) deletes \(record.id) \(record.localID)")
            }
        }
        for _ in 0..<2 { for name in devices.names { try devices.syncLibrary(name) } }
        devices.clock.advance(seconds: 60)
        for name in devices.names where random.chance(2) {
            var options = PurgeOptions()
            options.deletedBefore = devices.clock.now
            _ = try Purge.run(devices[name], options)
            log.append("\(name) purges")
        }
        var ways = exports.flatMap { path in ["merge", "replace", "import"].map { ($0, path) } }
        ways += oldFiles.map { ("import", $0) }
        ways.shuffle(using: &random)
        for (way, path) in ways {
            countRounds(1, test)
            devices.clock.advance(seconds: 60)
            let name = devices.names[random.below(devices.names.count)]
            if way == "import" {
                _ = try Importer.run([path], into: devices[name], ImportOptions())
            } else {
                var options = RestoreOptions()
                options.mode = way == "replace" ? .replace : .merge
                _ = try Restorer.restore(path, into: devices[name], options)
            }
            if random.chance(4) { try devices.syncLibrary(name) }
            for other in devices.names {
                for work in dead {
                    guard let back = try living(other, work).first else { continue }
                    let rows = try devices[other].all().filter { $0.type == RecordType.publication }
                        .map { "\($0.id.name) \($0.localID) \($0.isDeleted) \($0.latestTime) \($0.earlierListings)" }
                    faults.append(
                        "\(other) has \(work) again by \(way) of \(lastComponent(of: path)) on \(name): \(back.id)")
                    faults += rows
                }
            }
            if !faults.isEmpty { return }
        }
    }
}

@Suite struct DeletedForeverRandomTests {
    /// With the first seed a version came back that a sync had met and not taken.
    @Test(arguments: [897_471_124] + testSeeds(30))
    func whatWasDeletedByName_isAliveNowhere_whateverComesIn(seed: UInt64) throws {
        try withDevices("A", "B") { devices in
            let library = Deleted(seed, devices)
            for _ in 0..<14 { try library.step() }
            try library.end()
            #expect(library.faults.isEmpty, "\(seed)\n\(library.faults)\n\(library.log.joined(separator: "\n"))")
        }
    }
}
