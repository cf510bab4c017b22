/// Turns a store into the trees of a snapshot: the attachments, and at the same time the files that are made of records.
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
        self.memo = memo
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
        let views = memo?.state == state ? previous.views(besides: assets, in: writer) : nil
        let last = views == nil ? nil : lastTree(layout)
        // On all cores, while this one turns records into files.
        let attachments = AttachmentArchiver(writer: writer, chunker: chunker, previous: previous, options: options)
        let (folder, time) = (store.assetFolder, layout.time)
        let aside = Aside {
            try attachments.archive(assets, in: folder, time: time, unlessUnchanged: last != nil)
        }
        var made: [(path: String, content: FileLane.Content)] = []
        let said = layout.result.warnings.count
        let bibliography = views == nil ? keptBibliography(state) : nil
        if views == nil { made = try makeViews(&layout, withBibliography: bibliography == nil) }
        let isRepeatable = layout.result.warnings.count == said
        let found = try aside.finish()
        if found.isUnchanged, let last { return last }
        var files = found.files
        for (path, content) in made { files.add(path, content) }
        if let bibliography { files.add(Layout.bibliography, bibliography) }
        for (path, file) in views ?? [] { files.add(path, file) }
        var digest: SHA256Digest?
        if views != nil {
            digest = found.isAsRemembered ? previous.takeCounts(into: &layout.result) : nil
            // The digest is of everything, and some attachment is not what it was, or was not what it should have been.
            if digest == nil { try layout.gather(withBibliography: false) { _ in } }
        }
        layout.took(found.digest, found.warnings, found.omitted)
        layout.result.contentDigest = try digest ?? layout.finishDigest()
        let lane = try FileLane(writer, chunker)
        try addManifest(layout, &files, lane)
        let trees = try files.store(lane.blobs)
        layout.result.files = files.facts.count
        layout.result.bytes = files.facts.values.reduce(0) { $0 + $1.size }
        return Archived(
            tree: trees.id, layout: layout.result, files: files.counts, folders: trees.folders,
            unsteady: found.unsteady, isRepeatable: isRepeatable)
    }
    /// The last snapshot once more, for when not even a file's status has changed.
    private func lastTree(_ layout: StoreLayout) -> Archived? {
        var result = layout.result
        guard result.isComplete, let tree = previous.root,
            [Manifest.fileName, ChecksumFile.fileName].allSatisfy({ previous.holds($0, in: writer) }),
            let digest = previous.takeCounts(into: &result)
        else { return nil }
        result.contentDigest = digest
        result.files = previous.tree.fileCount
        result.bytes = previous.tree.bytes
        var counted = (files: VaultBackupResult.Counts(), folders: VaultBackupResult.Counts())
        counted.files.unmodified = previous.tree.fileCount
        counted.folders.unmodified = previous.tree.folderCount
        return Archived(tree: tree, layout: result, files: counted.files, folders: counted.folders, unsteady: [])
    }

    // MARK: - Files that are made of records

    /// `library.bib`, where no publication has changed.
    private func keptBibliography(_ state: StoreState) -> PreviousLayout.KnownFile? {
        memo?.state.bibliography == state.bibliography ? previous.known(Layout.bibliography, in: writer) : nil
    }

    /// `records.jsonl` is stored on another core while the records are gathered.
    private func makeViews(
        _ layout: inout StoreLayout, withBibliography: Bool
    ) throws -> [(path: String, content: FileLane.Content)] {
        let lane = try FileLane(writer, chunker)
        let records = Lane<RecordLines>(ahead: 4) { lines in try lines.bytes.withUnsafeBytes { try lane.add($0) } }
        lane.begin()
        try layout.gather(withBibliography: withBibliography) { try records.add($0) }
        try records.finish()
        var made = [(path: Layout.records, content: try lane.finish())]
        made.append((Layout.readme, try lane.store { sink in try sink { $0 += Layout.readmeText.utf8 } }))
        try layout.forEachView { path, write in made.append((path, try lane.store(write))) }
        return made
    }

    /// The manifest gives itself a name and a time. When all else in it is as it was, so is it, and the whole snapshot.
    private func addManifest(_ layout: StoreLayout, _ files: inout SnapshotFiles, _ lane: FileLane) throws {
        var sorted = files.facts.sorted { precedesBytewise($0.key, $1.key) }
        let listing = Manifest.listing(sorted)
        let manifest = try Exporter.manifest(layout, files.facts)
        var before = manifest
        let exportID = previous.manifest["exportId"]?.string
        before.exportID = exportID ?? ""
        before.createdAt = previous.manifest["createdAt"]?.string.flatMap { Timestamp(iso8601: $0) } ?? layout.time
        let text = before.text(listing: listing)
        let isSame = exportID != nil && previous.digests[Manifest.fileName] == text.withUnsafeBytes { .of($0) }
        func add(_ path: String, _ text: [UInt8]) throws -> FileLane.Content {
            let content = try lane.store { sink in try sink { $0 += text } }
            files.add(path, content)
            return content
        }
        let own = try add(Manifest.fileName, isSame ? text : manifest.text(listing: listing))
        let place = sorted.firstIndex { !precedesBytewise($0.key, Manifest.fileName) } ?? sorted.endIndex
        sorted.insert((Manifest.fileName, FileFacts(size: own.size, digest: own.digest)), at: place)
        _ = try add(ChecksumFile.fileName, ChecksumFile.text(sorted.map { (key: $0.key, value: $0.value.digest) }))
    }
}
