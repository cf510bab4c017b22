/// Packs that no index names, or that lie where nobody reads them.
extension Vault {
    /// They harm nobody, but for the place they take. Of those that `packs` names it is known whether they are what they
    /// should be.
    func checkUnindexed(
        _ unindexed: [VaultListing.Item], _ packs: CheckedPacks, _ index: BlobIndex
    ) throws -> [Finding] {
        let selected = packs.select(unindexed.count) { unindexed[$0].id }
        var names: [Int: Result<SHA256Digest?, BackupError>] = [:]
        for (number, name) in zip(selected, try realNames(of: selected.map { unindexed[$0] })) { names[number] = name }
        return unindexed.enumerated().compactMap { number, item in
            let path = VaultFile(.data, item.id).path
            switch names[number] ?? .success(item.id) {
            case .success(nil): return nil
            case .success(item.id):
                return Finding(
                    .entryUnexpected, .note, path, "is in no index, as after an interrupted backup",
                    remedy: "the next backup uses it, and 'backup-tool vault prune' removes it")
            case .success(let name?) where index.packNumber(name) != nil:
                return Finding(
                    .digestMismatch, .warning, path, "is \(VaultFile(.data, name).path) under another name",
                    remedy: "where that is missing, move this there; else 'backup-tool vault prune' removes it")
            case .success:
                return Finding(
                    .digestMismatch, .warning, path, "is in no index and not what its name says",
                    remedy: "'backup-tool vault prune' removes it")
            case .failure(let error):
                return Finding(.unreadable, .warning, path, "is in no index, and \(error.message)")
            }
        }
    }

    /// What the packs should be called by what is in them; nil for one that is gone.
    private func realNames(of items: [VaultListing.Item]) throws -> [Result<SHA256Digest?, BackupError>] {
        try Parallel.map(items.count, state: { RawBuffer() }) { buffer, number in
            try Interrupt.check()
            let item = items[number]
            do {
                return .success(try backend.digest(of: VaultFile(.data, item.id), size: item.size, in: buffer))
            } catch let error as BackupError where error.isVerdict {
                return error.code == .notFound ? .success(nil) : .failure(error)
            }
        }
    }

    /// Where a pack lies that is not in its place, as far as that can be told.
    func strays(of check: VaultCheckResult) throws -> [SHA256Digest: String] {
        var places: [SHA256Digest: String] = [:]
        for path in check.misplaced {
            if let id = SHA256Digest(hex: lastComponent(of: path)) { places[id] = path }
        }
        for (item, name) in zip(check.unindexed, try realNames(of: check.unindexed)) {
            if case .success(let name?) = name, name != item.id { places[name] = VaultFile(.data, item.id).path }
        }
        return places
    }
}
