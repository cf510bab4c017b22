import Synchronization

/// Brings a library's attachments into a snapshot, on all cores. What the last snapshot has of the same size, times and
/// inode, and of the digest that the store remembers, is not read at all.
struct AttachmentArchiver {
    /// What became of all of them.
    struct Archived {
        var files: SnapshotFiles
        var digest = ContentDigest()
        var omitted: [Omission] = []
        var warnings: [Finding] = []
        /// Files that did not hold still.
        var unsteady: [String] = []
        /// Not even the status of a file has changed.
        var isUnchanged = false
        /// All are there, and what the store remembers and the last snapshot has.
        var isAsRemembered = true
    }

    private enum Outcome: Sendable {
        case unchanged(TreeNode)
        case stored(TreeNode, FileLane.Content, isSteady: Bool)
        case omitted(String)

        var isUnchanged: Bool {
            if case .unchanged = self { true } else { false }
        }
    }

    let writer: PackWriter
    let chunker: Chunker
    let previous: PreviousLayout
    let options: VaultBackupOptions

    /// Nothing is put together when all are unchanged and `isWanted` says that this is all that the caller needs to know.
    func archive(_ assets: [Asset], in folder: String, time: Timestamp, unlessUnchanged: Bool) throws -> Archived {
        let outcomes = try outcomes(assets, folder)
        var archived = Archived(files: SnapshotFiles(time: time))
        archived.isUnchanged = outcomes.allSatisfy(\.isUnchanged)
        if archived.isUnchanged && unlessUnchanged { return archived }
        for (asset, outcome) in zip(assets, outcomes) { add(asset, outcome, to: &archived) }
        try archived.files.storeFolders(Layout.attachmentFolders, PackWriter.Lane(writer), previous.tree)
        return archived
    }

    private func add(_ asset: Asset, _ outcome: Outcome, to archived: inout Archived) {
        let node: TreeNode
        var facts = FileFacts(size: asset.size, digest: asset.digest, isLocalOnly: asset.isLocalOnly)
        var before: TreeNode?
        switch outcome {
        case .omitted(let reason):
            archived.isAsRemembered = false
            archived.omitted.append(Omission(path: asset.path, reason: reason))
            return
        case .unchanged(let found): (node, before) = (found, found)
        case .stored(let made, let content, let isSteady):
            if !isSteady { archived.unsteady.append(asset.path) }
            facts = FileFacts(size: content.size, digest: content.digest, isLocalOnly: asset.isLocalOnly)
            (node, before) = (made, previous.tree.files[asset.path])
        }
        if facts.digest != asset.digest { archived.warnings.append(StoreLayout.mismatch(asset.path)) }
        if facts.digest != asset.digest || facts.size != asset.size || previous.digests[asset.path] != asset.digest {
            archived.isAsRemembered = false
        }
        archived.digest.add(
            Asset(path: asset.path, size: facts.size, digest: facts.digest, isLocalOnly: asset.isLocalOnly))
        archived.files.add(asset.path, node, facts, before)
    }

    private func outcomes(_ assets: [Asset], _ folder: String) throws -> [Outcome] {
        // The largest first, so that no core is left alone with one at the end; the others as neighbours.
        let large = assets.indices.filter { assets[$0].size > 32 << 20 }.sorted { assets[$0].size > assets[$1].size }
        let order = large + assets.indices.filter { assets[$0].size <= 32 << 20 }
        let root = try RootDirectory(folder)
        var start = VaultBackupStatus()
        start.totalFiles = assets.count
        start.totalBytes = assets.reduce(0) { $0 + $1.size }
        let state = Mutex((outcomes: [Outcome?](repeating: nil, count: assets.count), status: start))
        // Each has up to 25 MB in hand.
        try Parallel.forEach(
            order.count, workers: min(Parallel.cores, 4), state: { try FileLane(writer, chunker) }
        ) { lane, number in
            try Interrupt.check()
            let asset = assets[order[number]]
            let outcome = try outcome(asset, root, lane)
            let status = state.withLock { state in
                state.outcomes[order[number]] = outcome
                state.status.files += 1
                state.status.bytes += asset.size
                state.status.item = asset.path
                return state.status
            }
            options.report(status)
        }
        return state.withLock { $0.outcomes.compactMap { $0 } }
    }

    private func outcome(_ asset: Asset, _ root: RootDirectory, _ lane: FileLane) throws -> Outcome {
        if let node = try unchanged(asset, root) { return .unchanged(node) }
        let known = previous.tree.files[asset.path]?.content.flatMap { blobs in
            previous.digests[asset.path].map { FileLane.Known(blobs: blobs, digest: $0) }
        }
        var tries = 0
        while true {
            tries += 1
            let file: FileHandle
            let before: FileStatus
            do {
                file = try root.openForReading(asset.path)
                before = try file.status()
            } catch let error as BackupError where error.code != .interrupted {
                return .omitted(error.message)
            }
            do {
                let content = try lane.store(file, size: before.size, known: known)
                let isSteady = try file.status() == before && content.size == before.size
                if isSteady || tries == 3 {
                    return .stored(TreeNode(before, content.blobs, size: content.size), content, isSteady: isSteady)
                }
                pause(0.1)
            } catch let failure as SourceFailure {
                if tries == 3 { return .omitted(failure.error.message) }
            }
        }
    }

    private func unchanged(_ asset: Asset, _ root: RootDirectory) throws -> TreeNode? {
        guard !options.force, let node = previous.tree.files[asset.path], previous.digests[asset.path] == asset.digest,
            let status = try? FileStatus.ofName("\(root.path)/\(asset.path)"),
            status.size == asset.size, node.isUnchanged(status), PreviousLayout.holds(node, in: writer)
        else { return nil }
        return node
    }
}
