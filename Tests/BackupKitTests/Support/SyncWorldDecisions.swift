import TestSupport
import Testing

@testable import BackupKit

/// What a test knows of the publications of a world: works, whichever records hold them.
struct Shelf {
    static let works = 0..<8
    static let keys = ["k1", "k2"]

    /// Works that some device had, and those that somebody deleted by name or by a decision that named them.
    var known: Set<Int> = []
    var dropped: Set<Int> = []
    /// Somebody did what has no single meaning for the others: only that all devices agree is known.
    var isOpen = false

    /// The works in a publication.
    static func works(in record: Record) throws -> Set<Int> {
        Set(try Fields.parse(record.fields).compactMap { $0.name.hasPrefix("mark") ? Int($0.name.dropFirst(4)) : nil })
    }
}

/// Publications that share cite keys, and decisions about them.
extension World {
    func workOnLibrary(_ number: Int) throws {
        switch random.below(11) {
        case 8..<10: try keepOrGiveBack(number)
        case 0..<3: try addWork(number, Shelf.works.lowerBound + random.below(Shelf.works.count))
        case 3..<7: try decide(number)
        default: try deleteWork(number)
        }
    }

    private func publications(_ number: Int) throws -> [Record] {
        var found: [Record] = []
        try devices[number].forEachLive(type: RecordType.publication) { found.append($0.record) }
        return found.sorted { $0.id < $1.id }
    }

    /// Imports a work from a file that is always the same: other devices may have done so before, or do so later.
    private func addWork(_ number: Int, _ work: Int) throws {
        let key = Shelf.keys[work % Shelf.keys.count]
        let time = Timestamp(milliseconds: 1_700_000_000_000 + Int64(work))
        let record = Record(
            id: RecordID(zone: RecordType.libraryZone, name: "w\(work)"), type: RecordType.publication,
            localID: "w\(work)",
            fields: "{\"citeKey\":\"\(key)\",\"entryType\":\"misc\",\"title\":\"T\(work)\",\"mark\(work)\":\"1\"}",
            createdAt: time, modifiedAt: time)
        let store = devices[number]
        guard case .add = try store.take(record)[0] else { return }
        library.known.insert(work)
        try noteRivals(of: record, number)
        say("imports w\(work)", number)
    }

    /// As an import or a restore does where a work meets another one of its key.
    private func noteRivals(of record: Record, _ number: Int, but others: Set<String> = []) throws {
        let store = devices[number]
        let key = try Fields.strings(named: ["citeKey"], of: record.fields)[0]
        try store.write {
            for other in try publications(number)
            where other.localID != record.localID && !others.contains(other.id.description) {
                guard let key, try Fields.strings(named: ["citeKey"], of: other.fields)[0] == key else { continue }
                try store.noteConflict(
                    kind: "publication", subject: key, existing: other.localID, incoming: record.localID)
            }
        }
    }

    /// A backup's new works have been side by side before.
    func noteRivals(_ number: Int, ofNew new: Set<String>, changed: Set<String>) throws {
        for record in try publications(number) where new.union(changed).contains(record.id.description) {
            try noteRivals(of: record, number, but: new)
        }
    }

    private func decide(_ number: Int) throws {
        let store = devices[number]
        let waiting = try store.conflicts()
        guard !waiting.isEmpty else { return }
        let conflict = waiting[random.below(waiting.count)]
        var choices = conflict.isAboutAssets ? ConflictChoice.forAssets : ConflictChoice.allCases
        let works = try [conflict.existing, conflict.incoming].compactMap { try store.livePublication($0)?.record }
        // What is kept here is not merged into what others see.
        if Set(works.map(\.isLocalOnly)).count > 1 { choices.removeAll { $0 == .merge } }
        let choice = choices[random.below(choices.count)]
        var loser: String?
        if choice == .keepExisting { loser = conflict.incoming }
        if choice == .keepIncoming { loser = conflict.existing }
        if !conflict.isAboutAssets, let loser, let record = try store.livePublication(loser)?.record {
            library.dropped.formUnion(try Shelf.works(in: record))
        }
        _ = try ConflictResolver.resolve([conflict.id], with: choice, in: store)
        say("decides \(choice) of \(conflict.existing) and \(conflict.incoming)", number)
    }

    /// Keeps a work on one device, or gives one back to everybody.
    private func keepOrGiveBack(_ number: Int) throws {
        let all = try publications(number)
        guard !all.isEmpty else { return }
        let record = all[random.below(all.count)]
        if record.isLocalOnly { return try giveBack(record, number) }
        // The other devices lose it, unless it is given back.
        library.dropped.formUnion(try Shelf.works(in: record))
        _ = try devices[number].setLocal([record.id.description])
        say("keeps \(record.localID) for itself", number)
    }

    private func giveBack(_ record: Record, _ number: Int) throws {
        _ = try devices[number].enableCloud([record.id.description])
        say("gives \(record.localID) back", number)
    }

    /// Everybody gives back what is kept: then nothing keeps the devices from having one queue.
    func giveAllBack() throws {
        for number in devices.indices {
            for record in try publications(number) where record.isLocalOnly { try giveBack(record, number) }
        }
    }

    private func deleteWork(_ number: Int) throws {
        let all = try publications(number)
        guard !all.isEmpty else { return }
        let record = all[random.below(all.count)]
        library.dropped.formUnion(try Shelf.works(in: record))
        _ = try devices[number].delete([record.id.description])
        say("deletes \(record.localID)", number)
    }

    /// After all syncs: no work is gone that nobody dropped, all queues are the same, and each conflict in them is one.
    func libraryDefects() throws -> [String] {
        var found: [String] = []
        var first: Set<Set<String>>?
        // What is kept on one device is nobody else's question.
        let kept = Set(
            try devices.indices.flatMap { try publications($0).filter(\.isLocalOnly).map(\.localID) })
        for (number, store) in devices.enumerated() {
            let all = try publications(number)
            // What others merged into a record that is kept here stays with them: this device does not fetch it.
            let keptHere = Set(all.filter(\.isLocalOnly).map(\.localID))
            let withOthers = try devices.indices.filter { $0 != number }.flatMap { try publications($0) }
                .filter { keptHere.contains($0.localID) }
            let alive = try (all + withOthers).reduce(into: Set<Int>()) { $0.formUnion(try Shelf.works(in: $1)) }
            let lost = library.known.subtracting(library.dropped).subtracting(alive)
            if !library.isOpen, !lost.isEmpty { found.append("device\(number) has lost the works \(lost.sorted())") }
            var keys: [String: String] = [:]
            for record in all { keys[record.localID] = try Fields.strings(named: ["citeKey"], of: record.fields)[0] }
            let conflicts = try store.conflicts().filter { !$0.isAboutAssets }
            for conflict in conflicts where keys[conflict.existing] == nil || keys[conflict.incoming] == nil {
                found.append("device\(number) asks about what is gone: \(conflict)")
            }
            for conflict in conflicts where keys[conflict.existing] != keys[conflict.incoming] {
                found.append("device\(number) asks about different keys: \(conflict)")
            }
            let queue = Set(conflicts.map { Set([$0.existing, $0.incoming]) }.filter(kept.isDisjoint))
            if let first, first != queue { found.append("device\(number) asks \(queue), device0 \(first)") }
            first = first ?? queue
            for (place, one) in all.enumerated() {
                for other in all[..<place] where keys[one.localID] == keys[other.localID] {
                    if try !store.hasConflict(one.localID, other.localID) {
                        found.append("device\(number) asks nothing about \(one.localID) and \(other.localID)")
                    }
                }
            }
        }
        return found
    }
}
