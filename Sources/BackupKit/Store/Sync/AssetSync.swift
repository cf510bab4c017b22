/// Assets from the hub.
extension Synchronizer {
    /// Notes what the hub has under a path; the bytes are fetched afterwards. Must run inside `write`.
    func applyAsset(_ incoming: HubRecord) throws {
        let record = incoming.record
        let known = try store.hubAsset(record.id.name)
        if let known, known.version >= incoming.version { return }
        let theirs: Asset?
        do {
            try Store.check(record.id.name)
            theirs = record.isDeleted ? nil : try Asset(record)
            guard record.isDeleted || theirs != nil else { throw BackupError(.damaged, "names no asset") }
        } catch let error as BackupError {
            // One that cannot be kept here blocks nobody else.
            return try hold(record.id, .missing, error.message)
        }
        let mine = try store.asset(record.id.name)
        let isSame = mine?.digest == theirs?.digest
        let isInPlace = try mine.map { try store.isInPlace($0) } ?? true
        try store.setHubAsset(
            Store.HubAsset(
                path: record.id.name, version: incoming.version, size: theirs?.size ?? 0, digest: theirs?.digest,
                modifiedNanoseconds: theirs?.modifiedNanoseconds ?? 0,
                base: isSame ? theirs?.digest.hex : known?.base, isWanted: !isSame || !isInPlace))
        if !isSame { result.pulled += 1 }
        try release(record.id)
    }

    /// Brings the bytes of what the hub has and this side has not, each file with its row in one transaction.
    func fetchAssets() throws {
        for wanted in try store.wantedAssets() {
            let id = RecordID(zone: Store.assetZone, name: wanted.path)
            do {
                try store.withIncomingFolder { folder in
                    let staged = try wanted.digest.map { digest in try stage(digest, wanted.size, in: folder) }
                    guard staged != .some(nil) else {
                        throw BackupError(.incomplete, "its bytes are not on the hub")
                    }
                    try settle(wanted, staged?.flatMap { $0 }, in: folder)
                }
                if heldIDs.contains(id) { try store.write { try release(id) } }
            } catch let error as BackupError where [.incomplete, .exists, .refused].contains(error.code) {
                try store.write { try hold(id, .missing, error.message, size: Int(clamping: wanted.size)) }
            } catch let row as DamagedRow { try store.write { try hold(row) } }
        }
    }

    /// The hub's bytes in a file of ours; nil when it does not have them.
    private func stage(_ digest: SHA256Digest, _ size: Int64, in folder: String) throws -> String? {
        let path = "\(folder)/\(digest.hex)"
        let isThere = try ask {
            try Directory.removeTree(path)
            let file = try FileHandle.create(path)
            let hasher = SHA256Hasher()
            var count: Int64 = 0
            let found = try hub.getAsset(digest) { chunk in
                count += Int64(chunk.count)
                guard count <= size else { throw BackupError(.incomplete, "its bytes on the hub are others") }
                hasher.update(chunk)
                try file.write(chunk)
            }
            guard found else { return false }
            guard count == size, hasher.finish() == digest else {
                throw BackupError(.incomplete, "its bytes on the hub are others")
            }
            try file.sync()
            return true
        }
        return isThere ? path : nil
    }

    private func settle(_ wanted: Store.HubAsset, _ staged: String?, in folder: String) throws {
        _ = try store.batch(kind: Store.syncBatch, source: identity.location) {
            let mine = try store.asset(wanted.path)
            // A file that this side has changed too stays: beside the hub's, or alone when the hub has none.
            let isChanged = mine != nil && mine?.digest.hex != wanted.base && mine?.digest != wanted.digest
            let copy = isChanged && staged != nil ? try mine.flatMap { try setAside($0, in: folder) } : nil
            if let mine, !(isChanged && staged == nil) {
                try store.removeAsset(mine)
            }
            // The undo of an earlier import leaves alone what came from the hub since.
            try store.forgetAsset(wanted.path)
            if let staged, let digest = wanted.digest {
                let asset = Asset(
                    path: wanted.path, size: wanted.size, digest: digest,
                    modifiedNanoseconds: wanted.modifiedNanoseconds)
                _ = try store.placeAsset(asset, from: staged)
                result.assetsFetched += 1
            }
            if let mine, let copy { try keepBoth(mine, copy) }
            try store.settleAsset(wanted.path, wanted.digest)
            _ = store.nextChange()
            return ((), summary: "{}")
        }
        result.findings += store.editFindings
        try store.forgetSyncBatches()
    }

    /// The second of two versions gets a name of its own, and a person decides.
    private func keepBoth(_ mine: Asset, _ copy: String) throws {
        guard case .conflict(let path) = try store.placeAsset(mine, from: copy) else { return }
        result.conflicts += 1
        result.findings.append(
            Finding(.conflict, .warning, mine.path, "differs from the hub's file of that name; ours is kept as \(path)")
        )
    }

    /// A copy of the store's file; nil when it is not there.
    private func setAside(_ asset: Asset, in folder: String) throws -> String? {
        guard try store.isInPlace(asset) else { return nil }
        let source = try FileHandle.openForReading(store.place(of: asset))
        guard try RootDirectory(folder).copy(source, to: "ours") == asset.digest else { return nil }
        return "\(folder)/ours"
    }
}

/// Assets to the hub.
extension Synchronizer {
    /// Sends new and changed assets. False when something has to be pulled first.
    func pushAssets() throws -> Bool {
        guard try store.pendingAssets(after: link.pushedThrough) > 0 else { return true }
        var isAlone = true
        var ready: [Store.PendingAsset] = []
        var broken: [DamagedRow] = []
        let waiting = try store.pendingAssets { broken.append($0) }
        if !broken.isEmpty { try store.write { for row in broken { try hold(row) } } }
        for pending in waiting {
            if let asset = pending.asset, try !send(asset) { continue }
            ready.append(pending)
            if ready.count == identity.limits.recordsPerPush { isAlone = try announce(&ready) && isAlone }
        }
        return try (ready.isEmpty || announce(&ready)) && isAlone
    }

    /// The bytes; false when the asset has to stay here.
    private func send(_ asset: Asset) throws -> Bool {
        let id = RecordID(zone: Store.assetZone, name: asset.path)
        func stays(_ kind: Held.Kind, _ reason: String) throws -> Bool {
            try store.write { try hold(id, kind, reason, size: Int(clamping: asset.size)) }
            return false
        }
        if asset.size > identity.limits.assetBytes {
            return try stays(.size, "has \(asset.size) bytes; the hub takes \(identity.limits.assetBytes) an asset")
        }
        // What was refused waits until the share says otherwise.
        if heldIDs.contains(id), try store.held().contains(where: { $0.id == id && $0.kind == .permission }) {
            return false
        }
        if try ask({ try hub.hasAsset(asset.digest) }) { return true }
        guard try store.isInPlace(asset) else { return try stays(.missing, "its file is not in the store's folder") }
        do {
            try ask {
                let file = try FileHandle.openForReading(store.place(of: asset))
                try hub.putAsset(asset.digest, size: asset.size) { write in try file.forEachChunk(write) }
            }
        } catch let error as BackupError where error.code == .damaged {
            return try stays(.missing, "its file is not what the store remembers")
        }
        result.assetsSent += 1
        return true
    }

    private func announce(_ assets: inout [Store.PendingAsset]) throws -> Bool {
        defer { assets = [] }
        var left = assets
        for _ in 0...assets.count where !left.isEmpty {
            let now = store.clock.now()
            let items = left.map { pending in
                let id = RecordID(zone: Store.assetZone, name: pending.path)
                let gone = Record(
                    id: id, type: Store.assetType, localID: pending.path, fields: "{}", createdAt: now, modifiedAt: now)
                return HubPush.Item(
                    pending.asset?.record(at: now) ?? gone.tombstone(at: now), base: pending.base)
            }
            let push = HubPush(items: items, after: link.newest)
            switch try ask({ try hub.push(push, by: options.user) }) {
            case .accepted(let first, let before, let after):
                let isAlone = link.pushed(from: before, to: after)
                try store.write {
                    for (index, pending) in left.enumerated() {
                        let asset = pending.asset
                        try store.setHubAsset(
                            Store.HubAsset(
                                path: pending.path, version: first + Int64(index), size: asset?.size ?? 0,
                                digest: asset?.digest, modifiedNanoseconds: asset?.modifiedNanoseconds ?? 0,
                                base: asset?.digest.hex, isWanted: false))
                        try release(items[index].record.id)
                    }
                    try store.setHubLink(link)
                }
                result.pushed += left.count
                return isAlone
            case .rejected(let conflicts, let refused, let head):
                try store.write {
                    for (index, reason) in refused where left.indices.contains(index) {
                        try hold(items[index].record.id, .permission, reason)
                    }
                    for conflict in conflicts { try apply(conflict) }
                    try hear(of: head)
                }
                let settled = Set(conflicts.map(\.record.id.name))
                left = left.enumerated().filter { refused[$0.offset] == nil && !settled.contains($0.element.path) }
                    .map(\.element)
                if !settled.isEmpty { return false }
            }
        }
        return true
    }
}
