import TestSupport
import Testing

@testable import BackupKit

/// The undo history may say anything: an undo takes back only what its batch did.
@Suite struct OddBatchTests {
    private func fill(_ store: Store) throws {
        for name in ["a", "b", "c"] {
            _ = try store.batch(kind: "import", source: "\(name).bib") {
                _ = try store.ingest(record(name, "{\"x\":1}"))
                return ((), summary: "")
            }
        }
    }

    private func odd(_ test: TestStore) throws -> [String] {
        try StoreCheck.run("\(test.folder)/store.db").findings.map(\.subject)
    }

    private func repair(_ test: TestStore, accept: Bool) throws -> StoreRepairResult {
        var options = StoreMending.Options()
        options.accept = accept
        return try StoreMending.run(test.store, options)
    }

    @Test(arguments: [
        "first_change = 0", "first_change = 1", "first_change = -9223372036854775808", "last_change = 1000000",
        "last_change = 9223372036854775807", "last_change = 2", "first_change = 9223372036854775807",
    ])
    func aBatchWithNumbersOfOthers_isNamed_andNoUndoBelievesIt(lie: String) throws {
        try withStore { test in
            try fill(test.store)
            try test.store.database.execute("UPDATE batch SET \(lie) WHERE id = 3")
            #expect(try odd(test) == ["batch 3"])
            #expect(throws: BackupError.self) { try test.store.undoLast() }
            #expect(try test.store.all().count == 3)
            // A repair must not choose what nobody knows; --accept gives up this undo alone.
            #expect(try repair(test, accept: false).left.map(\.subject) == ["batch 3"])
            #expect(try repair(test, accept: true).left.isEmpty)
            #expect(try odd(test) == [])
            _ = try test.store.undoLast()
            #expect(try test.store.all().map(\.id.name) == ["a", "c"])
        }
    }

    @Test(arguments: ["last_change = 9223372036854775807", "first_change = -9223372036854775808"])
    func aBatchWithOddNumbers_stopsNoOther(lie: String) throws {
        try withStore { test in
            try fill(test.store)
            try test.store.database.execute("UPDATE batch SET \(lie) WHERE id = 1")
            // The redo gives the record another number, which its own batch must follow.
            for _ in 0..<2 {
                #expect(try test.store.undoLast().removed == 1)
                #expect(try test.store.redoLast().reverted == 1)
            }
            #expect(try odd(test) == ["batch 1"])
            for _ in 0..<2 { #expect(try test.store.undoLast().removed == 1) }
            #expect(throws: BackupError.self) { try test.store.undoLast() }
            #expect(try test.store.all().map(\.id.name) == ["a"])
        }
    }

    @Test func twoBatchesThatShareNumbers_areBothDoubted() throws {
        try withStore { test in
            try fill(test.store)
            try test.store.database.execute("UPDATE batch SET last_change = 2 WHERE id = 1")
            #expect(try odd(test) == ["batch 1", "batch 2"])
            #expect(try test.store.undoLast().removed == 1)
            #expect(throws: BackupError.self) { try test.store.undoLast() }
            #expect(try test.store.all().map(\.id.name) == ["a", "b"])
        }
    }
}
