import Glibc

@testable import BackupKit

/// What reads bytes from outside, as functions that take any bytes. Each must end by itself, in little memory, with a value
/// or a `BackupError`; `scripts/fuzz.sh` looks for bytes that make it end otherwise.
public enum FuzzTarget: String, CaseIterable, Sendable {
    case bib, jsonl, notes, settings, manifest, toml, schema, tar, zip, zstd, xz, gzip, store, hub, vault

    /// Throws only what is no `BackupError`.
    public func run(_ bytes: [UInt8]) throws {
        do {
            try bytes.withUnsafeBytes { try read($0, bytes) }
        } catch is BackupError {} catch is HubError {}
    }

    private func read(_ raw: UnsafeRawBufferPointer, _ bytes: [UInt8]) throws {
        switch self {
        case .bib: try FuzzReaders.bibliography(raw)
        case .jsonl: try FuzzReaders.lines(raw)
        case .notes: _ = try NotesFile.read(raw, time: time(0)) { _ in }
        case .settings: _ = try Fields.parse(raw)
        case .manifest: FuzzReaders.manifest(raw, bytes)
        case .toml:
            _ = TOML.read(bytes)
            _ = try Configuration.parse(bytes, file: "fuzz", environment: Environment([:]))
        case .schema: FuzzReaders.schema(raw)
        case .tar, .zip, .zstd, .xz, .gzip: try FuzzReaders.archive(raw)
        case .store: try FuzzDatabase.store.run(bytes)
        case .hub: try FuzzDatabase.hub.run(bytes)
        case .vault: FuzzReaders.vault(raw, bytes)
        }
    }

    /// Sound inputs to begin with.
    public func seeds() throws -> [[UInt8]] {
        switch self {
        case .bib:
            [
                "@string{j = {Journal}}\n@article{a, title = {T} # j, month = jan, file = {:x.pdf:PDF}}\n% text\n",
                "@book(k, author = \"A and B\",)\n@comment{x}@preamble{\"y\"}",
            ].map { Array($0.utf8) }
        case .jsonl:
            [
                "{\"id\":\"e\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\",\"photo\":\"a/b.jpg\"}\n",
                String(decoding: record("a", "{\"x\":1}", times: ["x": 1]).jsonText, as: UTF8.self) + "\n",
            ].map { Array($0.utf8) }
        case .notes: [Array("[{\"citeKey\":\"a\",\"note\":\"n\",\"modifiedAt\":\"2026-01-01T00:00:00Z\"}]".utf8)]
        case .settings: [Array("{\"a\":1,\"featureFlags\":{\"b\":true}}".utf8)]
        case .toml: [Array("store = \"a\"\nhub = 'b'\n[profile.x]\nkeep.last = 3\nlist = [1, 2.5, true]\n".utf8)]
        case .schema:
            [
                "{\"formatVersion\":1,\"name\":\"x\",\"version\":120,\"entities\":{\"A\":{\"attributes\":{\"a\":{\"type\":\"string\"}}}}}",
                "<?xml version=\"1.0\"?><model><entity name=\"A\"><attribute name=\"a\" attributeType=\"String\"/></entity></model>",
            ].map { Array($0.utf8) }
        case .manifest: try FuzzSeeds.files(["manifest.json", "SHA256SUMS"])
        case .tar: try FuzzSeeds.archive(.tar)
        case .zip: try FuzzSeeds.archive(.zip)
        case .zstd: try FuzzSeeds.archive(.tarZstandard)
        case .xz: try FuzzSeeds.archive(.tarXZ)
        case .gzip: try FuzzSeeds.archive(.tarGzip)
        case .store, .hub: [Array(0..<64), [1, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255]]
        case .vault: FuzzSeeds.vaultFiles
        }
    }

    /// One of the seeds with some bytes changed, cut out or put in: what a test without a fuzzer tries.
    public static func mutated(_ seed: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = seed
        for _ in 0...random.below(4) {
            guard !bytes.isEmpty else { return [UInt8(truncatingIfNeeded: random.next())] }
            let place = random.below(bytes.count)
            switch random.below(5) {
            case 0: bytes[place] ^= 1 << UInt8(random.below(8))
            case 1: bytes[place] = [0, 0x7F, 0x80, 0xFF][random.below(4)]
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + 1 + random.below(16)))
            case 3: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 16)], at: random.below(bytes.count))
            default: for index in place..<min(bytes.count, place + 8) { bytes[index] = 0xFF }
            }
        }
        return bytes
    }
}

private enum FuzzReaders {
    static func bibliography(_ raw: UnsafeRawBufferPointer) throws {
        var macros = BibMacros.standard
        func take(_ block: BibBlock) {
            macros.define(from: block)
            for field in block.fields { _ = block.value(of: field, macros: macros) }
            _ = BibFileLinks.links(in: block, macros: macros)
        }
        BibParser.parse(raw, emit: take)
        var reader = BibReader()
        reader.feed(raw, emit: take)
        reader.finish(emit: take)
    }

    static func lines(_ raw: UnsafeRawBufferPointer) throws {
        for line in raw.split(separator: 0x0A) {
            let line = UnsafeRawBufferPointer(rebasing: line)
            do { _ = try EventLine.record(line) { _ in 1 } } catch is BackupError {}
            do { _ = try Record(parsing: line).jsonText } catch is BackupError {}
        }
    }

    static func manifest(_ raw: UnsafeRawBufferPointer, _ bytes: [UInt8]) {
        _ = try? Manifest(parsing: raw)
        _ = try? ImbibManifest(parsing: raw)
        _ = ChecksumFile.parse(bytes)
    }

    static func schema(_ raw: UnsafeRawBufferPointer) {
        var findings: [Finding] = []
        _ = try? DataSchema(parsing: raw, &findings)
        _ = try? DataSchema(coreData: raw, &findings)
    }

    static func archive(_ raw: UnsafeRawBufferPointer) throws {
        let path = FuzzSeeds.scratch + "/archive"
        unlink(path)
        try FileHandle.create(path).write(raw)
        var limits = ReadLimits()
        (limits.entryBytes, limits.totalBytes, limits.ratioGrace) = (1 << 24, 1 << 26, 1 << 24)
        let reader = try ArchiveReader(path: path, limits: limits)
        do { for entry in try reader.list().prefix(4) { try reader.read(entry.path) { _ in } } } catch is BackupError {}
        do { _ = try reader.visit { _, bytes in try bytes.forEachChunk { _ in } } } catch is BackupError {}
        _ = try reader.checkStructure()
    }

    static func vault(_ raw: UnsafeRawBufferPointer, _ bytes: [UInt8]) {
        if raw.count >= 4 {
            _ = try? PackHeader.range(
                trailer: UnsafeRawBufferPointer(rebasing: raw[(raw.count - 4)...]), packSize: Int64(raw.count))
        }
        _ = (try? PackHeader.decode(raw)).map(PackHeader.packSize)
        _ = try? PackIndex(parsing: raw)
        _ = (try? Tree(parsing: raw)).flatMap { try? $0.encoded() }
        _ = (try? SnapshotFile(parsing: raw))?.encoded()
        _ = try? ConfigFile(raw)
        _ = try? LockFile(raw)
        if let key = try? KeyFile(raw) { _ = (key.cost.refusal, key.bytes) }
        _ = try? Unpacked.decode(raw, cap: 1 << 20)
    }
}

/// A store or a hub with damage: each twelve bytes of the input are a flipped byte, or a value in some column of a row.
private struct FuzzDatabase: Sendable {
    static let store = FuzzDatabase(isHub: false)
    static let hub = FuzzDatabase(isHub: true)
    let isHub: Bool

    func run(_ bytes: [UInt8]) throws {
        let folder = FuzzSeeds.scratch + "/devices"
        try Directory.removeTree(folder)
        try Directory.create(folder)
        let devices = try Devices(["A", "B"], in: folder)
        try devices["A"].share("S", with: "b", .read, owner: "a")
        for number in 0..<3 { try devices.edit("A", "r\(number)", "{\"x\":\(number)}") }
        _ = try devices["A"].batch(kind: "import", source: "fuzz") {
            try place("Attachments/a.pdf", "bytes", in: devices["A"])
            return ((), summary: "{}")
        }
        try devices.sync("A", user: "a")
        let target = isHub ? devices.hubPath : devices.path("A")
        try damage(target, bytes)
        if isHub {
            let hub = try FileHub(target)
            for name in ["B", "A"] { attempt { try devices.sync(name, user: "a", with: hub) } }
        } else {
            attempt { try devices.sync("A", user: "a") }
            attempt { _ = try Store(target, .read).read { try Store(target, .read).contentDigest() } }
            let export = ExportOptions(form: .layout(.tar))
            attempt { _ = try Exporter.export(try Store(target, .read), to: "\(folder)/out.tar", export) }
            attempt { _ = try devices["A"].undoLast() }
        }
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

enum FuzzSeeds {
    static let scratch: String = {
        var template = Array("/dev/shm/backup-tool-fuzz-XXXXXX".utf8CString)
        _ = mkdtemp(&template)
        return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }()

    static func archive(_ format: CarrierFormat) throws -> [[UInt8]] {
        [try withExport(.layout(format)) { try readFile($0) }]
    }

    static func files(_ names: [String]) throws -> [[UInt8]] {
        try withExport(.layout(.directory)) { folder in try names.map { try readFile("\(folder)/\($0)") } }
    }

    private static func withExport<Result>(_ form: ExportOptions.Form, _ body: (String) throws -> Result) throws
        -> Result
    {
        try withStore { test in
            try test.store.take(record("a", "{\"x\":1}"), record("b"))
            _ = try test.store.batch(kind: "import", source: "fuzz") {
                try place("Attachments/a.pdf", "bytes", in: test.store)
                return ((), summary: "{}")
            }
            _ = try Exporter.export(test.store, to: "\(test.folder)/out", ExportOptions(form: form))
            return try body("\(test.folder)/out")
        }
    }

    static let vaultFiles: [[UInt8]] = {
        let id = SHA256Digest.of("x")
        let blobs = [PackedBlob(.data, id, offset: 0, length: 100, plainLength: 0)]
        let node = TreeNode(name: Array("a".utf8), kind: .file)
        var seeds = [PackHeader.encode(blobs), PackIndex(packs: [.init(id: id, blobs: blobs)]).encoded()]
        if let tree = try? Tree(nodes: [node]).encoded() { seeds.append(tree) }
        seeds.append(SnapshotFile(time: GoTime(seconds: 0), tree: id, paths: ["/a"]).encoded())
        seeds.append(Array("{\"kdf\":\"scrypt\",\"N\":32768,\"r\":8,\"p\":5,\"salt\":\"\",\"data\":\"\"}".utf8))
        seeds.append(Array("{\"version\":2,\"id\":\"\(id.hex)\",\"chunker_polynomial\":\"25b468838dcb75\"}".utf8))
        return seeds
    }()
}
