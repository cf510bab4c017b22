import Glibc

/// Proves a backup by doing what it is there for: all of it is restored into a scratch store, which is then looked over.
public enum Drill {
    /// A backup to try.
    public struct Target: Sendable, Equatable {
        public let path: String
        public let snapshot: String?

        public init(path: String, snapshot: String? = nil) {
            (self.path, self.snapshot) = (path, snapshot)
        }

        /// For the log, where the snapshot has a place of its own.
        var place: String { snapshot == nil ? path : VaultAddress(path)?.path ?? path }
    }

    public struct Options: Sendable {
        public var limits = ReadLimits()
        public var progress = Progress.none
        public var clock = Clock.system

        public init() {}
    }

    /// Tries one backup. Damage is a result and no error: it has to be written down.
    public static func run(_ target: Target, _ options: Options) throws -> DrillEntry {
        var facts = Facts()
        // A wrong path on the command line is no failed drill.
        let wrongPath: [ErrorCode] = target.snapshot == nil ? [.notFound, .usage] : []
        try judge(&facts, besides: wrongPath) { try verify(target.path, options, &$0) }
        if facts.problems.isEmpty {
            // What is damaged is not restored: the verdict is clear. And whatever keeps a scratch store from being made is none.
            try ScratchStore.with(roomFor: facts.bytes) { store in
                try judge(&facts) { try restore(target.path, into: store, options, &$0) }
            }
        }
        return DrillEntry(
            time: options.clock.now(), path: target.place, snapshot: target.snapshot, madeAt: facts.madeAt,
            isOK: facts.problems.isEmpty, seconds: facts.seconds, files: facts.files, bytes: facts.bytes,
            contentDigest: facts.contentDigest, problems: facts.problems, warnings: facts.warnings)
    }

    /// Tries snapshots one after the other, writes down each result, and has `state` know what came of all of them: at
    /// once that one failed, for whatever may stop the others.
    public static func run(
        _ items: [RetentionItem], in vault: any NightlyVault, _ log: DrillLog, _ state: inout RunState,
        told: (RetentionItem, DrillEntry) -> Void
    ) throws {
        var whole: RunState.DrillResult?
        for item in items {
            var entry = try vault.drill(item.id)
            entry.original = item.original
            try log.append(entry)
            told(item, entry)
            whole = entry.result(after: whole)
            if whole?.isOK == false { state.lastDrill = whole }
        }
        guard whole != nil else { return }
        state.lastDrill = whole
        state.drillHead = try log.history().head
    }

    private struct Facts {
        var madeAt: Timestamp?
        var seconds = 0.0
        var files = 0
        var bytes: Int64 = 0
        var contentDigest: String?
        var problems: [String] = []
        var warnings: [String] = []

        mutating func add(_ findings: [Finding]) {
            for finding in findings where finding.severity == .damage || finding.severity == .error {
                problems.append(finding.advisedSentence)
            }
        }
    }

    /// An error is a problem of the backup, unless somebody stopped us, the scratch folder is full, the vault is not open, or
    /// we may not read it.
    private static func judge(
        _ facts: inout Facts, besides passedOn: [ErrorCode] = [], _ work: (inout Facts) throws -> Void
    ) throws {
        do { try work(&facts) } catch let error as BackupError {
            let ofOurs: [ErrorCode] = [.interrupted, .destinationFull, .temporary, .locked, .wrongPassword, .denied]
            guard !ofOurs.contains(error.code), !passedOn.contains(error.code) else { throw error }
            facts.problems.append(error.description)
        }
    }

    /// Every digest, every format.
    private static func verify(_ path: String, _ options: Options, _ facts: inout Facts) throws {
        let verified = try Verifier.verify(path, limits: options.limits, progress: options.progress)
        (facts.files, facts.bytes) = (verified.files, verified.bytes)
        facts.contentDigest = verified.contentDigest?.hex
        facts.add(verified.findings)
        facts.warnings = verified.findings.filter { $0.severity == .warning }.map(\.advisedSentence)
    }

    private static func restore(
        _ path: String, into store: Store, _ options: Options, _ facts: inout Facts
    ) throws {
        let layout = try OpenedLayout.open(path, limits: options.limits)
        if case .own(let manifest) = layout.manifest { facts.madeAt = manifest.createdAt }
        if case .imbib(let manifest) = layout.manifest { facts.madeAt = manifest.createdAt }
        var restore = RestoreOptions()
        restore.kinds = Set(Kind.allCases)
        restore.limits = options.limits
        restore.progress = options.progress
        let start = monotonicSeconds()
        let restored = try Restorer.restore(path, into: store, restore)
        facts.seconds = monotonicSeconds() - start
        facts.add(restored.findings)
        try lookOver(store, layout.manifest, &facts)
    }

    /// Looks at the scratch store: SQLite itself, the digest over everything, and every file as it lies on the disk now.
    private static func lookOver(_ store: Store, _ manifest: LayoutManifest, _ facts: inout Facts) throws {
        if let fault = try store.database.integrityFaults().first {
            facts.problems.append("the restored store is damaged: \(fault)")
        }
        if case .own(let manifest) = manifest {
            let digest = try store.read { try store.contentDigest(kinds: manifest.kinds) }
            if digest != manifest.contentDigest {
                facts.problems.append(
                    "restores to content digest \(digest.hex), the manifest says \(manifest.contentDigest.hex)")
            }
        }
        try store.forEachAsset { asset in
            try Interrupt.check()
            if try store.digest(at: asset.path) != asset.digest {
                facts.problems.append("\(asset.path): was not restored to what it was")
            }
        }
    }

    // MARK: What to try

    /// The newest of some snapshots and one older one by chance; in its place those that failed the last time, until they
    /// pass or are gone.
    public static func choice(
        of items: [RetentionItem], _ history: DrillLog.History, now: Timestamp,
        using random: inout some RandomNumberGenerator
    ) -> [RetentionItem] {
        // One that is dated in the future would be the newest for years.
        let newest = items.filter { $0.time.instant <= now }.max { $0.time < $1.time } ?? items.first
        guard let newest else { return [] }
        let older = items.filter { $0.id != newest.id }
        let failed = history.failed(among: older)
        return [newest] + (failed.isEmpty ? [older.randomElement(using: &random)].compactMap(\.self) : failed)
    }

    private static func targets(
        in address: VaultAddress, named path: String, using random: inout some RandomNumberGenerator
    ) throws -> [Target] {
        let vault = try address.vault()
        func target(_ id: String) -> Target {
            Target(path: "\(VaultAddress.scheme)\(address.path)@\(id)", snapshot: id)
        }
        if let word = address.word { return [target(try vault.resolve(word).id.hex)] }
        // restic may keep other things in the same vault, which are no libraries.
        let libraries = try vault.everySnapshot().filter(\.file.isLibrary)
        let items = libraries.compactMap(\.retentionItem)
        let chosen = choice(of: items, DrillLog.History(), now: Clock.system.now(), using: &random)
        guard !chosen.isEmpty else { throw BackupError(.notFound, "the vault holds no library", at: path) }
        return chosen.map { target($0.id) }
    }

    /// The newest backup of a folder or a vault and one older one by chance; or the one that `path` is itself.
    public static func targets(
        at path: String, using random: inout some RandomNumberGenerator
    ) throws -> [Target] {
        if let address = VaultAddress(path) { return try targets(in: address, named: path, using: &random) }
        guard let status = try FileStatus.ofTarget(path) else {
            throw BackupError(.notFound, "is not there", at: path)
        }
        guard status.isDirectory, try !isLibrary(path) else { return [Target(path: path)] }
        let sorted = try backups(in: path)
        guard let newest = sorted.first else {
            let isVault = try [VaultFile.Kind.config, .key].allSatisfy {
                try FileStatus.ofTarget("\(path)/\($0.rawValue)") != nil
            }
            throw BackupError(
                .notFound, "holds no backup", at: path,
                remedy: isVault
                    ? VaultAddress.advice(for: path)
                    : "name a backup, or a folder of exports")
        }
        return [newest, sorted.dropFirst().randomElement(using: &random)].compactMap(\.self).map { Target(path: $0) }
    }

    /// The backups in a folder, newest first by the times of the files.
    private static func backups(in folder: String) throws -> [String] {
        var found: [(path: String, modified: Int64)] = []
        for name in try Directory.names(in: folder) where !name.hasPrefix(".") {
            let path = "\(folder)/\(name)"
            guard let status = try FileStatus.ofTarget(path) else { continue }
            let isBackup = status.isDirectory ? try isLibrary(path) : CarrierFormat(fileName: name) != nil
            if isBackup { found.append((path, try modified(path, status))) }
        }
        return found.sorted { ($0.modified, $0.path) > ($1.modified, $1.path) }.map(\.path)
    }

    private static func isLibrary(_ folder: String) throws -> Bool {
        for name in [Manifest.fileName, Layout.records, Layout.bibliography]
        where try FileStatus.ofTarget("\(folder)/\(name)") != nil {
            return true
        }
        return false
    }

    private static func modified(_ path: String, _ status: FileStatus) throws -> Int64 {
        guard status.isDirectory else { return status.modifiedNanoseconds }
        return try FileStatus.ofTarget("\(path)/\(Manifest.fileName)")?.modifiedNanoseconds
            ?? status.modifiedNanoseconds
    }
}

extension Drill {
    /// What to type so that a snapshot may go that is the last which passed a drill: a newer one of its group has to pass.
    public static func replacing(
        _ item: RetentionItem, among group: [RetentionItem], of vault: String, now: Timestamp
    ) -> String {
        let newer = group.filter { !$0.isPartial && $0.time.instant <= now && $0.time > item.time }
        func drill(_ word: String) -> String {
            TypedCommand.quoted("drill", ["\(VaultAddress.scheme)\(vault)@\(word)"])
        }
        if let newest = newer.max(by: { $0.time < $1.time }) {
            return "test a newer one first: \(drill(String(newest.id.prefix(8)))); then run this again"
        }
        var command = "vault backup"
        if item.host != hostName() { command += " " + TypedCommand.option("host", item.host) }
        let tags = item.isSuspect ? item.givenTags : item.tags
        if !tags.isEmpty { command += " " + TypedCommand.option("tag", tags.joined(separator: ",")) }
        return "take a newer one first: \(TypedCommand.quoted(command)), and test it: \(drill("latest")); "
            + "then run this again"
    }
}

extension RetentionItem {
    /// But for those that runs give by themselves: that something is missing, and of which store it is.
    fileprivate var givenTags: [String] { tags.filter { SnapshotTag.mayBeGiven($0) && !StoreVault.isSeries($0) } }

    /// The snapshots that can take its place as the last that passed a drill: those with its machine, paths and tags. A suspect
    /// one gives way to any sound one of its profile: the empty store that it was taken of had a tag of its own.
    public func drillGroup(among items: [RetentionItem]) -> [RetentionItem] {
        items.filter { other in
            guard other.host == host, other.paths == paths else { return false }
            guard isSuspect else { return other.tags.sorted() == tags.sorted() }
            return other.id == id || !other.isSuspect && other.givenTags.sorted() == givenTags.sorted()
        }
    }
}

extension DrillLog.History {
    /// Of each group, what `proved` gives.
    public func provedOfEachGroup(_ items: [RetentionItem], now: Timestamp) -> Set<String> {
        let groups = Dictionary(grouping: items.filter { !$0.isSuspect }) { [$0.host] + $0.paths + $0.tags.sorted() }
        let ids = groups.values.reduce(into: Set<String>()) { $0.formUnion(proved(among: $1, now: now)) }
        return items.filter(\.isSuspect).reduce(into: ids) { ids, item in
            let proved = proved(among: item.drillGroup(among: items), now: now)
            if proved.contains(item.id) { ids.insert(item.id) }
        }
    }
}
