import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The fast way of importing event logs must do what taking line by line does.
@Suite struct EventIntakeTests {
    /// Takes the files by the fast way, in windows of a few lines.
    private func fast(_ paths: [String], into store: Store, windowBytes: Int64 = 300) throws -> IntakeResult {
        let scan = try EventScan(paths, for: store, lineBytes: 4096, windowBytes: windowBytes)
        let intake = Intake(store)
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            try EventIntake(intake, scan).take()
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    /// Takes them as into a store that has nothing yet, whatever it has.
    private func load(_ paths: [String], into store: Store) throws -> IntakeResult {
        let intake = Intake(store)
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            try EventLoad(intake, paths, lineBytes: 4096).take()
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    private func slow(_ paths: [String], into store: Store) throws -> IntakeResult {
        let intake = Intake(store)
        var limits = ReadLimits()
        limits.lineBytes = 4096
        let (_, batch) = try store.batch(kind: "import", source: "test") {
            try FileIntake(intake, limits).takeEvents(paths.map { ($0, $0) })
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    private func line(_ random: inout SeededGenerator) -> String {
        let minute = 10 + Int.random(in: 0..<40, using: &random)
        let time = "2026-02-14T15:\(minute):00+01:00"
        let note = ["a", "b", "é", "\\u00e9", "c\\\"d"].randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<12, using: &random) {
        case 0: return ""
        case 1: return "{\"time\":\"\(time)\",\"type\":"
        case 2: return "{\"id\":\"x\",\"time\":\"now\",\"type\":\"eten\"}"
        case 3: return "{\"id\":\"y\",\"time\":\"\(time)\",\"type\":\"eten\",\"type\":\"eten\"}"
        case 4: return "{\"id\":\"z\",\"time\":\"\(time)\",\"type\":\"eten\",\"photo\":\"../x.jpg\"}"
        case 5: return "{\"id\":\"far\",\"time\":\"2999-01-01T00:00Z\",\"type\":\"eten\"}"
        case 6...7: return "{\"time\":\"\(time)\",\"type\":\"eten\",\"note\":\"\(note)\"}"
        case 9:
            let id = "a0b1c2d3-e4f5-4a6b-8c7d-0000000000a\(Int.random(in: 0..<4, using: &random))"
            let written = Bool.random(using: &random) ? id : id.uppercased()
            return "{\"id\":\"\(written)\",\"time\":\"\(time)\",\"type\":\"eten\",\"note\":\"\(note)\"}"
        case 8: return String(repeating: "x", count: 5000)
        default:
            let id = Int.random(in: 0..<30, using: &random)
            let end = Bool.random(using: &random) ? "" : "\r"
            return
                "{\"id\":\"\(id)\",\"time\":\"\(time)\",\"type\":\"eten\",\"modified_at\":\"\(time)\",\"note\":\"\(note)\"}\(end)"
        }
    }

    @Test func theFastWayDoesWhatTheSlowWayDoes() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        for round in 0..<(isTorture ? 300 : 25) {
            countRounds()
            try withTemporaryFolder { folder in
                var paths: [String] = []
                for file in 0..<Int.random(in: 1...3, using: &random) {
                    let lines = (0..<Int.random(in: 0...25, using: &random)).map { _ in line(&random) }
                    let end = Bool.random(using: &random) ? "\n" : ""
                    paths.append("\(folder)/\(file).jsonl")
                    try writeFile(paths[file], (file == 0 ? "\u{FEFF}" : "") + lines.joined(separator: "\n") + end)
                }
                let clock = TestClock().clock
                let (one, two, three) = (
                    try Store.create("\(folder)/1.db", clock: clock), try Store.create("\(folder)/2.db", clock: clock),
                    try Store.create("\(folder)/3.db", clock: clock)
                )
                for turn in 0..<2 {
                    let (left, right) = (try fast(paths, into: one), try slow(paths, into: two))
                    let place = "seed \(seed), round \(round), turn \(turn)"
                    let loaded = try load(paths, into: three)
                    #expect(try three.contentDigest() == two.contentDigest(), "\(place)")
                    #expect(loaded.read == right.read && loaded.rejected == right.rejected, "\(place)")
                    #expect(loaded.added == left.added && loaded.unchanged == left.unchanged, "\(place)")
                    #expect(try one.contentDigest() == two.contentDigest(), "\(place)")
                    #expect(left.read == right.read && left.rejected == right.rejected, "\(place)")
                    if turn == 0 { #expect(left.added == right.added, "\(place)") }
                    let writes = [left.writes, right.writes]
                    let texts = paths.map { readText($0) ?? "" }
                    #expect(turn == 0 || writes == [0, 0], "\(place): \(texts)")
                    // A line that says an old thing again may be called unchanged by one way, protected by the other.
                    let counts = [left, right].map { $0.unchanged + $0.protected }
                    #expect(turn == 0 || counts[0] == counts[1], "\(place)")
                }
                try checkSound("\(folder)/1.db")
                try checkSound("\(folder)/3.db")
            }
        }
    }

    // MARK: One event, however its id is written, and whenever it came

    private func take(_ lines: String..., into store: Store, in folder: String) throws -> IntakeResult {
        let path = "\(folder)/log.jsonl"
        try? Directory.removeTree(path)
        try writeFile(path, lines.joined(separator: "\n") + "\n")
        return try Importer.run([path], into: store, ImportOptions())
    }

    private let id = "A0B1C2D3-E4F5-4A6B-8C7D-00000000000F"

    private func line(_ id: String? = nil, _ rest: String = "\"note\":\"x\"") -> String {
        "{\(id.map { "\"id\":\"\($0)\"," } ?? "")\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\(rest)}"
    }

    @Test func uuidsThatDifferInCase_areOneId() throws {
        for (first, second) in [(id, id.lowercased()), (id.lowercased(), id)] {
            try withStore { test in
                _ = try take(line(first), into: test.store, in: test.folder)
                let digest = try test.store.digest()
                let again = try take(line(second), into: test.store, in: test.folder)
                #expect(again.added == 0 && again.writes == 0, "\(again)")
                #expect(try test.store.digest() == digest)
                // Both at once, and one that was edited since.
                let edited = line(second, "\"note\":\"y\",\"modified_at\":\"2026-02-15T15:00:00+01:00\"")
                let both = try take(line(first), edited, into: test.store, in: test.folder)
                #expect(both.added == 0 && both.updated == 1, "\(both)")
                #expect(try test.store.all().count == 1)
            }
        }
    }

    @Test(arguments: [false, true])
    func theLatestLineOfAnEventHolds_whereverItStands(inLowerCase: Bool) throws {
        func line(_ minute: Int, _ note: String, _ id: String) -> String {
            let time = "2026-02-14T15:\(minute):00+01:00"
            return "{\"id\":\"\(id)\",\"time\":\"\(time)\",\"type\":\"eten\",\"note\":\"\(note)\"}"
        }
        let other = inLowerCase ? id.lowercased() : id
        let lines = [line(13, "a", id), line(33, "a", other), line(22, "b", id)]
        for ways in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            for way in [take, takeOneByOne] {
                try withStore { test in
                    let path = "\(test.folder)/log.jsonl"
                    try writeFile(path, ways.map { lines[$0] + "\n" }.joined())
                    #expect(try way(path, test.store).needsAttention, "\(ways): a line is not taken")
                    let event = try #require(try test.store.all().first)
                    #expect(event.fields == lines[1], "\(ways)")
                    #expect(event.modifiedAt.iso8601 == "2026-02-14T14:33:00.000Z", "\(ways)")
                    #expect(try way(path, test.store).writes == 0, "\(ways)")
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func anImportThatOverwrites_takesTheLatestLineOfAnEvent_once(isKnown: Bool) throws {
        let lines = [13, 33, 22].map { minute in
            "{\"id\":\"\(id)\",\"time\":\"2026-02-14T15:\(minute):00+01:00\",\"type\":\"eten\",\"note\":\"at \(minute)\"}"
        }
        for ways in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            try withStore { test in
                let path = "\(test.folder)/log.jsonl"
                if isKnown {
                    try writeFile(path, lines[0].replacing("at 13", with: "older") + "\n")
                    _ = try take(path, into: test.store)
                }
                try writeFile(path, ways.map { lines[$0] + "\n" }.joined())
                var options = ImportOptions()
                options.overwrite = true
                for run in 1...3 {
                    let result = try Importer.run([path], into: test.store, options)
                    #expect(try test.store.all().map(\.fields) == [lines[1]], "\(ways), run \(run)")
                    #expect(result.needsAttention && result.read == 3, "\(ways), run \(run): \(result)")
                    #expect(run == 1 || result.writes == 0, "\(ways), run \(run): \(result)")
                }
            }
        }
    }

    private func take(_ path: String, into store: Store) throws -> IntakeResult {
        try Importer.run([path], into: store, ImportOptions())
    }

    private func takeOneByOne(_ path: String, into store: Store) throws -> IntakeResult {
        try slow([path], into: store)
    }

    @Test func anOldStoreIsBroughtForward_andKnowsItsIdsInEitherCase() throws {
        try withStore { test in
            let names = [id.lowercased(), "not-a-uuid-of-36-bytes-in-lower-case", "short"]
            try test.store.write {
                for name in names { try test.store.put(record(name, type: RecordType.event), replacing: nil) }
            }
            // As a store of version 0.1.0 has it.
            let database = try SQLite("\(test.folder)/store.db", .readWrite)
            try database.execute("DELETE FROM meta WHERE key = 'keys_fold_uuids'; DELETE FROM local_key")
            try RecordHasher(database).fillKeys(database)
            try RecordHasher.foldUUIDs(database)
            #expect(try test.store.staleKeys() == 0)
            #expect(try test.store.records(localID: id).map(\.record.localID) == [id.lowercased()])
            for name in names { #expect(try test.store.records(localID: name).count == 1) }
        }
    }

    @Test func aLineThatGetsAnIdLater_isTheLineItWas() throws {
        try withStore { test in
            let before = [line(), line(nil, "\"note\":\"twice\""), line(nil, "\"note\":\"twice\"")]
            _ = try take(before[0], before[1], before[2], into: test.store, in: test.folder)
            let names = Set(try test.store.all().map(\.id))
            let times = "\"created_at\":\"2026-02-14T15:00:00+01:00\",\"modified_at\":\"2026-02-14T15:00:00+01:00\""
            let after = [
                line("11111111-0000-4000-8000-00000000000A"),
                line("22222222-0000-4000-8000-00000000000A", "\"note\":\"twice\",\(times)"),
                line("33333333-0000-4000-8000-00000000000A", "\"note\":\"twice\""),
            ]
            let result = try take(after[0], after[1], after[2], into: test.store, in: test.folder)
            #expect(result.added == 0 && result.updated == 3, "\(result)")
            let records = try test.store.all()
            #expect(Set(records.map(\.id)) == names && Set(records.map(\.fields)) == Set(after))
            #expect(try test.store.staleKeys() == 0)
            let digest = try test.store.digest()
            for lines in [after, before] {
                let again = try take(lines[0], lines[1], lines[2], into: test.store, in: test.folder)
                #expect(again.added == 0 && again.writes == 0, "\(again)")
            }
            #expect(try test.store.digest() == digest)
            _ = try take(
                line("44444444-0000-4000-8000-00000000000A", "\"note\":\"twice\""), into: test.store, in: test.folder)
            #expect(try test.store.all().count == 4)
        }
    }

    @Test func aLineWithoutAnId_isTheEventThatHasOne_whicheverComesFirst() throws {
        for seed in testSeeds(isTorture ? 150 : 12) {
            countRounds()
            var random = SeededGenerator(seed: seed)
            let notes = (0..<1 + random.below(6)).map { _ in "\"note\":\"\(random.below(4))\"" }
            let times = "\"created_at\":\"2026-02-14T15:00:00+01:00\",\"modified_at\":\"2026-02-14T15:00:00+01:00\""
            let without = notes.map { line(nil, $0) }
            let with = notes.enumerated().map { number, note in
                line(
                    "\(number)1111111-0000-4000-8000-00000000000A", number % 2 == 0 ? note : "\(note),\(times)")
            }
            try withStore { test in
                for round in 0..<4 {
                    // First a part of the log with ids; then the log without them, and again; then the log with ids.
                    let count = round == 0 ? random.below(notes.count + 1) : notes.count
                    let log = (round == 0 || round == 3 ? with : without).prefix(count).shuffled(using: &random)
                    let path = "\(test.folder)/\(round).jsonl"
                    try writeFile(path, log.map { $0 + "\n" }.joined())
                    let isSlow = random.below(2) == 0
                    _ = try isSlow ? slow([path], into: test.store) : fast([path], into: test.store)
                    #expect(try test.store.all().count == count, "seed \(seed), round \(round): \(log)")
                }
            }
        }
    }

    @Test func aDeletedEventStaysDeleted_whenItsLineGetsAnId() throws {
        try withStore { test in
            _ = try take(line(), into: test.store, in: test.folder)
            test.clock.advance()
            let known = try #require(try test.store.all().first)
            _ = try test.store.take(known.tombstone(at: test.clock.now))
            let before = try test.store.all()
            let result = try take(line(id), into: test.store, in: test.folder)
            #expect(result.added == 0 && result.protected == 1, "\(result)")
            #expect(try test.store.all() == before && before.allSatisfy(\.isDeleted))
        }
    }

    @Test func anEventThatIsKeptHere_staysAsItIs_whenItsLineGetsAnId() throws {
        try withStore { test in
            _ = try take(line(), into: test.store, in: test.folder)
            test.clock.advance()
            _ = try test.store.setLocal([try #require(try test.store.all().first).id.description])
            let before = try test.store.all()
            let edited = line(id, "\"note\":\"x\",\"modified_at\":\"2027-02-14T15:00:00+01:00\"")
            let result = try take(edited, into: test.store, in: test.folder)
            #expect(result.added == 0 && result.protected == 1, "\(result)")
            #expect(try test.store.all() == before)
        }
    }
}
