/// What the last snapshot of a library says of its files: which need not be read again.
struct PreviousLayout: Sendable {
    let tree: ParentTree
    /// The digests of whole files, from its SHA256SUMS.
    let digests: [String: SHA256Digest]
    /// The whole tree, above the layout's.
    let root: SHA256Digest?
    /// What its manifest says of itself and of all files together.
    private(set) var manifest: JSON = .object([])

    init(_ snapshot: Snapshot?, _ vault: Vault, _ index: BlobIndex) throws {
        let reader = try BlobReader(vault)
        root = snapshot?.file.tree
        // What cannot be read is as if it were not there: everything is read anew.
        guard let root, let library = reader.node(VaultBackup.root, of: root, in: index)?.subtree else {
            tree = ParentTree()
            digests = [:]
            return
        }
        tree = ParentTree(library, index, reader)
        let sums = Self.text(tree.files[ChecksumFile.fileName], blobs: .max, index, reader)
        digests = ChecksumFile.parse(sums) ?? [:]
        // Our manifests have one fact a line, the list of files last.
        let facts = Self.text(tree.files[Manifest.fileName], blobs: 1, index, reader).prefix(1 << 16)
            .split(separator: "\n").compactMap { line in
                try? JSON(parsing: "{\(line.hasSuffix(",") ? line.dropLast() : line)}").members
            }
        manifest = .object(facts.flatMap { $0 })
    }

    private static func text(_ node: TreeNode?, blobs: Int, _ index: BlobIndex, _ reader: BlobReader) -> String {
        var bytes: [UInt8] = []
        for id in (node?.content ?? []).prefix(blobs) {
            do {
                try reader.read(BlobHandle(.data, id), in: index) { bytes += $0 }
            } catch { return "" }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: What need not be made again

    typealias KnownFile = (node: TreeNode, facts: FileFacts)

    static func holds(_ node: TreeNode, in writer: PackWriter) -> Bool {
        node.content?.allSatisfy { writer.holds(BlobHandle(.data, $0)) } ?? false
    }

    /// Whether the file was there and the vault still has its content.
    func holds(_ path: String, in writer: PackWriter) -> Bool {
        tree.files[path].map { Self.holds($0, in: writer) } ?? false
    }

    /// A file whose digest is known and whose content the vault has.
    func known(_ path: String, in writer: PackWriter) -> KnownFile? {
        guard let node = tree.files[path], let digest = digests[path], Self.holds(node, in: writer) else { return nil }
        return (node, FileFacts(size: Int64(clamping: node.size), digest: digest))
    }

    /// Whether every file that the snapshot ought to have was found in its trees.
    var isWhole: Bool { !digests.isEmpty && digests.keys.allSatisfy { tree.files[$0] != nil } }

    /// The files that are made of records; nil when one of them cannot be had.
    func views(besides assets: [Asset], in writer: PackWriter) -> [(path: String, file: KnownFile)]? {
        let assets = Set(assets.map(\.path))
        var views: [(path: String, file: KnownFile)] = []
        for path in digests.keys where !assets.contains(path) {
            switch Layout.role(of: path) {
            case .attachment, .manifest, .checksums: continue
            default:
                guard let view = known(path, in: writer) else { return nil }
                views.append((path, view))
            }
        }
        return views
    }

    /// Takes what the manifest says of all records together, and returns the content digest; nil when it says neither in
    /// our way.
    func takeCounts(into result: inout ExportResult) -> SHA256Digest? {
        guard let digest = manifest["contentDigest"]?.string.flatMap({ SHA256Digest(hex: $0) }),
            let counts = manifest["counts"]
        else { return nil }
        func count(_ name: String) -> Int { counts[name]?.integer.map { Int(clamping: $0) } ?? 0 }
        for kind in Kind.allCases where kind != .attachments && kind != .settings {
            result.records[kind] = count(kind.rawValue)
        }
        result.tombstones = count("tombstones")
        return digest
    }
}
