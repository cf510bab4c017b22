/// A backup that still holds purged records.
public struct PurgeHolder: Sendable, Equatable {
    public let source: String
    public let records: [RecordID]
}

extension PurgeHolder {
    /// Which of the sources still hold one of these records alive.
    static func find(_ ids: Set<RecordID>, in sources: [String], _ limits: ReadLimits) throws -> [PurgeHolder] {
        guard !ids.isEmpty else { return [] }
        var holders: [PurgeHolder] = []
        for source in sources {
            let found = try records(of: source, limits, among: ids)
            if !found.isEmpty { holders.append(PurgeHolder(source: source, records: found.sorted())) }
        }
        return holders
    }

    /// A vault without a snapshot stands for all its snapshots.
    static func expanded(_ source: String) throws -> [String] {
        guard let address = VaultAddress(source), address.word == nil else { return [source] }
        return try address.vault().everySnapshot().filter(\.file.isLibrary).map {
            "\(source)@\($0.id.hex.prefix(12))"
        }
    }

    private static func records(
        of source: String, _ limits: ReadLimits, among ids: Set<RecordID>
    ) throws -> Set<RecordID> {
        var found: Set<RecordID> = []
        func look(_ record: Record) throws {
            if !record.isDeleted, ids.contains(record.id) { found.insert(record.id) }
            if let inside = try Quarantine.content(of: record), ids.contains(inside.id) { found.insert(inside.id) }
        }
        if Store.isStore(source) {
            try Store(source, .read).forEachRecord(look)
            return found
        }
        let layout = try OpenedLayout.open(source, limits: limits)
        for entry in layout.entries where [.records, .damaged].contains(layout.role(of: entry.path)) {
            let isDamaged = layout.role(of: entry.path) == .damaged
            var lines = LineReader(limit: limits.lineBytes)
            func take(_ line: LineReader.Line) throws {
                guard let bytes = line.bytes, bytes.count > 0 else { return }
                guard isDamaged else { return try look(Record(parsing: bytes)) }
                let row = try DamagedRow(line: String(decoding: bytes, as: UTF8.self))
                if ids.contains(row.id) { found.insert(row.id) }
            }
            try layout.reader.read(entry.path) { try lines.feed($0, take) }
            try lines.finish(take)
        }
        return found
    }
}
