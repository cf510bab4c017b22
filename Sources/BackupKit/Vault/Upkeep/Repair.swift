/// What repairing did, or would do.
public struct RepairResult: Sendable {
    /// What is wrong, as `check` says it.
    public var damage: [Finding] = []
    /// What could not be done as it should.
    public var findings: [Finding] = []
    /// Packs that are damaged, gone, or not what their names say.
    public var packs = 0
    /// Their blobs that nobody can have any more, and those that were whole.
    /// Of these packs, those that are gone.
    public var packsMissing = 0
    public var blobsLost = 0
    public var blobsKept = 0
    /// Index files that cannot be used, and packs that no index named or that one described wrongly.
    public var indexFiles = 0
    public var packsIndexed = 0

    public var isIndexWhole: Bool { indexFiles == 0 && packsIndexed == 0 }
    public var isNothing: Bool { packs == 0 && isIndexWhole }
}

extension Vault {
    /// What can be done about a pack that is damaged or gone.
    static let packRemedy =
        "bring it back from a copy of the vault; else 'backup-tool vault repair --save FOLDER' removes what is damaged, and "
        + "the next backup stores again what the library still has"
    /// What can be done about an index that is damaged, gone or wrong.
    static let indexRemedy =
        "'backup-tool vault repair --save FOLDER' rebuilds the index from the packs and keeps the damaged file in FOLDER"
    /// What can be done about a snapshot that cannot be restored as it was.
    static let lossRemedy = "'backup-tool vault repair --save FOLDER' removes what is damaged; then \(backupRemedy())"

    /// The same where nothing is left to repair.
    static func backupRemedy(for snapshot: String = "ID") -> String {
        "'backup-tool vault backup' stores again what the library still has; what 'backup-tool vault check' names after that "
            + "is lost, and \(TypedCommand.quoted("vault forget", [snapshot])) removes the snapshot"
    }

    /// Rebuilds the index where it is damaged or wrong, and removes blobs that nobody can have any more: a backup that
    /// relies on an index would not store them again. What is whole in a damaged pack is copied into a new one. The vault
    /// MUST be locked exclusively, but for a rehearsal.
    ///
    /// Only what was read and is wrong counts as damaged. Where something cannot be read, nothing is changed: it may well be
    /// whole. Damaged files are copied into `folder` before they are removed; a rehearsal needs none.
    public func repair(
        saving folder: String?, dryRun: Bool = false, progress: Progress = .none
    ) throws -> RepairResult {
        if let folder { try refuseOwn(folder) }
        let strays = try strays()
        for stray in strays {
            guard let what = stray.nonFile else { continue }
            throw BackupError(
                .damaged, "nothing is repaired while \(what) lies in the place of a file",
                at: "\(backend.location)/\(stray.path)",
                remedy: "remove it, and run this again")
        }
        var loaded = try loadIndex()
        if let obstacle = loaded.obstacle {
            throw BackupError(
                .damaged, "nothing is repaired while \(obstacle.message)", at: obstacle.subject, remedy: obstacle.remedy
            )
        }
        let mended = try MendedIndex(self, loaded)
        let index = mended.blobs
        var check = VaultCheckResult()
        var damaged = try checkSizes(index, &check)
        damaged.formUnion(try readPacks(Array(index.packs.indices), index, &check, progress))
        if let unread = check.unread { throw Self.unreadPack(unread) }

        var result = RepairResult()
        let findings = loaded.findings + mended.findings + check.findings
        result.damage = findings.filter { $0.severity == .damage }
        result.findings = findings.filter { $0.severity == .warning }
        let hit = Set(check.findings.filter { $0.severity == .damage }.map(\.subject))
        let packs = index.packs.indices.filter { hit.contains(VaultFile(.data, index.packs[$0].id).path) }
        for pack in packs {
            try refuseElsewhere(index.packs[pack], strays)
            try refuseWithoutFolder(index.packs[pack])
        }
        result.packs = packs.count
        result.packsMissing = try packs.count { try backend.size(VaultFile(.data, index.packs[$0].id)) == nil }
        result.indexFiles = loaded.unusable.count
        result.packsIndexed = mended.packs
        let blobs = packs.flatMap { index.packs[$0].blobs }
        result.blobsKept = blobs.count { !damaged.contains($0) }
        result.blobsLost =
            mended.replaced.union(blobs.filter(damaged.contains).map { index[$0].handle }).count {
                index.copies(of: $0).allSatisfy(damaged.contains)
            }
        guard let folder, !dryRun else { return result }
        if result.isNothing {
            // What a repair left that was killed at its end.
            _ = try backend.sweep()
            return result
        }

        try Directory.createAll(folder)
        // Now that all of it is there, it is known where it leads.
        try refuseOwn(folder)
        let files = loaded.unusable.map { VaultFile(.index, $0) } + packs.map { VaultFile(.data, index.packs[$0].id) }
        for file in files { try save(file, in: folder) }
        loaded.files += loaded.unusable
        loaded.blobs = index
        var pruned = PruneResult()
        try execute(PrunePlan(without: damaged, in: packs, index), loaded, &pruned, progress)
        result.findings += pruned.findings
        return result
    }

    static func unreadPack(_ error: BackupError) -> BackupError {
        BackupError(
            error.code, "nothing is repaired while a file cannot be read: \(error.message)", at: error.subject,
            remedy: error.remedy
                ?? "see to its disk and its rights; from a disk that fails, copy the vault to another one first")
    }

    private func refuseOwn(_ folder: String) throws {
        guard try Directory.isInside(folder, backend.location) else { return }
        throw BackupError(
            .refused, "lies in the vault, where damaged files do harm", at: folder, remedy: "name another folder")
    }

    /// A pack may be whole somewhere else in the vault.
    private func refuseElsewhere(_ pack: BlobIndex.Pack, _ strays: [VaultListing.Stray]) throws {
        let kinds = VaultFile.Kind.allCases.filter { $0 != .data && $0 != .config }
        let files = kinds.map { VaultFile($0, pack.id) }
        let file = try files.first { try backend.size($0).map(pack.isSize) ?? false }
        let stray = strays.first { SHA256Digest(hex: lastComponent(of: $0.path)) == pack.id && pack.isSize($0.size) }
        guard let place = file?.path ?? stray?.path else { return }
        throw BackupError(
            .damaged, "nothing is repaired while a pack lies in the wrong place", at: "\(backend.location)/\(place)",
            remedy: "move it to \(VaultFile(.data, pack.id).path)")
    }

    /// A pack whose folder is gone may be whole on a disk that is not there.
    private func refuseWithoutFolder(_ pack: BlobIndex.Pack) throws {
        let file = VaultFile(.data, pack.id)
        guard try backend.size(file) == nil, try !backend.hasPlace(for: file) else { return }
        throw BackupError(
            .damaged, "nothing is repaired while the folder of a pack is not there", at: backend.place(file),
            remedy: "look whether its disk is there; if the folder is gone for good, make an empty one in its place")
    }

    /// Copies a file out of the vault. What an earlier run saved of it stays as it is.
    private func save(_ file: VaultFile, in folder: String) throws {
        guard let size = try backend.size(file) else { return }
        let path = "\(folder)/\(file.id.hex)"
        let buffer = RawBuffer()
        guard let there = try FileStatus.ofName(path) else {
            return try AtomicFile.write(path) { target in
                try backend.forEachPiece(of: file, size: size, in: buffer) { try target.write($0) }
            }
        }
        let saved = SHA256Hasher()
        let own = try FileStatus.ofTarget(backend.place(file))
        guard there.isRegular, own.map(there.isSame) != true else {
            throw BackupError(
                .exists, "is no copy of the damaged file", at: path, remedy: "give another folder to --save")
        }
        try FileHandle.openForReading(path).forEachChunk { saved.update($0) }
        guard try saved.finish() == backend.digest(of: file, size: size, in: buffer) else {
            throw BackupError(
                .exists, "holds something else than the damaged file", at: path, remedy: "give another folder to --save"
            )
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
