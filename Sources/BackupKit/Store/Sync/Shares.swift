/// Who a zone is shared with: records, so that they travel with everything else.
extension Store {
    public func share(of zone: String) throws -> Share? {
        guard let stored = try record(Share.id(of: zone)), Share.isShare(stored.record), !stored.record.isDeleted else {
            return nil
        }
        return try Share(fields: stored.record.fields)
    }

    /// Lets a user into a zone. `owner` is who the zone belongs to when it is shared for the first time; `caller` is who
    /// asks, where the store has no user yet.
    @discardableResult
    public func share(
        _ zone: String, with user: String, _ permission: Share.Permission, owner: String?, by caller: String? = nil
    ) throws -> Share {
        try curate("share", ["\(zone) with \(user)"]) {
            let known = try share(of: zone)
            if known == nil { try checkShareable(zone) }
            guard let owner = try known?.owner ?? owner ?? hubLink()?.user else {
                throw BackupError(
                    .usage, "has no owner yet", at: zone, remedy: "give --owner NAME, or your own name with --user NAME"
                )
            }
            try checkOwner(owner, of: zone, caller)
            guard user != owner else { throw BackupError(.usage, "belongs to '\(user)' already", at: zone) }
            var share = known ?? Share(owner: owner)
            share.participants[user] = permission
            try put(share, zone)
            return share
        }.result
    }

    /// Takes a user out of a zone, or with nil ends the sharing.
    @discardableResult
    public func unshare(_ zone: String, _ user: String?, by caller: String? = nil) throws -> Share? {
        try curate("unshare", [zone]) { () -> Share? in
            guard var share = try share(of: zone), let stored = try record(Share.id(of: zone)) else {
                throw BackupError(.failed, "is not shared", at: zone)
            }
            if zone != Self.assetZone { try checkOwner(share.owner, of: zone, caller) }
            guard let user else {
                try put(stored.record.tombstone(at: timeAfter(stored.record)), replacing: stored)
                return nil
            }
            guard share.participants.removeValue(forKey: user) != nil else {
                throw BackupError(.failed, "is not shared with '\(user)'", at: zone)
            }
            try put(share, zone)
            return share
        }.result
    }

    /// The hub takes a share from its owner only, so another user's would wait for ever.
    private func checkOwner(_ owner: String, of zone: String, _ caller: String?) throws {
        let synced = try hubLink()?.user
        guard let user = synced ?? caller, user != owner else { return }
        throw BackupError(
            .refused,
            "only its owner '\(owner)' may share it, and \(synced == nil ? "you are" : "this store syncs as") '\(user)'",
            at: zone, remedy: "ask '\(owner)' to do it")
    }

    /// A share of a mistyped zone would leave the right one open to everybody. Other devices may have brought records of a
    /// zone to the hub that wait here.
    private func checkShareable(_ zone: String) throws {
        guard zone != Self.assetZone else {
            throw BackupError(
                .usage, "cannot be shared: files go to everybody who uses the hub", at: zone,
                remedy: "share the zone of the records that name them")
        }
        let query = try database.prepare(
            """
            SELECT zone FROM record WHERE type <> '\(Share.recordType)' AND zone <> '\(Self.assetZone)'
            UNION SELECT zone FROM held WHERE zone <> '\(Self.assetZone)' ORDER BY zone
            """)
        var zones: [String] = []
        while try query.step() { zones.append(query.text(0)) }
        if zones.contains(zone) { return }
        let isEmpty = zones.isEmpty
        throw BackupError(
            .refused, "no record is in this zone", at: zone,
            remedy: isEmpty
                ? "import its records first, then share it and sync"
                : "the zones of this store are \(firstNames(zones, most: 9))")
    }

    /// Shares that the hub does not have as they are, deleted ones included.
    func pendingShares(damaged: ((DamagedRow) throws -> Void)? = nil) throws -> [Synchronizer.PendingRow] {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns), \(HubSeal.version), row_hash FROM record
            WHERE type = '\(Share.recordType)' AND type <> 'PuppyEvent' AND \(Self.isPending) ORDER BY change
            """)
        var found: [Synchronizer.PendingRow] = []
        while try query.step() {
            let row = try ifSound(damaged) { try pendingRow(query) }
            if let row, Share.isShare(row.record) { found.append(row) }
        }
        return found
    }

    /// From a row of the record's columns, `HubSeal.version` and `row_hash`.
    func pendingRow(_ row: Statement) throws -> Synchronizer.PendingRow {
        let stored = try rowToPush(row)
        let base = row.optionalInteger(13).flatMap { $0 > 0 ? $0 : nil }
        return Synchronizer.PendingRow(
            change: stored.change, record: stored.record, base: base, wasOnAHub: !row.isNull(13))
    }

    /// Zones that are shared here, while the hub has no share of them: whatever lay there would be everybody's.
    func zonesWithoutTheirShare() throws -> Set<String> {
        var broken: [RecordID] = []
        let shares = try pendingShares { broken.append($0.id) }
        // One that cannot be read may say anything.
        let waiting = shares.map(\.record).filter { !$0.isDeleted && !Share.isOfFiles($0) }.map(\.id) + broken
        return Set(try waiting.filter { try ancestor($0)?.isDeleted ?? true }.map(\.zone))
    }

    private func put(_ share: Share, _ zone: String) throws {
        let stored = try record(Share.id(of: zone))
        if let stored, !Share.isShare(stored.record) {
            throw BackupError(.exists, "has another record of the name 'share'", at: zone)
        }
        let now = stored.map { timeAfter($0.record) } ?? self.now()
        var record = Record(
            id: Share.id(of: zone), type: Share.recordType, localID: "share:\(zone)", fields: share.fields,
            createdAt: now, modifiedAt: now)
        if let old = stored?.record {
            record.localID = old.localID
            if !old.isDeleted { record.createdAt = old.createdAt }
            // Members that we do not know stay as they are.
            let fields = try Fields.parse(old.fields).filter { !["owner", "participants"].contains($0.name) }
            record.fields = Fields.text(try Fields.parse(share.fields) + fields)
        }
        try put(record, replacing: stored)
    }
}

extension Share {
    /// Files are for everybody who uses a hub. An earlier version made shares of their zone; they count for nothing.
    static func isOfFiles(_ record: Record) -> Bool { isShare(record) && record.id.zone == Store.assetZone }
}
