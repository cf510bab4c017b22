import TestSupport
import Testing

@testable import BackupKit

/// Two devices decide about all works of one key, in one step or in several, and take back what they decided.
@Suite struct DecisionUndoRandomTests {
    @Test(arguments: testSeeds(isTorture ? 600 : 60))
    func whatWasTakenBack_killsNothing(seed: UInt64) throws {
        try withQuickFolder { folder in
            let desk = try TwoDeciders(folder, seed: seed)
            for number in [0, 1] { try desk.decideAll(number) }
            try desk.maybe { try desk.office.settle(from: desk.random.below(2)) }
            for number in [0, 1] where desk.random.chance(number == 0 ? 1 : 2) || desk.random.chance(2) {
                try desk.takeBack(number)
                try desk.maybe { try desk.office.settle(from: desk.random.below(2)) }
            }
            try desk.office.settle(from: desk.random.below(2))
            try desk.check()
        }
    }
}

private final class TwoDeciders {
    let office: Office
    let works: [String]
    var random: SeededGenerator
    private var said: [String] = []
    /// What each decision that stands took for the loser, the last one last, by device.
    private var standing: [[Set<String>]] = [[], []]

    init(_ folder: String, seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        office = try Office(folder, skews: [0, [0, 0, 1, -1, 3_600_000][random.below(5)]])
        works = Array(["a", "b", "c", "d"].prefix(2 + random.below(3)))
        office.newest = random.chance(4) ? nil : works[random.below(works.count)]
        for work in works { try office.add(work, on: random.below(2)) }
        try office.settle()
    }

    func maybe(_ body: () throws -> Void) rethrows { if random.chance(2) { try body() } }

    func sync(_ number: Int) throws {
        said.append("sync \(number)")
        try office.sync(number)
    }

    /// One word about all, or a word about each.
    func decideAll(_ number: Int) throws {
        let store = office.stores[number]
        // Those that delete a work are most of them.
        let choices: [ConflictChoice] =
            random.chance(3) ? ConflictChoice.allCases : [.merge, .keepExisting, .keepIncoming]
        office.clock.advance(seconds: Int64(random.below(3)))
        if !random.chance(3) {
            let ids = try store.conflicts().map(\.id)
            return ids.isEmpty ? () : try decide(ids, choices[random.below(choices.count)], number)
        }
        while let conflict = try store.conflicts().first {
            try decide([conflict.id], choices[random.below(choices.count)], number)
            try maybe { try sync(random.below(2)) }
        }
    }

    private func decide(_ ids: [Int64], _ choice: ConflictChoice, _ number: Int) throws {
        let before = try office.works(of: office.stores[number])
        _ = try ConflictResolver.resolve(ids, with: choice, in: office.stores[number])
        let after = Set(try office.works(of: office.stores[number]).values.joined())
        standing[number].append(Set(before.values.joined()).subtracting(after))
        said.append("\(number): \(choice) \(ids), drops \(standing[number].last ?? [])")
    }

    /// Takes back all, and maybe brings some of it back and takes that back again.
    func takeBack(_ number: Int) throws {
        let store = office.stores[number]
        while try store.undoable() != nil, let last = standing[number].popLast() {
            let result = try store.undoLast()
            said.append("\(number): undo of \(last), keeps \(result.keptNewer.map(\.name))")
            if random.chance(4) {
                let mayBeChanged = random.chance(2)
                if mayBeChanged { try sync(random.below(2)) }
                if try redo(store, mayBeChanged) {
                    said.append("\(number): redo")
                    if random.chance(2) { try sync(random.below(2)) }
                    _ = try store.undoLast()
                    said.append("\(number): undo")
                }
            }
            if random.chance(4) { try sync(random.below(2)) }
        }
    }

    /// What a sync has changed since is not redone.
    private func redo(_ store: Store, _ mayBeChanged: Bool) throws -> Bool {
        do {
            _ = try store.redoLast()
            return true
        } catch let error as BackupError where mayBeChanged && error.message.contains("changed or deleted since") {
            return false
        }
    }

    func check() throws {
        let outcome = try office.outcome("\(said)")
        let dropped = Set(standing.joined().joined())
        let alive = Set(outcome.works.values.joined())
        #expect(alive.isSuperset(of: Set(works).subtracting(dropped)), "\(said): \(outcome.works)")
        if standing.joined().isEmpty {
            #expect(Set(outcome.works.keys) == Set(works), "\(said): \(outcome.works)")
        }
    }
}
