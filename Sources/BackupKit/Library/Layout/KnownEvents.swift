/// Tells whether a store knows the lines of a file of events: as they are, deleted since, or changed since.
struct KnownEvents {
    private struct Stranger: Error {}

    private let store: Store

    init(_ store: Store) { self.store = store }

    /// Whether nothing in the file is news to the store, so that an export of it may take the file's place.
    func holdsAll(of path: String) throws -> Bool {
        var occurrences: [SHA256Digest: Int] = [:]
        func take(_ line: LineReader.Line) throws {
            guard let text = line.bytes else { throw Stranger() }
            guard text.contains(where: { $0 > 0x20 }) else { return }
            let record = try EventLine.record(text) { canonical in
                occurrences[.of(canonical), default: 0] += 1
                return occurrences[.of(canonical)] ?? 1
            }
            guard try knows(record) else { throw Stranger() }
        }
        do {
            try FileHandle.openForReading(path).forEachLine(limit: ReadLimits().lineBytes, take)
            return true
        } catch is Stranger {
            return false
        } catch let error as BackupError where error.code == .damaged || error.code == .refused {
            // The line is no event.
            return false
        }
    }

    private func knows(_ record: Record) throws -> Bool {
        // An event that got an id later has its name from the line without it.
        if let former = try store.namedRecord(record.id), former.record.type == RecordType.event { return true }
        guard
            let known = try store.records(localID: record.localID).first(where: {
                $0.record.type == RecordType.event
            })?.record
        else { return false }
        return known.isDeleted || sameBytes(known.fields, record.fields) || record.modifiedAt < known.latestTime
    }
}
