import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// What people do with a publication on one of several devices.
extension Devices {
    func edit(_ key: String, on device: String, _ number: Int = 0) throws {
        clock.advance()
        guard let stored = try self[device].livePublication(key), !stored.record.isLocalOnly else { return }
        var record = stored.record
        record.fields = Fields.text(
            try Fields.parse(record.fields).filter { $0.name != "note" } + [Field("note", "\"\(device)\(number)\"")])
        record.modifiedAt = clock.now
        try self[device].take(record)
    }

    func undo(on device: String, redo: Bool = false) throws {
        clock.advance()
        _ = try redo ? self[device].redoLast() : self[device].undoLast()
    }

    func keepHere(_ key: String, on device: String) throws {
        clock.advance()
        guard let stored = try self[device].livePublication(key) else { return }
        _ = try self[device].keepOnThisDevice([stored.record.id.description])
    }

    func curate(_ what: Store.Curation, _ key: String, on device: String) throws {
        clock.advance()
        guard let stored = try self[device].livePublication(key) else { return }
        if what == .enableCloud, !stored.record.isLocalOnly { return }
        _ = try self[device].curate(what, [stored.record.id.description])
    }
}

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
            if try store.livePublication(key) == nil {
                _ = try store.ingest(
                    Record(
                        id: RecordID(zone: RecordType.libraryZone, name: key), type: RecordType.publication,
                        localID: key, fields: "{\"citeKey\":\"\(key)\",\"title\":\"The work \(key)\"}",
                        createdAt: devices.clock.now, modifiedAt: devices.clock.now))
            }
            let isMeantElsewhere = try OpenLinks(store).mean(path) { [ByteName(key)] }
            let place = try store.withIncomingFolder { folder in
                try writeFile("\(folder)/file", text)
                let asset = Asset(path: path, size: Int64(text.utf8.count), digest: .of(text))
                return try Intake(store).take(asset, from: "\(folder)/file", isMeantElsewhere: isMeantElsewhere)
            }
            try store.addToSet("linkedFiles", [#require(place)], localID: key, type: RecordType.publication)
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

    /// A file is away for a while: on a disk that is not there, or moved by hand.
    func takeAway(_ path: String, on device: String) {
        rename("\(devices[device].assetFolder)/\(path)", away(path, of: device))
    }

    private func away(_ path: String, of device: String) -> String {
        "\(devices.folder)/\(device)-\(lastComponent(of: path))"
    }

    func putBack(_ path: String, on device: String) throws {
        let place = "\(devices[device].assetFolder)/\(path)"
        let away = away(path, of: device)
        guard try FileStatus.ofName(away) != nil, try FileStatus.ofName(place) == nil else { return }
        if try Store.digest(ofFile: away) == devices[device].asset(path)?.digest { rename(away, place) }
    }

    /// An app writes into a file, and nobody has adopted that yet.
    func writeInPlace(_ path: String, on device: String) throws {
        let place = "\(devices[device].assetFolder)/\(path)"
        guard try FileStatus.ofName(place) != nil else { return }
        try writeFile(place, Self.written)
    }

    /// The files that are not in a device's folder, or have other bytes than its store says.
    private func strayed(on device: String) throws -> [Asset] {
        let store = devices[device]
        var found: [Asset] = []
        try store.forEachAsset { if try store.file(at: $0.path)?.digest != $0.digest { found.append($0) } }
        return found
    }

    /// Before the first sync of a file: then no device has it.
    func lose(_ path: String, on device: String) throws {
        try remove([try #require(try devices[device].asset(path))], on: device)
    }

    private func remove(_ assets: [Asset], on device: String) throws {
        _ = try devices[device].batch(kind: "adopt", source: "test") { () -> (Void, summary: String) in
            for asset in assets { try devices[device].removeAsset(asset) }
            return ((), summary: "")
        }
    }

    /// Whoever looks at the stores afterwards finds them sound.
    func tidyUp() throws {
        for name in devices.names {
            try remove(strayed(on: name), on: name)
        }
    }

    private static let written = "written by an app"

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
                guard let asset = try store.asset(path), try store.isFile(at: asset.path) else { return "" }
                // A newer version cannot come, which each sync says.
                if let hub = try store.hubAsset(path), hub.isWanted, hub.base == asset.digest.hex { return "" }
                return String(decoding: try readFile("\(store.assetFolder)/\(asset.path)"), as: UTF8.self)
            })
    }

    /// Every living work links bytes that somebody gave to it, and no others.
    func check(_ comment: String, on names: [String]? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
        for name in names ?? devices.names {
            for (key, texts) in own where try devices[name].livePublication(key) != nil {
                let found = try linked(key, on: name)
                #expect(
                    found.isSubset(of: texts.union(["", Self.written])),
                    "\(key) on \(name) links strange bytes; \(comment)",
                    sourceLocation: sourceLocation)
            }
        }
    }

    /// One thing that somebody does.
    func step(_ random: inout SeededGenerator, _ number: Int) throws -> String {
        let device = devices.names[random.below(devices.names.count)]
        let key = ["k1", "k2", "k3"][random.below(3)]
        let path = Self.paths[random.below(2)]
        switch random.below(21) {
        case 0..<4:
            let text = ["bytes 0", "bytes 1", "bytes that the hub does not take"][random.below(3)]
            try add(key, text, at: path, on: device)
            return "\(device) imports \(key) with \(path): \(text)"
        case 4..<8:
            try devices.sync(device)
            return "\(device) syncs"
        case 8, 9:
            guard (try? devices.undo(on: device)) != nil else { return "" }
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
            takeAway(path, on: device)
            return "\(device) has no \(path)"
        case 15:
            try putBack(path, on: device)
            return "\(device) has \(path) again"
        case 16:
            try writeInPlace(path, on: device)
            return "an app writes into \(path) of \(device)"
        case 17:
            return "\(device) backs up as \(try backUp(device))"
        default:
            guard let path = backups.randomElement(using: &random) else { return "" }
            let (replacing, policy) = (random.chance(3), [SyncPolicy.honor, .resurrect][random.below(2)])
            try restore(path, on: device, replacing: replacing, policy: policy)
            return "\(device) restores \(path), replacing: \(replacing), \(policy)"
        }
    }
}
