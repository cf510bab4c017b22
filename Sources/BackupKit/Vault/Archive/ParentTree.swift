/// What the snapshot before this one holds below its root: how unchanged files are recognised.
///
/// Trees stay the text that they are, in which the place of each file's node is noted; a node is read when somebody asks
/// for it, and goes into the next tree as it stands there (decision 069).
struct ParentTree: Sendable {
    /// Where a file's node stands.
    struct Place: Sendable {
        fileprivate let listing: FolderListing
        fileprivate let node: Range<UInt32>
    }

    /// More folders than this are not looked into: few blobs can stand for any number of them.
    private static let mostFolders = 1 << 18

    /// By path; folders that hold the same share a listing.
    private var folders: [(path: [UInt8], listing: FolderListing)] = []
    private(set) var fileCount = 0
    var folderCount: Int { folders.count }
    /// What the files come to.
    private(set) var bytes: Int64 = 0
    /// Trees that could not be read. Their files are read again, and whoever stores the same tree must not rely on them.
    private(set) var unread: [UnreadBlob] = []

    init() {}

    /// Reads all trees of a snapshot.
    init(_ root: SHA256Digest, _ index: BlobIndex, _ vault: Vault) throws {
        var listings: [SHA256Digest: FolderListing?] = [:]
        var waiting: [(path: [UInt8], id: SHA256Digest)] = [([], root)]
        while !waiting.isEmpty, folders.count + waiting.count <= Self.mostFolders {
            let unknown = Array(Set(waiting.map(\.id))).filter { listings[$0] == nil }
            let found = try Parallel.map(unknown.count, state: { try BlobReader(vault) }) { reader, number in
                try UnreadBlob.catching(BlobHandle(.tree, unknown[number])) {
                    try FolderListing(unknown[number], index, reader)
                }
            }
            for (id, listing) in zip(unknown, found) {
                listings.updateValue(try? listing.get(), forKey: id)
                if case .failure(let blob) = listing { unread.append(blob) }
            }
            let level = waiting
            waiting = []
            for (path, id) in level {
                guard let listing = listings[id] ?? nil else { continue }
                folders.append((path, listing))
                for (name, inner) in listing.folders {
                    waiting.append((path.isEmpty ? name : path + [UInt8(ascii: "/")] + name, inner))
                }
            }
        }
        folders.sort { precedes($0.path, $1.path) }
        fileCount = folders.reduce(0) { $0 + $1.listing.files.count }
        bytes = folders.reduce(0) { $0 &+ $1.listing.bytes }
    }

    /// The tree of a folder.
    func id(ofFolder path: String) -> SHA256Digest? {
        var path = path
        return path.withUTF8 { listing(of: UnsafeRawBufferPointer($0))?.id }
    }

    func find(_ path: String) -> Place? {
        var path = path
        return path.withUTF8 { utf8 in
            let path = UnsafeRawBufferPointer(utf8)
            let slash = path.lastIndex(of: UInt8(ascii: "/"))
            let above = UnsafeRawBufferPointer(rebasing: path[..<(slash ?? 0)])
            let name = UnsafeRawBufferPointer(rebasing: path[(slash.map { $0 + 1 } ?? 0)...])
            guard let listing = listing(of: above), let node = listing.find(name) else { return nil }
            return Place(listing: listing, node: node)
        }
    }

    private func listing(of path: UnsafeRawBufferPointer) -> FolderListing? {
        let index = firstIndex(below: folders.count) { index in
            folders[index].path.withUnsafeBytes { !precedesBytewise($0, path) }
        }
        guard index < folders.count, folders[index].path.withUnsafeBytes({ sameBytes($0, path) }) else { return nil }
        return folders[index].listing
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
        try place.listing.text.withUnsafeBytes {
            try body(UnsafeRawBufferPointer(rebasing: $0[Int(place.node.lowerBound)..<Int(place.node.upperBound)]))
        }
    }
}

/// What is in one folder.
private final class FolderListing: Sendable {
    struct File {
        let name: Range<UInt32>
        let node: Range<UInt32>
    }

    let id: SHA256Digest
    let text: [UInt8]
    /// The names, one behind the other.
    let names: [UInt8]
    /// By name.
    let files: [File]
    let bytes: Int64
    let folders: [(name: [UInt8], id: SHA256Digest)]

    init(_ id: SHA256Digest, _ index: BlobIndex, _ reader: BlobReader) throws {
        let text = try reader.read(BlobHandle(.tree, id), in: index) { [UInt8]($0) }
        guard text.count < Int(UInt32.max) else { throw BackupError(.refused, "is a list of files too long to read") }
        var names: [UInt8] = []
        var files: [File] = []
        var bytes: Int64 = 0
        var folders: [(name: [UInt8], id: SHA256Digest)] = []
        try text.withUnsafeBytes { json in
            try Tree.readNodes(json) { scanner in
                let start = names.count
                let outline = try TreeNode.Outline(reading: &scanner, json, name: &names)
                switch outline.kind {
                case .file:
                    let node = UInt32(outline.range.lowerBound)..<UInt32(outline.range.upperBound)
                    files.append(File(name: UInt32(start)..<UInt32(names.count), node: node))
                    bytes &+= Int64(clamping: outline.size)
                case .folder:
                    let name = Array(names[start...])
                    if let subtree = outline.subtree, TreeNode.isSafe(name) { folders.append((name, subtree)) }
                default: break
                }
            }
        }
        let isSorted = names.withUnsafeBytes { names in
            zip(files, files.dropFirst()).allSatisfy { Self.precedes($0, $1, in: names) }
        }
        // In what we write they are; others may have done otherwise.
        if !isSorted { names.withUnsafeBytes { names in files.sort { Self.precedes($0, $1, in: names) } } }
        (self.id, self.text, self.names, self.files, self.bytes, self.folders) = (
            id, text, names, files, bytes, folders
        )
    }

    private static func precedes(_ left: File, _ right: File, in names: UnsafeRawBufferPointer) -> Bool {
        precedesBytewise(name(left, in: names), name(right, in: names))
    }

    private static func name(_ file: File, in names: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: names[Int(file.name.lowerBound)..<Int(file.name.upperBound)])
    }

    /// Where a file's node stands.
    func find(_ name: UnsafeRawBufferPointer) -> Range<UInt32>? {
        names.withUnsafeBytes { names in
            let index = firstIndex(below: files.count) { !precedesBytewise(Self.name(files[$0], in: names), name) }
            guard index < files.count, sameBytes(Self.name(files[index], in: names), name) else { return nil }
            return files[index].node
        }
    }
}
