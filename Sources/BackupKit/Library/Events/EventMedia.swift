/// The files that lines of event logs name: found beside the logs, taken into the store, and linked by the events of the log
/// that names them, also where another file has their path.
struct EventMedia {
    /// Files that were found below one folder, in the order of their copies.
    private struct Root {
        var copies: AttachmentFolder
        var files: [(path: String, logs: Set<Int>, isTaken: Bool)] = []
        var places: [ByteName: Int] = [:]
    }

    /// What to do about a file that was not found.
    static let howItComes = "put it where the event says, beside the log, and import the log again"

    private let logs: [String]
    private let folder: String
    private var roots: [Root] = []
    private var placeOfRoot: [ByteName: Int] = [:]
    /// What lines name that was not taken, and whether it is there.
    private var missing: [(log: Int, path: String, isThere: Bool)] = []
    private(set) var found: Set<ByteName> = []
    private let known: EventsNamingFiles

    /// `folder` is where copies wait for the batch.
    init(of logs: [String], in folder: String) {
        (self.logs, self.folder) = (logs, folder)
        known = EventsNamingFiles(in: logs)
    }

    /// Looks for what lines name: beside their log, or beside the folder of logs.
    mutating func find(_ named: [(file: Int, path: String)], for store: Store, dryRun: Bool) throws {
        for (log, path) in named {
            let beside = parent(of: logs[log])
            let roots = [beside, parent(of: beside)]
            let root = try roots.first { try Self.isThere("\($0)/\(path)") }
            if let root, try add(path, below: root, of: log, for: store, dryRun: dryRun) { continue }
            missing.append((log, path, root != nil))
        }
    }

    /// Also where it is a link, or where something is in the way: then it is named when it cannot be taken.
    private static func isThere(_ path: String) throws -> Bool {
        do {
            return try FileStatus.ofName(path).map { $0.isRegular || $0.isLink } ?? false
        } catch let error as BackupError where error.isVerdict { return true }
    }

    /// Returns whether the file could be taken.
    private mutating func add(
        _ path: String, below root: String, of log: Int, for store: Store, dryRun: Bool
    ) throws -> Bool {
        found.insert(ByteName("\(root)/\(path)"))
        if placeOfRoot[ByteName(root)] == nil {
            // Files of one name beside two logs must not meet before the store parts them.
            let inner = "\(folder)/events-\(roots.count)"
            try Directory.create(inner)
            placeOfRoot[ByteName(root)] = roots.count
            roots.append(Root(copies: try AttachmentFolder(inner)))
        }
        guard let number = placeOfRoot[ByteName(root)] else { return false }
        if let known = roots[number].places[ByteName(path)] {
            roots[number].files[known].logs.insert(log)
            return roots[number].files[known].isTaken
        }
        roots[number].places[ByteName(path)] = roots[number].files.count
        let isTaken = try roots[number].copies.add(path, below: root, for: store, dryRun: dryRun)
        roots[number].files.append((path, [log], isTaken))
        return isTaken
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
        try relink(moved, intake)
    }

    private static func usualPlace(_ path: String) -> ByteName { ByteName(RecordFiles.place(ofMedia: path)) }

    /// `files` are those of a folder of attachments, by the paths that they usually get.
    mutating func claim(_ files: [AttachmentFolder.Taken], _ intake: Intake) throws {
        let exact = Dictionary(files.map { (ByteName($0.relative), $0.place) }, uniquingKeysWith: { first, _ in first })
        let places = Dictionary(files.map { (ByteName($0.name), $0.place) }, uniquingKeysWith: { first, _ in first })
        var moved: [Int: [ByteName: String]] = [:]
        for (log, path, isThere) in missing {
            let usual = RecordFiles.place(ofMedia: path)
            if let place = exact[ByteName(path)] ?? places[ByteName(usual)] {
                if !sameBytes(place, usual) { moved[log, default: [:]][ByteName(path)] = place }
            } else if try intake.store.hasAsset(usual) ? leave(usual, log, intake) : !intake.store.hasAsset(path),
                !isThere
            {
                intake.note(
                    Finding(
                        .linkMissing, .warning, path, "is named by an event, but was not found",
                        remedy: Self.howItComes))
            }
        }
        try relink(moved, intake)
    }

    /// New events of a log do not link a file that events of other logs brought. Returns whether there were such.
    private func leave(_ path: String, _ log: Int, _ intake: Intake) throws -> Bool {
        let store = intake.store
        let mine = try known.localIDs(in: log, naming: path, store)
        guard let batch = store.currentBatch, try known.isLinked(path, byOthersThan: mine, store) else { return false }
        var hasLeft = false
        for stored in try mine.map(\.text).sorted(by: precedesBytewise)
            .flatMap({ try store.records(localID: $0) })
        where stored.change >= batch.firstChange && stored.record.type == RecordType.event {
            let record = try stored.record.leaving([path])
            guard record != stored.record else { continue }
            try store.rewrite(stored, as: record)
            hasLeft = true
        }
        if hasLeft { known.forget(mine, linking: path) }
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
            try logs.reduce(into: []) { try $0.formUnion(known.localIDs(in: $1, naming: path, store)) }
        } ?? false
    }

    // MARK: Linking them

    /// `moved` are the files of each log that lie elsewhere than usual, as its lines spell them.
    private func relink(_ moved: [Int: [ByteName: String]], _ intake: Intake) throws {
        for (log, moved) in moved.sorted(by: { $0.key < $1.key }) {
            for (localID, names) in try known.events(of: log, intake.store, { moved[ByteName($0)] }) {
                for replaced in try intake.store.relinkNew(localID.text, names) { try intake.noteRelinked(replaced) }
            }
        }
    }
}

extension Store {
    /// An event that the running batch has written links its files where they lie; one that was here before, those that
    /// it did not have. Returns the versions that were replaced.
    fileprivate func relinkNew(_ localID: String, _ moved: [ByteName: String]) throws -> [StoredRecord] {
        guard let batch = currentBatch else { return [] }
        var replaced: [StoredRecord] = []
        for stored in try records(localID: localID) where stored.record.type == RecordType.event {
            let isNew = stored.change >= batch.firstChange
            let names = try isNew ? newNames(of: stored.record, moved) : openNames(of: stored.record, moved)
            // A record that is written anew says the same in other bytes.
            let record = try stored.record.following(names.filter { !sameBytes($0.key.text, $0.value) })
            guard record != stored.record else { continue }
            try rewrite(stored, as: record)
            replaced.append(stored)
        }
        return replaced
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
}
