import TestSupport
import Testing

@testable import BackupKit

@Suite struct ContentDigestTests {
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func theOrderOfArrivalAndTheChangeNumbersDoNotMatter(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var records: [Record] = []
        for number in 0..<30 {
            let fields = number % 5 == 0 ? "{}" : "{\"n\":\(number)}"
            records.append(
                record("r\(number)", fields, at: Int64(number), local: number % 7 == 3, deleted: number % 5 == 0))
        }
        let plain = try withStore { test in
            for record in records { try test.store.take(record) }
            return try test.store.digest()
        }
        let mixed = try withStore { test in
            _ = try test.store.batch(kind: "import", source: "x") {
                (try test.store.ingest(record("too many")), summary: "")
            }
            _ = try test.store.undoLast()
            for record in records.shuffled(using: &random) { try test.store.take(record) }
            return try test.store.digest()
        }
        #expect(mixed == plain)
    }

    /// Lines are sorted in memory as the identities of their records are.
    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func linesLeaveInTheOrderOfIdentities(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let parts = ["", "a", "b", "B", "\0", "é", "0123456", "01234567", "01234567é", "\u{10FFFF}", "~"]
        var records: [Record] = []
        for zone in ["", "Library", "Librar", "Z\u{e9}"] {
            for one in parts {
                for other in parts { records.append(record(one + other, "{\"n\":1}", zone: zone)) }
            }
        }
        records = Dictionary(records.map { ($0.id, $0) }) { one, _ in one }.values.shuffled(using: &random)
        var sorter = RecordLineSorter()
        var pen = JSONPen()
        for start in stride(from: 0, to: records.count, by: 50) {
            var lines = RecordLines()
            for record in records[start..<min(start + 50, records.count)] { _ = lines.append(record, &pen) }
            sorter.add(lines)
        }
        var text: [UInt8] = []
        sorter.forEachText { text += $0 }
        let expected = records.sorted { $0.id < $1.id }.reduce(into: [UInt8]()) { $0 += $1.jsonText + [0x0A] }
        #expect(text == expected, "seed \(seed)")
    }

    @Test func everyFactOfARecordCounts() throws {
        let base = record("a", "{\"x\":1}", at: 5, times: ["x": 3], device: "d")
        var variants = [base]
        func vary(_ change: (inout Record) -> Void) {
            var copy = base
            change(&copy)
            variants.append(copy)
        }
        vary { $0.id = RecordID(zone: "Z", name: "b") }
        vary { $0.id = RecordID(zone: "Y", name: "a") }
        vary { $0.type = "Other" }
        vary { $0.localID = "l" }
        vary { $0.fields = "{\"x\":2}" }
        vary { $0.fieldTimes = [:] }
        vary { $0.createdAt = time(1) }
        vary { $0.modifiedAt = time(6) }
        vary { $0.deviceID = nil }
        vary { $0.schemaVersion = 110 }
        vary { $0.isLocalOnly = true }
        variants.append(record("a", at: 5, deleted: true))
        var digests: Set<String> = []
        for variant in variants {
            var digest = ContentDigest()
            try digest.add(variant)
            digests.insert(digest.finish().hex)
        }
        #expect(digests.count == variants.count)
    }

    @Test func formattingDoesNotCount() throws {
        var digests: Set<String> = []
        for fields in ["{\"a\":1,\"b\":\"A\"}", "{ \"b\":\"\\u0041\",\"a\" : 1 }"] {
            var digest = ContentDigest()
            try digest.add(record("a", fields))
            digests.insert(digest.finish().hex)
        }
        #expect(digests.count == 1)
    }

    @Test func settingsAndAssetsCountAndCanBeLeftOut() throws {
        try withStore { test in
            let empty = try test.store.digest()
            _ = try test.store.batch(kind: "import", source: "x") {
                (try test.store.putSetting("k", "{\"a\": 1}", at: time(0)), summary: "")
            }
            let setting = try test.store.digest()
            _ = try test.store.batch(kind: "import", source: "x") {
                (try place("PDFs/a.pdf", "text", in: test.store), summary: "")
            }
            #expect(Set([empty, setting, try test.store.digest()]).count == 3)
            #expect(try test.store.contentDigest(kinds: [.records]).hex == empty)
        }
    }

    @Test func everyFactOfASettingAndOfAnAssetCounts() {
        var digests: Set<String> = []
        for (key, value) in [("k", "1"), ("l", "1"), ("k", "2")] {
            var digest = ContentDigest()
            #expect(throws: Never.self) { try digest.addSetting(key, value) }
            digests.insert(digest.finish().hex)
        }
        for (path, size, text, isLocal) in [
            ("a", 1, "x", false), ("b", 1, "x", false), ("a", 2, "x", false), ("a", 1, "y", false), ("a", 1, "x", true),
        ] {
            var digest = ContentDigest()
            digest.add(Asset(path: path, size: Int64(size), digest: .of(text), isLocalOnly: isLocal))
            digests.insert(digest.finish().hex)
        }
        #expect(digests.count == 8)
    }

    // The recipe of docs/formats.md with other tools' arithmetic: one record, one line, two rounds of SHA-256.
    @Test func theDigestIsWhatSortAndSha256sumSay() throws {
        let line = """
            record {"createdAt":"2026-01-01T00:00:00.000Z","fields":{"a":1},"localId":"n",\
            "modifiedAt":"2026-01-01T00:00:00.000Z","recordName":"n","recordType":"Item","schemaVersion":120,"zone":"Z"}
            """
        var digest = ContentDigest()
        try digest.add(record("n", "{ \"a\": 1 }"))
        #expect(digest.finish() == .of(SHA256Digest.of(line).hex + "\n"))
        #expect(ContentDigest().finish().hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }
}
