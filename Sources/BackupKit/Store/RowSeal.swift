/// A hash of each row of the sync state, and of what imported files have brought, as the tool wrote it. A number that a disk or
/// another program has changed would hide newer files of the hub, or keep edits on this device.
struct RowSeal {
    let name: String
    private let key: String
    private let text: String

    static let asset = RowSeal(
        name: "asset_sync", key: "path",
        text: "path || ' ' || version || ' ' || size || ' ' || ifnull(sha256, '-') || ' ' || modified_ns || ' ' "
            + "|| ifnull(base, '-') || ' ' || wanted")
    static let link = RowSeal(
        name: "hub_link", key: "id",
        text: "hub_id || ' ' || location || ' ' || ifnull(user, '-') || ' ' || ifnull(token, '-') || ' ' "
            + "|| ifnull(head, '-') || ' ' || pushed_through || ' ' || ifnull(synced_at, '-')")
    static let ofSync = [asset, link]
    static let imported = RowSeal(
        name: "imported_file", key: "path",
        text: "path || ' ' || name || ' ' || length(brought) || ' ' || brought || since")

    /// Seals a row as it is now. Must run inside `write`.
    func seal(_ row: String, _ store: Store) throws {
        let query = try store.database.statement("SELECT \(text) FROM \(name) WHERE \(key) = ?").bind(1, row)
        defer { query.reset() }
        guard try query.step() else { return }
        try store.database.statement("UPDATE \(name) SET seal = ? WHERE \(key) = ?")
            .bind(1, hash(query, 0, store.hasher)).bind(2, row).run()
    }

    /// Seals a row again after a change of some of its columns, perhaps of the key. One that was damaged before stays so until
    /// somebody notices. Must run inside `write`.
    func resealing(_ row: String, as new: String? = nil, _ store: Store, _ change: () throws -> Void) throws {
        let query = try store.database.statement("SELECT \(text), seal FROM \(name) WHERE \(key) = ?").bind(1, row)
        let wasSound = try !query.step() || isSound(query, 0, store.hasher)
        query.reset()
        try change()
        if wasSound { try seal(new ?? row, store) }
    }

    func sealAll(_ hasher: RecordHasher, _ database: SQLite) throws {
        let query = try database.prepare("SELECT \(key), \(text) FROM \(name)")
        var seals: [(row: String, hash: Int64)] = []
        while try query.step() { seals.append((query.text(0), hash(query, 1, hasher))) }
        let update = try database.prepare("UPDATE \(name) SET seal = ? WHERE \(key) = ?")
        for (row, hash) in seals { try update.bind(1, hash).bind(2, row).run() }
    }

    /// The keys of rows that are not as the tool wrote them.
    func broken(in store: Store) throws -> [String] {
        let query = try store.database.prepare("SELECT \(key), \(text), seal FROM \(name) ORDER BY \(key)")
        var found: [String] = []
        while try query.step() {
            if !isSound(query, 1, store.hasher) { found.append(query.text(0)) }
        }
        return found
    }

    /// The seal stands behind the text. A row without one is from before there were seals.
    private func isSound(_ row: Statement, _ column: Int32, _ hasher: RecordHasher) -> Bool {
        row.optionalInteger(column + 1).map { $0 == hash(row, column, hasher) } ?? true
    }

    private func hash(_ row: Statement, _ column: Int32, _ hasher: RecordHasher) -> Int64 {
        Int64(bitPattern: hasher.text(row.bytes(column)))
    }
}
