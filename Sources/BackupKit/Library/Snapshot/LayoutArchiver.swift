/// Turns a store into the trees of a snapshot: the attachments, and at the same time the files that are made of records.
struct LayoutArchiver {
    struct Archived {
        var tree: SHA256Digest
        var layout: ExportResult
        var files: VaultBackupResult.Counts
        var folders: VaultBackupResult.Counts
        var unsteady: [String]
        /// What the next snapshot may go by; nil when there was something to say about the records.
        var memo: BackupMemo?
    }

    /// What comes from the store alone. It is read while the vault's index is loaded.
    struct Rows {
        fileprivate var layout: StoreLayout
        fileprivate let assets: [Asset]
        fileprivate let source: AssetFiles?
        fileprivate let unknownFiles: Aside<Store.UnknownFiles>?
        /// Reads all rows once more. The store MUST NOT be touched before it has finished.
        fileprivate let state: Aside<StoreState>?

        /// `withState`: the last snapshot may be of the same state, and then nothing is read by its type.
        init(of store: Store, withState: Bool, _ options: VaultBackupOptions) throws {
            var exportOptions = ExportOptions(form: .layout(.directory))
            exportOptions.kinds = options.kinds
            exportOptions.oversize = options.oversize
            exportOptions.clock = options.clock
            exportOptions.tool = options.tool
            layout = try StoreLayout(store, exportOptions, provesTypeIndex: !withState)
            assets = try layout.chosenAssets()
            source = try AssetFiles(of: store)
            unknownFiles = try options.kinds.contains(.attachments) ? store.lookForUnknownFiles() : nil
            state = withState ? Aside { try store.state() } : nil
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
        self.memo = memo
        self.options = options
    }

    /// Runs inside the read transaction that the rows were asked in.
    func archive(_ rows: consuming Rows) throws -> Archived {
        let (store, assets, source) = (rows.layout.store, rows.assets, rows.source)
        var layout = rows.layout
        // On all cores, while this one looks at the records.
        let attachments = AttachmentArchiver(writer: writer, chunker: chunker, previous: previous, options: options)
        let (time, mayBeSame) = (layout.time, rows.state != nil)
        let aside = Aside { try attachments.see(assets, from: source, time: time, addsUp: !mayBeSame) }
        let known = try rows.state?.finish()
        let views = known != nil && memo?.state == known ? previous.views(besides: assets, in: writer) : nil
        if views == nil, mayBeSame { try layout.proveTypeIndex() }
        // A snapshot that says of damage is not one to go by: once it is mended, all else may be as it was.
        let isSound = !layout.result.warnings.contains { $0.severity != .note }
        let last = views != nil && isSound ? lastTree(layout) : nil
        try layout.noteStrayFiles(among: rows.unknownFiles)
        let made = try views == nil ? makeViews(&layout, known) : nil
        let seen = try aside.finish()
        if seen.isUnchanged, var last {
            // Files that the store does not know were looked for meanwhile. They are no part of the tree.
            last.layout.warnings = layout.result.warnings
            return last
        }
        var (files, found) = attachments.addUp(seen)
        for (path, content) in made?.new ?? [] { files.add(path, content) }
        for (path, file) in views ?? made?.kept ?? [] { files.add(path, file) }
        var digest: SHA256Digest?
        if views != nil {
            digest = found.isAsRemembered ? previous.takeCounts(into: &layout.result) : nil
            // The digest is of everything, and some attachment is not what it was, or was not what it should have been.
            if digest == nil { try layout.gather(withBibliography: false) }
        }
        layout.took(found.digest, found.warnings, found.omitted)
        layout.result.contentDigest = try digest ?? layout.finishDigest()
        try addManifest(layout, &files)
        // The folders' trees may take longer.
        try writer.finishPacks(of: [.data])
        if let folders = found.folders { files.put(try folders.finish()) }
        let trees = try files.store(writer)
        layout.result.files = files.facts.count
        layout.result.bytes = files.facts.values.reduce(0) { $0 + $1.size }
        return Archived(
            tree: trees.id, layout: layout.result, files: files.counts, folders: trees.folders,
            unsteady: found.unsteady, memo: isSound ? try made.map { try newMemo($0, store) } ?? memo : nil)
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
        return Archived(
            tree: tree, layout: result, files: counted.files, folders: counted.folders, unsteady: [], memo: memo)
    }

    private func newMemo(_ made: Views, _ store: Store) throws -> BackupMemo? {
        made.isRepeatable ? BackupMemo(made.state, changes: try store.lastChange(), options) : nil
    }

    // MARK: - Files that are made of records

    private struct Views {
        var new: [(path: String, content: FileLane.Content)] = []
        var kept: [(path: String, file: PreviousLayout.KnownFile)] = []
        var state: StoreState
        var isRepeatable = true
    }

    /// `records.jsonl` is stored on another core while the records are gathered.
    private func makeViews(_ layout: inout StoreLayout, _ known: StoreState?) throws -> Views {
        // A backup with complaints is made in full every night, so that it repeats them. Notes are none.
        func complaints() -> Int { layout.result.warnings.count { $0.severity != .note } }
        let said = complaints()
        let hasBibliography = try hasBibliography(layout.store, known)
        let records = try RecordsFile(FileLane(writer, chunker))
        try layout.gather(withBibliography: !hasBibliography, withState: known == nil) { try records.add($0) }
        try records.end()
        // The lines of all records, which nobody needs any more.
        ProcessMemory.returnFreedMemory()
        var views = Views(state: try known ?? layout.state ?? layout.store.state())
        if hasBibliography {
            if let kept = keptBibliography(views.state) {
                views.kept.append((Layout.bibliography, kept))
            } else {
                // The rows know better than what the store says of them.
                try layout.gatherBibliography()
            }
        }
        let lane = try FileLane(writer, chunker)
        views.new.append((Layout.readme, try lane.store { sink in try sink { $0 += Layout.readmeText.utf8 } }))
        try layout.forEachView { path, write in views.new.append((path, try lane.store(write))) }
        views.new.append((Layout.records, try records.finish()))
        views.isRepeatable = complaints() == said
        return views
    }

    /// Whether it looks as if the last snapshot's `library.bib` were that of this one.
    private func hasBibliography(_ store: Store, _ known: StoreState?) throws -> Bool {
        if let known { return keptBibliography(known) != nil }
        guard let memo, previous.holds(Layout.bibliography, in: writer) else { return false }
        return try store.lastBibliographyChange() <= memo.changes
    }

    /// `library.bib`, where no publication has changed.
    private func keptBibliography(_ state: StoreState) -> PreviousLayout.KnownFile? {
        memo?.state.bibliography == state.bibliography ? previous.known(Layout.bibliography, in: writer) : nil
    }

    /// A file of lines that is stored on a core of its own.
    private final class RecordsFile {
        /// Written by the thread, read after it has ended.
        private final class Result: @unchecked Sendable {
            var content = FileLane.Content()
        }

        private let result = Result()
        /// nil stands for the end.
        private let texts: Lane<[UInt8]?>

        init(_ lane: FileLane) {
            let result = result
            lane.begin()
            texts = Lane(ahead: 4) { text in
                if let text {
                    try text.withUnsafeBytes { try lane.add($0) }
                } else {
                    result.content = try lane.finish()
                }
            }
        }

        func add(_ text: [UInt8]) throws { try texts.add(text) }

        /// Nothing more will be added.
        func end() throws { try texts.add(nil) }

        func finish() throws -> FileLane.Content {
            try texts.finish()
            return result.content
        }
    }

    private func addManifest(_ layout: StoreLayout, _ files: inout SnapshotFiles) throws {
        let (manifest, sums) = try manifest(layout, files)
        func store(_ text: [UInt8]) throws -> FileLane.Content {
            let lane = try FileLane(writer, chunker)
            lane.begin()
            try text.withUnsafeBytes { try lane.add($0) }
            return try lane.finish()
        }
        let aside = Aside { try store(sums) }
        files.add(Manifest.fileName, try store(manifest))
        files.add(ChecksumFile.fileName, try aside.finish())
    }

    /// The text of the manifest, and of the checksums of it and all other files. The manifest gives itself a name and a
    /// time: when all else in it is as it was, so are they, and the whole snapshot.
    private func manifest(
        _ layout: StoreLayout, _ files: SnapshotFiles
    ) throws -> (manifest: [UInt8], sums: [UInt8]) {
        var sorted = files.sorted()
        let listing = Manifest.listing(sorted)
        let manifest = try Exporter.manifest(layout, files.facts)
        var before = manifest
        let exportID = previous.manifest["exportId"]?.string
        before.exportID = exportID ?? ""
        before.createdAt = previous.manifest["createdAt"]?.string.flatMap { Timestamp(iso8601: $0) } ?? layout.time
        var text = before.text(listing: listing)
        var digest = text.withUnsafeBytes { SHA256Digest.of($0) }
        if exportID == nil || previous.digests[Manifest.fileName] != digest {
            text = manifest.text(listing: listing)
            digest = text.withUnsafeBytes { .of($0) }
        }
        let facts = FileFacts(size: Int64(text.count), digest: digest)
        let place = sorted.firstIndex { !precedesBytewise($0.key, Manifest.fileName) } ?? sorted.endIndex
        sorted.insert((Manifest.fileName, facts), at: place)
        return (text, ChecksumFile.text(sorted.map { (key: $0.key, value: $0.value.digest) }))
    }
}
