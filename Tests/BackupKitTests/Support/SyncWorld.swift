import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The end of a process, as far as its database can tell: everything that was not committed is gone.
private struct Crash: Error {}

/// What a test knows of a record without any store: when somebody wrote it, and when somebody deleted it.
struct Story {
    /// A record that is given back to the cloud says its values again: `isNew` is false for these.
    var written: [(time: Timestamp, field: String, value: String, isNew: Bool)] = []
    var deleted: [Timestamp] = []
    /// A restore wanted it alive.
    var kept: [Timestamp] = []
    /// Somebody did what has no single meaning for the others (an undo, a restore that takes out): only that all
    /// devices agree is known.
    var isOpen = false

    var lastWrite: Timestamp { (written.map(\.time) + kept).max() ?? .distantPast }
    var lastDelete: Timestamp { deleted.max() ?? .distantPast }
}

/// Several devices that work, sync, crash and are set back, in an order that a seed decides.
final class World {
    static let ids = ["r1", "r2", "r3", "r4", "r5"]

    private let folder: String
    var random: SeededGenerator
    let clock = TestClock()
    let simulator: HubSimulator
    private(set) var devices: [Store] = []
    /// Clocks differ by seconds and some tenths; in some worlds, by hours.
    private let skews: [Int64]
    let hasWrongClocks: Bool
    var stories: [String: Story] = [:]
    private var counter = 0
    private var hubs = 1
    private var backup: [UInt8]?
    /// What backups of devices hold.
    var backups: [[Record]] = []
    private let hasUndo: Bool
    private let hasAssets: Bool
    /// Whether there are publications under a few cite keys, and people who decide about them.
    let hasLibrary: Bool
    var library = Shelf()
    private(set) var log: [String] = []

    /// An empty store and an empty hub, which every world of a test begins with as a copy.
    static func template(in folder: String, recordsPerPush: Int) throws -> String {
        let template = "\(folder)/template"
        try Directory.create(template)
        _ = try Store.create("\(template)/store.db")
        var limits = HubLimits.file
        limits.recordsPerPush = recordsPerPush
        _ = try FileHub.create("\(template)/hub.db", limits: limits)
        return template
    }

    init(seed: UInt64, in folder: String, template: String) throws {
        self.folder = folder
        random = SeededGenerator(seed: seed)
        hasUndo = random.chance(2)
        hasAssets = random.chance(8)
        hasLibrary = random.chance(2)
        try copyTree(template, to: folder)
        simulator = HubSimulator(try FileHub("\(folder)/hub.db"), .all, seed: random.next())
        let count = 3 + random.below(3)
        var skews: [Int64] = []
        hasWrongClocks = random.chance(3)
        for _ in 0..<count { skews.append((Int64(random.below(11)) - 5) * (hasWrongClocks ? 8000 : 1)) }
        self.skews = skews
        for number in 0..<count {
            try copyTree("\(template)/store.db.assets", to: path(number) + ".assets")
            try copyFile("\(template)/store.db", to: path(number))
            devices.append(try open(number))
        }
    }

    func path(_ number: Int) -> String { "\(folder)/device\(number).db" }

    private func copyFile(_ source: String, to target: String) throws {
        unlink(target)
        let bytes = try readFile(source)
        try bytes.withUnsafeBytes { try FileHandle.create(target).write($0) }
    }

    func now(_ number: Int) -> Timestamp { devices[number].now() }

    private func open(_ number: Int) throws -> Store {
        let (clock, skew) = (clock, skews[number] * 1000 + Int64(number) * 100)
        let store = try Store(
            path(number), .write, clock: Clock { Timestamp(milliseconds: clock.now.milliseconds + skew) })
        try store.database.execute("PRAGMA synchronous = OFF")
        return store
    }

    // MARK: What people do

    func step() throws {
        clock.advance()
        let number = random.below(devices.count)
        let id = Self.ids[random.below(Self.ids.count)]
        let before = log.count
        defer { if log.count > before { log[before] = "\(log.count): \(log[before])" } }
        if hasLibrary, random.chance(3) { return try workOnLibrary(number) }
        switch random.below(hasUndo ? 23 : 20) {
        case 0..<5: try edit(number, id)
        case 5..<7: try delete(number, id)
        case 7: try setLocal(number, id)
        case 8: try enableCloud(number, id)
        case 9: try importOld(number, id)
        case 10: try resurrect(number, id)
        case 11..<16: try syncWithMishaps(number)
        case 16: random.chance(4) ? try resetHub() : hasAssets ? try putFile(number) : try edit(number, id)
        case 17..<20: try backUpOrRestore(number)
        case 20: try importBatch(number)
        case 21: try undo(number)
        default: try takeOut(number, id)
        }
    }

    func say(_ what: String, _ number: Int, _ more: String = "") {
        log.append("device\(number) \(what) \(more)")
    }

    /// The record as the device shows it; the copy that is kept on it, if there is one.
    func shown(_ number: Int, _ id: String) throws -> Record? {
        try devices[number].records(localID: id).map(\.record).first { !$0.isDeleted }
    }

    private func value() -> String {
        counter += 1
        return String(counter)
    }

    private func edited(_ number: Int, _ id: String, at time: Timestamp) throws -> (Record, [(String, String)])? {
        let known = try shown(number, id)
        if known?.isLocalOnly == true { return nil }
        let field = random.chance(2) ? "x" : "y"
        guard var record = known else {
            let values = [("x", value()), ("y", value())]
            let record = Record(
                id: RecordID(zone: "Z", name: id), type: "Item", localID: id,
                fields: "{\"x\":\(values[0].1),\"y\":\(values[1].1)}", createdAt: time, modifiedAt: time,
                deviceID: "device\(number)")
            return (record, values)
        }
        let new = value()
        var fields = try Fields.parse(record.fields)
        for index in fields.indices where record.fieldTimes[fields[index].name] == nil {
            record.fieldTimes[fields[index].name] = record.modifiedAt
        }
        for index in fields.indices where fields[index].name == field { fields[index].value = new }
        record.fields = Fields.text(fields)
        record.fieldTimes[field] = time
        record.modifiedAt = max(time, record.modifiedAt)
        record.deviceID = "device\(number)"
        return (record, [(field, new)])
    }

    func note(_ id: String, _ time: Timestamp, _ values: [(String, String)], isNew: Bool = true) {
        for (field, value) in values { stories[id, default: Story()].written.append((time, field, value, isNew)) }
    }

    private func edit(_ number: Int, _ id: String) throws {
        let time = now(number)
        guard let (record, values) = try edited(number, id, at: time) else { return }
        try devices[number].take(record)
        note(id, time, values)
        say("edits \(id)", number, "\(values) at \(time)")
    }

    /// What comes from an old file: older than most of what there is.
    private func importOld(_ number: Int, _ id: String) throws {
        let time = Timestamp(milliseconds: now(number).milliseconds - Int64(random.below(20)) * 1000 - 500)
        guard try shown(number, id)?.isLocalOnly != true else { return }
        let values = [("x", value()), ("y", value())]
        let record = Record(
            id: RecordID(zone: "Z", name: id), type: "Item", localID: id,
            fields: "{\"x\":\(values[0].1),\"y\":\(values[1].1)}", createdAt: time, modifiedAt: time)
        try devices[number].take(record)
        note(id, time, values)
        say("imports \(id)", number, "\(values) of \(time)")
    }

    /// A delete of another clock that has not been heard of does not reach what is alive on purpose: their times tell no
    /// order.
    func noteKeptOnPurpose(_ id: String) {
        if hasWrongClocks { stories[id, default: Story()].isOpen = true }
    }

    private func resurrect(_ number: Int, _ id: String) throws {
        guard try shown(number, id) == nil, let dead = try devices[number].record(RecordID(zone: "Z", name: id)) else {
            return
        }
        let values = [("x", value()), ("y", value())]
        var record = dead.record
        record.deletedAt = nil
        record.fields = "{\"x\":\(values[0].1),\"y\":\(values[1].1)}"
        record.modifiedAt = Timestamp(milliseconds: record.modifiedAt.milliseconds - 100_000)
        try devices[number].take(record, resurrect: true)
        let time = try shown(number, id)?.modifiedAt ?? .distantPast
        note(id, time, values)
        noteKeptOnPurpose(id)
        say("resurrects \(id)", number, "\(values) at \(time)")
    }

    private func delete(_ number: Int, _ id: String) throws {
        guard let record = try shown(number, id) else { return }
        _ = try devices[number].delete(["Z/\(record.id.name)"])
        try noteTombstone(number, id)
        say("deletes \(id)", number)
    }

    private func noteTombstone(_ number: Int, _ id: String) throws {
        let tombstones = try devices[number].records(localID: id).filter(\.record.isDeleted)
        // A copy that was never anybody else's leaves none.
        guard let time = tombstones.map(\.record.modifiedAt).max() else { return }
        stories[id, default: Story()].deleted.append(time)
    }

    private func setLocal(_ number: Int, _ id: String) throws {
        guard let record = try shown(number, id), !record.isLocalOnly else { return }
        _ = try devices[number].setLocal(["Z/\(record.id.name)"])
        try noteTombstone(number, id)
        say("keeps \(id) for itself", number)
    }

    private func enableCloud(_ number: Int, _ id: String) throws {
        guard let record = try shown(number, id), record.isLocalOnly else { return }
        _ = try devices[number].enableCloud(["Z/\(record.id.name)"])
        guard let back = try shown(number, id) else { return }
        let values = try Fields.parse(back.fields).map { ($0.name, $0.value) }
        note(id, back.modifiedAt, values, isNew: false)
        say("gives \(id) back", number, "\(values) at \(back.modifiedAt)")
    }

    private func importBatch(_ number: Int) throws {
        let store = devices[number]
        let ids = Self.ids.filter { _ in random.chance(2) }
        _ = try store.batch(kind: "import", source: "test") {
            for id in ids {
                let time = now(number)
                guard let (record, values) = try edited(number, id, at: time) else { continue }
                _ = try store.ingest(record)
                note(id, time, values)
            }
            return ((), summary: "")
        }
        say("imports a batch of \(ids)", number)
    }

    private func undo(_ number: Int) throws {
        let store = devices[number]
        guard let last = try store.undoable() else { return }
        // Whatever this batch has touched in any way.
        for id in Self.ids { stories[id, default: Story()].isOpen = true }
        library.isOpen = true
        // By its number: the last command may have changed nothing.
        let result = try store.undoLast(last.id)
        say("undoes batch \(last.id)", number, "\(result.removed) \(result.reverted) \(result.keptNewer)")
    }

    private func takeOut(_ number: Int, _ id: String) throws {
        let store = devices[number]
        guard let record = try shown(number, id), !record.isLocalOnly else { return }
        stories[id, default: Story()].isOpen = true
        _ = try store.batch(kind: "restore", source: "test") {
            try store.remove(record.id)
            return ((), summary: "")
        }
        say("takes \(id) out", number)
    }

    private func putFile(_ number: Int) throws {
        let store = devices[number]
        let path = ["a.pdf", "b.pdf"][random.below(2)]
        let text = value()
        let isGone = random.chance(4)
        _ = try store.batch(kind: "import", source: "test") { () -> (Void, summary: String) in
            if let old = try store.asset(path) { try store.removeAsset(old) }
            if !isGone { try place(path, text, in: store) }
            return ((), summary: "")
        }
        say("puts \(path)", number, isGone ? "away" : text)
    }

    // MARK: What goes wrong

    private func resetHub() throws {
        if let backup, random.chance(2) {
            // Last week's hub is back.
            try drop {
                try FileHub("\(folder)/hub.db")
            } before: {
                unlink("\(folder)/hub.db")
                try backup.withUnsafeBytes { try FileHandle.create("\(folder)/hub.db").write($0) }
            }
            log.append("the hub is brought back from a backup")
        } else if random.chance(2) {
            try drop {
                try FileHub.create("\(folder)/hub.db")
            } before: {
                unlink("\(folder)/hub.db")
            }
            log.append("the hub is made anew")
        } else {
            backup = try readFile("\(folder)/hub.db")
        }
        hubs += 1
        // Without the hub's memory only times decide: a merge that nobody has heard of loses against a later delete.
        library.isOpen = true
    }

    private func drop(_ next: () throws -> FileHub, before: () throws -> Void) throws {
        simulator.become(NoHub())
        try before()
        simulator.become(try next())
    }

    /// A sync on a bad line, and often one that is killed in the middle.
    private func syncWithMishaps(_ number: Int) throws {
        let crashes = random.chance(3)
        var left = 1 + random.below(random.chance(2) ? 40 : 400)
        let inHub = random.chance(4)
        if crashes {
            let fault = {
                left -= 1
                if left <= 0 { throw Crash() }
            }
            if inHub { (simulator.real as? FileHub)?.database.beforeStep = fault }
            devices[number].database.beforeStep = fault
        }
        var outcome = "ends well"
        do { try sync(number) } catch is Crash {
            outcome = "is killed"
            devices[number].database.beforeStep = nil
            devices.remove(at: number)
            devices.insert(try open(number), at: number)
        } catch let error as BackupError where error.code == .temporary { outcome = "gives up" }
        devices[number].database.beforeStep = nil
        if crashes, inHub { simulator.become(try FileHub("\(folder)/hub.db")) }
        say("syncs and", number, outcome)
    }

    @discardableResult
    func sync(_ number: Int) throws -> SyncResult {
        var options = SyncOptions()
        options.sleep = { _ in }
        options.patience = 3
        return try Synchronizer(devices[number], simulator, options).run()
    }
}

/// Nobody's hub.
private final class NoHub: Hub {
    func identity() throws -> HubIdentity { throw HubError.noAnswer("") }
    func push(_ push: HubPush, by caller: String?) throws -> HubAnswer { throw HubError.noAnswer("") }
    func changes(after token: String?, limit: Int, for caller: String?) throws -> HubPage {
        throw HubError.noAnswer("")
    }
    func fetch(_ ids: [RecordID], for caller: String?) throws -> HubFetch {
        throw HubError.noAnswer("")
    }
    func missingAssets(of digests: [SHA256Digest]) throws -> Set<SHA256Digest> { Set(digests) }

    func forgetDamagedAsset(_ digest: SHA256Digest) throws {}
    func putAsset(
        _ digest: SHA256Digest, size: Int64, _ write: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {}
    func getAsset(_ digest: SHA256Digest, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool { false }
}
