import TestSupport
import Testing

@testable import BackupKit

/// Logs in which events of a few texts have ids in some lines and none in others.
private struct FormsWorld {
    /// The last two name a photo, each log of a kind has only one of them beside it, and the photos are not the same.
    private static let texts = [
        "\"note\":\"a\"", "\"note\":\"é\"", "\"note\":\"b\",\"photo\":\"p.jpg\"", "\"note\":\"c\",\"photo\":\"p.jpg\"",
    ]
    private static let times =
        "\"created_at\":\"2026-02-14T15:00:00+01:00\",\"modified_at\":\"2026-02-14T15:00:00+01:00\""
    private static let idCount = 8

    var random: SeededGenerator
    let folder: String
    var paths: [String] = []
    var story: [String] = []
    /// Of each file and text: the ids, and how many lines have none.
    private var files: [[(ids: Set<Int>, without: Int)]] = []

    init(_ seed: UInt64, _ folder: String) throws {
        random = SeededGenerator(seed: seed)
        self.folder = folder
        for file in 0...random.below(3) { try makeLog(file) }
    }

    private mutating func makeLog(_ file: Int) throws {
        var lines: [String] = []
        var counts = Self.texts.map { _ in (ids: Set<Int>(), without: 0) }
        // Logs without ids, with ids, and with both.
        let form = random.below(3)
        let other = 2 + random.below(2)
        for _ in 0...random.below(4) {
            var id = random.below(Self.idCount)
            while id % Self.texts.count == other { id = random.below(Self.idCount) }
            let text = id % Self.texts.count
            if form == 0 || form == 1 && random.chance(2) {
                counts[text].without += 1
                lines.append(line(nil, Self.texts[text]))
            } else if counts[text].ids.insert(id).inserted {
                lines.append(line(id, random.chance(2) ? Self.texts[text] : "\(Self.texts[text]),\(Self.times)"))
            }
        }
        files.append(counts)
        paths.append("\(folder)/\(file)/log.jsonl")
        try Directory.create("\(folder)/\(file)")
        try writeFile(paths[file], lines.map { $0 + "\n" }.joined())
        try writeFile("\(folder)/\(file)/p.jpg", "the photo of \(5 - other)")
        story.append("\(file): \(lines)")
    }

    private mutating func line(_ id: Int?, _ rest: String) -> String {
        let uuid = id.map { "A0B1C2D3-E4F5-4A6B-8C7D-0000000000A\($0)" }
        let written = uuid.map { random.chance(3) ? $0.lowercased() : $0 }
        // An app that gives ids may say the same in other words.
        let clocks = id == nil ? ["15:00:00+01:00"] : ["15:00:00+01:00", "15:00+01:00", "14:00:00.000Z"]
        let grams = id != nil && random.chance(2) ? "1" : "1.0"
        return
            "{\(written.map { "\"id\":\"\($0)\"," } ?? "")\"time\":\"2026-02-14T\(clocks[random.below(clocks.count)])\",\"type\":\"eten\",\"grams\":\(grams),\(rest)}"
    }

    /// Of each text, how many events there must be. Each line of a file is one; a line without an id may be an event with an
    /// id that the file does not have.
    var expected: [Int] {
        Self.texts.indices.map { text in
            let all = files.reduce(into: Set<Int>()) { $0.formUnion($1[text].ids) }
            return all.count
                + files.map { max(0, $0[text].without - all.subtracting($0[text].ids).count) }.reduce(0, max)
        }
    }

    func found(_ store: Store) throws -> [Int] {
        let records = try store.all().filter { !$0.isDeleted }
        return Self.texts.map { text in records.count { $0.fields.contains(text.prefix { $0 != "," }) } }
    }
}

private let said = "\"time\":\"2026-04-01T11:00:00+02:00\",\"type\":\"eten\""
private let created = (0...1).map { "\"created_at\":\"2026-04-01T09:00:0\($0)Z\"" }
private let modified = (0...1).map { "\"modified_at\":\"2026-04-01T09:00:0\($0)Z\"" }

@Suite struct EventFormsTests {
    private enum Way: CaseIterable { case import_, fast, slow }

    private func take(_ paths: [String], _ way: Way, into store: Store) throws -> IntakeResult {
        if way == .import_ { return try Importer.run(paths, into: store, ImportOptions()) }
        let intake = Intake(store)
        let scan = try EventScan(paths, for: store, lineBytes: 4096, windowBytes: 300)
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            if way == .fast {
                try EventIntake(intake, scan).take()
            } else {
                try FileIntake(intake, ReadLimits()).takeEvents(paths.map { ($0, $0) })
            }
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    @Test(arguments: testSeeds(isTorture ? 300 : 60))
    func everyOrderOfLogsAndCommands_givesTheSameEvents(seed: UInt64) throws {
        countRounds()
        try withStore { test in
            var world = try FormsWorld(seed, test.folder)
            var rest = world.paths.shuffled(using: &world.random)
            while !rest.isEmpty {
                let count = 1 + world.random.below(rest.count)
                let way = Way.allCases[world.random.below(3)]
                let result = try take(Array(rest.prefix(count)), way, into: test.store)
                world.story.append("\(way) \(rest.prefix(count).map { lastComponent(of: parent(of: $0)) })")
                #expect(result.findings.allSatisfy { $0.code == .conflict }, "\(result.findings)")
                #expect(result.read == result.added + result.updated + result.unchanged + result.protected, "\(result)")
                rest.removeFirst(count)
            }
            #expect(try world.found(test.store) == world.expected, "\(world.story.joined(separator: "\n"))")
            for way in Way.allCases {
                let again = try take(world.paths.shuffled(using: &world.random), way, into: test.store)
                #expect(
                    again.added == 0 && again.findings.allSatisfy { $0.code == .conflict },
                    "\(again) \(world.story.joined(separator: "\n"))")
            }
            #expect(try world.found(test.store) == world.expected)
            // A backup says which records are one: what is equal in it are two.
            let (export, other) = ("\(test.folder)/export", "\(test.folder)/other.db")
            let before = try test.store.contentDigest()
            _ = try Exporter.export(test.store, to: export, ExportOptions(form: .layout(.directory)))
            let restored = try Store.create(other, clock: test.clock.clock)
            _ = try Restorer.restore(export, into: restored, RestoreOptions())
            #expect(try restored.contentDigest() == before, "\(world.story.joined(separator: "\n"))")
            try Directory.removeTree("\(export)/records.jsonl")
            let rebuilt = try Store.create("\(test.folder)/rebuilt.db", clock: test.clock.clock)
            var options = RestoreOptions()
            options.allowDamage = true
            _ = try Restorer.restore(export, into: rebuilt, options)
            #expect(try world.found(rebuilt) == world.expected, "\(world.story.joined(separator: "\n"))")
        }
    }

    /// The lines of one log without ids, in other words of one meaning, and what their lines with ids say.
    @Test(arguments: [
        (["{\(said),\(created[0])}", "{\(said),\(created[1])}"], said),
        (["{\(said),\(modified[0])}", "{\(said),\(modified[1])}"], said),
        (["{\(said),\(modified[1])}", "{\(said)}", "{\(said),\(modified[0])}"], said),
        (["{\(said),\"n\":1,\"m\":2}", "{\(said),\"m\":2,\"n\":1}"], "\(said),\"n\":1,\"m\":2"),
        (["{\"id\":5,\(said)}", "{\"id\":7,\(said)}", "{\"id\":null,\(said)}", "{\(said)}"], said),
        (["{\"id\":null,\(said)}", "{\"id\":\"\",\(said)}"], said),
    ])
    func theLinesOfALog_allStayAsTheyCame(without: [String], with: String) throws {
        for ids in [["a"], ["a", "b"], ["a", "b", "c", "d"]] {
            let lines = without + ids.map { "{\"id\":\"\($0)\",\(with)}" }
            for (way, log) in zip(
                Way.allCases + Way.allCases, [lines, lines, lines] + Array(repeating: lines.reversed(), count: 3))
            {
                try withStore { test in
                    let path = "\(test.folder)/log.jsonl"
                    try writeFile(path, log.map { $0 + "\n" }.joined())
                    for round in 0..<3 {
                        let result = try take([path], round == 0 ? way : .import_, into: test.store)
                        #expect(result.added == (round == 0 ? lines.count : 0), "\(way): \(result)")
                        #expect(min(result.updated, result.unchanged, result.protected) >= 0, "\(way): \(result)")
                        #expect(
                            try test.store.all().map(\.fields).sorted() == lines.sorted(), "\(way), \(round), \(ids)")
                    }
                }
            }
        }
    }

    /// What has that id is another event than the one that names it as its `localId`.
    @Test func aLineThatNamesAnothersIDAsItsLocalID_isNotThatEvent() throws {
        let lines = ["{\"id\":\"A\",\(said)}", "{\"id\":\"B\",\(said),\"localId\":\"A\"}"]
        for imports in [[[0], [1]], [[1], [0]], [[0, 1]], [[1, 0]]] {
            for way in Way.allCases {
                try withStore { test in
                    let path = "\(test.folder)/log.jsonl"
                    for numbers in imports + imports {
                        try? Directory.removeTree(path)
                        try writeFile(path, numbers.map { lines[$0] + "\n" }.joined())
                        _ = try take([path], way, into: test.store)
                    }
                    _ = try Deduplicator.run(on: test.store)
                    let events = try test.store.all().filter { !$0.isDeleted }
                    #expect(events.map(\.fields).sorted() == lines.sorted(), "\(way), \(imports)")
                }
            }
        }
    }

    /// UUIDs that differ in case are one.
    @Test(
        arguments: ["", ",\"modified_at\":\"2026-04-01T09:00:05Z\""],
        [["q", "q"], ["a0b1c2d3-e4f5-4a6b-8c7d-000000000001", "A0B1C2D3-E4F5-4A6B-8C7D-000000000001"]])
    func aLineWithALocalID_isTheEventThatGetsAnIDBesideIt(edit: String, ids: [String]) throws {
        let before = "{\(said)\(edit),\"localId\":\"\(ids[0])\"}"
        let after = "{\"id\":\"i\",\(said),\"localId\":\"\(ids[1])\"}"
        for imports in [[[before], [after]], [[after], [before]], [[before, after]], [[after, before]]] {
            for way in Way.allCases {
                try withStore { test in
                    let path = "\(test.folder)/log.jsonl"
                    for lines in imports + imports {
                        try? Directory.removeTree(path)
                        try writeFile(path, lines.map { $0 + "\n" }.joined())
                        _ = try take([path], way, into: test.store)
                    }
                    let events = try test.store.all()
                    #expect(events.map(\.localID) == ["i"], "\(way), \(imports): \(events.map(\.fields))")
                    #expect(try events.allSatisfy { try EventText.fieldsWithID($0) != nil }, "\(events.map(\.fields))")
                    let digest = try test.store.digest()
                    for line in [before, after, before] {
                        try Directory.removeTree(path)
                        try writeFile(path, line + "\n")
                        #expect(try take([path], way, into: test.store).writes == 0, "\(way), \(imports): \(line)")
                    }
                    #expect(try test.store.digest() == digest)
                }
            }
        }
    }

    @Test func aDeletedEventStaysDeleted_whenItsLocalIDGetsAnIDBesideIt() throws {
        try withStore { test in
            let path = "\(test.folder)/log.jsonl"
            try writeFile(path, "{\(said),\"localId\":\"q\"}\n")
            _ = try take([path], .import_, into: test.store)
            test.clock.advance()
            let known = try #require(try test.store.all().first)
            _ = try test.store.take(known.tombstone(at: test.clock.now))
            try Directory.removeTree(path)
            try writeFile(path, "{\"id\":\"i\",\(said),\"localId\":\"q\"}\n")
            let result = try take([path], .import_, into: test.store)
            #expect(result.added == 0 && result.protected == 1, "\(result)")
            #expect(try test.store.all().allSatisfy(\.isDeleted))
        }
    }

    /// The older line has the `localId` alone.
    @Test func aDeletedEventStaysDeleted_whereAnOlderLineOfItComes() throws {
        for way in Way.allCases {
            try withStore { test in
                let path = "\(test.folder)/log.jsonl"
                try writeFile(path, "{\"id\":\"i\",\(said),\"localId\":\"q\"}\n")
                _ = try take([path], way, into: test.store)
                test.clock.advance()
                let known = try #require(try test.store.all().first)
                _ = try test.store.take(known.tombstone(at: test.clock.now))
                try Directory.removeTree(path)
                try writeFile(path, "{\(said),\"localId\":\"q\"}\n")
                let result = try take([path], way, into: test.store)
                #expect(result.added == 0 && result.protected == 1, "\(way): \(result)")
                #expect(try test.store.all().allSatisfy(\.isDeleted), "\(way)")
            }
        }
    }
}
