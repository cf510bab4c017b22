import TestSupport
import Testing

@testable import BackupKit

/// An undo and a redo are acts of their moment: what others have heard of before does not come back by itself.
@Suite struct UndoneRandomTests {
    @Test(arguments: testSeeds(isTorture ? 300 : 25), [false, true])
    func whatWasTakenBack_staysTakenBack(seed: UInt64, isHubNew: Bool) throws {
        countRounds()
        try withQuickFolder { folder in
            let desk = try UndoDesk(folder, seed: seed)
            for _ in 0..<(3 + desk.random.below(6)) { try desk.doSomething() }
            try desk.settle()
            try desk.backUp()
            guard try desk.takeBack() else { return }
            let shown = try desk.shown("A")
            if isHubNew {
                // The other device has not heard of it, and the hub is lost.
                try desk.devices.syncLibrary("A")
                desk.devices.hub = try FileHub.create("\(folder)/new.db")
                for name in ["A", "B", "A", "B"] { try desk.devices.syncLibrary(name) }
            } else {
                try desk.settle()
                _ = try Restorer.restore(desk.backup, into: desk.devices["A"], RestoreOptions())
                try desk.settle()
            }
            for name in ["A", "B"] {
                #expect(try desk.shown(name) == shown, "BACKUP_TOOL_SEED=\(seed) \(name): \(desk.said)")
            }
        }
    }
}

private final class UndoDesk {
    let devices: Devices
    let backup: String
    var random: SeededGenerator
    private(set) var said: [String] = []
    private var notes = 0

    init(_ folder: String, seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        devices = try Devices(["A", "B"], in: folder)
        backup = "\(folder)/between"
        for store in devices.stores { try store.database.execute("PRAGMA synchronous = OFF") }
        try importEntry(overwrite: false)
    }

    private var path: String { "\(devices.folder)/lib.bib" }

    /// The publication as a device has it; nil where it is deleted, or nobody has it.
    func shown(_ name: String) throws -> String? {
        let all = try devices[name].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
        #expect(all.count < 2)
        return all.first?.fields
    }

    private func importEntry(overwrite: Bool) throws {
        devices.clock.advance(seconds: 2)
        notes += 1
        let entry = "@book{k, author={Loc, L}, title={On pears}, year=2003, note={\(notes)}}\n"
        try writeFile(path, entry, modified: devices.clock.now.milliseconds / 1000)
        var options = ImportOptions()
        options.overwrite = overwrite
        _ = try Importer.run([path], into: devices["A"], options)
        said.append("import \(notes)\(overwrite ? ", overwriting" : "")")
    }

    func settle() throws { for name in ["A", "B", "A", "B"] { try devices.syncLibrary(name) } }

    func backUp() throws { _ = try Exporter.export(devices["A"], to: backup, ExportOptions(form: .layout(.directory))) }

    func doSomething() throws {
        devices.clock.advance(seconds: 1)
        switch random.below(6) {
        case 0, 1: try importEntry(overwrite: random.chance(3))
        case 2:
            let ids = try devices["A"].all().filter { $0.type == RecordType.publication && !$0.isDeleted }
            if let id = ids.first { _ = try devices["A"].curate(.delete, [id.id.description]) }
            said.append("delete")
        case 3: _ = try takeBack()
        default:
            try devices.syncLibrary(random.chance(2) ? "A" : "B")
            said.append("sync")
        }
    }

    /// False where there is nothing to take back or to bring back.
    func takeBack() throws -> Bool {
        devices.clock.advance(seconds: 1)
        let store = devices["A"]
        do {
            if random.chance(3) {
                _ = try store.redoLast()
                said.append("redo")
            } else if let batch = try store.undoable() {
                _ = try store.undoLast(batch.id)
                said.append("undo of \(batch.kind)")
            } else {
                return false
            }
            return true
        } catch let error as BackupError where error.code == .failed {
            return false
        }
    }
}
