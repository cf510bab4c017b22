/// A pack that no index names.
struct UnindexedPack {
    let file: VaultFile
    /// What it should be called by what is in it, where that was asked; nil for one that is gone.
    let name: Result<SHA256Digest?, BackupError>
    /// What its header says; nil where it does not end as a pack does.
    var header: PackIndex.Pack?
    /// That it is something else altogether.
    var misfiled: Finding?

    /// What an interrupted backup left, if it is what its name says. Headers are authenticated and tell all that an index would,
    /// but whoever relied on a pack that was damaged since would leave out what only it held.
    var whole: PackIndex.Pack? {
        if case .success(file.id) = name { header } else { nil }
    }

    /// A pack harms nobody, but for the place it takes.
    func finding(_ index: BlobIndex) -> Finding? {
        if let misfiled { return misfiled }
        switch name {
        case .success(nil): return nil
        case .success where whole != nil:
            return Finding(
                .entryUnexpected, .note, file.path, "is in no index, as after an interrupted backup",
                remedy: "the next backup uses it, and 'backup-tool vault prune' removes it")
        case .success(let name?) where index.packNumber(name) != nil:
            return Finding(
                .digestMismatch, .warning, file.path, "is \(VaultFile(.data, name).path) under another name",
                remedy: "where that is missing, move this there; else 'backup-tool vault prune' removes it")
        case .success:
            return Finding(
                .digestMismatch, .warning, file.path,
                header != nil ? "is in no index and not what its name says" : "is in no index and no whole pack",
                remedy: "'backup-tool vault prune' removes it")
        case .failure(let error):
            return Finding(.unreadable, .warning, file.path, "is in no index, and \(error.message)")
        }
    }
}

extension Vault {
    /// Looks at packs that no index names, and reads those that `packs` names.
    func look(at unindexed: [VaultListing.Item], _ packs: CheckedPacks) throws -> [UnindexedPack] {
        let selected = Set(packs.select(unindexed.count) { unindexed[$0].id })
        return try Parallel.map(unindexed.count, state: { (RawBuffer(), try VaultCipher(key)) }) { tools, number in
            try Interrupt.check()
            let item = unindexed[number]
            let file = VaultFile(.data, item.id)
            do {
                let header = try header(of: file, size: item.size, tools.1)
                let misfiled = header == nil ? try misfiled(file) : nil
                let isRead = header != nil && selected.contains(number)
                let name = isRead ? try backend.digest(of: file, size: item.size, in: tools.0) : item.id
                return UnindexedPack(file: file, name: .success(name), header: header, misfiled: misfiled)
            } catch let error as BackupError where error.isVerdict {
                return UnindexedPack(file: file, name: error.code == .notFound ? .success(nil) : .failure(error))
            }
        }
    }

    // MARK: What lies in the wrong place

    /// What is a pack or a snapshot and lies among other files is not to be thrown away as one of them.
    func refuseMisfiled(_ file: VaultFile) throws {
        guard let finding = try misfiled(file) else { return }
        throw BackupError(.refused, finding.message, at: finding.subject, remedy: finding.remedy)
    }

    /// Whether a file that should be something else is a pack or a snapshot.
    func misfiled(_ file: VaultFile) throws -> Finding? {
        guard let size = try backend.size(file) else { return nil }
        do {
            if file.kind != .data, try header(of: file, size: size, VaultCipher(key)) != nil {
                return Finding(
                    .entryUnexpected, .damage, file.path, "a pack lies in the wrong place",
                    remedy: "move it to \(VaultFile(.data, file.id).path)")
            }
            guard size <= Unpacked.Cap.snapshot else { return nil }
            return try misnamedSnapshot(file)
        } catch let error as BackupError where error.isVerdict {
            return nil
        }
    }

    /// Whether a file is a whole snapshot that belongs under another name; two of them may have changed places.
    private func misnamedSnapshot(_ file: VaultFile) throws -> Finding? {
        var sealed = try backend.readAll(file, limit: Unpacked.Cap.snapshot)
        let place = VaultFile(.snapshot, sealed.withUnsafeBytes { SHA256Digest.of($0) })
        guard place != file else { return nil }
        let cipher = try VaultCipher(key)
        let json = try sealed.withUnsafeMutableBytes {
            try Unpacked.decode(cipher.openInPlace($0), cap: Unpacked.Cap.snapshot)
        }
        _ = try json.withUnsafeBytes { try SnapshotFile(parsing: $0) }
        return Finding(
            .entryUnexpected, .damage, file.path,
            file.kind == .snapshot
                ? "is the snapshot \(place.id.hex.prefix(8)) under another name" : "a snapshot lies in the wrong place",
            remedy: try howToMove(to: place))
    }

    private func howToMove(to place: VaultFile) throws -> String {
        guard try backend.size(place) != nil else { return "move it to \(place.path)" }
        let there = try backend.readAll(place, limit: Unpacked.Cap.snapshot)
        return there.withUnsafeBytes { SHA256Digest.of($0) } == place.id
            ? "it is a second copy; move it out of the vault"
            : "move the file that is \(place.path) out of the vault, then move this one there"
    }

    /// What a snapshot needs that lies where nobody looks for it seems to be needed by nobody.
    func refuseLostSnapshots(unindexed: [SHA256Digest]) throws {
        // Packs are larger, as a rule, and no snapshot is.
        if let stray = try strays().first(where: { $0.size < 1 << 20 }) {
            throw BackupError(
                .incomplete,
                stray.nonFile.map { "prune was skipped: this is \($0), not a file" }
                    ?? "prune was skipped: this file may be a snapshot in the wrong place", at: stray.path,
                remedy: stray.nonFile == nil
                    ? "move a snapshot to snapshots/, and anything else out of the vault" : "remove it")
        }
        let others = try [.key, .lock].flatMap { kind in try backend.list(kind).items.map { VaultFile(kind, $0.id) } }
        for file in others + unindexed.map({ VaultFile(.data, $0) }) {
            guard let finding = try misfiled(file) else { continue }
            throw BackupError(
                .damaged, "\(finding.message), so nothing was pruned", at: finding.subject, remedy: finding.remedy)
        }
    }

    /// All that looks like a file of the vault and lies where nobody reads it.
    func strays() throws -> [VaultListing.Stray] {
        try VaultFile.Kind.allCases.flatMap { try backend.list($0).misplaced }
    }
}
