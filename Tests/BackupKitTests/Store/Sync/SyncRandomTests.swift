import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// How it has to end.
extension World {

    /// Syncs all devices on a good line until nothing moves.
    func settle() throws {
        simulator.manners = HubSimulator.Manners()
        for round in 0..<8 {
            clock.advance()
            var moved = 0
            for number in devices.indices {
                let result = try sync(number)
                moved += result.pulled + result.pushed + result.assetsFetched
            }
            if moved == 0 { return }
            if round == 7 { throw BackupError(.failed, "does not come to rest") }
        }
    }

    func defects(isThorough: Bool) throws -> [String] {
        var found: [String] = []
        let (records, _) = try simulator.all(limit: 50)
        for (number, store) in devices.enumerated() {
            var hub = Dictionary(records.map { ($0.record.id, $0.record) }, uniquingKeysWith: { $1 })
            hub = hub.filter { $0.key.zone != Store.assetZone }
            if try store.syncState()?.pending != 0 { found.append("device\(number) has something pending") }
            let all = try store.all()
            let copies = Set(all.filter { $0.isLocalOnly && !$0.isDeleted }.map(\.localID))
            for record in all where !record.isLocalOnly {
                let theirs = hub.removeValue(forKey: record.id)
                if copies.contains(record.localID), record.isDeleted { continue }
                if theirs.map({ record.isSame(as: $0) }) != true {
                    found.append("device\(number) has \(record), the hub \(String(describing: theirs))")
                }
            }
            for (id, record) in hub where !copies.contains(record.localID) {
                found.append("device\(number) lacks \(id)")
            }
            if isThorough { try checkSound(path(number)) }
        }
        let assets = try devices.map { store -> [Asset] in
            var all: [Asset] = []
            try store.forEachAsset { all.append($0) }
            return all
        }
        for (number, list) in assets.enumerated()
        where list.map(\.path) != assets[0].map(\.path) || list.map(\.digest) != assets[0].map(\.digest) {
            found.append("device\(number) has other files: \(list.map(\.path)), not \(assets[0].map(\.path))")
        }
        return try found + storyDefects(records.map(\.record)) + libraryDefects()
    }

    /// Nothing is lost that nobody deleted, nothing deleted comes back unasked, and the newest value is there.
    private func storyDefects(_ hub: [Record]) -> [String] {
        var found: [String] = []
        for (id, story) in stories where !story.isOpen {
            let record = hub.first { $0.localID == id && $0.id.name == id && $0.id.zone == "Z" }
            let lives = record.map { !$0.isDeleted } ?? false
            let shouldLive = story.lastWrite > story.lastDelete
            if lives != shouldLive {
                found.append("\(id) \(lives ? "is back from the dead" : "is lost"): \(story)")
                continue
            }
            guard lives, let fields = record.flatMap({ try? Fields.parse($0.fields) }) else { continue }
            for field in ["x", "y"] {
                let all = story.written.filter { $0.field == field }
                // What was only said again may be newer or older than what others wrote meanwhile.
                guard let time = all.map(\.time).max(), time > story.lastDelete else { continue }
                // Two devices that follow the same time may write at the same instant.
                let newest = all.filter { $0.time == time }
                guard newest.allSatisfy(\.isNew) else { continue }
                let value = fields.first { $0.name == field }?.value
                if !newest.contains(where: { $0.value == value }) {
                    found.append("\(id).\(field) is \(value ?? "gone"), not \(newest)")
                }
            }
        }
        return found
    }
}

/// In memory where there is such a place: these are many small databases.
func withQuickFolder(_ body: (String) throws -> Void) throws {
    guard access("/dev/shm", W_OK) == 0 else { return try withTemporaryFolder(body) }
    let folder = "/dev/shm/backup-tool-test-\(RandomID.make())"
    try Directory.create(folder)
    defer { try? Directory.removeTree(folder) }
    try body(folder)
}

@Suite struct SyncRandomTests {
    private static let runs = isTorture ? 10_000 : 200

    /// BACKUP_TOOL_SEED=N runs the interleaving N alone, and tells its story.
    @Test(arguments: 0..<4)
    func whateverHappensInWhateverOrder_allDevicesComeToTheSame(part: Int) throws {
        let isReplay = getenv("BACKUP_TOOL_SEED") != nil && !isTorture
        if isReplay && part > 0 { return }
        try withQuickFolder { folder in
            // Small batches, so that the hub has to tidy up now and then.
            let template = try World.template(in: folder, recordsPerPush: 2)
            let first = testSeed()
            for run in 0..<(isReplay ? 1 : Self.runs / 4) {
                let seed = first &+ UInt64(part * Self.runs / 4 + run)
                let place = "\(folder)/\(run)"
                countRounds()
                try Directory.create(place)
                let world = try World(seed: seed, in: place, template: template)
                do {
                    for _ in 0..<40 { try world.step() }
                    if seed % 2 == 0 { try world.giveAllBack() }
                    try world.settle()
                    let defects = try world.defects(isThorough: seed % 10 == 0)
                    if !defects.isEmpty || isReplay {
                        let story = "BACKUP_TOOL_SEED=\(seed)\n\(defects.joined(separator: "\n"))\n"
                        print(story + (isReplay ? world.log.joined(separator: "\n") : ""))
                    }
                    let isFine = defects.isEmpty
                    try #require(isFine, "BACKUP_TOOL_SEED=\(seed): \(defects.first ?? "")")
                } catch {
                    print("BACKUP_TOOL_SEED=\(seed)\n\(isReplay ? world.log.joined(separator: "\n") : "")")
                    throw error
                }
                try Directory.removeTree(place)
            }
        }
    }
}
