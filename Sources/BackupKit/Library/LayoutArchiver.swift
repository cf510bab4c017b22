import Synchronization

/// Turns a store into the trees of a snapshot. Attachments are read on all cores; what the last snapshot has of the same
/// size, times and inode, and of the digest that the store remembers, is not read at all.
struct LayoutArchiver {
    struct Archived {
        var tree: SHA256Digest
        var layout: ExportResult
        var files: VaultBackupResult.Counts
        var folders: VaultBackupResult.Counts
        var unsteady: [String]
        /// There was nothing to say about the records, so that the next snapshot may take over what was made of them.
        var isRepeatable = true
    }

    private enum Outcome: Sendable {
        case unchanged(TreeNode)
        case stored(TreeNode, FileLane.Content, isSteady: Bool)
        case omitted(String)

        var isUnchanged: Bool {
            if case .unchanged = self { true } else { false }
        }

        /// Whether the file is there and what the store remembers of it.
        func isAsRemembered(_ asset: Asset) -> Bool {
            switch self {
            case .unchanged: true
            case .stored(_, let content, _): content.digest == asset.digest && content.size == asset.size
            case .omitted: false
            }
        }
    }

    private let writer: PackWriter
    private let chunker: Chunker
    private let previous: PreviousLayout
    /// What the last snapshot knows of the store it was made from.
    private let memo: BackupMemo?
    private let options: VaultBackupOptions

    init(
        _ writer: PackWriter, _ chunker: Chunker, _ previous: PreviousLayout, _ memo: BackupMemo?,
        _ options: VaultBackupOptions
    ) {
        self.writer = writer
        self.chunker = chunker
        self.previous = previous
        // Of a snapshot that has lost something nothing is taken over.
        self.memo = previous.isWhole ? memo : nil
        self.options = options
    }

    /// Runs inside one read transaction of the store; `state` is the store's.
    func archive(_ store: Store, _ state: StoreState) throws -> Archived {
        var exportOptions = ExportOptions(form: .layout(.directory))
        exportOptions.kinds = options.kinds
        exportOptions.oversize = options.oversize
        exportOptions.clock = options.clock
        exportOptions.tool = options.tool
        var layout = try StoreLayout(store, exportOptions)
        let assets = try layout.chosenAssets()
        // On all cores, while this one turns records into files.
        let (folder, sources) = (store.assetFolder, assets)
        let aside = Aside { try outcomes(sources, folder) }
        var files = Files(time: layout.time)
        let lane = try FileLane(writer, chunker)
        let views = memo?.state == state ? previous.views(besides: assets, in: writer) : nil
        let said = layout.result.warnings.count
        if views == nil {
            let bibliography =
                memo?.state.bibliography == state.bibliography ? previous.known(Layout.bibliography, in: writer) : nil
            try layout.gather(withBibliography: bibliography == nil)
            if let bibliography { files.add(Layout.bibliography, bibliography) }
            try addViews(&layout, &files, lane)
        }
        let isRepeatable = layout.result.warnings.count == said
        let found = try aside.finish()
        if views != nil, let same = lastTree(found, &layout) { return same }
        var digest: SHA256Digest?
        if let views {
            for (path, view) in views { files.add(path, view) }
            digest =
                zip(assets, found).allSatisfy({ $1.isAsRemembered($0) && previous.digests[$0.path] == $0.digest })
                ? previous.takeCounts(into: &layout.result) : nil
            // The digest is of everything, and some attachment is not what it was, or was not what it should have been.
            if digest == nil { try layout.gather(withBibliography: false) }
        }
        let unsteady = try add(assets, found, &layout, &files)
        layout.result.contentDigest = try digest ?? layout.finishDigest()
        try addManifest(layout, &files, lane)
        let trees = try files.store(lane.blobs, previous.tree)
        layout.result.files = files.facts.count
        layout.result.bytes = files.facts.values.reduce(0) { $0 + $1.size }
        return Archived(
            tree: trees.id, layout: layout.result, files: files.counts, folders: trees.folders, unsteady: unsteady,
            isRepeatable: isRepeatable)
    }

    /// The last snapshot once more, when not even a file's status has changed.
    private func lastTree(_ found: [Outcome], _ layout: inout StoreLayout) -> Archived? {
        guard let tree = previous.root, layout.result.isComplete, found.allSatisfy(\.isUnchanged),
            [Manifest.fileName, ChecksumFile.fileName].allSatisfy({ previous.tree.files[$0].map(holds) ?? false }),
            let digest = previous.takeCounts(into: &layout.result)
        else { return nil }
        layout.result.contentDigest = digest
        layout.result.files = previous.tree.files.count
        layout.result.bytes = previous.tree.files.values.reduce(0) { $0 + Int64(clamping: $1.size) }
        var counted = (files: VaultBackupResult.Counts(), folders: VaultBackupResult.Counts())
        counted.files.unmodified = previous.tree.files.count
        counted.folders.unmodified = previous.tree.folders.count
        return Archived(
            tree: tree, layout: layout.result, files: counted.files, folders: counted.folders, unsteady: [])
    }

    private func holds(_ node: TreeNode) -> Bool { PreviousLayout.holds(node, in: writer) }

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

        mutating func add(_ path: String, _ known: PreviousLayout.KnownFile) {
            add(path, known.node, known.facts, known.node)
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
        let exportID = previous.manifest["exportId"]?.string
        before.exportID = exportID ?? ""
        before.createdAt = previous.manifest["createdAt"]?.string.flatMap { Timestamp(iso8601: $0) } ?? layout.time
        let text = before.text()
        let isSame = exportID != nil && previous.digests[Manifest.fileName] == .of(text)
        try add(Manifest.fileName, text: isSame ? text : manifest.text(), &files, lane)
        let sums = files.facts.map { (path: $0.key, digest: $0.value.digest) }
        try add(ChecksumFile.fileName, text: ChecksumFile.text(sums), &files, lane)
    }

    // MARK: - Attachments

    /// Returns the files that did not hold still.
    private func add(
        _ assets: [Asset], _ outcomes: [Outcome], _ layout: inout StoreLayout, _ files: inout Files
    ) throws -> [String] {
        var unsteady: [String] = []
        var names = EntryNameSet()
        for name in files.facts.keys { try names.insert(name) }
        for (asset, outcome) in zip(assets, outcomes) {
            // Nobody's attachment takes the place of a file of ours.
            do { try names.insert(asset.path) } catch let error as BackupError {
                layout.omit(asset.path, error.message)
                continue
            }
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
        let known = previous.tree.files[asset.path]?.content.flatMap { blobs in
            previous.digests[asset.path].map { FileLane.Known(blobs: blobs, digest: $0) }
        }
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
                let content = try lane.store(file, size: before.size, known: known)
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
            let status = try? FileStatus.ofName("\(root.path)/\(asset.path)"),
            status.size == asset.size, node.isUnchanged(status), holds(node)
        else { return nil }
        return node
    }
}
