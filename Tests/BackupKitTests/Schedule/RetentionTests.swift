import BackupKit
import TestSupport
import Testing

private let now = time(0)

private func item(
    _ id: String, _ time: String, host: String = "h", tags: [String] = [], parent: String? = nil,
    isPartial: Bool = false
) throws -> RetentionItem {
    RetentionItem(
        id: id, time: try #require(SnapshotTime(time)), host: host, paths: ["/lib"], tags: tags, parent: parent,
        isPartial: isPartial)
}

private func policy(_ rules: String...) throws -> RetentionPolicy {
    var policy = RetentionPolicy()
    for rule in rules {
        let parts = rule.split(separator: "=", omittingEmptySubsequences: false)
        try policy.set(String(parts[0]), String(parts[1]))
    }
    return policy
}

extension RetentionPlan {
    fileprivate var kept: [String] { groups.flatMap { $0.keep.map(\.item.id) }.sorted() }
}

@Suite struct RetentionTests {
    // MARK: As restic does it

    private struct Case {
        let words: [String]
        let groups: Int64
        let kept: [[String]]
    }

    /// The file is written by `scripts/make-retention-goldens.py`, which asks restic 0.18.
    @Test func whatIsKeptAndWhy_isWhatResticSays() throws {
        let path = goldenPath("retention.json")
        let golden = try JSON(parsing: try #require(readText(path)))
        let items = try (golden["snapshots"]?.array ?? []).map { snapshot in
            RetentionItem(
                id: snapshot["short_id"]?.string ?? "",
                time: try #require(SnapshotTime(snapshot["time"]?.string ?? "")),
                host: snapshot["hostname"]?.string ?? "", paths: snapshot["paths"]?.array?.compactMap(\.string) ?? [],
                tags: snapshot["tags"]?.array?.compactMap(\.string) ?? [])
        }
        #expect(items.count == 100)
        let cases = golden["cases"]?.array ?? []
        #expect(cases.count > 30)
        for entry in cases {
            let words = entry["policy"]?.array?.compactMap(\.string) ?? []
            var retention = Retention(RetentionPolicy(), now: time(86400 * 324))
            retention.trustsTimes = true
            for index in stride(from: 0, to: words.count, by: 2) {
                if words[index] == "--group-by" {
                    retention.grouping = try RetentionGrouping(words[index + 1])
                } else {
                    try retention.policy.set(String(words[index].dropFirst("--keep-".count)), words[index + 1])
                }
            }
            let expected = entry["kept"]?.array?.map { $0.array?.compactMap(\.string) ?? [] } ?? []
            do {
                let plan = try retention.plan(items)
                let kept = plan.groups.flatMap { $0.keep.map { [$0.item.id] + $0.reasons } }
                let isSame = kept.sorted { $0.lexicographicallyPrecedes($1) } == expected
                #expect(isSame, "\(words)")
                #expect(plan.groups.count == Int(entry["groups"]?.integer ?? 0), "\(words)")
            } catch let error as BackupError {
                // restic removes them all.
                #expect(error.code == .refused, "\(words): \(error)")
            }
        }
    }

    // MARK: What must not happen

    @Test func anEmptyPolicyIsRefused() throws {
        for rules in [RetentionPolicy(), try policy("daily=0")] {
            let error = #expect(throws: BackupError.self) {
                try Retention(rules, now: now).plan([item("a", "2025-01-01T00:00:00Z")])
            }
            #expect(error?.code == .usage)
        }
    }

    @Test func aPolicyThatWouldRemoveAllOfAGroupIsRefused() throws {
        let error = #expect(throws: BackupError.self) {
            try Retention(policy("tag=keep"), now: now).plan([item("a", "2025-01-01T00:00:00Z")])
        }
        #expect(error?.code == .refused && error?.message.contains("host 'h', /lib") == true)
    }

    @Test func theOldestIsKept_whileACountIsNotUsedUp() throws {
        let items = try ["2024-01-05", "2024-06-05", "2025-01-05"].map { try item($0, $0) }
        let plan = try Retention(policy("yearly=5"), now: now).plan(items)
        #expect(plan.kept == ["2024-01-05", "2024-06-05", "2025-01-05"])
        #expect(
            plan.groups[0].keep.map(\.reasons) == [
                ["yearly snapshot"], ["yearly snapshot"], ["oldest yearly snapshot"],
            ])
        #expect(plan.groups[0].keep[0].left == [.yearly: 4])
        #expect(try Retention(policy("yearly=2"), now: now).plan(items).removed == ["2024-01-05"])
    }

    @Test func snapshotsOfTheFutureAreKept_andTakeNobodysPlace() throws {
        let sound = try [item("a", "2025-12-30T01:00:00Z"), item("b", "2025-12-31T01:00:00Z")]
        let wrong = try (1...9).map { try item("f\($0)", "2036-01-0\($0)T01:00:00Z") }
        let plan = try Retention(policy("last=1", "within=1d"), now: now).plan(sound + wrong)
        #expect(plan.kept == (["b"] + wrong.map(\.id)).sorted())
        #expect(plan.removed == ["a"])
        #expect(plan.findings.map(\.code) == Array(repeating: .futureSnapshot, count: 9))
        // Once their time has come they are like all others.
        let later = Retention(try policy("last=1"), now: Timestamp(iso8601: "2040-01-01") ?? now)
        #expect(try later.plan(sound + wrong).kept == ["f9"])
    }

    @Test func aSnapshotThatIsOlderThanItsParentIsKept_andSoIsTheParent() throws {
        let items = try [
            item("a", "2025-12-01T01:00:00Z"), item("b", "2025-12-20T01:00:00Z", parent: "a"),
            item("c", "2025-12-03T01:00:00Z", parent: "b"), item("d", "2025-12-04T01:00:00Z", parent: "c"),
        ]
        let plan = try Retention(policy("last=1"), now: now).plan(items)
        #expect(plan.kept == ["b", "c", "d"] && plan.removed == ["a"])
        #expect(plan.findings.map(\.code) == [.snapshotOutOfOrder, .snapshotOutOfOrder])
    }

    @Test func theChildrenOfASnapshotOfTheFutureAreInOrder() throws {
        let items = try [
            item("f", "2036-01-01T01:00:00Z"), item("a", "2025-12-01T01:00:00Z", parent: "f"),
            item("b", "2025-12-02T01:00:00Z", parent: "f"),
        ]
        let plan = try Retention(policy("last=1"), now: now).plan(items)
        #expect(plan.kept == ["b", "f"] && plan.findings.count == 1)
    }

    /// The same seed gives the same snapshots.
    @Test(arguments: testSeeds(isTorture ? 1000 : 30))
    func aWrongClockNeverCostsAGoodSnapshot(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let start = time(-86400 * 700).milliseconds
        var sound: [RetentionItem] = []
        for index in 0..<60 {
            let moment = start + Int64(index) * 86_400_000 * 11 + Int64(random.below(86_400_000))
            sound.append(
                RetentionItem(
                    id: "s\(index)",
                    time: SnapshotTime(
                        Timestamp(milliseconds: moment), offsetMinutes: Int64(random.below(27) - 12) * 60),
                    tags: random.chance(9) ? ["x"] : [], parent: index == 0 ? nil : "s\(index - 1)"))
        }
        var rules = RetentionPolicy()
        try rules.set("tag", "x")
        for bucket in RetentionPolicy.Bucket.allCases where random.chance(2) {
            rules.counts[bucket] = 1 + random.below(9)
        }
        if random.chance(2) { rules.within = CalendarSpan("\(1 + random.below(200))d") }
        if random.chance(2) { rules.withinBuckets[.weekly] = CalendarSpan("\(1 + random.below(20))m") }
        let retention = Retention(rules, now: now)
        var wrong: [RetentionItem] = []
        for index in 0..<random.below(12) {
            // Taken after one of the others, by a clock that has lost its way.
            let parent = sound[random.below(sound.count)]
            let moment =
                random.chance(2)
                ? now.milliseconds + 1 + Int64(random.below(1 << 40))
                : parent.time.instant.milliseconds - Int64(random.below(1 << 38))
            wrong.append(
                RetentionItem(id: "w\(index)", time: SnapshotTime(Timestamp(milliseconds: moment)), parent: parent.id))
        }
        guard let before = try? retention.plan(sound) else { return }
        let after = try retention.plan((sound + wrong).shuffled(using: &random))
        #expect(Set(before.kept).isSubset(of: after.kept), "seed \(seed)")
        #expect(Set(wrong.map(\.id)).isSubset(of: after.kept), "seed \(seed)")
    }

    @Test func whatIsProtectedStays_andAFrozenGroupLosesNothing() throws {
        let items = try (1...9).map { try item("s\($0)", "2025-12-0\($0)T01:00:00Z") }
        var retention = Retention(try policy("last=1"), now: now)
        retention.protected = ["s3": "the last that passed a drill"]
        var plan = try retention.plan(items)
        #expect(plan.kept == ["s3", "s9"])
        #expect(plan.groups[0].keep[1].reasons == ["the last that passed a drill"])
        retention.frozen = "retention is frozen"
        plan = try retention.plan(items)
        #expect(plan.removed.isEmpty && plan.kept.count == 9)
    }

    @Test func whatStaysForOtherReasonsDoesNotMakeARuleThatKeepsNothingRight() throws {
        let items = try (1...9).map { try item("s\($0)", "2025-12-0\($0)T01:00:00Z") }
        var retention = Retention(try policy("tag=montly"), now: now)
        retention.protected = ["s3": "the last that passed a drill"]
        let error = #expect(throws: BackupError.self) { try retention.plan(items) }
        #expect(error?.code == .refused)
        retention.frozen = "retention is frozen"
        #expect(try retention.plan(items).removed.isEmpty)
    }

    @Test func aPartialSnapshotNeverTakesThePlaceOfAWholeOne() throws {
        let items = try (1...6).map { try item("s\($0)", "2025-12-0\($0)T01:00:00Z", isPartial: $0 > 2) }
        let plan = try Retention(policy("last=2"), now: now).plan(items)
        #expect(plan.kept == ["s1", "s2", "s5", "s6"])
    }

    @Test func tenThousandSnapshotsTakeNoTimeToSpeakOf() throws {
        let items = (0..<10_000).map { index in
            RetentionItem(id: "s\(index)", time: SnapshotTime(time(Int64(-index) * 3600)))
        }
        let clock = ContinuousClock()
        let taken = try clock.measure {
            let plan = try Retention(policy("hourly=24", "daily=30", "weekly=52", "yearly=unlimited"), now: now).plan(
                items)
            #expect(plan.groups[0].keep.count > 80)
        }
        #expect(taken < .seconds(5))
    }

    // MARK: Times

    @Test(arguments: [
        ("2020-12-31", 2020, 53), ("2021-01-03", 2020, 53), ("2021-01-04", 2021, 1), ("2024-12-30", 2025, 1),
        ("2023-01-01", 2022, 52), ("1970-01-01", 1970, 1), ("1969-12-28", 1969, 52), ("2026-11-21", 2026, 47),
    ])
    func aWeekBelongsToTheYearOfItsThursday(day: String, year: Int64, week: Int64) throws {
        let found = try #require(SnapshotTime(day)).day.isoWeek
        #expect(found == (year, week))
    }

    @Test func aSnapshotHasTheHourAndDayOfItsOwnWallClock() throws {
        let time = try #require(SnapshotTime("2026-02-01T00:10:00.123456789+05:30"))
        #expect(time.day.text == "2026-02-01" && time.hour == 0)
        #expect(time.instant.iso8601 == "2026-01-31T18:40:00.123Z")
        let nearby = try #require(SnapshotTime("2026-01-31T18:40:00.12345679Z"))
        #expect(time < nearby && SnapshotTime("2026-01-31T18:40:00.1234568Z").map { nearby < $0 } == true)
    }

    @Test(arguments: ["", "d", "5", "1d2", "1d1d", "0d", "-1d", "1w", "1.5d", "99999999d", " 1d"])
    func whatIsNoSpanIsRefused(text: String) { #expect(CalendarSpan(text) == nil) }

    @Test func rulesAreReadAsResticReadsThem_andTheNearestIsNamed() throws {
        let rules = try policy("last=3", "yearly=unlimited", "within-hourly=2h1d", "tag=a, b")
        #expect(rules.counts == [.last: 3, .yearly: Int.max] && rules.tags == [["a", "b"]])
        #expect(rules.withinBuckets[.hourly]?.text == "1d2h")
        for (name, text) in [("dayly", "1"), ("daily", "x"), ("daily", "-2"), ("within", "1w"), ("within-last", "1d")] {
            var rules = RetentionPolicy()
            #expect(throws: BackupError.self, "\(name)") { try rules.set(name, text) }
        }
    }
}
