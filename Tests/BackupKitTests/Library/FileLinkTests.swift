import TestSupport
import Testing

@testable import BackupKit

/// Devices with publications whose files have the same names and other bytes.
private final class Shelves {
    let devices: Devices
    private let folder: String
    /// The bytes that each publication links.
    private(set) var texts: [String: Set<String>] = [:]
    private var backups: [String] = []

    init(_ devices: Devices) { (self.devices, folder) = (devices, devices.folder) }

    /// Writes a publication with a file, or gives a known one another file, as an import does.
    func add(_ key: String, _ name: String, _ text: String, on device: String) throws {
        devices.clock.advance()
        let store = devices[device]
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            let path = "Attachments/\(name)"
            let place: String
            switch try TestSupport.place(path, text, in: store) {
            case .added, .unchanged: place = path
            case .conflict(let other), .known(let other): place = other
            }
            if try store.livePublication(key) == nil {
                let fields = "{\"citeKey\":\"\(key)\",\"title\":\"The work \(key)\",\"linkedFiles\":[]}"
                _ = try store.ingest(
                    Record(
                        id: RecordID(zone: RecordType.libraryZone, name: key), type: RecordType.publication,
                        localID: key, fields: fields, createdAt: devices.clock.now, modifiedAt: devices.clock.now))
            }
            try store.addToSet("linkedFiles", [place], localID: key, type: RecordType.publication)
            return ((), summary: "")
        }
        texts[key, default: []].insert(text)
    }

    /// What a publication links on a device, by the bytes.
    func linked(_ key: String, on device: String) throws -> Set<String> {
        let store = devices[device]
        guard let stored = try store.livePublication(key) else { return ["(no such publication)"] }
        return Set(
            try Store.links(of: stored.record).map { path in
                guard let asset = try store.asset(path) else { return "(no file \(path))" }
                return String(decoding: try readFile("\(store.assetFolder)/\(asset.path)"), as: UTF8.self)
            })
    }

    func check(_ comment: String, on names: [String]? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
        for (key, expected) in texts {
            for name in names ?? devices.names {
                let found = try linked(key, on: name)
                #expect(found == expected, "\(key) on \(name); \(comment)", sourceLocation: sourceLocation)
            }
        }
    }

    func backUp(_ device: String) throws -> String {
        let path = "\(folder)/backup-\(backups.count)"
        _ = try Exporter.export(devices[device], to: path, ExportOptions(form: .layout(.directory)))
        backups.append(path)
        return path
    }

    func restore(_ path: String, on device: String) throws {
        devices.clock.advance()
        _ = try Restorer.restore(path, into: devices[device], RestoreOptions())
    }

    /// One thing that somebody does.
    func step(_ random: inout SeededGenerator, _ number: Int) throws -> String {
        let device = devices.names[random.below(devices.names.count)]
        switch random.below(10) {
        case 0..<4:
            let key = random.chance(3) ? "shared" : "\(device)\(number)"
            let name = ["q.pdf", "r.pdf"][random.below(2)]
            try add(key, name, "\(key) \(number)", on: device)
            return "\(device) adds \(name) to \(key)"
        case 4..<7:
            try devices.sync(device)
            return "\(device) syncs"
        case 7:
            _ = try backUp(device)
            return "\(device) backs up"
        case 8:
            guard let path = backups.randomElement(using: &random) else { return "" }
            try restore(path, on: device)
            let writes = try Restorer.restore(path, into: devices[device], RestoreOptions()).writes
            #expect(writes == 0, "a second restore of \(path) on \(device)")
            return "\(device) restores \(path)"
        default:
            guard let conflict = try devices[device].conflicts().filter(\.isAboutAssets).first else { return "" }
            _ = try ConflictResolver.resolve([conflict.id], with: .keepBoth, in: devices[device])
            return "\(device) keeps both \(conflict.subject)"
        }
    }
}

@Suite struct FileLinkTests {
    @Test func filesOfOneName_onThreeDevices_stayWithTheirPublications() throws {
        try withDevices("A", "B", "C") { devices in
            let shelves = Shelves(devices)
            for name in devices.names { try shelves.add("K\(name)", "q.pdf", "of \(name)", on: name) }
            try shelves.add("shared", "r.pdf", "r of A", on: "A")
            try shelves.add("shared", "r.pdf", "r of C", on: "C")
            try devices.sync("A")
            #expect(try devices.sync("B").conflicts == 1)
            try shelves.check("at once", on: [])
            #expect(try shelves.linked("KA", on: "B") == ["of A"] && shelves.linked("KB", on: "B") == ["of B"])
            try devices.syncAll()
            try shelves.check("after all syncs")
            for name in devices.names {
                #expect(try devices[name].digest() == devices["A"].digest())
                #expect(try devices[name].conflicts().count == 3)
            }
        }
    }

    /// A person's choice holds for all who link one of the two files.
    @Test(arguments: [ConflictChoice.keepExisting, .keepIncoming])
    func theFileThatSomebodyChose_isLinkedByAll(_ choice: ConflictChoice) throws {
        try withDevices("A", "B", "C") { devices in
            let shelves = Shelves(devices)
            for name in ["A", "B"] { try shelves.add("K\(name)", "q.pdf", "of \(name)", on: name) }
            try devices.syncAll()
            let conflict = try #require(try devices["C"].conflicts().first)
            _ = try ConflictResolver.resolve([conflict.id], with: choice, in: devices["C"])
            try devices.sync("C")
            try devices.syncAll()
            let chosen = choice == .keepExisting ? "of A" : "of B"
            for name in devices.names {
                for key in ["KA", "KB"] { #expect(try shelves.linked(key, on: name) == [chosen]) }
            }
        }
    }

    @Test func aFileThatBothChanged_isLinkedInBothVersions() throws {
        try withDevices("A", "B") { devices in
            let shelves = Shelves(devices)
            try shelves.add("K", "q.pdf", "old", on: "A")
            try devices.syncAll()
            for name in devices.names {
                let store = devices[name]
                _ = try store.batch(kind: "adopt", source: "test") {
                    try store.removeAsset(try #require(try store.asset("Attachments/q.pdf")))
                    try place("Attachments/q.pdf", "of \(name)", in: store)
                    return ((), summary: "")
                }
            }
            try devices.syncAll()
            for name in devices.names { #expect(try shelves.linked("K", on: name) == ["of A", "of B"]) }
        }
    }

    @Test func aRestore_linksWhatTheBackupLinks_andASecondOneWritesNothing() throws {
        try withDevices("A", "B") { devices in
            let shelves = Shelves(devices)
            for name in devices.names { try shelves.add("K\(name)", "q.pdf", "of \(name)", on: name) }
            let backup = try shelves.backUp("B")
            var options = RestoreOptions()
            options.dryRun = true
            let rehearsed = try Restorer.restore(backup, into: devices["A"], options)
            #expect(rehearsed.plan.allSatisfy { $0.action == .add })
            try shelves.restore(backup, on: "A")
            try shelves.check("restored", on: ["A"])
            #expect(try devices["A"].conflicts().count == 1)
            #expect(try Restorer.restore(backup, into: devices["A"], RestoreOptions()).writes == 0)
            try devices.syncAll()
            try shelves.check("after syncs")
        }
    }

    @Test func whatLeavesQuarantine_keepsItsFile() throws {
        try withDevices("A", "B") { devices in
            let shelves = Shelves(devices)
            for name in devices.names { try shelves.add("K\(name)", "q.pdf", "of \(name)", on: name) }
            var options = RestoreOptions()
            options.policy = .quarantine
            _ = try Restorer.restore(shelves.backUp("B"), into: devices["A"], options)
            _ = try Quarantine.enableCloud(["KB"], in: devices["A"])
            try shelves.check("released", on: ["A"])
        }
    }

    @Test func anUndoOfTheImport_takesTheRelinkedPublicationBack() throws {
        try withDevices("A", "B") { devices in
            let shelves = Shelves(devices)
            for name in devices.names { try shelves.add("K\(name)", "q.pdf", "of \(name)", on: name) }
            try devices.sync("A")
            try devices.sync("B")
            _ = try devices["B"].undoLast()
            try devices.syncAll()
            for name in devices.names { #expect(try devices[name].livePublication("KB") == nil) }
            #expect(try shelves.linked("KA", on: "B") == ["of A"])
        }
    }

    @Test(arguments: testSeeds(12))
    func whateverDevicesDo_everyPublicationLinksItsOwnBytes(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B", "C") { devices in
            let shelves = Shelves(devices)
            var log: [String] = []
            for number in 0..<30 {
                log.append(try shelves.step(&random, number))
                if random.chance(10) { devices.clock.advance(seconds: 86_400) }
            }
            try devices.syncAll(rounds: 3)
            try shelves.check("seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
            for name in devices.names { #expect(try devices[name].digest() == devices["A"].digest()) }
        }
    }
}
