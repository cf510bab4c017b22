import TestSupport
import Testing

@testable import BackupKit

@Suite struct SyncTests {
    @Test func whatOneDeviceWritesTheOtherGets_andASecondSyncDoesNothing() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "one", "{\"x\":1}")
            try devices.edit("A", "two", "{\"x\" : 1.0}")
            #expect(try devices.sync("A").pushed == 2)
            #expect(try devices.sync("B").pulled == 2)
            #expect(try devices["A"].digest() == devices["B"].digest())
            let before = try devices["A"].token()
            for name in ["A", "B"] {
                let result = try devices.sync(name)
                #expect(result.pulled == 0 && result.pushed == 0 && result.merged == 0)
            }
            #expect(try devices["A"].token() == before)
            #expect(try devices["A"].syncState()?.pending == 0)
        }
    }

    @Test func aChangeGoesOnAndIsPendingUntilThen() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "one", "{\"x\":1}")
            try devices.syncAll()
            try devices.edit("B", "one", "{\"x\":2}")
            #expect(try devices["B"].syncState()?.pending == 1)
            try devices.syncAll()
            #expect(try devices["B"].syncState()?.pending == 0)
            #expect(try devices.shown("A", "one") == "{\"x\":2}")
            #expect(try devices["A"].database.integer("SELECT count(*) FROM ancestor") == 0)
        }
    }

    @Test func changesOnBothSidesMergeFieldByField_againstWhatBothKnew() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"a\":1,\"b\":1,\"tags\":[\"x\",\"y\"]}")
            try devices.syncAll()
            // Both change, B later; what only A changed stays A's although B's record is newer.
            try devices.edit("A", "r", "{\"a\":2,\"b\":1,\"tags\":[\"x\",\"y\",\"z\"]}")
            try devices.edit("B", "r", "{\"a\":1,\"b\":3,\"tags\":[\"y\",\"x\",\"w\"]}")
            try devices.sync("B")
            #expect(try devices.sync("A").merged == 1)
            try devices.syncAll()
            let fields = try Fields.parse(try #require(try devices.shown("A", "r")))
            #expect(Fields.strings("tags", in: fields).sorted() == ["w", "x", "y", "z"])
            #expect(fields.first { $0.name == "a" }?.value == "2")
            #expect(fields.first { $0.name == "b" }?.value == "3")
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func batchesAreAsLargeAsTheHubAllows() throws {
        var limits = HubLimits.file
        limits.recordsPerPush = 7
        limits.recordsPerPage = 5
        try withDevices("A", "B", limits: limits) { devices in
            for number in 0..<30 { try devices.edit("A", "r\(number)", "{\"n\":\(number)}") }
            #expect(try devices.sync("A").pushed == 30)
            #expect(try devices.sync("B").pulled == 30)
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func whatIsTooLargeStaysHereAndBlocksNobodyElse() throws {
        var limits = HubLimits.file
        limits.recordBytes = 1000
        try withDevices("A", "B", limits: limits) { devices in
            try devices.edit("A", "small", "{}")
            try devices.edit("A", "large", "{\"x\":\"\(String(repeating: "x", count: 2000))\"}")
            try devices.edit("A", "last", "{}")
            let result = try devices.sync("A")
            #expect(result.pushed == 2 && result.held.map(\.id.name) == ["large"] && result.needsAttention)
            #expect(try devices["A"].syncState()?.held.first?.kind == .size)
            #expect(try devices.sync("A").held.count == 1)
            try devices.sync("B")
            #expect(try devices["B"].all().map(\.id.name) == ["last", "small"])
            // It goes when it has become smaller.
            try devices.edit("A", "large", "{\"x\":\"less\"}")
            #expect(try devices.sync("A").held.isEmpty)
            try devices.sync("B")
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func aResetHubIsFilledAgain_withoutLossAndWithoutTheDead() throws {
        try withDevices("A", "B", "C") { devices in
            for id in ["keep", "gone", "edited"] { try devices.edit("A", id, "{\"x\":1}") }
            try devices.syncAll()
            try devices.delete("A", "gone")
            try devices.sync("A")
            try devices.edit("B", "edited", "{\"x\":2}")
            devices.hub = try FileHub.create("\(devices.folder)/hub2.db")
            // C still has "gone" and comes first.
            #expect(try devices.sync("C").resynced)
            #expect(try devices.sync("A").resynced)
            try devices.syncAll()
            for name in devices.names {
                #expect(try devices.shown(name, "gone") == nil)
                #expect(try devices.shown(name, "edited") == "{\"x\":2}")
                #expect(try devices.shown(name, "keep") == "{\"x\":1}")
                #expect(try devices[name].digest() == devices["A"].digest())
            }
            #expect(try !devices.sync("A").resynced)
        }
    }

    /// A device can know more of the hub than its token says: what it pushed while others did.
    @Test func aHubThatLostOurPush_isFoundOut_alsoWhereItStillKnowsOurToken() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "mine", "{\"x\":1}")
            try devices.syncAll()
            for number in 0..<40 { try devices.edit("B", "b\(number)", "{\"x\":1}") }
            try devices.sync("B")
            let week = try readFile(devices.hubPath)
            try devices.edit("A", "mine", "{\"x\":2}")
            try devices.delete("A", "mine")
            try devices.edit("A", "new", "{\"x\":3}")
            // A few at a time, and never said to be more: A pushes and has not seen all that B wrote.
            var manners = HubSimulator.Manners()
            manners.holdsBack = 1
            try devices.sync("A", with: HubSimulator(devices.hub, manners, seed: 1))
            #expect(try devices.shown("A", "b39") == nil && devices["A"].syncState()?.pending == 0)
            // Last week's hub is back, and gives A's numbers to B.
            try Directory.removeTree(devices.hubPath)
            try week.withUnsafeBytes { try FileHandle.create(devices.hubPath).write($0) }
            devices.hub = try FileHub(devices.hubPath)
            for number in 0..<4 { try devices.edit("B", "b\(number)", "{\"x\":2}") }
            try devices.sync("B")
            #expect(try devices.sync("A").resynced)
            try devices.syncAll()
            for name in devices.names {
                #expect(try devices.shown(name, "mine") == nil && devices.shown(name, "new") == "{\"x\":3}")
                #expect(try devices.shown(name, "b0") == "{\"x\":2}" && devices.shown(name, "b39") == "{\"x\":1}")
                #expect(try devices[name].digest() == devices["A"].digest())
            }
        }
    }

    @Test func anUndoOfAnImportThatWasSyncedReachesEverybody() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "old", "{\"x\":1}")
            try devices.syncAll()
            devices.clock.advance()
            let later = devices.clock.now
            _ = try devices["A"].batch(kind: "import", source: "test") {
                for (name, fields) in [("old", "{\"x\":2}"), ("new", "{\"x\":2}")] {
                    _ = try devices["A"].ingest(
                        Record(
                            id: RecordID(zone: "Z", name: name), type: "Item", localID: name, fields: fields,
                            createdAt: later, modifiedAt: later))
                }
                return ((), summary: "")
            }
            try devices.syncAll()
            #expect(try devices.shown("B", "old") == "{\"x\":2}" && devices.shown("B", "new") != nil)
            let undone = try devices["A"].undoLast()
            #expect(undone.reverted == 1 && undone.removed == 1)
            devices.hub = try FileHub.create("\(devices.folder)/hub2.db")
            try devices.sync("B")
            try devices.syncAll()
            for name in devices.names {
                #expect(try devices.shown(name, "old") == "{\"x\":1}")
                #expect(try devices.shown(name, "new") == nil)
            }
        }
    }

    @Test func whatAReplacingRestoreTakesOutIsGoneEverywhere() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.syncAll()
            _ = try devices["A"].batch(kind: "restore", source: "test") {
                try devices["A"].remove(RecordID(zone: "Z", name: "r"))
                return ((), summary: "")
            }
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == nil)
            _ = try devices["A"].undoLast()
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == "{\"x\":1}")
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func whatComesFromTheHubStaysWhenAnEarlierImportIsUndone() throws {
        try withDevices("A", "B") { devices in
            let first = devices.clock.now
            _ = try devices["A"].batch(kind: "import", source: "test") {
                _ = try devices["A"].ingest(
                    Record(
                        id: RecordID(zone: "Z", name: "r"), type: "Item", localID: "r", fields: "{\"x\":1}",
                        createdAt: first, modifiedAt: first))
                return ((), summary: "")
            }
            try devices.syncAll()
            try devices.edit("B", "r", "{\"x\":2}")
            try devices.syncAll()
            #expect(try devices["A"].undoLast().keptNewer.map(\.name) == ["r"])
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == "{\"x\":2}" && devices.shown("B", "r") == "{\"x\":2}")
        }
    }

    @Test func timesFarInTheFutureAreSetBack_forEverybody() throws {
        try withDevices("A", "B") { devices in
            let future = Timestamp(milliseconds: devices.clock.now.milliseconds + 8 * 86_400_000)
            let wrong = Record(
                id: RecordID(zone: "Z", name: "r"), type: "Item", localID: "r", fields: "{}", createdAt: future,
                modifiedAt: future)
            try devices.hub.put(wrong)
            let result = try devices.sync("A")
            #expect(result.clamped == 1 && result.findings.map(\.code) == [.clockSkew])
            #expect(result.needsAttention)
            #expect(try devices.sync("B").clamped == 0)
            #expect(try devices["A"].digest() == devices["B"].digest())
            #expect(try #require(devices["B"].all().first).modifiedAt <= devices.clock.now)
        }
    }

    /// Also for a record that is known here: what was set back is newer news for the hub.
    @Test func aKnownRecordFromFarInTheFutureIsSetBack_onTheHubToo() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.syncAll()
            let future = Timestamp(milliseconds: devices.clock.now.milliseconds + 8 * 86_400_000)
            var wrong = try #require(devices["A"].all().first)
            (wrong.fields, wrong.modifiedAt) = ("{\"x\":2}", future)
            let base = try #require(devices.hub.fetch([wrong.id], for: nil).records.first).version
            let head = try devices.hub.fetch([], for: nil).head
            _ = try devices.hub.push(HubPush(items: [HubPush.Item(wrong, base: base)], after: head), by: nil)
            #expect(try devices.sync("B").clamped == 1)
            let onHub = try #require(devices.hub.fetch([wrong.id], for: nil).records.first).record
            #expect(onHub.modifiedAt <= devices.clock.now && onHub.fields == "{\"x\":2}")
            try devices.syncAll()
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    /// One sync is enough, also when another device writes between its pull and its push.
    @Test func whatAnotherWritesDuringAPushIsPulledByTheSameSync() throws {
        try withDevices("A", "B") { devices in
            try devices.syncAll()
            try devices.edit("A", "mine", "{\"x\":1}")
            try devices.edit("B", "theirs", "{\"x\":2}")
            let hub = BusyHub(devices.hub) { try devices.sync("B") }
            try devices.sync("A", with: hub)
            #expect(try devices.shown("A", "theirs") == "{\"x\":2}")
            #expect(hub.pushes == 1)
        }
    }

    @Test func twoTypesUnderOneNameAreBothKept() throws {
        try withDevices("A", "B") { devices in
            try devices["A"].take(record("n", "{\"x\":1}", type: "Item"))
            try devices["B"].take(record("n", "{\"x\":2}", type: "Other"))
            try devices.syncAll()
            #expect(try devices["A"].all().map(\.fields).sorted() == ["{\"x\":1}", "{\"x\":2}"])
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func twoPublicationsWithOneCiteKeyAreQueued() throws {
        try withDevices("A", "B") { devices in
            for name in ["A", "B"] {
                let fields = "{\"citeKey\":\"smith2020\",\"title\":\"\(name)\"}"
                try devices[name].take(record("p\(name)", fields, type: RecordType.publication, zone: "Library"))
            }
            try devices.sync("A")
            #expect(try devices.sync("B").conflicts == 1)
            try devices.syncAll()
            for name in ["A", "B"] { #expect(try devices[name].read { try devices[name].info() }.conflicts == 1) }
            #expect(try devices["A"].digest() == devices["B"].digest())
        }
    }

    @Test func whatTheHubGarbledStaysOut_andBlocksNobodyElse() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("B", "mine", "{\"x\":1}")
            try devices.hub.put(record("bad", "{\"x\":1,\"x\":2}"), record("mine", "{\"x\":"), record("good"))
            #expect(try devices.sync("A").held.map(\.kind) == [.damaged, .damaged])
            let result = try devices.sync("B")
            #expect(result.held.map(\.id.name) == ["bad", "mine"] && result.pulled == 1)
            #expect(try devices.shown("B", "mine") == "{\"x\":1}")
            #expect(try devices.sync("B").pushed == 0)
        }
    }

    @Test func whatIsHeldStaysHeldWhenSomethingElseOfItComes() throws {
        try withDevices("ann", "ben") { devices in
            try devices.edit("ann", "r", "{\"x\":1,\"y\":1}")
            try devices["ann"].share("Z", with: "ben", .read, owner: "ann")
            try devices.sync("ann", user: "ann")
            try devices.sync("ben", user: "ben")
            try devices.edit("ben", "r", "{\"x\":2,\"y\":1}")
            #expect(try devices.sync("ben", user: "ben").held.count == 1)
            try devices.edit("ann", "r", "{\"x\":1,\"y\":2}")
            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("ben", user: "ben").held.count == 1)
            #expect(try devices.shown("ben", "r") == "{\"x\":2,\"y\":2}")
            #expect(try devices.sync("ben", user: "ben").held.count == 1)
            devices.clock.advance()
            try devices["ann"].share("Z", with: "ben", .readWrite, owner: nil)
            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("ben", user: "ben").held.isEmpty)
            try devices.sync("ann", user: "ann")
            #expect(try devices.shown("ann", "r") == "{\"x\":2,\"y\":2}")
        }
    }

    @Test func aNewerSchemaIsNotHalfUnderstood() throws {
        try withDevices("A") { devices in
            var newer = record("r")
            newer.schemaVersion = SchemaVersion.current + 10
            try devices.hub.put(newer)
            #expect(try devices.sync("A").held.map(\.kind) == [.newer])
            #expect(try devices["A"].all().isEmpty)
        }
    }

    @Test func aDryRunCountsAndWritesNothing() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "a", "{}")
            try devices.sync("A")
            try devices.edit("B", "b", "{}")
            let before = try readFile(devices.hubPath)
            var options = SyncOptions()
            options.dryRun = true
            let result = try Synchronizer.sync(devices["B"], with: devices.hub, options)
            #expect(result.pulled == 1 && result.pushed == 1)
            #expect(try devices["B"].all().count == 1)
            #expect(try readFile(devices.hubPath) == before)
        }
    }

    @Test func aHubThatAllowsFewRequestsIsAskedSlowly() throws {
        var limits = HubLimits.file
        limits.recordsPerPush = 1
        limits.requestsPerSecond = 40
        try withDevices("A", limits: limits) { devices in
            for number in 0..<20 { try devices.edit("A", "r\(number)", "{}") }
            let time = TestTime()
            var options = SyncOptions()
            options.sleep = { time.sleep($0) }
            options.elapsedSeconds = { time.now }
            #expect(try Synchronizer(devices["A"], devices.hub, options).run().pushed == 20)
            // 20 pushes and a pull after the first question.
            #expect(abs(time.now - 20.0 / 40) < 0.051, "\(time.now)")
        }
    }
}

@Suite struct SyncShareTests {
    @Test func whoMayNotWriteKeepsItsChange_untilItMay() throws {
        try withDevices("ann", "ben") { devices in
            func sync(_ name: String) throws -> SyncResult { try devices.sync(name, user: name) }
            try devices.edit("ann", "r", "{\"x\":1}")
            try devices["ann"].share("Z", with: "ben", .read, owner: "ann")
            _ = try sync("ann")
            _ = try sync("ben")
            #expect(try devices.shown("ben", "r") == "{\"x\":1}")
            try devices.edit("ben", "r", "{\"x\":2}")
            try devices.edit("ben", "open", "{}", zone: "Open")
            let held = try sync("ben")
            #expect(held.held.map(\.kind) == [.permission] && held.pushed == 1)
            devices.clock.advance()
            try devices["ann"].share("Z", with: "ben", .readWrite, owner: nil)
            _ = try sync("ann")
            #expect(try sync("ben").held.isEmpty)
            _ = try sync("ann")
            #expect(try devices.shown("ann", "r") == "{\"x\":2}")
            #expect(try devices["ann"].digest() == devices["ben"].digest())
        }
    }

    @Test func aNewShareDoesNotMakeForgetWhatALocalCopyKeepsOut() throws {
        try withDevices("ann", "ben") { devices in
            try devices.edit("ann", "r", "{\"x\":1}")
            for name in devices.names { try devices.sync(name, user: name) }
            _ = try devices["ben"].setLocal(["r"])
            try devices.edit("ann", "r", "{\"x\":2}")
            for name in devices.names { try devices.sync(name, user: name) }
            try devices["ann"].share("Z", with: "ben", .readWrite, owner: "ann")
            for name in devices.names { try devices.sync(name, user: name) }
            #expect(try devices.sync("ben", user: "ben").held.map(\.kind) == [.local])
            devices.clock.advance()
            _ = try devices["ben"].enableCloud(["r"])
            for name in ["ben", "ann", "ben"] { try devices.sync(name, user: name) }
            #expect(try devices["ann"].digest() == devices["ben"].digest())
        }
    }

    @Test func whoIsLetInLaterGetsEverything() throws {
        try withDevices("ann", "eve") { devices in
            try devices.edit("ann", "r", "{\"x\":1}")
            try devices["ann"].share("Z", with: "ben", .read, owner: "ann")
            try devices.sync("ann", user: "ann")
            #expect(try devices.sync("eve", user: "eve").pulled == 0)
            devices.clock.advance()
            try devices["ann"].share("Z", with: "eve", .read, owner: nil)
            try devices.sync("ann", user: "ann")
            try devices.sync("eve", user: "eve")
            #expect(try devices["ann"].digest() == devices["eve"].digest())
            _ = try devices["ann"].unshare("Z", nil)
            try devices.sync("ann", user: "ann")
            try devices.edit("eve", "r", "{\"x\":2}")
            #expect(try devices.sync("eve", user: "eve").held.isEmpty)
        }
    }
}

/// A hub to which somebody else writes just before the first push arrives.
private final class BusyHub: Hub {
    private let real: any Hub
    private let before: () throws -> Void
    private(set) var pushes = 0

    init(_ real: any Hub, _ before: @escaping () throws -> Void) { (self.real, self.before) = (real, before) }

    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer {
        if pushes == 0 { try before() }
        pushes += 1
        return try real.push(push, by: caller)
    }

    func identity() throws -> HubIdentity { try real.identity() }
    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        try real.changes(after: token, limit: limit, for: caller)
    }
    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch { try real.fetch(ids, for: caller) }
    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> { try real.missingAssets(of: digests) }
    func forgetDamagedAsset(_ digest: SHA256Digest) throws { try real.forgetDamagedAsset(digest) }
    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        try real.putAsset(digest, size: size, write)
    }
    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        try real.getAsset(digest, body)
    }
}
