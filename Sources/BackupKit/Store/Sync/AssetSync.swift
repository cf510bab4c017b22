/// Assets from the hub.
extension Synchronizer {
    /// Notes what the hub has under a path; the bytes are fetched afterwards. Must run inside `write`.
    func applyAsset(_ incoming: HubRecord) throws {
        let record = incoming.record
        if let row = damagedAssets[ByteName(record.id.name)] { throw row }
        let known = try store.hubAsset(record.id.name)
        if let known, known.version >= incoming.version { return }
        let theirs = record.isDeleted ? nil : try Asset(record)
        let mine = try store.asset(record.id.name)
        // Not even the name of a file that nobody has any more.
        if known == nil, theirs == nil, mine == nil { return try release(record.id) }
        let isSame = mine?.digest == theirs?.digest
        let isInPlace = try mine.map { try store.isInPlace($0) } ?? true
        try store.setHubAsset(
            Store.HubAsset(
                path: record.id.name, version: incoming.version, size: theirs?.size ?? 0, digest: theirs?.digest,
                modifiedNanoseconds: theirs?.modifiedNanoseconds ?? 0,
                base: isSame ? theirs?.digest.hex : known?.base, isWanted: !isSame || !isInPlace,
                isStranger: !isSame && isStranger(record, to: known?.base)))
        if !isSame { result.pulled += 1 }
        try release(record.id)
    }

    /// A hub may deliver a file once more as it was before it was deleted, and of deleted files this side keeps no version to
    /// compare: so it asks for the newest.
    private func confirmNewAssets() throws {
        let new = try store.wantedAssets().filter { $0.base == nil && $0.digest != nil }
        let newest = try fetchAll(new.map { RecordID(zone: Store.assetZone, name: $0.path) })
        guard !newest.isEmpty else { return }
        try makeWay(for: newest)
        try store.write { for record in newest { try applyAsset(record) } }
    }

    /// Brings the bytes of what the hub has and this side has not, each file with its row in one transaction.
    func fetchAssets() throws {
        try confirmNewAssets()
        try bringBackLinkedAssets()
        var links = LivingLinks(store)
        var remembered = RememberedLinks(store)
        var unsent = UnsentLinks(store)
        let undecided = try undecidedVersions()
        for wanted in try store.wantedAssets() {
            if let versions = undecided[ByteName(wanted.path)], wanted.digest.map(versions.contains) ?? true {
                filesWait = true
                continue
            }
            let id = RecordID(zone: Store.assetZone, name: wanted.path)
            do {
                if let row = damagedAssets[ByteName(wanted.path)] { throw row }
                if try leavesPurged(wanted, &links) { continue }
                if wanted.isStranger { try leavePath(to: wanted, &remembered) }
                if try settleOwn(wanted) { continue }
                try makeRoom(for: wanted, &unsent)
                if try holdTooLarge(id, wanted.size) { continue }
                try withStage { folder in
                    let staged = try wanted.digest.map { digest in try stage(digest, wanted.size, in: folder) }
                    guard staged != .some(nil) else {
                        throw BackupError(.incomplete, "its bytes are not on the hub")
                    }
                    try settle(wanted, staged?.flatMap { $0 }, in: folder, &links, &remembered)
                }
                if heldIDs.contains(id) { try store.write { try release(id) } }
            } catch let error as BackupError where error.isVerdict && error.code != .destinationFull {
                try store.write { try hold(id, .missing, error.message, size: Int(clamping: wanted.size)) }
            } catch let row as DamagedRow { try store.write { try hold(row) } }
        }
    }

    /// A file that was purged here comes back only for a record that links it: else the hub hears that it is gone.
    private func leavesPurged(_ wanted: Store.HubAsset, _ links: inout LivingLinks) throws -> Bool {
        guard let file = wanted.awaited, try store.asset(file.path) == nil,
            let owner = try store.ownerOfPurged(onHub: file), try !links.contains(file.path)
        else { return false }
        try store.write { try store.removeFromHub(file) }
        result.findings.append(
            Finding(
                .leftOut, .warning, file.path,
                "was purged here with its record \(owner): the sync does not bring it back, and removes it from the hub"
            ))
        return true
    }

    /// Nothing has to be fetched where this side has got the same file meanwhile.
    private func settleOwn(_ wanted: Store.HubAsset) throws -> Bool {
        guard let mine = try store.asset(wanted.path), mine.digest == wanted.digest, try store.isInPlace(mine) else {
            return false
        }
        try store.write {
            try store.settleAsset(wanted.path, wanted.digest)
            try release(RecordID(zone: Store.assetZone, name: wanted.path))
        }
        return true
    }

    /// A dry run writes no file, and only looks at the bytes.
    func withStage(_ body: (String) throws -> Void) throws {
        try store.isPlaying ? body("") : store.withIncomingFolder(body)
    }

    /// The hub's bytes in a file of ours; nil when it does not have them. Where they are others the hub forgets them, so
    /// that it gets them again from a device that has the file.
    func stage(_ digest: SHA256Digest, _ size: Int64, in folder: String) throws -> String? {
        do { return try receive(digest, size, in: folder) } catch let error as BackupError
            where error.code == .incomplete
        {
            try ask { try hub.forgetDamagedAsset(digest) }
            throw error
        }
    }

    private func receive(_ digest: SHA256Digest, _ size: Int64, in folder: String) throws -> String? {
        let path = "\(folder)/\(digest.hex)"
        let isThere = try ask {
            let isPlaying = store.isPlaying
            if !isPlaying { try Directory.removeTree(path) }
            let file = try isPlaying ? nil : FileHandle.create(path)
            let hasher = SHA256Hasher()
            var count: Int64 = 0
            let found = try hub.getAsset(digest) { chunk in
                count += Int64(chunk.count)
                guard count <= size else { throw BackupError(.incomplete, "the hub has other bytes") }
                hasher.update(chunk)
                try file?.write(chunk)
            }
            guard found else { return false }
            guard count == size, hasher.finish() == digest else {
                throw BackupError(.incomplete, "the hub has other bytes")
            }
            try file?.sync()
            return true
        }
        return isThere ? path : nil
    }

    /// Somebody has used a path for another file: this side's file leaves it, with the records that link it.
    private func leavePath(to wanted: Store.HubAsset, _ remembered: inout RememberedLinks) throws {
        guard let mine = try store.asset(wanted.path) else { return }
        try withStage { folder in
            try inBatch {
                if try isLinkedHere(mine.path) {
                    try giveWay([mine], in: folder)
                } else {
                    try store.removeAsset(mine)
                    try store.keepForUndo(mine, isReplaced: true, for: remembered.batches(linking: mine.path))
                }
                try store.leaveAsset(mine.path)
            }
        }
    }

    /// Whether a living record means this side's file by a path.
    private func isLinkedHere(_ path: String) throws -> Bool {
        var isLinked = false
        try store.forEachLinking { stored in
            guard !isLinked, try Store.links(of: stored.record).contains(where: { sameBytes($0, path) }) else { return }
            isLinked = try meaning(of: path, in: stored) != .theirs
        }
        return isLinked
    }

    /// What does not wait for the hub's bytes, which may never come.
    private func makeRoom(for wanted: Store.HubAsset, _ unsent: inout UnsentLinks) throws {
        guard let digest = wanted.digest else { return }
        if let mine = try store.asset(wanted.path) {
            guard mine.digest != digest, mine.digest.hex == wanted.base, try unsent.contains(mine.path) else { return }
            try withStage { folder in try inBatch { try leaveBytesToUnsentLinks(mine, in: folder) } }
            return
        }
        if try unsent.contains(wanted.path) { try inBatch { try leaveOpenLinks(to: wanted.path) } }
        if try store.remembersAsset(wanted.path) {
            try inBatch { try store.makeRoomInMemory(for: digest, at: wanted.path) }
        }
    }

    /// What a sync does with files of this store. A sync is not undone.
    func inBatch(_ body: () throws -> Void) throws {
        _ = try store.batch(kind: Store.syncBatch, source: identity.location) {
            try body()
            // What changed no row may have changed what the store remembers.
            _ = store.nextChange()
            return ((), summary: "{}")
        }
        result.findings += store.fileFindings
        try store.forgetBatches(of: Store.syncBatch)
    }

    private func settle(
        _ wanted: Store.HubAsset, _ staged: String?, in folder: String, _ links: inout LivingLinks,
        _ remembered: inout RememberedLinks
    ) throws {
        try inBatch {
            let mine = try store.asset(wanted.path)
            // A file that this side has changed too stays: beside the hub's, or alone when the hub has none.
            let isChanged = mine != nil && mine?.digest.hex != wanted.base && mine?.digest != wanted.digest
            // It is still a later version of what both sides had.
            if isChanged, wanted.digest == nil { return try store.stopWanting(wanted.path) }
            if wanted.digest == nil, try links.contains(wanted.path) {
                // The delete did not know of that record: the hub gets the file back.
                return try store.settleAsset(wanted.path, nil)
            }
            if let mine, isChanged, staged != nil {
                try giveWay([mine], in: folder)
            } else if let mine, !isChanged {
                try store.removeAsset(mine)
                if wanted.digest == nil {
                    try store.keepForUndo(mine, isReplaced: false, for: remembered.batches(linking: mine.path))
                } else {
                    // The undo of an earlier import leaves alone what came from the hub since.
                    try store.forgetAsset(wanted.path)
                }
            }
            if let staged, let digest = wanted.digest {
                let asset = Asset(
                    path: wanted.path, size: wanted.size, digest: digest,
                    modifiedNanoseconds: wanted.modifiedNanoseconds)
                _ = try store.placeAsset(asset, from: staged)
                result.assetsFetched += 1
                if mine == nil { try keepApart(asset) }
            }
            try store.settleAsset(wanted.path, wanted.digest)
        }
    }

    /// A file that has come may not be able to lie beside those that are here. The rename is this device's own change. Must
    /// run inside `batch`.
    func keepApart(_ asset: Asset) throws {
        if (try? assetNames?.insert(asset.path)) != nil { return }
        let (names, moving) = try store.namesApart()
        assetNames = names
        for file in try store.moveApart(moving) { try store.forgetAwaitedFile(file.asset.path) }
    }
}
