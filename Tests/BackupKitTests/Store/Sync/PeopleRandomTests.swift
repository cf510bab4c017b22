import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// People on three devices who do everything that a command lets them do with publications, in any order.
///
/// Each work has a field of its own that says so, also where a merge joins it with others. The first three are volumes of one
/// set, for which two devices make the same first id; each work may come under two keys, some of which others have, too.
private final class People {
    private struct Entry: Equatable {
        let work: Int
        let key: String
        var note: Int

        var text: String {
            let title =
                work < 3 ? "title={Set}, author={Bee, Bo}, volume={\(work)}" : "title={W\(work)}, author={A\(work), A}"
            return "@book{\(key), \(title), year={2001}, note={\(note)}, mark\(work)={1}}\n"
        }
    }

    private static let works = 8
    private let devices: Devices
    private var random: SeededGenerator
    private var files: [String: [Entry]] = [:]
    /// What each file held at any time.
    private var held: [String: Set<Int>] = [:]
    private var exports: [(path: String, works: Set<Int>, deleted: Set<Int>)] = []
    private var listed: Set<Int> = []
    /// What the file or export of this step has.
    private var lastFile: Set<Int> = []
    /// What an act that may take works away has taken from some device.
    private var removed: Set<Int> = []
    /// Those that were merged with each other at any time.
    private var merged: [Set<Int>] = (0..<works).map { [$0] }
    /// What the undo of a batch may take away.
    private var brought: [String: Set<Int>] = [:]
    private(set) var log: [String] = []
    private(set) var faults: [String] = []

    init(_ seed: UInt64, _ devices: Devices) {
        random = SeededGenerator(seed: seed)
        self.devices = devices
    }

    func step() throws {
        devices.clock.advance(seconds: 60)
        let name = devices.names[random.below(devices.names.count)]
        let store = devices[name]
        let (before, records) = (try works(store), try records(store))
        let (act, mayTake) = try act(name, store)
        log.append("\(name) \(act)")
        let gone = before.subtracting(try works(store))
        let lost = gone.subtracting(mayTake)
        if !lost.isEmpty {
            faults.append("\(name) has lost \(lost.sorted()), and may lose \(mayTake.sorted()): \(act)")
        }
        for record in try publications(store) where try !Self.saysItsFields(record) {
            faults.append("\(name) has a text of \(Self.works(of: record)) that is not its fields: \(record.fields)")
        }
        // Each may be there under two keys, and two devices may take one of them each.
        let now = try self.records(store)
        removed.formUnion(records.filter { $0.value > now[$0.key] ?? 0 }.keys)
        if let batch = try store.undoable(), brought["\(name)\(batch.id)"] == nil {
            brought["\(name)\(batch.id)"] = try works(store).subtracting(before).union(mayTake).union(lastFile)
        }
        lastFile = []
    }

    /// What was done, and the works that may vanish from the device by it.
    private func act(_ name: String, _ store: Store) throws -> (String, Set<Int>) {
        switch random.below(16) {
        case 0..<4: return try importFile(name, store)
        case 4: return try change(store, "delete") { _ = try store.curate(.delete, [$0]) }
        case 5: return try keepHere(store)
        case 6: return try enableCloud(store)
        case 7, 8: return try decide(store)
        case 9: return try undo(name, store)
        case 10: return try restore(name, store)
        default:
            let kept = try Set(publications(store).filter(\.isLocalOnly).flatMap(Self.works))
            try devices.syncLibrary(name)
            return ("syncs", all(removed).subtracting(kept))
        }
    }

    private func importFile(_ name: String, _ store: Store) throws -> (String, Set<Int>) {
        let path = "\(devices.folder)/\(name)\(random.below(2)).bib"
        let old = files[path] ?? []
        var new = old
        let place = old.isEmpty ? nil : random.below(old.count)
        switch (random.below(4), place) {
        case (0, let place?): new.remove(at: place)
        case (1, let place?): new[place].note = random.below(3)
        case (2, _): break
        default:
            let work = random.below(Self.works)
            let entry = Entry(
                work: work, key: random.chance(2) ? "k\(work)" : "k\(random.below(3))", note: random.below(3))
            if !new.contains(where: { $0.work == entry.work || $0.key == entry.key }) { new.append(entry) }
        }
        files[path] = new
        let text = new.map(\.text).joined() + "@comment{of \(path)}\n"
        try writeFile(path, text, modified: devices.clock.now.milliseconds / 1000)
        devices.clock.advance(seconds: 60)
        var options = ImportOptions()
        options.mirror = !new.isEmpty && random.chance(3)
        _ = try Importer.run([path], into: store, options)
        lastFile = Set(new.map(\.work))
        listed.formUnion(lastFile)
        held[path, default: []].formUnion(new.map(\.work))
        let dropped = all(held[path] ?? []).subtracting(new.map(\.work))
        log.append("    \(lastComponent(of: path)): \(new.map(\.text).joined().dropLast())")
        return options.mirror ? ("mirrors", dropped) : ("imports", [])
    }

    /// Works and those that were ever merged with them.
    private func all(_ works: Set<Int>) -> Set<Int> { works.reduce(into: []) { $0.formUnion(merged[$1]) } }

    private func change(
        _ store: Store, _ what: String, _ body: (String) throws -> Void
    ) throws -> (String, Set<Int>) {
        let live = try publications(store)
        guard !live.isEmpty else { return ("rests", []) }
        let one = live[random.below(live.count)]
        try body(one.id.description)
        return ("\(what) \(Self.works(of: one)) \(one.id)", Set(Self.works(of: one)))
    }

    /// It goes from all other devices.
    private func keepHere(_ store: Store) throws -> (String, Set<Int>) {
        let (act, works) = try change(store, "set-local") { _ = try store.keepOnThisDevice([$0]) }
        removed.formUnion(works)
        return (act, [])
    }

    private func enableCloud(_ store: Store) throws -> (String, Set<Int>) {
        let kept = try publications(store).filter(\.isLocalOnly)
        guard !kept.isEmpty else { return ("rests", []) }
        let one = kept[random.below(kept.count)]
        _ = try store.curate(.enableCloud, [one.id.description])
        return ("enable-cloud \(Self.works(of: one)) \(one.id)", [])
    }

    private func decide(_ store: Store) throws -> (String, Set<Int>) {
        let waiting = try store.conflicts().filter { !$0.isAboutAssets }
        guard !waiting.isEmpty else { return ("rests", []) }
        let conflict = waiting[random.below(waiting.count)]
        let choices: [ConflictChoice] = [
            .merge, .merge, .renameIncoming, .renameExisting, .keepBoth, .keepExisting, .keepIncoming,
        ]
        let choice = choices[random.below(choices.count)]
        let (existing, incoming) = (try works(conflict.existing, store), try works(conflict.incoming, store))
        do { _ = try ConflictResolver.resolve([conflict.id], with: choice, in: store) } catch let error as BackupError {
            return ("may not: \(error.message)", [])
        }
        if choice == .merge {
            let union = all(existing.union(incoming))
            for work in union { merged[work].formUnion(union) }
        }
        let mayTake: Set<Int> = choice == .keepExisting ? incoming : choice == .keepIncoming ? existing : []
        return ("\(choice) of \(existing.sorted()) and \(incoming.sorted())", mayTake)
    }

    private func undo(_ name: String, _ store: Store) throws -> (String, Set<Int>) {
        if random.chance(3), (try? store.redoLast()) != nil { return ("redoes", all(Set(0..<Self.works))) }
        guard let batch = try store.undoable() else { return ("rests", []) }
        _ = try store.undoLast(batch.id)
        return ("undoes \(batch.kind) of \(batch.source)", all(brought["\(name)\(batch.id)"] ?? []))
    }

    private func restore(_ name: String, _ store: Store) throws -> (String, Set<Int>) {
        if exports.isEmpty || random.chance(2) {
            let path = "\(devices.folder)/export\(exports.count)"
            _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
            exports.append((path, try works(store), removed))
            return ("is exported", [])
        }
        let export = exports[random.below(exports.count)]
        lastFile = export.works
        var options = RestoreOptions()
        options.mode = random.chance(2) ? .replace : .merge
        _ = try Restorer.restore(export.path, into: store, options)
        // It may have a work as deleted later than it was written.
        let mayTake = options.mode == .merge ? all(export.deleted) : Set(0..<Self.works).subtracting(export.works)
        return ("restores \(lastComponent(of: export.path)) of \(export.works.sorted()), \(options.mode)", mayTake)
    }

    private func publications(_ store: Store) throws -> [Record] {
        try store.all().filter { $0.type == RecordType.publication && !$0.isDeleted }
    }

    private func works(_ store: Store) throws -> Set<Int> { Set(try publications(store).flatMap(Self.works)) }

    private func records(_ store: Store) throws -> [Int: Int] {
        Dictionary(try publications(store).flatMap(Self.works).map { ($0, 1) }, uniquingKeysWith: +)
    }

    private func works(_ localID: String, _ store: Store) throws -> Set<Int> {
        Set(try store.records(localID: localID).filter { !$0.record.isDeleted }.flatMap { Self.works(of: $0.record) })
    }

    private static func works(of record: Record) -> [Int] {
        record.fields.matches(of: /"mark(\d)"/).compactMap { Int($0.1) }
    }

    /// Whether the entry's text, which every export writes, says what the fields say.
    private static func saysItsFields(_ record: Record) throws -> Bool {
        let fields = try Fields.parse(record.fields)
        guard let text = Fields.string("rawBibTeX", in: fields) else { return true }
        let said = Dictionary(
            text.matches(of: /(\w+)\s*=\s*\{([^{}]*)\}/).map { (String($0.1), String($0.2)) }, uniquingKeysWith: { $1 })
        let names = ["title", "author", "year", "volume", "note"] + (0..<works).map { "mark\($0)" }
        return text.hasPrefix("@book{\(Fields.string("citeKey", in: fields) ?? ""),")
            && names.allSatisfy { said[$0] == Fields.string($0, in: fields) }
    }

    func tellRows() throws {
        for name in devices.names {
            for record in try devices[name].all() where record.type == RecordType.publication {
                let key = Fields.string("citeKey", in: try Fields.parse(record.fields)) ?? ""
                let changed = record.latestTime.iso8601.dropFirst(11)
                let what =
                    record.isDeleted ? "dead" : "\(Self.works(of: record)) \(key)\(record.isLocalOnly ? " local" : "")"
                log.append("    \(name) \(record.id.name.prefix(8)) \(record.localID.prefix(8)) \(what) \(changed)")
            }
        }
    }

    func settle() throws {
        var kept: Set<Int> = []
        for name in devices.names {
            devices.clock.advance()
            kept.formUnion(try publications(devices[name]).filter(\.isLocalOnly).flatMap(Self.works))
            _ = try devices[name].enableCloud(
                publications(devices[name]).filter(\.isLocalOnly).map { $0.id.description })
        }
        for _ in 0..<4 { for name in devices.names { try devices.syncLibrary(name) } }
        let first = try devices[devices.names[0]].sharedDigest()
        for name in devices.names {
            if try devices[name].sharedDigest() != first { faults.append("\(name) holds something else") }
            let alive = try works(devices[name])
            let lost = listed.subtracting(all(removed)).union(kept).subtracting(alive)
            if !lost.isEmpty { faults.append("\(name) has lost \(lost.sorted()) in the end") }
            for record in try publications(devices[name]) {
                let works = Self.works(of: record)
                guard let first = works.first, !merged[first].isSuperset(of: works) else { continue }
                faults.append("\(name) mixes \(works)")
            }
        }
    }
}

@Suite struct PeopleRandomTests {
    private static let isReplay = getenv("BACKUP_TOOL_SEED") != nil && !isTorture

    /// BACKUP_TOOL_SEED=N runs the history N alone, and tells its story.
    @Test(arguments: testSeeds(isReplay ? 1 : isTorture ? 400 : 40))
    func noWorkIsLost_whateverPeopleDo(seed: UInt64) throws {
        countRounds()
        try withQuickFolder { folder in
            let devices = try Devices(["A", "B", "C"], in: folder)
            for store in devices.stores { try store.database.execute("PRAGMA synchronous = OFF") }
            let people = People(seed, devices)
            for _ in 0..<40 where people.faults.isEmpty {
                try people.step()
                if Self.isReplay { try people.tellRows() }
            }
            if people.faults.isEmpty { try people.settle() }
            if Self.isReplay { try people.tellRows() }
            if !people.faults.isEmpty || Self.isReplay {
                print("BACKUP_TOOL_SEED=\(seed)\n" + people.log.joined(separator: "\n"))
            }
            #expect(people.faults.isEmpty, "BACKUP_TOOL_SEED=\(seed)")
            for name in devices.names { try checkSound(devices.path(name)) }
        }
    }
}
