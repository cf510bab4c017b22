/// Mends attachments from a backup of any kind. A file that is gone or rotten gets the bytes that the store remembers; a row
/// whose SHA-256 is wrong gets that of its file, where the backup has this file; and a file comes back that records link
/// and the store does not know any more.
enum FileMending {
    /// Returns what was mended, and what is wrong with the other files.
    static func run(
        _ store: Store, from path: String, limits: ReadLimits, dryRun: Bool
    ) throws -> (steps: [StoreRepairResult.Step], left: [Finding]) {
        let harmed = try harmedFiles(of: store)
        let unknown = try unknownFiles(of: store)
        guard !harmed.isEmpty || !unknown.isEmpty else { return ([], []) }
        return try store.withIncomingFolder { folder in
            let wanted = Wanted(
                digests: Set(harmed.map(\.asset.digest)), unknown: unknown,
                paths: unknown.union(harmed.map { ByteName($0.asset.path) }))
            let found =
                try Store.isStore(path)
                ? files(of: try Store(path, .read), wanted, in: folder) : files(of: path, wanted, in: folder, limits)
            let mended = try store.batch(kind: Store.mendBatch, source: path, dryRun: dryRun) {
                let mended = try mend(harmed, unknown, from: found, in: store)
                return (mended, summary: JSON.object([JSON.Member("files", JSON(mended.steps.count))]).compact)
            }.result
            if !dryRun { try store.forgetBatches(of: Store.mendBatch) }
            guard found.isDamaged, !mended.steps.isEmpty else { return mended }
            let warning = Finding(
                .archiveDamaged, .warning, path,
                "is damaged itself; the files that it gave are those that the store remembers",
                remedy: "\(TypedCommand.quoted("verify", [path])) says what is wrong with it")
            return (mended.steps, mended.left + [warning])
        }
    }

    private typealias Harmed = (asset: Asset, finding: Finding)

    /// Inside the batch.
    private static func mend(
        _ harmed: [Harmed], _ unknown: Set<ByteName>, from backup: Found, in store: Store
    ) throws -> (steps: [StoreRepairResult.Step], left: [Finding]) {
        var steps: [StoreRepairResult.Step] = []
        var left: [Finding] = []
        func note(_ path: String, _ message: String) {
            steps.append(.init(action: .exact, subject: path, message: message))
        }
        for (asset, finding) in harmed {
            if let copy = backup.copies[asset.digest] {
                try store.removeAsset(asset, for: asset.digest)
                try store.placeAsset(asset, from: copy)
                note(asset.path, "its file was restored")
            } else if let file = try store.regularFile(at: asset.path, isLocalOnly: asset.isLocalOnly),
                backup.files[ByteName(asset.path)]?.digest == file.digest
            {
                try store.setFacts(of: file)
                note(asset.path, "has the digest of its file again, which is the one in the backup")
            } else {
                left.append(finding.afterBackup(isDamaged: backup.isDamaged))
            }
        }
        for path in unknown.sorted(by: { precedesBytewise($0.text, $1.text) }) {
            guard let asset = backup.files[path], let copy = backup.copies[asset.digest] else { continue }
            try store.placeAsset(asset, from: copy)
            note(asset.path, "is back: records link it, and the store had neither its row nor its file")
        }
        // What an app had written over a file is kept beside it.
        return (steps, left + store.fileFindings)
    }

    private static func harmedFiles(of store: Store) throws -> [Harmed] {
        var harmed: [Harmed] = []
        try store.forEachAsset(damaged: { _ in }) { asset in
            try Interrupt.check()
            // What an app has changed is a warning, and stays. A row that is wrong about a sound file is not for the backup.
            if let finding = try StoreCheck.judge(asset, in: store, .digests), finding.severity == .damage,
                finding.code != .recordChanged
            {
                harmed.append((asset, finding))
            }
        }
        return harmed
    }

    /// Files that living records link, of which there is no row, no file, and nothing on its way from the hub. Many never
    /// were here: only the backup tells which of them were.
    private static func unknownFiles(of store: Store) throws -> Set<ByteName> {
        try OpenLinks(store).paths.filter { path in
            guard (try? Store.check(path.text)) != nil else { return false }
            return try store.hubAsset(path.text)?.isWanted != true
                && store.assetStatus(path.text) == nil
        }
    }

    // MARK: The backup

    private struct Wanted: Sendable {
        let digests: Set<SHA256Digest>
        let unknown: Set<ByteName>
        /// All of which the backup is asked what it knows.
        let paths: Set<ByteName>
    }

    private struct Found {
        /// Where copies of wanted files are.
        var copies: [SHA256Digest: String] = [:]
        /// The wanted files, as far as they are sound in the backup.
        var files: [ByteName: Asset] = [:]
        /// Whether something is wrong with the backup.
        var isDamaged = false
    }

    private static func files(
        of path: String, _ wanted: Wanted, in folder: String, _ limits: ReadLimits
    ) throws -> Found {
        let layout = try OpenedLayout.open(path, limits: limits)
        let start = layout.prefix.count
        func name(_ entry: String) -> String { String(entry.dropFirst(start)) }
        let attachments = layout.entries.filter { layout.role(of: $0.path) == .attachment }
        let isAny = attachments.contains { wanted.paths.contains(ByteName(name($0.path))) }
        guard isAny || !wanted.digests.isEmpty else { return Found() }
        let staging = try Staging(layout, into: folder, limits)
        try staging.read(where: { layout.role(of: $0.path) == .attachment }) { entry in
            wanted.unknown.contains(ByteName(String(entry.path.dropFirst(start))))
                || layout.expected[entry.path].map { wanted.digests.contains($0.digest) } ?? true
        }
        let staged = staging.finish()
        // The backup says itself that they were damaged when it was made.
        let rotten = Set(layout.gaps([.attachments]).filter { $0.code == .digestMismatch }.map { ByteName($0.subject) })
        var found = Found()
        // Of files that were not read, nothing is known.
        let ofBytes: Set<Finding.Code> = [.archiveDamaged, .entryDamaged, .digestMismatch, .sizeMismatch, .unreadable]
        found.isDamaged = layout.isDamaged || staged.findings.contains { ofBytes.contains($0.code) }
        for (entry, facts) in staged.files where layout.role(of: entry) == .attachment {
            let path = ByteName(name(entry))
            let isSound = layout.expected[entry].map { $0.digest == facts.digest } ?? true
            let isLinked = wanted.unknown.contains(path) && isSound && !rotten.contains(path)
            if wanted.digests.contains(facts.digest) || isLinked { found.copies[facts.digest] = "\(folder)/\(entry)" }
            guard wanted.paths.contains(path), isSound, !rotten.contains(path) else { continue }
            found.files[path] = Asset(
                path: path.text, size: facts.size, digest: facts.digest,
                isLocalOnly: layout.expected[entry]?.isLocalOnly ?? false,
                modifiedNanoseconds: (staged.modified[entry] ?? 0).times(clamped: 1_000_000_000))
        }
        return found
    }

    private static func files(of source: Store, _ wanted: Wanted, in folder: String) throws -> Found {
        var found = Found()
        try source.forEachAsset(damaged: { _ in }) { asset in
            let path = ByteName(asset.path)
            if wanted.paths.contains(path), try StoreCheck.isFile(of: asset, in: source) { found.files[path] = asset }
            let isLinked = wanted.unknown.contains(path) && found.files[path] != nil
            guard wanted.digests.contains(asset.digest) || isLinked, found.copies[asset.digest] == nil,
                try source.isInPlace(asset)
            else { return }
            let name = asset.digest.hex
            let file = try source.openPlace(of: asset)
            if try RootDirectory(folder).copy(file, to: name) == asset.digest {
                found.copies[asset.digest] = "\(folder)/\(name)"
            }
        }
        return found
    }
}

extension Finding {
    /// What a backup was asked for and does not have, no second repair from it mends.
    fileprivate func afterBackup(isDamaged: Bool) -> Finding {
        guard let remedy, remedy.contains(StoreRemedy.repairFile) else { return self }
        let lack = isDamaged ? "is damaged itself, and has no sound version of it" : "does not have it"
        return Finding(
            code, severity, subject, "\(message); this backup \(lack)",
            remedy: remedy.replacing(StoreRemedy.repairFile, with: "name another backup with --from"))
    }
}
