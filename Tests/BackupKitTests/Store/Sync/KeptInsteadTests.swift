import TestSupport
import Testing

@testable import BackupKit

/// A work that a decision has kept instead of another one, and that a device deletes which has not heard of the decision.
@Suite struct KeptInsteadTests {
    private func withOffice(_ count: Int = 2, works: [String] = ["a", "b"], _ body: (Office) throws -> Void) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, skews: Array(repeating: 0, count: count))
            for work in works { try office.add(work, on: 0) }
            try office.settle()
            try body(office)
        }
    }

    private func delete(_ work: String, _ office: Office, on number: Int) throws {
        office.clock.advance()
        _ = try office.stores[number].delete(["Library/\(work)"])
    }

    /// All findings of some rounds of syncs.
    private func settle(_ office: Office, from first: Int) throws -> [Finding] {
        var found: [Finding] = []
        for _ in 0..<4 {
            for number in office.stores.indices {
                found += try office.sync((number + first) % office.stores.count).findings
            }
        }
        return found
    }

    @Test(arguments: [Choice.keepFirst, .keepSecond], [0, 1, 2])
    func aKeptWorkThatAnotherDeviceDeletes_stays_andIsNamed(_ choice: Choice, first: Int) throws {
        for isDecisionLater in [false, true] {
            try withOffice(3) { office in
                let kept = choice == .keepFirst ? "a" : "b"
                if isDecisionLater { try delete(kept, office, on: 1) }
                office.clock.advance()
                try office.decide(choice, "a", "b", on: 0)
                if !isDecisionLater { try delete(kept, office, on: 1) }
                let findings = try settle(office, from: first)
                let outcome = try office.outcome("\(choice) \(first)")
                #expect(outcome.works == [kept: [kept]] && outcome.waiting == 0)
                let isNamed = findings.contains {
                    $0.code == .protected && $0.severity == .warning && $0.subject == "Library/\(kept)"
                }
                #expect(isNamed == !isDecisionLater, "\(findings)")
            }
        }
    }

    /// One device keeps `a` instead of `b` and then `c` instead of `a`; the other one deletes `a` and `c` by name.
    @Test(arguments: [Choice.keepFirst, .merge], [0, 1])
    func whatAKeptWorkStoodFor_isKeptWithTheOneInItsPlace(_ choice: Choice, first: Int) throws {
        try withOffice(works: ["a", "b", "c"]) { office in
            for (choice, other) in [(choice, "b"), (.keepSecond, "c")] {
                office.clock.advance()
                try office.decide(choice, "a", other, on: 1)
            }
            let last = try #require(office.works(of: office.stores[1]).keys.first)
            for work in ["a", "c"] { try delete(work, office, on: 0) }
            try office.settle(from: first)
            #expect(try office.outcome("\(choice) \(first)").works.keys.sorted() == [last])
        }
    }

    /// One device keeps `b` instead of `c`; another one, later and without having heard of that, `a` instead of `b`.
    @Test(arguments: [0, 1, 2])
    func whatAWorkStoodFor_isPassedOnByADecisionThatHadNotHeardOfIt(first: Int) throws {
        try withOffice(3, works: ["a", "b", "c"]) { office in
            try office.decide(.keepFirst, "b", "c", on: 1)
            office.clock.advance()
            try office.decide(.keepFirst, "a", "b", on: 0)
            try office.settle(from: first)
            #expect(try office.outcome("\(first)").works == ["a": ["a"]])
            for store in office.stores {
                let kept = try #require(try store.record(RecordID(zone: "Library", name: "a"))?.record)
                #expect(Set(kept.keptInstead().keys) == ["b", "c"])
            }
        }
    }

    @Test func whoHasHeardOfTheDecision_deletesWhatItKept() throws {
        try withOffice { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            try office.settle()
            try delete("b", office, on: 1)
            #expect(try settle(office, from: 0).isEmpty)
            #expect(try office.outcome("").works.isEmpty)
        }
    }

    /// What the decision had deleted is there again, or another device keeps it: then the delete counts.
    @Test(arguments: [0, 2])
    func aDeleteCounts_whereTheOtherWorkIsThere(first: Int) throws {
        try withOffice(3) { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            try delete("b", office, on: 1)
            office.clock.advance()
            try office.decide(.keepFirst, "a", "b", on: 2)
            let findings = try settle(office, from: first)
            #expect(first == 0 || findings.allSatisfy { $0.code != .protected }, "\(findings)")
            #expect(try office.outcome("").works == ["a": ["a"]])
        }
    }

    /// A device has written the other work since: it is back by that, and the delete of the kept one counts. Where that one
    /// is heard of last, both are there by then and wait.
    @Test(arguments: [1, 2])
    func aDeleteCounts_whereTheOtherWorkWasWrittenSince(first: Int) throws {
        try withOffice(3) { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            try delete("b", office, on: 1)
            office.clock.advance()
            let a = try #require(try office.stores[2].record(RecordID(zone: RecordType.libraryZone, name: "a"))?.record)
            let fields = try Fields.parse(a.fields) + [Field("note", "\"new\"")]
            try office.stores[2].take(a.edited(fields, at: office.clock.now))
            let findings = try settle(office, from: first)
            #expect(try office.outcome("").works == ["a": ["a"]], "\(findings)")
        }
    }

    /// A decision on a third device has kept another work instead of the kept one: nothing is to stay for its sake.
    @Test func aDeleteCounts_whereAnotherDecisionHasPutAWorkInItsPlace() throws {
        try withOffice(3, works: ["a", "b", "c"]) { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            office.clock.advance()
            try office.decide(.keepSecond, "b", "c", on: 2)
            try delete("b", office, on: 1)
            let findings = try settle(office, from: 2)
            #expect(try office.outcome("").works == ["c": ["c"]], "\(findings)")
        }
    }

    /// An undo on either side brings back what it took.
    @Test(arguments: [0, 1], [0, 1])
    func anUndoAfterwards_bringsBothBack(first: Int, number: Int) throws {
        try withOffice { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            office.clock.advance()
            _ = try office.stores[1].curate(.delete, ["Library/b"])
            try office.settle(from: first)
            _ = try office.stores[number].undoLast()
            try office.settle()
            let works = try office.outcome("").works
            #expect(works == (number == 0 ? ["a": ["a"], "b": ["b"]] : ["b": ["b"]]))
        }
    }

    /// Another device keeps the work for itself.
    @Test(arguments: [0, 1])
    func aKeptWorkThatAnotherDeviceTakesForItself_staysOnTheOthers(first: Int) throws {
        try withOffice(3) { office in
            try office.decide(.keepSecond, "a", "b", on: 0)
            office.clock.advance()
            _ = try office.stores[1].setLocal(["Library/b"])
            let findings = try settle(office, from: first)
            for store in office.stores { #expect(try office.works(of: store) == ["b": ["b"]]) }
            #expect(findings.map(\.subject) == ["Library/b"], "\(findings)")
            #expect(findings.allSatisfy { $0.code == .protected && $0.severity == .warning })
        }
    }

    /// A sync that ends before all has come loses nothing either.
    @Test(arguments: [0, 1], [false, true])
    func aKilledSync_losesNothing(first: Int, isInHub: Bool) throws {
        for steps in stride(from: 1, to: 400, by: isTorture ? 1 : 13) {
            try withOffice { office in
                try office.decide(.keepSecond, "a", "b", on: 0)
                try delete("b", office, on: 1)
                try office.sync(first)
                try kill(office, 1 - first, after: steps, isInHub: isInHub)
                try office.open()
                try office.settle(from: 1 - first)
                #expect(try office.outcome("\(steps)").works == ["b": ["b"]])
            }
        }
    }

    private struct Killed: Error {}

    private func kill(_ office: Office, _ number: Int, after steps: Int, isInHub: Bool) throws {
        var left = steps
        let database = isInHub ? office.hub.database : office.stores[number].database
        database.beforeStep = {
            left -= 1
            if left <= 0 { throw Killed() }
        }
        defer { database.beforeStep = nil }
        do { try office.sync(number) } catch is Killed {}
    }

    /// Devices that have not heard of each other decide and delete: of each work that nobody deleted by name, one version
    /// is alive, itself or one that a decision put in its place.
    @Test(arguments: testSeeds(isTorture ? 600 : 120))
    func decisionsAndDeletes_leaveAVersionOfEachWork(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withQuickFolder { folder in
            let works = Array(["a", "b", "c", "d"].prefix(2 + random.below(3)))
            let count = 2 + random.below(3)
            let office = try Office(
                folder, skews: (0..<count).map { _ in [0, 0, 0, 1, -1, 3_600_000][random.below(6)] })
            for work in works { try office.add(work, on: 0) }
            try office.settle()
            var (named, successors, said): (Set<String>, [String: Set<String>], [String]) = ([], [:], [])
            for _ in 0..<(count + random.below(3)) {
                let number = random.below(count)
                if random.chance(2) { office.clock.advance() }
                let waiting = try office.stores[number].conflicts()
                let living = try office.works(of: office.stores[number])
                if random.chance(2), let conflict = waiting.first {
                    let choice: ConflictChoice = [.keepExisting, .keepIncoming, .merge][random.below(3)]
                    _ = try ConflictResolver.resolve([conflict.id], with: choice, in: office.stores[number])
                    let now = try office.works(of: office.stores[number])
                    for gone in Set(living.keys).subtracting(now.keys) {
                        let stays = gone == conflict.existing ? conflict.incoming : conflict.existing
                        successors[gone, default: []].formUnion(now[stays] ?? [stays])
                    }
                    said.append("\(number): \(choice) of \(conflict.existing), \(conflict.incoming)")
                } else if let work = living.keys.sorted().randomElement(using: &random) {
                    // It stands for all that this device has decided about it.
                    var (all, open): (Set<String>, Set<String>) = ([], [work])
                    while let next = open.popFirst() {
                        guard all.insert(next).inserted else { continue }
                        let known = try office.stores[number].record(RecordID(zone: "Library", name: next))?.record
                        for (name, _) in known?.knownTimes ?? [:] {
                            let id = String(name.drop { $0 != ")" }.dropFirst(2))
                            if !id.isEmpty { open.insert(id) }
                        }
                    }
                    named.formUnion(all)
                    _ = try office.stores[number].delete(["Library/\(work)"])
                    said.append("\(number): deletes \(work)")
                }
                if random.chance(4) {
                    try office.sync(number)
                    said.append("\(number): syncs")
                }
            }
            try office.settle(from: random.below(count))
            let outcome = try office.outcome("\(said)")
            let alive = outcome.works.values.reduce(into: Set<String>()) { $0.formUnion($1) }
            for work in works where !named.contains(work) {
                var (reached, open): (Set<String>, Set<String>) = ([], [work])
                while let next = open.popFirst() {
                    if reached.insert(next).inserted { open.formUnion(successors[next] ?? []) }
                }
                #expect(!reached.isDisjoint(with: alive), "\(work) is gone: \(said): \(outcome.works)")
            }
        }
    }
}

/// The same where the delete comes with a backup.
@Suite struct KeptInsteadRestoreTests {
    @Test(arguments: [false, true])
    func aBackupOfWhoHasDeletedAKeptWork_deletesNoLastVersion(replace: Bool) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["a", "b"])
            try office.decide(.keepSecond, "a", "b", on: 0)
            office.clock.advance()
            _ = try office.stores[1].delete(["b"])
            office.clock.advance()
            try office.stores[0].bringBack(office.stores[1].all(), .honor, replace: replace)
            #expect(try office.works(of: office.stores[0]) == ["b": ["b"]])
            try office.settle()
            #expect(try office.outcome("").works == ["b": ["b"]])
        }
    }
}
