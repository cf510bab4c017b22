import TestSupport
import Testing

@testable import BackupKit

@Suite struct DecisionUndoTests {
    /// Two devices make one decision, and one of them takes it back: both works are there afterwards, merged or not.
    @Test(arguments: testSeeds(isTorture ? 200 : 40))
    func twoMergesOfWhichOneIsTakenBack_loseNoWork(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0])
            try office.add("a", on: 0)
            try office.add("b", on: 1)
            try office.settle()
            let taker = random.below(2)
            var (own, others) = (["merge", "undo"], ["merge"])
            var done: [String] = []
            while !own.isEmpty || !others.isEmpty {
                office.clock.advance()
                let number = random.below(2)
                if random.chance(2) {
                    done.append("sync \(number)")
                    _ = try office.sync(number)
                    continue
                }
                let isTaker = number == taker
                guard let act = isTaker ? own.first : others.first else { continue }
                if isTaker { own.removeFirst() } else { others.removeFirst() }
                done.append("\(act) on \(number)")
                if act == "merge" {
                    // The other device may have decided already.
                    guard try !office.stores[number].conflicts().isEmpty else { continue }
                    try office.decide(.merge, "a", "b", on: number)
                } else {
                    _ = try? office.stores[number].undoLast()
                }
            }
            try office.settle()
            let works = try office.outcome("\(done)").works
            #expect(Set(works.values.joined()) == ["a", "b"], "\(done): \(works)")
        }
    }

    /// Each of two devices deletes works of one key, and takes that back when it has heard of the other one.
    @Test(
        arguments: [ConflictChoice.merge, .keepExisting, .keepIncoming],
        [ConflictChoice.merge, .keepExisting, .keepIncoming])
    func twoDecisionsThatAreBothTakenBack_leaveEveryWorkAlive(_ first: ConflictChoice, _ second: ConflictChoice) throws
    {
        for (order, newest) in [([0, 1], "b"), ([1, 0], "b"), ([0, 1], "c"), ([1, 0], "c")] {
            try withQuickFolder { folder in
                let office = try Office(folder, skews: [0, 0])
                // A merge keeps it: so a work is merged away that has taken in another one.
                office.newest = newest
                for work in ["a", "b", "c"] { try office.add(work, on: 0) }
                try office.settle()
                for (number, choice) in [first, second].enumerated() {
                    let store = office.stores[number]
                    _ = try ConflictResolver.resolve(store.conflicts().map(\.id), with: choice, in: store)
                    office.clock.advance()
                }
                try office.settle()
                for number in order { _ = try office.stores[number].undoLast() }
                try office.settle()
                let comment = "\(first) and \(second), undone on \(order), \(newest) is the newest"
                let (works, waiting) = try office.outcome(comment)
                #expect(Set(works.keys) == ["a", "b", "c"] && waiting == 3, "\(comment): \(works), \(waiting)")
            }
        }
    }

    /// A device deletes a work because the one that it keeps has taken it in, and another device takes that merge back without
    /// having heard of it: the work goes on to be in the one that was kept.
    @Test func aMergeThatIsTakenBack_takesNoWorkFromWhatWasKeptInstead() throws {
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0])
            office.newest = "c"
            for work in ["a", "b", "c"] { try office.add(work, on: 0) }
            try office.settle()
            try office.decide(.keepSecond, "a", "b", on: 0)
            office.clock.advance()
            try office.decide(.merge, "b", "c", on: 0)
            try office.sync(0)
            // The later decision keeps the work that was merged.
            try office.decide(.keepSecond, "a", "b", on: 1)
            try office.sync(1)
            #expect(try office.works(of: office.stores[1])["c"] == ["b", "c"])
            try office.decide(.keepSecond, "b", "c", on: 1)
            try office.sync(0)
            _ = try office.stores[0].undoLast()
            try office.settle()
            let works = try office.outcome("undone").works
            #expect(works == ["c": ["b", "c"]])
        }
    }

    /// Another device has edited or deleted the work that stays, so a redo would delete the other one for nothing.
    @Test(arguments: [ConflictChoice.merge, .keepExisting, .keepIncoming], [true, false])
    func aRedoneDecision_isWholeOrNothing(choice: ConflictChoice, isDelete: Bool) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["a", "b"])
            let (mine, theirs) = (office.stores[0], office.stores[1])
            _ = try ConflictResolver.resolve(mine.conflicts().map(\.id), with: choice, in: mine)
            let kept = try #require(mine.all().first { $0.type == RecordType.publication && !$0.isDeleted })
            _ = try mine.undoLast()
            try office.settle()
            if isDelete {
                _ = try theirs.delete([kept.id.description])
            } else {
                try theirs.write {
                    let known = try #require(try theirs.record(kept.id))
                    let fields = try Fields.parse(known.record.fields) + [Field("abstract", "\"edited\"")]
                    try theirs.put(known.record.edited(fields, at: theirs.now()), replacing: known)
                }
            }
            try office.settle()
            let before = try mine.digest()
            for dryRun in [true, false] {
                #expect(throws: BackupError.self) { _ = try mine.redoLast(dryRun: dryRun) }
                #expect(try mine.digest() == before)
            }
            try office.settle()
            let works = try office.outcome("\(choice)").works
            #expect(works.count == (isDelete ? 1 : 2), "\(works)")
        }
    }
}
