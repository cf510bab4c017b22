import Glibc
import TestSupport
import Testing

@testable import BackupKit

@Suite struct StoreTests {
    @Test func aNewStoreIsEmptyPrivateAndOpensAgain() throws {
        try withStore { (test) throws in
            let path = test.store.path
            #expect(try test.store.all().isEmpty)
            #expect(try test.store.storeID.utf8.count == 32)
            #expect(try FileStatus.ofName(path)?.mode == S_IFREG | 0o600)
            #expect(try FileStatus.ofName(path + ".assets")?.mode == S_IFDIR | 0o700)
            #expect(Store.isStore(path))
            #expect(try Store(path, .read).storeID == test.store.storeID)
            let error = #expect(throws: BackupError.self) { try Store.create(path) }
            #expect(error?.code == .exists)
        }
    }

    @Test func whereThereIsNoStoreOneIsAskedFor() throws {
        try withTemporaryFolder { folder in
            for access in [Store.Access.read, .write] {
                let error = #expect(throws: BackupError.self) { try Store("\(folder)/none.db", access) }
                #expect(error?.code == .notFound)
            }
            #expect(try Directory.names(in: folder).isEmpty)
            _ = try Store.create("\(folder)/deep/er/s.db")
            #expect(try Store("\(folder)/deep/er/s.db", .write).all().isEmpty)
        }
    }

    @Test func whatIsNoStoreIsLeftExactlyAsItWas() throws {
        try withTemporaryFolder { folder in
            try writeFile("\(folder)/text", String(repeating: "Dear diary, ", count: 100))
            try writeFile("\(folder)/empty", "")
            try writeFile("\(folder)/magic", "SQLite format 3\0" + String(repeating: "x", count: 2000))
            try Directory.create("\(folder)/folder")
            try SQLite("\(folder)/other", .create).execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a)")
            guard mkfifo("\(folder)/fifo", 0o600) == 0 else { throw BackupError(.failed, "no fifo") }
            let before = try contents(of: folder)
            let times = try before.keys.sorted().map { try FileStatus.ofName("\(folder)/\($0)") }
            for name in before.keys {
                #expect(!Store.isStore("\(folder)/\(name)"))
                for access in [Store.Access.read, .write] {
                    let error = #expect(throws: BackupError.self) { try Store("\(folder)/\(name)", access) }
                    #expect(error?.code == .notFound)
                }
                #expect(throws: BackupError.self) { try Store.create("\(folder)/\(name)") }
            }
            #expect(try contents(of: folder) == before)
            #expect(try before.keys.sorted().map { try FileStatus.ofName("\(folder)/\($0)") } == times)
        }
    }

    @Test func aStoreOfANewerProgramIsRefusedPolitely() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/s.db"
            _ = try Store.create(path)
            try SQLite(path, .readWrite).execute("PRAGMA user_version = \(StoreSchema.version + 1)")
            let before = try readFile(path)
            for access in [Store.Access.read, .write] {
                let error = #expect(throws: BackupError.self) { try Store(path, access) }
                #expect(error?.code == .refused)
                #expect(error?.message.contains("newer backup-tool") == true)
            }
            #expect(try readFile(path) == before)
        }
    }

    @Test func readersSeeTheOldStateWhileAWriterIsAtWorkAndAreNotBlocked() throws {
        try withStore { test in
            try test.store.take(record("a"))
            let reader = try Store(test.store.path, .read)
            try test.store.write {
                _ = try test.store.ingest(record("b"))
                #expect(try reader.all().map(\.id.name) == ["a"])
                #expect(try Store(test.store.path, .read).all().map(\.id.name) == ["a"])
            }
            #expect(try reader.all().map(\.id.name) == ["a", "b"])
            try reader.read {
                #expect(try reader.all().count == 2)
                try test.store.take(record("c"))
                #expect(try reader.all().count == 2)
            }
            #expect(throws: BackupError.self) { try reader.take(record("d")) }
        }
    }

    @Test func aSecondWriterWaitsAndThenSaysThatTheStoreIsLocked() throws {
        try withStore { test in
            let error = #expect(throws: BackupError.self) { try Store(test.store.path, .write, waitSeconds: 0.1) }
            #expect(error?.code == .locked)
        }
        try withTemporaryFolder { folder in
            _ = try Store.create("\(folder)/s.db")
            _ = try Store("\(folder)/s.db", .write, waitSeconds: 0)
        }
    }

    @Test func aRunThatIsAtWorkKeepsItsScratchFolder() throws {
        try ScratchStore.withFolder { mine in
            let isThere = try ScratchStore.withFolder { _ in try FileStatus.ofName(mine) != nil }
            #expect(isThere)
            #expect(try FileStatus.ofName(mine) != nil)
        }
    }

    @Test(arguments: [false, true]) func aRecordIsKeptOnOneLine(replace: Bool) throws {
        try withStore { test in
            if replace { try test.store.take(record("a", "{\"x\":1}")) }
            let new = record("a", "{\n\"x\":\r\n2}", at: 1)
            test.clock.advance(seconds: 10)
            _ = try test.store.batch(kind: "restore", source: "test") {
                _ = try replace ? test.store.overwrite(with: new, resurrect: false) : test.store.ingest(new)
                return ((), summary: "")
            }
            #expect(try test.store.all().map(\.fields) == ["{ \"x\":  2}"])
        }
    }

    @Test func oneLocalIDInTwoTypesIsTwoRecords() throws {
        try withStore { test in
            try test.store.take(record("x", "{\"n\":1}", type: "A"), record("x", "{\"n\":2}", type: "B"))
            #expect(try test.store.all().map(\.id.name) == ["B:x", "x"])
            let again = try test.store.take(record("x", "{\"n\":1}", type: "A"), record("x", "{\"n\":2}", type: "B"))
            #expect(again == [.unchanged, .unchanged])
            try test.store.take(record("x", at: 9, type: "B", deleted: true))
            #expect(try test.store.all().map(\.isDeleted) == [true, false])
        }
    }

    @Test func aNameThatIsTakenIsNeverGivenTwice() throws {
        try withStore { test in
            // "x" as a name of its own, as a local id, and as both.
            try test.store.take(
                record("x", type: "A", localID: "1"), record("y", type: "B", zone: "Y", localID: "x"),
                record("x", type: "C"), record("x", type: "C", localID: "2"), record("C:x", type: "D"),
                record("x", type: "E"))
            let ids = try test.store.all().map(\.id.description)
            #expect(ids == ["Y/y", "Z/C:C:x", "Z/C:x", "Z/D:C:x", "Z/E:x", "Z/x"])
        }
    }

    @Test func oneLocalIDIsOneRecordHoweverItGotIn() throws {
        try withStore { test in
            try test.store.take(record("first", "{\"a\":1}", at: 1, localID: "L"))
            try test.store.take(record("second", "{\"a\":2}", at: 2, zone: "Y", localID: "L"))
            let all = try test.store.all()
            #expect(all.map(\.id.description) == ["Z/first"])
            #expect(all.first?.fields == "{\"a\":2}")
            try test.store.take(record("first", "{\"a\":3}", at: 3, localID: "other"))
            #expect(try test.store.all().map(\.localID) == ["L"])
        }
    }

    @Test func twoSpellingsOfAnAccentAreTwoNames() throws {
        try withStore { test in
            try test.store.take(record("\u{E9}", "{\"n\":1}"), record("e\u{301}", "{\"n\":2}"))
            #expect(try test.store.all().count == 2)
            #expect(Set(try test.store.all().map(\.id)).count == 2)
        }
    }

    @Test func everythingARecordSaysComesBackFromTheStore() throws {
        try withStore { test in
            let odd = record(
                "n\u{0}\"'\n😀", "{\"\\u0000\":\"\\ud800\", \"e\":\"\" }", at: -5_000_000_000, times: ["\u{0}": 3],
                type: "T'; DROP TABLE record;--", zone: "Z\u{1}", localID: "l", device: "", local: true)
            try test.store.take(odd)
            #expect(try test.store.all() == [odd])
            #expect(try test.store.find("Z\u{1}/n\u{0}\"'\n😀") == [odd])
        }
    }

    @Test func timesInTheFutureAreSetBackAndReported() throws {
        try withStore { test in
            var future = record("a", "{\"x\":1}", times: ["x": 100_000_000])
            future.createdAt = time(100_000_000)
            let outcome = try test.store.write { try test.store.ingest(future) }
            #expect(outcome.clamped)
            let stored = try #require(try test.store.all().first)
            #expect(stored.fieldTimes == ["x": test.clock.now] && stored.createdAt == test.clock.now)
            #expect(try !test.store.write { try test.store.ingest(future) }.decision.writes)
        }
    }

    @Test func aRecordThatCannotBeReadIsRefusedByName() throws {
        try withStore { (test) throws in
            let error = #expect(throws: BackupError.self) {
                try test.store.take(record("good"), record("bad", "{\"a\":}"))
            }
            #expect(error?.subject == "Z/bad")
            #expect(try test.store.all().isEmpty)
        }
    }

    @Test func aDeleteLeavesATombstoneWithoutData() throws {
        try withStore { test in
            let deleted = record("a", "{\"secret\":1}", times: ["secret": 1], device: "phone")
            try test.store.take(deleted, record("b"))
            #expect(try test.store.delete(["a"]).map(\.name) == ["a"])
            let stone = try #require(try test.store.find("a").first)
            #expect(stone == deleted.tombstone(at: test.clock.now))
            #expect(stone.fields == "{}" && stone.fieldTimes.keys.allSatisfy { !$0.contains("secret") })
            #expect(try test.store.take(record("a", "{\"secret\":1}", at: 1)) == [.protect(.newerTombstone)])
            #expect(throws: BackupError.self) { try test.store.delete(["b", "a"]) }
            #expect(try test.store.find("b").first?.isDeleted == false)
            #expect(throws: BackupError.self) { try test.store.delete(["nobody"]) }
        }
    }

    @Test func aNameThatMeansTwoRecordsIsAskedAbout() throws {
        try withStore { test in
            try test.store.take(record("x", type: "A"), record("x", type: "B", zone: "Y"))
            let error = #expect(throws: BackupError.self) { try test.store.delete(["x"]) }
            #expect(error?.message.contains("more than one") == true)
            #expect(try test.store.delete(["Y/x"]) == [RecordID(zone: "Y", name: "x")])
        }
    }

    @Test func theStockSQLiteShellReadsTheRecords() throws {
        try withStore { test in
            try test.store.take(record("a", "{\"x\":1}", at: 1), record("b", localID: "L"))
            let query = "SELECT record_name, local_id, fields, modified, deleted FROM records ORDER BY 1"
            let command = "sqlite3 -readonly '\(test.store.path)' '\(query)' 2>&1"
            let pipe = try #require(popen(command, "r"))
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = fread(&bytes, 1, bytes.count, pipe)
            #expect(pclose(pipe) == 0)
            #expect(
                String(decoding: bytes[..<count], as: UTF8.self)
                    == "a|a|{\"x\":1}|2026-01-01T00:00:01.000Z|0\nb|L|{}|2026-01-01T00:00:00.000Z|0\n")
        }
    }
}

/// "Only on this device" and back.
@Suite struct StoreLocalOnlyTests {
    @Test func setLocalLeavesATombstoneForOthersAndKeepsTheCopyHere() throws {
        try withStore { test in
            try test.store.take(record("cloud", "{\"x\":1}", localID: "L"))
            #expect(try test.store.setLocal(["cloud"]).map(\.name) == ["local:L"])
            let all = try test.store.all()
            #expect(all.map(\.id.name) == ["cloud", "local:L"])
            #expect(all.map(\.isDeleted) == [true, false] && all.map(\.isLocalOnly) == [false, true])
            #expect(all.last?.fields == "{\"x\":1}")
            #expect(try test.store.setLocal(["L"]).map(\.name) == ["local:L"])
        }
    }

    @Test func noUpdateAndNoDeleteFromTheCloudReachesTheCopy() throws {
        try withStore { test in
            try test.store.take(record("cloud", "{\"x\":1}", localID: "L"))
            _ = try test.store.setLocal(["L"])
            test.clock.advance(seconds: 100)
            var late = record("cloud", "{\"x\":2}", localID: "L")
            late.modifiedAt = test.clock.now
            #expect(try test.store.take(late) == [.protect(.localOnly)])
            try test.store.take(late.tombstone(at: test.clock.now))
            #expect(try test.store.all().map(\.fields) == ["{}", "{\"x\":1}"])
        }
    }

    @Test func enableCloudOverwritesTheTombstoneWithTheNewestTime() throws {
        try withStore { test in
            try test.store.take(record("cloud", "{\"x\":1}", times: ["x": -5], localID: "L"))
            _ = try test.store.setLocal(["cloud"])
            let stone = try #require(try test.store.all().first)
            #expect(try test.store.enableCloud(["cloud"]).map(\.name) == ["cloud"])
            let all = try test.store.all()
            #expect(all.map(\.id.name) == ["cloud"] && all.map(\.isLocalOnly) == [false])
            #expect(all.allSatisfy { $0.modifiedAt > stone.modifiedAt && $0.fieldTimes.isEmpty })
            #expect(try test.store.take(stone) == [.protect(.newer)])
        }
    }

    @Test(arguments: [false, true])
    func aStoreWithLocalCopiesIsRestoredAsItWas(reversed: Bool) throws {
        let (records, digest) = try withStore { test in
            try test.store.take(record("cloud", "{\"x\":1}", localID: "L"), record("M"), record("own", local: true))
            _ = try test.store.setLocal(["L", "M"])
            _ = try test.store.delete(["M"])
            return (try test.store.all(), try test.store.digest())
        }
        try withStore { test in
            test.clock.advance()
            for record in reversed ? records.reversed() : records { try test.store.take(record) }
            #expect(try test.store.digest() == digest)
            for record in records { #expect(try test.store.take(record) == [.unchanged]) }
        }
    }

    @Test func aDeletedLocalCopyDoesNotComeBackFromAnOldBackup() throws {
        try withStore { test in
            try test.store.take(record("cloud", "{\"x\":1}", localID: "L"))
            _ = try test.store.setLocal(["L"])
            let backup = try test.store.all()
            test.clock.advance()
            _ = try test.store.delete(["L"])
            let after = try test.store.digest()
            for record in backup { try test.store.take(record) }
            #expect(try test.store.digest() == after)
            for record in backup { try test.store.take(record, resurrect: true) }
            #expect(try test.store.find("L").contains { $0.isLocalOnly && $0.fields == "{\"x\":1}" })
        }
    }

    @Test func localCopiesOfTwoTypesKeepTwoNames() throws {
        try withStore { test in
            try test.store.take(record("a", type: "A", localID: "L"), record("b", type: "B", localID: "L"))
            _ = try test.store.setLocal(["Z/a", "Z/b"])
            #expect(try test.store.all().map(\.id.name) == ["B:local:L", "a", "b", "local:L"])
            _ = try test.store.enableCloud(["Z/a", "Z/b"])
            #expect(try test.store.all().map(\.id.name) == ["a", "b"])
        }
    }

    @Test func whatWasAlwaysLocalGetsACloudNameThatIsFree() throws {
        try withStore { test in
            try test.store.take(
                record("L", type: "A"), record("local:L", "{\"x\":1}", type: "B", localID: "L", local: true))
            #expect(try test.store.enableCloud(["Z/local:L"]).map(\.name) == ["B:L"])
        }
    }
}

extension Decision {
    fileprivate var writes: Bool {
        switch self {
        case .add, .update: true
        case .unchanged, .protect: false
        }
    }
}
