/// The files of a snapshot that is being made.
struct SnapshotFiles {
    let time: Timestamp
    private(set) var facts: [String: FileFacts] = [:]
    /// In the order in which they were added. Attachments come sorted, so sorting all takes little.
    private var paths: [String] = []
    private(set) var counts = VaultBackupResult.Counts()
    private let previous: ParentTree
    private var trees: TreeBuilder

    init(time: Timestamp, _ previous: ParentTree) {
        self.time = time
        self.previous = previous
        trees = TreeBuilder(parent: previous, below: VaultBackup.root)
    }

    /// A file that was stored.
    struct Stored: Sendable {
        let facts: FileFacts
        fileprivate let node: TreeBuilder.Written
        fileprivate let change: Change

        /// `previous` is what the last snapshot has under this path.
        init(_ path: String, _ node: TreeNode, _ facts: FileFacts, before previous: TreeNode?) {
            self.facts = facts
            self.node = TreeBuilder.Written(node, path: path)
            change = previous == nil ? .new : previous?.content == node.content ? .unmodified : .changed
        }

        fileprivate enum Change { case new, changed, unmodified }
    }

    mutating func add(_ path: String, _ stored: Stored) {
        trees.add("\(VaultBackup.root)/\(path)", stored.node)
        note(path, stored.facts)
        switch stored.change {
        case .new: counts.new += 1
        case .changed: counts.changed += 1
        case .unmodified: counts.unmodified += 1
        }
    }

    /// Adds a file that is what it was.
    mutating func add(_ path: String, _ known: PreviousLayout.KnownFile) {
        trees.add("\(VaultBackup.root)/\(path)", known.place, modified: known.modified)
        note(path, known.facts)
        counts.unmodified += 1
    }

    /// Adds a file that was made of records.
    mutating func add(_ path: String, _ content: FileLane.Content) {
        var node = TreeNode(name: [], kind: .file)
        node.mode = 0o600
        node.modified = GoTime(time)
        node.accessed = node.modified
        node.changed = node.modified
        node.setOwner()
        node.size = UInt64(content.size)
        node.content = content.blobs
        let facts = FileFacts(size: content.size, digest: content.digest)
        // The same content keeps its old time: then the folder's tree is the same, too.
        let place = previous.find(path)
        let old = place.flatMap { previous.node($0) }
        if let place, let old, old.content == content.blobs {
            add(path, (place, old.modified, facts))
        } else {
            add(path, Stored(path, node, facts, before: old))
        }
    }

    private mutating func note(_ path: String, _ new: FileFacts) {
        if facts.updateValue(new, forKey: path) == nil { paths.append(path) }
    }

    /// All files by path, as lists of files are written.
    func sorted() -> [(key: String, value: FileFacts)] {
        paths.sorted(by: precedesBytewise).compactMap { path in facts[path].map { (path, $0) } }
    }

    /// Takes out some folders, to which nothing is added any more.
    mutating func take(_ folders: [String]) -> TreeBuilder {
        trees.take(folders.map { "\(VaultBackup.root)/\($0)" })
    }

    mutating func put(_ taken: TreeBuilder) { trees.put(taken) }

    /// Stores the trees that are left and returns the outermost.
    mutating func store(_ writer: PackWriter) throws -> (id: SHA256Digest, folders: VaultBackupResult.Counts) {
        let id = try trees.store(writer)
        let counts = trees.folderCounts
        return (id, .init(new: counts.new, changed: counts.changed, unmodified: counts.unmodified))
    }
}
