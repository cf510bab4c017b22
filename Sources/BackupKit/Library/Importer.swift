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
        /// A layout or an imbib backup, in a folder or an archive.
        case backup(String)
    }

    public static func run(_ paths: [String], into store: Store, _ options: ImportOptions) throws -> IntakeResult {
        let sources = try paths.flatMap { try Self.sources(of: $0, limits: options.limits) }
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
                try takeFiles(sources, intake, options)
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

    private static func takeFiles(_ sources: [Source], _ intake: Intake, _ options: ImportOptions) throws {
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
            case .notes(let path) where options.kinds.contains(.notes):
                try files.takeNotes(path: path, name: path, time: try time(of: path))
            case .settings(let path) where options.kinds.contains(.settings):
                try files.takeSettings(path: path, name: path, time: try time(of: path))
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
    static func sources(of path: String, limits: ReadLimits) throws -> [Source] {
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError(.notFound, "does not exist", at: path)
        }
        if status.isDirectory {
            if try isBackupFolder(path) { return [.backup(path)] }
            let found = try sourcesBelow(path, limits)
            guard !found.isEmpty else {
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

    private static func fileSource(_ path: String) -> Source? {
        let name = lastComponent(of: path).lowercased()
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

    private static func sourcesBelow(_ root: String, _ limits: ReadLimits) throws -> [Source] {
        var sources: [Source] = []
        var backups: [String] = []
        try Directory.walk(root) { relative, status in
            let path = "\(root)/\(relative)"
            if backups.contains(where: { path.hasPrefix($0 + "/") }) || Layout.isClutter(relative) { return }
            if status.isDirectory, try isBackupFolder(path) {
                backups.append(path)
                sources.append(.backup(path))
            } else if status.isRegular, let source = fileSource(path) {
                sources.append(source)
            }
        }
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
            if digest == nil || digest != known?.digest, !dryRun {
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
            let outcome = try intake.take(asset, from: staged)
            if case .conflict(let kept) = outcome { paths.append(kept) } else { paths.append(asset.path) }
        }
        for path in try AttachmentLinks(intake.store).link(paths) {
            intake.note(
                Finding(
                    .unlinked, .warning, path, "belongs to no publication; it is kept",
                    remedy: "name it after a cite key, or name it in an entry's file field"))
        }
    }
}
