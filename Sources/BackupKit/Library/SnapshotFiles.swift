/// The files of a snapshot that is being made.
struct SnapshotFiles {
    let time: Timestamp
    private(set) var facts: [String: FileFacts] = [:]
    private(set) var counts = VaultBackupResult.Counts()
    private var trees = TreeBuilder()

    init(time: Timestamp) { self.time = time }

    /// `previous` is what the last snapshot has of it.
    mutating func add(_ path: String, _ node: TreeNode, _ facts: FileFacts, _ previous: TreeNode?) {
        trees.add("\(VaultBackup.root)/\(path)", node)
        self.facts[path] = facts
        if previous == nil {
            counts.new += 1
        } else if previous?.content == node.content {
            counts.unmodified += 1
        } else {
            counts.changed += 1
        }
    }

    mutating func add(_ path: String, _ known: PreviousLayout.KnownFile) {
        add(path, known.node, known.facts, known.node)
    }

    /// Adds a file that was made of records.
    mutating func add(_ path: String, _ content: FileLane.Content, _ previous: TreeNode?) {
        var node = TreeNode(name: [], kind: .file)
        node.mode = 0o600
        node.modified = GoTime(time)
        node.accessed = node.modified
        node.changed = node.modified
        node.setOwner()
        node.size = UInt64(content.size)
        node.content = content.blobs
        // The same content keeps its old time: then the folder's tree is the same, too.
        if let previous, previous.content == content.blobs { node = previous }
        add(path, node, FileFacts(size: content.size, digest: content.digest), previous)
    }

    /// Stores the trees of some folders, to which nothing is added any more.
    mutating func storeFolders(_ folders: [String], _ lane: PackWriter.Lane, _ parent: ParentTree) throws {
        let root = VaultBackup.root
        try trees.storeFolders(folders.map { "\(root)/\($0)" }, lane, parent: parent, below: root)
    }

    /// Stores the trees that are left and returns the outermost.
    mutating func store(
        _ lane: PackWriter.Lane, _ parent: ParentTree
    ) throws -> (id: SHA256Digest, folders: VaultBackupResult.Counts) {
        let id = try trees.store(lane, parent: parent, below: VaultBackup.root)
        let counts = trees.folderCounts
        return (id, .init(new: counts.new, changed: counts.changed, unmodified: counts.unmodified))
    }
}
