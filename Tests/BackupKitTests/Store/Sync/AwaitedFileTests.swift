import TestSupport
import Testing

@testable import BackupKit

/// Files that the hub knows by their digest and whose bytes do not come: a link to one never means another file.
@Suite struct AwaitedFileTests {
    private static let tooLarge = "more bytes than the hub takes"

    private func withPapers(_ body: (Devices, Papers) throws -> Void) throws {
        var limits = HubLimits.file
        limits.assetBytes = 20
        try withDevices("A", "B", "C", limits: limits) { devices in
            let papers = Papers(devices)
            try body(devices, papers)
            try papers.tidyUp()
        }
    }

    private func expectSame(_ key: String, _ devices: Devices, _ papers: Papers, _ text: String) throws {
        for name in devices.names {
            #expect(try papers.linked(key, on: name).isSubset(of: ["", text]), "\(key) on \(name)")
        }
    }

    @Test(arguments: [true, false], [true, false])
    func aPathThatIsUsedAgain_isNotThatOfAFileThatNeverCame(isKeptHere: Bool, isDeleteSynced: Bool) throws {
        try withPapers { devices, papers in
            try papers.add("k2", Self.tooLarge, on: "C")
            for name in ["C", "B"] { try devices.sync(name) }
            try devices.undo(on: "C")
            if isKeptHere { try devices.keepHere("k2", on: "B") } else { try devices.edit("k2", on: "B") }
            if isDeleteSynced { for name in ["C", "B"] { try devices.sync(name) } }
            try papers.add("k1", "bytes of k1", on: "C")
            for name in ["C", "B"] { try devices.sync(name) }
            try papers.check("at once", on: ["B"])
            try devices.syncAll(rounds: 3)
            try papers.check("in the end")
            #expect(try devices["B"].livePublication("k2") != nil)
            #expect(try papers.linked("k1", on: "B") == ["bytes of k1"])
        }
    }

    @Test func aFileThatNeverCame_isForgottenWithItsRecord() throws {
        try withPapers { devices, papers in
            try papers.add("k2", Self.tooLarge, on: "C")
            try devices.syncAll()
            try devices.undo(on: "C")
            try devices.syncAll()
            for name in devices.names {
                #expect(try devices[name].info().assets == 0)
                #expect(try devices[name].held().isEmpty, "\(name)")
            }
        }
    }

    @Test func anUndo_doesNotTakeThePathOfAFileThatDidNotCome() throws {
        try withPapers { devices, papers in
            try papers.add("k1", "bytes of k1", on: "C")
            let empty = try papers.backUp("B")
            try papers.add("k3", Self.tooLarge, on: "B")
            try papers.restore(empty, on: "C", replacing: true)
            for name in ["B", "C"] { try devices.sync(name) }
            try devices.undo(on: "C")
            #expect(try papers.linked("k1", on: "C") == ["bytes of k1"])
            #expect(try papers.linked("k3", on: "C") == [""])
        }
    }

    @Test func aNewVersionThatCannotCome_leavesTheOldBytesToUnsentLinks() throws {
        try withPapers { devices, papers in
            try papers.add("k2", "first", on: "C")
            for name in ["C", "A"] { try devices.sync(name) }
            try papers.change(to: Self.tooLarge, on: "A")
            try papers.add("k1", "first", on: "C")
            try devices.syncAll()
            try expectSame("k1", devices, papers, "first")
            #expect(try papers.linked("k1", on: "A") == ["first"])
        }
    }

    @Test func aFileThatAnAppHasChanged_takesNoNameThatTheHubHas() throws {
        try withPapers { devices, papers in
            try papers.add("k1", "first", at: Papers.paths[1], on: "C")
            try papers.writeInPlace(Papers.paths[1], on: "C")
            try papers.add("k2", "second", at: Papers.paths[1], on: "B")
            try papers.add("k2", Self.tooLarge, at: Papers.paths[1], on: "B")
            try devices.syncAll(rounds: 3)
            try papers.check("in the end")
        }
    }

    @Test func aRestoredFile_isLinkedBesideOneThatDidNotCome() throws {
        try withPapers { devices, papers in
            try papers.add("k2", "bytes of k2", on: "A")
            let backup = try papers.backUp("A")
            try papers.add("k1", Self.tooLarge, on: "B")
            for name in ["B", "C"] { try devices.sync(name) }
            try papers.restore(backup, on: "C")
            #expect(try papers.linked("k2", on: "C") == ["bytes of k2"])
            #expect(try papers.linked("k1", on: "C") == [""])
            try devices.syncAll(rounds: 3)
            try papers.check("in the end")
        }
    }

    /// A backup tells which file a link means also where it does not have the file.
    @Test func aBackupWithoutAFile_isNotGivenAnotherOne() throws {
        try withPapers { devices, papers in
            try papers.add("k2", Self.tooLarge, on: "A")
            for name in ["A", "C"] { try devices.sync(name) }
            try devices.undo(on: "A")
            try papers.add("k3", "bytes of k3", on: "A")
            try devices.curate(.delete, "k3", on: "A")
            let backup = "\(devices.folder)/backup"
            let export = try Exporter.export(devices["C"], to: backup, ExportOptions(form: .layout(.directory)))
            #expect(export.elsewhere.map(\.path) == [Papers.paths[0]] && export.isComplete)
            try papers.restore(backup, on: "A", policy: .resurrect)
            #expect(try papers.linked("k2", on: "A").isSubset(of: ["", Self.tooLarge]))
        }
    }

    @Test func aRestoredFile_isNotGivenToARecordThatLacksItsOwn() throws {
        try withPapers { devices, papers in
            try papers.add("k1", "bytes of k1", on: "A")
            papers.takeAway(Papers.paths[0], on: "A")
            try papers.restore(papers.backUp("A"), on: "C")
            try papers.add("k2", "bytes of k2", on: "B")
            try papers.restore(papers.backUp("B"), on: "C")
            #expect(try papers.linked("k2", on: "C") == ["bytes of k2"])
            #expect(try papers.linked("k1", on: "C").isSubset(of: ["", "bytes of k1"]))
            try papers.putBack(Papers.paths[0], on: "A")
            try papers.restore(papers.backUp("A"), on: "C")
            #expect(try papers.linked("k1", on: "C").contains("bytes of k1"))
            try papers.check("with its own file")
        }
    }

    /// The file of k1 that is in the backup is on the hub, too, for k3.
    private func backUpAFileThatTheHubHasToo(_ devices: Devices, _ papers: Papers) throws -> String {
        try papers.add("k1", "bytes of k1", on: "C")
        let backup = try papers.backUp("C")
        try papers.add("k3", "bytes of k1", on: "C")
        try devices.sync("C")
        return backup
    }

    /// A restore has put the file in place that the hub has, too, and is undone after a sync.
    @Test func anUndo_putsItsFileBesideOneThatTheHubHasToo() throws {
        try withPapers { devices, papers in
            let backup = try backUpAFileThatTheHubHasToo(devices, papers)
            try papers.add("k1", "other bytes of k1", on: "A")
            try papers.restore(backup, on: "A", replacing: true)
            try devices.sync("A")
            try devices.undo(on: "A")
            #expect(try papers.linked("k3", on: "A") == ["bytes of k1"])
            try devices.syncAll()
            try papers.check("in the end")
        }
    }

    /// What lay there before the restore was no work's.
    @Test func anUndo_putsAFileThatNothingLinks_besideOneThatTheHubHasToo() throws {
        try withPapers { devices, papers in
            let backup = try backUpAFileThatTheHubHasToo(devices, papers)
            devices.clock.advance()
            _ = try devices["A"].batch(kind: "import", source: "test") { () -> (Void, summary: String) in
                try place(Papers.paths[0], "a file of A", in: devices["A"])
                return ((), summary: "")
            }
            try papers.restore(backup, on: "A", replacing: true)
            try devices.sync("A")
            try devices.undo(on: "A")
            #expect(try papers.linked("k3", on: "A") == ["bytes of k1"])
        }
    }

    /// Nothing tells any more that this device has another work's file there by now.
    @Test func aDamagedRowOfTheHubsFile_givesNoWorkTheFileOfAnother() throws {
        try withPapers { devices, papers in
            let path = Papers.paths[0]
            func change(_ name: String, to text: String?) throws {
                devices.clock.advance()
                _ = try devices[name].batch(kind: "adopt", source: "test") { () -> (Void, summary: String) in
                    try devices[name].removeAsset(try #require(try devices[name].asset(path)))
                    if let text { try place(path, text, in: devices[name]) }
                    return ((), summary: "")
                }
            }
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.syncAll()
            _ = try devices["A"].delete(["k1"])
            try change("A", to: nil)
            try papers.add("k2", "bytes of k2", on: "A")
            try change("B", to: "newer bytes of k1")
            try devices.sync("B")
            try SQLite(devices.path("A"), .readWrite).execute("UPDATE asset_sync SET version = version + 1")
            try devices.syncAll(rounds: 2)
            for name in devices.names { #expect(try papers.linked("k2", on: name) == ["bytes of k2"], "\(name)") }
        }
    }
}
