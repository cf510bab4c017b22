extension Vault {
    /// Removes snapshots. What only they needed stays until `prune`. The vault MUST be locked exclusively.
    public func forget(_ ids: [SHA256Digest]) throws {
        try backend.remove(ids.map { VaultFile(.snapshot, $0) })
    }

    /// Replaces a snapshot by one with other tags. Whoever looks in between sees both. The vault MUST be locked
    /// exclusively.
    public func retag(_ snapshot: Snapshot, _ tags: [String]) throws -> Snapshot {
        var file = snapshot.file
        file.tags = tags
        file.original = file.original ?? snapshot.id
        let id = try storeUnpacked(.snapshot, file.encoded())
        try forget([snapshot.id])
        return Snapshot(id: id, file: file)
    }
}

/// How much is in a vault.
public struct VaultStatistics: Sendable, Equatable {
    public var snapshots = 0
    /// What restoring these snapshots would write; files that several hold count for each.
    public var restoreFiles = 0
    public var restoreFolders = 0
    public var restoreBytes: UInt64 = 0
    /// Blobs that these snapshots need, each once.
    public var blobs = 0
    /// Their bytes, as they are and as they are stored.
    public var plainBytes: UInt64 = 0
    public var storedBytes: UInt64 = 0
    /// The whole vault.
    public var packs = 0
    public var packBytes: UInt64 = 0
}

extension Vault {
    public func statistics(of snapshots: [Snapshot], progress: Progress = .none) throws -> VaultStatistics {
        let index = try loadIndex()
        try index.mustBeWhole()
        var statistics = VaultStatistics()
        statistics.snapshots = snapshots.count
        let walk = TreeWalk(vault: self, index: index.blobs, isStrict: false)
        let result = try walk.run(snapshots.compactMap(\.file.tree), progress: progress)
        if let defect = result.defects.first {
            throw BackupError(
                .damaged, "'\(defect.node ?? "a folder")' \(defect.message)", at: "tree \(defect.tree.hex.prefix(10))",
                remedy: "see 'backup-tool vault check'")
        }
        for number in result.used.indices where result.used[number] {
            statistics.blobs += 1
            statistics.plainBytes += UInt64(index.blobs[number].contentLength)
            statistics.storedBytes += UInt64(index.blobs[number].length)
        }
        statistics.packs = index.blobs.packs.count
        statistics.packBytes = index.blobs.packs.reduce(0) { $0 + $1.size }
        var sums: [SHA256Digest: TreeSum] = [:]
        let reader = try BlobReader(self)
        for snapshot in snapshots {
            guard let tree = snapshot.file.tree else { continue }
            let sum = try sum(tree, reader, index.blobs, &sums)
            statistics.restoreFiles &+= sum.files
            statistics.restoreFolders &+= sum.folders
            statistics.restoreBytes &+= sum.bytes
        }
        return statistics
    }

    /// A few trees that name each other twice come to any number: sums wrap around rather than trap.
    private struct TreeSum {
        var files = 0
        var folders = 0
        var bytes: UInt64 = 0
    }

    private func sum(
        _ tree: SHA256Digest, _ reader: BlobReader, _ index: BlobIndex,
        _ known: inout [SHA256Digest: TreeSum],
        depth: Int = 0
    ) throws -> TreeSum {
        if let sum = known[tree] { return sum }
        // No path can be so long; somebody has built folders to exhaust our stack.
        guard depth < 2048 else { throw BackupError(.refused, "folders are nested too deep", at: tree.hex) }
        var sum = TreeSum()
        for node in try reader.read(BlobHandle(.tree, tree), in: index, Tree.init(parsing:)).nodes {
            if node.kind == .file {
                sum.files &+= 1
                sum.bytes &+= node.size
            } else if node.kind == .folder, let subtree = node.subtree {
                let inner = try self.sum(subtree, reader, index, &known, depth: depth + 1)
                sum.files &+= inner.files
                sum.folders &+= inner.folders &+ 1
                sum.bytes &+= inner.bytes
            }
        }
        known[tree] = sum
        return sum
    }
}
