import Synchronization
import TestSupport
import Testing

@testable import BackupKit

private let day: Int64 = 86_400_000

private final class Ticks: Sendable {
    private let time: Mutex<Timestamp>

    init(_ start: Timestamp) { time = Mutex(start) }

    func next() -> Timestamp {
        time.withLock { time in
            time = time.next
            return time
        }
    }
}

@Suite struct HybridClockTests {
    private func later(_ milliseconds: Int64) -> Timestamp {
        Timestamp(milliseconds: time(0).milliseconds + milliseconds)
    }

    @Test func theClockNeverFallsBehindWhatItHasSeen_butFollowsNobodyYearsAhead() {
        let device = TestClock(time(0).iso8601)
        var clock = HybridClock(device.clock)
        #expect(clock.now() == time(0))
        clock.see(later(-5))
        #expect(clock.now() == time(0))
        clock.see(later(day))
        #expect(clock.now() == later(day + 1))
        for hostile in [HybridClock.reach + 1, 400 * day, 8000 * 365 * day] { clock.see(later(hostile)) }
        clock.see(Timestamp(milliseconds: .max))
        #expect(clock.now() == later(day + 1))
        clock.see(later(HybridClock.reach))
        #expect(clock.now() == later(HybridClock.reach + 1))
        // Its own time goes on meanwhile.
        device.advance(seconds: 8 * 86_400)
        #expect(clock.now() == later(8 * day))
        // One that has been years ahead, and was put right, starts again.
        #expect(HybridClock(device.clock, seen: later(9000 * day)).now() == later(8 * day))
        #expect(HybridClock(device.clock, seen: later(9 * day)).now() == later(9 * day + 1))
    }

    @Test func aStoreRemembersTheLatestTime_howeverItCame() throws {
        let clock = TestClock()
        let early = Clock { Timestamp(milliseconds: clock.now.milliseconds - day) }
        for way in 0..<3 {
            try withTemporaryFolder { folder in
                let path = "\(folder)/store.db"
                let new = Record(
                    id: RecordID(zone: "Z", name: "r"), type: "Item", localID: "r", fields: "{}", createdAt: clock.now,
                    modifiedAt: clock.now)
                if way == 0 { try Store.create(path, clock: clock.clock).take(new) }
                if way > 0 {
                    let store = try Store.create(path, clock: way == 1 ? clock.clock : early)
                    let hub = try FileHub.create("\(folder)/hub.db")
                    try hub.put(way == 2 ? new.tombstone(at: clock.now) : new)
                    _ = try Synchronizer(store, hub).run()
                }
                let store = try Store(path, .write, clock: early)
                #expect(store.now() > clock.now && store.now().milliseconds < clock.now.milliseconds + 1000)
                // What is done on this device now is later than what it knows, though its clock is a day behind.
                try store.take(record("s", "{\"x\":1}"))
                _ = try store.delete(["s"])
                let tombstone = try #require(try store.record(RecordID(zone: "Z", name: "s")))
                #expect(tombstone.record.modifiedAt > clock.now)
            }
        }
    }

    @Test func aRecordFromFarAheadDoesNotDateWhatIsWrittenAfterIt() throws {
        try withDevices("A", "B") { devices in
            let far = Timestamp(milliseconds: devices.clock.now.milliseconds + 3650 * day)
            try devices.hub.put(record("far").tombstone(at: far))
            try devices.syncAll()
            try devices.edit("A", "r", "{}")
            try devices.delete("A", "r")
            let tombstone = try #require(try devices["A"].record(RecordID(zone: "Z", name: "r"))).record
            #expect(tombstone.modifiedAt == devices.clock.now)
        }
    }
}

/// A device that only syncs must not change who wrote later.
@Suite struct SlowClockTests {
    @Test(arguments: [-6 * day, -day, -3_600_000, -120_000])
    func aDeviceWithASlowClock_leavesTheOrderOfEditsAndDeletesToTheOthers(skew: Int64) throws {
        try withDevices("A", "C") { devices in
            let clock = devices.clock
            let slow = try Store.create(
                "\(devices.folder)/slow.db", clock: Clock { Timestamp(milliseconds: clock.now.milliseconds + skew) })
            func syncSlow() throws -> SyncResult {
                clock.advance()
                return try Synchronizer(slow, devices.hub).run()
            }
            for name in ["edited", "deleted"] { try devices.edit("A", name, "{\"x\":0}") }
            try devices.syncAll()
            _ = try syncSlow()
            // C works offline; A comes later, and is heard of first.
            clock.advance(seconds: 30)
            for name in ["edited", "deleted"] { try devices.edit("C", name, "{\"x\":1}") }
            clock.advance(seconds: 30)
            try devices.edit("A", "edited", "{\"x\":2}")
            try devices.delete("A", "deleted")
            try devices.sync("A")
            let result = try syncSlow()
            // The times were kept, so nothing is to be done.
            #expect(result.pushed == 0 && result.findings.map(\.code) == [.clockSkew] && !result.needsAttention)
            for _ in 0..<2 {
                try devices.sync("C")
                #expect(try syncSlow().pushed == 0)
                try devices.sync("A")
            }
            for store in devices.stores + [slow] {
                let live = try store.all().filter { !$0.isDeleted && $0.type != Quarantine.type }
                #expect(live.map(\.fields) == ["{\"x\":2}"], "\(skew)")
            }
            // What the slow device does now is later than all that it has seen.
            try slow.take(
                Record(
                    id: RecordID(zone: "Z", name: "edited"), type: "Item", localID: "edited", fields: "{\"x\":3}",
                    createdAt: slow.now(), modifiedAt: slow.now()))
            _ = try syncSlow()
            try devices.syncAll()
            #expect(try devices.shown("A", "edited") == "{\"x\":3}" && devices.shown("C", "edited") == "{\"x\":3}")
        }
    }
}

/// A device whose clock is wrong restores what another one has deleted meanwhile.
@Suite struct WrongClockTests {
    private func withOffice(
        skew: Int64, hears: Bool, _ body: (_ devices: Devices, _ wrong: Store, _ backup: String) throws -> Void
    ) throws {
        try withDevices("A") { devices in
            let clock = devices.clock
            let wrong = try Store.create(
                "\(devices.folder)/wrong.db",
                clock: Clock { Timestamp(milliseconds: clock.now.milliseconds + skew) })
            try devices.edit("A", "r", "{\"x\":1}")
            try devices.sync("A")
            try sync(wrong, devices)
            let backup = "\(devices.folder)/backup"
            _ = try Exporter.export(wrong, to: backup, ExportOptions(form: .layout(.directory)))
            try devices.delete("A", "r")
            try devices.sync("A")
            clock.advance(seconds: 10)
            if hears { try sync(wrong, devices) }
            try body(devices, wrong, backup)
        }
    }

    private func sync(_ store: Store, _ devices: Devices) throws {
        devices.clock.advance()
        _ = try Synchronizer(store, devices.hub).run()
    }

    @Test(arguments: [-30 * 365 * day, -8 * day, -day, -3_600_000, -1000, 0, 1000, 3_600_000, day], [false, true])
    func whatIsResurrectedIsAliveEverywhere_andTheSimulationSaysSo(skew: Int64, hears: Bool) throws {
        try withOffice(skew: skew, hears: hears) { devices, wrong, backup in
            // While a simulation runs, time goes on.
            let ticks = Ticks(Timestamp(milliseconds: devices.clock.now.milliseconds + skew))
            var options = RestoreOptions()
            options.policy = .resurrect
            let simulation = try Simulation.run(
                backup, store: wrong.path, devices: 3, hub: devices.hubPath,
                clock: Clock { ticks.next() }, options)
            let outcome = simulation.counts
            #expect(outcome == [.everywhere: 1], "\(skew)")
            _ = try Restorer.restore(backup, into: wrong, options)
            for _ in 0..<2 {
                try sync(wrong, devices)
                try devices.sync("A")
            }
            #expect(try devices.shown("A", "r") == "{\"x\":1}", "\(skew)")
            #expect(try wrong.digest() == devices["A"].digest())
            // A delete that knows of it is a delete, also where the other device has written meanwhile what it holds from before.
            let known = try #require(try wrong.record(RecordID(zone: "Z", name: "r"))).record
            var old = known
            (old.fields, old.modifiedAt, old.fieldTimes) = ("{\"x\":1,\"y\":2}", known.createdAt, [:])
            // Beyond the reach of the hybrid clock nobody knows which was later.
            if abs(skew) <= day { try wrong.take(old) }
            try devices.delete("A", "r")
            for _ in 0..<2 {
                try devices.sync("A")
                try sync(wrong, devices)
            }
            #expect(try devices.shown("A", "r") == nil)
            #expect(try wrong.all().allSatisfy { $0.isDeleted || $0.type == Quarantine.type }, "\(skew)")
        }
    }
}
