/// A point in a store's history of changes. Its text names the store, so that a token from elsewhere is noticed.
public struct ChangeToken: Sendable, Equatable, CustomStringConvertible {
    public let storeID: String
    public let change: Int64

    public init(storeID: String, change: Int64) {
        self.storeID = storeID
        self.change = change
    }

    public init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "bt1", let change = Int64(parts[2]), change >= 0 else { return nil }
        self.init(storeID: String(parts[1]), change: change)
    }

    public var description: String { "bt1:\(storeID):\(change)" }
}

/// One entry of the list of changes.
public enum Change: Sendable, Equatable {
    case changed(Record)
    /// An undo took the record out again.
    case removed(RecordID, localID: String)
}

extension Store {
    public func token() throws -> ChangeToken {
        ChangeToken(storeID: try storeID, change: try lastChange())
    }

    /// Visits what changed after `token`, oldest first, at most `limit` entries, and returns the token to go on with. Nil
    /// starts at the beginning.
    public func changes(
        since token: ChangeToken?, limit: Int = .max, _ body: (Change) throws -> Void
    ) throws -> (token: ChangeToken, more: Bool) {
        let now = try self.token()
        if let token {
            guard token.storeID == now.storeID, token.change <= now.change else {
                throw BackupError(
                    .refused, "the change token is not of this store, or of a time before it was reset", at: path,
                    remedy: "start again without a token (a full resync)")
            }
        }
        let start = token?.change ?? 0
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns), row_hash, 0 AS gone FROM record WHERE change > ?1
            UNION ALL SELECT change, zone, name, type, local_id, '{}', NULL, 0, 0, NULL, 0, 0, NULL, NULL, 1
            FROM removed WHERE change > ?1 ORDER BY change
            """
        ).bind(1, start)
        var last = start
        var count = 0
        while try query.step() {
            if count == limit { return (ChangeToken(storeID: now.storeID, change: last), true) }
            let gone = query.integer(14) != 0
            guard let stored = try gone ? Self.storedRecord(query) : ifSound({ try RowReader.record(query) }) else {
                continue
            }
            noteIfChanged(query)
            try body(gone ? .removed(stored.record.id, localID: stored.record.localID) : .changed(stored.record))
            last = stored.change
            count += 1
        }
        return (now, false)
    }
}
