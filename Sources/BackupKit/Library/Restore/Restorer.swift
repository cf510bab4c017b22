/// What a restore shall do.
public struct RestoreOptions {
    public enum Mode: String, Sendable, CaseIterable { case merge, replace }

    public var mode = Mode.merge
    /// Settings only when asked for.
    public var kinds: Set<Kind> = Set(Kind.allCases).subtracting([.settings])
    public var match: RecordQuery?
    /// Whether somebody has named the kinds.
    public var namesKinds = false
    public var policy = SyncPolicy.honor
    public var dryRun = false
    /// List what is done record by record; a dry run does so anyway.
    public var keepsPlan = false
    public var allowDamage = false
    /// Of a damaged backup, also what no checksum vouches for, where there is nothing else.
    var takesDoubtful = true
    /// Where the defaults come from that older data lacks.
    public var schema: DataSchema?
    public var limits = ReadLimits()
    public var progress = Progress.none
    /// Whether files that only other devices had are named, where records that link them come in.
    var namesFilesElsewhere = true
    /// Told of every record of the backup, and of what became of it.
    var heard: (Record, Outcome) throws -> Void = { _, _ in }
    /// What the undo list calls it.
    public var kindOfBatch = "restore"

    public init() {}

    /// An import says itself what it leaves out.
    fileprivate var leavesSettingsOutUnasked: Bool {
        kindOfBatch == "restore" && match == nil && !namesKinds && !kinds.contains(.settings)
    }

    /// What brings back the records that somebody has named; nil where everything is restored.
    fileprivate var resurrectingCommand: String? {
        guard match != nil || namesKinds, policy == .honor else { return nil }
        let named = (match?.texts ?? []).map { TypedCommand.option("match", $0) }
        let only = namesKinds ? ["--only \(kinds.map(\.rawValue).sorted().joined(separator: ","))"] : []
        return (["backup-tool restore BACKUP"] + named + only + ["--resurrect"]).joined(separator: " ")
    }
}

/// Brings a backup back into a store, or out as plain files.
///
/// First everything is brought into a folder beside the store's assets and hashed on the way; then the manifest judges it;
/// only then the store is opened for the one transaction. Whatever goes wrong before leaves the store as it was.
public enum Restorer {
    public static func restore(_ path: String, into store: Store, _ options: RestoreOptions) throws -> IntakeResult {
        try restore(path, opened: nil, into: store, options)
    }

    /// For who has opened `path` already: the newest snapshot of a vault may be another one by now.
    static func restore(
        _ path: String, opened: OpenedLayout?, into store: Store, _ options: RestoreOptions
    ) throws -> IntakeResult {
        try store.withIncomingFolder { folder in
            let prepared = try prepare(path, opened, in: folder, options)
            try store.checkPurges()
            let intake = Intake(store)
            intake.keepsPlan = options.keepsPlan || options.dryRun
            let (_, batch) = try store.batch(
                kind: options.kindOfBatch, source: path, dryRun: options.dryRun, notesIdle: true
            ) {
                try intake.noteWaiting()
                try apply(prepared, to: intake, options)
                try intake.writeSettings()
                try intake.noteCiteKeys()
                try intake.planLinks()
                try intake.countConflicts()
                return ((), summary: intake.summary)
            }
            return intake.finished(batch)
        }
    }

    /// Inside the batch: records, settings, attachments.
    static func apply(_ prepared: Prepared, to intake: Intake, _ options: RestoreOptions) throws {
        if options.mode == .replace { try intake.store.checkTypeIndex() }
        intake.policy = options.policy
        intake.heard = options.heard
        intake.overwrite = prepared.mayReplace(options, intake)
        intake.looksInside = true
        intake.isAskedFor = options.match != nil
        intake.resurrects = options.resurrectingCommand
        intake.schema = options.schema
        intake.isFromImbib = prepared.layout.isImbib
        for finding in prepared.findings where !prepared.isOfUnprovedFile(finding) { intake.note(finding) }
        let unsound = Set(prepared.findings.filter(\.isOfBytes).map(\.subject))
        var wanted = WantedFiles(options)
        let replaced = prepared.replacedKinds(options, intake)
        let views = BackupIntake(
            prepared: prepared, unsound: unsound, kinds: options.kinds, limits: options.limits,
            takesDoubtful: options.takesDoubtful)
        intake.remaining = try RemainingLinks(beside: intake, kinds: options.kinds, isAskedFor: wanted.namesFile) {
            var wanted = WantedFiles(options)
            _ = try takeRecords(views, &wanted, $0, options, isReplaced: !replaced.isEmpty)
            if options.match == nil { try views.takeDamaged(into: $0) }
            if !replaced.isEmpty { try $0.removeOthers(kinds: replaced) }
        }
        // Before places are planned: what goes leaves its name to others.
        let sound = files(of: prepared, unsound)
        if replaced.contains(.attachments) {
            try intake.removeOtherAssets(than: sound, prepared.filesItLacks(unsound))
        }
        try intake.findUnsoundRows()
        try intake.findPurgedFiles(views.naming)
        try intake.planPlaces(
            of: sound, others: prepared.listedFiles, areTaken: options.kinds.contains(.attachments), views.naming)
        defer {
            (intake.moved, intake.backupLinks, intake.namedByDeleted, intake.isFromImbib) = ([:], nil, [], false)
            intake.store.comingNames = EntryNameSet()
        }
        let elsewhere = try FilesElsewhere(prepared, intake, options)
        let heard = intake.heard
        var links = LinksOfCutBackup()
        if prepared.layout.manifest.isMissing, options.kinds.contains(.attachments), options.policy != .quarantine {
            intake.heard = { record, outcome in
                try links.note(record, outcome)
                try heard(record, outcome)
            }
        }
        defer { intake.heard = heard }
        let publications = try takeRecords(views, &wanted, intake, options, isReplaced: !replaced.isEmpty)
        try takeSettings(views, intake, options)
        if options.match == nil, options.policy != .quarantine { try views.takeDamaged(into: intake) }
        if replaced.contains(.settings), prepared.file(Layout.settings) != nil { try intake.removeOtherSettings() }
        var places = prepared.staged.files.keys.filter { prepared.layout.role(of: $0) == .attachment }.sorted()
            .map { String($0.dropFirst(prepared.layout.prefix.count)) }.map { (name: $0, place: $0) }
        if options.kinds.contains(.attachments) {
            // Only records say of all files whose they are.
            if !publications.names.isEmpty { intake.namedByDeleted = [] }
            places = try takeAssets(prepared, unsound, &wanted, intake, options)
            let taken = Set(places.map { prepared.layout.prefix + $0.name })
            let unproved = prepared.findings.filter(prepared.isOfUnprovedFile)
            for finding in unproved where taken.contains(finding.subject) { intake.note(finding) }
        }
        try takeConflicts(wanted, intake)
        if options.kinds.contains(.events), options.mode == .merge { try noteEventTwins(intake) }
        try views.linkAttachments(publications, places, intake)
        try elsewhere.report(to: intake)
        try links.report(to: intake)
        let listing = views.listing(options.kinds)
        try refuseEmptyChoice(prepared.path, wanted, intake, options, listing)
        for finding in wanted.unmatched(listing) { intake.note(finding) }
        if !sound.isEmpty { wanted.kinds.insert(.attachments) }
        if prepared.file(Layout.settings) != nil { wanted.kinds.insert(.settings) }
        noteMissingKinds(prepared, besides: wanted.kinds.union(replaced), intake, options)
        if !replaced.isEmpty {
            try intake.removeOthers(kinds: replaced)
            intake.noteStaysDeleted(of: prepared.path)
        }
        if options.match == nil { intake.noteUnsoundRows(of: options.kinds) }
    }

    private static func takeSettings(_ views: BackupIntake, _ intake: Intake, _ options: RestoreOptions) throws {
        if options.kinds.contains(.settings) {
            if options.policy == .quarantine {
                intake.note(
                    Finding(.skipped, .warning, Layout.settings, "settings have no quarantine; they were left out"))
            } else {
                try views.takeSettings(into: intake)
            }
        }
        if options.leavesSettingsOutUnasked, let finding = try views.settingsLeftOut(by: intake) {
            intake.note(finding)
        }
    }

    /// `isReplaced`: `removeOthers` takes the orders of files.
    private static func takeRecords(
        _ views: BackupIntake, _ wanted: inout WantedFiles, _ intake: Intake, _ options: RestoreOptions,
        isReplaced: Bool
    ) throws -> BackupIntake.FromBibliography {
        let publications = try views.takeRecords(into: intake) { record in
            guard options.kinds.contains(record.kind) else { return false }
            return wanted.takes(record)
        }
        try intake.takePostponed()
        if !isReplaced { try intake.takeOrders() }
        return publications
    }

    /// The attachments of a backup. In a dry run its manifest tells of them.
    private static func files(of prepared: Prepared, _ unsound: Set<String>) -> [Asset] {
        let (layout, staged) = (prepared.layout, prepared.staged)
        var facts = layout.expected.mapValues { (size: $0.size, digest: $0.digest) }
        for (path, file) in staged.files { facts[path] = (file.size, file.digest) }
        return facts.filter { layout.role(of: $0.key) == .attachment && !unsound.contains($0.key) }
            .sorted { precedesBytewise($0.key, $1.key) }
            .map {
                Asset(path: String($0.key.dropFirst(layout.prefix.count)), size: $0.value.size, digest: $0.value.digest)
            }
    }

    /// Returns the files with the places that they have in the store.
    private static func takeAssets(
        _ prepared: Prepared, _ unsound: Set<String>, _ wanted: inout WantedFiles, _ intake: Intake,
        _ options: RestoreOptions
    ) throws -> [(name: String, place: String)] {
        var places: [(name: String, place: String)] = []
        let files = prepared.staged.files.filter { prepared.layout.role(of: $0.key) == .attachment }
        let rotten = options.mode == .merge ? prepared.rottenFiles : []
        for (path, facts) in files.sorted(by: { $0.key < $1.key }) where !unsound.contains(path) {
            let name = String(path.dropFirst(prepared.layout.prefix.count))
            guard wanted.takesFile(name) else { continue }
            if try !wanted.namesFile(name) && intake.staysDeleted(name) { continue }
            // The file was damaged already when it was backed up.
            let mayBeRot = rotten.contains(name)
            if mayBeRot, let known = try intake.store.asset(name), known.digest != facts.digest { continue }
            let asset = Asset(
                path: name, size: facts.size, digest: facts.digest,
                isLocalOnly: prepared.layout.expected[path]?.isLocalOnly ?? false,
                modifiedNanoseconds: (prepared.staged.modified[path] ?? 0).times(clamped: 1_000_000_000))
            if try intake.staysPurged(asset) { continue }
            let place = try intake.take(asset, from: options.dryRun ? nil : "\(prepared.folder)/\(path)")
            if let place { places.append((name, place)) }
        }
        return places
    }

    /// Names restored events that the store had already, in the form with an id or the one without.
    private static func noteEventTwins(_ intake: Intake) throws {
        guard let batch = intake.store.currentBatch else { return }
        let count = try EventTwins(store: intake.store).count(meetingSince: batch.firstChange)
        guard count > 0 else { return }
        intake.note(
            Finding(
                .untidy, .warning, count == 1 ? "1 event" : "\(count) events",
                "\(count == 1 ? "is" : "are") in the store twice now, with and without an id",
                remedy: "'backup-tool dedup --dry-run' lists them, 'backup-tool dedup' merges each pair"))
    }

    /// Throws when nothing was found of what was asked for, but not in a damaged backup: the lost part may have had it.
    private static func refuseEmptyChoice(
        _ path: String, _ wanted: WantedFiles, _ intake: Intake, _ options: RestoreOptions, _ listing: String
    ) throws {
        guard intake.result.findings.isEmpty else { return }
        if let words = options.match?.texts, wanted.hasChosenNothing {
            throw BackupError(
                .failed, "holds nothing with these words: \(words.joined(separator: ", "))", at: path, remedy: listing)
        }
        if options.namesKinds, options.match == nil, options.mode == .merge, intake.hasTakenNothing {
            let kinds = options.kinds.map(\.rawValue).sorted().joined(separator: ", ")
            throw BackupError(
                .failed, "holds no \(kinds)", at: path, remedy: "'backup-tool list BACKUP' lists its files")
        }
    }

    /// Names kinds of which a sound backup has nothing. Who names all kinds asks for what there is.
    private static func noteMissingKinds(
        _ prepared: Prepared, besides found: Set<Kind>, _ intake: Intake, _ options: RestoreOptions
    ) {
        // An import may have these kinds from another source.
        guard options.kindOfBatch == "restore", options.namesKinds, options.match == nil,
            options.kinds != Set(Kind.allCases),
            !prepared.findings.contains(where: { $0.severity == .damage })
        else { return }
        let missing = options.kinds.subtracting(found).map(\.rawValue).sorted()
        guard !missing.isEmpty else { return }
        intake.note(
            Finding(
                .entryMissing, .warning, prepared.path, "holds no \(missing.joined(separator: ", "))",
                remedy: "'backup-tool list BACKUP' lists its files"))
    }

    /// Takes the conflicts of chosen works where both works are in the store.
    private static func takeConflicts(_ wanted: WantedFiles, _ intake: Intake) throws {
        for record in wanted.conflicts {
            guard let named = try Conflict(record), [named.existing, named.incoming].contains(where: wanted.isChosen),
                let ofWorksHere = try Conflict.following(record, works: intake.newIDs),
                let here = try Conflict.following(ofWorksHere, files: intake.moved), let conflict = try Conflict(here),
                try intake.store.pointless(conflict) == nil
            else { continue }
            try intake.take(ofWorksHere)
        }
    }

    /// Writes the files of a backup into a new folder, every digest checked. Nothing is written over `store` or into it.
    public static func extract(
        _ path: String, to target: String, besides store: String? = nil, replace: Bool = false,
        _ options: RestoreOptions
    ) throws -> (files: Int, bytes: Int64, findings: [Finding]) {
        let layout = try OpenedLayout.open(path, limits: options.limits)
        if layout.isVault { throw layout.noLibrary(at: path) }
        let place = try OutputPlace.behindLinks(target)
        try Replacing(source: VaultAddress(path)?.path ?? path, besides: store, isKept: layout.holds)
            .check(place, replace: replace)
        return try AtomicFile.writeDirectory(place, replace: replace) { folder in
            let staging = try Staging(layout, into: folder, options.limits, progress: options.progress)
            try staging.read()
            let staged = staging.finish()
            var findings = judge(layout, staged, Set(Kind.allCases))
            if layout.manifest.isMissing, findings.isEmpty { findings = [OpenedLayout.withoutManifest(path)] }
            let damage = findings.filter { $0.severity == .damage }
            if let first = damage.first, !options.allowDamage {
                throw BackupError(
                    .damaged, "is damaged: \(first.sentence)", at: path,
                    remedy: first.advice(
                        "'backup-tool verify BACKUP' lists everything; --allow-damage restores what is sound")
                )
            }
            var files = staged.files
            // What is not sound is not restored; 'show' still gives its bytes.
            for path in Set(damage.filter(\.isOfBytes).map(\.subject)) where files.removeValue(forKey: path) != nil {
                try Directory.removeTree("\(folder)/\(path)")
            }
            return (files.count, files.values.reduce(0) { $0 + $1.size }, findings)
        }
    }
}

extension OpenedLayout {
    /// Whether the backup has these bytes under this name.
    fileprivate func holds(_ name: String, _ digest: SHA256Digest) throws -> Bool {
        if let facts = expected[name] { return facts.digest == digest }
        guard entries.contains(where: { $0.path == name }) else { return false }
        let hasher = SHA256Hasher()
        try reader.read(name) { hasher.update($0) }
        return hasher.finish() == digest
    }

    /// Those of some kinds that the backup speaks of: what it leaves out by its making is not missing from it.
    func kinds(of wanted: Set<Kind>) -> Set<Kind> {
        switch manifest {
        case .own(let manifest): wanted.intersection(manifest.kinds)
        case .imbib: wanted.intersection([.publications, .notes, .attachments, .settings])
        case .none: wanted
        }
    }
}
