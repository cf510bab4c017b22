import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Restores of backups that do not hold all files which their records link.
@Suite struct BackupLinkTests {
    enum Lack: String, CaseIterable, Sendable { case fileIsGone, attachmentsLeftOut, onlyPublications }

    /// A backup of a store whose work `own` links a file, without that file.
    private func backUp(_ devices: Devices, _ lack: Lack) throws -> (path: String, options: RestoreOptions) {
        let papers = Papers(devices)
        try papers.add("own", "bytes of own", on: "A")
        var export = ExportOptions(form: .layout(.directory))
        var options = RestoreOptions()
        if lack == .attachmentsLeftOut { export.kinds.remove(.attachments) }
        let path = "\(devices.folder)/backup"
        _ = try Exporter.export(devices["A"], to: path, export)
        if lack == .fileIsGone { unlink("\(path)/Attachments/q.pdf") }
        if lack == .onlyPublications { options.kinds = [.publications] }
        options.allowDamage = lack == .fileIsGone
        return (path, options)
    }

    @Test(arguments: Lack.allCases) func aLinkWithoutItsFile_isNoLinkToAStranger(_ lack: Lack) throws {
        try withDevices("A", "B") { devices in
            let (path, options) = try backUp(devices, lack)
            let papers = Papers(devices)
            try papers.add("other", "bytes of other", on: "B")
            let result = try Restorer.restore(path, into: devices["B"], options)
            #expect(try papers.linked("own", on: "B") == [])
            #expect(try papers.linked("other", on: "B") == ["bytes of other"])
            #expect(result.findings.contains { $0.code == .linkMissing && $0.subject == "Attachments/q.pdf" })
            #expect(try Restorer.restore(path, into: devices["B"], options).writes == 0)
        }
    }

    @Test(arguments: Lack.allCases) func aLinkToTheRightFile_isKept(_ lack: Lack) throws {
        try withDevices("A", "B") { devices in
            let (path, options) = try backUp(devices, lack)
            let papers = Papers(devices)
            // The digest proves it; where the backup has none, the work of the store does.
            try papers.add(lack == .attachmentsLeftOut ? "own" : "other", "bytes of own", on: "B")
            let result = try Restorer.restore(path, into: devices["B"], options)
            #expect(try papers.linked("own", on: "B") == ["bytes of own"])
            #expect(!result.findings.contains { $0.code == .linkMissing })
        }
    }

    /// The delete of a record leaves its file, which nobody else links.
    @Test(arguments: Lack.allCases) func aWorkThatComesBack_linksTheFileThatItLeft(_ lack: Lack) throws {
        try withDevices("A") { devices in
            var (path, options) = try backUp(devices, lack)
            let papers = Papers(devices)
            try devices.curate(.delete, "own", on: "A")
            options.policy = .resurrect
            devices.clock.advance()
            _ = try Restorer.restore(path, into: devices["A"], options)
            #expect(try papers.linked("own", on: "A") == ["bytes of own"])
        }
    }

    /// A later backup that has the file brings it, under a name of its own.
    @Test func aBackupThatHasTheFile_linksIt() throws {
        try withDevices("A", "B") { devices in
            let (path, options) = try backUp(devices, .onlyPublications)
            let papers = Papers(devices)
            try papers.add("other", "bytes of other", on: "B")
            _ = try Restorer.restore(path, into: devices["B"], options)
            _ = try Restorer.restore(path, into: devices["B"], RestoreOptions())
            #expect(try papers.linked("own", on: "B") == ["bytes of own"])
            #expect(try papers.linked("other", on: "B") == ["bytes of other"])
        }
    }
}
