import Glibc
import TestSupport
import Testing

@testable import BackupKit

extension Store {
    /// A restore of these records, as it comes out of a backup.
    @discardableResult
    func bringBack(_ backup: [Record], _ policy: SyncPolicy, replace: Bool = false) throws -> IntakeResult {
        let intake = Intake(self)
        intake.policy = policy
        intake.overwrite = replace
        intake.keepsPlan = true
        var writer = RecordLineWriter()
        var lines: [UInt8] = []
        for record in backup { _ = try writer.write(record) { lines += $0.bytes } }
        try writer.finish { lines += $0.bytes }
        let file = "\(path).records"
        try writeFile(file, String(decoding: lines, as: UTF8.self))
        // What a purge leaves is looked for in all files beside the store.
        defer { unlink(file) }
        let (_, batch) = try batch(kind: "restore", source: "test") {
            try FileIntake(intake, ReadLimits()).takeRecords(path: file, name: Layout.records)
            try intake.takePostponed()
            return ((), summary: intake.summary)
        }
        return intake.finished(batch)
    }

    fileprivate func envelopes() throws -> [Record] { try all().filter { $0.type == Quarantine.type } }
}

extension Devices {
    /// Syncs until nothing waits: all hold the same then, what is kept on one device aside.
    fileprivate func settle() throws {
        try syncAll(rounds: 3)
        for name in names {
            let result = try sync(name)
            #expect(result.pulled == 0 && result.pushed == 0)
            #expect(try self[name].syncState()?.pending == 0)
        }
        let shared = try names.map { name in try self[name].all().filter { !$0.isLocalOnly } }
        #expect(shared.allSatisfy { $0 == shared[0] })
    }
}

@Suite struct RestorePolicyTests {
    private let note = "{\"text\":\"vaccinated\"}"

    /// When device A, which restores, hears of the delete on device B.
    enum Heard: CaseIterable { case before, after, notAtAll }

    /// A backup of A is made, then B deletes the record, and A restores; `goOn` lets all sync until nothing waits.
    private func withDelete(
        heard: Heard, _ body: (_ devices: Devices, _ backup: [Record], _ goOn: () throws -> Void) throws -> Void
    ) throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", note)
            try devices.edit("A", "other", "{}")
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.delete("B", "r")
            if heard != .notAtAll { try devices.sync("B") }
            if heard == .before { try devices.sync("A") }
            devices.clock.advance()
            try body(devices, backup) {
                if heard == .notAtAll { try devices.sync("A") }
                try devices.settle()
            }
        }
    }

    @Test(arguments: Heard.allCases)
    func honor_whatWasDeletedStaysDeleted_wheneverItIsHeardOf(_ heard: Heard) throws {
        try withDelete(heard: heard) { devices, backup, goOn in
            #expect(try devices["A"].bringBack(backup, .honor).writes == 0)
            try goOn()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
        }
    }

    @Test(arguments: Heard.allCases)
    func resurrect_itIsAliveEverywhereWithTheRestoredFields_wheneverTheDeleteIsHeardOf(_ heard: Heard) throws {
        try withDelete(heard: heard) { devices, backup, goOn in
            let first = try devices["A"].bringBack(backup, .resurrect)
            #expect(first.updated == (heard == .before ? 1 : 0) && first.kept == (heard == .before ? 1 : 2))
            #expect(first.plan.map(\.action).contains(.keep))
            #expect(try devices["A"].bringBack(backup, .resurrect).writes == 0)
            try goOn()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
            let backup = try devices["A"].all()
            #expect(try devices["A"].bringBack(backup, .resurrect).writes == 0)
            // What is deleted after that is deleted.
            try devices.delete("C", "r")
            try devices.settle()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
        }
    }

    @Test(arguments: Heard.allCases)
    func quarantine_nothingOfItLeavesTheDevice_andNothingLiveIsTouched(_ heard: Heard) throws {
        try withDelete(heard: heard) { devices, backup, goOn in
            let first = try devices["A"].bringBack(backup, .quarantine)
            #expect(first.quarantined == (heard == .before ? 1 : 0) && first.unchanged == (heard == .before ? 1 : 2))
            #expect(try devices["A"].bringBack(backup, .quarantine).writes == 0)
            try goOn()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
            #expect(try devices["A"].envelopes().count == (heard == .before ? 1 : 0))
            for name in ["B", "C"] { #expect(try devices[name].envelopes().isEmpty) }
        }
    }

    @Test func resurrect_intoANewStore_outlivesADeleteThatOnlyTheHubKnows() throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", note)
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.delete("A", "r")
            try devices.sync("A")
            let lost = try Store.create("\(devices.folder)/new.db", clock: devices.clock.clock)
            devices.clock.advance()
            try lost.bringBack(backup, .resurrect)
            #expect(try lost.bringBack(backup, .resurrect).writes == 0)
            _ = try Synchronizer(lost, devices.hub).run()
            try devices.settle()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
        }
    }

    @Test(arguments: [false, true])
    func replace_takesAWorkUnderAnotherId_whereItsOwnIsTheTombstoneOfAnotherWork(isLegacy: Bool) throws {
        let fields = "{\"citeKey\":\"smith\",\"title\":\"One\",\"author\":\"Ann Smith\",\"year\":\"2001\"}"
        let work = WorkID(try Fields.parse(fields))
        let id = isLegacy ? work.legacy : work.first
        func publication(_ fields: String, at seconds: Int64, _ localID: String, deleted: Bool = false) -> Record {
            record(
                id, fields, at: seconds, type: RecordType.publication, zone: RecordType.libraryZone, localID: localID,
                deleted: deleted)
        }
        try withStore { test in
            test.clock.advance(seconds: 1_000_000)
            let tombstone = publication("{}", at: 20, DeterministicID.make("another work"), deleted: true)
            try test.store.take(tombstone)
            try test.store.bringBack([publication(fields, at: 10, id)], .honor, replace: true)
            let all = try test.store.all()
            #expect(all.filter(\.isDeleted) == [tombstone])
            #expect(all.filter { !$0.isDeleted }.map(\.fields) == [fields])
        }
    }

    @Test func replace_bringsNothingBackThatWasDeletedLater() throws {
        try withStore { test in
            test.clock.advance(seconds: 1_000_000)
            try test.store.take(record("a", "{\"x\":1}", at: 20, deleted: true))
            let result = try test.store.bringBack([record("a", "{\"x\":1}", at: 10)], .honor, replace: true)
            #expect(result.protected == 1)
            #expect(try test.store.all().map(\.isDeleted) == [true])
        }
    }

    @Test(arguments: [false, true])
    func resurrect_whatIsNewerStays_hereAndOnTheHub(isDeletedAfterwards: Bool) throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", "{\"x\":1,\"y\":1}")
            try devices.edit("A", "mine", note)
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.edit("B", "r", "{\"x\":2,\"y\":1}")
            try devices.edit("A", "mine", "{\"text\":\"edited\"}")
            if isDeletedAfterwards {
                try devices.sync("A")
                try devices.sync("B")
                try devices.delete("B", "mine")
            }
            try devices.sync("B")
            devices.clock.advance()
            try devices["A"].bringBack(backup, .resurrect)
            try devices.settle()
            for name in devices.names {
                #expect(try devices.shown(name, "r") == "{\"x\":2,\"y\":1}")
                #expect(try devices.shown(name, "mine") == "{\"text\":\"edited\"}")
            }
        }
    }

    @Test func resurrect_isLaterThanWhatTheHubHadLast_alsoWhenThisSideWentBack() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", note)
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.delete("A", "r")
            try devices["A"].bringBack(backup, .resurrect)
            try devices.syncAll()
            let onHub = try #require(try devices["B"].all().first).latestTime
            // The tombstone of before the restore is back, with its old time, and waits for the hub.
            _ = try devices["A"].undoLast()
            try devices["A"].bringBack(backup, .resurrect)
            let back = try #require(try devices["A"].all().first)
            #expect(back.fieldTimes.values.allSatisfy { $0 > onHub })
            try devices.settle()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
        }
    }

    @Test func resurrectAndReplace_theBackupsFieldsWinEverywhere() throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", note)
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.edit("A", "r", "{\"text\":\"wrong\"}")
            try devices.edit("B", "r", "{\"text\":\"also wrong\"}")
            try devices.sync("B")
            devices.clock.advance()
            try devices["A"].bringBack(backup, .resurrect, replace: true)
            #expect(try devices["A"].bringBack(backup, .resurrect, replace: true).writes == 0)
            try devices.settle()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
        }
    }

    @Test(arguments: SyncPolicy.allCases, [false, true])
    func anUndoTakesARestoreBack_beforeASyncAndAfter(policy: SyncPolicy, isSynced: Bool) throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", note)
            try devices.edit("A", "s", "{\"n\":1}")
            try devices.syncAll()
            var backup = try devices["A"].all()
            backup.append(record("new", "{\"n\":3}", at: -5))
            try devices.delete("B", "r")
            try devices.edit("B", "s", "{\"n\":2}")
            try devices.syncAll()
            let before = try devices["A"].digest()
            devices.clock.advance()
            #expect(try devices["A"].bringBack(backup, policy).writes > 0)
            if isSynced { try devices.settle() }
            _ = try devices["A"].undoLast()
            if !isSynced { #expect(try devices["A"].digest() == before) }
            try devices.settle()
            for name in devices.names {
                #expect(try devices.shown(name, "r") == nil)
                #expect(try devices.shown(name, "new") == nil)
                #expect(try devices.shown(name, "s") == "{\"n\":2}")
                #expect(try devices[name].envelopes().isEmpty)
            }
        }
    }
}

@Suite struct QuarantineTests {
    /// B has deleted `dead` and changed `live` since the backup, and A has both versions of both.
    private func withQuarantine(_ body: (Devices, [Record]) throws -> Void) throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "dead", "{\"x\":1}")
            try devices.edit("A", "live", "{\"x\":1}")
            try devices.syncAll()
            let backup = try devices["A"].all()
            try devices.delete("B", "dead")
            try devices.edit("B", "live", "{\"x\":2,\"y\":2}")
            try devices.syncAll()
            devices.clock.advance()
            #expect(try devices["A"].bringBack(backup, .quarantine).quarantined == 2)
            try body(devices, backup)
        }
    }

    @Test func whatIsInQuarantineStandsInNobodysWay() throws {
        try withQuarantine { devices, _ in
            try devices.edit("B", "live", "{\"x\":3}")
            try devices.edit("C", "dead", "{\"x\":3}")
            try devices.settle()
            for name in devices.names {
                #expect(try devices.shown(name, "live") == "{\"x\":3,\"y\":2}")
                #expect(try devices.shown(name, "dead") == "{\"x\":3}")
            }
            #expect(try devices["A"].syncState()?.held == [])
            #expect(try devices["A"].envelopes().count == 2)
        }
    }

    @Test func aBackupKeepsWhatIsInQuarantine_andItStaysThere() throws {
        try withQuarantine { devices, _ in
            let everything = try devices["A"].all()
            for policy in SyncPolicy.allCases {
                let new = try Store.create("\(devices.folder)/\(policy).db", clock: devices.clock.clock)
                devices.clock.advance()
                try new.bringBack(everything, policy)
                #expect(try new.envelopes().count(where: \.isLocalOnly) >= 2)
                #expect(try new.bringBack(everything, policy).writes == 0)
            }
        }
    }

    @Test func releasedItIsTheNewestVersionEverywhere_andAnUndoPutsItBack() throws {
        try withQuarantine { devices, backup in
            let before = try devices["A"].digest()
            // One by what it was called, the other by the name that it has here.
            let name = try #require(try devices["A"].envelopes().first { $0.localID.hasPrefix("live") }).localID
            let ids = try Quarantine.enableCloud(["dead", name], in: devices["A"], dryRun: true).ids
            #expect(try ids.map(\.description) == ["Z/dead", "Z/live"] && devices["A"].digest() == before)
            #expect(try Quarantine.enableCloud(["dead", name], in: devices["A"]).ids == ids)
            try devices.settle()
            for name in devices.names {
                #expect(try devices.shown(name, "dead") == "{\"x\":1}")
                #expect(try devices.shown(name, "live") == "{\"x\":1,\"y\":2}")
                #expect(try devices[name].envelopes().isEmpty)
            }
            #expect(try devices["A"].bringBack(backup, .honor).writes == 0)
            _ = try devices["A"].undoLast()
            #expect(try devices["A"].envelopes().count == 2)
            try devices.settle()
            #expect(try devices.shown("C", "live") == "{\"x\":2,\"y\":2}" && devices.shown("C", "dead") == nil)
        }
    }

    @Test func deletedItLeavesNoTombstoneForOthers() throws {
        try withQuarantine { devices, backup in
            _ = try devices["A"].delete(try devices["A"].envelopes().map(\.localID))
            #expect(try devices["A"].syncState()?.pending == 0)
            #expect(try devices["A"].bringBack(backup, .quarantine).quarantined == 2)
        }
    }

    @Test func anEnvelopeWithoutARecordIsAnError() throws {
        try withDevices("A") { devices in
            try devices["A"].take(
                record("x", "{}", type: Quarantine.type, zone: Quarantine.zone, local: true),
                record("y", "{\"record\":[]}", type: Quarantine.type, zone: Quarantine.zone, local: true))
            for name in ["x", "y"] {
                #expect(throws: BackupError.self) { try Quarantine.enableCloud([name], in: devices["A"]) }
            }
        }
    }
}
