import TestSupport
import Testing

@testable import BackupKit

/// Devices whose works name the same files. A path has the same bytes everywhere, so a link that finds none lost them.
private final class Stacks {
    let devices: Devices
    private var backups: [String] = []
    private static let paths = ["Attachments/q.pdf", "Attachments/r.pdf"]

    init(_ devices: Devices) { self.devices = devices }

    /// What an import of an entry with its file does.
    func add(_ key: String, _ path: String = paths[0], on device: String) throws {
        devices.clock.advance()
        let store = devices[device]
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            try place(path, "PDF \(path)", in: store)
            if try store.livePublication(key) == nil {
                _ = try store.ingest(
                    Record(
                        id: RecordID(zone: RecordType.libraryZone, name: key), type: RecordType.publication,
                        localID: key, fields: "{\"citeKey\":\"\(key)\",\"title\":\"The work \(key)\"}",
                        createdAt: devices.clock.now, modifiedAt: devices.clock.now))
            }
            try store.addToSet("linkedFiles", [path], localID: key, type: RecordType.publication)
            return ((), summary: "")
        }
    }

    func replace(_ path: String, on device: String) throws {
        devices.clock.advance()
        var options = RestoreOptions()
        options.mode = .replace
        _ = try Restorer.restore(path, into: devices[device], options)
    }

    func backUp(_ device: String) throws -> String {
        let path = "\(devices.folder)/backup-\(backups.count)"
        _ = try Exporter.export(devices[device], to: path, ExportOptions(form: .layout(.directory)))
        backups.append(path)
        return path
    }

    /// Every living work of every device finds the bytes of what it links.
    func check(_ comment: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        for name in devices.names {
            let store = devices[name]
            for record in try store.all() where !record.isDeleted && record.type == RecordType.publication {
                for path in try Store.links(of: record) {
                    let asset = try store.asset(path)
                    let bytes = try asset.map { try readFile("\(store.assetFolder)/\($0.path)") }
                    #expect(
                        bytes.map { String(decoding: $0, as: UTF8.self) } == "PDF \(path)",
                        "\(record.id) on \(name) links \(path); \(comment)", sourceLocation: sourceLocation)
                }
            }
        }
    }

    /// One thing that somebody does.
    func step(_ random: inout SeededGenerator, _ number: Int) throws -> String {
        let device = devices.names[random.below(devices.names.count)]
        let key = ["k1", "k2", "k3"][random.below(3)]
        switch random.below(16) {
        case 0..<4:
            let path = Self.paths[random.below(2)]
            try add(key, path, on: device)
            return "\(device) imports \(key) with \(path)"
        case 4..<8:
            try devices.sync(device)
            return "\(device) syncs"
        case 8, 9:
            guard try devices[device].undoable() != nil else { return "" }
            do {
                try devices.undo(on: device)
            } catch let error as BackupError where error.message.contains("changed nothing") {
                return ""
            }
            return "\(device) undoes"
        case 10:
            guard (try? devices.undo(on: device, redo: true)) != nil else { return "" }
            return "\(device) redoes"
        case 11:
            try devices.edit(key, on: device, number)
            return "\(device) edits \(key)"
        case 12:
            try random.chance(2) ? devices.keepHere(key, on: device) : devices.curate(.enableCloud, key, on: device)
            return "\(device) keeps \(key), or gives it back"
        case 13:
            try devices.curate(.delete, key, on: device)
            return "\(device) deletes \(key)"
        case 14:
            _ = try backUp(device)
            return "\(device) backs up"
        default:
            guard let path = backups.randomElement(using: &random) else { return "" }
            try replace(path, on: device)
            return "\(device) replaces all by \(path)"
        }
    }
}

@Suite struct SharedFileTests {
    /// What B does with its work while A takes back the import that brought the file.
    enum Use: String, CaseIterable, Sendable {
        case secondWork, localBefore, localAfter, editedAfter, editedAfterASync, localInTheWay
    }

    @Test(arguments: Use.allCases) func anUndoOfAnImport_takesNoFileThatAnotherDeviceLinks(_ use: Use) throws {
        try withDevices("A", "B", "C") { devices in
            let stacks = Stacks(devices)
            try stacks.add("k1", on: "A")
            try devices.syncAll()
            switch use {
            case .secondWork: try stacks.add("k2", on: "B")
            case .localBefore: try devices.keepHere("k1", on: "B")
            case .localInTheWay:
                try devices.keepHere("k1", on: "B")
                try devices.sync("B")
            default: break
            }
            try devices.undo(on: "A")
            switch use {
            case .localAfter: try devices.keepHere("k1", on: "B")
            case .editedAfter: try devices.edit("k1", on: "B")
            case .editedAfterASync:
                try devices.edit("k1", on: "B")
                try devices.sync("C")
                try devices.sync("B")
            default: break
            }
            for name in ["B", "A", "C", "B", "A"] { try devices.sync(name) }
            try stacks.check("\(use)")
            #expect(try devices["B"].asset("Attachments/q.pdf") != nil)
        }
    }

    @Test func aFileThatNobodyLinks_goesEverywhere() throws {
        try withDevices("A", "B") { devices in
            let stacks = Stacks(devices)
            try stacks.add("k1", on: "A")
            try devices.syncAll()
            try devices.undo(on: "A")
            try devices.syncAll()
            for name in devices.names { #expect(try devices[name].asset("Attachments/q.pdf") == nil) }
        }
    }

    /// The other device has sent its work before the undo, so the hub hears of no file again.
    @Test(arguments: [true, false]) func aWorkThatComesAfterTheUndo_bringsItsFileBack(_ isUndoSent: Bool) throws {
        try withDevices("A", "B") { devices in
            let stacks = Stacks(devices)
            try stacks.add("k1", on: "A")
            try devices.syncAll()
            try stacks.add("k2", on: "B")
            if !isUndoSent { try devices.sync("B") }
            try devices.undo(on: "A")
            try devices.sync("A")
            if !isUndoSent { try stacks.check("at once") }
            try devices.syncAll()
            try stacks.check("in the end")
        }
    }

    @Test func anUndo_leavesAFileThatAnotherWorkOfThisStoreLinks() throws {
        try withDevices("A", "B") { devices in
            let stacks = Stacks(devices)
            try stacks.add("k1", on: "A")
            try devices.syncAll()
            try stacks.add("k2", on: "B")
            try devices.sync("B")
            try devices.sync("A")
            try devices.undo(on: "A")
            try stacks.check("undone")
            try devices.undo(on: "A", redo: true)
            try stacks.check("redone")
            try devices.syncAll()
            try stacks.check("synced")
        }
    }

    @Test func aReplacingRestore_leavesTheFilesOfWhatIsKeptHere() throws {
        try withDevices("A") { devices in
            let stacks = Stacks(devices)
            try stacks.add("k1", on: "A")
            let empty = "\(devices.folder)/empty.db"
            _ = try Exporter.export(
                Store.create(empty, clock: devices.clock.clock), to: "\(devices.folder)/empty",
                ExportOptions(form: .layout(.directory)))
            try devices.keepHere("k1", on: "A")
            try stacks.replace("\(devices.folder)/empty", on: "A")
            #expect(try devices["A"].livePublication("k1") != nil)
            try stacks.check("replaced")
        }
    }

    /// A log's photo is a file like any other.
    @Test func anUndoOfALog_takesNoPhotoThatAnotherDevicesEventNames() throws {
        try withDevices("A", "B") { devices in
            for (name, id) in [("A", "e1"), ("B", "e2")] {
                devices.clock.advance()
                let store = devices[name]
                _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
                    try place("Attachments/p.jpg", "photo", in: store)
                    _ = try store.ingest(
                        record(id, "{\"photo\":\"p.jpg\"}", at: 10, type: RecordType.event, zone: RecordType.eventZone))
                    return ((), summary: "")
                }
                if name == "A" { try devices.syncAll() }
            }
            devices.clock.advance()
            _ = try devices["A"].undoLast()
            for name in ["B", "A", "B"] { try devices.sync(name) }
            for name in devices.names { #expect(try devices[name].asset("Attachments/p.jpg") != nil, "\(name)") }
        }
    }

    @Test(arguments: testSeeds(16))
    func whateverDevicesDo_everyLivingWorkHasItsFiles(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B", "C") { devices in
            let stacks = Stacks(devices)
            var log: [String] = []
            for number in 0..<30 { log.append(try stacks.step(&random, number)) }
            try devices.syncAll(rounds: 3)
            try stacks.check("seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
        }
    }
}
