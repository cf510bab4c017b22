/// What the last snapshot of a library says of its files: which need not be read again.
struct PreviousLayout: Sendable {
    let tree: ParentTree
    /// The digests of whole files, from its SHA256SUMS.
    let digests: ChecksumList
    /// The whole tree, above the layout's.
    let root: SHA256Digest?
    /// What its manifest says of itself and of all files together.
    private(set) var manifest: JSON = .object([])
    /// What could not be read of it; it is as if it were not there.
    private(set) var unread: [UnreadBlob] = []

    init(_ snapshot: Snapshot?, _ vault: Vault, _ index: BlobIndex) throws {
        let reader = try BlobReader(vault)
        root = snapshot?.file.tree
        var unread: [UnreadBlob] = []
        func take<Value>(_ handle: BlobHandle, _ body: () throws -> Value) throws -> Value? {
            switch try UnreadBlob.catching(handle, body) {
            case .success(let value): return value
            case .failure(let blob):
                unread.append(blob)
                return nil
            }
        }
        let folders = try root.flatMap { root in
            try take(BlobHandle(.tree, root)) { try reader.nodes(of: root, in: index) }
        }
        guard let library = folders?.first(where: { $0.name.elementsEqual(VaultBackup.root.utf8) })?.subtree else {
            (tree, digests, self.unread) = (ParentTree(), ChecksumList(), unread)
            return
        }
        tree = try ParentTree(library, index, vault)
        func text(_ blobs: some Sequence<SHA256Digest>) throws -> [UInt8] {
            let pieces = try blobs.map { id in
                let handle = BlobHandle(.data, id)
                return try take(handle) { try reader.read(handle, in: index) { [UInt8]($0) } }
            }
            return pieces.contains { $0 == nil } ? [] : pieces.flatMap { $0 ?? [] }
        }
        digests = ChecksumList(try text(tree.node(ChecksumFile.fileName)?.content ?? []))
        // Our manifests have one fact a line, the list of files last.
        let head = try text((tree.node(Manifest.fileName)?.content ?? []).prefix(1)).prefix(1 << 16)
        self.unread = unread + tree.unread
        let lines = head.split(separator: 0x0A).prefix { !$0.starts(with: "  \"files\":".utf8) }
        let facts = lines.compactMap { line in
            let fact = line.last == UInt8(ascii: ",") ? line.dropLast() : line
            return try? JSON(parsing: "{\(String(decoding: fact, as: UTF8.self))}").members
        }
        manifest = .object(facts.flatMap { $0 })
    }

    // MARK: What need not be made again

    typealias KnownFile = (place: ParentTree.Place, modified: GoTime, facts: FileFacts)

    static func holds(_ node: TreeNode, in writer: PackWriter) -> Bool {
        node.content?.allSatisfy { writer.holds(BlobHandle(.data, $0)) } ?? false
    }

    /// Whether the file was there and the vault still has its content.
    func holds(_ path: String, in writer: PackWriter) -> Bool {
        tree.node(path).map { Self.holds($0, in: writer) } ?? false
    }

    /// A file whose digest is known and whose content the vault has.
    func known(_ path: String, in writer: PackWriter) -> KnownFile? {
        guard let place = tree.find(path), let node = tree.node(place), let digest = digests[path],
            Self.holds(node, in: writer)
        else { return nil }
        return (place, node.modified, FileFacts(size: Int64(clamping: node.size), digest: digest))
    }

    /// The files that are made of records; nil when one of them cannot be had.
    func views(besides assets: [Asset], in writer: PackWriter) -> [(path: String, file: KnownFile)]? {
        // Attachments, of which there are many, are told by their folders; the few that lie elsewhere by their names.
        let paths = digests.paths { path in !Layout.attachmentFolders.contains { path.starts(with: $0.utf8) } }
        guard !paths.isEmpty else { return nil }
        let elsewhere = Set(paths).intersection(assets.lazy.map(\.path))
        var views: [(path: String, file: KnownFile)] = []
        for path in paths where !elsewhere.contains(path) {
            if path == Manifest.fileName || path == ChecksumFile.fileName { continue }
            guard let view = known(path, in: writer) else { return nil }
            views.append((path, view))
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
