import Synchronization

/// Brings a library's attachments into a snapshot, on all cores. What the last snapshot has of the same size, times and
/// inode, and of the digest that the store remembers, is not read at all.
struct AttachmentArchiver {
    /// What became of all of them, but for the files themselves.
    struct Archived {
        var digest = ContentDigest()
        var omitted: [Omission] = []
        var warnings: [Finding] = []
        /// Files that did not hold still.
        var unsteady: [String] = []
        /// All are there, and what the store remembers and the last snapshot has.
        var isAsRemembered = true
        /// The trees of their folders, which are being stored.
        var folders: Aside<TreeBuilder>?
    }

    fileprivate enum Outcome: Sendable {
        case unchanged(ParentTree.Place, modified: GoTime)
        indirect case stored(SnapshotFiles.Stored, FileStatus, isSteady: Bool, isRemoved: Bool)
        case omitted(String)
    }

    let writer: PackWriter
    let chunker: Chunker
    let previous: PreviousLayout
    let options: VaultBackupOptions

    /// What became of each attachment, and of the first ones together.
    struct Seen {
        fileprivate let assets: [Asset]
        fileprivate var progress: Progress
        fileprivate var sum: Sum
        /// Not even the status of a file has changed.
        var isUnchanged: Bool { progress.isUnchanged }
    }

    /// Stores what has changed. `addsUp`: on the way, because the caller will need to know all.
    func see(_ assets: [Asset], from source: AssetFiles?, time: Timestamp, addsUp: Bool) throws -> Seen {
        var start = Progress(outcomes: [Outcome?](repeating: nil, count: assets.count))
        start.status.totalFiles = assets.count
        start.status.totalBytes = assets.reduce(0) { $0.plus(clamped: $1.size) }
        let progress = Mutex(start)
        let sum = Mutex<Sum?>(Sum(previous, time: time))
        let batches = Self.batches(assets)
        // Each has up to 25 MB in hand, once there is something to store.
        try Parallel.forEach(
            batches.count, workers: min(Parallel.cores, 4), state: { Hand(writer, chunker) }
        ) { hand, number in
            let batch = batches[number]
            let outcomes = try outcomes(assets[batch], source, hand)
            options.report(progress.withLock { $0.add(outcomes, of: assets, at: batch) })
            guard addsUp else { return }
            // Whoever finds another thread at this goes on with the next batch: what is left to the end is done by one alone.
            sum.withLockIfAvailable { sum in
                sum?.add(assets) { place in progress.withLock { $0.outcomes[place].take() } }
            }
        }
        // Taken out, so that whoever goes on with it has the only one.
        guard let done = sum.withLock({ $0.take() }) else { throw BackupError(.failed, "nothing was added up") }
        return Seen(assets: assets, progress: progress.withLock { $0 }, sum: done)
    }

    /// All of them together.
    func addUp(_ seen: consuming Seen) -> (SnapshotFiles, Archived) {
        var (progress, done) = (seen.progress, seen.sum)
        done.add(seen.assets) { progress.outcomes[$0].take() }
        var folders = done.files.take(Layout.attachmentFolders)
        done.archived.folders = Aside { [writer] in
            try folders.storeFolders(writer)
            return folders
        }
        return (done.files, done.archived)
    }

    fileprivate struct Progress {
        /// Of those that are done, as long as they are not added up.
        var outcomes: [Outcome?]
        var isUnchanged = true
        var status = VaultBackupStatus()

        mutating func add(_ new: [Outcome?], of assets: [Asset], at batch: Range<Int>) -> VaultBackupStatus {
            for (index, outcome) in zip(batch, new) {
                outcomes[index] = outcome
                status.bytes = status.bytes.plus(clamped: assets[index].size)
                if case .unchanged? = outcome { continue }
                isUnchanged = false
            }
            status.files += batch.count
            status.item = assets[batch.upperBound - 1].path
            return status
        }
    }

    /// The first attachments together.
    fileprivate struct Sum {
        let previous: PreviousLayout
        var files: SnapshotFiles
        var archived = Archived()
        private var count = 0

        init(_ previous: PreviousLayout, time: Timestamp) {
            self.previous = previous
            files = SnapshotFiles(time: time, previous.tree)
        }

        /// Adds those that are done and follow what was added before: the order is that of the assets.
        mutating func add(_ assets: [Asset], take: (Int) -> Outcome?) {
            while count < assets.count, let outcome = take(count) {
                add(assets[count], outcome)
                count += 1
            }
        }

        private mutating func add(_ asset: Asset, _ outcome: Outcome) {
            var facts = FileFacts(size: asset.size, digest: asset.digest, isLocalOnly: asset.isLocalOnly)
            switch outcome {
            case .omitted(let reason):
                archived.isAsRemembered = false
                archived.omitted.append(Omission(path: asset.path, reason: reason))
                return
            case .unchanged(let place, let modified): files.add(asset.path, (place, modified, facts))
            case .stored(let stored, let status, let isSteady, let isRemoved):
                if !isSteady { archived.unsteady.append(asset.path) }
                if isRemoved { archived.warnings.append(StoreLayout.removed(asset.path)) }
                facts = stored.facts
                if facts.digest != asset.digest { archived.warnings.append(StoreLayout.mismatch(asset, status)) }
                files.add(asset.path, stored)
            }
            if facts.digest != asset.digest || facts.size != asset.size || previous.digests[asset.path] != asset.digest
            {
                archived.isAsRemembered = false
            }
            archived.digest.add(
                Asset(path: asset.path, size: facts.size, digest: facts.digest, isLocalOnly: asset.isLocalOnly))
        }
    }

    /// Neighbours together, up to a megabyte. The large in the middle: not at the end, where one core would be left alone with
    /// one, nor while the records take memory, too.
    private static func batches(_ assets: [Asset]) -> [Range<Int>] {
        var large: [Range<Int>] = []
        var batches: [Range<Int>] = []
        var start = 0
        var bytes: Int64 = 0
        for (index, asset) in assets.enumerated() {
            if asset.size > SmallFiles.longest {
                large.append(index..<index + 1)
                if start < index { batches.append(start..<index) }
                (start, bytes) = (index + 1, 0)
                continue
            }
            bytes += asset.size
            guard bytes >= SmallFiles.enough || index - start == 255 else { continue }
            batches.append(start..<index + 1)
            (start, bytes) = (index + 1, 0)
        }
        if start < assets.count { batches.append(start..<assets.count) }
        batches.insert(contentsOf: large, at: batches.count / 2)
        return batches
    }

    /// What one thread works with.
    private final class Hand {
        private let writer: PackWriter
        private let chunker: Chunker
        private var made: FileLane?
        var folder = RootDirectory.LastFolder()
        let small = SmallFiles()

        init(_ writer: PackWriter, _ chunker: Chunker) { (self.writer, self.chunker) = (writer, chunker) }

        /// Made when it is needed, which it is not where nothing has changed.
        func lane() throws -> FileLane {
            let lane = try made ?? FileLane(writer, chunker)
            made = lane
            return lane
        }
    }

    /// What became of neighbours; the small of them are stored together.
    private func outcomes(_ batch: ArraySlice<Asset>, _ files: AssetFiles?, _ hand: Hand) throws -> [Outcome?] {
        var outcomes: [Outcome?] = []
        var waiting: [(place: Int, asset: Asset, source: Source)] = []
        for asset in batch {
            try Interrupt.check()
            if let unchanged = unchanged(asset, files, hand) {
                outcomes.append(unchanged)
                continue
            }
            var content: FileLane.Content?
            let found = try read(asset, files) { file, size in
                // What an earlier try found may be another file by now.
                content = nil
                hand.small.keep(waiting.count)
                if hand.small.hasRoom(for: size) { return try hand.small.read(file, size: size) }
                let stored = try hand.lane().store(file, size: size, known: known(asset))
                content = stored
                return stored.size
            }
            switch found {
            case .omitted(let reason): outcomes.append(.omitted(reason))
            case .read(let source):
                if content == nil { waiting.append((outcomes.count, asset, source)) }
                outcomes.append(content.map { outcome(asset, source, $0) })
            }
        }
        guard !waiting.isEmpty else { return outcomes }
        hand.small.keep(waiting.count)
        for ((place, asset, source), content) in zip(waiting, try hand.small.store(hand.lane().blobs, chunker)) {
            outcomes[place] = outcome(asset, source, content)
        }
        hand.small.keep(0)
        return outcomes
    }

    private func outcome(_ asset: Asset, _ source: Source, _ content: FileLane.Content) -> Outcome {
        let node = TreeNode(source.status, content.blobs, size: content.size)
        let facts = FileFacts(size: content.size, digest: content.digest, isLocalOnly: asset.isLocalOnly)
        let stored = SnapshotFiles.Stored(asset.path, node, facts, before: previous.tree.node(asset.path))
        return .stored(stored, source.status, isSteady: source.isSteady, isRemoved: source.isRemoved)
    }

    private enum Reading {
        case read(Source)
        case omitted(String)
    }

    /// A file that was read.
    private struct Source {
        let status: FileStatus
        let isSteady: Bool
        let isRemoved: Bool
    }

    /// Has `body` read a file, up to three times when it does not hold still. `body` gets its size and returns how much it
    /// found.
    private func read(
        _ asset: Asset, _ files: AssetFiles?, _ body: (FileHandle, Int64) throws -> Int64
    ) throws -> Reading {
        guard let files else { return .omitted(StoreLayout.noFolder) }
        var tries = 0
        while true {
            tries += 1
            let opened: AssetFiles.Opened
            let before: FileStatus
            do {
                opened = try files.open(asset)
                before = try opened.file.status()
            } catch let error as BackupError where error.code != .interrupted {
                return .omitted(error.message)
            }
            do {
                let count = try body(opened.file, before.size)
                let isSteady = try opened.file.status().hasSameContent(as: before) && count == before.size
                if isSteady || tries == 3 {
                    return .read(Source(status: before, isSteady: isSteady, isRemoved: opened.isRemoved))
                }
                pause(0.1)
            } catch let failure as SourceFailure {
                if tries == 3 { return .omitted(failure.error.message) }
            }
        }
    }

    /// What the last snapshot says of a file that has changed, or shall be read again.
    private func known(_ asset: Asset) -> FileLane.Known? {
        guard let blobs = previous.tree.node(asset.path)?.content, let digest = previous.digests[asset.path] else {
            return nil
        }
        return FileLane.Known(blobs: blobs, digest: digest)
    }

    private func unchanged(_ asset: Asset, _ files: AssetFiles?, _ hand: Hand) -> Outcome? {
        guard !options.force, let files, let place = previous.tree.find(asset.path),
            let node = previous.tree.node(place),
            previous.digests[asset.path] == asset.digest,
            let status = try? files.status(of: asset, near: &hand.folder),
            status.size == asset.size, node.isUnchanged(status), PreviousLayout.holds(node, in: writer)
        else { return nil }
        return .unchanged(place, modified: node.modified)
    }
}
