/// Assets travel as records of type `Asset`, one a path, and their bytes by digest. The bytes go first, so that who reads
/// the record finds them.
extension Store {
    public static let assetZone = "Assets"
    static let assetType = "Asset"

    /// Of what is too large for the cloud the hub hears, too. What else is kept on this device by choice it never hears of.
    private static let sharedAssets = "(local_only = 0 OR asset.size > \(CloudLimits.assetBytes))"

    /// Assets that the hub does not have as they are, and paths that it has and this store has no more. A row that differs
    /// from what was noted of it, or that is gone though something is noted of it, is damage, and not for other devices.
    private static let pendingAssetRows = """
        FROM \(StoreSchema.unchangedAssets) AS asset LEFT JOIN asset_sync USING (path) WHERE \(sharedAssets)
        AND (version IS NULL OR wanted = 0 AND base IS NOT asset.sha256)
        """
    static let goneAssetRows = """
        FROM asset_sync LEFT JOIN asset USING (path) WHERE asset.path IS NULL AND wanted = 0
        AND (base IS NOT NULL OR asset_sync.sha256 IS NOT NULL)
        AND NOT EXISTS (SELECT 1 FROM witness WHERE place = 'asset' AND key = asset_sync.path)
        """

    func pendingAssets(after change: Int64) throws -> Int {
        guard try hasSyncTables else {
            return try database.integer("SELECT count(*) FROM asset WHERE \(Self.sharedAssets)").asInt
        }
        guard try max(changeCounter, lastChange()) > change else { return 0 }
        return try database.integer("SELECT count(*) \(Self.pendingAssetRows)").asInt
            + database.integer("SELECT count(*) \(Self.goneAssetRows)").asInt
    }

    /// Assets whose files this store and the hub have alike.
    func agreedAssets() throws -> [Asset] {
        var found: [Asset] = []
        let query = try database.prepare(
            """
            SELECT \(Self.assetColumnNames.map { "asset.\($0)" }.joined(separator: ", ")) FROM asset JOIN asset_sync USING (path)
            WHERE asset.sha256 = asset_sync.sha256 AND base = asset.sha256 AND wanted = 0 ORDER BY path
            """)
        while try query.step() { if let asset = try ifSound({ try RowReader.asset(query) }) { found.append(asset) } }
        return found
    }

    struct PendingAsset {
        let path: String
        /// Nil: it is gone.
        let asset: Asset?
        let base: Int64?
        /// The digest of which the file is a later version, where the hub has that.
        var replaces: String?
    }

    /// Rows that are damaged are handed to `damaged`.
    func pendingAssets(damaged: (DamagedRow) throws -> Void) throws -> [PendingAsset] {
        var found: [PendingAsset] = []
        let query = try database.prepare("SELECT path, version, base \(Self.pendingAssetRows) ORDER BY path")
        while try query.step() {
            do {
                let asset = try asset(query.text(0))
                found.append(
                    PendingAsset(
                        path: query.text(0), asset: asset, base: query.optionalInteger(1),
                        replaces: query.optionalText(2)))
            } catch let row as DamagedRow { try damaged(row) }
        }
        let gone = try database.prepare("SELECT path, version \(Self.goneAssetRows) ORDER BY path")
        while try gone.step() {
            found.append(PendingAsset(path: gone.text(0), asset: nil, base: gone.integer(1)))
        }
        return found
    }

    /// What the hub has under a path.
    struct HubAsset {
        let path: String
        let version: Int64
        let size: Int64
        /// Nil: it was deleted.
        let digest: SHA256Digest?
        let modifiedNanoseconds: Int64
        /// What both sides had last.
        var base: String?
        let isWanted: Bool
        /// Wanted, and no version of what both sides had: somebody has used the path for another file.
        var isStranger = false

        /// The file that links mean while its bytes did not come yet.
        var awaited: Asset? {
            guard isWanted, let digest else { return nil }
            return Asset(path: path, size: size, digest: digest, modifiedNanoseconds: modifiedNanoseconds)
        }
    }

    private static let hubAssetColumns = "path, version, size, sha256, modified_ns, base, wanted"

    private static func hubAsset(_ row: Statement) -> HubAsset {
        HubAsset(
            path: row.text(0), version: row.integer(1), size: max(0, row.integer(2)),
            digest: row.optionalText(3).flatMap { SHA256Digest(hex: $0) }, modifiedNanoseconds: row.integer(4),
            base: row.optionalText(5), isWanted: row.integer(6) != 0, isStranger: row.integer(6) == 2)
    }

    func hubAsset(_ path: String) throws -> HubAsset? {
        let query = try database.statement("SELECT \(Self.hubAssetColumns) FROM asset_sync WHERE path = ?").bind(
            1, path)
        defer { query.reset() }
        return try query.step() ? Self.hubAsset(query) : nil
    }

    func hubAsset(ofVersion version: Int64) throws -> HubAsset? {
        let query = try database.prepare("SELECT \(Self.hubAssetColumns) FROM asset_sync WHERE version = ?").bind(
            1, version)
        return try query.step() ? Self.hubAsset(query) : nil
    }

    func wantedAssets() throws -> [HubAsset] {
        let query = try database.prepare("SELECT \(Self.hubAssetColumns) FROM asset_sync WHERE wanted ORDER BY path")
        var found: [HubAsset] = []
        while try query.step() { found.append(Self.hubAsset(query)) }
        return found
    }

    func setHubAsset(_ asset: HubAsset) throws {
        try database.statement(
            "INSERT OR REPLACE INTO asset_sync (\(Self.hubAssetColumns)) VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        .bind(1, asset.path).bind(2, asset.version).bind(3, asset.size).bind(4, asset.digest?.hex)
        .bind(5, asset.modifiedNanoseconds).bind(6, asset.base)
        .bind(7, asset.isWanted ? asset.isStranger ? Int64(2) : 1 : 0).run()
        try RowSeal.asset.seal(asset.path, self)
    }

    /// Where neither side has a file any more, not even its name is kept. Returns whether no delete waits for the hub. Must
    /// run inside `write`.
    func forgetDeletedAssets() throws -> Bool {
        try database.execute(
            """
            DELETE FROM asset_sync WHERE sha256 IS NULL AND base IS NULL AND wanted = 0
            AND path NOT IN (SELECT path FROM asset)
            """)
        return try database.integer("SELECT count(*) \(Self.goneAssetRows)") == 0
    }

    /// Both sides have the same now. Must run inside `write`.
    func settleAsset(_ path: String, _ digest: SHA256Digest?) throws {
        try RowSeal.asset.resealing(path, self) {
            try database.statement("UPDATE asset_sync SET base = ?, wanted = 0 WHERE path = ?")
                .bind(1, digest?.hex).bind(2, path).run()
        }
    }

    /// The hub's file is to be fetched. Must run inside `write`.
    func wantAsset(_ path: String) throws {
        try RowSeal.asset.resealing(path, self) {
            try database.statement("UPDATE asset_sync SET wanted = max(wanted, 1) WHERE path = ?").bind(1, path).run()
        }
    }

    /// The hub has no such file any more, and this side's stays. Must run inside `write`.
    func stopWanting(_ path: String) throws {
        try RowSeal.asset.resealing(path, self) {
            try database.statement("UPDATE asset_sync SET wanted = 0 WHERE path = ?").bind(1, path).run()
        }
    }

    /// This side's file has left the path, and the hub's is to be fetched. Must run inside `write`.
    func leaveAsset(_ path: String) throws {
        try RowSeal.asset.resealing(path, self) {
            try database.statement("UPDATE asset_sync SET base = NULL, wanted = 1 WHERE path = ?").bind(1, path).run()
        }
    }

    /// A file that did not take the place of another one in this batch is no version of what the hub has under its path.
    func noteNewFile(_ asset: Asset) throws {
        try RowSeal.asset.resealing(asset.path, self) {
            try database.statement(
                """
                UPDATE asset_sync SET base = NULL WHERE path = ?1 AND base IS NOT ?2 AND wanted = 0
                AND NOT EXISTS (SELECT 1 FROM batch_asset WHERE batch = ?3 AND path = ?1 AND sha256 IS NOT NULL)
                """
            ).bind(1, asset.path).bind(2, asset.digest.hex).bind(3, currentBatch?.id).run()
        }
    }

    /// Forgets the batches that put the files of a sync or a repair in place: neither is undone.
    func forgetBatches(of kind: String) throws {
        var kept: Set<SHA256Digest> = []
        for batch in try batches() where batch.kind == kind {
            let query = try database.prepare("SELECT kept FROM batch_asset WHERE batch = ?").bind(1, batch.id)
            while try query.step() { if let blob = SHA256Digest(hex: query.text(0)) { kept.insert(blob) } }
            try database.write { try forgetBatch(batch.id) }
        }
        if !isPlaying { try collectBlobs(among: kept) }
    }
}

extension Asset {
    init?(_ record: Record) throws {
        let fields = try JSON(parsing: record.fields)
        guard let size = fields["size"]?.integer, let hex = fields["sha256"]?.string,
            let digest = SHA256Digest(hex: hex)
        else { return nil }
        self.init(
            path: record.id.name, size: size, digest: digest, modifiedNanoseconds: fields["modified_ns"]?.integer ?? 0)
    }

    /// Why a record of the hub is no asset that a store can keep, or nil.
    static func problem(_ record: Record) -> String? {
        do {
            try Store.check(record.id.name)
            if record.isDeleted { return nil }
            guard let asset = try Asset(record), asset.size >= 0 else { return "names no file" }
            return nil
        } catch { return (error as? BackupError)?.message ?? "cannot be read" }
    }

    private static let earlierMember = "was"
    private static let earlierLimit = 100

    /// The digests of the versions that a file of the hub took the place of, oldest first.
    static func earlierVersions(of record: Record) throws -> [String] {
        try JSON(parsing: record.fields)[earlierMember]?.array?.compactMap(\.string) ?? []
    }

    func record(at time: Timestamp, earlierVersions: [String] = []) -> Record {
        let earlier = earlierVersions.suffix(Self.earlierLimit).map { JSON.string($0) }
        let fields = JSON.object(
            [
                JSON.Member("modified_ns", JSON(modifiedNanoseconds)), JSON.Member("sha256", .string(digest.hex)),
                JSON.Member("size", JSON(size)),
            ] + (earlier.isEmpty ? [] : [JSON.Member(Self.earlierMember, .array(earlier))]))
        return Record(
            id: RecordID(zone: Store.assetZone, name: path), type: Store.assetType, localID: path,
            fields: fields.compact, createdAt: time, modifiedAt: time)
    }
}

extension Store {
    /// Takes a path out of the memory of earlier batches.
    func forgetAsset(_ path: String) throws {
        try database.statement("DELETE FROM batch_asset WHERE path = ? AND batch <> ?")
            .bind(1, path).bind(2, currentBatch?.id).run()
    }
}
