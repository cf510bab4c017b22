import TestSupport
import Testing

@testable import BackupKit

@Suite struct OverruledEditTests {
    private let before = "{\"text\":\"vaccinated\"}"
    private let edit = "{\"text\":\"vaccinated, and why\"}"

    private func withDeletedEdit(_ body: (Devices, SyncResult) throws -> Void) throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", before)
            try devices.syncAll()
            try devices.edit("A", "r", edit)
            devices.clock.advance(seconds: 60)
            _ = try devices["B"].curate(.delete, ["r"])
            try devices.sync("B")
            try body(devices, devices.sync("A"))
        }
    }

    @Test func anUnsentEditOfWhatWasDeletedLater_isInQuarantine_andNamed() throws {
        try withDeletedEdit { devices, result in
            #expect(try devices.shown("A", "r") == nil)
            let finding = try #require(result.findings.first { $0.code == .protected })
            #expect(finding.severity == .warning && finding.message.contains("is in quarantine"))
            _ = try Quarantine.enableCloud(["r"], in: devices["A"], dryRun: false)
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == edit) }
        }
    }

    @Test func whatTheOtherDeviceBringsBackItself_leavesTheEditInQuarantine() throws {
        try withDeletedEdit { devices, _ in
            _ = try devices["B"].undoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == before) }
            let kept = try devices["A"].all().compactMap { try Quarantine.content(of: $0) }
            #expect(kept.map(\.fields) == [edit])
        }
    }

    @Test func aDeleteOfWhatTheHubHas_putsNothingAside() throws {
        try withDevices("A", "B") { devices in
            try devices.edit("A", "r", before)
            try devices.syncAll()
            devices.clock.advance(seconds: 60)
            try devices.delete("B", "r")
            try devices.sync("B")
            let result = try devices.sync("A")
            #expect(result.findings.isEmpty)
            #expect(try devices["A"].all().allSatisfy { $0.type != Quarantine.type })
        }
    }
}
