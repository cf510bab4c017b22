import Glibc

/// Makes the trees of a snapshot out of the nodes of its files.
struct TreeBuilder {
    struct Counts: Sendable, Equatable {
        var new = 0
        var changed = 0
        var unmodified = 0
    }

    fileprivate struct Entry: Sendable {
        let name: [UInt8]
        let modified: GoTime
        let node: Node
    }

    fileprivate enum Node: Sendable {
        /// The words of a new one: half the memory, and written by whoever made it.
        case made([UInt8])
        /// Goes into the new tree as it stands in the old one.
        case kept(ParentTree.Place)
    }

    private let parent: ParentTree
    private let root: String
    private var folders: [ByteName: [Entry]] = [ByteName(""): []]
    private(set) var folderCounts = Counts()

    /// `parent` is what was below `root`.
    init(parent: ParentTree = ParentTree(), below root: String) { (self.parent, self.root) = (parent, root) }

    /// A node as it will stand in its tree, with the name that its path gives it.
    struct Written: Sendable {
        fileprivate let entry: Entry

        init(_ node: TreeNode, path: String) {
            var node = node
            node.name = Array(TreeBuilder.split(path).name.utf8)
            self.init(node)
        }

        fileprivate init(_ node: TreeNode) {
            var text: [UInt8] = []
            node.append(to: &text)
            // Without the room that it grew into.
            let exact = text.withUnsafeBytes { Array($0) }
            entry = Entry(name: node.name, modified: node.modified, node: .made(exact))
        }
    }

    /// `path` is relative, its parts parted by "/".
    mutating func add(_ path: String, _ node: Written) {
        add(Self.split(path).folder, node.entry)
    }

    /// Adds a file that is what it was.
    mutating func add(_ path: String, _ kept: ParentTree.Place, modified: GoTime) {
        let (folder, name) = Self.split(path)
        add(folder, Entry(name: Array(name.utf8), modified: modified, node: .kept(kept)))
    }

    private mutating func add(_ folder: String, _ entry: Entry) {
        addFolder(folder)
        folders[ByteName(folder), default: []].append(entry)
    }

    mutating func addFolder(_ path: String) {
        var path = path
        while !path.isEmpty, folders[ByteName(path)] == nil {
            folders[ByteName(path)] = []
            path = Self.split(path).folder
        }
    }

    static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
        return (String(path[..<slash]), String(path[path.utf8.index(after: slash)...]))
    }

    /// Takes out the folders that begin so, to be stored while others are still added to.
    mutating func take(_ prefixes: [String]) -> TreeBuilder {
        var taken = TreeBuilder(parent: parent, below: root)
        for path in folders.keys where prefixes.contains(where: { "\(path.text)/".utf8.starts(with: $0.utf8) }) {
            taken.folders[path] = folders.removeValue(forKey: path)
        }
        return taken
    }

    /// Puts in what became of those that were taken out.
    mutating func put(_ taken: TreeBuilder) {
        for (path, entries) in taken.folders { folders[path, default: []] += entries }
        folderCounts.new += taken.folderCounts.new
        folderCounts.changed += taken.folderCounts.changed
        folderCounts.unmodified += taken.folderCounts.unmodified
    }

    /// Stores the trees of all folders but the root: the innermost first, neighbours on all cores.
    mutating func storeFolders(_ writer: PackWriter) throws {
        let chosen = folders.keys.map(\.text).filter { !$0.isEmpty }
        let levels = Dictionary(grouping: chosen) { $0.utf8.count { $0 == UInt8(ascii: "/") } }
        for (_, paths) in levels.sorted(by: { $0.key > $1.key }) {
            let level = paths.map { (path: $0, entries: folders.removeValue(forKey: ByteName($0)) ?? []) }
            let parent = parent
            let ids = try Parallel.map(level.count, state: { try PackWriter.Lane(writer) }) { lane, number in
                try Self.store(level[number].entries, parent, lane)
            }
            for ((path, entries), id) in zip(level, ids) {
                count(path == root ? "" : String(path.dropFirst(root.count + 1)), id)
                let (above, name) = Self.split(path)
                folders[ByteName(above), default: []].append(Self.folder(name, entries, id))
            }
        }
    }

    /// Stores all trees that are left, and returns the id of the outermost.
    mutating func store(_ writer: PackWriter) throws -> SHA256Digest {
        try storeFolders(writer)
        return try Self.store(folders[ByteName("")] ?? [], parent, PackWriter.Lane(writer))
    }

    private static func store(
        _ entries: [Entry], _ parent: ParentTree, _ lane: PackWriter.Lane
    ) throws -> SHA256Digest {
        let text = try Tree.encode(entries, name: \.name) { entry, out in
            switch entry.node {
            case .made(let text): out += text
            case .kept(let place): parent.withText(of: place) { out += $0 }
            }
        }
        return try text.withUnsafeBytes { try lane.store($0, as: .tree).id }
    }

    private mutating func count(_ path: String, _ id: SHA256Digest) {
        switch parent.id(ofFolder: path) {
        case nil: folderCounts.new += 1
        case id: folderCounts.unmodified += 1
        default: folderCounts.changed += 1
        }
    }

    /// A folder is as old as the newest in it: the same content gives the same tree.
    private static func folder(_ name: String, _ entries: [Entry], _ id: SHA256Digest) -> Entry {
        var node = TreeNode(name: Array(name.utf8), kind: .folder)
        let newest = entries.map(\.modified).max { ($0.seconds, $0.nanoseconds) < ($1.seconds, $1.nanoseconds) }
        node.mode = TreeNode.Mode.folder | 0o700
        node.modified = newest ?? GoTime(seconds: 0)
        node.accessed = node.modified
        node.changed = node.modified
        node.setOwner()
        node.subtree = id
        return Written(node).entry
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
