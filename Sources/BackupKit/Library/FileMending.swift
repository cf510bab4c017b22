/// Gives attachments whose files are gone or rotten the bytes that the store remembers, from a backup of any kind.
enum FileMending {
    /// Returns what was mended, and what is wrong with the other files.
    static func run(
        _ store: Store, from path: String, limits: ReadLimits, dryRun: Bool
    ) throws -> (steps: [StoreRepairResult.Step], left: [Finding]) {
        let harmed = try harmedFiles(of: store)
        guard !harmed.isEmpty else { return ([], []) }
        return try store.withIncomingFolder { folder in
            let digests = Set(harmed.map(\.asset.digest))
            let copies = try copies(of: digests, from: path, in: folder, limits)
            let (found, others) = (
                harmed.filter { copies[$0.asset.digest] != nil }, harmed.filter { copies[$0.asset.digest] == nil }
            )
            guard !found.isEmpty else { return ([], others.map(\.finding)) }
            let (steps, _) = try store.batch(kind: "repair", source: path, dryRun: dryRun) {
                for (asset, _) in found {
                    try store.removeAsset(asset, for: asset.digest)
                    try store.placeAsset(asset, from: copies[asset.digest])
                }
                let steps = found.map {
                    StoreRepairResult.Step(
                        action: .exact, subject: $0.asset.path, message: "its file was restored")
                }
                return (steps, summary: JSON.object([JSON.Member("files", JSON(found.count))]).compact)
            }
            return (steps, others.map(\.finding))
        }
    }

    private static func harmedFiles(of store: Store) throws -> [(asset: Asset, finding: Finding)] {
        var harmed: [(asset: Asset, finding: Finding)] = []
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

    private static func copies(
        of digests: Set<SHA256Digest>, from path: String, in folder: String, _ limits: ReadLimits
    ) throws -> [SHA256Digest: String] {
        if Store.isStore(path) { return try copies(of: digests, from: try Store(path, .read), in: folder) }
        let layout = try OpenedLayout.open(path, limits: limits)
        let staged = try Staging.extract(layout, into: folder, limits) { entry in
            guard layout.role(of: entry.path) == .attachment else { return false }
            return layout.expected[entry.path].map { digests.contains($0.digest) } ?? true
        }
        var copies: [SHA256Digest: String] = [:]
        for (name, facts) in staged.files where digests.contains(facts.digest) && layout.role(of: name) == .attachment {
            copies[facts.digest] = "\(folder)/\(name)"
        }
        return copies
    }

    private static func copies(
        of digests: Set<SHA256Digest>, from source: Store, in folder: String
    ) throws -> [SHA256Digest: String] {
        var copies: [SHA256Digest: String] = [:]
        try source.forEachAsset(damaged: { _ in }) { asset in
            guard digests.contains(asset.digest), copies[asset.digest] == nil, try source.isInPlace(asset) else {
                return
            }
            let name = asset.digest.hex
            let file = try FileHandle.openForReading(source.place(of: asset))
            if try RootDirectory(folder).copy(file, to: name) == asset.digest {
                copies[asset.digest] = "\(folder)/\(name)"
            }
        }
        return copies
    }
}
