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
                    == LibraryCensus(
                        [
                            .publications: 1, .notes: 1, .records: 1, .tombstones: 1, .filledFields: 3, .noteBytes: 4,
                            .attachments: 1, .attachmentBytes: 5,
                        ],
                        fields: [
                            "publications.title": 1, "publications.year": 1, "notes.text": 1, "deleted.records": 1,
                        ]))
            #expect(LibraryCensus(census.json) == census && !census.isEmpty)
            // Records count, however short the lines are that are taken from logs.
            var limits = ReadLimits()
            limits.lineBytes = 10
            #expect(try LibraryCensus.of("\(test.folder)/library", limits: limits) == census)
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
            ([.filledFields: 3000], ["fields with a value"]), ([.noteBytes: 10], ["the text of the notes"]),
            ([.settings: 1], []), ([.settings: 0], ["settings"]), ([.tombstones: 140], []),
            ([.tombstones: 141], ["deleted records"]), ([.tombstones: 10], ["deleted records"]),
            ([.publications: 900, .attachments: 1000], []),
            ([.attachments: 100, .attachmentBytes: 5], ["attachments", "the files of attachments"]),
        ] as [([LibraryCensus.Measure: Int], [String])])
    func whatShrankIsNamed(changes: [LibraryCensus.Measure: Int], expected: [String]) {
        let findings = Tripwire().compare(changed(changes), with: before)
        #expect(findings.map(\.subject) == expected)
        #expect(findings.allSatisfy { $0.code == .suspiciousLoss })
    }

    @Test(
        arguments: [
            // Emptied; emptied in a quarter; deleted, and so no field's business; new ones hide nothing.
            ([.publications: 200], 0, true), ([.publications: 200], 150, true),
            ([.publications: 170, .tombstones: 30], 170, false), ([.publications: 200, .tombstones: 35], 165, false),
            ([.publications: 230, .tombstones: 30], 120, true), ([.publications: 200], 170, false),
        ] as [([LibraryCensus.Measure: Int], Int, Bool)])
    func aFieldThatIsEmptiedInManyRecordsIsNamed(
        now: [LibraryCensus.Measure: Int], abstracts: Int, isSuspicious: Bool
    ) {
        let before = LibraryCensus(
            [.publications: 200, .filledFields: 1400],
            fields: ["publications.abstract": 200, "publications.title": 200])
        var now = now
        now[.filledFields] = 1400
        // Events that were deleted hide nothing.
        let fields = ["deleted.publications": now[.tombstones] ?? 0, "deleted.events": 500]
        let census = LibraryCensus(
            now, fields: fields.merging(["publications.abstract": abstracts, "publications.title": 200]) { $1 })
        let findings = Tripwire().compare(census, with: before)
        #expect(findings.map(\.subject) == (isSuspicious ? ["'publications.abstract'"] : []), "\(findings)")
        // An older state tells no fields.
        #expect(Tripwire().compare(census, with: LibraryCensus([.publications: 200, .filledFields: 1400])).isEmpty)
    }

    /// Tombstones go when their records come back, as by an undo of a delete; of others nobody knows why they went.
    @Test(
        arguments: [(22, 22, true), (22, 0, false), (30, 0, false), (11, 0, false), (22, 12, true), (0, 12, true)])
    func tombstonesOfRecordsThatCameBackAreNoLoss(back: Int, lostEvents: Int, isSuspicious: Bool) {
        let before = LibraryCensus(
            [.publications: 178, .events: 500, .tombstones: 52],
            fields: ["deleted.publications": 22, "deleted.events": 30])
        let fields = ["deleted.publications": 22 - min(22, back), "deleted.events": 30 - lostEvents]
        let census = LibraryCensus(
            [.publications: 178 + back, .events: 500, .tombstones: fields.values.reduce(0, +)], fields: fields)
        let findings = Tripwire().compare(census, with: before)
        #expect(findings.map(\.subject) == (isSuspicious ? ["deleted records"] : []), "\(findings)")
        let older = LibraryCensus([.publications: 178, .events: 500, .tombstones: 52])
        #expect(Tripwire().compare(census, with: older).isEmpty != isSuspicious)
    }

    @Test func whereThereAreTooManyNamesNoneCountsAsEmptied() {
        var fields = ["events.note": 300]
        let before = LibraryCensus([.events: 300, .filledFields: 3000], fields: fields)
        fields = [:]
        for number in 0..<1000 { fields["events.odd\(number)"] = 1 }
        let now = LibraryCensus([.events: 300, .filledFields: 3000], fields: fields)
        #expect(Tripwire().compare(now, with: before).isEmpty)
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
        var turns: [Int: Int] = [:]
        for day in Int64(parts * -2)..<Int64(parts) {
            turns[CheckSubset(on: CivilDate(daysSinceEpoch: day), parts: parts).part, default: 0] += 1
        }
        #expect(turns.count == parts && turns.values.allSatisfy { $0 == 3 } && turns.keys.min() == 1)
    }

    @Test(arguments: [2, 3, 7, 14, 30], [7, 8, 30])
    func everyPartHasItsTurn_alsoWhenRunsAreDaysApart(days: Int, parts: Int) {
        let first: Int64 = 20_000
        let seen = (0..<parts * 6).map { run in
            CheckSubset(on: CivilDate(daysSinceEpoch: first + Int64(run * days)), parts: parts).part
        }
        #expect(Set(seen).count == parts)
    }

    @Test func aSubsetIsWrittenAsResticDoes() throws {
        let day = try #require(CivilDate(year: 2026, month: 11, day: 21))
        #expect(CheckSubset(on: day, parts: 30).text == "28/30")
        #expect(CheckSubset(on: day, parts: 0).text == "1/1")
    }
}

extension CivilDate {
    fileprivate var daysSinceEpochForTests: Int64 {
        (Timestamp(iso8601: text)?.milliseconds ?? 0) / 86_400_000
    }
}
