import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Devices whose clocks disagree, and a hub.
final class Office {
    let clock = TestClock()
    private(set) var stores: [Store] = []
    private(set) var hub: FileHub
    private let folder: String
    private let skews: [Int64]
    /// The work that was written after all others.
    var newest: String?

    /// Two devices that have these works.
    convenience init(_ folder: String, with works: [String]) throws {
        try self.init(folder, skews: [0, 0])
        for work in works { try add(work, on: 0) }
        try settle()
    }

    init(_ folder: String, skews: [Int64]) throws {
        (self.folder, self.skews) = (folder, skews)
        hub = try FileHub.create("\(folder)/hub.db")
        for number in skews.indices { _ = try Store.create(path(number)) }
        try open()
    }

    private func path(_ number: Int) -> String { "\(folder)/\(number).db" }

    /// Opens all devices and the hub, also once more after one was killed.
    func open() throws {
        stores = []
        hub = try FileHub("\(folder)/hub.db")
        let clock = clock
        stores = try skews.enumerated().map { number, skew in
            let store = try Store(
                path(number), .write, clock: Clock { Timestamp(milliseconds: clock.now.milliseconds + skew) })
            try store.database.execute("PRAGMA synchronous = OFF")
            return store
        }
    }

    /// A publication of the key `k` that says which work it is; a device that has others of that key queues a conflict.
    func add(_ work: String, on number: Int, local: Bool = false, key: String = "k") throws {
        let store = stores[number]
        try store.take(
            record(
                work,
                "{\"citeKey\":\"\(key)\",\"entryType\":\"misc\",\"title\":\"\(work)\",\"mark\(work)\":\"1\"}",
                at: work == newest ? 2 : 1, type: RecordType.publication, zone: RecordType.libraryZone, local: local))
        try store.write {
            for other in try works(of: store).keys where other != work {
                try store.noteConflict(kind: "publication", subject: key, existing: other, incoming: work)
            }
        }
    }

    /// The works that each live publication holds.
    func works(of store: Store) throws -> [String: Set<String>] {
        var found: [String: Set<String>] = [:]
        try store.forEachLive(type: RecordType.publication) { stored in
            let marks = try Fields.parse(stored.record.fields).map(\.name).filter { $0.hasPrefix("mark") }
            found[stored.record.localID] = Set(marks.map { String($0.dropFirst(4)) })
        }
        return found
    }

    func conflict(_ first: String, _ second: String, on number: Int) throws -> Conflict {
        try #require(
            try stores[number].conflicts().first { Set([$0.existing, $0.incoming]) == Set([first, second]) })
    }

    func decide(_ choice: Choice, _ first: String, _ second: String, on number: Int) throws {
        let conflict = try conflict(first, second, on: number)
        let isFirstThere = conflict.existing == first
        let word: ConflictChoice =
            switch choice {
            case .merge: .merge
            case .keepFirst: isFirstThere ? .keepExisting : .keepIncoming
            case .keepSecond: isFirstThere ? .keepIncoming : .keepExisting
            case .renameFirst: isFirstThere ? .renameExisting : .renameIncoming
            case .keepBoth: .keepBoth
            }
        _ = try ConflictResolver.resolve([conflict.id], with: word, in: stores[number])
    }

    /// The cite keys of the live publications.
    func keys(of store: Store) throws -> [String: String] {
        var found: [String: String] = [:]
        try store.forEachLive(type: RecordType.publication) { stored in
            let fields = try Fields.parse(stored.record.fields)
            found[stored.record.localID] = Fields.string(Publication.citeKey, in: fields)
        }
        return found
    }

    @discardableResult func sync(_ number: Int) throws -> SyncResult {
        clock.advance()
        var options = SyncOptions()
        options.sleep = { _ in }
        return try Synchronizer.sync(stores[number], with: hub, options)
    }

    func settle(from first: Int = 0) throws {
        for _ in 0..<4 { for number in stores.indices { try sync((number + first) % stores.count) } }
    }

    /// What all devices show; fails when they do not show the same.
    func outcome(_ comment: String) throws -> (works: [String: Set<String>], waiting: Int) {
        let digests = try stores.map { try $0.sharedDigest() }
        #expect(Set(digests).count == 1, "\(comment): the devices differ")
        let queues = try stores.map { try Set($0.conflicts().map { Set([$0.existing, $0.incoming]) }) }
        #expect(Set(queues).count == 1, "\(comment): the queues differ")
        // A later decision, an undo and an old backup mean the work that had the id.
        try stores[0].forEachLive(type: RecordType.publication) { stored in
            let title = Fields.string("title", in: try Fields.parse(stored.record.fields))
            #expect(title == stored.record.localID, "\(comment): an id has another work")
        }
        return (try works(of: stores[0]), queues[0].count)
    }
}

/// Behind, a little behind, together, a little ahead, ahead.
private let skews: [Int64] = [-86_400_000, -3_600_000, -1001, -1, 0, 1, 1001, 3_600_000, 86_400_000]

@Suite struct DecisionTests {
    /// Both devices know both works, and decide before they hear of each other.
    @Test(arguments: Choice.allCases, Choice.allCases)
    func twoDevicesThatDecideAtOnceComeToOneState_andNoWorkVanishes(_ mine: Choice, _ theirs: Choice) throws {
        let tried = isTorture ? skews : [-86_400_000, -1, 0, 1, 3_600_000]
        for (number, skew) in tried.enumerated() {
            for isSecondFirst in [false, true] {
                countRounds()
                try withQuickFolder { folder in
                    let count = 2 + number % 2
                    let office = try Office(folder, skews: [0, skew, 0].prefix(count).map { $0 })
                    // Each device had another one of the two first.
                    try office.add("a", on: 0)
                    try office.add("b", on: 1)
                    if number % 3 == 0 { try office.settle() }
                    if number % 3 > 0 { try office.add("b", on: 0) }
                    if number % 3 > 0 { try office.add("a", on: 1) }
                    office.clock.advance()
                    try office.decide(mine, "a", "b", on: 0)
                    try office.decide(theirs, "a", "b", on: 1)
                    try office.settle(from: isSecondFirst ? 1 : 0)
                    let comment = "\(mine) and \(theirs), \(skew) ms, \(count) devices, second first: \(isSecondFirst)"
                    try check(office.outcome(comment), mine, theirs, comment)
                }
            }
        }
    }

    private func check(
        _ outcome: (works: [String: Set<String>], waiting: Int), _ mine: Choice, _ theirs: Choice, _ comment: String
    ) throws {
        let alive = outcome.works.values.reduce(into: Set<String>()) { $0.formUnion($1) }
        var dropped: Set<String> = []
        for choice in [mine, theirs] {
            if choice == .keepFirst { dropped.insert("b") }
            if choice == .keepSecond { dropped.insert("a") }
        }
        #expect(!alive.isEmpty, "\(comment): nothing is left")
        #expect(alive.isSuperset(of: Set(["a", "b"]).subtracting(dropped)), "\(comment): \(outcome.works)")
        if mine == theirs { #expect(outcome.waiting == 0, "\(comment): it waits still") }
        switch (mine, theirs) {
        case (.merge, .merge): #expect(outcome.works == ["a": ["a", "b"]], "\(comment)")
        case (.keepFirst, .keepFirst): #expect(outcome.works == ["a": ["a"]], "\(comment)")
        case (.keepSecond, .keepSecond): #expect(outcome.works == ["b": ["b"]], "\(comment)")
        case (.keepBoth, .keepBoth): #expect(outcome.works == ["a": ["a"], "b": ["b"]], "\(comment)")
        default: break
        }
    }

    @Test func theLaterOfTwoDecisionsCounts() throws {
        for isSecondFirst in [false, true] {
            try withQuickFolder { folder in
                let office = try Office(folder, with: ["a", "b"])
                try office.decide(.keepFirst, "a", "b", on: 0)
                office.clock.advance()
                try office.decide(.keepSecond, "a", "b", on: 1)
                try office.settle(from: isSecondFirst ? 1 : 0)
                let outcome = try office.outcome("")
                #expect(outcome.works == ["b": ["b"]] && outcome.waiting == 0)
            }
        }
    }

    /// Also where it keeps both works, under one key or two.
    @Test(arguments: Choice.allCases, [Choice.renameFirst, .keepBoth])
    func aLaterDecisionForBothWorksKeepsBoth(_ earlier: Choice, _ later: Choice) throws {
        for (isSecondFirst, newest) in [(false, "a"), (false, "b"), (true, "a"), (true, "b")] {
            try withQuickFolder { folder in
                let office = try Office(folder, skews: [0, 0])
                office.newest = newest
                try office.add("a", on: 0)
                try office.add("b", on: 1)
                try office.settle()
                try office.decide(earlier, "a", "b", on: 0)
                office.clock.advance()
                try office.decide(later, "a", "b", on: 1)
                try office.settle(from: isSecondFirst ? 1 : 0)
                let (works, waiting) = try office.outcome("\(earlier), \(later)")
                #expect(Set(works.keys) == ["a", "b"] && waiting == 0, "\(earlier), \(later): \(works)")
            }
        }
    }

    /// The later decision counts, whichever they are: all devices show what it alone would have left. Only a work that was
    /// merged into one that the later decision deletes keeps that one alive, and the sync names the conflict.
    @Test(arguments: Verdict.all, Verdict.all)
    func ofAllPairsOfDecisions_theLaterOneCounts(_ earlier: Verdict, _ later: Verdict) throws {
        for number in 0..<8 {
            let (isSecondFirst, isSecondEarlier) = (number & 1 > 0, number & 2 > 0)
            let (newest, other) = number & 4 > 0 ? ("b", "a") : ("a", "b")
            try withQuickFolder { folder in
                let office = try Office(folder, skews: [0, 0])
                office.newest = newest
                try office.add("a", on: 0)
                try office.add("b", on: 1)
                try office.settle()
                let devices = isSecondEarlier ? [1, 0] : [0, 1]
                try earlier.make(office, on: devices[0])
                office.clock.advance()
                try later.make(office, on: devices[1])
                let alone = try office.keys(of: office.stores[devices[1]])
                var findings: [Finding] = []
                for _ in 0..<4 {
                    for number in isSecondFirst ? [1, 0] : [0, 1] { findings += try office.sync(number).findings }
                }
                let comment = "\(earlier), then \(later); \(isSecondFirst), \(isSecondEarlier), \(newest)"
                let (works, waiting) = try office.outcome(comment)
                if earlier == .keep(.merge), later == .keep(newest == "a" ? .keepSecond : .keepFirst) {
                    #expect(works == [newest: ["a", "b"], other: [other]] && waiting == 1, "\(comment): \(works)")
                    #expect(findings.contains { $0.code == .conflict && $0.subject == "k" }, "\(comment)")
                } else {
                    #expect(try office.keys(of: office.stores[0]) == alone && waiting == 0, "\(comment): \(alone)")
                }
            }
        }
    }

    @Test func whenOneDeviceHasDecidedNobodyElseIsAsked() throws {
        for choice in Choice.allCases {
            try withQuickFolder { folder in
                let office = try Office(folder, skews: [0, -86_400_000, 3_600_000])
                try office.add("a", on: 0)
                try office.add("b", on: 1)
                try office.settle()
                for store in office.stores { #expect(try store.conflicts().count == 1 && store.info().conflicts == 1) }
                try office.decide(choice, "a", "b", on: 1)
                try office.settle()
                #expect(try office.outcome("\(choice)").waiting == 0)
                // What is undone is open again, everywhere.
                _ = try office.stores[1].undoLast()
                try office.settle()
                #expect(try office.outcome("\(choice) undone").waiting == 1)
            }
        }
    }

    /// Three works under one key, and three devices that decide about two of them each.
    @Test func ofThreeWorksNoneVanishesThatNobodyDropped() throws {
        var random = SeededGenerator(seed: testSeed())
        let pairs = [("a", "b"), ("b", "c"), ("a", "c")]
        for run in 0..<(isTorture ? 300 : 30) {
            countRounds()
            try withQuickFolder { folder in
                let office = try Office(
                    folder, skews: (0..<3).map { _ in [0, 0, 0, 1, -1, 3_600_000][random.below(6)] })
                for work in ["a", "b", "c"] { try office.add(work, on: 0) }
                try office.settle()
                var (dropped, said): (Set<String>, [String]) = ([], [])
                for number in 0..<3 {
                    if random.chance(3) { office.clock.advance() }
                    let (pair, choice) = (pairs[random.below(3)], Choice.allCases[random.below(5)])
                    try office.decide(choice, pair.0, pair.1, on: number)
                    said.append("\(choice) \(pair)")
                    if choice == .keepFirst { dropped.insert(pair.1) }
                    if choice == .keepSecond { dropped.insert(pair.0) }
                }
                try office.settle(from: random.below(3))
                let outcome = try office.outcome("run \(run): \(said)")
                let alive = outcome.works.values.reduce(into: Set<String>()) { $0.formUnion($1) }
                #expect(
                    !alive.isEmpty && alive.isSuperset(of: Set(["a", "b", "c"]).subtracting(dropped)),
                    "run \(run): \(said): \(outcome.works)")
            }
        }
    }

    @Test func aWorkThatTookInAnotherOneOutlivesWhoeverDidNotKnow() throws {
        for isSecondFirst in [false, true] {
            try withQuickFolder { folder in
                let office = try Office(folder, with: ["a", "b", "c"])
                try office.decide(.merge, "a", "b", on: 0)
                office.clock.advance()
                try office.decide(.keepSecond, "a", "c", on: 1)
                try office.settle(from: isSecondFirst ? 1 : 0)
                let outcome = try office.outcome("")
                #expect(outcome.works == ["a": ["a", "b"], "c": ["c"]] && outcome.waiting == 1)
                // Who knows what it holds can delete it.
                try office.decide(.keepSecond, "a", "c", on: 1)
                try office.settle()
                #expect(try office.outcome("").works == ["c": ["c"]])
            }
        }
    }

    @Test func aConflictWithACopyThatStaysHereStaysHere() throws {
        try withQuickFolder { folder in
            let office = try Office(folder, skews: [0, 0])
            try office.add("a", on: 0)
            try office.add("b", on: 0, local: true)
            try office.settle()
            #expect(try office.stores.map { try $0.conflicts().count } == [1, 0])
            #expect(try office.stores[1].all().allSatisfy { $0.type != RecordType.conflict })
            try office.decide(.keepSecond, "a", "b", on: 0)
            try office.settle()
            #expect(try office.works(of: office.stores[0]) == ["b": ["b"]])
            #expect(try office.works(of: office.stores[1]).isEmpty)
        }
    }

    @Test func whoMayOnlyReadAZoneIsNotToldThatItsConflictIsHeld() throws {
        try withDevices("ann", "ben") { devices in
            func publish(_ name: String, on device: String) throws {
                try devices[device].take(
                    record(name, "{\"citeKey\":\"k\",\"title\":\"\(name)\"}", type: "Publication", zone: "Z"))
            }
            try publish("a", on: "ann")
            try devices["ann"].share("Z", with: "ben", .read, owner: "ann")
            try devices.sync("ann", user: "ann")
            try publish("b", on: "ben")
            #expect(try devices.sync("ben", user: "ben").held.map(\.id.name) == ["b"])
            #expect(try devices["ben"].conflicts().count == 1)
            #expect(try devices.sync("ben", user: "ben").pushed == 0)
        }
    }

    /// Two devices fold names of one record into different survivors, for each knows names that the other does not.
    @Test func namesThatTwoDevicesFoldAtOnceLeaveOneAlive_withEverything() throws {
        for (first, second) in [(0, 1), (1, 0)] {
            for isLater in [false, true] {
                try withQuickFolder { folder in
                    let office = try Office(folder, skews: [0, 0])
                    func save(_ name: String, _ seconds: Int64) -> Record {
                        record(name, "{\"from_\(name)\":1}", at: seconds, localID: "D")
                    }
                    try office.stores[0].write {
                        for row in [save("n1", 2), save("n2", 3)] { try office.stores[0].put(row, replacing: nil) }
                    }
                    try office.stores[1].write {
                        for row in [save("n0", 1), save("n1", 2)] { try office.stores[1].put(row, replacing: nil) }
                    }
                    _ = try Deduplicator.run(on: office.stores[first])
                    if isLater { office.clock.advance() }
                    _ = try Deduplicator.run(on: office.stores[second])
                    try office.settle()
                    _ = try Deduplicator.run(on: office.stores[0])
                    try office.settle()
                    _ = try office.outcome("")
                    let live = try office.stores[1].all().filter { !$0.isDeleted }
                    #expect(live.map(\.localID) == ["D"])
                    let names = try Fields.parse(live.first?.fields ?? "{}").map(\.name).sorted()
                    #expect(names == ["from_n0", "from_n1", "from_n2"])
                }
            }
        }
    }
}
