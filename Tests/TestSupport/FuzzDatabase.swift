import Glibc

@testable import BackupKit

/// A store or a hub with damage: each twelve bytes of the input are a flipped byte, or a value in some column of a row.
/// A device with a store that was synced, another one that never was, and their hub are made once, and written anew from
/// memory for each input.
struct FuzzDatabase: Sendable {
    static let store = FuzzDatabase(isHub: false)
    static let hub = FuzzDatabase(isHub: true)
    let isHub: Bool

    private static let folder = FuzzSeeds.scratch + "/devices"
    private static let sound = Result { try make() }

    private static func make() throws -> [String: [UInt8]?] {
        try Directory.create(folder)
        do {
            let devices = try Devices(["A", "B"], in: folder)
            try devices.edit("A", "s", "{}", zone: "S")
            try devices["A"].share("S", with: "b", .read, owner: "a")
            for number in 0..<3 { try devices.edit("A", "r\(number)", "{\"x\":\(number)}") }
            _ = try devices["A"].batch(kind: "import", source: "fuzz") {
                try place("Attachments/a.pdf", "bytes", in: devices["A"])
                _ = try devices["A"].ingest(
                    record(
                        "p", "{\"citeKey\":\"k\",\"entryType\":\"misc\",\"title\":\"T\"}",
                        type: RecordType.publication, zone: RecordType.libraryZone))
                return ((), summary: "{}")
            }
            try devices.sync("A", user: "a")
            for device in ["A", "B"] {
                _ = try SQLite(devices.path(device), .readWrite).integer("PRAGMA wal_checkpoint(TRUNCATE)")
            }
            _ = try SQLite(devices.hubPath, .readWrite).integer("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        return try contents(of: folder).filter { !$0.key.hasSuffix("-shm") }
    }

    /// The folder as it was made.
    private static func restore() throws {
        let sound = try sound.get()
        try Directory.removeTree(folder)
        try Directory.create(folder)
        for (path, bytes) in sound.sorted(by: { $0.key < $1.key }) {
            guard let bytes else {
                try Directory.createAll("\(folder)/\(path)")
                continue
            }
            try Directory.createAll(parent(of: "\(folder)/\(path)"))
            try bytes.withUnsafeBytes { try FileHandle.create("\(folder)/\(path)").write($0) }
        }
    }

    func run(_ bytes: [UInt8]) throws {
        try Self.restore()
        let hub = "\(Self.folder)/hub.db"
        try damage(isHub ? hub : "\(Self.folder)/A.db", bytes)
        if isHub {
            for name in ["B", "A"] {
                attempt { try sync(Store("\(Self.folder)/\(name).db", .write, clock: Self.clock), hub) }
            }
        } else {
            attempt {
                let store = try Store("\(Self.folder)/A.db", .write, clock: Self.clock)
                attempt { _ = try StoreCheck.run(store) }
                attempt { try sync(store, hub) }
                attempt { _ = try store.read { try store.contentDigest() } }
                let export = ExportOptions(form: .layout(.tar))
                attempt { _ = try Exporter.export(store, to: "\(Self.folder)/out.tar", export) }
                attempt { _ = try store.undoLast() }
            }
        }
    }

    private static let clock = Clock { time(10_000_000) }

    private func sync(_ store: Store, _ hub: String) throws {
        var options = SyncOptions(user: "a")
        options.sleep = { _ in }
        _ = try Synchronizer(store, FileHub(hub), options).run()
    }

    private func attempt(_ body: () throws -> Void) { do { try body() } catch {} }

    private func damage(_ path: String, _ bytes: [UInt8]) throws {
        let database = try SQLite(path, .readWrite)
        var columns: [(table: String, column: String)] = []
        let query = try database.prepare(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, 2"
        )
        while try query.step() { columns.append((query.text(0), query.text(1))) }
        var flips: [(offset: Int, byte: UInt8)] = []
        for start in stride(from: 0, to: min(bytes.count, 96) - 11, by: 12) {
            let piece = bytes[start..<start + 12]
            let number = piece.dropFirst(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            let place = piece.dropFirst().prefix(3).reduce(0) { $0 << 8 | Int($1) }
            guard piece[start] & 1 == 1, !columns.isEmpty else {
                flips.append((place, UInt8(truncatingIfNeeded: number)))
                continue
            }
            let (table, column) = columns[place % columns.count]
            let value =
                piece[start] & 2 == 0 ? "\(Int64(bitPattern: number))" : "CAST(x'\(hex(piece.dropFirst(4)))' AS TEXT)"
            attempt { try database.execute("UPDATE OR IGNORE \(table) SET \(column) = \(value)") }
        }
        // A hub that lies on purpose vouches for what it says.
        if bytes.count % 2 == 0, columns.contains(where: { $0.table == "proof" }) {
            attempt { try database.execute("DELETE FROM proof") }
        }
        attempt { try database.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
        let file = open(path, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        let size = max(1, lseek(file, 0, SEEK_END))
        for flip in flips {
            _ = withUnsafeBytes(of: flip.byte) { pwrite(file, $0.baseAddress, 1, off_t(flip.offset % size)) }
        }
    }

    private func hex(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
