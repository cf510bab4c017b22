/// What the snapshot before this one holds below its root: how unchanged files are recognised.
///
/// Trees stay the text that they are, in which the place of each file's node is noted; a node is read when somebody asks
/// for it, and goes into the next tree as it stands there.
struct ParentTree: Sendable {
    /// Where a file's node stands.
    struct Place: Sendable {
        fileprivate let folder: Int
        fileprivate let file: Int
    }

    fileprivate struct File {
        let name: Range<UInt32>
        let node: Range<UInt32>
    }

    fileprivate struct Folder: Sendable {
        let path: [UInt8]
        let id: SHA256Digest
        let text: [UInt8]
        /// The names of the files, one behind the other.
        var names: [UInt8] = []
        /// By name.
        var files: [File] = []
        var bytes: Int64 = 0
        var folders: [(path: [UInt8], id: SHA256Digest)] = []
    }

    /// More folders than this are not looked into: few blobs can stand for any number of them.
    private static let mostFolders = 1 << 20

    /// By path.
    private var folders: [Folder] = []
    private(set) var fileCount = 0
    var folderCount: Int { folders.count }
    /// What the files come to.
    private(set) var bytes: Int64 = 0

    init() {}

    /// Reads all trees of a snapshot. What cannot be read is as if it were new: then its files are read again, which costs
    /// time and nothing else.
    init(_ root: SHA256Digest, _ index: BlobIndex, _ vault: Vault) throws {
        var waiting: [(path: [UInt8], id: SHA256Digest)] = [([], root)]
        while !waiting.isEmpty, folders.count + waiting.count <= Self.mostFolders {
            let level = waiting
            let found = try Parallel.map(level.count, state: { try BlobReader(vault) }) { reader, number in
                try? Folder(level[number].path, level[number].id, index, reader)
            }
            let readable = found.compactMap { $0 }
            folders += readable
            waiting = readable.flatMap(\.folders)
        }
        folders.sort { precedes($0.path, $1.path) }
        fileCount = folders.reduce(0) { $0 + $1.files.count }
        bytes = folders.reduce(0) { $0 &+ $1.bytes }
    }

    /// The tree of a folder.
    func id(ofFolder path: String) -> SHA256Digest? {
        var path = path
        return path.withUTF8 { folder(UnsafeRawBufferPointer($0)).map { folders[$0].id } }
    }

    func find(_ path: String) -> Place? {
        var path = path
        return path.withUTF8 { utf8 in
            let path = UnsafeRawBufferPointer(utf8)
            let slash = path.lastIndex(of: UInt8(ascii: "/"))
            let above = UnsafeRawBufferPointer(rebasing: path[..<(slash ?? 0)])
            let name = UnsafeRawBufferPointer(rebasing: path[(slash.map { $0 + 1 } ?? 0)...])
            guard let folder = folder(above), let file = folders[folder].find(name) else { return nil }
            return Place(folder: folder, file: file)
        }
    }

    private func folder(_ path: UnsafeRawBufferPointer) -> Int? {
        let index = firstIndex(below: folders.count) { index in
            folders[index].path.withUnsafeBytes { !precedesBytewise($0, path) }
        }
        guard index < folders.count, folders[index].path.withUnsafeBytes({ sameBytes($0, path) }) else { return nil }
        return index
    }

    /// The node of a file that is there; nil also when it cannot be read.
    func node(_ path: String) -> TreeNode? { find(path).flatMap(node) }

    func node(_ place: Place) -> TreeNode? {
        withText(of: place) { text in
            var scanner = JSONScanner(text)
            return try? TreeNode(reading: &scanner, text)
        }
    }

    /// Hands out the node as it stands in its tree.
    func withText<Result>(of place: Place, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let folder = folders[place.folder]
        let range = folder.files[place.file].node
        return try folder.text.withUnsafeBytes {
            try body(UnsafeRawBufferPointer(rebasing: $0[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
    }
}

extension ParentTree.Folder {
    init(_ path: [UInt8], _ id: SHA256Digest, _ index: BlobIndex, _ reader: BlobReader) throws {
        (self.path, self.id) = (path, id)
        text = try reader.read(BlobHandle(.tree, id), in: index) { [UInt8]($0) }
        guard text.count < Int(UInt32.max) else { throw BackupError(.refused, "is a list of files too long to read") }
        try text.withUnsafeBytes { json in
            try Tree.readNodes(json) { scanner in
                let start = UInt32(names.count)
                let outline = try TreeNode.Outline(reading: &scanner, json, name: &names)
                let name = start..<UInt32(names.count)
                switch outline.kind {
                case .file:
                    files.append(
                        .init(name: name, node: UInt32(outline.range.lowerBound)..<UInt32(outline.range.upperBound)))
                    bytes &+= Int64(clamping: outline.size)
                case .folder:
                    let inner = Array(names[Int(start)...])
                    guard let subtree = outline.subtree, TreeNode.isSafe(inner) else { return }
                    folders.append((path.isEmpty ? inner : path + [UInt8(ascii: "/")] + inner, subtree))
                default: break
                }
            }
        }
        // In what we write they are; others may have done otherwise.
        let isSorted = zip(files, files.dropFirst()).allSatisfy { precedes($0, $1) }
        if !isSorted { files = files.sorted { precedes($0, $1) } }
    }

    private func precedes(_ left: ParentTree.File, _ right: ParentTree.File) -> Bool {
        names.withUnsafeBytes { precedesBytewise(Self.name(left, in: $0), Self.name(right, in: $0)) }
    }

    private static func name(_ file: ParentTree.File, in names: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: names[Int(file.name.lowerBound)..<Int(file.name.upperBound)])
    }

    func find(_ name: UnsafeRawBufferPointer) -> Int? {
        names.withUnsafeBytes { names in
            let index = firstIndex(below: files.count) { !precedesBytewise(Self.name(files[$0], in: names), name) }
            return index < files.count && sameBytes(Self.name(files[index], in: names), name) ? index : nil
        }
    }
}
