import TestSupport
import Testing

@testable import BackupKit

/// Files of strangers in one store: they share cite keys, and works move from one to another.
private final class MirrorWorld {
    private struct Entry: Hashable {
        let work: Int
        let key: String
        /// The optional fields that this file's entry has, each with a version.
        var extras: [String: Int] = [:]

        var listing: [String] { ["\(work)", key] }

        var text: String {
            var fields = ["title={Title w\(work)x}", "author={Author w\(work)x, A.}", "year={2020}"]
            if work % 2 == 0 { fields.append("doi={10.1000/w\(work)x}") }
            for (name, version) in extras.sorted(by: { $0.key < $1.key }) {
                fields.append("\(name)={w\(work)x \(version)}")
            }
            return "@article{\(key), \(fields.joined(separator: ", "))}\n"
        }
    }

    private let store: Store
    private let clock: TestClock
    private let folder: String
    private var random: SeededGenerator
    private var files: [[Entry]] = [[], [], []]
    /// What each file held when it was imported last, and all that it ever brought.
    private var imported: [[Entry]] = [[], [], []]
    private var brought: [Set<[String]>] = [[], [], []]
    var log: [String] = []
    var faults: [String] = []

    init(_ seed: UInt64, _ test: TestStore) {
        (store, clock, folder) = (test.store, test.clock, test.folder)
        random = SeededGenerator(seed: seed)
    }

    private static let keys = ["smith2020", "jones", "k"]
    private static let places = ["pages", "volume", "number", "chapter"]

    func step() throws {
        let file = random.below(files.count)
        for _ in 0...random.below(3) { edit(file) }
        try importFile(file)
    }

    private func edit(_ file: Int) {
        guard !files[file].isEmpty, !random.chance(3) else { return add(file, newEntry()) }
        let place = random.below(files[file].count)
        if moves(files[file][place], in: file) { return }
        switch random.below(4) {
        case 0: files[file].remove(at: place)
        case 1:
            let moved = files[file].remove(at: place)
            add(random.below(files.count), moved)
        case 2: add(random.below(files.count), files[file][place])
        default:
            let names = ["note", "abstract", "publisher"] + (mayMove(files[file][place], in: file) ? Self.places : [])
            files[file][place].extras[names[random.below(names.count)]] = random.chance(3) ? nil : random.below(3)
        }
    }

    /// Works from 6 on have a key of their own, so that a corrected page is an edit of the one entry that has it.
    private func newEntry() -> Entry {
        let work = random.below(9)
        let key = work < 6 ? Self.keys[random.below(Self.keys.count)] : "own\(work)"
        return Entry(work: work, key: key, extras: ["note": random.below(3)])
    }

    /// Whether a correction of the entry's place comes from the file that brought it, and from no other.
    private func mayMove(_ entry: Entry, in file: Int) -> Bool {
        let holders = files.indices.filter { place in
            (files[place] + imported[place]).contains { $0.listing == entry.listing }
        }
        return entry.work >= 6 && holders == [file] && imported[file].contains { $0.listing == entry.listing }
    }

    /// Whether the file's next import corrects the entry's place: till then it is in no other file.
    private func moves(_ entry: Entry, in file: Int) -> Bool {
        guard let known = imported[file].first(where: { $0.listing == entry.listing }) else { return false }
        return Self.places.contains { known.extras[$0] != entry.extras[$0] }
    }

    private func add(_ file: Int, _ entry: Entry) {
        if !files[file].contains(where: { $0.listing == entry.listing }) { files[file].append(entry) }
    }

    private func importFile(_ file: Int) throws {
        clock.advance(seconds: 60)
        let path = "\(folder)/f\(file).bib"
        let text = files[file].map(\.text).joined() + "@comment{of \(file)}\n"
        try writeFile(path, text, modified: clock.now.milliseconds / 1000)
        clock.advance(seconds: 60)
        var options = ImportOptions()
        options.mirror = !files[file].isEmpty && random.chance(2)
        log.append("\(options.mirror ? "mirrors" : "imports") \(file): \(files[file].map(\.text))")
        let before = try publications()
        imported[file] = files[file]
        brought[file].formUnion(files[file].map(\.listing))
        _ = try Importer.run([path], into: store, options)
        try look(before, file, mirrored: options.mirror)
    }

    private func publications() throws -> [[String]: [Field]] {
        var found: [[String]: [Field]] = [:]
        for record in try store.all() where record.type == RecordType.publication && !record.isDeleted {
            let fields = try Fields.parse(record.fields)
            let works = Set(
                fields.filter { !["citeKey", "entryType", "year"].contains($0.name) }
                    .compactMap { $0.value.firstMatch(of: /w(\d)x/).map { String($0.1) } })
            let key = Fields.string("citeKey", in: fields) ?? ""
            for name in ["title", "author", "year", "citeKey", "rawBibTeX"]
            where Fields.string(name, in: fields) == nil {
                faults.append("\(key) of \(works) has no \(name): \(record.fields)")
            }
            if works.count != 1 { faults.append("not one work: \(record.fields)") }
            if key.hasPrefix("own"), found[[works.first ?? "", key]] != nil { faults.append("\(key) is there twice") }
            found[[works.first ?? "", key]] = fields
        }
        return found
    }

    private func look(_ before: [[String]: [Field]], _ file: Int, mirrored: Bool) throws {
        let after = try publications()
        for listing in Set(before.keys).union(after.keys) {
            let holders = imported.filter { $0.contains { $0.listing == listing } }
            if !brought[file].contains(listing), before[listing] != after[listing] {
                faults.append("\(file) changed a stranger's \(listing)")
            }
            if holders.isEmpty, mirrored, brought[file].contains(listing), after[listing] != nil,
                !brought.enumerated().contains(where: { $0.offset != file && $0.element.contains(listing) })
            {
                faults.append("\(listing) stays, and no file has it")
            }
            guard !holders.isEmpty, before[listing] != nil else { continue }
            guard let fields = after[listing] else {
                faults.append("\(listing) is gone, and a file has it")
                continue
            }
            let names = holders.flatMap { $0.filter { $0.listing == listing }.flatMap(\.extras.keys) }
            for name in Set(names) where before[listing]?.contains(where: { $0.name == name }) == true {
                if !fields.contains(where: { $0.name == name }) {
                    faults.append("\(listing) has lost \(name), which another file has")
                }
            }
        }
    }
}

@Suite struct MirrorRandomTests {
    /// BACKUP_TOOL_SEED=N runs the history N first.
    @Test(arguments: testSeeds(isTorture ? 250 : 30))
    func aMirror_leavesRecordsWholeOrGone_andStrangersAsTheyAre(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            try test.store.database.execute("PRAGMA synchronous = OFF")
            let world = MirrorWorld(seed, test)
            for _ in 0..<20 where world.faults.isEmpty { try world.step() }
            if !world.faults.isEmpty { print("BACKUP_TOOL_SEED=\(seed)\n" + world.log.joined(separator: "\n")) }
            #expect(world.faults.isEmpty)
        }
    }
}
