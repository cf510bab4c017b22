/// How a store stands to its hub.
struct HubLink: Sendable, Equatable {
    var hubID: String
    var location: String
    var user: String?
    /// Where the next pull goes on; nil: at the beginning.
    var token: String?
    /// The newest place in the hub's history that this store knows anything of: by a push while others wrote, or by a
    /// conflict. A hub that was brought back from a backup may know `token` and not this one.
    var head: String?
    /// Rows with a change number up to this one are on the hub, or held.
    var pushedThrough: Int64 = 0
    var syncedAt: Timestamp?

    var newest: String? { head ?? token }

    /// Notes a push that the hub took; false when somebody else wrote meanwhile.
    mutating func pushed(from before: String, to after: String) -> Bool {
        head = after
        guard before == token else { return false }
        token = after
        return true
    }
}

/// Something that cannot go to the hub, or not come from it. It waits and blocks nothing else.
public struct Held: Sendable, Equatable {
    public enum Kind: String, Sendable {
        /// Larger than the hub takes.
        case size
        /// The hub does not let this user write there.
        case permission
        /// The hub has a version for everybody, and a copy that is kept on this device stands in its place.
        case local
        /// The hub's version cannot be read.
        case damaged
        /// An asset whose bytes are not here, or not on the hub.
        case missing
        /// The hub's version is of a newer schema than this tool knows; `size` is its number.
        case newer
        /// The row of the store is damaged.
        case broken
    }

    public let id: RecordID
    public let kind: Kind
    public let reason: String
    public let size: Int64
    public let since: Timestamp
    /// Whether it waits on the hub for this device; else it is here, and waits for the hub.
    public let isIncoming: Bool
}

/// What waits for the next sync.
public struct SyncState: Sendable {
    public var location: String
    public var syncedAt: Timestamp?
    public var pending = 0
    public var held: [Held] = []
    /// Files that did not come yet because a sync did not finish.
    public var awaited: [String] = []
}

extension Store {
    func hubLink() throws -> HubLink? {
        // Who only reads meets stores of every version.
        let head = try database.integer("PRAGMA user_version") > 3 ? "head" : "NULL"
        let query = try database.statement(
            "SELECT hub_id, location, user, token, pushed_through, synced_at, \(head) FROM hub_link")
        defer { query.reset() }
        guard try query.step() else { return nil }
        return HubLink(
            hubID: query.text(0), location: query.text(1), user: query.optionalText(2), token: query.optionalText(3),
            head: query.optionalText(6), pushedThrough: try pushMark(query.integer(4)),
            syncedAt: query.optionalInteger(5).map { Timestamp(milliseconds: $0) })
    }

    /// A mark that no change of this store has reached, or a damaged counter, would keep changes from being pushed: then all
    /// are looked at.
    private func pushMark(_ mark: Int64) throws -> Int64 {
        guard let counter = try soundCounter() else { return 0 }
        return 0...max(changeCounter, counter) ~= mark ? mark : 0
    }

    /// Must run inside `write`.
    func setHubLink(_ link: HubLink) throws {
        try database.statement(
            """
            INSERT OR REPLACE INTO hub_link (id, hub_id, location, user, token, pushed_through, synced_at, head)
            VALUES (1, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        .bind(1, link.hubID).bind(2, link.location).bind(3, link.user).bind(4, link.token)
        .bind(5, link.pushedThrough).bind(6, link.syncedAt?.milliseconds).bind(7, link.head).run()
        try RowSeal.link.seal("1", self)
    }

    /// Nil for a store that never synced.
    public func syncState() throws -> SyncState? {
        guard try hasSyncTables, let link = try hubLink() else { return nil }
        var state = SyncState(location: link.location, syncedAt: link.syncedAt)
        state.pending = try pendingRecords(after: link.pushedThrough) + filesForTheHub(after: link.pushedThrough)
        state.held = try held()
        state.awaited = try filesOnTheWay()
        return state
    }

    /// A store of the first version that nobody has written since has none of this.
    var hasSyncTables: Bool { get throws { try database.integer("PRAGMA user_version") > 1 } }

    /// Rows that the hub does not have as they are. What is kept on this device is not for the hub.
    static let isPending = "\(isNotOnHub) AND NOT (local_only AND deleted_at IS NULL)"
    /// The same, whether or not they are kept on this device.
    static let isNotOnHub = "(clean_at IS NOT change OR hub_version IS NULL OR NOT \(HubSeal.isSound))"

    func pendingRecords(after change: Int64) throws -> Int {
        guard try hasSyncTables else {
            return try database.integer("SELECT count(*) FROM record WHERE NOT (local_only AND deleted_at IS NULL)")
                .asInt
        }
        let query = try database.statement("SELECT count(*) FROM record WHERE change > ? AND \(Self.isPending)")
            .bind(1, change)
        defer { query.reset() }
        return try query.step() ? query.integer(0).asInt : 0
    }

    // MARK: What is held

    func held() throws -> [Held] {
        let query = try database.prepare(
            """
            SELECT zone, name, kind, reason, size, since, kind IN ('damaged', 'newer') OR zone = '\(Self.assetZone)'
            AND EXISTS (SELECT 1 FROM asset_sync WHERE path = name AND wanted) FROM held ORDER BY zone, name
            """)
        var found: [Held] = []
        while try query.step() {
            guard let kind = Held.Kind(rawValue: query.text(2)) else { continue }
            found.append(
                Held(
                    id: RecordID(zone: query.text(0), name: query.text(1)), kind: kind, reason: query.text(3),
                    size: query.integer(4), since: Timestamp(milliseconds: query.integer(5)),
                    isIncoming: query.integer(6) != 0))
        }
        return found
    }

    /// Must run inside `write`.
    func hold(_ id: RecordID, _ kind: Held.Kind, _ reason: String, size: Int = 0) throws {
        try database.statement(
            """
            INSERT INTO held VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET kind = excluded.kind, reason = excluded.reason, size = excluded.size
            """
        ).bind(1, id.zone).bind(2, id.name).bind(3, kind.rawValue).bind(4, reason).bind(5, Int64(size))
            .bind(6, clock.now().milliseconds).run()
    }

    func release(_ id: RecordID) throws {
        try database.statement(Self.deleteHeld).bind(1, id.zone).bind(2, id.name).run()
    }

    private static let deleteHeld = Query("DELETE FROM held WHERE zone = ? AND name = ?")

    // MARK: Ancestors

    func ancestor(_ id: RecordID) throws -> Ancestor? {
        let query = try database.statement(Self.ancestorByIdentity).bind(1, id.zone).bind(2, id.name)
        defer { query.reset() }
        // What is not as the store has written it is as if it were not known.
        guard try query.step(), isAncestorAsWritten(query) else { return nil }
        return try ifReadable { try Self.ancestor(query) }
    }

    private static func ancestor(_ row: Statement) throws -> Ancestor {
        try Fields.check(row.text(5))
        return Ancestor(
            fields: row.text(5), fieldTimes: try times(row.optionalText(6)),
            modifiedAt: Timestamp(milliseconds: row.integer(8)), isDeleted: !row.isNull(12))
    }

    func setAncestor(_ hub: Record) throws {
        let insert = try database.statement(Self.insertAncestor)
        Self.bind(hub, change: 0, to: insert)
        try insert.bind(14, hasher.row(hub, 0)).run()
    }

    func dropAncestor(_ id: RecordID) throws {
        try database.statement(Self.deleteAncestor).bind(1, id.zone).bind(2, id.name).run()
    }

    private static let ancestorByIdentity = Query(
        "SELECT \(ancestorColumns) FROM ancestor WHERE zone = ? AND name = ?")
    private static let insertAncestor = Query(
        """
        INSERT OR REPLACE INTO ancestor (\(recordColumns), row_hash)
        VALUES (?1, ?2, ifnull(?3, ?5), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
        """)
    private static let deleteAncestor = Query("DELETE FROM ancestor WHERE zone = ? AND name = ?")

    // MARK: Another hub

    /// Forgets what a hub knew, and nothing else: the first half of a full resync. Must run inside `write`.
    func forgetHub() throws {
        try keepUnsaidChanges()
        try database.execute(
            """
            UPDATE record SET (hub_version, clean_at, hub_seal) =
                (SELECT 0, state, \(HubSeal.number(version: "0", cleanAt: "state")) FROM (SELECT CASE
                    WHEN NOT \(HubSeal.isSound) OR hub_version = 0 AND clean_at = \(HubSeal.unknown)
                        OR \(HubSeal.lacksAncestor) THEN \(HubSeal.unknown)
                    WHEN hub_version = 0 AND clean_at = 0 OR EXISTS (SELECT 1 FROM ancestor
                        WHERE ancestor.zone = record.zone AND ancestor.name = ifnull(record.name, record.local_id)) THEN 0
                    END AS state))
            WHERE hub_version IS NOT NULL OR NOT \(HubSeal.isSound);
            DELETE FROM ancestor; DELETE FROM held; DELETE FROM asset_sync; DELETE FROM hub_link;
            """)
    }

    /// Without ancestors only times decide. A change that its times do not show (an undo brings old times back) gets
    /// times that do, or it would be lost to the version that it took the place of.
    private func keepUnsaidChanges() throws {
        for id in try brokenAncestors() { try dropAncestor(id) }
        let query = try database.prepare("SELECT \(Self.ancestorColumns) FROM ancestor")
        while try query.step() {
            let id = Self.ancestorID(query)
            guard let before = try ifReadable({ try Self.ancestor(query) }),
                let stored = try ifSound({ try self.record(id) }) ?? nil
            else { continue }
            let record = try stored.record.newer(than: before)
            if record != stored.record { try put(record, replacing: stored) }
        }
    }
}

extension Record {
    /// The record with times that show what was changed in it.
    fileprivate func newer(than before: Ancestor) throws -> Record {
        func next(_ time: Timestamp) -> Timestamp { Timestamp(milliseconds: time.milliseconds + 1) }
        let latest = before.fieldTimes.values.reduce(before.modifiedAt, max)
        var record = self
        if isDeleted || before.isDeleted {
            guard isDeleted != before.isDeleted, latestTime <= latest else { return self }
            if isDeleted { return tombstone(at: next(latest)) }
            record.modifiedAt = next(latest)
            return record
        }
        let old = Dictionary(
            try Fields.parse(before.fields).map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        let new = Dictionary(
            try Fields.parse(fields).map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        for name in Set(old.keys).union(new.keys) {
            if let value = new[name], let was = old[name], try Fields.same(value, was) { continue }
            let was = before.fieldTimes[name] ?? before.modifiedAt
            let now = fieldTimes[name] ?? (new[name] == nil ? .distantPast : modifiedAt)
            if now <= was { record.fieldTimes[name] = next(was) }
        }
        return record
    }
}

extension Int64 {
    var asInt: Int { Int(truncatingIfNeeded: self) }
}
