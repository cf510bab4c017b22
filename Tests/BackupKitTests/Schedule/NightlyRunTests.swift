import Glibc
import TestSupport
import Testing

@testable import BackupKit

@Suite struct NightlyRunTests {
    @Test func aQuietNight_doesAllInItsOrder_andIsFine() throws {
        try withHouse { house in
            let report = try house.night()
            #expect(report.worst == nil && report.headline == nil)
            #expect(house.vault.calls == ["snapshot", "census", "check part", "drill 1", "prune"])
            let state = try house.state
            #expect(state.lastSuccess == state.lastRun && state.good?.snapshot == "1" && state.snapshots == 1)
            for _ in 0..<3 { try house.night() }
            #expect(house.vault.calls == ["snapshot", "census", "forget", "check part", "prune"])
            // The one that passed the drill stays beside the two newest.
            #expect(house.vault.items.map(\.id) == ["1", "3", "4"])
        }
    }

    /// The next run would take its last good snapshot for lost.
    @Test func aRunThatCannotWriteDownWhatItDoes_removesNothing() throws {
        try withHouse { house in
            for _ in 0..<4 { try house.night() }
            let (path, items) = (house.session.statePath, house.vault.items.count)
            let state = try readFile(path)
            house.vault.atStep = { step in
                guard step == "snapshot" else { return }
                unlink(path)
                try Directory.createAll("\(path)/in the way")
            }
            #expect(try house.night().worst == .failed)
            #expect(!house.vault.calls.contains("forget") && house.vault.items.count == items + 1)
            house.vault.atStep = { _ in }
            try Directory.removeTree(path)
            try writeFile(path, String(decoding: state, as: UTF8.self))
            #expect(try house.night().worst == nil)
        }
    }

    @Test func aDrillIsDueOnceAWeek_andAFailedOneIsRepeatedTheNextNight() throws {
        try withHouse { house in
            var nights: [Int] = []
            for night in 0..<15 {
                try house.night()
                if house.vault.calls.contains(where: { $0.hasPrefix("drill") }) { nights.append(night) }
            }
            #expect(nights == [0, 7, 14])
            house.vault.drillsPass = false
            for _ in 0..<6 { #expect(try house.night().worst == nil) }
            #expect(try house.night().worst == .damaged)
            #expect(try house.night().worst == .damaged)
            house.vault.drillsPass = true
            #expect(try house.night().worst == nil)
            #expect(try house.session.drillLog.history().findings.isEmpty)
            #expect(try house.state.lastDrill?.isOK == true)
        }
    }

    @Test func aSuspiciousLoss_isTaggedAndNamed_andNothingIsRemovedUntilItIsAcknowledged() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            house.vault.census = smallCensus
            let before = house.vault.items.count
            for night in 1...4 {
                let report = try house.night()
                #expect(report.worst == .incomplete && report.forgotten.isEmpty)
                #expect(report.findings.map(\.subject) == ["notes"])
                #expect(house.vault.items.count == before + night)
                #expect(house.vault.items.last?.tags == [SnapshotTag.suspect])
                #expect(!house.vault.calls.contains("prune") && !house.vault.calls.contains("forget"))
            }
            var state = try house.state
            let suspect = try #require(state.suspect)
            #expect(suspect == house.vault.items.last?.id && state.suspicions == ["notes: fell from 100 to 10"])
            let suspects = house.vault.items.filter { $0.tags.contains(SnapshotTag.suspect) }.map(\.id)
            state.acknowledge(suspect, holding: smallCensus, suspects: suspects)
            try state.write(house.session.statePath)
            let report = try house.night()
            #expect(report.worst == nil && !report.forgotten.isEmpty)
            #expect(try house.state.suspect == nil)
        }
    }

    @Test func whatIsThereAgainReleasesTheRetention_andTheGoodSnapshotsAreStillThere() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            let good = house.vault.items.map(\.id)
            house.vault.census = smallCensus
            try house.night()
            house.vault.census = LibraryCensus([.notes: 100, .attachments: 50])
            let report = try house.night()
            #expect(try house.state.suspect == nil && report.worst == nil)
            // The suspect one counts for nothing, so it took no good one's place.
            #expect(house.vault.items.map(\.id).contains(try #require(good.last)))
        }
    }

    @Test func anEmptySourceIsNoSuccess_andNeitherIsOneThatIsNotThere() throws {
        try withHouse { house in
            house.vault.census = LibraryCensus()
            #expect(try house.night().worst == .incomplete)
            let state = try house.state
            #expect(state.lastSuccess == nil && state.suspect != nil)
        }
        try withHouse { house in
            for _ in 0..<4 { try house.night() }
            let before = house.vault.items
            let success = try house.state.lastSuccess
            house.vault.failing["snapshot"] = BackupError(.notFound, "no such store", at: "store.db")
            let report = try house.night()
            #expect(report.worst == .notFound && house.vault.items == before)
            #expect(house.vault.calls == ["snapshot", "check part"])
            let state = try house.state
            #expect(state.lastSuccess == success && state.lastRun?.exitCode == 1)
        }
    }

    @Test func damageFreezesRetention_andTheNextNightReadsEverything_untilThereIsNone() throws {
        try withHouse { house in
            for _ in 0..<4 { try house.night() }
            house.vault.damage = [Finding(.entryDamaged, .damage, "pack", "is damaged")]
            #expect(try house.night().worst == .damaged)
            #expect(!house.vault.calls.contains("prune"))
            let report = try house.night()
            #expect(house.vault.calls.contains("check all") && report.forgotten.isEmpty)
            house.vault.damage = []
            #expect(try house.night().worst == nil)
            #expect(house.vault.calls.contains("check all") && !house.vault.calls.contains("forget"))
            #expect(try !house.night().forgotten.isEmpty)
        }
    }

    @Test func aPartialSnapshotIsNoMeasureForTheNext_andNoSuccess() throws {
        try withHouse { house in
            try house.night()
            (house.vault.isPartial, house.vault.census) = (true, LibraryCensus([.notes: 95, .attachments: 50]))
            #expect(try house.night().worst == .incomplete)
            #expect(try house.state.good?.snapshot == "1")
        }
    }

    @Test(arguments: ["snapshot", "census", "tag", "forget", "check", "drill", "prune"])
    func aStepThatFails_keepsTheOthersFromNothingThatIsSafe(step: String) throws {
        try withHouse { house in
            for _ in 0..<7 { try house.night() }
            if step == "tag" { house.vault.census = smallCensus }
            house.vault.failing[step] = BackupError(.temporary, "no answer")
            let before = house.vault.items.map(\.id)
            let report = try house.night()
            #expect(report.worst == .temporary && report.errors.count == 1)
            #expect(house.vault.calls.contains { $0.hasPrefix("check") })
            #expect(house.vault.calls.contains { $0.hasPrefix("drill") })
            if ["snapshot", "census", "tag", "forget"].contains(step) {
                #expect(Set(before).isSubset(of: house.vault.items.map(\.id)))
            }
            if step == "tag" { #expect(try house.state.suspect != nil) }
        }
    }

    @Test func aDrillWhoseNewestFails_hasFailed_andNothingIsRemovedUntilOnePasses() throws {
        try withHouse { house in
            for _ in 0..<7 { try house.night() }
            house.vault.failingDrills = ["8"]
            #expect(try house.night().worst == .damaged)
            #expect(house.vault.calls.contains("drill 8") && !house.vault.calls.contains("prune"))
            #expect(try house.state.lastDrill?.isOK == false)
            house.vault.failingDrills = []
            let report = try house.night()
            #expect(house.vault.calls.contains("drill 9") && report.forgotten.isEmpty)
            try house.night()
            #expect(!house.vault.calls.contains { $0.hasPrefix("drill") } && house.vault.calls.contains("forget"))
        }
    }

    @Test func theNewestSnapshotThatPassedADrillStays_notOnlyTheOneThatWasTriedLast() throws {
        try withHouse { house in
            for _ in 0..<12 { try house.night() }
            // Night 8 tried "8", and then an older one.
            #expect(house.vault.items.map(\.id).contains("8"))
            #expect(try house.session.drillLog.history().entries.map(\.snapshot)[1] == "8")
        }
    }

    @Test func profilesThatShareALogHaveTheirOwnDrills() throws {
        try withHouse { house in
            try house.night()
            house.session.profile = "papers"
            try house.night()
            #expect(house.vault.calls.contains("drill 2"))
        }
    }

    /// Killed after the snapshot was taken and before it was judged, in a night in which much was lost.
    @Test func aSnapshotThatNobodyJudgedIsJudgedByTheNextRun() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            house.vault.census = smallCensus
            house.vault.atStep = { if $0 == "census" { throw BackupError(.interrupted, "killed") } }
            #expect(throws: BackupError.self) { try house.night() }
            house.vault.atStep = { _ in }
            #expect(house.vault.items.last?.tags == [])
            house.vault.census = LibraryCensus([.notes: 100, .attachments: 50])
            let report = try house.night()
            #expect(report.worst == nil && house.vault.items.contains { $0.tags == [SnapshotTag.suspect] })
            // It took nobody's place: two good ones beside it.
            #expect(house.vault.items.count { $0.tags.isEmpty } >= 2)
        }
    }

    @Test func aStateThatIsLost_doesNotMakeALossTheNewMeasure() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            house.vault.census = smallCensus
            try house.night()
            #expect(unlink(house.session.statePath) == 0)
            let report = try house.night()
            #expect(report.worst == .incomplete)
            #expect(report.findings.map(\.subject) == ["notes", house.session.stateFolder])
            #expect(try house.state.good?.snapshot == "3" && report.forgotten.isEmpty)
        }
    }

    @Test func aLibraryThatIsNeverWholeIsMeasuredAllTheSame() throws {
        try withHouse { house in
            house.vault.isPartial = true
            for _ in 0..<2 { try house.night() }
            house.vault.census = smallCensus
            let report = try house.night()
            #expect(report.worst == .incomplete && report.findings.map(\.subject) == ["notes"])
        }
    }

    @Test func whatARunLearnsIsRememberedWhenItIsKilled() throws {
        try withHouse { house in
            for _ in 0..<7 { try house.night() }
            house.vault.damage = [Finding(.entryDamaged, .damage, "pack", "is damaged")]
            var seen: RunState?
            house.vault.atStep = { if $0 == "drill" { seen = try house.state } }
            try house.night()
            #expect(seen?.damagedParts.isEmpty == false && seen?.good?.snapshot == "8")
            house.vault.damage = []
            house.vault.atStep = { if $0 == "prune" { throw BackupError(.interrupted, "interrupted") } }
            #expect(throws: BackupError.self) { try house.night() }
            #expect(try house.state.damagedParts == [])
        }
    }

    @Test func aCheckThatCouldNotBeMadeKeepsTheVaultFromBeingTidiedUp() throws {
        try withHouse { house in
            house.vault.failing["check"] = BackupError(.temporary, "no answer")
            try house.night()
            #expect(!house.vault.calls.contains("prune"))
        }
    }

    @Test func aWatchdogThatDoesNotAnswerTakesNoSuccessAway() throws {
        try withHouse { house in
            house.session.ping = Ping("http://x.invalid/") { _ in throw BackupError(.temporary, "no answer") }
            house.clock.advance(seconds: 86_400)
            let (report, unheard) = try house.session.run(house.settings) { house.vault }
            #expect(report.worst == nil && unheard.count == 2)
            #expect(unheard.first?.message == "the watchdog was not told that the run began: no answer")
            #expect(unheard.last?.message == "the watchdog was not told that the run went well: no answer")
            let state = try house.state
            #expect(state.lastRun?.exitCode == 0 && state.lastSuccess == state.lastRun)
        }
    }

    @Test func metricsThatCannotBeWrittenAreAnError_andHideNothing() throws {
        try withHouse { house in
            house.session.metricsFile = "\(house.session.stateFolder)/none/m.prom"
            house.vault.damage = [Finding(.entryDamaged, .damage, "pack", "is damaged")]
            let report = try house.night()
            #expect(report.worst == .damaged && report.errors.count == 1)
            house.vault.damage = []
            #expect(try house.night().worst != nil)
            let state = try house.state
            #expect(state.lastSuccess == nil && state.lastRun?.exitCode != 0 && state.damagedParts == [])
        }
    }

    @Test func linesTakenFromTheEndOfTheDrillsAreMissed() throws {
        try withHouse { house in
            for _ in 0..<9 { try house.night() }
            let path = house.session.drillLog.path
            let lines = String(decoding: try readFile(path), as: UTF8.self).split(separator: "\n")
            try writeFile(path, lines.dropLast().joined(separator: "\n") + "\n")
            let head = try #require(try house.state.drillHead)
            #expect(try RunState.drillHeads(in: house.session.stateFolder).map(\.head) == [head])
            var log = house.session.drillLog
            #expect(try log.loss(head, from: log.history(), rememberedIn: "x")?.severity == .damage)
            // Where nothing can be read, nobody knows what is lost.
            log.isMissing = true
            #expect(try log.loss(head, from: log.history(), rememberedIn: "x") == nil)
            #expect(try house.night().findings.map(\.subject) == [path])
            // Told once.
            #expect(try house.night().findings == [])
        }
    }

    @Test func whileLostDrillsAreNotMadeAgain_nothingIsRemoved() throws {
        try withHouse { house in
            for _ in 0..<3 { try house.night() }
            unlink(house.session.drillLog.path)
            let before = house.vault.items.count
            house.vault.drillsPass = false
            for night in 1...3 {
                try house.night()
                #expect(house.vault.calls.contains { $0.hasPrefix("drill") } && !house.vault.calls.contains("forget"))
                #expect(house.vault.items.count == before + night)
            }
            house.vault.drillsPass = true
            try house.night()
            try house.night()
            #expect(house.vault.calls.contains("forget"))
        }
    }

    @Test func aStateThatCannotBeReadKeepsNoSnapshotFromBeingTaken() throws {
        try withHouse { house in
            try writeFile(house.session.statePath, "{")
            #expect(!house.session.isRecent(86_400))
            let report = try house.session.run(house.settings) { house.vault }.report
            #expect(report.snapshot == "1" && report.findings.map(\.code) == [.unreadable])
            #expect(try house.state.lastRun?.exitCode == 3)
        }
    }

    @Test func whatKeepsARunFromBeginningIsWrittenDown() throws {
        try withHouse { house in
            house.session.metricsFile = "\(house.session.stateFolder)/m.prom"
            try house.night()
            #expect(throws: BackupError.self) {
                try house.session.run(house.settings) { throw BackupError(.wrongPassword, "wrong password") }
            }
            let state = try house.state
            #expect(state.lastRun?.message == "wrong password" && state.lastSuccess != nil)
            let metrics = String(decoding: try readFile("\(house.session.stateFolder)/m.prom"), as: UTF8.self)
            #expect(
                metrics.contains("last_success_timestamp_seconds{")
                    && metrics.contains("exit_code{profile=\"default\"} 1"))
        }
    }

    @Test func oneRunAtATime() throws {
        try withTemporaryFolder { folder in
            let first = try NightlySession.lock(folder)
            let error = #expect(throws: BackupError.self) { try NightlySession.lock(folder) }
            #expect(error?.code == .locked)
            withExtendedLifetime(first) {}
        }
        try withTemporaryFolder { folder in
            do { _ = try NightlySession.lock(folder) }
            _ = try NightlySession.lock(folder)
        }
    }

    /// Weeks of nights with accidents. Whatever happens, what is in doubt costs no snapshot, and what was damaged is told.
    @Test(arguments: testSeeds(isTorture ? 50 : 8))
    func weeksOfAccidents(seed: UInt64) throws {
        countRounds()
        try withHouse { house in
            var random = SeededGenerator(seed: seed)
            try house.settings.policy.set("daily", "5")
            try house.settings.policy.set("weekly", "3")
            for night in 0..<60 {
                house.vault.failing = [:]
                house.vault.damage = random.chance(12) ? [Finding(.entryDamaged, .damage, "pack", "is damaged")] : []
                house.vault.census =
                    random.chance(8) ? smallCensus : LibraryCensus([.notes: 100 + night, .attachments: 50])
                house.vault.isPartial = random.chance(10)
                if random.chance(4) {
                    let step = ["snapshot", "census", "tag", "forget", "check", "drill", "prune"][random.below(7)]
                    house.vault.failing[step] = BackupError(.failed, "an accident")
                }
                if random.chance(15) { house.clock.advance(seconds: 86_400 * Int64(random.below(20))) }
                let before = house.vault.items
                let isSound = try house.state.suspect == nil && house.state.damagedParts.isEmpty
                let report = try house.night()
                let comment: Comment = "seed \(seed), night \(night)"
                if try house.state.suspect != nil, !isSound { #expect(report.forgotten.isEmpty, comment) }
                if !house.vault.damage.isEmpty, house.vault.failing["check"] == nil {
                    #expect(report.worst == .damaged, comment)
                }
                if house.vault.failing["snapshot"] != nil { #expect(house.vault.items == before, comment) }
                if let good = try house.state.good?.snapshot {
                    #expect(house.vault.items.contains { $0.id == good }, comment)
                }
                let isFine = house.vault.failing.isEmpty && house.vault.damage.isEmpty && !house.vault.isPartial
                if report.worst == nil {
                    #expect(isFine || house.vault.failing.keys.allSatisfy { !house.vault.calls.contains($0) }, comment)
                }
            }
            #expect(try house.session.drillLog.history().findings.isEmpty)
        }
    }
}
