/// What copying did.
public struct VaultCopyResult: Sendable, Equatable {
    /// The snapshots that were copied, with their names here.
    public var copied: [Pair] = []
    /// Those that were here already.
    public var skipped = 0
    /// Those that were not copied, because something of them cannot be read.
    public var leftOut: [SHA256Digest] = []
    public var blobs = 0
    public var bytes: Int64 = 0
    /// What was found lost here; it is copied anew as far as the snapshots need it.
    public var findings: [Finding] = []
    /// What cannot be read of the vault that was copied from.
    public var sourceFindings: [Finding] = []

    public struct Pair: Sendable, Equatable {
        public let from: SHA256Digest
        public let to: SHA256Digest
    }
}

extension Vault {
    /// Copies snapshots of another vault into this one, with all that they need and that is not here. Both vaults MUST be
    /// locked. Every blob is opened, compared with its name and sealed anew; the snapshots come last. A snapshot that
    /// cannot be read whole is left out and named.
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
        try mine.mustBeWhole()
        let copying = try CopySource(source, &result)
        // What those that are here already need may be lost here, whatever became of it.
        func isMissing(_ number: Int) -> Bool { !mine.blobs.holds(copying.index[number].handle) }
        let ofKnown = try copying.blobs(of: known, &result, progress).filter(isMissing)
        if !ofKnown.isEmpty, lost.isEmpty {
            result.findings.append(
                Finding(
                    .entryMissing, .warning, backend.location,
                    "lacks \(ofKnown.count) blobs of snapshots that are here; they are copied again"))
        }
        let ofWanted = try copying.leaveOutBroken(of: &wanted, &result, progress)
        let numbers = Set(ofKnown + ofWanted.filter(isMissing)).sorted()
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
        let unread = try copying.transfer(numbers, to: writer, progress)
        let totals = try writer.finish()
        result.blobs = totals.dataBlobs + totals.treeBlobs
        result.bytes = totals.addedPacked
        copying.leaveOut(of: &wanted, lacking: unread, &result)
        if case let count = ofKnown.count(where: { unread[$0] != nil }), count > 0 {
            result.findings.append(
                Finding(
                    .entryMissing, .damage, backend.location,
                    "lacks \(count) blobs of snapshots that are here, and they cannot be read in the other vault either",
                    remedy: Self.lossRemedy))
        }
        for snapshot in wanted {
            var file = snapshot.file
            // The parent's name means nothing here.
            file.parent = nil
            file.original = file.original ?? snapshot.id
            result.copied.append(.init(from: snapshot.id, to: try storeUnpacked(.snapshot, file.encoded())))
        }
        return result
    }

    /// Whether a snapshot here is the one over there, whoever copied which.
    private static func isCopy(_ here: Snapshot, of there: Snapshot) -> Bool {
        let origin = there.file.original ?? there.id
        return (here.file.original ?? here.id) == origin && here.file.tree == there.file.tree
            && here.file.time.isSameInstant(as: there.file.time) && here.file.tags == there.file.tags
    }
}
