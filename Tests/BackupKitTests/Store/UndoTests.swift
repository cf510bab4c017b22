import TestSupport
import Testing

@testable import BackupKit

extension Store {
    /// An import of these records.
    @discardableResult
    fileprivate func bring(_ records: Record..., dryRun: Bool = false) throws -> Batch? {
        try batch(kind: "import", source: "test", dryRun: dryRun) {
            for record in records { _ = try ingest(record) }
            return ((), summary: "\(records.count) records")
        }.batch
    }
}

@Suite struct UndoTests {
    @Test func anUndoBringsTheContentDigestBackExactly() throws {
        try withStore { test in
            try test.store.take(
                record("a", "{\"x\":1}", at: 1, times: ["x": -1]), record("b", "{\"x\":1}"), record("c"))
            try test.store.bring(record("old"))
            let before = try test.store.digest()
            _ = try test.store.batch(kind: "restore", source: "test") {
                _ = try test.store.ingest(record("a", "{\"x\":2}", at: 2))
                _ = try test.store.ingest(record("a", "{\"x\":3}", at: 3))
                _ = try test.store.ingest(record("b", at: 5, deleted: true))
                _ = try test.store.ingest(record("new", "{\"y\":1}"))
                _ = try test.store.ingest(record("new", "{\"y\":2}", at: 4))
                _ = try test.store.putSetting("s", "1", at: time(0))
                return ((), summary: "")
            }
            #expect(try test.store.digest() != before)
            let result = try test.store.undoLast()
            #expect(try test.store.digest() == before)
            #expect(result.reverted == 2 && result.removed == 1 && result.settings == 1 && result.keptNewer.isEmpty)
        }
    }

    @Test func aReplacementOfEverythingIsTakenBack() throws {
        try withStore { test in
            try test.store.bring(record("L", "{\"x\":1}"), record("named", "{\"x\":1}", localID: "N"), record("gone"))
            let before = try test.store.digest()
            _ = try test.store.batch(kind: "replace", source: "test") {
                for text in ["L", "named", "gone"] {
                    let id = RecordID(zone: "Z", name: text)
                    try test.store.removeRow(try #require(try test.store.record(id)))
                }
                for name in ["L", "named"] { _ = try test.store.ingest(record(name, "{\"x\":2}", localID: name)) }
                return ((), summary: "")
            }
            #expect(try test.store.all().count == 2)
            _ = try test.store.undoLast()
            #expect(try test.store.digest() == before)
            _ = try test.store.undoLast()
            #expect(try test.store.all().isEmpty)
        }
    }

    @Test func aBatchThatOnlyTakesOutIsABatch() throws {
        try withStore { test in
            try test.store.bring(record("a"))
            let (_, batch) = try test.store.batch(kind: "replace", source: "test") {
                try test.store.removeRow(try #require(try test.store.record(RecordID(zone: "Z", name: "a"))))
                return ((), summary: "")
            }
            #expect(batch != nil)
            #expect(try test.store.all().isEmpty)
        }
    }

    // Every state is remembered and must be met again on the way back.
    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func undoingStepByStepMeetsEveryEarlierState(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            var states: [String] = []
            func batch(_ number: Int) throws {
                let before = try test.store.digest()
                let (_, batch) = try test.store.batch(kind: "import", source: "\(number)") {
                    for _ in 0...random.below(5) {
                        let name = "r\(random.below(5))"
                        let id = RecordID(zone: "Z", name: name)
                        let at = Int64(number * 10 + random.below(10))
                        switch random.below(5) {
                        case 0:
                            if let stored = try test.store.record(id) { try test.store.removeRow(stored) }
                        case 1: _ = try test.store.ingest(record(name, at: at, deleted: true))
                        case 2: _ = try test.store.putSetting("k\(random.below(3))", "\(random.below(9))", at: time(at))
                        default: _ = try test.store.ingest(record(name, "{\"x\":\(random.below(100))}", at: at))
                        }
                    }
                    return ((), summary: "")
                }
                if batch != nil { states.append(before) }
            }
            for number in 0..<40 {
                if random.chance(3), let state = states.popLast() {
                    _ = try test.store.undoLast()
                    #expect(try test.store.digest() == state)
                } else if states.count < Store.undoDepth {
                    // Undone batches count against the depth as well.
                    if try test.store.batches().count >= Store.undoDepth { break }
                    try batch(number)
                }
            }
            while let state = states.popLast() {
                let result = try test.store.undoLast()
                #expect(result.keptNewer.isEmpty)
                #expect(try test.store.digest() == state)
            }
        }
    }

    @Test func ofABatchThatIsForgottenNothingIsKept() throws {
        try withStore { test in
            for number in 0..<Store.undoDepth + 3 {
                _ = try test.store.batch(kind: "import", source: "\(number)") {
                    _ = try test.store.ingest(record("a", "{\"x\":\(number)}", at: Int64(number)))
                    _ = try test.store.ingest(record("b\(number)", at: Int64(number)))
                    _ = try test.store.putSetting("k", "\(number)", at: time(Int64(number)))
                    try place("f\(number)", "\(number)", in: test.store)
                    return ((), summary: "")
                }
            }
            for table in ["batch_record", "batch_setting", "batch_asset"] {
                let kept = try test.store.database.integer("SELECT count(DISTINCT batch) FROM \(table)")
                #expect(kept == Int64(Store.undoDepth), "\(table)")
            }
            try checkSound(test.store.path)
        }
    }

    @Test func whatSomebodyChangedSinceStaysAndIsListed() throws {
        try withStore { test in
            try test.store.take(record("updated", "{\"x\":1}"), record("other", "{\"x\":1}"))
            try test.store.bring(
                record("updated", "{\"x\":2}", at: 2), record("other", "{\"x\":2}", at: 2),
                record("added", "{\"x\":2}"),
                record("added too"))
            try test.store.take(record("updated", "{\"x\":3}", at: 3))
            try test.store.take(record("added", "{\"x\":3}", at: 3))
            try test.store.take(record("added", "{\"x\":4}", at: 4))
            let result = try test.store.undoLast()
            #expect(result.keptNewer.map(\.name).sorted() == ["added", "updated"])
            #expect(result.reverted == 1 && result.removed == 1)
            let all = try test.store.all()
            #expect(all.map(\.id.name) == ["added", "other", "updated"])
            #expect(all.map(\.fields) == ["{\"x\":4}", "{\"x\":1}", "{\"x\":3}"])
        }
    }

    @Test func anEditBetweenTwoBatchesSurvivesTheUndoOfBoth() throws {
        try withStore { test in
            try test.store.bring(record("a", "{\"x\":1}", at: 1))
            try test.store.take(record("a", "{\"x\":2}", at: 2))
            let middle = try test.store.digest()
            try test.store.bring(record("a", "{\"x\":3}", at: 3))
            _ = try test.store.undoLast()
            #expect(try test.store.digest() == middle)
            #expect(try test.store.undoLast().keptNewer.map(\.name) == ["a"])
            #expect(try test.store.digest() == middle)
        }
    }

    @Test func aRecordPutInThePlaceOfARemovedOneStays() throws {
        try withStore { test in
            try test.store.take(record("a", "{\"x\":1}"), record("n", "{\"x\":1}", localID: "N"))
            _ = try test.store.batch(kind: "replace", source: "test") {
                for name in ["a", "n"] {
                    let stored = try test.store.record(RecordID(zone: "Z", name: name))
                    try test.store.removeRow(try #require(stored))
                }
                return ((), summary: "")
            }
            try test.store.take(record("a", "{\"x\":9}"), record("n", "{\"x\":9}", localID: "N"))
            let now = try test.store.digest()
            #expect(try test.store.undoLast().keptNewer.map(\.name).sorted() == ["a", "n"])
            #expect(try test.store.digest() == now)
        }
    }

    @Test func aBatchThatChangesNothingWritesNothing() throws {
        try withStore { test in
            let path = test.store.path
            try test.store.bring(record("a", "{\"x\":1}"), record("b"))
            _ = try test.store.batch(kind: "import", source: "") {
                (try place("a.pdf", "A", in: test.store), summary: "")
            }
            let before = try contents(of: test.folder)
            let times = try [path, path + "-wal"].map { try FileStatus.ofName($0) }
            #expect(try test.store.bring(record("a", "{ \"x\" : 1 }", at: 9), record("b", at: -1)) == nil)
            let placed = try test.store.batch(kind: "import", source: "") {
                (try place("a.pdf", "A", in: test.store), summary: "")
            }
            #expect(placed.result == .unchanged && placed.batch == nil)
            #expect(try test.store.bring(record("c"), record("a", "{\"x\":2}", at: 9), dryRun: true) == nil)
            #expect(try [path, path + "-wal"].map { try FileStatus.ofName($0) } == times)
            var after = try contents(of: test.folder)
            // The log's index is shared memory, not data.
            after["store.db-shm"] = before["store.db-shm"]
            #expect(after == before)
            #expect(try test.store.batches().count == 2)
        }
    }

    @Test func aFailingBatchLeavesNothing() throws {
        try withStore { test in
            try test.store.bring(record("a"))
            let before = try test.store.digest()
            #expect(throws: BackupError.self) {
                try test.store.batch(kind: "import", source: "") { () throws -> (Void, summary: String) in
                    _ = try test.store.ingest(record("b"))
                    _ = try test.store.putSetting("k", "1", at: time(0))
                    throw BackupError(.failed, "on purpose")
                }
            }
            #expect(try test.store.digest() == before)
            #expect(try test.store.batches().count == 1)
            try test.store.bring(record("c"))
            #expect(try test.store.batches().map(\.id) == [1, 2])
        }
    }

    @Test func aDryUndoSaysWhatItWouldDo() throws {
        try withStore { test in
            try test.store.bring(record("a"))
            let before = try test.store.digest()
            #expect(try test.store.undoLast(dryRun: true).removed == 1)
            #expect(try test.store.digest() == before)
            #expect(try test.store.undoLast().removed == 1)
            let error = #expect(throws: BackupError.self) { try test.store.undoLast() }
            #expect(error?.message == "there is nothing to undo")
        }
    }

    @Test func oldBatchesAreForgottenWithWhatTheyKept() throws {
        try withStore { test in
            for number in 0..<25 {
                _ = try test.store.batch(kind: "import", source: "") {
                    if let old = try test.store.asset("a.pdf") { try test.store.removeAsset(old) }
                    return (try place("a.pdf", "\(number)", in: test.store), summary: "")
                }
            }
            #expect(try test.store.batches().map(\.id) == Array(6...25))
            let kept = Set((4...23).map { SHA256Digest.of("\($0)").hex })
            #expect(
                try kept.isSubset(of: Directory.names(in: "\(test.store.assetFolder)/\(Store.blobFolder)")))
            for _ in 0..<20 { _ = try test.store.undoLast() }
            #expect(try readFile("\(test.store.assetFolder)/a.pdf") == Array("4".utf8))
        }
    }
}
