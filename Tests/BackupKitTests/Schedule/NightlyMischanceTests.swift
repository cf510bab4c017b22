import BackupKit
import Glibc
import TestSupport
import Testing

/// What clocks, other programs and people do to the nights of a vault.
@Suite struct NightlyMischanceTests {
    private let day: Int64 = 86_400

    @Test func aClockThatJumpsAheadMakesNothingOld_forOneNight() throws {
        try withHouse { house in
            house.settings.policy = RetentionPolicy()
            try house.settings.policy.set("within", "30d")
            let clock = house.clock
            house.vault.atStep = { if $0 == "census" { clock.advance() } }
            for _ in 0..<6 { try house.night() }
            house.clock.advance(seconds: 365 * day)
            let report = try house.night()
            #expect(report.forgotten.isEmpty && report.worst == .incomplete, "\(report.log)")
            #expect(report.findings.map(\.subject) == ["the clock"])
            // It was put right: what is dated in the future counts for nothing.
            house.clock.advance(seconds: -365 * day)
            #expect(try house.night().forgotten.isEmpty && house.vault.items.count == 8)
            // It was right after all.
            house.clock.advance(seconds: 365 * day)
            #expect(try house.night().forgotten.isEmpty)
            #expect(try !house.night().forgotten.isEmpty)
        }
    }

    /// Each night the clock may be wrong by anything, and is right again afterwards.
    @Test func noOrderOfWrongNights_costsASnapshotOfTheLastWeeks() throws {
        for seed in testSeeds(12) {
            try withHouse { house in
                var random = SeededGenerator(seed: seed)
                var (told, sound): ([String], [String]) = ([], [])
                house.settings.policy = RetentionPolicy()
                try house.settings.policy.set("within", "30d")
                let clock = house.clock
                house.vault.atStep = { if $0 == "census" { clock.advance() } }
                for night in 0..<16 {
                    let isWrong = night > 4 && random.below(2) == 0 && told.last?.hasPrefix("wrong") != true
                    let days = Int64(random.below(6000)) - (random.below(2) == 0 ? 6000 : 0)
                    if isWrong { house.clock.advance(seconds: days * day) }
                    let snapshot = try house.night().snapshot
                    told.append(isWrong ? "wrong by \(days) d" : "right")
                    if let snapshot, !isWrong { sound.append(snapshot) }
                    let left = Set(house.vault.items.map(\.id))
                    #expect(left.isSuperset(of: sound), "BACKUP_TOOL_SEED=\(seed) \(told)")
                    if isWrong { house.clock.advance(seconds: -days * day) }
                }
            }
        }
    }

    @Test func aSuccessInTheFutureIsNone() throws {
        try withHouse { house in
            house.clock.advance(seconds: 300 * day)
            #expect(try house.night().worst == nil)
            house.clock.advance(seconds: -300 * day)
            let status = try ScheduleStatus(house.state, now: house.clock.now, maxAge: day)
            #expect(status.level == .critical, "\(status.parts)")
            house.vault.failing["snapshot"] = BackupError(.notFound, "no store")
            _ = try house.night()
            #expect(try house.state.lastSuccess == nil)
            house.vault.failing = [:]
        }
    }

    @Test func whereNothingIsRememberedOfEarlierRunsNothingIsRemovedTheFirstNight() throws {
        try withHouse { house in
            try house.settings.policy.set("last", "1")
            for _ in 0..<3 { try house.night() }
            try Directory.removeTree(house.session.stateFolder)
            // That run is interrupted, and the next one knows no more than it.
            house.vault.failing["census"] = BackupError(.interrupted, "stopped")
            #expect(errorCode { try house.night() } == .interrupted)
            house.vault.failing = [:]
            let count = house.vault.items.count
            let report = try house.night()
            #expect(report.forgotten.isEmpty && house.vault.items.count == count + 1 && report.worst == .incomplete)
            #expect(report.findings.contains { $0.message.contains("the notes about the") })
            #expect(try !house.night().forgotten.isEmpty)
        }
    }

    /// Of a suspicion, of damage, of a drill that failed nothing is known any more, whatever is still in the log of drills.
    @Test(arguments: [false, true])
    func whereOnlyTheStateIsLostNothingIsRemovedTheFirstNight(hasBegun: Bool) throws {
        try withHouse { house in
            try house.settings.policy.set("last", "1")
            house.settings.drillEvery = CalendarSpan("1d")
            for _ in 0..<3 { try house.night() }
            unlink(house.session.statePath)
            if hasBegun {
                // A run that comes to nothing knows no more, and writes a state all the same.
                let failed = BackupError(.notFound, "there is no vault", at: "v")
                #expect(throws: failed) { _ = try house.session.run(house.settings) { throw failed } }
            }
            var rehearsal = NightlyRun(
                house.vault, house.settings, state: try house.state, drillLog: house.session.drillLog,
                clock: house.clock.clock)
            #expect(try rehearsal.rehearse().contains { $0.text.hasPrefix("nothing would be removed: ") })
            let report = try house.night()
            #expect(report.forgotten.isEmpty && report.worst == .incomplete, "\(report.log)")
            let told = report.findings.filter { $0.message.contains("the notes about the") }
            #expect(told.map(\.subject) == [house.session.stateFolder], "\(report.log)")
            #expect(try !house.night().forgotten.isEmpty)
        }
    }

    @Test func aClockThatJumpsAheadIsTold_alsoWhereNothingIsToBeRemoved() throws {
        try withHouse { house in
            try house.settings.policy.set("last", "99")
            for _ in 0..<3 { try house.night() }
            house.clock.advance(seconds: 365 * day)
            let report = try house.night()
            #expect(report.worst == .incomplete && report.findings.map(\.subject) == ["the clock"], "\(report.log)")
            // Whoever has looked is not told again.
            #expect(try house.night().worst == nil)
        }
    }

    @Test func whoKeepsEverythingAndDrillsNothingIsNotAlarmed() throws {
        try withHouse { house in
            (house.settings.policy, house.settings.drillEvery) = (RetentionPolicy(), nil)
            for _ in 0..<3 {
                let report = try house.night()
                #expect(report.worst == nil)
            }
        }
    }

    @Test(arguments: [true, false]) func aClockThatFallsBackPutsNoEarlierSnapshotInDoubt(keepsAll: Bool) throws {
        try withHouse { house in
            house.settings.drillEvery = nil
            house.settings.policy = RetentionPolicy()
            if !keepsAll { try house.settings.policy.set("last", "9") }
            for notes in [100, 150, 200, 300] {
                house.vault.census = LibraryCensus([.notes: notes, .attachments: 50])
                #expect(try house.night().worst == nil)
            }
            house.clock.advance(seconds: -1000 * day)
            let report = try house.night()
            #expect(report.findings.count == 4 && report.findings.allSatisfy { $0.code == .futureSnapshot })
            house.clock.advance(seconds: 1000 * day)
            // Where rules go by the clock, that it is put right is a jump, too.
            #expect(try house.night().findings.map(\.subject) == (keepsAll ? [] : ["the clock"]))
            #expect(house.vault.items.allSatisfy { $0.tags.isEmpty })
        }
    }

    @Test func whateverIsDoneToItsTags_theLastGoodOneAndTheProvedOneAreKnown() throws {
        try withHouse { house in
            house.settings.drillEvery = CalendarSpan("100d")
            for _ in 0..<2 { try house.night() }
            for tag in ["one", "two", "three"] {
                for id in house.vault.items.map(\.id) { _ = try house.vault.addTag(tag, to: id) }
                #expect(try house.night().worst == nil, "after '\(tag)'")
            }
            for _ in 0..<3 { try house.night() }
            #expect(house.vault.items.contains { $0.origin == "1" }, "the one that was proved")
        }
    }

    @Test func anAcknowledgedLossStaysSo_howeverOftenItIsTagged() throws {
        try withHouse { house in
            try house.night()
            house.vault.census = smallCensus
            #expect(try house.night().worst == .incomplete)
            var state = try house.state
            let item = try #require(house.vault.items.first { $0.tags.contains(SnapshotTag.suspect) })
            state.acknowledge(item.origin, holding: smallCensus, suspects: [item.origin])
            try state.write(house.session.statePath)
            _ = try house.vault.addTag("keep", to: item.id)
            #expect(try house.night().worst == nil)
        }
    }

    @Test(arguments: [7, 31]) func whoRunsSeldomHasAClockThatIsRight(_ days: Int64) throws {
        try withHouse { house in
            for number in 0..<6 {
                house.clock.advance(seconds: (days - 1) * day + 3600)
                let report = try house.night()
                #expect(number < 4 || report.worst == nil && !report.forgotten.isEmpty, "\(number): \(report.log)")
            }
        }
    }

    @Test func aRunThatDoesNotComeToForgettingLeavesAJumpToBeTold() throws {
        try withHouse { house in
            for _ in 0..<4 { try house.night() }
            house.clock.advance(seconds: 365 * day)
            house.vault.failing["snapshot"] = BackupError(.notFound, "there is no vault")
            #expect(try house.night().forgotten.isEmpty)
            house.vault.failing = [:]
            let report = try house.night()
            #expect(report.forgotten.isEmpty && report.findings.map(\.subject) == ["the clock"])
        }
    }

    @Test func whatCouldNotBeTaggedAsSuspectIsJudgedAgain() throws {
        try withHouse { house in
            let whole = house.vault.census
            try house.night()
            house.vault.census = smallCensus
            house.vault.failing["tag"] = BackupError(.locked, "in use")
            try house.night()
            (house.vault.census, house.vault.failing) = (whole, [:])
            try house.night()
            #expect(house.vault.items.count { $0.tags == [SnapshotTag.suspect] } == 1)
        }
    }

    /// A run may be killed before the vault answers.
    @Test func aSuspectIsRememberedBeforeItIsTagged() throws {
        try withHouse { house in
            try house.night()
            house.vault.census = smallCensus
            var seen: RunState?
            house.vault.atStep = { if $0 == "tag" { seen = try house.state } }
            try house.night()
            #expect(seen?.suspect == "2" && seen?.suspectOrigin == "2")
        }
    }

    /// It is the measure for the next night.
    @Test func theLastGoodSnapshotStays_thoughNoRuleKeepsIt() throws {
        try withHouse { house in
            house.settings.policy = RetentionPolicy()
            try house.settings.policy.set("tag", "mine")
            try house.night()
            let mine = try house.vault.addTag("mine", to: "1")
            #expect(try house.night().forgotten.isEmpty)
            #expect(try house.night().forgotten == ["3"])
            #expect(house.vault.items.map(\.id) == [mine, "4"])
        }
    }

    @Test func aSuspectThatIsNoneAnyMoreIsForgotten_byBothItsNames() throws {
        try withHouse { house in
            let whole = house.vault.census
            try house.night()
            house.vault.census = smallCensus
            try house.night()
            #expect(try house.state.suspectOrigin == "2")
            // The next one cannot be tagged, and is the suspect all the same.
            house.vault.failing["tag"] = BackupError(.locked, "in use")
            let last = try house.night().snapshot
            #expect(try house.state.suspect == last && house.state.suspectOrigin == last)
            (house.vault.census, house.vault.failing) = (whole, [:])
            try house.night()
            #expect(try house.state.suspect == nil && house.state.suspectOrigin == nil)
        }
    }

    @Test func whereDrillsAreGoneFromTheLogNothingIsRemovedThatNight() throws {
        try withHouse { house in
            for _ in 0..<4 { try house.night() }
            try writeFile(house.session.drillLog.path, "")
            let report = try house.night()
            #expect(report.forgotten.isEmpty && report.worst == .incomplete)
            #expect(try !house.night().forgotten.isEmpty)
        }
    }

    @Test(arguments: ["[]", "{}", "null", "7", #"{"good":{"snapshot":7}}"#, #"{"suspect":[]}"#, #"{"lastDrill":{}}"#])
    func aStateThatIsNoneIsNotTakenForNothing(_ text: String) throws {
        try withHouse { house in
            try house.night()
            for _ in 0..<2 { try house.night() }
            try writeFile(house.session.statePath, text)
            let report = try house.night()
            #expect(report.findings.map(\.code) == [.unreadable] && report.forgotten.isEmpty)
            #expect(try house.night().worst == nil)
        }
    }

    @Test func whoeverHasUsedAVaultIsNotToldToMakeANewOne() throws {
        try withHouse { house in
            try house.night()
            let gone = #expect(throws: BackupError.self) {
                _ = try house.session.run(house.settings) {
                    throw BackupError(.notFound, "there is no vault", at: "v", remedy: "'backup-tool vault init'")
                }
            }
            #expect(gone?.remedy?.contains("init") == false)
        }
    }
}
