import Synchronization

/// What the last snapshot of a library says of its files: which need not be read again.
struct PreviousLayout: Sendable {
    let tree: ParentTree
    /// The digests of whole files, from its SHA256SUMS.
    let digests: [String: SHA256Digest]
    /// The name and the time that its manifest gave itself.
    private(set) var manifestID: String?
    private(set) var manifestTime: Timestamp?

    init(_ snapshot: Snapshot?, _ vault: Vault, _ index: BlobIndex) throws {
        let reader = try BlobReader(vault)
        guard let root = snapshot?.file.tree, let library = Self.library(root, index, reader) else {
            tree = ParentTree()
            digests = [:]
            return
        }
        tree = ParentTree(library, index, reader)
        let sums = Self.text(tree.files[ChecksumFile.fileName], blobs: .max, index, reader)
        digests = ChecksumFile.parse(sums) ?? [:]
        // Our manifests have one fact a line, these among the first.
        for line in Self.text(tree.files[Manifest.fileName], blobs: 1, index, reader).prefix(4096).split(
            separator: "\n")
        {
            guard let fact = try? JSON(parsing: "{\(line.hasSuffix(",") ? line.dropLast() : line)}") else { continue }
            if let id = fact["exportId"]?.string { manifestID = id }
            if let time = fact["createdAt"]?.string { manifestTime = Timestamp(iso8601: time) }
        }
    }

    private static func library(_ root: SHA256Digest, _ index: BlobIndex, _ reader: BlobReader) -> SHA256Digest? {
        // What cannot be read is as if it were not there: everything is read anew.
        try? reader.read(BlobHandle(.tree, root), in: index) { json in
            try Tree(parsing: json).nodes.first { $0.name.elementsEqual(VaultBackup.root.utf8) }?.subtree
        }
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
}

/// Turns a store into the trees of a snapshot. Attachments are read on all cores; what the last snapshot has of the same
/// size, times and inode, and of the digest that the store remembers, is not read at all.
struct LayoutArchiver {
    struct Archived {
        var tree: SHA256Digest
        var layout: ExportResult
        var files: VaultBackupResult.Counts
        var folders: VaultBackupResult.Counts
        var unsteady: [String]
    }

    private enum Outcome: Sendable {
        case unchanged(TreeNode)
        case stored(TreeNode, FileLane.Content, isSteady: Bool)
        case omitted(String)
    }

    private let writer: PackWriter
    private let chunker: Chunker
    private let previous: PreviousLayout
    private let options: VaultBackupOptions

    init(_ writer: PackWriter, _ chunker: Chunker, _ previous: PreviousLayout, _ options: VaultBackupOptions) throws {
        self.writer = writer
        self.chunker = chunker
        self.previous = previous
        self.options = options
    }

    /// Runs inside one read transaction of the store.
    func archive(_ store: Store) throws -> Archived {
        var exportOptions = ExportOptions(form: .layout(.directory))
        exportOptions.kinds = options.kinds
        exportOptions.oversize = options.oversize
        exportOptions.clock = options.clock
        exportOptions.tool = options.tool
        var layout = try StoreLayout(store, exportOptions)
        var files = Files(time: layout.time)
        let lane = try FileLane(writer, chunker)
        try addViews(&layout, &files, lane)
        let unsteady = try addAssets(&layout, &files, store.assetFolder)
        layout.result.contentDigest = try layout.finishDigest()
        try addManifest(layout, &files, lane)
        let trees = try files.store(lane.blobs, previous.tree)
        layout.result.files = files.facts.count
        layout.result.bytes = files.facts.values.reduce(0) { $0 + $1.size }
        return Archived(
            tree: trees.id, layout: layout.result, files: files.counts, folders: trees.folders, unsteady: unsteady)
    }

    /// What was gathered so far.
    private struct Files {
        let time: Timestamp
        var trees = TreeBuilder()
        var facts: [String: FileFacts] = [:]
        var counts = VaultBackupResult.Counts()

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

        mutating func store(_ lane: PackWriter.Lane, _ parent: ParentTree) throws
            -> (id: SHA256Digest, folders: VaultBackupResult.Counts)
        {
            let id = try trees.store(lane, parent: parent, below: VaultBackup.root)
            let counts = trees.folderCounts
            return (id, .init(new: counts.new, changed: counts.changed, unmodified: counts.unmodified))
        }
    }

    // MARK: - Files that are made of records

    private func addViews(_ layout: inout StoreLayout, _ files: inout Files, _ lane: FileLane) throws {
        try add(Layout.readme, text: Layout.readmeText, &files, lane)
        if var file = try layout.bibliographyFile() { try add(Layout.bibliography, &file, &files, lane) }
        if var file = try layout.notesFile() { try add(Layout.notes, &file, &files, lane) }
        if var file = try layout.settingsFile() { try add(Layout.settings, &file, &files, lane) }
        try layout.forEachEventFile { day, file in
            try add("\(Layout.eventFolder)\(day).jsonl", &file, &files, lane)
        }
        var records = layout.recordsFile()
        try add(Layout.records, &records, &files, lane)
    }

    private func add(_ path: String, _ spool: inout SpoolFile, _ files: inout Files, _ lane: FileLane) throws {
        try spool.flush()
        let finished = spool
        add(path, try lane.store { try finished.forEachChunk($0) }, &files)
    }

    private func add(_ path: String, text: String, _ files: inout Files, _ lane: FileLane) throws {
        var text = text
        add(path, try text.withUTF8 { utf8 in try lane.store { try $0(UnsafeRawBufferPointer(utf8)) } }, &files)
    }

    private func add(_ path: String, _ content: FileLane.Content, _ files: inout Files) {
        let previous = previous.tree.files[path]
        var node = TreeNode(name: [], kind: .file)
        node.mode = 0o600
        node.modified = GoTime(files.time)
        node.accessed = node.modified
        node.changed = node.modified
        node.setOwner()
        node.size = UInt64(content.size)
        node.content = content.blobs
        // The same content keeps its old time: then the folder's tree is the same, too.
        if let previous, previous.content == content.blobs { node = previous }
        files.add(path, node, FileFacts(size: content.size, digest: content.digest), previous)
    }

    /// The manifest gives itself a name and a time. When all else in it is as it was, so is it, and the whole snapshot.
    private func addManifest(_ layout: StoreLayout, _ files: inout Files, _ lane: FileLane) throws {
        let manifest = try Exporter.manifest(layout, files.facts)
        var before = manifest
        before.exportID = previous.manifestID ?? ""
        before.createdAt = previous.manifestTime ?? layout.time
        let text = before.text()
        let isSame = previous.manifestID != nil && previous.digests[Manifest.fileName] == .of(text)
        try add(Manifest.fileName, text: isSame ? text : manifest.text(), &files, lane)
        let sums = files.facts.map { (path: $0.key, digest: $0.value.digest) }
        try add(ChecksumFile.fileName, text: ChecksumFile.text(sums), &files, lane)
    }

    // MARK: - Attachments

    /// Returns the files that did not hold still.
    private func addAssets(_ layout: inout StoreLayout, _ files: inout Files, _ folder: String) throws -> [String] {
        let assets = try layout.chosenAssets(besides: files.facts.keys)
        guard !assets.isEmpty else { return [] }
        var unsteady: [String] = []
        for (asset, outcome) in zip(assets, try outcomes(assets, folder)) {
            switch outcome {
            case .omitted(let reason): layout.omit(asset.path, reason)
            case .unchanged(let node):
                let facts = FileFacts(size: asset.size, digest: asset.digest, isLocalOnly: asset.isLocalOnly)
                layout.took(asset, facts)
                files.add(asset.path, node, facts, node)
            case .stored(let node, let content, let isSteady):
                if !isSteady { unsteady.append(asset.path) }
                let facts = FileFacts(size: content.size, digest: content.digest, isLocalOnly: asset.isLocalOnly)
                layout.took(asset, facts)
                files.add(asset.path, node, facts, previous.tree.files[asset.path])
            }
        }
        return unsteady
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
                let content = try lane.store(file, size: before.size)
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
            let content = node.content, let status = try? FileStatus.ofName("\(root.path)/\(asset.path)"),
            status.size == asset.size, node.isUnchanged(status),
            content.allSatisfy({ writer.holds(BlobHandle(.data, $0)) })
        else { return nil }
        return node
    }
}
