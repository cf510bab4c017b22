import BackupKit
import TestSupport
import Testing

/// A clock was ahead for some nights and was put right: what is remembered, what is said, and what ends it.
@Suite struct NightlyClockTests {
    private static let day: Int64 = 86_400

    /// Some good nights, some with a clock that is ahead, and the moment after it was put right.
    private func withWrongNights(
        ahead days: Int64, nights: Int, _ body: (_ house: House, _ lastGood: Timestamp) throws -> Void
    ) throws {
        try withHouse { house in
            try house.settings.policy.set("last", "99")
            for _ in 0..<3 { try house.night() }
            let lastGood = house.clock.now
            house.clock.advance(seconds: days * Self.day)
            for night in 0..<nights {
                #expect(try house.night().worst == (night == 0 && isTold(days) ? .incomplete : nil))
            }
            house.clock.advance(seconds: -days * Self.day - Int64(nights - 1) * Self.day)
            try body(house, lastGood)
        }
    }

    /// Of some days nobody can tell whether the machine was off.
    private func isTold(_ days: Int64) -> Bool { days > 7 }

    private func status(_ house: House) throws -> ScheduleStatus {
        try ScheduleStatus(house.state, now: house.clock.now, maxAge: 26 * 3600)
    }

    /// The ids behind `vault forget` in what is advised.
    private func named(_ report: NightlyRun.Report) -> Set<String> {
        let texts = report.findings.compactMap(\.remedy)
        let lists = texts.flatMap { $0.matches(of: /vault forget ([^']+)'/).map(\.1) }
        return Set(lists.flatMap { $0.split(separator: " ") }.map(String.init))
    }

    @Test(arguments: [2, 9, 40, 3650], [1, 4])
    func theLastSuccessIsRemembered_andTheNamedCommandEndsIt(ahead: Int64, nights: Int) throws {
        try withWrongNights(ahead: ahead, nights: nights) { house, lastGood in
            let first = try status(house)
            let age = try #require(first.lastSuccessAge)
            #expect(Self.day - 60...Self.day ~= age && first.level == .warning, "\(first.parts)")
            // A run that has told of the clock is no success.
            let hasSucceeded = nights > 1 || !isTold(ahead)
            #expect(first.parts.contains { $0.contains("dated ahead") } == hasSucceeded, "\(first.parts)")
            let report = try house.night()
            let wrong = house.vault.items.filter { $0.time.instant > house.clock.now }
            guard !wrong.isEmpty else { return }
            #expect(report.worst == .incomplete && report.findings.count == wrong.count, "\(report.log)")
            #expect(report.findings.allSatisfy { $0.code == .futureSnapshot })
            #expect(named(report) == Set(wrong.map(\.id)))
            let second = try status(house)
            let success = try #require(try house.state.lastSuccess)
            #expect(success.ended <= house.clock.now && success.ended >= lastGood, "\(second.parts)")
            #expect(second.parts.contains { $0.contains("vault forget") }, "\(second.parts)")
            try house.vault.forget(Array(named(report)))
            #expect(try house.night().worst == nil)
            #expect(try status(house).level == .ok)
        }
    }

    @Test func aNightWithAClockThatIsBehind_leavesWhatIsRememberedOfGoodOnes() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            let last = house.clock.now
            house.clock.advance(seconds: -30 * Self.day)
            try house.night()
            house.clock.advance(seconds: 29 * Self.day + 3600)
            let found = try status(house)
            let age = try #require(found.lastSuccessAge)
            let expected = (house.clock.now.milliseconds - last.milliseconds) / 1000
            #expect(expected - 60...expected ~= age, "\(found.parts)")
        }
    }

    /// The one dated ahead is the newest, the last good one and the only one that was drilled. It goes all the same.
    @Test(arguments: [false, true])
    func whoForgetsItAtOnce_isNotToldThatTheLastGoodOneIsGone(isPartial: Bool) throws {
        try withHouse { house in
            house.clock.advance(seconds: 3650 * Self.day)
            #expect(try house.night().worst == nil)
            house.clock.advance(seconds: -3650 * Self.day)
            let wrong = house.vault.items.map(\.id)
            #expect(try house.state.good?.snapshot == wrong[0])
            if isPartial {
                // A night whose snapshot is no measure for others.
                house.vault.isPartial = true
                try house.night()
                house.vault.isPartial = false
            }
            try house.vault.forget(wrong)
            let report = try house.night()
            #expect(report.worst == nil, "\(report.log)")
        }
    }

    /// A vault whose snapshots are all gone is suspect, also where a clock was once ahead.
    @Test func aVaultThatLosesItsGoodSnapshotsIsSuspect_alsoAfterAWrongClock() throws {
        try withWrongNights(ahead: 40, nights: 1) { house, _ in
            try house.night()
            house.vault.items = []
            let report = try house.night()
            #expect(report.findings.contains { $0.message.contains("gone from the vault") }, "\(report.log)")
        }
    }
}
