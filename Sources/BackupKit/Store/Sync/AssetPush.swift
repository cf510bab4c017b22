/// Zones that are shared here while the hub does not know with whom: what went there would be everybody's.
private struct OpenZones {
    private let zones: Set<String>
    private var inside: LivingLinks
    private var outside: LivingLinks

    init(_ store: Store) throws {
        let zones = try store.zonesWithoutTheirShare()
        self.zones = zones
        inside = LivingLinks(store) { zones.contains($0.id.zone) }
        outside = LivingLinks(store) { !zones.contains($0.id.zone) && !$0.isLocalOnly }
    }

    /// Whether a file belongs to these zones: their records name it, and no record that may go to the hub does.
    mutating func covers(_ path: String) throws -> Bool {
        guard !zones.isEmpty else { return false }
        return try inside.contains(path) && !outside.contains(path)
    }
}

/// Assets to the hub.
extension Synchronizer {
    /// Sends new and changed assets. False when something has to be pulled first.
    ///
    /// Other devices take a link for one to the hub's file of that path. So the hub hears of each file, also while its bytes
    /// have to stay here.
    func pushAssets() throws -> Bool {
        try returnLostAssets()
        if !damagedAssets.isEmpty { try store.write { for row in damagedAssets.values { try hold(row) } } }
        guard try store.pendingAssets(after: link.pushedThrough) > 0 else { return true }
        let waiting = try waitingAssets()
        let undecided = try undecidedVersions()
        let now = waiting.filter { $0.asset != nil || undecided[ByteName($0.path)] == nil }
        removalsWait = now.count < waiting.count
        return try send(now)
    }

    /// Sends what a decision has removed, once the hub has the decision, and the records that do not link it any more: a
    /// device that had heard of the removal alone would give the hub the file back. The result is that of `pushAssets`.
    func pushRemovals() throws -> Bool {
        guard removalsWait else { return true }
        let isAlone = try send(waitingAssets().filter { $0.asset == nil })
        removalsWait = !isAlone
        return isAlone
    }

    private func waitingAssets() throws -> [Store.PendingAsset] {
        var broken: [DamagedRow] = []
        let waiting = try store.pendingAssets { broken.append($0) }
        if !broken.isEmpty { try store.write { for row in broken { try hold(row) } } }
        return waiting
    }

    private func send(_ waiting: [Store.PendingAsset]) throws -> Bool {
        var isAlone = true
        var ready: [Store.PendingAsset] = []
        var open = try OpenZones(store)
        var links = LivingLinks(store)
        for pending in try store.forTheHub(waiting) {
            if try open.covers(pending.path) {
                let id = RecordID(zone: Store.assetZone, name: pending.path)
                try store.write { try hold(id, .permission, Self.lacksShare, size: 1) }
                continue
            }
            if let asset = pending.asset {
                // What was refused waits until the share says otherwise.
                if try isRefused(asset) { continue }
                try send(asset)
                if try forgetLost(asset, &links) { continue }
            }
            ready.append(pending)
            if ready.count == identity.limits.recordsPerPush { isAlone = try announce(&ready) && isAlone }
        }
        return try (ready.isEmpty || announce(&ready)) && isAlone
    }

    private func isRefused(_ asset: Asset) throws -> Bool {
        let id = RecordID(zone: Store.assetZone, name: asset.path)
        return try heldIDs.contains(id) && store.held().contains { $0.id == id && $0.kind == .permission }
    }

    /// Holds a file that is too large for the hub. Returns whether it is.
    func holdTooLarge(_ id: RecordID, _ size: Int64) throws -> Bool {
        guard size > identity.limits.assetBytes else { return false }
        let reason = "has \(size) bytes; the hub takes \(identity.limits.assetBytes) an asset"
        try store.write { try hold(id, .size, reason, size: Int(clamping: size)) }
        return true
    }

    /// The bytes, unless they have to stay here: then they are held.
    private func send(_ asset: Asset) throws {
        if try holdTooLarge(RecordID(zone: Store.assetZone, name: asset.path), asset.size) { return }
        let hasBeenPlayed = playedSends.contains(asset.digest)
        try send(asset, isOnHub: hasBeenPlayed || ask { try hub.missingAssets(of: [asset.digest]) }.isEmpty)
    }

    private func send(_ asset: Asset, isOnHub: Bool) throws {
        let id = RecordID(zone: Store.assetZone, name: asset.path)
        let reason: String
        do {
            if try isOnHub || store.isInPlace(asset) && sendBytes(of: asset) {
                if heldIDs.contains(id) { try store.write { try release(id) } }
                return
            }
            reason = try reasonToKeep(asset)
        } catch let error as BackupError where error.code == .destinationFull {
            // Records are small and may still fit.
            reason = "the hub has no room for its \(asset.size) bytes"
        } catch let error as BackupError where error.code == .refused {
            // Something stands in its place there, which costs this file only.
            reason = "the hub cannot take it: \(error.subject.map { "\($0) " } ?? "")\(error.message)"
        }
        try store.write { try hold(id, .missing, reason, size: Int(clamping: asset.size)) }
    }

    /// Whether a file that never came was kept for records that have gone in this sync, too; then its row goes.
    private func forgetLost(_ asset: Asset, _ links: inout LivingLinks) throws -> Bool {
        guard keptAwaited.contains(ByteName(asset.path)), try !links.contains(asset.path) else { return false }
        try inBatch {
            try store.removeAsset(asset)
            try release(RecordID(zone: Store.assetZone, name: asset.path))
        }
        return true
    }

    private func reasonToKeep(_ asset: Asset) throws -> String {
        guard try store.isFile(at: asset.path), let status = try store.assetStatus(asset.path) else {
            return "its file is not in the store's folder"
        }
        return Store.looksAsRemembered(status, asset)
            ? "its file is damaged; 'backup-tool store check' says how it is mended"
            : "its file was changed in the store's folder; 'backup-tool store adopt' takes the change in"
    }

    /// False when the file has other bytes by now.
    private func sendBytes(of asset: Asset) throws -> Bool {
        // In a dry run what came just now lies nowhere yet; its bytes were looked at when it came.
        if try store.isPlaying && store.pending(asset.path) != nil {
            playedSends.insert(asset.digest)
            result.assetsSent += 1
            return true
        }
        do {
            try ask {
                let file = try store.openPlace(of: asset)
                try hub.putAsset(asset.digest, size: asset.size) { write in try file.forEachChunk(write) }
            }
        } catch let error as BackupError where error.code == .damaged { return false }
        result.assetsSent += 1
        return true
    }

    /// Gives the hub again what it has lost of the files that this store and the hub had agreed on. Once a sync.
    private func returnLostAssets() throws {
        guard !hasReturnedAssets else { return }
        hasReturnedAssets = true
        let agreed = try store.agreedAssets().filter { $0.size <= identity.limits.assetBytes }
        for start in stride(from: 0, to: agreed.count, by: identity.limits.recordsPerPush) {
            let some = agreed[start..<min(agreed.count, start + identity.limits.recordsPerPush)]
            let lost = try ask { try hub.missingAssets(of: some.map(\.digest)) }
            // One that is not here either is somebody else's to send; `store check` and `export` name it.
            for asset in some {
                let isOnHub = !lost.contains(asset.digest)
                let isHeld = heldIDs.contains(RecordID(zone: Store.assetZone, name: asset.path))
                if try isHeld || !isOnHub && store.isInPlace(asset) { try send(asset, isOnHub: isOnHub) }
            }
        }
    }

    /// What files were before they were changed in place.
    private func earlierVersions(of assets: [Store.PendingAsset]) throws -> [ByteName: [String]] {
        let changed = assets.filter { $0.asset != nil && $0.replaces != nil && $0.replaces != $0.asset?.digest.hex }
        var found: [ByteName: [String]] = [:]
        for pending in changed { found[ByteName(pending.path)] = [pending.replaces].compactMap(\.self) }
        for known in try fetchAll(changed.map { RecordID(zone: Store.assetZone, name: $0.path) }) {
            let earlier = try Asset.earlierVersions(of: known.record)
            found[ByteName(known.record.id.name)]?.insert(contentsOf: earlier, at: 0)
        }
        return found
    }

    private func announce(_ assets: inout [Store.PendingAsset]) throws -> Bool {
        defer { assets = [] }
        var left = assets
        let earlier = try earlierVersions(of: assets)
        for _ in 0...assets.count where !left.isEmpty {
            let now = store.clock.now()
            let items = left.map { pending in
                let id = RecordID(zone: Store.assetZone, name: pending.path)
                let gone = Record(
                    id: id, type: Store.assetType, localID: pending.path, fields: "{}", createdAt: now, modifiedAt: now)
                return HubPush.Item(
                    pending.asset?.record(at: now, earlierVersions: earlier[ByteName(pending.path)] ?? [])
                        ?? gone.tombstone(at: now),
                    base: pending.base)
            }
            let push = HubPush(items: items, after: link.newest)
            switch try ask({ try hub.push(push, by: link.user) }) {
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
                        if asset == nil { try release(items[index].record.id) }
                    }
                    try store.setHubLink(link)
                }
                result.pushed += left.count
                return isAlone
            case .rejected(let conflicts, let refused, let head):
                try makeWay(for: conflicts)
                try store.write {
                    for (index, reason) in refused where left.indices.contains(index) {
                        try hold(items[index].record.id, .permission, reason, size: 1)
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
