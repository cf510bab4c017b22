import Glibc
import TestSupport
import Testing

@testable import BackupKit

struct StoreCheckTests {
    /// A store with records, tombstones, settings and files, and an export of it.
    private func fill(_ folder: String) throws {
        let store = try Store.create("\(folder)/store.db")
        _ = try store.batch(kind: "import", source: "test") {
            for number in 0..<40 {
                _ = try store.ingest(
                    record("R\(number)", "{\"text\":\"number \(number)\"}", times: ["text": 1], device: "d"))
            }
            for number in 0..<5 {
                _ = try store.ingest(record("T\(number)", deleted: true))
                try place("Attachments/\(number).pdf", "file \(number)", in: store)
                _ = try store.putSetting("s\(number)", "\"value \(number)\"", at: time(0))
            }
            return ((), summary: "{}")
        }
        _ = try Exporter.export(store, to: "\(folder)/backup", ExportOptions(form: .layout(.directory)))
    }

    private func check(_ path: String) throws -> [Finding] { try StoreCheck.run(path).findings }

    private func execute(_ folder: String, _ sql: String) throws {
        try SQLite("\(folder)/store.db", .readWrite).execute(sql)
    }

    private func repair(_ folder: String, from: String? = "backup", accept: Bool = false, dryRun: Bool = false) throws
        -> StoreRepairResult
    {
        var options = StoreMending.Options()
        options.from = from.map { "\(folder)/\($0)" }
        (options.accept, options.dryRun) = (accept, dryRun)
        return try StoreMending.run(try Store("\(folder)/store.db", .write), options)
    }

    @Test func aFlippedBitIsNoticedOrChangesNothing() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { folder in
            try fill(folder)
            let path = "\(folder)/store.db"
            #expect(try check(path).isEmpty)
            let sound = try readFile(path)
            let digest = try Store(path, .read).digest()
            for flip in 0..<(isTorture ? 1500 : 60) {
                countRounds()
                let (place, bit) = (random.below(sound.count), random.below(8))
                var bytes = sound
                bytes[place] ^= 1 << bit
                let copy = "\(folder)/copy\(flip).db"
                try bytes.withUnsafeBytes { try FileHandle.create(copy).write($0) }
                try copyTree(Store.assetFolder(of: path), to: Store.assetFolder(of: copy))
                let isNoticed: Bool
                do { isNoticed = try !check(copy).isEmpty } catch is BackupError { isNoticed = true }
                if !isNoticed {
                    #expect(try Store(copy, .read).digest() == digest, "seed \(seed): bit \(bit) of byte \(place)")
                }
                for ending in ["", "-wal", "-shm"] { unlink(copy + ending) }
                try Directory.removeTree(Store.assetFolder(of: copy))
            }
        }
    }

    /// The table is kept in the order of its keys, and its readers walk along it.
    @Test func aKeyThatADiskHasChanged_costsOnlyItsOwnRow() throws {
        try withTemporaryFolder { folder in
            try fill(folder)
            let path = "\(folder)/store.db"
            try SQLite(path, .readWrite).execute("PRAGMA journal_mode = DELETE")
            let bytes = try readFile(path)
            let (was, becomes) = (Array("Attachments/1.pdf".utf8), Array("Attachments/9.pdf".utf8))
            let places = bytes.indices.filter { bytes[$0...].starts(with: was) }
            var found: [[String]] = []
            for place in places {
                let copy = "\(folder)/copy\(place).db"
                let damaged = Array(bytes[..<place] + becomes + bytes[(place + was.count)...])
                try damaged.withUnsafeBytes { try FileHandle.create(copy).write($0) }
                found.append(try Store(copy, .read).changedSmallRows(of: "asset").map(\.key))
            }
            // Once it is the row, once what was noted of it; the undo history has the path, too.
            let both = [String(decoding: was, as: UTF8.self), String(decoding: becomes, as: UTF8.self)]
            #expect(found.filter { !$0.isEmpty } == [both, both], "\(found)")
        }
    }

    @Test func aChangedRowIsAgainWhatItWas_whicheverColumnWasHit() throws {
        for change in [
            "fields = '{\"text\":\"Number 7\"}'", "fields = '{'", "modified_at = modified_at + 1", "local_id = 'R77'",
            "zone = 'Y'", "device_id = NULL", "field_times = '{'", "local_only = 1", "deleted_at = 5", "change = -7",
            "change = change + 100000",
        ] {
            try withTemporaryFolder { folder in
                try fill(folder)
                let path = "\(folder)/store.db"
                let digest = try Store(path, .read).digest()
                try execute(folder, "UPDATE record SET \(change) WHERE local_id = 'R7'")
                let found = try check(path)
                #expect(found.contains { $0.severity == .damage && $0.remedy != nil }, "\(change)")
                let plan = try repair(folder, dryRun: true)
                #expect(plan.steps.contains { $0.action == .exact }, "\(change): \(plan)")
                #expect(try check(path) == found, "\(change)")
                let result = try repair(folder)
                #expect(
                    result.left.isEmpty && result.steps == plan.steps && result.keptIn == nil, "\(change): \(result)")
                #expect(try Store(path, .read).digest() == digest && check(path).isEmpty, "\(change)")
                try checkSound(path)
            }
        }
    }

    @Test func theBackupsOlderVersionComesBack_andTheDamagedValuesAreKept() throws {
        try withTemporaryFolder { folder in
            try fill(folder)
            let path = "\(folder)/store.db"
            try Store(path, .write).take(record("R7", "{\"text\":\"newer\"}", at: 100))
            try execute(folder, "UPDATE record SET fields = '{\"text\":\"nexer' WHERE local_id = 'R7'")
            let result = try repair(folder)
            #expect(result.steps.map(\.action).contains(.older) && result.left.isEmpty)
            let kept = String(decoding: try readFile(result.keptIn ?? ""), as: UTF8.self)
            #expect(kept.contains("nexer"))
            let now = try Store(path, .read).all().first { $0.localID == "R7" }
            #expect(now?.fields == "{\"text\":\"number 7\"}")
            try checkSound(path)
        }
    }

    @Test func withoutABackupNothingIsLost_andWhatWasMeantIsAccepted() throws {
        try withTemporaryFolder { folder in
            try fill(folder)
            let path = "\(folder)/store.db"
            try execute(
                folder,
                """
                UPDATE record SET fields = '{"text":"by hand"}' WHERE local_id = 'R7';
                UPDATE record SET fields = '{' WHERE local_id = 'R8'; UPDATE setting SET value = '7' WHERE key = 's1';
                """)
            #expect(
                try repair(folder, from: nil).left.filter { $0.severity == .damage }.map(\.subject) == ["Z/R7", "Z/R8"])
            let result = try repair(folder, from: nil, accept: true)
            #expect(result.left.isEmpty && result.steps.contains { $0.subject == "Z/R8" })
            #expect(String(decoding: try readFile(result.keptIn ?? ""), as: UTF8.self).contains("\"R8\""))
            #expect(try Store(path, .read).all().contains { $0.fields.contains("by hand") })
        }
    }

    /// Readers take the hash of a row for proof that its fields were read before.
    @Test func aRowThatCannotBeReadGetsNoHash_andIsNotExported() throws {
        try withTemporaryFolder { folder in
            try fill(folder)
            try execute(folder, "UPDATE record SET row_hash = NULL")
            try execute(folder, "UPDATE record SET fields = '{' WHERE local_id = 'R8'")
            let database = try SQLite("\(folder)/store.db", .readWrite)
            try RecordHasher(database).sealRows(database)
            #expect(try database.integer("SELECT count(*) FROM record WHERE row_hash IS NULL") == 1)
            let store = try Store("\(folder)/store.db", .read)
            let exported = try Exporter.export(store, to: "\(folder)/again", ExportOptions(form: .layout(.directory)))
            #expect(!exported.isComplete)
            #expect(try !String(decoding: readFile("\(folder)/again/records.jsonl"), as: UTF8.self).contains("\"R8\""))
        }
    }

    @Test func tombstonesWithData_queuesIndexesAndCountersAreMended() throws {
        for (code, sql) in [
            (
                Finding.Code.tombstoneData,
                "UPDATE record SET fields = '{\"a\":1}', row_hash = NULL WHERE local_id = 'T1'"
            ),
            (.indexMismatch, "DELETE FROM local_key WHERE change = 3"),
            (.indexMismatch, "UPDATE local_key SET content = 5"),
            (.storeDamaged, "UPDATE counter SET value = 3"),
            (.storeDamaged, "UPDATE counter SET value = 9223372036854775807"),
            (.queueStuck, "INSERT INTO hub_link VALUES (1, 'h', 'l', NULL, NULL, 10, NULL, NULL, NULL)"),
            (.queueStuck, "INSERT INTO hub_link VALUES (1, 'h', 'l', NULL, NULL, 2147483648, NULL, NULL, NULL)"),
            (.queueStuck, "INSERT INTO held VALUES ('Z', 'nobody', 'size', 'r', 1, 1)"),
            (.recordChanged, "UPDATE record SET row_hash = NULL WHERE local_id = 'R3'"),
        ] {
            try withTemporaryFolder { folder in
                try fill(folder)
                try execute(folder, sql)
                #expect(try check("\(folder)/store.db").map(\.code).contains(code), "\(sql)")
                let result = try repair(folder, from: nil)
                #expect(result.left.isEmpty && !result.steps.isEmpty, "\(sql): \(result)")
                #expect(try check("\(folder)/store.db").isEmpty, "\(sql)")
                try checkSound("\(folder)/store.db")
            }
        }
    }

    @Test func aFlippedBitOfTheIndexByLocalID_isSeenEachNight() throws {
        let seed = testSeed()
        var random = SeededGenerator(seed: seed)
        try withTemporaryFolder { folder in
            try fill(folder)
            func nightly() throws -> [Finding.Code] {
                try StoreCheck.run("\(folder)/store.db", files: .none, indexes: false).findings.map(\.code)
            }
            let database = try SQLite("\(folder)/store.db", .readWrite)
            for _ in 0..<(isTorture ? 400 : 50) {
                countRounds()
                let column = Bool.random(using: &random) ? "key" : "content"
                let row = "WHERE change = \(Int.random(in: 1...40, using: &random))"
                let value = try database.integer("SELECT \(column) FROM local_key \(row)")
                let flipped = value ^ 1 << Int64.random(in: 0..<64, using: &random)
                #expect(try nightly() == [], "seed \(seed)")
                try database.execute("UPDATE local_key SET \(column) = \(flipped) \(row)")
                #expect(try nightly() == [.indexMismatch], "seed \(seed): \(column) \(row)")
                try database.execute("UPDATE local_key SET \(column) = \(value) \(row)")
            }
        }
    }

    @Test func filesThatAreGoneCutOrRottenAreNamed() throws {
        try withTemporaryFolder { folder in
            try fill(folder)
            let assets = "\(folder)/store.db.assets/Attachments"
            unlink("\(assets)/0.pdf")
            unlink("\(assets)/1.pdf")
            try writeFile("\(assets)/1.pdf", "fil")
            // Rot leaves the time as it was.
            var before = stat()
            #expect(stat("\(assets)/2.pdf", &before) == 0)
            unlink("\(assets)/2.pdf")
            try writeFile("\(assets)/2.pdf", "File 2")
            let times = [before.st_atim, before.st_mtim]
            #expect(utimensat(AT_FDCWD, "\(assets)/2.pdf", times, 0) == 0)
            let found = try check("\(folder)/store.db")
            #expect(found.map(\.code) == [.entryMissing, .sizeMismatch, .digestMismatch])
            #expect(found.map(\.severity) == [.damage, .warning, .damage])
            #expect(
                found.allSatisfy { $0.remedy?.contains($0.severity == .damage ? "repair --from" : "restore") == true })
            #expect(found[1].remedy?.contains("store adopt") == true)
            // No disk makes a file longer, and a power cut leaves an empty one with a new time.
            try writeFile("\(assets)/3.pdf", "file 3, and more")
            #expect(utimensat(AT_FDCWD, "\(assets)/3.pdf", times, 0) == 0)
            unlink("\(assets)/4.pdf")
            try writeFile("\(assets)/4.pdf", "")
            let last = try check("\(folder)/store.db").suffix(2)
            #expect(last.map(\.code) == [.sizeMismatch, .sizeMismatch])
            #expect(last.map(\.severity) == [.warning, .damage])
            #expect(try StoreCheck.run("\(folder)/store.db", files: .sizes).findings.count == 4)
        }
    }
}
