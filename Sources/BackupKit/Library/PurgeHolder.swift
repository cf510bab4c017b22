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

    /// The records of a backup that `isWanted` means, and why more may be in it; nil where it was searched whole.
    static func search(
        _ source: String, for isWanted: (Record) -> Bool, _ limits: ReadLimits
    ) throws -> (records: Set<RecordID>, damage: String?) {
        var found: Set<RecordID> = []
        func look(_ record: Record) throws {
            if !record.isDeleted, isWanted(record) { found.insert(record.id) }
            if let inside = try Quarantine.content(of: record), isWanted(inside) { found.insert(inside.id) }
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
            var lines = LineReader(limit: limits.lineBytes)
            func take(_ line: LineReader.Line) throws {
                guard let bytes = line.bytes, bytes.count > 0 else { return }
                do {
                    guard layout.role(of: name) == .damaged else { return try look(Record(parsing: bytes)) }
                    let row = try DamagedRow(line: String(decoding: bytes, as: UTF8.self))
                    let (type, localID) = row.work
                    let bare = Record(
                        id: row.id, type: type, localID: localID, fields: "{}", createdAt: .distantPast,
                        modifiedAt: .distantPast)
                    if isWanted(bare) { found.insert(row.id) }
                } catch let error as BackupError where error.isVerdict { damage = damage ?? "\(name) \(error.message)" }
            }
            let hasher = SHA256Hasher()
            do {
                try layout.reader.read(name) { bytes in
                    hasher.update(bytes)
                    try lines.feed(bytes, take)
                }
                try lines.finish(take)
                if hasher.finish() != layout.expected[name]?.digest { damage = damage ?? "\(name) is damaged" }
            } catch let error as BackupError where error.isVerdict { damage = damage ?? "\(name) \(error.message)" }
        }
        return (found, damage)
    }

    static func unsearched(_ source: String, _ reason: String) -> Finding {
        Finding(
            .leftOut, .warning, source, "may hold purged records, because it could not be searched whole: \(reason)",
            remedy: "look into it by other means before you keep it")
    }
}
