import TestSupport
import Testing

@testable import BackupKit

/// Backups of a device whose clock is ahead.
@Suite struct BackupAheadTests {
    private static let day: Int64 = 86_400

    /// What a restore of such a backup into a new store brings, by days ahead.
    private func restored(
        ahead days: Int64,
        _ body: (_ from: Store, _ back: Store, IntakeResult, _ clock: TestClock, String) throws -> Void
    ) throws {
        try withTemporaryFolder { folder in
            let clock = TestClock()
            let skewed = Clock { Timestamp(milliseconds: clock.now.milliseconds + days * Self.day * 1000) }
            let from = try Store.create("\(folder)/from.db", clock: skewed)
            for name in ["edited", "deleted"] {
                let now = skewed.now()
                try from.take(
                    Record(
                        id: RecordID(zone: "Z", name: name), type: RecordType.event, localID: name,
                        fields:
                            #"{"id":"\#(name)","time":"2026-01-01T00:00:00Z","modified_at":"\#(now.iso8601)","type":"eten","x":0}"#,
                        createdAt: now,
                        modifiedAt: now))
            }
            clock.advance()
            _ = try from.delete(["deleted"])
            _ = try Exporter.export(from, to: "\(folder)/out", ExportOptions(form: .layout(.directory)))
            let back = try Store.create("\(folder)/back.db", clock: clock.clock)
            let result = try Restorer.restore("\(folder)/out", into: back, RestoreOptions())
            try body(from, back, result, clock, folder)
        }
    }

    @Test(arguments: [1, 6])
    func aBackupOfAClockThatIsAhead_keepsTheOrderOfEditsAndDeletes(days: Int64) throws {
        try restored(ahead: days) { from, back, result, clock, folder in
            let (digests, times) = (
                try [from, back].map { try $0.digest() }, try [from, back].map { try $0.all().map(\.latestTime) }
            )
            #expect(digests[0] == digests[1] && times[0] == times[1])
            // What is written here afterwards is later.
            clock.advance()
            _ = try back.delete(["edited"])
            let again = try Restorer.restore("\(folder)/out", into: back, RestoreOptions())
            #expect(again.added == 0 && again.updated == 0, "\(again)")
            // An edit of a file has the time of the file.
            try writeFile(
                "\(folder)/log.jsonl",
                "{\"id\":\"edited\",\"time\":\"2026-01-01T00:00:00Z\",\"modified_at\":\"\(clock.now.iso8601)\",\"type\":\"eten\",\"x\":1}\n"
            )
            let second = try Store.create("\(folder)/second.db", clock: clock.clock)
            _ = try Restorer.restore("\(folder)/out", into: second, RestoreOptions())
            let imported = try Importer.run(["\(folder)/log.jsonl"], into: second, ImportOptions())
            #expect(
                imported.findings.contains { $0.message.contains("dated ahead of this device's clock") }, "\(imported)")
        }
    }

    @Test func whatIsFurtherAhead_isSetBackAndNamed_deletesToo() throws {
        try restored(ahead: 400) { _, back, result, clock, _ in
            #expect(result.findings.count { $0.code == .clockSkew } == 2, "\(result.findings)")
            let latest = try back.all().map(\.latestTime).max() ?? .distantPast
            #expect(latest <= clock.now)
        }
    }
}
