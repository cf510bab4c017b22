import TestSupport
import Testing

@testable import BackupKit

/// Files of several devices whose names cannot lie side by side.
@Suite struct NamesApartTests {
    static let names = ["Smith", "smith", "SMITH.pdf", "Smith.pdf", "Smith/a.pdf", "Smith/A.pdf", "smith/b.pdf"]

    /// What every export needs: all files, each under a name of its own.
    private func check(_ papers: Papers, _ comment: String) throws {
        try papers.check(comment)
        for name in papers.devices.names {
            let store = papers.devices[name]
            #expect(try store.namesApart().moving.isEmpty, "\(name); \(comment)")
            let findings = try StoreCheck.run(store).findings
            #expect(findings.isEmpty, "\(name): \(findings); \(comment)")
            let backup = try papers.backUp(name)
            let restored = try Store.create("\(backup).db", clock: papers.devices.clock.clock)
            let found = try Restorer.restore(backup, into: restored, RestoreOptions()).findings
            #expect(
                !found.contains { $0.severity == .error || $0.severity == .damage }, "\(name): \(found); \(comment)")
            #expect(try restored.info().assets == store.info().assets, "\(name); \(comment)")
        }
    }

    @Test func aFileAndAFolderOfOneName_meetInASync_andExportsHoldBoth() throws {
        for isFileFirst in [true, false] {
            try withDevices("A", "B") { devices in
                let papers = Papers(devices)
                try papers.add("k1", "the file", at: "Attachments/Smith", on: "A")
                try papers.add("k2", "one below", at: "Attachments/Smith/a.pdf", on: "B")
                try papers.add("k3", "another below", at: "Attachments/Smith/b.pdf", on: "B")
                for name in isFileFirst ? ["A", "B"] : ["B", "A"] { try devices.sync(name) }
                try check(papers, "at once")
                try devices.syncAll()
                try check(papers, "after all")
                for name in devices.names {
                    #expect(try papers.linked("k1", on: name) == ["the file"])
                    #expect(try papers.linked("k2", on: name) == ["one below"])
                    #expect(try devices[name].asset("Attachments/Smith_2") != nil)
                }
            }
        }
    }

    /// As an older version, or a hub, has left it.
    @Test func aStoreThatHasBoth_isNamedByTheCheck_andMendedByARepair() throws {
        try withDevices("A") { devices in
            let papers = Papers(devices)
            let store = devices["A"]
            try papers.add("k1", "below", at: "Attachments/Smith/a.pdf", on: "A")
            _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
                try TestSupport.place("Attachments/Smith", "the file", in: store)
                try store.addToSet("linkedFiles", ["Attachments/Smith"], localID: "k1", type: RecordType.publication)
                return ((), summary: "")
            }
            #expect(try StoreCheck.run(store).findings.map(\.subject) == ["Attachments/Smith"])
            var options = StoreMending.Options()
            options.dryRun = true
            let planned = try StoreMending.run(store, options)
            #expect(planned.steps.count == 1 && planned.left.isEmpty, "\(planned.left)")
            #expect(try store.asset("Attachments/Smith") != nil)
            options.dryRun = false
            let mended = try StoreMending.run(store, options)
            #expect(mended.steps.map(\.subject) == ["Attachments/Smith"] && mended.left.isEmpty, "\(mended.left)")
            #expect(try papers.linked("k1", on: "A") == ["below", "the file"])
            #expect(try store.namesApart().moving.isEmpty)
        }
    }

    @Test(arguments: testSeeds(isTorture ? 120 : 12))
    func whateverFilesAreCalled_syncsKeepThemApart(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            var log: [String] = []
            for number in 0..<12 {
                let device = devices.names[random.below(3)]
                if random.chance(3) {
                    try devices.sync(device)
                    log.append("\(device) syncs")
                } else {
                    let name = Self.names[random.below(Self.names.count)]
                    // An import keeps its own names apart.
                    let isTaken = try devices[device].namesApart().names.refuses("Attachments/\(name)")
                    if isTaken { continue }
                    try papers.add("k\(number)", "bytes \(random.below(4))", at: "Attachments/\(name)", on: device)
                    log.append("\(device) imports k\(number) with \(name)")
                }
            }
            try devices.syncAll(rounds: 3)
            try check(papers, "seed \(seed):\n\(log.joined(separator: "\n"))")
        }
    }
}

extension EntryNameSet {
    fileprivate func refuses(_ name: String) -> Bool {
        var names = self
        return (try? names.insert(name)) == nil
    }
}
