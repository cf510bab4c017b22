import TestSupport
import Testing

@testable import BackupKit

/// Which files a sync leaves on their device.
@Suite struct FilesOfThisDeviceTests {
    private static let path = Papers.paths[0]

    private func withPapers(_ body: (Devices, Papers) throws -> Void) throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k", "bytes of k", on: "A")
            try body(devices, papers)
        }
    }

    private func expectFile(_ isThere: Bool, on device: String, _ devices: Devices) throws {
        #expect(try devices[device].hasAsset(Self.path) == isThere, "on \(device)")
    }

    @Test func theFileOfARecordThatIsKeptHere_isKeptHere() throws {
        try withPapers { devices, papers in
            try devices.keepHere("k", on: "A")
            try devices.syncAll()
            try expectFile(true, on: "A", devices)
            try expectFile(false, on: "B", devices)
            try devices.edit("A", "r", "{}")
            #expect(try devices["A"].syncState()?.pending == 1)

            try devices.curate(.enableCloud, "k", on: "A")
            try devices.syncAll()
            #expect(try papers.linked("k", on: "B") == ["bytes of k"])
        }
    }

    @Test func theFileThatAnotherRecordLinksToo_isForAll() throws {
        try withPapers { devices, papers in
            try papers.add("shared", "bytes of k", on: "A")
            try devices.keepHere("k", on: "A")
            try devices.syncAll()
            #expect(try papers.linked("shared", on: "B") == ["bytes of k"])
        }
    }

    @Test func theFileOfARecordThatWasDeletedBeforeTheFirstSync_isKeptHere() throws {
        try withPapers { devices, papers in
            try devices.curate(.delete, "k", on: "A")
            try devices.syncAll()
            try expectFile(false, on: "B", devices)

            try devices.undo(on: "A")
            #expect(try papers.linked("k", on: "A") == ["bytes of k"])
            #expect(try devices["A"].syncState()?.pending == 2)
            try devices.syncAll()
            #expect(try devices["A"].syncState()?.pending == 0)
            #expect(try papers.linked("k", on: "B") == ["bytes of k"])
        }
    }

    @Test func aLaterVersionOfTheFile_isKeptHereToo() throws {
        try withPapers { devices, papers in
            try devices.syncAll()
            try devices.keepHere("k", on: "A")
            try papers.change(to: "written since", on: "A")
            try devices.syncAll()
            #expect(try devices["B"].asset(Self.path)?.digest == .of("bytes of k"))
            #expect(try devices["A"].asset(Self.path)?.digest == .of("written since"))
        }
    }

    @Test func aFileOfNoRecord_isForAll() throws {
        try withPapers { devices, papers in
            try devices.syncAll()
            _ = try devices["A"].batch(kind: "adopt", source: "test") {
                (try TestSupport.place("Attachments/free.pdf", "free", in: devices["A"]), summary: "")
            }
            try devices.syncAll()
            #expect(try devices["B"].hasAsset("Attachments/free.pdf"))
        }
    }

    @Test func aNewFileInThePlaceOfADeletedRecords_isForAll() throws {
        try withPapers { devices, papers in
            try devices.curate(.delete, "k", on: "A")
            try papers.lose(Self.path, on: "A")
            devices.clock.advance()
            try writeFile("\(devices["A"].assetFolder)/\(Self.path)", "another file")
            _ = try devices["A"].adopt([Self.path])
            try devices.syncAll()
            try expectFile(true, on: "B", devices)
        }
    }

    /// Two devices have a work and its file each for itself; one purges them before it hears of the other's.
    @Test(arguments: [true, false]) func aPurgedFile_comesBackOnlyForARecordThatLinksIt(isLinked: Bool) throws {
        try withPapers { devices, papers in
            try papers.add("k", "bytes of k", on: "B")
            if isLinked { try papers.add("other", "bytes of k", on: "B") }
            try devices.sync("B")
            try devices.curate(.delete, "k", on: "A")
            var options = PurgeOptions()
            options.ids = ["k"]
            options.withFiles = true
            _ = try Purge.run(devices["A"], options)
            let findings = try devices.sync("A").findings
            #expect(findings.contains { $0.subject == Self.path && $0.code == .leftOut } != isLinked, "\(findings)")
            try devices.syncAll()
            for name in devices.names { try expectFile(isLinked, on: name, devices) }
        }
    }
}
