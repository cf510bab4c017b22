import BackupKit
import TestSupport
import Testing

private func entry(_ seconds: Int64, isOK: Bool = true) -> DrillEntry {
    DrillEntry(
        time: time(seconds), path: "/b/library.tar.zst", madeAt: time(seconds - 60), isOK: isOK, seconds: 1.25,
        files: 3,
        bytes: 1000, contentDigest: "ab", problems: isOK ? [] : ["a \"problem\"\n"])
}

@Suite struct DrillLogTests {
    private func withLog(_ body: (DrillLog) throws -> Void) throws {
        try withTemporaryFolder { try body(DrillLog("\($0)/state/drills.jsonl")) }
    }

    private func rewrite(_ log: DrillLog, _ change: (inout [String]) -> Void) throws -> DrillLog.History {
        var lines = String(decoding: try readFile(log.path), as: UTF8.self).split(separator: "\n").map(String.init)
        change(&lines)
        try writeFile(log.path, lines.joined(separator: "\n") + "\n")
        return try log.history()
    }

    /// The next drill says so, and is added.
    @Test func whicheverBitOfTheOnlyLineFlips_itStaysALog() throws {
        try withLog { log in
            try log.append(entry(1))
            let sound = try readFile(log.path)
            for bit in 0..<(sound.count - 1) * 8 {
                var bytes = sound
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                try writeFile(log.path, bytes)
                do { try log.mustBeLog() } catch {
                    Issue.record("bit \(bit): \(String(decoding: bytes, as: UTF8.self))")
                }
            }
        }
    }

    @Test func whatIsAppendedIsReadAgain_andTheChainHolds() throws {
        try withLog { log in
            #expect(try log.history() == DrillLog.History())
            let entries = [entry(0), entry(100, isOK: false), entry(200)]
            for entry in entries { try log.append(entry) }
            let history = try log.history()
            #expect(history.entries == entries && history.findings.isEmpty && history.lastSuccess == entries[2])
            let last = try readFile(log.path).dropLast().split(separator: 0x0A).last ?? []
            #expect(history.head == Array(last).withUnsafeBytes { SHA256Digest.of($0).hex })
        }
    }

    @Test func whoeverChangesRemovesOrInsertsALineIsFoundOut() throws {
        try withLog { log in
            for seconds in 0..<5 { try log.append(entry(Int64(seconds), isOK: seconds != 2)) }
            let whole = try readFile(log.path)
            let changes: [(String, (inout [String]) -> Void)] = [
                ("changed", { $0[2] = $0[2].replacing("\"ok\":false", with: "\"ok\":true") }),
                ("removed", { $0.remove(at: 2) }), ("first removed", { $0.removeFirst() }),
                ("swapped", { $0.swapAt(1, 2) }), ("doubled", { $0.insert($0[1], at: 1) }),
            ]
            for (name, change) in changes {
                try writeFile(log.path, String(decoding: whole, as: UTF8.self))
                let history = try rewrite(log, change)
                #expect(history.findings.contains { $0.severity == .damage }, "\(name)")
            }
        }
    }

    /// Another log behind this one: every line of it follows from the one before, but for its first.
    @Test func aLogThatWasPutBehindAnotherIsFoundOut() throws {
        try withLog { log in
            for seconds in 0..<3 { try log.append(entry(Int64(seconds))) }
            let whole = try readFile(log.path)
            try writeFile(log.path, String(decoding: whole + whole, as: UTF8.self))
            let history = try log.history()
            #expect(history.findings.map(\.severity) == [.damage] && history.findings[0].subject.hasSuffix(":4"))
        }
    }

    /// What a partial snapshot lacks no drill can miss.
    @Test func aPartialSnapshotThatPassedADrillProvesNothing() throws {
        try withLog { log in
            for (seconds, name) in [(0, "whole"), (1, "partial")] {
                let passed = DrillEntry(
                    time: time(Int64(seconds)), path: "/v", snapshot: name, madeAt: nil, isOK: true, seconds: 1,
                    files: 1,
                    bytes: 1, contentDigest: nil, problems: [])
                try log.append(passed)
            }
            let items = [
                RetentionItem(id: "whole", time: SnapshotTime(time(0))),
                RetentionItem(id: "partial", time: SnapshotTime(time(1)), isPartial: true),
            ]
            #expect(try log.history().proved(among: items, now: time(10)) == ["whole"])
        }
    }

    @Test func aLineThatACrashCutOffStays_andTheNextOneFollowsFromIt() throws {
        try withLog { log in
            try log.append(entry(0))
            var bytes = try readFile(log.path)
            bytes += Array("{\"time\":\"2026".utf8)
            try writeFile(log.path, String(decoding: bytes, as: UTF8.self))
            #expect(try log.history().findings.map(\.severity) == [.warning])
            try log.append(entry(1))
            let history = try log.history()
            #expect(history.entries.count == 2 && history.findings.map(\.severity) == [.warning])
            #expect(try readFile(log.path).starts(with: bytes))
        }
    }

    @Test func anyBytesAreReadWithoutATrap() throws {
        try withLog { log in
            try log.append(entry(0))
            try log.append(entry(1))
            let whole = try readFile(log.path)
            var random = SeededGenerator(seed: testSeed())
            for _ in 0..<300 {
                var bytes = Array(whole.prefix(random.below(whole.count + 1)))
                if !bytes.isEmpty { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
                try bytes.withUnsafeBytes { raw in
                    try AtomicFile.write(log.path, replace: true) { try $0.write(raw) }
                }
                _ = try log.history()
            }
        }
    }
}

@Suite struct DrillTests {
    private func withBackups(_ names: [String], _ body: (String) throws -> Void) throws {
        try withStore { test in
            try test.store.take(record("a", #"{"title":"A"}"#), record("b", deleted: true))
            _ = try test.store.batch(kind: "import", source: "test", dryRun: false) {
                try place("PDFs/a.pdf", "12345", in: test.store)
                return ((), summary: "{}")
            }
            try Directory.create("\(test.folder)/backups")
            for (index, name) in names.enumerated() {
                let path = "\(test.folder)/backups/\(name)"
                let format = CarrierFormat(fileName: name) ?? .directory
                _ = try Exporter.export(test.store, to: path, ExportOptions(form: .layout(format)))
                let file = format == .directory ? "\(path)/manifest.json" : path
                try FileHandle.openForReading(file).setModified(seconds: Int64(1000 + index))
            }
            try body("\(test.folder)/backups")
        }
    }

    @Test(arguments: ["library.tar.zst", "library.zip", "library"])
    func aWholeBackupPasses_andTheTimeIsMeasured(name: String) throws {
        try withBackups([name]) { folder in
            let entry = try Drill.run(Drill.Target(path: "\(folder)/\(name)"), Drill.Options())
            #expect(entry.isOK && entry.problems.isEmpty && entry.seconds > 0 && entry.contentDigest?.count == 64)
            #expect(entry.madeAt != nil && entry.files > 3)
        }
    }

    @Test func aDamagedBackupFails_andItIsSaidWhy() throws {
        try withBackups(["library"]) { folder in
            try writeFile("\(folder)/library/PDFs/a.pdf", "12346")
            let entry = try Drill.run(Drill.Target(path: "\(folder)/library"), Drill.Options())
            #expect(!entry.isOK && entry.problems.count == 1 && entry.problems[0].hasPrefix("PDFs/a.pdf: "))
        }
    }

    @Test func whatFailedIsTriedAgain_untilItPassesOrIsGone() throws {
        let items = (1...9).map { RetentionItem(id: "s\($0)", time: SnapshotTime(time(Int64($0) * 1000))) }
        var history = DrillLog.History()
        var random = SeededGenerator(seed: testSeed())
        func tried(_ items: [RetentionItem]) -> [String] {
            Drill.choice(of: items, history, now: time(100_000), using: &random).map(\.id)
        }
        func note(_ snapshot: String, _ isOK: Bool) {
            history.entries.append(
                DrillEntry(
                    time: time(0), path: "v", snapshot: snapshot, madeAt: nil, isOK: isOK, seconds: 1, files: 0,
                    bytes: 0,
                    contentDigest: nil, problems: []))
        }
        for (snapshot, isOK) in [("s2", true), ("s4", false), ("s5", false), ("s5", true), ("s7", false)] {
            note(snapshot, isOK)
        }
        for _ in 0..<10 { #expect(tried(items) == ["s9", "s4", "s7"]) }
        #expect(tried(items.filter { $0.id != "s7" }) == ["s9", "s4"])
        for snapshot in ["s4", "s7"] { note(snapshot, true) }
        #expect(Set((0..<100).map { _ in tried(items)[1] }).count == 8)
    }

    @Test func theNewestAndAnOlderOneAreTried() throws {
        let names = ["c.tar.zst", "a.zip", "d", "b.tar"]
        try withBackups(names) { folder in
            try writeFile("\(folder)/notes.txt", "no backup")
            try Directory.create("\(folder)/empty")
            var older: Set<String> = []
            var random = SeededGenerator(seed: testSeed())
            for _ in 0..<60 {
                let targets = try Drill.targets(at: folder, using: &random)
                #expect(targets.count == 2 && targets[0].path == "\(folder)/b.tar")
                older.insert(lastComponent(of: targets[1].path))
            }
            #expect(older == ["c.tar.zst", "a.zip", "d"])
            #expect(try Drill.targets(at: "\(folder)/d", using: &random).map(\.path) == ["\(folder)/d"])
            let error = #expect(throws: BackupError.self) {
                try Drill.targets(at: "\(folder)/empty", using: &random)
            }
            #expect(error?.code == .notFound)
        }
    }
}
