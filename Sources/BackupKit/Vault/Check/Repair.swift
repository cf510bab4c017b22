/// What repairing did, or would do.
public struct RepairResult: Sendable {
    /// What is wrong, as `check` says it.
    public var damage: [Finding] = []
    /// What could not be done as it should.
    public var findings: [Finding] = []
    /// Packs that are damaged or gone.
    public var packs = 0
    /// Their blobs that nobody can have any more, and those that were whole.
    public var blobsLost = 0
    public var blobsKept = 0
}

extension Vault {
    /// What can be done about a pack that is damaged or gone.
    static let packRemedy =
        "bring it back from a copy of the vault; else 'backup-tool vault repair' lets go of it, and the next backup stores "
        + "again what the library still has"

    /// Lets go of blobs that nobody can have any more: a backup that relies on an index would not store them again. What is
    /// whole in a damaged pack is copied into a new one. The vault MUST be locked exclusively.
    ///
    /// Damaged files are copied into `folder` before they are removed. Without one, nothing is changed.
    public func repair(saving folder: String?, progress: Progress = .none) throws -> RepairResult {
        var loaded = try loadIndex()
        if let damage = loaded.findings.first(where: { $0.severity == .damage }) {
            throw BackupError(
                .damaged, "nothing is repaired while \(damage.message)", at: damage.subject, remedy: damage.remedy)
        }
        // One that was damaged may be in no index any more, and the next backup would take it for good.
        for pack in try unindexedPacks(among: backend.list(.data).items, loaded.blobs) { loaded.blobs.add(pack) }
        let index = loaded.blobs
        var check = VaultCheckResult()
        var damaged = try checkSizes(index, &check)
        damaged.formUnion(try readPacks(Array(index.packs.indices), index, &check, progress))

        var result = RepairResult()
        result.damage = check.findings.filter { $0.severity == .damage }
        result.findings = check.findings.filter { $0.severity == .warning }
        let hit = Set(result.damage.map(\.subject))
        let packs = index.packs.indices.filter { hit.contains(VaultFile(.data, index.packs[$0].id).path) }
        let blobs = packs.flatMap { index.packs[$0].blobs }
        result.packs = packs.count
        result.blobsLost = blobs.count(where: damaged.contains)
        result.blobsKept = blobs.count - result.blobsLost
        guard let folder, !packs.isEmpty else { return result }

        for pack in packs {
            let file = VaultFile(.data, index.packs[pack].id)
            if let size = try backend.size(file) { result.findings += try save(file, size, in: folder) }
        }
        var pruned = PruneResult()
        try execute(PrunePlan(without: damaged, in: packs, index), loaded, &pruned, progress)
        result.findings += pruned.findings
        return result
    }

    /// Copies a file out of the vault. That its disk does not give it is no reason to keep it.
    private func save(_ file: VaultFile, _ size: Int64, in folder: String) throws -> [Finding] {
        let buffer = RawBuffer()
        var unread: BackupError?
        do {
            try AtomicFile.write("\(folder)/\(file.id.hex)", replace: true) { target in
                for start in stride(from: 0, to: size, by: 1 << 20) {
                    let bytes = try buffer.with(count: Int(min(1 << 20, size - start)))
                    do { try backend.read(file, at: start, into: bytes) } catch let error as BackupError {
                        if error.code != .interrupted { unread = error }
                        throw error
                    }
                    try target.write(UnsafeRawBufferPointer(bytes))
                }
            }
            return []
        } catch {
            guard let unread else { throw error }
            return [Finding(.skipped, .warning, file.path, "could not be saved: \(unread.message)")]
        }
    }
}

extension PrunePlan {
    /// Copies what is whole of some packs, and removes them.
    fileprivate init(without damaged: Set<Int>, in packs: [Int], _ index: BlobIndex) {
        keep = (0..<index.count).map { !damaged.contains($0) }
        repack = packs
        kept = Array(Set(index.packs.indices).subtracting(packs)).sorted()
        changesIndex = true
    }
}
