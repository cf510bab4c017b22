/// Which events name or link a file: those of each log, those of the store, and deleted ones. Each is read once, on first
/// use, for a log may name thousands of files.
final class EventsNamingFiles {
    private let logs: [String]
    /// The events of a log, by the usual places of the files that its lines name.
    private var named: [Int: [ByteName: Set<ByteName>]] = [:]
    /// The events of the store that name files, by what their lines mean.
    private var byMeaning: [UInt64: [ByteName]]?
    private var linking: [ByteName: Set<ByteName>]?
    private var linkingDeleted: [ByteName: Set<ByteName>]?

    init(in logs: [String]) { self.logs = logs }

    // MARK: Events of logs

    /// The local ids of the events of a log that name this file of the store.
    func localIDs(in log: Int, naming path: String, _ store: Store) throws -> Set<ByteName> {
        if let named = named[log] { return named[ByteName(path)] ?? [] }
        var found: [ByteName: Set<ByteName>] = [:]
        for (localID, names) in try events(of: log, store, { $0 }) {
            for place in names.keys { found[place, default: []].insert(localID) }
        }
        named[log] = found
        return found[ByteName(path)] ?? []
    }

    /// The events of a log that name files for which `place` knows one, by their local ids: the files' usual places, and
    /// these.
    func events(
        of log: Int, _ store: Store, _ place: (String) -> String?
    ) throws -> [ByteName: [ByteName: String]] {
        var found: [ByteName: [ByteName: String]] = [:]
        var byMeaning: [UInt64: [ByteName: String]] = [:]
        var occurrences: [SHA256Digest: Int] = [:]
        var reader = LineReader(limit: ReadLimits().lineBytes)
        func take(_ line: LineReader.Line) throws {
            guard let text = line.bytes, RecordFiles.mayName(text) else { return }
            do {
                var hasID = true
                let record = try EventLine.record(text) { canonical in
                    hasID = false
                    occurrences[.of(canonical), default: 0] += 1
                    return occurrences[.of(canonical)] ?? 1
                }
                let fields = try Fields.parse(record.fields)
                let names = RecordFiles.media(in: fields).compactMap { path in
                    place(path).map { (ByteName(RecordFiles.place(ofMedia: path)), $0) }
                }
                guard !names.isEmpty else { return }
                found[ByteName(record.localID)] = Dictionary(names, uniquingKeysWith: { first, _ in first })
                if !hasID {
                    byMeaning[store.hasher.text(try EventText.meaning(fields))] = found[ByteName(record.localID)]
                }
            } catch let error as BackupError where error.code == .damaged || error.code == .refused {
                // Named when the log was read.
            }
        }
        try FileHandle.openForReading(logs[log]).forEachChunk { try reader.feed($0, take) }
        try reader.finish(take)
        guard !byMeaning.isEmpty else { return found }
        // The event of a line without an id may have another number here, other words, or an id that its app has given it.
        let localIDs = try localIDs(by: store)
        for (hash, names) in byMeaning {
            for localID in localIDs[hash] ?? [] where found[localID] == nil { found[localID] = names }
        }
        return found
    }

    private func localIDs(by store: Store) throws -> [UInt64: [ByteName]] {
        if let byMeaning { return byMeaning }
        var found: [UInt64: [ByteName]] = [:]
        try store.forEachLinking { stored in
            guard stored.record.type == RecordType.event else { return }
            let fields = try Fields.parse(stored.record.fields)
            for meaning in try EventText.meanings(fields) {
                found[store.hasher.text(meaning), default: []].append(ByteName(stored.record.localID))
            }
        }
        byMeaning = found
        return found
    }

    // MARK: Events of the store

    /// Whether others than the events with these local ids link a path: living records, or deleted events that the undo
    /// history knows. A file of a deleted event is no other event's because of its name.
    func isLinked(_ path: String, byOthersThan localIDs: Set<ByteName>, _ store: Store) throws -> Bool {
        let living = try linking ?? store.linkingRecords()
        linking = living
        if !(living[ByteName(path)] ?? []).isSubset(of: localIDs) { return true }
        let deleted = try linkingDeleted ?? store.linkingDeletedEvents()
        linkingDeleted = deleted
        return !(deleted[ByteName(path)] ?? []).isSubset(of: localIDs)
    }

    /// These events link the path no more.
    func forget(_ localIDs: Set<ByteName>, linking path: String) {
        linking?[ByteName(path)]?.subtract(localIDs)
    }
}

extension Store {
    /// The local ids of living records, by the paths that they link.
    fileprivate func linkingRecords() throws -> [ByteName: Set<ByteName>] {
        var found: [ByteName: Set<ByteName>] = [:]
        try forEachLinking { stored in
            for path in try Self.links(of: stored.record) {
                found[ByteName(path), default: []].insert(ByteName(stored.record.localID))
            }
        }
        return found
    }

    /// The same of deleted events, as far as the undo history goes back.
    fileprivate func linkingDeletedEvents() throws -> [ByteName: Set<ByteName>] {
        var found: [ByteName: Set<ByteName>] = [:]
        let query = try database.prepare(
            "SELECT \(Self.recordColumns) FROM batch_record WHERE type = ? AND deleted_at IS NULL"
        ).bind(1, RecordType.event)
        while try query.step() {
            guard let old = try ifSound({ try RowReader.record(query) })?.record else { continue }
            let links = try Self.links(of: old)
            guard !links.isEmpty else { continue }
            let known = try records(localID: old.localID).filter { $0.record.type == old.type }
            guard !known.isEmpty, known.allSatisfy(\.record.isDeleted) else { continue }
            for path in links { found[ByteName(path), default: []].insert(ByteName(old.localID)) }
        }
        return found
    }
}
