import TestSupport
import Testing

@testable import BackupKit

/// Devices on which people use paths of files again, for works that have nothing to do with each other.
final class Papers {
    let devices: Devices
    /// All bytes that somebody ever gave to a work.
    private var own: [String: Set<String>] = [:]
    private var backups: [String] = []
    static let paths = ["Attachments/q.pdf", "Attachments/r.pdf"]

    init(_ devices: Devices) { self.devices = devices }

    /// What an import of an entry with its file does.
    func add(_ key: String, _ text: String, at path: String = paths[0], on device: String) throws {
        devices.clock.advance()
        let store = devices[device]
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            let place: String
            switch try TestSupport.place(path, text, in: store) {
            case .added, .unchanged: place = path
            case .conflict(let other), .known(let other): place = other
            }
            if try store.livePublication(key) == nil {
                _ = try store.ingest(
                    Record(
                        id: RecordID(zone: RecordType.libraryZone, name: key), type: RecordType.publication,
                        localID: key, fields: "{\"citeKey\":\"\(key)\",\"title\":\"The work \(key)\"}",
                        createdAt: devices.clock.now, modifiedAt: devices.clock.now))
            }
            try store.addToSet("linkedFiles", [place], localID: key, type: RecordType.publication)
            return ((), summary: "")
        }
        own[key, default: []].insert(text)
    }

    /// What an app and `store adopt` do.
    func change(to text: String, on device: String) throws {
        let store = devices[device]
        _ = try store.batch(kind: "adopt", source: "test") {
            try store.removeAsset(try #require(try store.asset(Self.paths[0])))
            try TestSupport.place(Self.paths[0], text, in: store)
            return ((), summary: "")
        }
        for key in own.keys { own[key]?.insert(text) }
    }

    func edit(_ key: String, on device: String, _ number: Int = 0) throws {
        devices.clock.advance()
        guard let stored = try devices[device].livePublication(key), !stored.record.isLocalOnly else { return }
        var record = stored.record
        record.fields = Fields.text(
            try Fields.parse(record.fields).filter { $0.name != "note" } + [Field("note", "\"\(device)\(number)\"")])
        record.modifiedAt = devices.clock.now
        try devices[device].take(record)
    }

    func undo(on device: String, redo: Bool = false) throws {
        devices.clock.advance()
        _ = try redo ? devices[device].redoLast() : devices[device].undoLast()
    }

    func curate(_ what: Store.Curation, _ key: String, on device: String) throws {
        devices.clock.advance()
        guard let stored = try devices[device].livePublication(key) else { return }
        if what == .enableCloud, !stored.record.isLocalOnly { return }
        _ = try devices[device].curate(what, [stored.record.id.description])
    }

    func backUp(_ device: String) throws -> String {
        let path = "\(devices.folder)/backup-\(backups.count)"
        _ = try Exporter.export(devices[device], to: path, ExportOptions(form: .layout(.directory)))
        backups.append(path)
        return path
    }

    func restore(_ path: String, on device: String, replacing: Bool = false, policy: SyncPolicy = .honor) throws {
        devices.clock.advance()
        var options = RestoreOptions()
        options.mode = replacing ? .replace : .merge
        options.policy = policy
        _ = try Restorer.restore(path, into: devices[device], options)
    }

    /// What a work links on a device, by the bytes.
    func linked(_ key: String, on device: String) throws -> Set<String> {
        let store = devices[device]
        guard let stored = try store.livePublication(key) else { return ["(no such publication)"] }
        return Set(
            try Store.links(of: stored.record).map { path in
                guard let asset = try store.asset(path) else { return "(no file \(path))" }
                return String(decoding: try readFile("\(store.assetFolder)/\(asset.path)"), as: UTF8.self)
            })
    }

    /// Every living work links bytes that somebody gave to it, and no others.
    func check(_ comment: String, on names: [String]? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
        for name in names ?? devices.names {
            for (key, texts) in own where try devices[name].livePublication(key) != nil {
                let found = try linked(key, on: name)
                #expect(
                    found.isSubset(of: texts), "\(key) on \(name) links strange bytes; \(comment)",
                    sourceLocation: sourceLocation)
            }
        }
    }

    /// One thing that somebody does.
    func step(_ random: inout SeededGenerator, _ number: Int) throws -> String {
        let device = devices.names[random.below(devices.names.count)]
        let key = ["k1", "k2", "k3"][random.below(3)]
        switch random.below(18) {
        case 0..<4:
            let (path, text) = (Self.paths[random.below(2)], "bytes \(random.below(3))")
            try add(key, text, at: path, on: device)
            return "\(device) imports \(key) with \(path): \(text)"
        case 4..<8:
            try devices.sync(device)
            return "\(device) syncs"
        case 8, 9:
            guard (try? undo(on: device)) != nil else { return "" }
            return "\(device) undoes"
        case 10:
            guard (try? undo(on: device, redo: true)) != nil else { return "" }
            return "\(device) redoes"
        case 11:
            try edit(key, on: device, number)
            return "\(device) edits \(key)"
        case 12:
            try curate(random.chance(2) ? .setLocal : .enableCloud, key, on: device)
            return "\(device) keeps \(key), or gives it back"
        case 13:
            try curate(.delete, key, on: device)
            return "\(device) deletes \(key)"
        case 14:
            return "\(device) backs up as \(try backUp(device))"
        default:
            guard let path = backups.randomElement(using: &random) else { return "" }
            let (replacing, policy) = (random.chance(3), [SyncPolicy.honor, .resurrect][random.below(2)])
            try restore(path, on: device, replacing: replacing, policy: policy)
            return "\(device) restores \(path), replacing: \(replacing), \(policy)"
        }
    }
}

@Suite struct OwnBytesTests {
    /// What B does with the work whose file A takes back before it uses the path for another one.
    enum Use: String, CaseIterable, Sendable { case edited, secondWork, keptHere, unknownToTheHub }

    @Test(arguments: Use.allCases, [true, false])
    func aPathThatIsUsedAgain_takesNoFileOfALivingWork(_ use: Use, _ isDeleteSynced: Bool) throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.syncAll()
            switch use {
            case .edited: break
            case .secondWork:
                try papers.add("k3", "bytes of k1", on: "B")
                try devices.syncAll()
            case .keptHere: try papers.curate(.setLocal, "k1", on: "B")
            case .unknownToTheHub: try papers.add("k3", "bytes of k1", on: "B")
            }
            try papers.undo(on: "A")
            if use == .edited { try papers.edit("k1", on: "B") }
            if isDeleteSynced { try devices.sync("A") }
            try papers.add("k2", "bytes of k2", on: "A")
            for name in ["A", "B"] { try devices.sync(name) }
            try papers.check("at once", on: ["B"])
            try devices.syncAll()
            try papers.check("\(use)")
            let key = use == .edited || use == .keptHere ? "k1" : "k3"
            #expect(try papers.linked(key, on: "B") == ["bytes of k1"])
            #expect(try papers.linked("k2", on: "C") == ["bytes of k2"])
        }
    }

    /// The bytes of the file that nobody links any more go with it, and nobody is asked.
    @Test func aPathThatIsUsedAgain_whereNoWorkLinksTheOldFile_isNoConflict() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try devices.syncAll()
            try papers.undo(on: "A")
            try devices.sync("A")
            try papers.add("k2", "bytes of k2", on: "A")
            try devices.syncAll()
            for name in devices.names {
                #expect(try papers.linked("k2", on: name) == ["bytes of k2"])
                #expect(try devices[name].conflicts().isEmpty && devices[name].info().assets == 1)
            }
        }
    }

    @Test func aFileThatIsChangedInPlace_isItsNewVersionOnAllDevices() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try papers.edit("k1", on: "B")
            for text in ["second", "third"] {
                try papers.change(to: text, on: "A")
                try devices.sync("A")
                if text == "second" { try devices.sync("C") }
            }
            try papers.change(to: "fourth", on: "C")
            #expect(try devices.sync("C").conflicts == 1)
            try devices.syncAll()
            for name in devices.names { #expect(try papers.linked("k1", on: name) == ["third", "fourth"]) }
            #expect(try devices["B"].conflicts().count == 1)
        }
    }

    /// Whoever changed the file did not know of the other work.
    @Test(arguments: [true, false])
    func aFileThatIsChangedInPlace_leavesItsBytesToAWorkThatTheHubDoesNotKnow(isKeptHere: Bool) throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try papers.add("k3", "first", on: "B")
            if isKeptHere { try papers.curate(.setLocal, "k3", on: "B") }
            try papers.change(to: "second", on: "A")
            try devices.sync("A")
            #expect(try devices.sync("B").needsAttention)
            try devices.syncAll()
            for name in devices.names { #expect(try papers.linked("k1", on: name) == ["second"]) }
            #expect(try papers.linked("k3", on: "B") == ["first"])
            if !isKeptHere { #expect(try papers.linked("k3", on: "A") == ["first"]) }
        }
    }

    /// The other half: the change is not sent when the other work comes.
    @Test func aChangeThatIsNotSent_leavesTheOldBytesToAWorkThatComes() throws {
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "first", on: "A")
            try devices.syncAll()
            try papers.change(to: "second", on: "B")
            try papers.add("k3", "first", on: "A")
            try devices.sync("A")
            #expect(try devices.sync("B").needsAttention)
            try devices.syncAll()
            for name in devices.names {
                #expect(try papers.linked("k3", on: name) == ["first"], "\(name)")
                #expect(try papers.linked("k1", on: name).contains("second"), "\(name)")
            }
        }
    }

    @Test func anUndoOfADelete_bringsAWorkBackWithItsOwnBytes() throws {
        for isDeleteSynced in [true, false] {
            try withDevices("A", "B") { devices in
                let papers = Papers(devices)
                try papers.add("k1", "bytes of k1", on: "A")
                try devices.syncAll()
                try papers.add("k3", "bytes of k1", on: "B")
                try papers.curate(.delete, "k3", on: "B")
                try papers.undo(on: "A")
                if isDeleteSynced { for name in ["A", "B"] { try devices.sync(name) } }
                try papers.add("k2", "bytes of k2", on: "A")
                for name in ["A", "B"] { try devices.sync(name) }
                try papers.undo(on: "B")
                #expect(try papers.linked("k3", on: "B") == ["bytes of k1"])
                try devices.syncAll()
                for name in devices.names {
                    #expect(try papers.linked("k3", on: name) == ["bytes of k1"])
                    #expect(try papers.linked("k2", on: name) == ["bytes of k2"])
                }
            }
        }
    }

    @Test func aRedoOfAnImport_bringsAWorkBackWithItsOwnBytes() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.undo(on: "A")
            try papers.add("k2", "bytes of k2", on: "B")
            for name in ["B", "A"] { try devices.sync(name) }
            try papers.undo(on: "A", redo: true)
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "A") == ["bytes of \(key)"]) }
            try devices.syncAll()
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "B") == ["bytes of \(key)"]) }
        }
    }

    /// What is kept on this device only does not show the backup's file.
    @Test func aReplacingRestore_leavesTheBytesOfWhatIsKeptHere() throws {
        try withDevices("A", "B") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            let backup = try papers.backUp("A")
            try papers.add("k2", "bytes of k2", on: "B")
            try papers.curate(.setLocal, "k2", on: "B")
            try papers.restore(backup, on: "B", replacing: true)
            for key in ["k1", "k2"] { #expect(try papers.linked(key, on: "B") == ["bytes of \(key)"]) }
            let assets = try devices["B"].info().assets
            try papers.restore(backup, on: "B", replacing: true)
            #expect(try devices["B"].info().assets == assets)
        }
    }

    @Test func aFileThatDidNotComeWithItsWork_isNamedOnce() throws {
        var limits = HubLimits.file
        limits.assetBytes = 20
        try withDevices("A", "B", limits: limits) { devices in
            let papers = Papers(devices)
            try papers.add("k1", "more bytes than the hub takes", on: "A")
            try papers.add("k2", "bytes of k2", at: Papers.paths[1], on: "A")
            #expect(try devices.sync("A").needsAttention)
            let first = try devices.sync("B")
            #expect(first.findings.map(\.code) == [.linkMissing] && first.needsAttention)
            #expect(first.findings.first?.subject == Papers.paths[0])
            try papers.edit("k1", on: "A")
            try devices.sync("A")
            let second = try devices.sync("B")
            #expect(second.pulled == 1 && second.findings.isEmpty && !second.needsAttention)
        }
    }

    @Test func nothingIsRedone_afterOtherWork() throws {
        try withDevices("A") { devices in
            let papers = Papers(devices)
            try papers.add("k1", "bytes of k1", on: "A")
            try papers.undo(on: "A")
            try papers.add("k2", "bytes of k2", on: "A")
            try papers.undo(on: "A")
            try papers.undo(on: "A", redo: true)
            #expect(throws: BackupError.self) { try papers.undo(on: "A", redo: true) }
            #expect(try papers.linked("k2", on: "A") == ["bytes of k2"])
        }
    }

    @Test(arguments: testSeeds(isTorture ? 600 : 16))
    func whateverDevicesDo_noWorkLinksAnothersBytes(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        try withDevices("A", "B", "C") { devices in
            let papers = Papers(devices)
            var log: [String] = []
            for number in 0..<30 {
                log.append(try papers.step(&random, number))
                try papers.check("at once; seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
            }
            try devices.syncAll(rounds: 3)
            try papers.check("in the end; seed \(seed):\n\(log.filter { !$0.isEmpty }.joined(separator: "\n"))")
            for name in devices.names { #expect(try devices[name].conflicts().count == devices["A"].conflicts().count) }
        }
    }
}
