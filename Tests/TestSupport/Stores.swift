@testable import BackupKit

/// A store in a folder of its own, with a clock that the test moves.
public struct TestStore {
    public let store: Store
    public let clock: TestClock
    public let folder: String

    public init(store: Store, clock: TestClock, folder: String) {
        (self.store, self.clock, self.folder) = (store, clock, folder)
    }
}

/// Runs `body` with a new store, and looks over what it left.
public func withStore<Result>(_ body: (TestStore) throws -> Result) throws -> Result {
    try withTemporaryFolder { folder in
        let clock = TestClock()
        let store = try Store.create("\(folder)/store.db", clock: clock.clock)
        let result = try body(TestStore(store: store, clock: clock, folder: folder))
        try checkSound("\(folder)/store.db")
        return result
    }
}

/// Throws when a store is not as every store must be at any time.
public func checkSound(_ path: String) throws {
    func defect(_ what: String) -> BackupError { BackupError(.damaged, what, at: path) }
    let database = try SQLite(path, .readOnly)
    let check = try database.prepare("PRAGMA integrity_check")
    guard try check.step(), check.text(0) == "ok" else { throw defect("integrity_check: \(check.text(0))") }
    if try database.prepare("PRAGMA foreign_key_check").step() { throw defect("a foreign key leads nowhere") }
    for (what, query) in [
        (
            "two records of one identity",
            "SELECT count(*) FROM (SELECT 1 FROM record GROUP BY zone, ifnull(name, local_id) HAVING count(*) > 1)"
        ),
        (
            "a tombstone that holds data",
            """
            SELECT count(*) FROM record WHERE deleted_at IS NOT NULL
            AND (fields <> '{}' OR device_id IS NOT NULL
                OR EXISTS (SELECT 1 FROM json_each(field_times)
                    WHERE key NOT LIKE '(merged) %' AND key NOT LIKE '(kept) %' AND key NOT LIKE '(listed) %'
                    AND key NOT LIKE '(beside) %'))
            """
        ),
        (
            // A restore takes the two for one record, and the newer delete wins. A copy kept here stands beside the tombstone.
            "a live record with the local id of a newer tombstone",
            """
            SELECT count(*) FROM record live JOIN record dead USING (type, local_id)
            WHERE live.deleted_at IS NULL AND live.local_only = 0 AND dead.deleted_at > live.modified_at
            AND live.field_times = '{}'
            """
        ),
        (
            "a change number that was not given out",
            "SELECT count(*) FROM record WHERE change > (SELECT value FROM counter)"
        ),
    ] where try database.integer(query) != 0 { throw defect(what) }
    let store = try Store(path, .read)
    let changed = try store.changedBatches()
    if !changed.isEmpty { throw defect("the undo history of \(changed) is not what was written") }
    let memory = try store.memoryDamage()
    if !memory.isEmpty { throw defect("what is remembered is not what was written: \(memory.map(\.sentence))") }
    let stale = try store.staleKeys()
    if stale != 0 { throw defect("\(stale) records that the index by local id does not know") }
    let odd = try store.oddHubStates().map(\.id) + store.brokenAncestors()
    if !odd.isEmpty { throw defect("what is known of the hub's version of \(odd) is not what was written") }
    try checkAssets(path, database)
}

private func checkAssets(_ path: String, _ database: SQLite) throws {
    let folder = Store.assetFolder(of: path)
    var known: Set<String> = []
    let assets = try database.prepare("SELECT path, size, sha256 FROM asset")
    while try assets.step() {
        let asset = "\(folder)/\(assets.text(0))"
        let bytes = try readFile(asset)
        let digest = bytes.withUnsafeBytes { SHA256Digest.of($0) }
        guard bytes.count == assets.integer(1), digest.hex == assets.text(2) else {
            throw BackupError(.damaged, "is not what the store says", at: asset)
        }
        known.insert(assets.text(0))
    }
    let kept = try database.prepare("SELECT kept FROM batch_asset WHERE kept IS NOT NULL")
    while try kept.step() { known.insert(".blobs/" + kept.text(0)) }
    // Those that nobody needs may wait for a writer that finds no reader at work.
    for name in try Directory.names(in: "\(folder)/.blobs") {
        let bytes = try readFile("\(folder)/.blobs/\(name)")
        guard bytes.withUnsafeBytes({ SHA256Digest.of($0) }).hex == name else {
            throw BackupError(.damaged, "is not what its name says", at: "\(folder)/.blobs/\(name)")
        }
        known.insert(".blobs/" + name)
    }
    guard try database.integer("SELECT count(*) FROM asset_pending") == 0 else {
        throw BackupError(.damaged, "files are not in line with their rows", at: path)
    }
    try Directory.walk(folder) { relative, status in
        if !status.isDirectory && !known.contains(relative) {
            throw BackupError(.damaged, "is a leftover", at: "\(folder)/\(relative)")
        }
    }
}

/// The files under their paths, without what a store keeps for itself beside them.
public func visibleFiles(of store: Store) throws -> [String: [UInt8]] {
    try contents(of: store.assetFolder).filter { !$0.key.hasPrefix(".") }.compactMapValues { $0 }
}

extension Store {
    /// The content digest of this moment.
    public func digest() throws -> String { try read { try contentDigest().hex } }

    /// Of records and attachments, without what is in quarantine or kept here only: every device has its own.
    public func sharedDigest() throws -> String {
        try read {
            var digest = ContentDigest()
            for record in try all() where record.type != Quarantine.type && !record.isLocalOnly {
                try digest.add(record)
            }
            try forEachAsset { digest.add($0) }
            return digest.finish().hex
        }
    }

    /// Ingests in one transaction and returns what was decided.
    @discardableResult
    public func take(_ records: Record..., resurrect: Bool = false) throws -> [Decision] {
        try write { try records.map { try ingest($0, resurrect: resurrect).decision } }
    }

    public func all() throws -> [Record] {
        var found: [Record] = []
        try forEachRecord(order: .identity) { found.append($0) }
        return found
    }
}

/// A record in short: times are seconds after the epoch of the tests.
public func record(
    _ name: String, _ fields: String = "{}", at seconds: Int64 = 0, times: [String: Int64] = [:], type: String = "Item",
    zone: String = "Z", localID: String? = nil, device: String? = nil, local: Bool = false, deleted: Bool = false
) -> Record {
    Record(
        id: RecordID(zone: zone, name: name), type: type, localID: localID ?? name, fields: fields,
        fieldTimes: times.mapValues(time), createdAt: time(seconds), modifiedAt: time(seconds), deviceID: device,
        isLocalOnly: local, deletedAt: deleted ? time(seconds) : nil)
}

/// So many seconds after 2026-01-01T00:00:00Z.
public func time(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: 1_767_225_600_000 + seconds * 1000) }

/// Stages and places one asset; must run inside `batch`.
@discardableResult
public func place(_ path: String, _ text: String, in store: Store) throws -> Store.AssetOutcome {
    try store.withIncomingFolder { folder in
        let staged = "\(folder)/file"
        try writeFile(staged, text)
        let asset = Asset(path: path, size: Int64(text.utf8.count), digest: .of(text))
        return try store.placeAsset(asset, from: staged)
    }
}

extension Store {
    /// What the index by local id says that the records do not; for checks of a store's soundness.
    public func staleKeys() throws -> Int {
        let index = try KeyIndex(self)
        let query = try database.prepare("SELECT \(Self.recordColumns) FROM record")
        var stale = try surplusOfKeys()
        while try query.step() {
            if try !index.knows(query) { stale += 1 }
        }
        return Int(stale.magnitude)
    }
}
