import Synchronization

/// The vault that snapshots are copied from. What cannot be read of it costs the snapshots that need it, and no others.
struct CopySource {
    private let vault: Vault
    let index: BlobIndex

    /// Damage of the index is no reason to copy nothing: it is named, and so are the snapshots that it hits.
    init(_ vault: Vault, _ result: inout VaultCopyResult) throws {
        self.vault = vault
        let loaded = try vault.loadIndex()
        index = loaded.blobs
        result.sourceFindings += loaded.findings
    }

    /// The numbers of the blobs that snapshots need which were copied before. That something of these cannot be read any
    /// more keeps nothing else back.
    func blobs(of known: [Snapshot], _ result: inout VaultCopyResult, _ progress: Progress) throws -> [Int] {
        let needed = try walk(known, progress)
        if let defect = needed.defects.first {
            result.sourceFindings.append(
                Finding(
                    .malformed, .warning, "tree \(defect.tree.hex.prefix(10))", defect.sentence,
                    remedy: "see 'backup-tool vault check'"))
        }
        return needed.numbers
    }

    /// Takes those out of which a folder's list cannot be read, or needs what no pack has. Returns the numbers of the
    /// blobs that the others need.
    func leaveOutBroken(
        of wanted: inout [Snapshot], _ result: inout VaultCopyResult, _ progress: Progress
    ) throws -> [Int] {
        for snapshot in wanted where snapshot.file.tree == nil {
            result.leftOut.append(snapshot.id)
            result.sourceFindings.append(
                Finding(
                    .malformed, .damage, VaultFile(.snapshot, snapshot.id).path,
                    "the snapshot names no tree, and is not copied"))
        }
        wanted.removeAll { $0.file.tree == nil }
        let needed = try walk(wanted, progress)
        if needed.defects.isEmpty { return needed.numbers }
        leaveOut(of: &wanted, report(needed.defects, [:]), &result) { $0 }
        return try walk(wanted, progress).numbers
    }

    /// Takes those out that need blobs which could not be read.
    func leaveOut(
        of wanted: inout [Snapshot], lacking unread: [Int: BackupError], _ result: inout VaultCopyResult
    ) {
        guard !unread.isEmpty else { return }
        let obstacle = unread.values.first { $0.code != .damaged }
        if let obstacle {
            result.sourceFindings.append(
                Finding(
                    .unreadable, .error, obstacle.subject ?? vault.backend.location, obstacle.message,
                    remedy: obstacle.remedy))
        }
        leaveOut(of: &wanted, report([], unread), &result) { obstacle == nil ? $0 : "a part of it cannot be read" }
    }

    private func leaveOut(
        of wanted: inout [Snapshot], _ report: DamageReport, _ result: inout VaultCopyResult,
        _ reason: (String) -> String
    ) {
        var check = VaultCheckResult()
        let broken = report.add(to: &check, wanted)
        result.leftOut += wanted.map(\.id).filter(broken.contains)
        wanted.removeAll { broken.contains($0.id) }
        result.sourceFindings += check.affected.map {
            Finding(
                .contentMismatch, .damage, "\($0.snapshot.shortID):\($0.path)",
                "\(reason($0.reason)); the snapshot is not copied", remedy: Vault.lossRemedy)
        }
    }

    private func walk(_ snapshots: [Snapshot], _ progress: Progress) throws -> TreeWalk.Result {
        try TreeWalk(vault: vault, index: index, isStrict: false)
            .run(snapshots.compactMap(\.file.tree), progress: progress)
    }

    private func report(_ defects: [TreeWalk.Defect], _ unread: [Int: BackupError]) -> DamageReport {
        let damaged = unread.keys.flatMap { index.copies(of: index[$0].handle) }
        return DamageReport(vault: vault, index: index, defects: defects, damaged: Set(damaged))
    }

    /// Stores blobs under their numbers here, and returns those that could not be read, and why.
    func transfer(_ numbers: [Int], to writer: PackWriter, _ progress: Progress) throws -> [Int: BackupError] {
        // Blobs of one pack lie together and are read one after the other.
        let parts = stride(from: 0, to: numbers.count, by: 32).map { $0..<min($0 + 32, numbers.count) }
        let done = Counter()
        let unread = Mutex<[Int: BackupError]>([:])
        try Parallel.forEach(
            parts.count, state: { (reader: try BlobReader(vault), lane: try PackWriter.Lane(writer)) }
        ) { state, part in
            for number in numbers[parts[part]] {
                try Interrupt.check()
                let blob = index[number]
                do {
                    let content = try state.reader.content(of: blob.handle, in: index)
                    _ = try state.lane.store(content, as: blob.type)
                } catch let error as UnreadBlob {
                    unread.withLock { $0[number] = error.error }
                }
                let sum = done.add(1)
                progress.report(ProgressEvent("copying", done: sum, of: UInt64(numbers.count), unit: .items))
            }
        }
        return unread.withLock { $0 }
    }
}

extension BlobReader {
    /// Good until the next call.
    fileprivate func content(of handle: BlobHandle, in index: BlobIndex) throws -> UnsafeRawBufferPointer {
        do { return try read(handle, in: index) { $0 } } catch let error as BackupError where error.isVerdict {
            throw UnreadBlob(handle: handle, error: error)
        }
    }
}

extension TreeWalk.Result {
    fileprivate var numbers: [Int] { used.indices.filter { used[$0] } }
}
