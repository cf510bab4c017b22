/// A store and the vault that it is backed up into, as a nightly run works with them.
///
/// Of the vault, a run has to do with the snapshots that are like its own: of the same machine, and with all tags that it
/// gives. What others keep in the same vault is not its business.
public final class StoreVault: NightlyVault {
    public struct Options: Sendable {
        public var host = VaultBackup.hostName
        public var tags: [String] = []
        public var lockWait = 0.0
        public var limits = ReadLimits()
        public var progress = Progress.none
        public var clock = Clock.system

        public init() {}
    }

    private let storePath: String
    private let vaultPath: String
    private let vault: Vault
    private let options: Options

    /// `vaultPath` is what `vault` was opened from.
    public init(store: String, vaultPath: String, vault: Vault, _ options: Options) {
        (storePath, self.vaultPath, self.vault, self.options) = (store, vaultPath, vault, options)
    }

    // MARK: Snapshots

    public func snapshots() throws -> [RetentionItem] {
        let (all, findings) = try vault.snapshots()
        // Who cannot see all of them must not judge which may go.
        if let damage = findings.first(where: { $0.severity == .damage }) {
            throw BackupError(.damaged, damage.message, at: damage.subject, remedy: damage.remedy)
        }
        return try all.filter { isOurs($0.file) }.map { snapshot in
            guard let item = snapshot.retentionItem else {
                throw BackupError(.damaged, "has no time in the years 1 to 9999", at: snapshot.shortID)
            }
            return item
        }
    }

    private func isOurs(_ file: SnapshotFile) -> Bool {
        file.hostname == options.host && file.paths == ["/\(VaultBackup.root)"]
            && options.tags.allSatisfy(file.tags.contains)
    }

    public func takeSnapshot() throws -> NightlySnapshot {
        // What is not there must not be made: an empty store would be an empty backup.
        let store = try Store(storePath, .read)
        var backup = VaultBackupOptions()
        (backup.host, backup.tags, backup.lockWait) = (options.host, options.tags, options.lockWait)
        backup.clock = options.clock
        let result = try VaultBackup.run(store, into: vault, backup)
        guard let id = result.snapshot?.hex else { throw BackupError(.failed, "no snapshot was taken", at: vaultPath) }
        var findings = result.layout.warnings
        findings += result.layout.omitted.map { Finding(.skipped, .warning, $0.path, "left out: \($0.reason)") }
        findings += result.unsteady.map { Finding(.skipped, .warning, $0, "changed each time while it was read") }
        guard !result.isComplete else { return NightlySnapshot(id: id, findings: findings) }
        return NightlySnapshot(id: try addTag(SnapshotTag.partial, to: id), findings: findings, isPartial: true)
    }

    public func addTag(_ tag: String, to snapshot: String) throws -> String {
        let id = try digest(snapshot)
        return try vault.locked(exclusively: true, wait: options.lockWait) { vault in
            let old = try vault.snapshot(id)
            guard !old.file.tags.contains(tag) else { return snapshot }
            return try vault.retag(old, old.file.tags + [tag]).id.hex
        }
    }

    public func forget(_ snapshots: [String]) throws {
        let ids = try snapshots.map(digest)
        try vault.locked(exclusively: true, wait: options.lockWait) { try $0.forget(ids) }
    }

    private func digest(_ id: String) throws -> SHA256Digest {
        guard let digest = SHA256Digest(hex: id) else { throw BackupError(.usage, "is no snapshot's id", at: id) }
        return digest
    }

    // MARK: Looking into them

    private func address(_ snapshot: String) -> String { "\(VaultAddress.scheme)\(vaultPath)@\(snapshot)" }

    public func census(of snapshot: String) throws -> LibraryCensus {
        try LibraryCensus.of(address(snapshot), limits: options.limits)
    }

    public func drill(_ snapshot: String) throws -> DrillEntry {
        var drill = Drill.Options()
        (drill.limits, drill.progress, drill.clock) = (options.limits, options.progress, options.clock)
        var entry = try Drill.run(Drill.Target(path: address(snapshot), snapshot: snapshot), drill)
        // The snapshot has a place of its own in the log.
        entry.path = vaultPath
        return entry
    }

    // MARK: The vault itself

    public func check(_ subset: CheckSubset?) throws -> [Finding] {
        try vault.locked(wait: options.lockWait) { vault in
            try vault.checkLibraries(
                subset.map { .part($0.part, of: $0.parts) } ?? .all, progress: options.progress
            ).findings
        }
    }

    public func prune(ifUnusedOver percent: Double) throws -> Int64? {
        var prune = PruneOptions()
        (prune.maxUnused, prune.onlyAbove) = (percent / 100, percent / 100)
        let result = try vault.locked(exclusively: true, wait: options.lockWait) { vault in
            try vault.prune(prune, progress: options.progress)
        }
        return result.wasNothing ? nil : Int64(clamping: result.bytesFreed)
    }

    public func size() throws -> Int64 {
        try VaultFile.Kind.allCases.reduce(0) { sum, kind in
            if kind == .config { return sum + (try vault.backend.size(.config) ?? 0) }
            return try vault.backend.list(kind).items.reduce(sum) { $0 + $1.size }
        }
    }
}
