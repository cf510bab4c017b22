import TestSupport
import Testing

@testable import BackupKit

/// Works that people have merged, and backups of who has not heard of that.
@Suite struct DecisionRestoreTests {
    private func withMerged(_ body: (Office) throws -> Void) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0])
            try office.add("one", on: 0)
            try office.add("two", on: 0)
            try office.settle()
            office.clock.advance(seconds: 10)
            try office.decide(.merge, "one", "two", on: 0)
            office.clock.advance(seconds: 10)
            try body(office)
        }
    }

    @Test(arguments: [false, true])
    func aDeleteThatKnewNothingOfAMerge_takesNoWork(mergerRestores: Bool) throws {
        try withMerged { office in
            _ = try office.stores[1].delete(["one"])
            let (from, to) = mergerRestores ? (1, 0) : (0, 1)
            try office.stores[to].bringBack(office.stores[from].all(), .honor)
            #expect(try office.works(of: office.stores[to]) == ["one": ["one", "two"]])
            #expect(try office.stores[to].bringBack(office.stores[from].all(), .honor).writes == 0)
            try office.settle()
            #expect(try office.outcome("").works == ["one": ["one", "two"]])
        }
    }

    @Test func aDeleteOfWhatWasMergedStaysOne_whateverOtherDeletesSay() throws {
        try withMerged { office in
            let merged = try office.stores[0].all()
            _ = try office.stores[0].delete(["one"])
            office.clock.advance(seconds: 10)
            _ = try office.stores[1].delete(["one"])
            try office.settle()
            try office.stores[1].bringBack(merged, .honor)
            #expect(try office.works(of: office.stores[1]).isEmpty)
        }
    }

    /// The survivor's id comes first; the backup may be older than it, too.
    @Test(arguments: [["one", "two"], ["one"], ["two"]], [false, true])
    func replaceLosesNoWorkThatWasMergedSinceTheBackup(there: [String], resurrect: Bool) throws {
        try withMerged { office in
            let backup = try office.stores[1].all().filter { there.contains($0.localID) }
            let result = try office.stores[0].bringBack(backup, resurrect ? .resurrect : .honor, replace: true)
            let works = try office.works(of: office.stores[0])
            let shown = works.values.reduce(into: Set<String>()) { $0.formUnion($1) }
            #expect(shown.isSuperset(of: there), "\(works)")
            if there == ["one", "two"], !resurrect {
                #expect(works == ["one": ["one", "two"]])
                #expect(result.findings.map(\.code) == [.protected] && result.needsAttention)
            }
            // What comes back takes the survivor's reason to stay.
            if there == ["one", "two"], resurrect {
                #expect(works == ["one": ["one"], "two": ["two"]] && !result.needsAttention)
            }
        }
    }

    /// Who had kept one of two works hears that both are one by now: one restore is enough.
    @Test(arguments: [false, true]) func aWorkThatWasKeptIsNotTwice_whereTheBackupHasBothAsOne(replace: Bool) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["one", "two"])
            try office.decide(.keepSecond, "one", "two", on: 0)
            office.clock.advance(seconds: 10)
            try office.decide(.merge, "one", "two", on: 1)
            let backup = try office.stores[1].all()
            try office.stores[0].bringBack(backup, .honor, replace: replace)
            #expect(try office.works(of: office.stores[0]) == ["one": ["one", "two"]])
            #expect(try office.stores[0].bringBack(backup, .honor, replace: replace).writes == 0)
            try office.settle()
            #expect(try office.outcome("").works == ["one": ["one", "two"]])
        }
    }

    /// The other one was deleted for it.
    @Test(arguments: [false, true]) func aWorkThatWasKeptOutlivesItsDelete_onceAndForAll(replace: Bool) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["one", "two"])
            try office.decide(.keepSecond, "one", "two", on: 0)
            office.clock.advance(seconds: 10)
            _ = try office.stores[1].delete(["two"])
            let backup = try office.stores[0].all()
            try office.stores[1].bringBack(backup, .honor, replace: replace)
            #expect(try office.works(of: office.stores[1]) == ["two": ["two"]])
            #expect(try office.stores[1].bringBack(backup, .honor, replace: replace).writes == 0)
            try office.settle()
            #expect(try office.outcome("").works == ["two": ["two"]])
        }
    }

    @Test func replaceMergesTwoVersionsThatHaveEachTakenInAnother() throws {
        try withQuickFolder { folder in
            let office = try Office(folder, with: ["a", "b", "c"])
            try office.decide(.merge, "a", "b", on: 1)
            try office.decide(.merge, "a", "c", on: 1)
            let backup = try office.stores[1].all()
            office.clock.advance(seconds: 10)
            try office.decide(.merge, "a", "b", on: 0)
            let result = try office.stores[0].bringBack(backup, .honor, replace: true)
            #expect(try office.works(of: office.stores[0]) == ["a": ["a", "b", "c"]])
            #expect(result.needsAttention)
            #expect(try office.stores[0].bringBack(backup, .honor, replace: true).writes == 0)
        }
    }

    @Test(arguments: [false, true]) func whatOthersMergeIntoARecordThatIsKeptHere_staysHereToo(chain: Bool) throws {
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0])
            for work in ["one", "two"] + (chain ? ["three"] : []) { try office.add(work, on: 0) }
            try office.settle()
            _ = try office.stores[0].setLocal(["one"])
            office.clock.advance(seconds: 10)
            if chain { try office.decide(.merge, "two", "three", on: 1) }
            try office.decide(.merge, "one", chain ? "three" : "two", on: 1)
            try office.sync(1)
            var options = SyncOptions()
            options.sleep = { _ in }
            let result = try Synchronizer.sync(office.stores[0], with: office.hub, options)
            #expect(result.findings.contains { $0.code == .protected && $0.severity == .warning })
            let shown = try office.works(of: office.stores[0])
            #expect(shown.values.reduce(into: Set<String>()) { $0.formUnion($1) }.count == (chain ? 3 : 2), "\(shown)")
            try office.settle()
            #expect(try office.works(of: office.stores[0]) == shown)
            #expect(try office.works(of: office.stores[1]) == ["one": Set(shown.keys)])
            // Given back it is the one that the others have.
            _ = try office.stores[0].enableCloud(["one"])
            try office.settle()
            #expect(try office.works(of: office.stores[1])["one"] == Set(shown.keys))
        }
    }

    @Test(arguments: testSeeds(isTorture ? 300 : 100))
    func noRestoreLosesAWorkThatNobodyDeleted(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0, 0])
            for work in ["a", "b", "c"] { try office.add(work, on: random.below(3)) }
            try office.settle()
            var backups: [[Record]] = []
            /// What a person has deleted by name, or decided against, and could see then.
            var given: Set<String> = []
            var log: [String] = []
            func marks(_ records: [Record]) throws -> Set<String> {
                let live = records.filter { !$0.isDeleted && $0.type == RecordType.publication }
                let names = try live.flatMap { try Fields.parse($0.fields).map(\.name) }
                return Set(names.filter { $0.hasPrefix("mark") }.map { String($0.dropFirst(4)) })
            }
            for _ in 0..<12 {
                office.clock.advance(seconds: Int64(1 + random.below(5)))
                let number = random.below(3)
                let store = office.stores[number]
                let works = try office.works(of: store)
                let conflicts = try store.conflicts().sorted { $0.subject < $1.subject }
                switch random.below(6) {
                case 0:
                    guard let conflict = conflicts.first else { continue }
                    let choice: ConflictChoice = [.merge, .merge, .keepExisting, .keepIncoming][random.below(4)]
                    if choice == .keepExisting { given.formUnion(works[conflict.incoming] ?? []) }
                    if choice == .keepIncoming { given.formUnion(works[conflict.existing] ?? []) }
                    log.append("\(number) decides \(choice) of \(conflict.existing) and \(conflict.incoming)")
                    _ = try ConflictResolver.resolve([conflict.id], with: choice, in: store)
                case 1:
                    guard let work = works.keys.sorted().first, random.chance(2) else { continue }
                    given.formUnion(works[work] ?? [])
                    log.append("\(number) deletes \(work), which is \(works[work] ?? [])")
                    _ = try store.delete([work])
                case 2:
                    log.append("\(number) makes backup \(backups.count) of \(works)")
                    backups.append(try store.all())
                case 3, 4:
                    guard !backups.isEmpty else { continue }
                    let chosen = random.below(backups.count)
                    let backup = backups[chosen]
                    let replace = random.chance(3)
                    let wanted = try marks(backup).union(replace ? [] : marks(store.all())).subtracting(given)
                    log.append("\(number) restores \(chosen) into \(works), replace: \(replace)")
                    try store.bringBack(backup, .honor, replace: replace)
                    let shown = try office.works(of: store)
                    #expect(
                        try marks(store.all()).isSuperset(of: wanted),
                        "\(wanted) in \(shown) after \(log.joined(separator: "; "))")
                    #expect(
                        try store.bringBack(backup, .honor, replace: replace).writes == 0,
                        "a second restore wrote after \(log.joined(separator: "; "))")
                default:
                    log.append("\(number) syncs")
                    try office.sync(number)
                }
            }
            try office.settle()
            _ = try office.outcome("")
            for store in office.stores { try checkSound(store.path) }
        }
    }
}
