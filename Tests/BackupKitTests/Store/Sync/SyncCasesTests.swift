import TestSupport
import Testing

@testable import BackupKit

/// The cases that every release must pass, each as it is told: devices A, B and C, and a hub.
@Suite struct SyncCasesTests {
    private let note = "{\"text\":\"vaccinated\"}"

    /// All three have the record.
    private func withRecordEverywhere(_ body: (Devices) throws -> Void) throws {
        try withDevices("A", "B", "C") { devices in
            try devices.edit("A", "r", note)
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
            try body(devices)
        }
    }

    private func onHub(_ devices: Devices, _ name: String = "r") throws -> Record? {
        try devices.hub.fetch([RecordID(zone: "Z", name: name)], for: nil).records.first?.record
    }

    @Test func case1_deletedOnA_theHubHasATombstone() throws {
        try withRecordEverywhere { devices in
            try devices.delete("A", "r")
            try devices.sync("A")
            let tombstone = try #require(try onHub(devices))
            #expect(tombstone.isDeleted && tombstone.fields == "{}" && tombstone.deviceID == nil)
        }
    }

    @Test func case2_thenBSyncs_goneOnB() throws {
        try withRecordEverywhere { devices in
            try devices.delete("A", "r")
            try devices.sync("A")
            try devices.sync("B")
            #expect(try devices.shown("B", "r") == nil)
        }
    }

    @Test func case3_thenCSyncsThreeWeeksLater_goneOnC_andItComesBackNowhere() throws {
        try withRecordEverywhere { devices in
            try devices.delete("A", "r")
            try devices.sync("A")
            devices.clock.advance(seconds: 21 * 86_400)
            try devices.sync("C")
            #expect(try devices.shown("C", "r") == nil)
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
        }
    }

    @Test func case4_setLocalOnA_goneOnBAndC_keptOnA() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            try devices.sync("A")
            #expect(try onHub(devices)?.isDeleted == true)
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == note)
            #expect(try devices.shown("B", "r") == nil && devices.shown("C", "r") == nil)
        }
    }

    @Test func case5_localOnAAndDeletedOnB_keptOnA() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            try devices.delete("B", "r")
            try devices.sync("B")
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == note)
            #expect(try devices.shown("B", "r") == nil && devices.shown("C", "r") == nil)
        }
    }

    @Test func case6_andEditedOnB_theCopyOnAStaysAsItIs() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            try devices.edit("B", "r", "{\"text\":\"edited\"}")
            try devices.sync("B")
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == note)
            // Written after the delete, so it is not lost by it.
            #expect(try devices.shown("B", "r") == "{\"text\":\"edited\"}")
            #expect(try devices.shown("C", "r") == "{\"text\":\"edited\"}")
            #expect(try devices.sync("A").held.map(\.kind) == [.local])
            #expect(try devices.sync("A").pushed == 0)
            // Deleting the copy is deleting the record.
            try devices.delete("A", "r")
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == nil) }
            #expect(try devices.sync("A").held.isEmpty)
        }
    }

    @Test func case7_enableCloudOnA_theTombstoneIsOverwritten_BAndCHaveItAgain() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            try devices.syncAll()
            devices.clock.advance()
            _ = try devices["A"].enableCloud(["r"])
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
            #expect(try onHub(devices)?.isDeleted == false)
            #expect(try devices["A"].digest() == devices["C"].digest())
        }
    }

    @Test func AAndCBothLocal_bothKeep_BLosesIt() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            devices.clock.advance()
            _ = try devices["C"].setLocal(["r"])
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == note && devices.shown("C", "r") == note)
            #expect(try devices.shown("B", "r") == nil)
            // What A gives back to the others does not touch the copy that C keeps for itself.
            _ = try devices["A"].enableCloud(["r"])
            try devices.syncAll()
            #expect(try devices.shown("B", "r") == note && devices.shown("C", "r") == note)
            #expect(try devices.sync("C").held.map(\.kind) == [.local])
            _ = try devices["C"].enableCloud(["r"])
            try devices.syncAll()
            for name in devices.names { #expect(try devices.shown(name, "r") == note) }
            #expect(try devices["A"].digest() == devices["C"].digest())
            #expect(try devices.sync("C").held.isEmpty)
        }
    }

    @Test func anUndoThatTakesTheLocalCopyAway_letsTheHubsVersionIn() throws {
        try withDevices("A", "B") { devices in
            _ = try devices["A"].batch(kind: "restore", source: "test") {
                _ = try devices["A"].ingest(record("r", "{\"x\":1}", local: true))
                return ((), summary: "")
            }
            try devices.edit("B", "r", "{\"x\":2}")
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == "{\"x\":1}")
            _ = try devices["A"].undoLast()
            try devices.syncAll()
            #expect(try devices.shown("A", "r") == "{\"x\":2}")
        }
    }

    @Test func enableCloudAfterOthersEdited_joinsWhatBothHave() throws {
        try withRecordEverywhere { devices in
            _ = try devices["A"].setLocal(["r"])
            try devices.edit("B", "r", "{\"text\":\"edited\",\"more\":1}")
            try devices.sync("B")
            try devices.sync("A")
            devices.clock.advance()
            _ = try devices["A"].enableCloud(["r"])
            try devices.syncAll()
            for name in devices.names {
                let fields = try Fields.parse(try #require(try devices.shown(name, "r")))
                #expect(Fields.string("text", in: fields) == "vaccinated")
                #expect(fields.contains { $0.name == "more" })
            }
        }
    }
}

@Suite struct SyncAssetsTests {
    private func put(_ path: String, _ text: String, _ devices: Devices, _ name: String) throws {
        _ = try devices[name].batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            if let old = try devices[name].asset(path) { try devices[name].removeAsset(old) }
            try place(path, text, in: devices[name])
            return ((), summary: "")
        }
    }

    private func text(_ path: String, _ devices: Devices, _ name: String) throws -> String? {
        guard let asset = try devices[name].asset(path) else { return nil }
        return String(decoding: try readFile("\(devices[name].assetFolder)/\(asset.path)"), as: UTF8.self)
    }

    @Test func filesGoAndComeAndChangeAndVanish() throws {
        try withDevices("A", "B") { devices in
            try put("Attachments/é.pdf", "one", devices, "A")
            try put("b.pdf", "two", devices, "A")
            #expect(try devices["A"].syncState() == nil)
            let sent = try devices.sync("A")
            #expect(sent.assetsSent == 2 && sent.pushed == 2)
            #expect(try devices.sync("B").assetsFetched == 2)
            #expect(try text("Attachments/é.pdf", devices, "B") == "one")
            #expect(try devices["A"].digest() == devices["B"].digest())
            try put("b.pdf", "three", devices, "B")
            #expect(try devices["B"].syncState()?.pending == 1)
            try devices.syncAll()
            #expect(try text("b.pdf", devices, "A") == "three")
            _ = try devices["A"].batch(kind: "restore", source: "test") {
                try devices["A"].removeAsset(try #require(try devices["A"].asset("b.pdf")))
                return ((), summary: "")
            }
            try devices.syncAll()
            #expect(try text("b.pdf", devices, "B") == nil)
            #expect(try devices["A"].digest() == devices["B"].digest())
            let quiet = try devices.sync("A")
            #expect(quiet.pulled == 0 && quiet.pushed == 0)
        }
    }

    @Test func twoVersionsOfOneFileAreBothKept_everywhere_andAPersonDecides() throws {
        try withDevices("A", "B", "C") { devices in
            try put("p.pdf", "old", devices, "A")
            try devices.syncAll()
            try put("p.pdf", "from A", devices, "A")
            try put("p.pdf", "from B", devices, "B")
            try devices.sync("A")
            #expect(try devices.sync("B").conflicts == 1)
            try devices.syncAll()
            for name in devices.names {
                #expect(try text("p.pdf", devices, name) == "from A")
                #expect(try text("p_conflict_2026-03-01.pdf", devices, name) == "from B")
                #expect(try devices[name].digest() == devices["A"].digest())
            }
            #expect(try devices["B"].read { try devices["B"].info() }.conflicts == 1)
        }
    }

    @Test func anUndoAfterASyncTakesBackTheImport_notTheSync() throws {
        try withDevices("A", "B") { devices in
            try put("a.pdf", "A", devices, "A")
            try put("b.pdf", "B", devices, "B")
            try devices.syncAll()
            #expect(try devices["A"].batches().map(\.kind) == ["import"])
            _ = try devices["A"].undoLast()
            try devices.syncAll()
            for name in devices.names {
                #expect(try text("a.pdf", devices, name) == nil)
                #expect(try text("b.pdf", devices, name) == "B")
            }
            #expect(throws: BackupError.self) { try devices["A"].undoLast() }
        }
    }

    @Test func aFileThatTheHubReplacedStaysWhenTheImportBeforeIsUndone() throws {
        try withDevices("A", "B") { devices in
            try put("p.pdf", "one", devices, "A")
            try devices.syncAll()
            try put("p.pdf", "two", devices, "B")
            try devices.syncAll()
            _ = try devices["A"].undoLast()
            #expect(try text("p.pdf", devices, "A") == "two")
            try devices.syncAll()
            #expect(try text("p.pdf", devices, "B") == "two")
        }
    }

    @Test func changedHereAndDeletedThere_theChangeStays() throws {
        try withDevices("A", "B") { devices in
            try put("p.pdf", "one", devices, "A")
            try devices.syncAll()
            try put("p.pdf", "two", devices, "A")
            _ = try devices["B"].batch(kind: "restore", source: "test") {
                try devices["B"].removeAsset(try #require(try devices["B"].asset("p.pdf")))
                return ((), summary: "")
            }
            try devices.sync("B")
            try devices.syncAll()
            for name in devices.names { #expect(try text("p.pdf", devices, name) == "two") }
        }
    }

    @Test func whatIsTooLargeOrLostOrInTheWayIsNamedAndBlocksNobodyElse() throws {
        var limits = HubLimits.file
        limits.assetBytes = 10
        try withDevices("A", "B", limits: limits) { devices in
            try put("large.pdf", "more than ten bytes", devices, "A")
            try put("small.pdf", "small", devices, "A")
            try put("way.pdf", "way", devices, "A")
            try writeFile("\(devices["B"].assetFolder)/way.pdf", "a stranger")
            #expect(try devices.sync("A").held.map(\.kind) == [.size])
            let synced = try devices.sync("B")
            #expect(synced.held.map(\.id.name) == ["large.pdf"] && synced.findings.map(\.subject) == ["way.pdf"])
            #expect(try text("small.pdf", devices, "B") == "small")
            #expect(try text("way.pdf", devices, "B") == "way")
        }
    }

    @Test func pathsThatLeadOutsideAreNotFollowed() throws {
        try withDevices("A") { devices in
            let digest = SHA256Digest.of("evil")
            try devices.hub.putAsset(digest, size: 4) { write in
                try Array("evil".utf8).withUnsafeBytes { try write($0) }
            }
            for path in ["../evil", "/evil", ".kept/evil", "a/../../evil"] {
                try devices.hub.put(
                    Asset(path: path, size: 4, digest: digest).record(at: devices.clock.now))
            }
            #expect(try devices.sync("A").held.count == 4)
            #expect(try devices["A"].read { try devices["A"].info() }.assets == 0)
            #expect(try FileStatus.ofName("\(devices.folder)/evil") == nil)
        }
    }

    @Test func aResetHubGetsTheFilesAgain_andALostFileIsFetched() throws {
        try withDevices("A", "B") { devices in
            try put("p.pdf", "one", devices, "A")
            try devices.syncAll()
            try Directory.removeTree("\(devices["B"].assetFolder)/p.pdf")
            try Directory.create("\(devices.folder)/again")
            devices.hub = try FileHub.create("\(devices.folder)/again/hub.db")
            #expect(try devices.sync("A").assetsSent == 1)
            #expect(try devices.sync("B").assetsFetched == 1)
            #expect(try text("p.pdf", devices, "B") == "one")
        }
    }
}
