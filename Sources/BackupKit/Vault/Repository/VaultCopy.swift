/// What copying did.
public struct VaultCopyResult: Sendable, Equatable {
    /// The snapshots that were copied, with their names here.
    public var copied: [Pair] = []
    /// Those that were here already.
    public var skipped = 0
    public var blobs = 0
    public var bytes: Int64 = 0
    /// What was found lost here; it is copied anew as far as the snapshots need it.
    public var findings: [Finding] = []

    public struct Pair: Sendable, Equatable {
        public let from: SHA256Digest
        public let to: SHA256Digest
    }
}

extension Vault {
    /// Copies snapshots of another vault into this one, with all that they need and that is not here. Both vaults MUST be
    /// locked. Every blob is opened, compared with its name and sealed anew; the snapshots come last.
    public func copy(_ snapshots: [Snapshot], from source: Vault, progress: Progress = .none) throws -> VaultCopyResult
    {
        var result = VaultCopyResult()
        let (here, wrong) = try self.snapshots()
        var (known, wanted): ([Snapshot], [Snapshot]) = ([], [])
        for snapshot in snapshots {
            if here.contains(where: { Self.isCopy($0, of: snapshot) }) {
                known.append(snapshot)
            } else {
                wanted.append(snapshot)
            }
        }
        result.skipped = known.count
        var mine = try loadIndex()
        let (unindexed, lost) = try reconcile(&mine.blobs)
        result.findings = wrong
        let index = try source.loadIndex()
        for loaded in [index, mine] { try loaded.mustBeWhole() }
        let walk = TreeWalk(vault: source, index: index.blobs, isStrict: false)
        // What those that are here already need may be lost here, whatever became of it.
        var numbers: [Int] = []
        for (part, isHere) in [(known, true), (wanted, false)] {
            let needed = try walk.run(part.compactMap(\.file.tree), progress: progress)
            if let defect = needed.defects.first {
                let (subject, remedy) = ("tree \(defect.tree.hex.prefix(10))", "see 'backup-tool vault check'")
                guard isHere else { throw BackupError(.damaged, defect.sentence, at: subject, remedy: remedy) }
                // No reason to leave sound ones where they may rot, too.
                result.findings.append(Finding(.malformed, .warning, subject, defect.sentence, remedy: remedy))
            }
            numbers += needed.used.indices.filter { needed.used[$0] && !mine.blobs.holds(index.blobs[$0].handle) }
            if isHere, !numbers.isEmpty, lost.isEmpty {
                result.findings.append(
                    Finding(
                        .entryMissing, .warning, backend.location,
                        "lacks \(numbers.count) blobs of snapshots that are here; they are copied again"))
            }
        }
        numbers = Array(Set(numbers)).sorted()
        let writer = try PackWriter(self, known: mine.blobs)
        for pack in unindexed { writer.adopt(pack) }
        result.findings +=
            numbers.isEmpty
            ? lost.map { finding in
                Finding(
                    .untidy, .note, finding.subject,
                    "\(finding.message); what the snapshots need of it is here all the same",
                    remedy: "'backup-tool vault prune' tidies up")
            } : lost
        try transfer(numbers, index.blobs, source, writer, progress)
        let totals = try writer.finish()
        result.blobs = totals.dataBlobs + totals.treeBlobs
        result.bytes = totals.addedPacked
        for snapshot in wanted {
            var file = snapshot.file
            // The parent's name means nothing here.
            file.parent = nil
            file.original = file.original ?? snapshot.id
            result.copied.append(.init(from: snapshot.id, to: try storeUnpacked(.snapshot, file.encoded())))
        }
        return result
    }

    private func transfer(
        _ numbers: [Int], _ index: BlobIndex, _ source: Vault, _ writer: PackWriter, _ progress: Progress
    ) throws {
        // Blobs of one pack lie together and are read one after the other.
        let parts = stride(from: 0, to: numbers.count, by: 32).map { $0..<min($0 + 32, numbers.count) }
        let done = Counter()
        try Parallel.forEach(
            parts.count, state: { (reader: try BlobReader(source), lane: try PackWriter.Lane(writer)) }
        ) { state, part in
            for number in numbers[parts[part]] {
                try Interrupt.check()
                let blob = index[number]
                try state.reader.read(blob.handle, in: index) { _ = try state.lane.store($0, as: blob.type) }
                let sum = done.add(1)
                progress.report(ProgressEvent("copying", done: sum, of: UInt64(numbers.count), unit: .items))
            }
        }
    }

    /// Whether a snapshot here is the one over there, whoever copied which.
    private static func isCopy(_ here: Snapshot, of there: Snapshot) -> Bool {
        let origin = there.file.original ?? there.id
        return (here.file.original ?? here.id) == origin && here.file.tree == there.file.tree
            && here.file.time.isSameInstant(as: there.file.time) && here.file.tags == there.file.tags
    }
}
