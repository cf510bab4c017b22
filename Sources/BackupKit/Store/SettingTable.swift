/// Settings and feature flags (which travel as settings), and the queue of conflicts.
extension Store {
    /// All settings, sorted by key; the values are JSON text. Rows that are damaged are handed to `damaged`.
    public func settings(damaged: ((DamagedRow) throws -> Void)? = nil) throws -> [Field] {
        let query = try database.prepare(
            "SELECT \(Self.settingColumnNames.joined(separator: ", ")) FROM setting ORDER BY key")
        var found: [Field] = []
        while try query.step() {
            if let setting = try ifSound(damaged, { try RowReader.setting(query) }) { found.append(setting) }
        }
        return found
    }

    /// Returns whether the value was new. Must run inside `batch`.
    public func putSetting(_ key: String, _ value: String, at time: Timestamp) throws -> Bool {
        let before = try storedSetting(key)
        // What is damaged is replaced, and an undo brings it back as it was.
        if let before, try ifReadable({ try Fields.same(before.value, value) }) ?? false { return false }
        try rememberSetting(key, before)
        try database.statement("INSERT OR REPLACE INTO setting VALUES (?, ?, ?)")
            .bind(1, key).bind(2, value).bind(3, time.milliseconds).run()
        _ = nextChange()
        return true
    }

    func storedSetting(_ key: String) throws -> (value: String, time: Int64)? {
        let query = try database.statement("SELECT value, modified_at FROM setting WHERE key = ?").bind(1, key)
        defer { query.reset() }
        return try query.step() ? (query.text(0), query.integer(1)) : nil
    }

    public func removeSetting(_ key: String) throws {
        guard let before = try storedSetting(key) else { return }
        try rememberSetting(key, before)
        try database.statement("DELETE FROM setting WHERE key = ?").bind(1, key).run()
        _ = nextChange()
    }

    func rememberSetting(_ key: String, _ before: (value: String, time: Int64)?) throws {
        guard let batch = currentBatch else { return }
        try database.statement("INSERT OR IGNORE INTO batch_setting VALUES (?, ?, ?, ?)")
            .bind(1, batch.id).bind(2, key).bind(3, before?.value).bind(4, before?.time).run()
    }

    /// Queues a conflict that nobody may decide silently; the same one is queued once.
    public func noteConflict(kind: String, subject: String, existing: String, incoming: String) throws {
        let query = try database.statement(
            "SELECT 1 FROM conflict WHERE kind = ? AND subject = ? AND existing = ? AND incoming = ?")
        query.bind(1, kind).bind(2, subject).bind(3, existing).bind(4, incoming)
        let known = try query.step()
        query.reset()
        if known { return }
        try database.statement(
            "INSERT INTO conflict (kind, subject, existing, incoming, detected_at, batch) VALUES (?, ?, ?, ?, ?, ?)"
        ).bind(1, kind).bind(2, subject).bind(3, existing).bind(4, incoming)
            .bind(5, clock.now().milliseconds).bind(6, currentBatch?.id).run()
        _ = nextChange()
    }
}
