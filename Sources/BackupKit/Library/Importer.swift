/// What an import shall do.
public struct ImportOptions: Sendable {
    /// A folder, every file of which becomes an attachment.
    public var attachments: String?
    public var kinds: Set<Kind> = Set(Kind.allCases).subtracting([.settings])
    public var dryRun = false
    /// List what is done record by record; a dry run does so anyway.
    public var keepsPlan = false
    public var limits = ReadLimits()
    public var progress = Progress.none

    public init() {}
}

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
        case leftOut(String, count: Int, first: String)
        /// A layout or an imbib backup, in a folder or an archive.
        case backup(String)
    }

    public static func run(_ paths: [String], into store: Store, _ options: ImportOptions) throws -> IntakeResult {
        let sources = try paths.flatMap { path in
            try Self.sources(of: path, limits: options.limits, attachments: options.attachments)
        }
        return try store.withIncomingFolder { folder in
            var backups: [(path: String, prepared: Restorer.Prepared)] = []
            for case .backup(let path) in sources {
                let inner = "\(folder)/\(backups.count)"
                try Directory.create(inner)
                backups.append((path, try Restorer.prepare(path, in: inner, restoreOptions(options))))
            }
            let attachments = try options.attachments.map { root in
                try AttachmentFolder.stage(root, for: store, in: folder, dryRun: options.dryRun, options.progress)
            }
            let intake = Intake(store)
            intake.keepsPlan = options.keepsPlan || options.dryRun
            let (_, batch) = try store.batch(
                kind: "import", source: (paths + (options.attachments.map { [$0] } ?? [])).joined(separator: " "),
                dryRun: options.dryRun
            ) {
                for backup in backups { try Restorer.apply(backup.prepared, to: intake, restoreOptions(options)) }
                try takeFiles(sources, named: Set(paths), intake, options)
                if let attachments { try attachments.take(into: intake) }
                return ((), summary: intake.summary)
            }
            return intake.finished(batch)
        }
    }

    private static func restoreOptions(_ options: ImportOptions) -> RestoreOptions {
        var restore = RestoreOptions()
        restore.kinds = options.kinds
        restore.dryRun = options.dryRun
        restore.limits = options.limits
        restore.progress = options.progress
        return restore
    }

    private static func takeFiles(
        _ sources: [Source], named: Set<String>, _ intake: Intake, _ options: ImportOptions
    ) throws {
        var bibliography: BibliographyIntake?
        let files = FileIntake(intake, options.limits)
        for source in sources {
            switch source {
            case .bibliography(let path) where options.kinds.contains(.publications):
                let reader = try bibliography ?? BibliographyIntake(intake)
                bibliography = reader
                try reader.take(path: path, name: lastComponent(of: path), time: try time(of: path))
            case .events(let path) where options.kinds.contains(.events):
                try files.takeEvents(path: path, name: path)
            case .records(let path):
                try files.takeRecords(path: path, name: path) { options.kinds.contains(Kind(recordType: $0.type)) }
            case .notes(let path) where options.kinds.contains(.notes):
                try files.takeNotes(path: path, name: path, time: try time(of: path))
            case .settings(let path) where options.kinds.contains(.settings):
                try files.takeSettings(path: path, name: path, time: try time(of: path))
            case .settings(let path):
                intake.note(
                    Finding(
                        .skipped, named.contains(path) ? .warning : .note, path,
                        "was left out: settings are only taken when asked for",
                        remedy: "name the kind: --only settings"))
            case .leftOut(let path, let count, let first):
                intake.note(
                    Finding(
                        .skipped, .warning, path,
                        "holds \(count) \(count == 1 ? "file" : "files") that import does not take, such as \(first)",
                        remedy: "--attachments DIR takes files of any kind"))
            default: break
            }
        }
    }

    /// A file's entries are as old as the file.
    private static func time(of path: String) throws -> Timestamp {
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError(.notFound, "does not exist", at: path)
        }
        return Timestamp(milliseconds: status.modifiedNanoseconds / 1_000_000)
    }

    /// Finds out what a path is; a folder may hold several things.
    static func sources(of path: String, limits: ReadLimits, attachments: String? = nil) throws -> [Source] {
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError(.notFound, "does not exist", at: path)
        }
        if status.isDirectory {
            if try isBackupFolder(path) { return [.backup(path)] }
            let found = try sourcesBelow(path, attachments)
            guard found.contains(where: { if case .leftOut = $0 { false } else { true } }) else {
                throw BackupError(
                    .failed, "holds nothing that can be imported", at: path,
                    remedy: "import takes .bib files, .jsonl event logs, imbib backups and exported libraries")
            }
            return found
        }
        if let source = fileSource(path) { return [source] }
        guard try CarrierOpener.open(path, limits: limits) is ArchiveReader else { return [] }
        return [.backup(path)]
    }

    /// Whether `path` is a file that an import takes by its name: a bibliography, an event log.
    static func isSingleFile(_ path: String) -> Bool {
        guard fileSource(path) != nil, let status = try? FileStatus.ofTarget(path) else { return false }
        return status.isRegular
    }

    private static func fileSource(_ path: String) -> Source? {
        let name = lastComponent(of: path).lowercased()
        if name == Layout.records { return .records(path) }
        if name.hasSuffix(".bib") { return .bibliography(path) }
        if name.hasSuffix(".jsonl") { return .events(path) }
        if name == Layout.notes { return .notes(path) }
        if name == Layout.settings { return .settings(path) }
        return nil
    }

    private static func isBackupFolder(_ path: String) throws -> Bool {
        try FileStatus.ofTarget("\(path)/\(Manifest.fileName)")?.isRegular == true
            || FileStatus.ofTarget("\(path)/\(Layout.records)")?.isRegular == true
    }

    private static func sourcesBelow(_ root: String, _ attachments: String?) throws -> [Source] {
        var sources: [Source] = []
        var backups: [String] = []
        var leftOut: (count: Int, first: String)?
        let taken = try attachments.flatMap { try FileStatus.ofTarget($0) }
        var takenFolder: String?
        try Directory.walk(root) { relative, status in
            let path = "\(root)/\(relative)"
            if backups.contains(where: { path.hasPrefix($0 + "/") }) || Layout.isClutter(relative) { return }
            if let takenFolder, path.hasPrefix(takenFolder + "/") { return }
            if status.isDirectory, status.inode == taken?.inode, status.device == taken?.device {
                takenFolder = path
            } else if status.isDirectory, try isBackupFolder(path) {
                backups.append(path)
                sources.append(.backup(path))
            } else if status.isRegular, let source = fileSource(path) {
                sources.append(source)
            } else if !status.isDirectory {
                leftOut = ((leftOut?.count ?? 0) + 1, leftOut?.first ?? relative)
            }
        }
        if let leftOut { sources.append(.leftOut(root, count: leftOut.count, first: leftOut.first)) }
        return sources
    }
}

/// The files of an `--attachments` folder, copied and hashed, waiting for the batch.
struct AttachmentFolder {
    private var assets: [(asset: Asset, staged: String?)] = []

    static func stage(
        _ root: String, for store: Store, in folder: String, dryRun: Bool, _ progress: Progress
    ) throws -> AttachmentFolder {
        guard try FileStatus.ofTarget(root)?.isDirectory == true else {
            throw BackupError(.notFound, "is no folder", at: root)
        }
        var result = AttachmentFolder()
        let staging = "\(folder)/attachments"
        try Directory.create(staging)
        let target = try RootDirectory(staging)
        var done: Int64 = 0
        try Directory.walk(root) { relative, status in
            guard !status.isDirectory, !Layout.isClutter(relative) else { return }
            guard status.isRegular else {
                throw BackupError(.refused, "is a link or a special file", at: "\(root)/\(relative)")
            }
            let inLayout = Layout.attachmentFolders.contains(where: relative.hasPrefix)
            let path = inLayout ? relative : "Attachments/" + relative
            try EntryName.check(path)
            let source = try FileHandle.openForReading("\(root)/\(relative)")
            // What the store has already is hashed where it lies; only what is new is copied.
            let known = try store.asset(path)
            var digest = known?.size == status.size ? try hash(source) : nil
            var staged: String?
            let isLost = try known != nil && FileStatus.ofName("\(store.assetFolder)/\(path)") == nil
            if digest == nil || digest != known?.digest || isLost, !dryRun {
                digest = try target.copy(source, to: path)
                staged = "\(staging)/\(path)"
            }
            let asset = Asset(
                path: path, size: status.size, digest: try digest ?? hash(source),
                modifiedNanoseconds: status.modifiedNanoseconds)
            result.assets.append((asset, staged))
            done += status.size
            progress.report(ProgressEvent("reading", done: UInt64(done), item: relative))
        }
        return result
    }

    private static func hash(_ file: FileHandle) throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        try file.forEachChunk { hasher.update($0) }
        return hasher.finish()
    }

    func take(into intake: Intake) throws {
        var paths: [String] = []
        for (asset, staged) in assets {
            if let kept = try intake.take(asset, from: staged) { paths.append(kept) }
        }
        for path in try AttachmentLinks(intake.store).link(paths) {
            intake.note(
                Finding(
                    .unlinked, .warning, path, "belongs to no publication; it is kept",
                    remedy: "name it after a cite key, or name it in an entry's file field"))
        }
    }
}
