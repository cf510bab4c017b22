import Glibc

/// What a backup into a vault shall do.
public struct VaultBackupOptions: Sendable {
    public var tags: [String] = []
    public var host = hostName()
    /// What the snapshot says of its time; nil is now.
    public var time: GoTime?
    /// Read every file again, whatever its status says.
    public var force = false
    public var skipIfUnchanged = false
    public var dryRun = false
    public var kinds: Set<Kind> = Set(Kind.allCases)
    public var oversize = ExportOptions.Oversize.include
    public var clock = Clock.system
    public var tool = "backup-tool \(BackupKitVersion.current)"
    /// Seconds to wait for a vault that somebody else has locked.
    public var lockWait = 0.0
    /// Called from any thread, once a file.
    public var report: @Sendable (VaultBackupStatus) -> Void = { _ in }

    public init() {}
}

/// How far a backup is.
public struct VaultBackupStatus: Sendable {
    public var files = 0
    public var bytes: Int64 = 0
    public var totalFiles = 0
    public var totalBytes: Int64 = 0
    public var item = ""
}

/// What a backup did.
public struct VaultBackupResult: Sendable {
    public struct Counts: Sendable, Equatable {
        public var new = 0
        public var changed = 0
        public var unmodified = 0
        public var total: Int { new + changed + unmodified }
    }

    /// nil when none was written: a dry run, or nothing had changed and that was asked for.
    public var snapshot: SHA256Digest?
    public var parent: SHA256Digest?
    public var tree = SHA256Digest.of("")
    public var isUnchanged = false
    public var files = Counts()
    public var folders = Counts()
    public var bytes: Int64 = 0
    public var added = PackWriter.Totals()
    /// Packs of an interrupted run that were found and used.
    public var adoptedPacks = 0
    public var begin = Timestamp(milliseconds: 0)
    public var end = Timestamp(milliseconds: 0)
    /// What the layout held: counts, digest, what was left out.
    public var layout = ExportResult()
    /// Files that changed while they were read, each time they were.
    public var unsteady: [String] = []

    /// What is wrong with the vault. This snapshot is whole all the same, for it stored again what was lost; older ones may not be.
    public var vaultDamage: [Finding] = []

    public var isComplete: Bool { layout.isComplete && unsteady.isEmpty }

    /// restic's summary, under the names that it has in snapshots.
    public var summary: JSON {
        [
            "backup_start": .string(GoTime(begin).text), "backup_end": .string(GoTime(end).text),
            "files_new": JSON(files.new), "files_changed": JSON(files.changed),
            "files_unmodified": JSON(files.unmodified), "dirs_new": JSON(folders.new),
            "dirs_changed": JSON(folders.changed), "dirs_unmodified": JSON(folders.unmodified),
            "data_blobs": JSON(added.dataBlobs), "tree_blobs": JSON(added.treeBlobs), "data_added": JSON(added.added),
            "data_added_packed": JSON(added.addedPacked), "total_files_processed": JSON(files.total),
            "total_bytes_processed": JSON(bytes),
        ]
    }
}

/// Puts one moment of a store into a vault, as the files of a layout below `/library`.
///
/// The order is the one that restic demands: packs, then the index that names them, then the snapshot. Whatever stops it
/// costs nothing but packs that no index names, and the next backup finds those and uses them.
public enum VaultBackup {
    /// Where the layout lies in a snapshot.
    public static let root = SnapshotFile.libraryFolder

    public static func run(
        _ store: Store, into vault: Vault, _ options: VaultBackupOptions = VaultBackupOptions()
    ) throws -> VaultBackupResult {
        if let tag = options.tags.first(where: { !SnapshotTag.mayBeGiven($0) }) {
            throw BackupError(
                .usage, "runs give the tag '\(tag)' themselves, to snapshots that lack something",
                remedy: "choose another tag")
        }
        try Store.refuseVault(at: vault.backend.location)
        return try vault.locked(wait: options.lockWait) { vault in try run(store, locked: vault, options) }
    }

    private static func run(
        _ store: Store, locked vault: Vault, _ options: VaultBackupOptions
    ) throws -> VaultBackupResult {
        var result = VaultBackupResult()
        result.begin = options.clock.now()
        try store.leaveOutUnreadableTables()
        let parent = try parent(in: vault, options, now: result.begin)
        let memo = BackupMemo(parent?.file, options)
        let (writer, archived, damage) = try store.read {
            // When the store's change counter is the last snapshot's, its state is computed before any file is made. Otherwise
            // it is computed while the files are made.
            let isSame = try memo?.changes == store.lastChange()
            let rows = Aside { try LayoutArchiver.Rows(of: store, withState: isSame, options) }
            var index = try vault.loadIndex()
            // Also what only the last snapshot needs may lie in packs that no index names any more.
            let (found, lost) = try vault.reconcile(&index.blobs)
            result.adoptedPacks = found.count
            let previous = try PreviousLayout(parent, vault, index.blobs)
            let rotten = index.blobs.distrust(previous.unread)
            let writer = try PackWriter(vault, known: index.blobs, dryRun: options.dryRun)
            for pack in found { writer.adopt(pack) }
            let archiver = LayoutArchiver(writer, try Chunker(vault.polynomial), previous, memo, options)
            let damage = (index.findings + lost + rotten).filter { $0.severity != .note }
            return (writer, try archiver.archive(rows.finish()), damage)
        }
        result.layout = archived.layout
        result.vaultDamage = damage
        result.unsteady = archived.unsteady
        result.files = archived.files
        result.folders = archived.folders
        result.bytes = archived.layout.bytes
        result.tree = archived.tree
        result.parent = parent?.id
        result.isUnchanged = parent?.file.tree == archived.tree
        result.added = try writer.finish()
        result.end = options.clock.now()
        if options.dryRun || (options.skipIfUnchanged && result.isUnchanged) { return result }
        var file = snapshot(result, options)
        if let memo = archived.memo { file.others.append(memo.member) }
        result.snapshot = try vault.storeUnpacked(.snapshot, file.encoded())
        // The snapshot is taken; a disk that is too full for this is for the next run to complain about.
        try? vault.backend.setRoomAside()
        return result
    }

    private static func snapshot(_ result: VaultBackupResult, _ options: VaultBackupOptions) -> SnapshotFile {
        var file = SnapshotFile(
            time: options.time ?? GoTime(result.begin), tree: result.tree, paths: ["/\(root)"])
        file.parent = result.parent
        file.hostname = options.host
        file.uid = getuid()
        file.gid = getgid()
        // A snapshot of some kinds must not pass for a whole one, or retention would remove whole ones for it.
        file.tags = options.tags + (options.kinds == Set(Kind.allCases) ? [] : [SnapshotTag.partial])
        file.programVersion = options.tool
        file.summary = result.summary
        return file
    }

    /// The last snapshot of the same library. One that is dated in the future, by a clock that went wrong, is none.
    private static func parent(in vault: Vault, _ options: VaultBackupOptions, now: Timestamp) throws -> Snapshot? {
        let (all, _) = try vault.snapshots()
        return all.last {
            $0.file.isLibrary && $0.file.hostname == options.host && $0.file.time.timestamp <= now
        }
    }
}
