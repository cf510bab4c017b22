import BackupKit
import TestSupport
import Testing

@Suite struct TripwireTests {
    private func export(_ store: Store, _ path: String) throws {
        _ = try Exporter.export(store, to: path, ExportOptions(form: .layout(.directory)))
    }

    @Test func aCensusCountsWhatABackupHolds() throws {
        try withStore { test in
            try test.store.take(
                record(
                    "p", #"{"title":"A","year":2020,"empty":"","none":null,"list":[]}"#, type: RecordType.publication),
                record("n", #"{"text":"four"}"#, type: RecordType.note), record("x"),
                record("gone", deleted: true))
            _ = try test.store.batch(kind: "import", source: "test", dryRun: false) {
                try place("PDFs/a.pdf", "12345", in: test.store)
                return ((), summary: "{}")
            }
            try export(test.store, "\(test.folder)/library")
            let census = try LibraryCensus.of("\(test.folder)/library")
            #expect(
                census
                    == LibraryCensus([
                        .publications: 1, .notes: 1, .records: 1, .tombstones: 1, .filledFields: 3, .noteBytes: 4,
                        .attachments: 1, .attachmentBytes: 5,
                    ]))
            #expect(LibraryCensus(census.json) == census && !census.isEmpty)
        }
    }

    private let before = LibraryCensus([
        .publications: 400, .notes: 100, .noteBytes: 50_000, .filledFields: 6000, .attachments: 300,
        .attachmentBytes: 1_000_000, .settings: 5, .tombstones: 40,
    ])

    private func changed(_ changes: [LibraryCensus.Measure: Int]) -> LibraryCensus {
        var counts: [LibraryCensus.Measure: Int] = [:]
        for measure in LibraryCensus.Measure.allCases { counts[measure] = changes[measure] ?? before[measure] }
        return LibraryCensus(counts)
    }

    @Test(
        arguments: [
            ([.publications: 319], ["publications"]), ([.publications: 320], []), ([.notes: 0], ["notes"]),
            ([.filledFields: 3000], ["fields with a value"]), ([.noteBytes: 10], ["bytes of notes"]),
            ([.settings: 1], []), ([.settings: 0], ["settings"]), ([.tombstones: 140], []),
            ([.tombstones: 141], ["deleted records"]), ([.tombstones: 10], ["deleted records"]),
            ([.publications: 900, .attachments: 1000], []),
            ([.attachments: 100, .attachmentBytes: 5], ["attachments", "bytes of attachments"]),
        ] as [([LibraryCensus.Measure: Int], [String])])
    func whatShrankIsNamed(changes: [LibraryCensus.Measure: Int], expected: [String]) {
        let findings = Tripwire().compare(changed(changes), with: before)
        #expect(findings.map(\.subject) == expected)
        #expect(findings.allSatisfy { $0.code == .suspiciousLoss })
    }

    @Test func thresholdsCanBeSet() {
        var wire = Tripwire()
        (wire.percent, wire.atLeast, wire.percentOf) = (5, 1, [.attachments: 90])
        #expect(wire.compare(changed([.settings: 4]), with: before).map(\.subject) == ["settings"])
        #expect(wire.compare(changed([.attachments: 50]), with: before).isEmpty)
        #expect(wire.compare(before, with: before).isEmpty)
    }

    @Test func anEmptyLibraryIsSuspiciousFromTheStart() {
        #expect(Tripwire().compare(LibraryCensus(), with: nil).map(\.message) == ["holds nothing at all"])
        #expect(Tripwire().compare(LibraryCensus([.tombstones: 5]), with: nil).count == 1)
        #expect(Tripwire().compare(LibraryCensus([.notes: 1]), with: nil).isEmpty)
    }

    @Test(arguments: [1, 7, 30, 365])
    func everyPartHasItsTurn(parts: Int) throws {
        let start = try #require(CivilDate(year: 1969, month: 12, day: 20))
        var turns: [Int: Int] = [:]
        for day in 0..<Int64(parts * 3) {
            let date = CivilDate(daysSinceEpoch: start.daysSinceEpochForTests + day)
            turns[CheckSubset(on: date, parts: parts).part, default: 0] += 1
        }
        #expect(turns.count == parts && turns.values.allSatisfy { $0 == 3 } && turns.keys.min() == 1)
    }

    @Test func aSubsetIsWrittenAsResticDoes() throws {
        let day = try #require(CivilDate(year: 2026, month: 11, day: 21))
        #expect(CheckSubset(on: day, parts: 30).text == "19/30")
        #expect(CheckSubset(on: day, parts: 0).text == "1/1")
    }
}

extension CivilDate {
    fileprivate var daysSinceEpochForTests: Int64 {
        (Timestamp(iso8601: text)?.milliseconds ?? 0) / 86_400_000
    }
}
