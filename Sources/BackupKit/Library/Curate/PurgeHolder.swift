/// A backup that still holds purged records.
public struct PurgeHolder: Sendable, Equatable {
    public let source: String
    public let records: [RecordID]
}

extension PurgeHolder {
    /// A vault without a snapshot stands for all its snapshots.
    static func expanded(_ source: String) throws -> [String] {
        guard let address = VaultAddress(source), address.word == nil else { return [source] }
        return try address.vault().everySnapshot().filter(\.file.isLibrary).map {
            "\(source)@\($0.id.hex.prefix(12))"
        }
    }

    /// The records of a backup that a purge takes, and why more may be in it; nil where it was searched whole.
    static func search(
        _ source: String, for scope: PurgeScope, _ limits: ReadLimits
    ) throws -> (records: Set<RecordID>, damage: String?) {
        var found: Set<RecordID> = []
        func look(_ record: Record) throws {
            if !record.isDeleted, scope.takes(record) { found.insert(record.id) }
            if let inside = try Quarantine.content(of: record), scope.takes(inside) { found.insert(inside.id) }
        }
        if Store.isStore(source) {
            try Store(source, .read).forEachRecord(look)
            return (found, nil)
        }
        let layout = try OpenedLayout.open(source, limits: limits)
        let names = layout.expected.keys.filter { [.records, .damaged].contains(layout.role(of: $0)) }.sorted()
        guard case .own = layout.manifest, !names.isEmpty else { return ([], "it has no list of its records") }
        let broken = layout.findings.first { [.error, .damage].contains($0.severity) }
        var damage = broken.map { "\($0.subject) \($0.message)" }
        for name in names {
            func goingOn(_ body: () throws -> Void) throws {
                do { try body() } catch let error as BackupError where error.isVerdict {
                    damage = damage ?? "\(name) \(error.message)"
                }
            }
            let isDamaged = layout.role(of: name) == .damaged
            let hasher = SHA256Hasher()
            var lines = LineReader(limit: limits.lineBytes)
            func take(_ line: LineReader.Line) throws {
                guard let bytes = line.bytes, bytes.count > 0 else { return }
                try goingOn {
                    guard isDamaged else { return try look(Record(parsing: bytes)) }
                    let row = try DamagedRow(line: String(decoding: bytes, as: UTF8.self))
                    if scope.takes(row) { found.insert(row.id) }
                }
            }
            try goingOn {
                try layout.reader.read(name) { bytes in
                    hasher.update(bytes)
                    try lines.feed(bytes, take)
                }
                try lines.finish(take)
                if hasher.finish() != layout.expected[name]?.digest { damage = damage ?? "\(name) is damaged" }
            }
        }
        return (found, damage)
    }

    static func unsearched(_ source: String, _ reason: String) -> Finding {
        Finding(
            .leftOut, .warning, source, "may hold purged records, because it could not be searched whole: \(reason)",
            remedy: "search its text with another tool before you keep it")
    }
}
