import TestSupport
import Testing

@testable import BackupKit

/// Three files of one store that share cite keys, and a person who merges, renames, deletes and undoes between their imports.
private final class MergedFiles {
    private struct Entry: Equatable {
        let work: Int
        let key: String
        var note: Int

        var text: String {
            "@article{\(key), title={Title w\(work)x}, author={Author w\(work)x, A.}, year={2020}, note={\(note)}}\n"
        }
    }

    private let store: Store
    private let clock: TestClock
    private let folder: String
    private var random: SeededGenerator
    private var files: [[Entry]] = [[], [], []]
    private var imported: [[Entry]] = [[], [], []]
    /// The works that each work was ever merged with, and itself. They stand for it, also after an undo.
    private var merged: [Set<Int>] = (0..<6).map { [$0] }
    /// What somebody deleted by name, and nobody took back: the files' entries of it may be passed over.
    private var deleted: [Set<Int>] = []
    private(set) var log: [String] = []
    private(set) var faults: [String] = []

    init(_ seed: UInt64, _ test: TestStore) {
        (store, clock, folder) = (test.store, test.clock, test.folder)
        random = SeededGenerator(seed: seed)
    }

    func step() throws {
        clock.advance(seconds: 60)
        switch random.below(6) {
        case 0: try decide()
        case 5: try deleteOrUndo()
        // Only a decision: after the undo of an import the store need not have what the file holds.
        case 1 where try store.undoable()?.kind.hasPrefix("resolve") == true && random.chance(2):
            log.append("undoes")
            _ = try? store.undoLast()
        default:
            let file = random.below(files.count)
            edit(file)
            try importFile(file)
        }
    }

    private func edit(_ file: Int) {
        let place = files[file].isEmpty ? nil : random.below(files[file].count)
        switch (random.below(4), place) {
        case (0, let place?): files[file].remove(at: place)
        case (1, let place?): files[file][place].note = random.below(3)
        case (2, _): break
        default:
            let key = ["k", "l"][random.below(2)]
            let entry = Entry(work: random.below(merged.count), key: key, note: random.below(3))
            if !files[file].contains(where: { $0.work == entry.work }) { files[file].append(entry) }
        }
    }

    /// Deletes a publication by name, or takes such a delete back, whatever was imported since.
    private func deleteOrUndo() throws {
        if let batch = try store.undoable(), batch.kind == "delete" {
            log.append("undoes the delete of batch \(batch.id)")
            _ = try store.undoLast(batch.id)
            deleted.removeLast()
            return
        }
        let live = try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }
        guard !live.isEmpty else { return }
        let one = live[random.below(live.count)]
        log.append("deletes w\(Self.works(of: one)) \(one.localID)")
        deleted.append(Self.works(of: one).reduce(into: []) { $0.formUnion(merged[$1]) })
        _ = try store.delete([one.localID])
    }

    private func decide() throws {
        guard let conflict = try store.conflicts().first(where: { !$0.isAboutAssets }) else { return }
        let choice = [ConflictChoice.merge, .merge, .renameIncoming][random.below(3)]
        log.append("\(choice) of \(conflict.existing) and \(conflict.incoming)")
        let sides = try [conflict.existing, conflict.incoming].flatMap { side in
            try store.records(localID: side).flatMap { Self.works(of: $0.record) }
        }
        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: store)
        guard choice == .merge else { return }
        let all = sides.reduce(into: Set<Int>()) { $0.formUnion(merged[$1]) }
        for work in all { merged[work].formUnion(all) }
    }

    private func importFile(_ file: Int) throws {
        let path = "\(folder)/f\(file).bib"
        let text = files[file].map(\.text).joined() + "@comment{of \(file)}\n"
        try writeFile(path, text, modified: clock.now.milliseconds / 1000)
        clock.advance(seconds: 60)
        var options = ImportOptions()
        options.mirror = !files[file].isEmpty && random.chance(2)
        log.append("\(options.mirror ? "mirrors" : "imports") \(file): \(files[file].map(\.text))")
        let before = try works()
        imported[file] = files[file]
        _ = try Importer.run([path], into: store, options)
        let after = try works()
        for entry in imported.joined() where !deleted.contains(where: { $0.contains(entry.work) }) {
            let one = merged[entry.work]
            if !one.isDisjoint(with: before), one.isDisjoint(with: after) {
                faults.append("w\(entry.work) is gone, and a file has it")
            }
        }
    }

    private func works() throws -> Set<Int> {
        let live = try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }
        return Set(live.flatMap(Self.works))
    }

    private static func works(of record: Record) -> [Int] {
        record.fields.matches(of: /w(\d)x/).compactMap { Int($0.1) }
    }
}

@Suite struct MirrorMergeTests {
    @Test(arguments: testSeeds(isTorture ? 200 : 30))
    func aMirror_takesNoWorkThatAFileHolds_whateverWasMerged(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            try test.store.database.execute("PRAGMA synchronous = OFF")
            let world = MergedFiles(seed, test)
            for _ in 0..<25 where world.faults.isEmpty { try world.step() }
            if !world.faults.isEmpty { print("BACKUP_TOOL_SEED=\(seed)\n" + world.log.joined(separator: "\n")) }
            #expect(world.faults.isEmpty)
        }
    }
}
