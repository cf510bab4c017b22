import TestSupport
import Testing

@testable import BackupKit

/// An undo is a batch, too: a redo takes it back.
@Suite struct RedoTests {
    /// What an undo had to leave is nothing that it has added.
    @Test func aRecordThatAnUndoHasLeft_staysWhenThatIsRedone() throws {
        try withStore { test in
            for (number, fields) in ["{\"x\":1}", "{\"x\":2}"].enumerated() {
                _ = try test.store.batch(kind: "import", source: "\(number)") {
                    _ = try test.store.ingest(record("a", fields, at: Int64(number)))
                    return ((), summary: "")
                }
            }
            let before = try test.store.digest()
            try test.store.database.execute("UPDATE batch_record SET fields = '{\"x\":9}'")
            #expect(try test.store.undoLast().fileFindings.map(\.code) == [.recordDamaged])
            #expect(try test.store.digest() == before)
            _ = try test.store.redoLast()
            #expect(try test.store.digest() == before)
        }
    }

    /// What a person sees: the content, the files, and what waits for a decision.
    private func state(_ store: Store) throws -> [String] {
        let files = try visibleFiles(of: store).map { "\($0.key) \($0.value)" }.sorted()
        let conflicts = try store.conflicts().map { "\($0.kind) \($0.subject) \($0.existing) \($0.incoming)" }.sorted()
        return [try store.digest()] + files + conflicts
    }

    private func change(_ store: Store, _ random: inout SeededGenerator, at: Int64) throws {
        for _ in 0...random.below(4) {
            let name = "r\(random.below(4))"
            let id = RecordID(zone: "Z", name: name)
            switch random.below(8) {
            case 0: if let stored = try store.record(id) { try store.removeRow(stored) }
            case 1: if try store.record(id)?.record.isDeleted == false { _ = try store.delete([name]) }
            case 2: _ = try store.putSetting("k\(random.below(3))", "\(random.below(9))", at: time(at))
            case 3: try place("f\(random.below(3)).pdf", "\(random.below(4))", in: store)
            case 4: if let asset = try store.asset("f\(random.below(3)).pdf") { try store.removeAsset(asset) }
            case 5: if let conflict = try store.conflicts().first { try store.keepBoth(conflict) }
            default: _ = try store.ingest(record(name, "{\"x\":\(random.below(100))}", at: at))
            }
        }
    }

    @Test(arguments: 1...25 as ClosedRange<UInt64>)
    func undoingAndRedoingStepByStepMeetsEveryStateAgain(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        try withStore { test in
            var past: [[String]] = []
            var future: [[String]] = []
            for step in 0..<40 {
                test.clock.advance()
                let before = try state(test.store)
                switch random.below(3) {
                case 0 where !past.isEmpty:
                    let result = try test.store.undoLast()
                    #expect(result.keptNewer.isEmpty)
                    future.append(before)
                    #expect(try state(test.store) == past.popLast(), "undo in step \(step)")
                case 1 where !future.isEmpty:
                    let result = try test.store.redoLast()
                    #expect(result.keptNewer.isEmpty)
                    past.append(before)
                    #expect(try state(test.store) == future.popLast(), "redo in step \(step)")
                default:
                    let (_, batch) = try test.store.batch(kind: "import", source: "\(step)") {
                        (try change(test.store, &random, at: Int64(step)), summary: "{}")
                    }
                    guard batch != nil else { continue }
                    // Undone batches count as well.
                    if past.count + future.count > 15 { return }
                    past.append(before)
                    future = []
                    #expect(throws: BackupError.self) { try test.store.redoLast() }
                }
            }
        }
    }

    @Test func whatAPersonDoesToRecordsIsTakenBack_andComesBack() throws {
        try withStore { test in
            try test.store.take(record("a", "{\"x\":1}"), record("b", "{\"x\":1}"))
            var digests = [try test.store.digest()]
            func did(_ what: () throws -> Void) throws {
                test.clock.advance()
                try what()
                digests.append(try test.store.digest())
                #expect(digests[digests.count - 1] != digests[digests.count - 2])
            }
            try did { _ = try test.store.curate(.delete, ["a"]) }
            try did { _ = try test.store.keepOnThisDevice(["b"]) }
            try did { _ = try test.store.curate(.enableCloud, ["b"]) }
            try did { _ = try test.store.share("Z", with: "ben", .read, owner: "ann") }
            try did { _ = try test.store.unshare("Z", nil) }
            let kinds = ["delete", "set-local", "enable-cloud", "share", "unshare"]
            #expect(try test.store.batches().map(\.kind) == kinds)
            for (kind, digest) in zip(kinds, digests).reversed() {
                #expect(try test.store.undoLast().batch.kind == kind)
                #expect(try test.store.digest() == digest)
            }
            for digest in digests.dropFirst() {
                _ = try test.store.redoLast()
                #expect(try test.store.digest() == digest)
            }
        }
    }

    @Test func anUndoneDeleteReachesThoseWhoHaveHeardOfTheDelete() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"text\":\"vaccinated\"}")
            try devices.syncAll()
            devices.clock.advance()
            _ = try devices["A"].curate(.delete, ["r"])
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == nil)
            devices.clock.advance()
            _ = try devices["A"].undoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == "{\"text\":\"vaccinated\"}") }
            _ = try devices["A"].redoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
        }
    }

    @Test func aDecisionThatIsRedoneIsOffTheQueueAgain() throws {
        try withStore { test in
            _ = try test.store.batch(kind: "import", source: "") {
                for text in ["one", "two"] { try place("f.pdf", text, in: test.store) }
                return ((), summary: "{}")
            }
            let waiting = try state(test.store)
            _ = try test.store.batch(kind: "resolve", source: "") {
                (try test.store.keepBoth(#require(try test.store.conflict(1))), summary: "{}")
            }
            let decided = try state(test.store)
            for _ in 0..<2 {
                #expect(try test.store.undoLast().conflicts == 1)
                #expect(try state(test.store) == waiting)
                _ = try test.store.redoLast()
                #expect(try state(test.store) == decided)
            }
            _ = try test.store.undoLast()
            _ = try test.store.undoLast()
            #expect(try test.store.conflicts().isEmpty)
            _ = try test.store.redoLast()
            #expect(try state(test.store) == waiting)
        }
    }

    @Test func afterACommandThatChangedNothing_theOlderBatchMustBeNamed() throws {
        try withStore { test in
            func bring() throws -> Batch? {
                test.clock.advance()
                return try test.store.batch(kind: "import", source: "a.bib", notesIdle: true) {
                    (_ = try test.store.ingest(record("a")), summary: "")
                }.batch
            }
            let batch = try #require(try bring())
            #expect(try bring() == nil)
            let error = #expect(throws: BackupError.self) { try test.store.undoLast() }
            #expect(error?.message.contains("changed nothing") == true)
            #expect(error?.remedy?.contains("undo --batch \(batch.id)") == true)
            #expect(throws: BackupError.self) { try test.store.undoLast(batch.id + 1) }
            #expect(try test.store.undoLast(batch.id).removed == 1)
            #expect(try bring() != nil)
            _ = try test.store.undoLast()
        }
    }
}
