/// Files that this store has removed, and that a record names again that came from another device.
extension Synchronizer {
    /// Brings such files back: from the undo history, else from the hub, whose version is not deleted after all.
    func bringBackLinkedAssets() throws {
        // Only what has arrived can name them; the links are looked for in all records.
        guard result.pulled > 0 else { return }
        let removed = try store.removedAssets()
        guard !removed.isEmpty else { return }
        var links = LivingLinks(store)
        let named = try removed.filter { try links.contains($0) }
        guard !named.isEmpty else { return }
        try inBatch {
            for path in named {
                do {
                    let digest = try store.hubAsset(path)?.digest
                    if try !store.bringBackAsset(path, as: digest), digest != nil { try store.wantAsset(path) }
                } catch let error as BackupError where error.isVerdict && error.code != .destinationFull {
                    try hold(RecordID(zone: Store.assetZone, name: path), .missing, error.message)
                }
            }
        }
    }
}

extension Store {
    /// Paths that this store has no more: those that the hub still has, and those that the hub has no more either while the
    /// undo history keeps their bytes.
    func removedAssets() throws -> [String] {
        let query = try database.prepare(
            """
            SELECT path \(Self.goneAssetRows) UNION SELECT path FROM asset_sync
            WHERE sha256 IS NULL AND wanted = 0 AND path NOT IN (SELECT path FROM asset)
            AND path IN (SELECT path FROM batch_asset WHERE kept = sha256) ORDER BY path
            """)
        var found: [String] = []
        while try query.step() { found.append(query.text(0)) }
        return found
    }

    /// Takes a removed file out of the undo history: the version that the hub has, or where the hub has none, the last one.
    /// False when the history has no such bytes. Must run inside `batch`.
    func bringBackAsset(_ path: String, as digest: SHA256Digest?) throws -> Bool {
        let query = try database.prepare(
            """
            SELECT \(Self.assetColumnNames.joined(separator: ", ")) FROM batch_asset
            WHERE path = ?1 AND kept = sha256 AND sha256 = ifnull(?2, sha256) ORDER BY batch DESC LIMIT 1
            """
        ).bind(1, path).bind(2, digest?.hex)
        guard try query.step(), let asset = try ifSound({ try RowReader.asset(query) }),
            try hasBlob(asset.digest)
        else { return false }
        try insert(asset, from: nil)
        // The undo of an earlier import leaves alone what a record of another device names.
        try forgetAsset(path)
        return true
    }
}
