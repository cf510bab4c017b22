/// Settings and feature flags, which travel as settings.
extension Store {
    /// All settings, sorted by key; the values are JSON text. Rows that are damaged are handed to `damaged`.
    public func settings(damaged: ((DamagedRow) throws -> Void)? = nil) throws -> [Field] {
        let query = try database.prepare(
            "SELECT \(Self.settingColumnNames.joined(separator: ", ")) FROM setting ORDER BY key")
        var found: [Field] = []
        var keys: Set<ByteName> = []
        while try query.step() {
            let setting = try ifSound(damaged) {
                let setting = try RowReader.setting(query)
                guard keys.insert(ByteName(setting.name)).inserted else { throw RowReader.repeatedSetting(query) }
                return setting
            }
            if let setting { found.append(setting) }
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
}
