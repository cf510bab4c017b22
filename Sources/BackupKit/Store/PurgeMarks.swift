/// What a purge has removed for good. A mark beside the tombstone keeps every later command from bringing the record back:
/// the merge policy asks for it, so restore, import, quarantine and repair need not. A sync does not ask, because all
/// devices must come to one state.
extension Store {
    private static let ofRecord = "FROM purged WHERE (zone = ?1 AND name = ?2) OR (local_id = ?4 AND type = ?3)"
    private static let marked = Query("SELECT 1 \(ofRecord) LIMIT 1")

    /// Whether the record, under its name or its local id, was purged here.
    func isPurged(_ record: Record) throws -> Bool {
        let query = try bound(record, to: database.statement(Self.marked))
        defer { query.reset() }
        return try query.step()
    }

    func isPurged(_ id: RecordID) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM purged WHERE zone = ? AND name = ?")
            .bind(1, id.zone).bind(2, id.name)
        defer { query.reset() }
        return try query.step()
    }

    /// Must run inside `write`.
    func markPurged(_ record: Record) throws {
        try bound(record, to: database.statement("INSERT OR REPLACE INTO purged VALUES (?, ?, ?, ?)")).run()
    }

    private func bound(_ record: Record, to statement: Statement) -> Statement {
        statement.bind(1, record.id.zone).bind(2, record.id.name).bind(3, record.type).bind(4, record.localID)
    }

    /// Where a sync has brought what somebody wrote since, it is a record like any other.
    func forgetPurge(of id: RecordID) throws {
        try database.statement("DELETE FROM purged WHERE zone = ? AND name = ?").bind(1, id.zone).bind(2, id.name).run()
    }

    /// Lets purged records come back by the next restore or import that asks for it. Returns their identities.
    public func allowReturn(of ids: [String], dryRun: Bool = false) throws -> [RecordID] {
        var allowed: [RecordID] = []
        func allow() throws {
            for text in ids {
                let found = try find(text).filter { try $0.isDeleted && isPurged($0) }
                guard !found.isEmpty else {
                    throw BackupError(
                        .failed, "no record of this name was purged from this store", at: text,
                        remedy: "'backup-tool store changes' lists the ids of deleted records")
                }
                for record in found {
                    try bound(record, to: database.statement("DELETE \(Self.ofRecord)")).run()
                    allowed.append(record.id)
                }
            }
        }
        if dryRun { try rehearse(allow) } else { try write(allow) }
        return allowed
    }
}
