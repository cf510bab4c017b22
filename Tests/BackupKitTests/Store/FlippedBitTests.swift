import TestSupport
import Testing

@testable import BackupKit

/// Any bit of a store may flip. What is damaged is named, and what is not gives what it would have given.
@Suite struct FlippedBitTests {
    private func history(in folder: String, _ clock: TestClock) throws -> Store {
        let store = try Store.create("\(folder)/store.db", clock: clock.clock)
        func batch(_ kind: String, _ source: String, _ body: () throws -> Void) throws {
            clock.advance(seconds: 60)
            _ = try store.batch(kind: kind, source: source) {
                try body()
                return ((), summary: "{}")
            }
        }
        func replaceFile(_ text: String) throws {
            if let old = try store.asset("a.pdf") { try store.removeAsset(old) }
            try place("a.pdf", text, in: store)
        }
        try batch("import", "a.bib") {
            for name in ["a", "b", "c"] { _ = try store.ingest(record(name, "{\"x\":1}", at: 1)) }
            try replaceFile("A")
            _ = try store.putSetting("s", "1", at: time(1))
        }
        try batch("restore", "b.tar") {
            _ = try store.ingest(record("b", "{\"x\":2}", at: 2))
            _ = try store.ingest(record("d", "{\"x\":2}", at: 2))
            try store.removeRow(try #require(try store.record(RecordID(zone: "Z", name: "c"))))
            try replaceFile("B")
            _ = try store.putSetting("s", "2", at: time(2))
            _ = try store.putSetting("t", "2", at: time(2))
        }
        try store.take(record("d", "{\"x\":3}", at: 300))
        try batch("import", "c.bib") {
            _ = try store.ingest(record("b", "{\"x\":4}", at: 400))
            try place("c.pdf", "C", in: store)
        }
        _ = try store.undoLast()
        _ = try store.redoLast()
        return store
    }

    /// All states that undos come by, from the last one on; it ends with an undo that is refused, or that leaves something out.
    private func wayBack(_ store: Store) throws -> (states: [String], end: String) {
        var states: [String] = []
        while true {
            do {
                let left = try store.undoLast().fileFindings.first { $0.severity == .damage }
                if let left { return (states, left.message) }
            } catch let error as BackupError { return (states, error.message) }
            states.append(try store.digest())
        }
    }

    /// Flips one bit of one value of the history as a disk does: no trigger sees it. Returns what it was.
    private func flip(_ database: SQLite, _ random: inout SeededGenerator) throws -> String {
        let table = try #require((Store.historyTables + ["batch"]).randomElement(using: &random))
        let count = try database.integer("SELECT count(*) FROM \(table)")
        guard count > 0 else { return "" }
        let columns = try texts("SELECT name FROM pragma_table_info('\(table)')", database)
            .filter { $0 != "row_hash" && ["batch", "after"].contains($0) || table != "batch_record" }
        let column = try #require(columns.randomElement(using: &random))
        let row = "\(table) LIMIT 1 OFFSET \(Int64.random(in: 0..<count, using: &random))"
        let keys = Witness.ofHistory.first { $0.table == table }?.place.joined(separator: ", ") ?? "rowid"
        let triggers = try texts(
            "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '\(table)'", database)
        for trigger in triggers { try database.execute("DROP TRIGGER \(trigger.split(separator: " ")[2])") }
        let value = try database.prepare("SELECT \(column), typeof(\(column)) FROM \(row)")
        guard try value.step() else { return "" }
        let new: String
        switch value.text(1) {
        case "integer": new = "\(value.integer(0) ^ 1 << Int64.random(in: 0..<50, using: &random))"
        case "text":
            var bytes = Array(value.bytes(0))
            if bytes.isEmpty { bytes = [65] } else { bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 }
            new = "'\(String(decoding: bytes, as: UTF8.self).replacing("'", with: "''"))'"
        // A bit of the header of a row makes the number 0 or 1 of it.
        default: new = column == "sha256" || column == "kept" || column == "value" ? "''" : "1"
        }
        let old = value.text(0)
        value.reset()
        try database.execute(
            "UPDATE OR IGNORE \(table) SET \(column) = \(new) WHERE (\(keys)) IN (SELECT \(keys) FROM \(row))")
        for trigger in triggers { try database.execute(trigger) }
        return database.changes == 0 ? "" : "\(table).\(column): \(old) became \(new)"
    }

    private func texts(_ sql: String, _ database: SQLite) throws -> [String] {
        let query = try database.prepare(sql)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }

    /// A store with a history, closed, and what it holds.
    private func closedStore(in folder: String) throws -> (digest: String, states: [String]) {
        let digest = try history(in: folder, TestClock()).digest()
        try SQLite("\(folder)/store.db", .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let states = try withTemporaryFolder { other in
            _ = try runProcess(["cp", "-a", "\(folder)/.", other])
            return try wayBack(Store("\(other)/store.db", .write)).states
        }
        return (digest, states)
    }

    private func withCopy(of sound: String, flipping bit: Int, at place: Int, _ body: (String) throws -> Void) throws {
        try withTemporaryFolder { folder in
            _ = try runProcess(["cp", "-a", "\(sound)/.", folder])
            var bytes = try readFile("\(sound)/store.db")
            bytes[place] ^= 1 << bit
            try writeFile("\(folder)/store.db", bytes)
            try body(folder)
        }
    }

    @Test(arguments: testSeeds(8))
    func whicheverBitOfTheFileFlips_nothingPassesForSoundThatIsNot(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { sound in
            let known = try closedStore(in: sound)
            let bytes = try readFile("\(sound)/store.db")
            for _ in 0..<(isTorture ? 300 : 15) {
                countRounds()
                // Where nothing lies, nothing breaks.
                let used = bytes.indices.filter { bytes[$0] != 0 }
                let place = (random.chance(8) ? Array(bytes.indices) : used).randomElement(using: &random) ?? 0
                let bit = Int.random(in: 0..<8, using: &random)
                try withCopy(of: sound, flipping: bit, at: place) { folder in
                    for fault in try faults(folder, known) {
                        Issue.record("seed \(seed), byte \(place), bit \(bit): \(fault)")
                    }
                }
            }
        }
    }

    /// The longest text of a store is what it says of its tables.
    @Test(arguments: testSeeds(4))
    func aFlippedBitOfADefinition_isMended_orIsForeign(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { sound in
            let known = try closedStore(in: sound)
            let bytes = try readFile("\(sound)/store.db")
            let definition = Array("CREATE T".utf8)
            let starts = bytes.indices.dropLast(300).filter { bytes[$0...].starts(with: definition) }
            for _ in 0..<(isTorture ? 100 : 8) {
                countRounds()
                let place = try #require(starts.randomElement(using: &random)) + Int.random(in: 0..<300, using: &random)
                try withCopy(of: sound, flipping: Int.random(in: 0..<8, using: &random), at: place) { folder in
                    let path = "\(folder)/store.db"
                    let damaged = try readFile(path)
                    guard !Store.flippedDefinitions(of: path).isEmpty else { return }
                    #expect(try !StoreCheck.run(path).findings.isEmpty)
                    var options = StoreMending.Options()
                    options.dryRun = true
                    let planned = try StoreMending.run(path, options)
                    #expect(try readFile(path) == damaged)
                    let done = try StoreMending.run(path, StoreMending.Options())
                    #expect(planned.steps == done.steps && done.left.isEmpty, "seed \(seed), byte \(place): \(done)")
                    #expect(try Store(path, .read).digest() == known.digest)
                    #expect(try StoreCheck.run(path).findings.isEmpty)
                }
            }
        }
    }

    @Test func aDefinitionThatIsOffByMore_isNamed_andLeftAsItIs() throws {
        try withTemporaryFolder { folder in
            _ = try closedStore(in: folder)
            let path = "\(folder)/store.db"
            var bytes = try readFile(path)
            let place = try #require(
                bytes.indices.first { bytes[$0...].starts(with: "CREATE TABLE asset (path ".utf8) })
            bytes[place + 20] ^= 3
            try writeFile(path, bytes)
            #expect(Store.flippedDefinitions(of: path).isEmpty)
            #expect(try StoreCheck.run(path).findings.map(\.code) == [.storeDamaged])
            #expect(throws: BackupError.self) { try StoreMending.run(path, StoreMending.Options()) }
            #expect(try readFile(path) == bytes)
        }
    }

    @Test(arguments: ["batch_record DROP COLUMN seal", "held RENAME COLUMN reason TO why"])
    func aTableWithoutOneOfItsColumns_isNamed(change: String) throws {
        try withTemporaryFolder { folder in
            _ = try closedStore(in: folder)
            try SQLite("\(folder)/store.db", .readWrite).execute("ALTER TABLE \(change)")
            let findings = try StoreCheck.run("\(folder)/store.db").findings
            #expect(findings.count == 1 && findings[0].message.contains("lacks the column"), "\(findings)")
        }
    }

    @Test(arguments: ["purged", "witness"], ["zone", "name", "type", "local_id", "key", "row"])
    func whateverAFlippedBitMakesOfAPurge_nothingPurgedComesBack(table: String, column: String) throws {
        try withStore { test in
            let (store, database) = (test.store, test.store.database)
            let walk = record("walk", "{\"x\":1}", at: 1)
            try store.take(walk)
            try store.take(record("walk", at: 2, deleted: true))
            try store.write { try store.markPurged(walk) }
            guard try texts("SELECT name FROM pragma_table_info('\(table)')", database).contains(column) else { return }
            let triggers = try texts(
                "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'purged'", database)
            for trigger in triggers { try database.execute("DROP TRIGGER \(trigger.split(separator: " ")[2])") }
            let place = table == "purged" ? "" : "WHERE place = 'purged'"
            // The last letter of a text, or the last half of it.
            try database.execute(
                "UPDATE \(table) SET \(column) = substr(\(column), 1, length(\(column)) - 1) || char(unicode(substr(\(column), -1)) + 1) \(place)"
            )
            for trigger in triggers { try database.execute(trigger) }
            #expect(try StoreCheck.run(store).findings.contains { $0.subject.hasPrefix("purged ") })
            #expect(throws: BackupError.self) { try store.checkPurges() }
            #expect(try StoreMending.run(store, StoreMending.Options()).left.isEmpty)
            try store.checkPurges()
            #expect(try store.isPurged(walk) && store.isPurged(walk.id))
            #expect(try store.isPurged(record("other", "{}", localID: "walk")))
        }
    }

    /// Two rows of a page that lie at one place: whatever is written there next changes both.
    @Test func nothingIsTakenBackOverADamagedPage() throws {
        try withTemporaryFolder { folder in
            _ = try closedStore(in: folder)
            let path = "\(folder)/store.db"
            let root = try SQLite(path, .readOnly).integer("SELECT rootpage FROM sqlite_schema WHERE name = 'record'")
            var bytes = try readFile(path)
            let page = (Int(root) - 1) * (Int(bytes[16]) << 8 | Int(bytes[17]))
            try #require(bytes[page] == 13, "a leaf of a table")
            bytes.replaceSubrange(page + 8..<page + 10, with: bytes[page + 10..<page + 12])
            try writeFile(path, bytes)
            let error = #expect(throws: BackupError.self) { try Store(path, .write).undoLast() }
            #expect(
                error?.code == .damaged && error?.message.contains("the store is damaged") == true, "\(error as Any)")
        }
    }

    /// What such a store does that it should not.
    private func faults(_ folder: String, _ known: (digest: String, states: [String])) throws -> [String] {
        let path = "\(folder)/store.db"
        var (faults, isSound): ([String], Bool) = ([], false)
        func attempt(_ what: String, _ body: () throws -> Void) {
            do { try body() } catch is BackupError {} catch { faults.append("\(what) threw \(error)") }
        }
        attempt("store check") {
            isSound = try StoreCheck.run(path).findings.isEmpty
            guard isSound else { return }
            if try Store(path, .read).digest() != known.digest { faults.append("passes for sound") }
            let states = try wayBack(Store(path, .write)).states
            if states != known.states { faults.append("is sound, and cannot be undone: \(states.count)") }
        }
        if isSound { return faults }
        attempt("store repair") {
            let repaired = try StoreMending.run(path, StoreMending.Options())
            guard repaired.left.isEmpty else { return }
            if try Store(path, .read).digest() != known.digest {
                faults.append("was mended to something else: \(repaired.steps)")
            }
        }
        attempt("undo") {
            let findings = try StoreCheck.run(path).findings
            if try Store(path, .read).digest() != known.digest { return }
            let states = try wayBack(Store(path, .write)).states
            if states != Array(known.states.prefix(states.count)) {
                faults.append("undo \(states.count) gave something else: \(findings)")
            }
        }
        return faults
    }

    @Test(arguments: testSeeds(8))
    func noUndoGoesByAHistoryWithABitOfItsOwn(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sound = try withTemporaryFolder { try wayBack(history(in: $0, TestClock())) }
        #expect(sound.states.count == 3)
        for _ in 0..<(isTorture ? 200 : 12) {
            countRounds()
            try withTemporaryFolder { folder in
                let store = try history(in: folder, TestClock())
                let what = try flip(store.database, &random)
                guard !what.isEmpty else { return }
                let findings = try StoreCheck.run("\(folder)/store.db").findings
                #expect(findings.contains { $0.subject.hasPrefix("batch ") }, "seed \(seed), \(what): \(findings)")
                let way = try wayBack(store)
                #expect(way.states == Array(sound.states.prefix(way.states.count)), "seed \(seed), \(what)")
                #expect(way.end.hasPrefix("nothing was taken back"), "seed \(seed), \(what): \(way.end)")
                var options = StoreMending.Options()
                options.accept = true
                #expect(try StoreMending.run(store, options).left.isEmpty, "seed \(seed), \(what)")
                #expect(try wayBack(store).end.hasPrefix("there is nothing to undo"), "seed \(seed), \(what)")
            }
        }
    }
}
