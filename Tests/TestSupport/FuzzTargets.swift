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
        case .tar, .zip, .xz, .gzip: try FuzzReaders.archive(raw)
        case .zstd: try FuzzReaders.archive(FuzzSeeds.inFrames(bytes))
        case .store: try FuzzDatabase.store.run(bytes)
        case .hub: try FuzzDatabase.hub.run(bytes)
        case .vault: FuzzReaders.vault(raw, bytes)
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
        let reader = EventReader(RecordHasher(seed: 1), time(0))
        let padded = Array(raw) + [UInt8](repeating: 0, count: LineParser.padding)
        try padded.withUnsafeBytes { padded in
            for line in padded[..<raw.count].split(separator: 0x0A) {
                try Self.line(UnsafeRawBufferPointer(rebasing: line), reader)
            }
        }
    }

    private static func line(_ line: UnsafeRawBufferPointer, _ reader: EventReader) throws {
        _ = reader.read(line)
        do { _ = try EventLine.record(line) { _ in 1 } } catch is BackupError {}
        do { _ = try Record(parsing: line).jsonText } catch is BackupError {}
        do { _ = try DamagedRow(line: String(decoding: line, as: UTF8.self)) } catch is BackupError {}
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
        _ = try? DataSchema(cloudKit: raw, &findings)
    }

    static func archive(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try archive($0) } }

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
