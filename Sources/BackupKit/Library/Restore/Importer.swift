/// Takes what the apps and other tools write into a store: one batch, however many paths.
public enum Importer {
    /// One thing that a path turned out to be.
    enum Source {
        case bibliography(String)
        case events(String)
        case notes(String)
        case settings(String)
        /// `records.jsonl`, every record whole.
        case records(String)
        /// Files of a folder that are of no kind that an import takes.
        case leftOut(String, [String])
        /// What a folder holds and cannot be read, with the reason.
        case unreadable(String, String)
        /// A link in a folder, which is not followed.
        case link(String)
        /// A layout or an imbib backup, in a folder or an archive.
        case backup(String)

        var isTaken: Bool {
            switch self {
            case .leftOut, .unreadable, .link: false
            default: true
            }
        }

        /// The file that it is.
        var file: String? {
            switch self {
            case .bibliography(let path), .events(let path), .notes(let path), .settings(let path), .records(let path),
                .backup(let path):
                path
            case .leftOut, .unreadable, .link: nil
            }
        }

        var isLink: Bool { if case .link = self { true } else { false } }
    }

    public static func run(_ paths: [String], into store: Store, _ options: ImportOptions) throws -> IntakeResult {
        var refusedArchives: [Finding] = []
        let found = try paths.flatMap { path in
            do {
                return try Self.sources(
                    of: path, limits: options.limits, attachments: options.attachments, own: OwnFiles(of: store))
            } catch let error as BackupError where paths.count > 1 && [.refused, .damaged].contains(error.code) {
                refusedArchives.append(Self.leftOut(path, error))
                return []
            }
        }
        if options.attachments != nil, !options.kinds.contains(.attachments) {
            throw BackupError(
                .usage, "--attachments takes attachments, which --only leaves out",
                remedy: "name them as well: --only attachments")
        }
        let (sources, refused) = try readable(found)
        if options.mirror { try checkMirror(sources, refused) }
        return try store.withIncomingFolder { folder in
            let (backups, unsound) = try prepare(sources, in: folder, options)
            var attachments = try options.attachments.map { root in
                let taken = Set(sources.compactMap { $0.file.flatMap(Directory.real).map { ByteName($0) } })
                return try AttachmentFolder.stage(
                    root, besides: taken, for: store, in: folder, dryRun: options.dryRun, options.progress)
            }
            try store.checkPurges()
            let intake = Intake(store)
            intake.keepsPlan = options.keepsPlan || options.dryRun
            intake.isEdit = options.overwrite
            for file in refused { intake.reject(file.path, file.why) }
            for finding in try refusedArchives + unsound + store.importDamage() { intake.note(finding) }
            try noteUnwanted(sources, named: Set(paths), intake, options.kinds)
            try noteEmpty(sources, named: Set(paths), intake)
            let events = try scanEvents(sources, for: intake, in: folder, options)
            let named =
                try options.kinds.contains(.attachments)
                ? NamedFiles(paths: paths, attachments: options.attachments) : nil
            let (_, batch) = try store.batch(
                kind: "import", source: (paths + (options.attachments.map { [$0] } ?? [])).joined(separator: " "),
                dryRun: options.dryRun, notesIdle: true
            ) {
                defer { store.comingNames = EntryNameSet() }
                try intake.noteWaiting()
                for backup in backups {
                    let before = intake.taken
                    try Restorer.apply(backup.prepared, to: intake, restoreOptions(options))
                    if intake.taken == before { noteNothing(in: backup.path, intake, options) }
                    try noteSettings(of: backup.prepared, backup.path, intake, options.kinds)
                }
                try takeFiles(sources, naming: named, intake, options)
                try events?.take()
                try named?.take(into: intake, in: folder, dryRun: options.dryRun)
                attachments?.leaveOut(named?.taken ?? [])
                attachments?.linked = { try named?.linkedFiles(ofClaims: $1, in: store) ?? [] }
                try noteStrayFiles(below: paths + [options.attachments].compactMap(\.self), intake)
                let files = try attachments.map { try events?.take($0) ?? $0.take(into: intake) } ?? []
                let known = [events?.found, named?.taken, named?.leftDeleted].compactMap(\.self)
                try noteLeftOut(sources, known: known.reduce(into: []) { $0.formUnion($1) }, options, intake)
                try events?.claim(files)
                if attachments != nil {
                    let links = try AttachmentLinks(
                        store, imported: named?.publications ?? [:], claims: named?.claims(in: store) ?? [:])
                    try AttachmentFolder.link(files, by: links, named, intake)
                }
                try named?.reportMissing(to: intake)
                try intake.writeSettings()
                try intake.noteCiteKeys()
                try intake.planLinks()
                try intake.countConflicts()
                return ((), summary: intake.summary)
            }
            return intake.finished(batch)
        }
    }

    /// Looks into the backups. One that cannot be taken is named, and the other sources go on.
    private static func prepare(
        _ sources: [Source], in folder: String, _ options: ImportOptions
    ) throws -> (backups: [(path: String, prepared: Restorer.Prepared)], unsound: [Finding]) {
        var backups: [(path: String, prepared: Restorer.Prepared)] = []
        var unsound: [Finding] = []
        for (number, source) in sources.enumerated() {
            guard case .backup(let path) = source else { continue }
            let inner = "\(folder)/\(number)"
            try Directory.create(inner)
            do { backups.append((path, try Restorer.prepare(path, in: inner, restoreOptions(options)))) } catch let
                error as BackupError where sources.count > 1 && error.isVerdict && error.code != .destinationFull
            {
                unsound.append(leftOut(path, error))
                try Directory.removeTree(inner)
            }
        }
        return (backups, unsound)
    }

    private static func checkMirror(_ sources: [Source], _ refused: [(path: String, why: String)]) throws {
        if sources.isEmpty, let file = refused.first { throw BackupError(.refused, file.why, at: file.path) }
        guard sources.count == 1, case .bibliography? = sources.first else {
            throw BackupError(.usage, "--mirror takes one .bib file", remedy: "import other files without it")
        }
    }

    private static func restoreOptions(_ options: ImportOptions) -> RestoreOptions {
        var restore = RestoreOptions()
        restore.kindOfBatch = "import"
        restore.kinds = options.kinds
        restore.dryRun = options.dryRun
        restore.limits = options.limits
        restore.limits.leavesOutOddFiles = true
        restore.progress = options.progress
        return restore
    }

    /// Event logs are read once before the batch begins; nil when there are none.
    private static func scanEvents(
        _ sources: [Source], for intake: Intake, in folder: String, _ options: ImportOptions
    ) throws -> EventLogs? {
        let paths = sources.compactMap { if case .events(let path) = $0 { path } else { nil } }
        guard options.kinds.contains(.events), !paths.isEmpty else { return nil }
        return try EventLogs(paths, for: intake, in: folder, options)
    }

    private static func takeFiles(
        _ sources: [Source], naming namedFiles: NamedFiles?, _ intake: Intake, _ options: ImportOptions
    ) throws {
        var bibliography: BibliographyIntake?
        let files = FileIntake(intake, options.limits)
        if options.kinds.contains(.events), !intake.takesBatches {
            let logs = sources.compactMap { if case .events(let path) = $0 { path } else { nil } }
            try files.takeEvents(logs.map { ($0, $0) }, rejects: options.rejected.map(RejectedLines.init))
        }
        /// By the folder that a bibliography lies in: notes that lie beside it are on its publications.
        var works: [String: [String: [String]]] = [:]
        let hasNotes =
            options.kinds.contains(.notes) && sources.contains { if case .notes = $0 { true } else { false } }
        for source in sources {
            switch source {
            case .bibliography(let path) where options.kinds.contains(.publications):
                let reader = try bibliography ?? BibliographyIntake(intake)
                bibliography = reader
                reader.namedFiles = namedFiles
                reader.mirrors = options.mirror
                reader.worksByKey = hasNotes ? [:] : nil
                try reader.take(path: path, name: lastComponent(of: path), time: try time(of: path))
                if let found = reader.worksByKey { works[parent(of: path), default: [:]].merge(found) { $0 + $1 } }
            case .records(let path):
                try files.takeRecords(path: path, name: path) { options.kinds.contains($0.kind) }
                try intake.takeOrders()
            case .settings(let path) where try options.kinds.contains(.settings) && !FileHandle.isBlank(path):
                try files.takeSettings(path: path, name: path, time: try time(of: path))
            default: break
            }
        }
        try bibliography?.reportDifferences()
        bibliography?.reportUnknownMacros()
        guard hasNotes else { return }
        for case .notes(let path) in sources where try !FileHandle.isBlank(path) {
            try files.takeNotes(path: path, name: path, time: try time(of: path), works: works[parent(of: path)])
        }
    }

    /// A file's entries are as old as the file.
    private static func time(of path: String) throws -> Timestamp {
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError.missing(path)
        }
        return Timestamp(milliseconds: status.modifiedNanoseconds / 1_000_000)
    }

    /// Finds out what a path is; a folder may hold several things.
    static func sources(
        of path: String, limits: ReadLimits, attachments: String? = nil, own: OwnFiles? = nil
    ) throws -> [Source] {
        guard let status = try FileStatus.ofTarget(path) else {
            guard path != "-" else { throw unreadableStream(path) }
            throw BackupError.missing(path)
        }
        if status.isDirectory {
            if try isBackupFolder(path) { return [.backup(path)] }
            let found = try sourcesBelow(path, attachments, own)
            guard found.contains(where: { $0.isTaken || $0.isLink }) else {
                let unreadable = found.lazy.compactMap {
                    if case .unreadable(let path, let why) = $0 { "; \(path): \(why)" } else { nil }
                }.first
                let archive = found.lazy.compactMap { source -> String? in
                    guard case .leftOut(_, let files) = source else { return nil }
                    return files.first(where: isArchive)
                }.first
                throw BackupError(
                    .failed, "holds nothing that can be imported\(unreadable ?? "")", at: path,
                    remedy: archive.map { remedy(forArchive: "\(path)/\($0)") }
                        ?? "import takes .bib files, .jsonl event logs, imbib backups and exported libraries")
            }
            return found
        }
        if !status.isRegular || isStandardInput(path) { throw unreadableStream(path) }
        if let source = fileSource(path) { return [source] }
        try Store.refuseAsBackup(path)
        guard try CarrierOpener.open(path, limits: limits) is ArchiveReader else { return [] }
        return [.backup(path)]
    }

    /// A file that a shell redirects has no name to tell what it is.
    private static func isStandardInput(_ path: String) -> Bool { ["/dev/stdin", "/dev/fd/0"].contains(path) }

    private static func unreadableStream(_ path: String) -> BackupError {
        BackupError(
            .usage, "is no file: import reads files and folders, not pipes or devices", at: path,
            remedy: "write it to a file first, with a name that ends in .bib or .jsonl")
    }

    /// Whether `path` is a file that an import takes by its name: a bibliography, an event log.
    static func isSingleFile(_ path: String) -> Bool {
        guard fileSource(path) != nil, let status = try? FileStatus.ofTarget(path) else { return false }
        return status.isRegular
    }

    /// Throws where what should be a backup is a bibliography or an event log by its name.
    static func refuseSingleFile(_ path: String) throws {
        guard isSingleFile(path) else { return }
        throw BackupError(
            .usage, "is a single file of an app, not a backup", at: path,
            remedy: "\(TypedCommand.quoted("import", [path])) takes it, with the same care for what is newer")
    }

    static func fileSource(_ path: String) -> Source? {
        let name = lastComponent(of: path).lowercased()
        if name == Layout.records { return .records(path) }
        if name.hasSuffix(".bib") { return .bibliography(path) }
        if name.hasSuffix(".jsonl") { return .events(path) }
        if name == Layout.notes { return .notes(path) }
        if name == Layout.settings { return .settings(path) }
        return nil
    }

    static func isBackupFolder(_ path: String) throws -> Bool {
        func has(_ name: String) throws -> Bool { try FileStatus.ofTarget("\(path)/\(name)")?.isRegular == true }
        if try has(Layout.records) { return true }
        let manifest = "\(path)/\(Manifest.fileName)"
        return try has(Manifest.fileName) && (has(ChecksumFile.fileName) || !LayoutManifest.isForeign(manifest))
    }

    private static func sourcesBelow(_ root: String, _ attachments: String?, _ own: OwnFiles?) throws -> [Source] {
        var sources: [Source] = []
        var backups: [String] = []
        var leftOut: [String] = []
        let taken = try attachments.flatMap { try FileStatus.ofTarget($0) }
        var takenFolder: String?
        let real = Directory.real(root) ?? root
        func leaveOut(_ path: String, _ reason: String) { sources.append(.unreadable(path, reason)) }
        try Directory.walk(root, obstacle: { leaveOut("\(root)/\($0)", $1) }) { relative, status in
            let path = "\(root)/\(relative)"
            if backups.contains(where: { path.hasPrefix($0 + "/") }) || EntryName.isClutter(relative) { return }
            if own?.holds(relative, below: real) == true { return }
            if let takenFolder, path.hasPrefix(takenFolder + "/") { return }
            if status.isDirectory, taken.map(status.isSame) == true {
                takenFolder = path
            } else if status.isDirectory {
                // A folder that cannot be read is met again by the walk, which names it.
                guard (try? isBackupFolder(path)) == true else { return }
                backups.append(path)
                sources.append(.backup(path))
            } else if status.isRegular, let source = fileSource(path) {
                do {
                    _ = try FileHandle.openForReading(path)
                    sources.append(source)
                } catch let error as BackupError where error.isVerdict { leaveOut(path, error.message) }
            } else if status.isLink {
                sources.append(.link(path))
            } else if status.isRegular {
                leftOut.append(relative)
            } else {
                leaveOut(path, "it is \(status.kindText)")
            }
        }
        if !leftOut.isEmpty { sources.append(.leftOut(root, leftOut)) }
        return sources
    }
}
