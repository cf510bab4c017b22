/// Two different files of one path, one of this store and one of the hub.
///
/// A link names a path, so what it means depends on who wrote it. A link in this store means this store's file. A link in
/// the hub's version of a record means the hub's file: every device sends its files before the records that link them. So
/// this store's file leaves the path before any record comes in that was pushed later than the hub's file, and the links of
/// this store follow it.
extension Synchronizer {
    /// A file that this store means by a path, and what the hub has there.
    private struct Rival {
        let mine: Asset
        /// Nil where the hub has none, and a record that comes names the path all the same.
        let theirs: HubRecord?
        /// The hub had the store's file, and its bytes did not come while it did.
        let isAwaited: Bool
    }

    /// Gives new names to the store's files whose paths the hub has other files under, as far as these records name them. Must
    /// run before the records are taken, outside of `write`.
    func makeWay(for incoming: [HubRecord]) throws {
        let (rivals, met) = try rivals(of: incoming)
        for mine in met { try inBatch { try store.makeRoomInMemory(for: mine.digest, at: mine.path) } }
        guard !rivals.isEmpty else { return }
        defer { store.comingNames = EntryNameSet() }
        for rival in rivals { try noteTakenNames(for: rival.mine) }
        try withStage { folder in
            try inBatch {
                // Another program may have written since.
                let still = try rivals.filter { rival in
                    try store.ifSound { try meant(by: rival.mine.path) } ?? nil == rival.mine
                }
                for rival in still where rival.isAwaited {
                    if let theirs = rival.theirs { try keepAwaited(rival.mine, from: theirs) }
                }
                let own = still.filter { !$0.isAwaited }
                let strangers = try own.filter { rival in
                    try rival.theirs.map { try isStranger($0.record, to: store.hubAsset(rival.mine.path)?.base) }
                        ?? true
                }
                try giveWay(own.map(\.mine), strangers: Set(strangers.map { ByteName($0.mine.path) }), in: folder)
                for rival in still {
                    guard let theirs = rival.theirs else { continue }
                    try applyAsset(theirs)
                    // A path that is empty here and not wanted would be deleted on the hub.
                    try store.leaveAsset(rival.mine.path)
                }
            }
        }
    }

    /// The file that links of this store mean: its own, or one of the hub whose bytes did not come yet.
    private func meant(by path: String) throws -> Asset? { try store.asset(path) ?? store.hubAsset(path)?.awaited }

    /// `met` are files that the hub has, too, and whose paths had others here: those come back beside them when that is undone.
    private func rivals(of incoming: [HubRecord]) throws -> (rivals: [Rival], met: [Asset]) {
        var found: [Rival] = []
        var met: [Asset] = []
        var asked: [ByteName: (mine: Asset, base: String?, isAwaited: Bool)] = [:]
        // Files that the hub does not know, and the records of other devices that name their paths.
        var unknown: [ByteName: [Record]] = [:]
        let undecided = try undecidedVersions()
        for (path, linking) in try namedPaths(in: incoming) where damagedAssets[path] == nil {
            let known = try store.hubAsset(path.text)
            guard let own = try store.ifSound({ try store.asset(path.text) }), let mine = own ?? known?.awaited else {
                continue
            }
            let isAwaited = own == nil
            let base = isAwaited ? mine.digest.hex : known?.base
            if !isAwaited, base == mine.digest.hex { continue }
            // Whoever links a path for the first time means the hub's file, and not the version that nobody has seen yet.
            let isNew = try !isAwaited && base != nil && linking.contains { try isNewLink(path.text, in: $0) }
            asked[path] = (mine, isNew ? nil : base, isAwaited)
            guard known == nil else { continue }
            let others = try linking.filter { try !isOwnLink(path.text, in: $0) }
            if !others.isEmpty { unknown[path] = others }
        }
        try dropOtherForms(&unknown)
        for theirs in try fetchAll(asked.keys.map { RecordID(zone: Store.assetZone, name: $0.text) }) {
            let path = ByteName(theirs.record.id.name)
            unknown[path] = nil
            guard let (mine, base, isAwaited) = asked[path] else { continue }
            if isAwaited {
                // A file that is a later version takes its place.
                guard try theirs.record.isDeleted || isStranger(theirs.record, to: base) else { continue }
            } else {
                guard !theirs.record.isDeleted, let digest = try Asset(theirs.record)?.digest else { continue }
                if undecided[path]?.contains(digest) == true { continue }
                if digest == mine.digest, base == nil, try store.remembersAsset(mine.path) { met.append(mine) }
                guard digest != mine.digest, digest.hex != base else { continue }
            }
            found.append(Rival(mine: mine, theirs: theirs, isAwaited: isAwaited))
        }
        for path in unknown.keys {
            if let mine = asked[path]?.mine { found.append(Rival(mine: mine, theirs: nil, isAwaited: false)) }
        }
        return (found.sorted { precedesBytewise($0.mine.path, $1.mine.path) }, met)
    }

    /// The records that link each path; none where only the hub's file itself comes.
    private func namedPaths(in incoming: [HubRecord]) throws -> [ByteName: [Record]] {
        var named: [ByteName: [Record]] = [:]
        for record in incoming.map(\.record) where record.id.zone == Store.assetZone {
            named[ByteName(record.id.name)] = []
        }
        // A store that has no files and waits for none is spared the reading of all links.
        guard try store.hasAssets() || !store.wantedAssets().isEmpty else { return named }
        for record in incoming.map(\.record) where !record.isDeleted && record.id.zone != Store.assetZone {
            // What cannot be read is named by who takes it.
            for path in try store.ifReadable({ try Store.links(of: record) }) ?? [] {
                named[ByteName(path), default: []].append(record)
            }
        }
        return named
    }

    /// The hub has another file under the path of one that did not come, or none any more: the records here that mean it keep
    /// its row, so that no other file takes its place. Must run inside `batch`.
    private func keepAwaited(_ awaited: Asset, from theirs: HubRecord) throws {
        var links = LivingLinks(store)
        guard try links.contains(awaited.path) else { return }
        if theirs.record.isDeleted {
            keptAwaited.insert(ByteName(awaited.path))
            return try store.addRow(awaited)
        }
        guard let path = try store.nameOnLeaving(awaited) else { return }
        try store.relink([ByteName(awaited.path): path]) { stored, _ in
            try store.hubVersionNumber(of: stored) > theirs.version ? .theirs : .ours
        }
        guard try !store.hasAsset(path) else { return }
        keptAwaited.insert(ByteName(path))
        try addLost(awaited, as: path)
    }

    /// Whether the hub's version of a record that this store knows does not link a path.
    private func isNewLink(_ path: String, in incoming: Record) throws -> Bool {
        guard let stored = try store.ifSound({ try store.record(incoming.id) }) ?? nil,
            let version = try store.hubVersion(of: stored)
        else { return true }
        return try !Store.links(in: version, type: incoming.type).contains { sameBytes($0, path) }
    }

    /// Whether this store's version of a record links a path, too: then it means this store's file. The work may have another
    /// id here.
    private func isOwnLink(_ path: String, in incoming: Record) throws -> Bool {
        if try store.linksOfLiving(incoming).contains(where: { sameBytes($0, path) }) { return true }
        guard incoming.type == RecordType.publication, let (_, mine) = try sameListing(incoming) else { return false }
        return try Store.links(of: mine).contains { sameBytes($0, path) }
    }

    /// An event may be here with an id that the incoming one has not, or without: it means this store's file, too.
    private func dropOtherForms(_ unknown: inout [ByteName: [Record]]) throws {
        func texts(_ event: Record) throws -> Set<ByteName> {
            Set(try EventText.withoutID(Fields.parse(event.fields)).map { ByteName($0) })
        }
        guard unknown.values.contains(where: { $0.contains { $0.type == RecordType.event } }) else { return }
        try store.forEachLinking { stored in
            guard stored.record.type == RecordType.event else { return }
            for path in try Store.links(of: stored.record).map({ ByteName($0) }) {
                guard let others = unknown[path] else { continue }
                let mine = try texts(stored.record)
                let left = try others.filter { try $0.type != RecordType.event || mine.isDisjoint(with: texts($0)) }
                unknown[path] = left.isEmpty ? nil : left
            }
        }
    }

    func fetchAll(_ ids: [RecordID]) throws -> [HubRecord] {
        var found: [HubRecord] = []
        for start in stride(from: 0, to: ids.count, by: identity.limits.recordsPerPush) {
            let some = Array(ids[start..<min(ids.count, start + identity.limits.recordsPerPush)])
            found += try ask { try hub.fetch(some, for: link.user) }.records
        }
        return found.filter { Asset.problem($0.record) == nil }
    }

    /// Names that files of other devices have on the hub: this store does not know all of them yet.
    private func noteTakenNames(for mine: Asset) throws {
        while case .conflict(let path) = try store.nameBesideAnother(mine, isMoved: true),
            let theirs = try fetchAll([RecordID(zone: Store.assetZone, name: path)]).first
        {
            // The same bytes may have this name there: then it is the name to have.
            if try Asset(theirs.record)?.digest == mine.digest { return }
            _ = try? store.comingNames.insert(path)
        }
    }

    /// Whether the hub's file is no version of what both sides had under its path.
    func isStranger(_ theirs: Record, to base: String?) throws -> Bool {
        guard let base, !theirs.isDeleted, try Asset(theirs)?.digest.hex != base else { return false }
        return try !Asset.earlierVersions(of: theirs).contains(base)
    }

    /// The store's files get other names, and its links follow them. Links of the store never mean the hub's files where
    /// these are strangers and records that link them have not come yet. Must run inside `batch`.
    func giveWay(_ files: [Asset], strangers: Set<ByteName> = [], in folder: String) throws {
        var moved: [ByteName: String] = [:]
        let waiting = try files.isEmpty ? [] : store.conflicts().filter(\.isAboutAssets)
        for (number, mine) in files.enumerated() {
            let isVersion = try !strangers.contains(ByteName(mine.path)) && store.hubAsset(mine.path)?.base != nil
            let copy = try setAside(mine, as: "ours-\(number)", in: folder)
            let changed = try store.removeAsset(mine)
            if let path = try (copy == nil ? changed : nil) ?? keep(mine, from: copy, ofOneFile: isVersion) {
                moved[ByteName(mine.path)] = path
            }
        }
        try store.relink(moved) { stored, path in
            try strangers.contains(ByteName(path)) ? .ours : meaning(of: path, in: stored)
        }
        try store.moveMemory(moved)
        // What waits about a file of ours goes with it: of the hub's file somebody may have decided.
        for conflict in waiting {
            guard let path = moved[ByteName(conflict.incoming)], try store.hasAsset(conflict.existing) else { continue }
            try store.noteConflict(
                kind: Conflict.attachment, subject: conflict.subject, existing: conflict.existing, incoming: path)
        }
        for mine in files where moved[ByteName(mine.path)] == nil { try store.forgetAsset(mine.path) }
    }

    /// For a file that another device has changed in place: the old bytes get a name beside it, and links that the hub does
    /// not know of yet follow them. Must run inside `batch`.
    func leaveBytesToUnsentLinks(_ mine: Asset, in folder: String) throws {
        guard let path = try keep(mine, from: setAside(mine, as: "ours", in: folder)) else { return }
        try store.relink([ByteName(mine.path): path]) { try meaning(of: $1, in: $0) == .ours ? .ours : .theirs }
    }

    /// Records here name a path that had no file here or on the hub when they were written: the hub's file is not theirs. Must
    /// run inside `batch`.
    func leaveOpenLinks(to path: String) throws {
        var leaving: [Store.StoredRecord] = []
        try store.forEachLinking { stored in
            guard try Store.links(of: stored.record).contains(where: { sameBytes($0, path) }),
                !linkedByJoin.contains(stored.record.id)
            else { return }
            if try meaning(of: path, in: stored) == .ours { leaving.append(stored) }
        }
        for stored in leaving {
            try store.rewrite(stored, as: stored.record.leaving([path]))
            result.findings.append(
                Finding(
                    .linkMissing, .warning, path,
                    "is named by \(stored.record.id) and was not here; "
                        + "the hub has another file of that name, so it was not linked",
                    remedy: "import it again with its file"))
        }
    }

    /// Keeps a file under a name beside the one that has its path now. Returns that name, also of a file that is not in the
    /// store's folder. Nil where it needs none.
    private func keep(_ mine: Asset, from copy: String?, ofOneFile: Bool = true) throws -> String? {
        guard let path = try store.nameOnLeaving(mine) else { return nil }
        if try store.hasAsset(path) { return path }
        guard let copy else {
            try addLost(mine, as: path)
            return path
        }
        try store.placeAsset(mine, from: copy, as: path, ofOneFile: ofOneFile)
        result.findings.append(
            Finding(.conflict, .warning, mine.path, "differs from the hub's file of that name; ours is kept as \(path)")
        )
        return path
    }

    private func addLost(_ mine: Asset, as path: String) throws {
        try store.addRow(mine.renamed(path))
        result.findings.append(
            Finding(
                .conflict, .warning, mine.path,
                "differs from the hub's file of that name; ours is not in the store's folder, and is now called \(path)"
            ))
    }

    /// Whose file a record of this store links.
    func meaning(of path: String, in stored: Store.StoredRecord) throws -> Store.Meaning {
        let versions = try store.hubVersions(of: stored).filter { version in
            try Store.links(in: version.fields, type: stored.record.type).contains { sameBytes($0, path) }
        }
        guard let latest = versions.map(\.number).max() else { return .ours }
        guard let known = try store.hubAsset(path) else { return .both }
        // A device sends its files before the records that link them.
        if known.isStranger { return latest > known.version ? .theirs : .ours }
        // This store has never had the hub's file there, but knew of it.
        return known.base == nil && (known.isWanted || known.digest != nil) ? .theirs : .both
    }

    /// A copy of the store's file; nil when it is not there.
    private func setAside(_ asset: Asset, as name: String, in folder: String) throws -> String? {
        guard try store.isInPlace(asset) else { return nil }
        if store.isPlaying {
            let isHere =
                try store.pending(asset.path) != nil || store.openPlace(of: asset).digest() == asset.digest
            return isHere ? "" : nil
        }
        let source = try store.openPlace(of: asset)
        guard try RootDirectory(folder).copy(source, to: name) == asset.digest else { return nil }
        return "\(folder)/\(name)"
    }
}
