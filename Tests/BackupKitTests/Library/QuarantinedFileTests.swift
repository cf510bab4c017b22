import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// Files of versions that were put aside, and that come out again.
@Suite struct QuarantinedFileTests {
    private func names(in store: Store) throws -> [String] {
        try store.all().filter { $0.type == Quarantine.type && !$0.isDeleted }.map(\.localID).sorted()
    }

    /// Each of two backups has another file under one path, and so has the store.
    @Test(arguments: [true, false]) func versionsThatLeaveQuarantine_linkTheirOwnBytes(_ isReversed: Bool) throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            for name in ["A", "B", "C"] { try papers.add("k\(name)", "bytes of k\(name)", on: name) }
            for name in ["A", "B"] {
                let backup = try papers.backUp(name)
                try papers.restore(backup, on: "C", policy: .quarantine)
                try papers.restore(backup, on: "C", policy: .quarantine)
            }
            let envelopes = try names(in: devices["C"])
            #expect(envelopes.count == 2)
            for envelope in isReversed ? envelopes.reversed() : envelopes {
                let released = try Quarantine.enableCloud([envelope], in: devices["C"])
                #expect(released.findings.isEmpty)
            }
            for name in ["A", "B", "C"] {
                #expect(try papers.linked("k\(name)", on: "C") == ["bytes of k\(name)"])
            }
            _ = try devices["C"].undoLast()
            _ = try devices["C"].redoLast()
            try papers.check("redone", on: ["C"])
        }
    }

    /// Whatever a store calls its files, its export brings all of them back.
    @Test func everyFileOfAnExport_isRestored_whateverItIsCalled() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.restore(papers.backUp("A"), on: "B", policy: .quarantine)
            _ = try devices["B"].batch(kind: "import", source: "test") { () -> (Void, summary: String) in
                for name in ["Attachments/__MACOSX/x.jpg", "Attachments/._y.jpg", "Other/.DS_Store"] {
                    try place(name, "bytes of \(name)", in: devices["B"])
                }
                return ((), summary: "")
            }
            let backup = try papers.backUp("B")
            #expect(try Verifier.verify(backup, level: .deep).findings.isEmpty)
            try papers.restore(backup, on: "C")
            let digest = try devices["B"].digest()
            #expect(try devices["C"].digest() == digest && devices["C"].info().assets == 4)
        }
    }

    /// The store had the file when the version was put aside, and gave it another name since.
    @Test func aFileThatMovedSince_isLinkedWhereItIs() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.add("k3", "bytes of k1", on: "C")
            try papers.restore(papers.backUp("A"), on: "C", policy: .quarantine)
            try papers.add("k2", "bytes of k2", on: "B")
            for name in ["B", "C"] { try devices.sync(name) }
            let released = try Quarantine.enableCloud(["k1"], in: devices["C"])
            #expect(released.findings.isEmpty)
            #expect(try papers.linked("k1", on: "C") == ["bytes of k1"])
            #expect(try papers.linked("k2", on: "C") == ["bytes of k2"])
        }
    }

    @Test func aFileThatIsNotInQuarantine_isNotReplacedByAnother() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            let backup = try papers.backUp("A")
            unlink("\(backup)/Attachments/q.pdf")
            var options = RestoreOptions()
            (options.policy, options.allowDamage) = (.quarantine, true)
            _ = try Restorer.restore(backup, into: devices["B"], options)
            try papers.add("k2", "bytes of k2", on: "B")
            let released = try Quarantine.enableCloud(["k1"], in: devices["B"])
            #expect(released.findings.map(\.code) == [.linkMissing])
            #expect(try papers.linked("k1", on: "B") == [])
            #expect(try papers.linked("k2", on: "B") == ["bytes of k2"])
        }
    }
}
