/// The files of an `--attachments` folder, copied and hashed, waiting for the batch.
struct AttachmentFolder {
    /// A file that the store has now.
    struct Taken {
        /// Where it lies below the folder.
        let relative: String
        /// Its path in the store.
        let place: String
        /// The path in the store that a file of its name usually gets.
        var name: String { AttachmentFolder.path(of: relative) }
    }

    /// In the order they were added; nil for one that could not be taken.
    private var assets: [(asset: Asset, relative: String, staged: String?, source: String)?] = []
    /// What could not be taken, with the reason.
    private var skipped: [(path: String, reason: String)] = []
    private let staging: String
    private let target: RootDirectory
    /// Paths in the store that the publications link which a file is for, by its number and its path below the folder.
    var linked: (Int, String) throws -> [String] = { _, _ in [] }

    /// `folder` is where copies wait for the batch.
    init(_ folder: String) throws {
        staging = "\(folder)/attachments"
        if try FileStatus.ofName(staging) == nil { try Directory.create(staging) }
        target = try RootDirectory(staging)
    }

    /// `taken` are the real paths of files and backups that the same import reads: they are no attachments.
    static func stage(
        _ root: String, besides taken: Set<ByteName>, for store: Store, in folder: String, dryRun: Bool,
        _ progress: Progress
    ) throws -> AttachmentFolder {
        guard try FileStatus.ofTarget(root)?.isDirectory == true else {
            throw BackupError(.notFound, "is not a folder", at: root)
        }
        var result = try AttachmentFolder(folder)
        var done: UInt64 = 0
        var obstacles: [(path: String, reason: String)] = []
        let (own, real) = (OwnFiles(of: store), Directory.real(root) ?? root)
        var backup: String?
        try Directory.walk(root, obstacle: { obstacles.append(("\(root)/\($0)", $1)) }) { relative, status in
            // The walk goes through a folder at once.
            if let backup, relative.hasPrefix(backup) { return }
            let isTaken = taken.contains(ByteName("\(real)/\(relative)"))
            if status.isDirectory, isTaken { backup = relative + "/" }
            guard !status.isDirectory, !EntryName.isClutter(relative), !own.holds(relative, below: real), !isTaken
            else { return }
            guard status.isRegular else {
                return obstacles.append(("\(root)/\(relative)", "it is \(status.kindText)"))
            }
            try result.add(relative, below: root, for: store, dryRun: dryRun)
            done = done.plus(clamped: UInt64(clamping: status.size))
            progress.report(ProgressEvent("reading", done: done, item: relative))
        }
        result.skipped += obstacles
        return result
    }

    /// Takes one file; one that cannot be taken is noted, and the others go on. Returns whether it was taken. Links below
    /// `root` are not followed.
    @discardableResult
    mutating func add(_ relative: String, below root: String, for store: Store, dryRun: Bool) throws -> Bool {
        do { try stage(relative, below: root, for: store, dryRun: dryRun) } catch let error as BackupError
            where error.isVerdict && error.code != .destinationFull
        {
            skipped.append(("\(root)/\(relative)", error.message))
            assets.append(nil)
            return false
        }
        return true
    }

    /// Copies and hashes one file, unless the store has it.
    private mutating func stage(_ relative: String, below root: String, for store: Store, dryRun: Bool) throws {
        let source = try RootDirectory(root).openForReading(relative)
        let status = try source.status()
        guard !OwnFiles(of: store).holds(source.path) else {
            throw BackupError(.refused, "it is a file of the store", at: source.path)
        }
        let path = Self.path(of: relative)
        try Store.check(path)
        // What the store has already is hashed where it lies; only what is new is copied.
        // Where its row is damaged, whoever takes the file says so.
        let known = try store.ifSound { try store.asset(path) } ?? nil
        var digest = known?.size == status.size ? try Self.hash(source) : nil
        var staged: String?
        let isLost = try known != nil && store.assetStatus(path)?.isRegular != true
        if digest == nil || digest != known?.digest || isLost, !dryRun {
            // Two files may get one path: `a.pdf` and `Attachments/a.pdf`.
            let copy = "\(assets.count)"
            digest = try target.copy(source, to: copy)
            staged = "\(staging)/\(copy)"
        }
        assets.append(
            (
                Asset(
                    path: path, size: status.size, digest: try digest ?? Self.hash(source),
                    modifiedNanoseconds: status.modifiedNanoseconds), relative, staged, source.path
            ))
    }

    /// Leaves out files that the same import has taken otherwise meanwhile.
    mutating func leaveOut(_ paths: Set<ByteName>) {
        let real = Set(paths.compactMap { Directory.real($0.text).map { ByteName($0) } })
        guard !real.isEmpty else { return }
        for (number, file) in assets.enumerated() {
            guard let file, let path = Directory.real(file.source) else { continue }
            if real.contains(ByteName(path)) { assets[number] = nil }
        }
    }

    /// The path in the store of a file that lies so below the folder.
    static func path(of relative: String) -> String {
        Layout.attachmentFolders.contains(where: relative.hasPrefix) ? relative : "Attachments/" + relative
    }

    /// The paths that a file would have in the store if it had come from one of the folders inside, the longest first.
    static func innerPaths(of path: String) -> [String] {
        var names = path.split(separator: "/", omittingEmptySubsequences: false)[...]
        var paths: [String] = []
        while names.popFirst() != nil, !names.isEmpty {
            let inner = Self.path(of: names.joined(separator: "/"))
            if !sameBytes(inner, path) { paths.append(inner) }
        }
        return paths
    }

    /// A file as the store would know it.
    static func asset(_ relative: String, below root: String) throws -> Asset {
        let file = try RootDirectory(root).openForReading(relative)
        let status = try file.status()
        return Asset(
            path: path(of: relative), size: status.size, digest: try hash(file),
            modifiedNanoseconds: status.modifiedNanoseconds)
    }

    private static func hash(_ file: FileHandle) throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        try file.forEachChunk { hasher.update($0) }
        return hasher.finish()
    }

    /// Returns the paths that the files have in the store, in the order they were added; nil for one that has no place.
    /// `leavesDeleted`: files that only deleted records name are left out. `isMeantElsewhere` tells of each file and its path
    /// whether records that it does not come for name that path.
    @discardableResult func places(
        into intake: Intake, leavesDeleted: Bool = false,
        isMeantElsewhere: (Int, String) throws -> Bool = { _, _ in false }
    ) throws -> [String?] {
        for (path, reason) in skipped {
            intake.note(
                Finding(
                    .skipped, .warning, path, "was left out: \(reason)",
                    remedy: "mend what is named, and import it again"))
        }
        let own = Set(assets.compactMap { $0.map { ByteName($0.asset.path) } })
        return try assets.enumerated().map { number, file in
            guard let file, try !leavesDeleted || !intake.staysDeleted(file.asset.path) else { return nil }
            let known = try intake.knownPlace(of: file.asset, besides: own) { try linked(number, file.relative) }
            // Two files that come at once stay two.
            if let known, try intake.store.pending(known) == nil {
                return try intake.take(file.asset.renamed(known), from: file.staged)
            }
            return try intake.take(
                file.asset, from: file.staged, isMeantElsewhere: isMeantElsewhere(number, file.asset.path))
        }
    }

    /// Returns the files with the paths that they have in the store. Must run inside the batch.
    func take(
        into intake: Intake, isMeantElsewhere: (Int, String) throws -> Bool = { _, _ in false }
    ) throws -> [Taken] {
        zip(assets, try places(into: intake, isMeantElsewhere: isMeantElsewhere)).compactMap { file, place in
            file.flatMap { file in place.map { Taken(relative: file.relative, place: $0) } }
        }
    }

    /// `named`: what the entries of this import name.
    static func link(_ files: [Taken], by links: AttachmentLinks, _ named: NamedFiles?, _ intake: Intake) throws {
        let overruled = try named?.overruled(files, in: intake.store) ?? [:]
        for path in try links.link(files, by: intake) {
            guard let bibliography = overruled[ByteName(path)] else {
                intake.note(
                    Finding(
                        .unlinked, .warning, path, "belongs to no publication or event; it is kept",
                        remedy: "name it after a cite key, or name it in an entry's file field"))
                continue
            }
            let command = TypedCommand.quoted("import --overwrite", [bibliography])
            intake.note(
                Finding(
                    .unlinked, .warning, path,
                    "is kept without a link: an entry of \(bibliography) names it, but the store keeps other values of it",
                    remedy: "\(command) takes the values of that file, and links this one"))
        }
    }
}
