/// A store and the vault that it is backed up into, as a nightly run works with them.
///
/// Of the vault, a run has to do with the snapshots that are like its own: of the same machine, of the same store, and with
/// all tags that it gives. What others keep in the same vault is not its business.
public final class StoreVault: NightlyVault {
    public struct Options: Sendable {
        public var host = hostName()
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
    /// The tag that tells this store from others of this machine; nil as long as nobody has seen the store.
    private lazy var series: String? = (try? Store(storePath, .read)).flatMap(Self.series)

    /// `vaultPath` is what `vault` was opened from.
    public init(store: String, vaultPath: String, vault: Vault, _ options: Options) {
        (storePath, self.vaultPath, self.vault, self.options) = (store, vaultPath, vault, options)
    }

    // MARK: Snapshots

    public func snapshots() throws -> [RetentionItem] {
        // Who cannot see all of them must not judge which may go.
        try vault.everySnapshot().filter { isOurs($0.file) && isOfThisStore($0.file) }.map { snapshot in
            guard let item = snapshot.retentionItem else {
                throw BackupError(.damaged, "has no time in the years 1 to 9999", at: snapshot.shortID)
            }
            return item
        }
    }

    public func holds(_ snapshot: String) throws -> Bool {
        try vault.snapshots().snapshots.contains { $0.id.hex == snapshot || $0.file.original?.hex == snapshot }
    }

    private func isOurs(_ file: SnapshotFile) -> Bool {
        file.hostname == options.host && file.isLibrary
            && options.tags.allSatisfy(file.tags.contains)
    }

    /// Two accounts, or two configurations, may well use one vault and the same words; their stores differ all the same,
    /// and neither must thin out what the other has.
    private func isOfThisStore(_ file: SnapshotFile) -> Bool {
        guard let series else { return true }
        let marks = file.tags.filter { Self.isSeries($0) && !options.tags.contains($0) }
        return marks.isEmpty || marks.contains(series)
    }

    private static func series(of store: Store) -> String? {
        guard let id = try? store.storeID, id.utf8.count >= 8 else { return nil }
        return "store-\(id.prefix(8))"
    }

    static func isSeries(_ tag: String) -> Bool {
        tag.hasPrefix("store-") && tag.utf8.count == 14 && tag.dropFirst(6).allSatisfy(\.isHexDigit)
    }

    /// Whether a snapshot was taken by runs like this one, be it of this store or of one that was in its place.
    public func owns(_ snapshot: Snapshot) -> Bool { isOurs(snapshot.file) }

    public func findSource() throws { _ = try openStore() }

    public func checkCanWrite() throws {
        for kind in [VaultFile.Kind.lock, .data, .index, .snapshot] {
            try Directory.checkCanCreate("\(vaultPath)/\(kind.rawValue)/new")
        }
    }

    /// What is not there must not be made: an empty store would be an empty backup.
    private func openStore() throws -> Store {
        do { return try Store(storePath, .read) } catch let error as BackupError where error.code == .notFound {
            throw BackupError(
                .notFound, error.message, at: error.subject,
                remedy: "look whether its disk is there, and whether 'store' names the right place")
        }
    }

    public func takeSnapshot() throws -> NightlySnapshot {
        let store = try openStore()
        series = Self.series(of: store)
        let damage = try checkStore(store, sound: lastSound())
        var backup = VaultBackupOptions()
        (backup.host, backup.lockWait) = (options.host, options.lockWait)
        backup.tags = options.tags + [series].compactMap(\.self)
        backup.clock = options.clock
        let result = try VaultBackup.run(store, into: vault, backup)
        guard let id = result.snapshot?.hex else { throw BackupError(.failed, "no snapshot was taken", at: vaultPath) }
        let warnings = result.layout.warnings.filter { $0.code != .recordDamaged }
        var findings = try damage + namingHolders(warnings, in: store) + result.vaultDamage
        if damage.isEmpty { findings += try doubtsOfMemory(store) }
        let remedy = "\(checkCommand) names the command that mends it"
        findings += result.layout.omitted.map {
            Finding(.skipped, .warning, $0.path, "left out: \($0.reason)", remedy: remedy)
        }
        findings += result.unsteady.map { Finding(.skipped, .warning, $0, "changed each time while it was read") }
        guard !result.isComplete || !damage.isEmpty else { return NightlySnapshot(id: id, findings: findings) }
        return NightlySnapshot(id: try addTag(SnapshotTag.partial, to: id), findings: findings, isPartial: true)
    }

    /// The last one that neither lacks something nor holds suspiciously little.
    private func lastSound() throws -> Snapshot? {
        try vault.snapshots().snapshots.last { isOurs($0.file) && isOfThisStore($0.file) && !$0.file.isDoubtful }
    }

    /// Commands are read in a mail, and typed in any folder.
    private var realPath: String { Directory.real(storePath) ?? storePath }
    private var checkCommand: String { TypedCommand.quoted("store check", options: ["store": realPath]) }

    /// Names the newest snapshot that has the right bytes of each damaged attachment.
    private func namingHolders(_ findings: [Finding], in store: Store) throws -> [Finding] {
        var wanted: [Int: Asset] = [:]
        for (place, finding) in findings.enumerated() where finding.isDamagedAttachment {
            wanted[place] = try store.asset(finding.subject)
        }
        guard !wanted.isEmpty else { return findings }
        var findings = findings
        let ours = try vault.snapshots().snapshots.filter { isOurs($0.file) && isOfThisStore($0.file) }
        for snapshot in ours.reversed() where !wanted.isEmpty {
            try Interrupt.check()
            // One that cannot be read is named by the check.
            let layout: OpenedLayout
            do { layout = try OpenedLayout.open(address(snapshot.id.hex), limits: options.limits) } catch let error
                as BackupError where error.code != .interrupted
            {
                continue
            }
            let source = "\(VaultAddress.scheme)\(Directory.real(vaultPath) ?? vaultPath)@\(snapshot.shortID)"
            for (place, asset) in wanted where layout.expected[layout.prefix + asset.path]?.digest == asset.digest {
                let restore = TypedCommand.quoted(
                    "restore", [source], options: ["match": asset.path, "store": realPath])
                findings[place] = findings[place].advising(
                    "\(restore) brings it back from the last snapshot that has it")
                wanted[place] = nil
            }
        }
        return findings
    }

    /// What is wrong with the store, before it is trusted. A snapshot is taken all the same: the rest may be all there is.
    private func checkStore(_ store: Store, sound: Snapshot?) throws -> [Finding] {
        let source = sound.map { "\(VaultAddress.scheme)\(Directory.real(vaultPath) ?? vaultPath)@\($0.shortID)" }
        let repair = TypedCommand.quoted("store repair", options: ["store": realPath, "from": source ?? "BACKUP"])
        return try StoreCheck.run(store, files: .none, indexes: false).findings.filter { $0.severity != .note }.map {
            let isMended = $0.remedy?.contains("store repair --from") == true
            let ways = ["\(checkCommand) lists all", isMended ? "\(repair) mends it" : $0.remedy]
            return Finding(
                $0.code, .damage, $0.subject, "\($0.message) (store)",
                remedy: ways.compactMap(\.self).joined(separator: "; "))
        }
    }

    /// The undos that will be refused, and what is remembered beside records. No backup holds it, but one flipped bit may not be
    /// the only one.
    private func doubtsOfMemory(_ store: Store) throws -> [Finding] {
        let (batches, memory) = try store.read { (try store.batchDamage(), try store.memoryDamage()) }
        func doubt(_ subject: String, _ message: String, _ remedy: String) -> Finding {
            Finding(
                .recordChanged, .warning, subject, "\(message) (store)",
                remedy: "\(checkCommand) names the command that \(remedy); check the disk, too")
        }
        return batches.map { doubt("batch \($0.id)", $0.message, "gives up its undo") }
            + memory.map { doubt($0.subject, $0.message, "mends it") }
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
        // Who reads a snapshot locks the vault too, but does not wait.
        try vault.locked(wait: options.lockWait) { _ in
            try LibraryCensus.of(address(snapshot), limits: options.limits)
        }
    }

    public func drill(_ snapshot: String) throws -> DrillEntry {
        var drill = Drill.Options()
        (drill.limits, drill.progress, drill.clock) = (options.limits, options.progress, options.clock)
        return try vault.locked(wait: options.lockWait) { _ in
            try Drill.run(Drill.Target(path: address(snapshot), snapshot: snapshot), drill)
        }
    }

    // MARK: The vault itself

    public func check(_ subset: CheckSubset?) throws -> [Finding] {
        try vault.locked(wait: options.lockWait) { vault in
            try vault.checkLibraries(
                subset.map { .part($0.part, of: $0.parts) } ?? .all, progress: options.progress
            ).findings
        }
    }

    public func prune(ifUnusedOver percent: Double) throws -> (freed: Int64?, findings: [Finding]) {
        var prune = PruneOptions()
        (prune.maxUnused, prune.onlyAbove) = (percent / 100, percent / 100)
        let result = try vault.prune(waiting: options.lockWait, prune, progress: options.progress)
        return (result.wasNothing ? nil : Int64(clamping: result.bytesFreed), result.findings)
    }

    public func size() throws -> Int64 {
        try VaultFile.Kind.allCases.reduce(0) { sum, kind in
            if kind == .config { return sum + (try vault.backend.size(.config) ?? 0) }
            return try vault.backend.list(kind).items.reduce(sum) { $0 + $1.size }
        }
    }
}
