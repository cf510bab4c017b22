import Glibc

/// Makes the trees of a snapshot out of the nodes of its files.
struct TreeBuilder {
    struct Counts: Sendable, Equatable {
        var new = 0
        var changed = 0
        var unmodified = 0
    }

    private var folders: [String: [TreeNode]] = ["": []]
    private(set) var folderCounts = Counts()

    /// `path` is relative, its parts parted by "/"; the node gets its name from it.
    mutating func add(_ path: String, _ node: TreeNode) {
        var node = node
        let (folder, name) = Self.split(path)
        node.name = Array(name.utf8)
        addFolder(folder)
        folders[folder, default: []].append(node)
    }

    mutating func addFolder(_ path: String) {
        var path = path
        while !path.isEmpty, folders[path] == nil {
            folders[path] = []
            path = Self.split(path).folder
        }
    }

    static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
        return (String(path[..<slash]), String(path[path.utf8.index(after: slash)...]))
    }

    /// Stores the trees of folders that begin so, the innermost first, but for the root. `parent` is what was below `root`.
    mutating func storeFolders(
        _ prefixes: [String], _ lane: PackWriter.Lane, parent: ParentTree, below root: String
    ) throws {
        // Whatever lies deeper has a longer path.
        let chosen = folders.keys.filter { path in
            !path.isEmpty && prefixes.contains { "\(path)/".utf8.starts(with: $0.utf8) }
        }
        for path in chosen.sorted(by: { $0.utf8.count > $1.utf8.count }) {
            let nodes = folders.removeValue(forKey: path) ?? []
            let id = try Self.store(nodes, lane)
            count(path == root ? "" : String(path.dropFirst(root.count + 1)), id, parent)
            let (above, name) = Self.split(path)
            folders[above, default: []].append(Self.folder(name, nodes, id))
        }
    }

    /// Stores all trees that are left, and returns the id of the outermost.
    mutating func store(_ lane: PackWriter.Lane, parent: ParentTree, below root: String) throws -> SHA256Digest {
        try storeFolders([""], lane, parent: parent, below: root)
        return try Self.store(folders[""] ?? [], lane)
    }

    private static func store(_ nodes: [TreeNode], _ lane: PackWriter.Lane) throws -> SHA256Digest {
        try Tree(nodes: nodes).encoded().withUnsafeBytes { try lane.store($0, as: .tree).id }
    }

    private mutating func count(_ path: String, _ id: SHA256Digest, _ parent: ParentTree) {
        switch parent.folders[path] {
        case nil: folderCounts.new += 1
        case id: folderCounts.unmodified += 1
        default: folderCounts.changed += 1
        }
    }

    /// A folder is as old as the newest in it: the same content gives the same tree.
    private static func folder(_ name: String, _ nodes: [TreeNode], _ id: SHA256Digest) -> TreeNode {
        var node = TreeNode(name: Array(name.utf8), kind: .folder)
        let newest = nodes.map(\.modified).max { ($0.seconds, $0.nanoseconds) < ($1.seconds, $1.nanoseconds) }
        node.mode = TreeNode.Mode.folder | 0o700
        node.modified = newest ?? GoTime(seconds: 0)
        node.accessed = node.modified
        node.changed = node.modified
        node.setOwner()
        node.subtree = id
        return node
    }
}

/// What the snapshot before this one holds below its root: how unchanged files are recognised.
struct ParentTree: Sendable {
    private(set) var files: [String: TreeNode] = [:]
    /// The trees of folders.
    private(set) var folders: [String: SHA256Digest] = [:]
    /// What the files come to.
    private(set) var bytes: Int64 = 0

    init() {}

    /// Reads all trees of a snapshot. What cannot be read is as if it were new.
    init(_ root: SHA256Digest, _ index: BlobIndex, _ reader: BlobReader) {
        var waiting = [("", root)]
        while let (path, id) = waiting.popLast() {
            folders[path] = id
            do {
                try reader.read(BlobHandle(.tree, id), in: index) { json in
                    try Tree.forEachNode(json) { node in
                        guard let name = node.text, node.hasSafeName else { return }
                        let inner = path.isEmpty ? name : "\(path)/\(name)"
                        if let subtree = node.subtree, node.kind == .folder, folders.count < 1 << 20 {
                            waiting.append((inner, subtree))
                        } else if node.kind == .file {
                            files[inner] = node
                            bytes += Int64(clamping: node.size)
                        }
                    }
                }
            } catch {
                // Then its files are read again, which costs time and nothing else.
                folders[path] = nil
            }
        }
    }
}

extension TreeNode {
    /// The node of a file that was stored, but for its name.
    init(_ status: FileStatus, _ content: [SHA256Digest], size: Int64) {
        self.init(name: [], kind: .file)
        mode = status.mode & Mode.permissions
        modified = GoTime(nanosecondsSince1970: status.modifiedNanoseconds)
        // The time of access would make every snapshot differ from the one before.
        accessed = modified
        changed = GoTime(nanosecondsSince1970: status.changedNanoseconds)
        uid = status.owner
        gid = status.group
        inode = status.inode
        device = status.device
        self.size = UInt64(max(0, size))
        self.content = content
    }

    /// Gives what no file on disk stands for to whoever runs this.
    mutating func setOwner() {
        uid = getuid()
        gid = getgid()
    }

    /// Whether a file is what it was when this node was made, as far as its status tells.
    func isUnchanged(_ status: FileStatus) -> Bool {
        kind == .file && status.isRegular && size == UInt64(max(0, status.size)) && inode == status.inode
            && modified.isSameInstant(as: GoTime(nanosecondsSince1970: status.modifiedNanoseconds))
            && changed.isSameInstant(as: GoTime(nanosecondsSince1970: status.changedNanoseconds))
    }
}
