/// The files that lines of event logs name: found beside the logs, taken into the store, and linked by the events of the log
/// that names them, also where another file has their path.
struct EventMedia {
    /// Files that were found below one folder, in the order of their copies.
    private struct Root {
        var copies: AttachmentFolder
        var files: [(path: String, logs: Set<Int>)] = []
        var places: [ByteName: Int] = [:]
    }

    private let logs: [String]
    private let folder: String
    private var roots: [Root] = []
    private var placeOfRoot: [ByteName: Int] = [:]
    private var missing: [(log: Int, path: String)] = []
    private(set) var found: Set<ByteName> = []
    private let known = EventsNamingFiles()

    /// `folder` is where copies wait for the batch.
    init(of logs: [String], in folder: String) { (self.logs, self.folder) = (logs, folder) }

    /// Looks for what lines name: beside their log, or beside the folder of logs.
    mutating func find(_ named: [(file: Int, path: String)], for store: Store, dryRun: Bool) throws {
        for (log, path) in named {
            let beside = parent(of: logs[log])
            let roots = [beside, parent(of: beside)]
            guard let root = try roots.first(where: { try FileStatus.ofTarget("\($0)/\(path)")?.isRegular == true })
            else {
                missing.append((log, path))
                continue
            }
            try add(path, below: root, of: log, for: store, dryRun: dryRun)
        }
    }

    private mutating func add(_ path: String, below root: String, of log: Int, for store: Store, dryRun: Bool) throws {
        found.insert(ByteName("\(root)/\(path)"))
        if placeOfRoot[ByteName(root)] == nil {
            // Files of one name beside two logs must not meet before the store parts them.
            let inner = "\(folder)/events-\(roots.count)"
            try Directory.create(inner)
            placeOfRoot[ByteName(root)] = roots.count
            roots.append(Root(copies: try AttachmentFolder(inner)))
        }
        guard let number = placeOfRoot[ByteName(root)] else { return }
        if let known = roots[number].places[ByteName(path)] {
            roots[number].files[known].logs.insert(log)
            return
        }
        roots[number].places[ByteName(path)] = roots[number].files.count
        roots[number].files.append((path, [log]))
        try roots[number].copies.add("\(root)/\(path)", as: path, for: store, dryRun: dryRun)
    }

    /// Must run inside the batch, after the events.
    mutating func take(into intake: Intake) throws {
        var moved: [Int: [ByteName: String]] = [:]
        let open = try roots.isEmpty ? nil : OpenLinks(intake.store)
        // Each of these logs brings a file of its own.
        let logs = roots.flatMap(\.files).reduce(into: [ByteName: Set<Int>]()) {
            $0[ByteName($1.path), default: []].formUnion($1.logs)
        }
        // What these logs call so is no other name of theirs.
        let others = open?.paths.subtracting((logs.keys.map(\.text) + missing.map(\.path)).map(Self.usualPlace)) ?? []
        for root in roots {
            let places = try root.copies.places(into: intake, leavesDeleted: true) { number, path in
                try isMeantElsewhere(path, open, than: logs[ByteName(root.files[number].path)] ?? [], intake.store)
            }
            for (file, place) in zip(root.files, places) {
                let usual = RecordFiles.place(ofMedia: file.path)
                let isRenamed = others.contains { Store.isVersionBeside($0.text, of: usual) }
                guard let place, isRenamed || !sameBytes(place, usual) else { continue }
                for log in file.logs { moved[log, default: [:]][ByteName(file.path)] = place }
            }
        }
        try relink(moved, intake.store)
    }

    private static func usualPlace(_ path: String) -> ByteName { ByteName(RecordFiles.place(ofMedia: path)) }

    /// `files` are those of a folder of attachments, by the paths that they usually get.
    mutating func claim(_ files: [AttachmentFolder.Taken], _ intake: Intake) throws {
        let exact = Dictionary(files.map { (ByteName($0.relative), $0.place) }, uniquingKeysWith: { first, _ in first })
        let places = Dictionary(files.map { (ByteName($0.name), $0.place) }, uniquingKeysWith: { first, _ in first })
        var moved: [Int: [ByteName: String]] = [:]
        for (log, path) in missing {
            let usual = RecordFiles.place(ofMedia: path)
            if let place = exact[ByteName(path)] ?? places[ByteName(usual)] {
                if !sameBytes(place, usual) { moved[log, default: [:]][ByteName(path)] = place }
            } else if try intake.store.hasAsset(usual) ? leave(usual, log, intake) : !intake.store.hasAsset(path) {
                intake.note(
                    Finding(
                        .linkMissing, .warning, path, "is named by an event, but was not found",
                        remedy: "put it where the event says, beside the log, and import the log again"))
            }
        }
        try relink(moved, intake.store)
    }

    /// New events of a log do not link a file that events of other logs brought. Returns whether there were such.
    private func leave(_ path: String, _ log: Int, _ intake: Intake) throws -> Bool {
        let store = intake.store
        let mine = try localIDs(in: logs[log], naming: path, store)
        guard let batch = store.currentBatch,
            try store.isLinked(path, byOthersThan: mine) || store.wasLinked(path, byOthersThan: mine)
        else { return false }
        var hasLeft = false
        for stored in try mine.sorted().flatMap({ try store.records(localID: $0) })
        where stored.change >= batch.firstChange && stored.record.type == RecordType.event {
            let record = try stored.record.leaving([path])
            guard record != stored.record else { continue }
            try store.rewrite(stored, as: record)
            hasLeft = true
        }
        return hasLeft
    }

    /// Takes a folder of attachments, in which are files that lines name. Must run inside the batch, after the events.
    func take(_ attachments: AttachmentFolder, into intake: Intake) throws -> [AttachmentFolder.Taken] {
        let open = try missing.isEmpty ? nil : OpenLinks(intake.store, of: RecordType.event)
        let logs = Set(missing.map(\.log))
        return try attachments.take(into: intake) { try isMeantElsewhere($1, open, than: logs, intake.store) }
    }

    /// Whether an event that is in none of these logs names a path and has no file there.
    private func isMeantElsewhere(
        _ path: String, _ open: OpenLinks?, than logs: Set<Int>, _ store: Store
    ) throws -> Bool {
        try open?.mean(path) {
            try logs.reduce(into: []) { try $0.formUnion(localIDs(in: self.logs[$1], naming: path, store)) }
        } ?? false
    }

    // MARK: Linking them

    /// `moved` are the files of each log that lie elsewhere than usual, as its lines spell them.
    private func relink(_ moved: [Int: [ByteName: String]], _ store: Store) throws {
        for (log, moved) in moved.sorted(by: { $0.key < $1.key }) {
            for (localID, names) in try events(of: logs[log], store, { moved[ByteName($0)] }) {
                try store.relinkNew(localID, names)
            }
        }
    }

    /// The local ids of the events of a log that name this file of the store.
    private func localIDs(in log: String, naming path: String, _ store: Store) throws -> Set<String> {
        Set(try events(of: log, store) { sameBytes(RecordFiles.place(ofMedia: $0), path) ? path : nil }.keys)
    }

    /// The events of a log that name files for which `place` knows one, by their local ids: the files' usual places, and
    /// these.
    private func events(
        of log: String, _ store: Store, _ place: (String) -> String?
    ) throws -> [String: [ByteName: String]] {
        var found: [String: [ByteName: String]] = [:]
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
                found[record.localID] = Dictionary(names, uniquingKeysWith: { first, _ in first })
                if !hasID { byMeaning[store.hasher.text(try EventText.meaning(fields))] = found[record.localID] }
            } catch let error as BackupError where error.code == .damaged || error.code == .refused {
                // Named when the log was read.
            }
        }
        try FileHandle.openForReading(log).forEachChunk { try reader.feed($0, take) }
        try reader.finish(take)
        guard !byMeaning.isEmpty else { return found }
        // The event of a line without an id may have another number here, other words, or an id that its app has given it.
        let localIDs = try known.localIDs(by: store)
        for (hash, names) in byMeaning {
            for localID in localIDs[hash] ?? [] where found[localID] == nil { found[localID] = names }
        }
        return found
    }
}

/// The events of a store that name files, by what their lines mean. Read once, on first use.
private final class EventsNamingFiles {
    private var all: [UInt64: [String]]?

    func localIDs(by store: Store) throws -> [UInt64: [String]] {
        if let all { return all }
        var found: [UInt64: [String]] = [:]
        try store.forEachLinking { stored in
            guard stored.record.type == RecordType.event else { return }
            let fields = try Fields.parse(stored.record.fields)
            for meaning in try EventText.meanings(fields) {
                found[store.hasher.text(meaning), default: []].append(stored.record.localID)
            }
        }
        all = found
        return found
    }
}

extension Store {
    /// An event that the running batch has written links its files where they lie; one that was here before, those that
    /// it did not have.
    fileprivate func relinkNew(_ localID: String, _ moved: [ByteName: String]) throws {
        guard let batch = currentBatch else { return }
        for stored in try records(localID: localID) where stored.record.type == RecordType.event {
            let isNew = stored.change >= batch.firstChange
            let names = try isNew ? newNames(of: stored.record, moved) : openNames(of: stored.record, moved)
            // A record that is written anew says the same in other bytes.
            let record = try stored.record.following(names.filter { !sameBytes($0.key.text, $0.value) })
            if record != stored.record { try rewrite(stored, as: record) }
        }
    }

    /// Also where the event links a file under the name that it got earlier.
    private func newNames(of record: Record, _ moved: [ByteName: String]) throws -> [ByteName: String] {
        var names = moved
        for link in try Self.links(of: record) where moved[ByteName(link)] == nil {
            names[ByteName(link)] = RecordFiles.formerPath(link).flatMap { moved[ByteName($0)] }
        }
        return names
    }

    /// The names of an event's files that are not here, and where those lie now that its log calls so.
    private func openNames(of record: Record, _ moved: [ByteName: String]) throws -> [ByteName: String] {
        var names: [ByteName: String] = [:]
        for link in try Self.links(of: record) where try !hasAsset(link) {
            names[ByteName(link)] = moved.first { Self.isVersionBeside(link, of: $0.key.text) }?.value
        }
        return names
    }

    /// Whether living records other than those with these local ids link a path.
    fileprivate func isLinked(_ path: String, byOthersThan localIDs: Set<String>) throws -> Bool {
        var isLinked = false
        try forEachLinking { stored in
            guard !isLinked, !localIDs.contains(stored.record.localID) else { return }
            isLinked = try Self.links(of: stored.record).contains { sameBytes($0, path) }
        }
        return isLinked
    }

    /// Whether the undo history knows a deleted event that had a file: it is no other event's because of its name.
    fileprivate func wasLinked(_ path: String, byOthersThan localIDs: Set<String>) throws -> Bool {
        let query = try database.prepare(
            "SELECT \(Self.recordColumns) FROM batch_record WHERE type = ? AND deleted_at IS NULL AND instr(fields, ?)"
        ).bind(1, RecordType.event).bind(2, lastComponent(of: path))
        while try query.step() {
            guard let old = try ifSound({ try RowReader.record(query) })?.record, !localIDs.contains(old.localID),
                try Self.links(of: old).contains(where: { sameBytes($0, path) })
            else { continue }
            let known = try records(localID: old.localID).filter { $0.record.type == old.type }
            if !known.isEmpty, known.allSatisfy(\.record.isDeleted) { return true }
        }
        return false
    }
}
