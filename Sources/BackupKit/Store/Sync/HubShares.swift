/// With whom the zones of a hub in a file are shared.
extension FileHub {
    /// A zone whose share cannot be read is closed to everybody.
    func share(of zone: String) throws -> Share? {
        guard zone != Store.assetZone else { return nil }
        do {
            guard let found = try record(Share.id(of: zone))?.record, Share.isShare(found), !found.isDeleted else {
                return try hasDamagedName(Share.id(of: zone)) ? Self.unreadable : nil
            }
            return try Share(fields: found.fields)
        } catch let error as BackupError where error.code == .damaged { return Self.unreadable }
    }

    /// No caller has this name.
    static let unreadable = Share(owner: "\0")

    func refusal(of record: Record, _ share: Share?, _ caller: String?) throws -> String? {
        if Share.isShare(record) {
            guard !Share.isOfFiles(record) || record.isDeleted else {
                return "files go to everybody who uses the hub, so their zone is not shared"
            }
            let new = record.isDeleted ? nil : try? Share(fields: record.fields)
            if new == nil, !record.isDeleted { return "is a share that cannot be read" }
            // Whoever owns the new share may put it in the place of one that cannot be read.
            let known = share == Self.unreadable ? nil : share?.owner
            let owner = known ?? (new?.owner ?? caller)
            return owner == caller ? nil : "only the owner of the zone may share it"
        }
        guard let share, !share.mayWrite(caller) else { return nil }
        if share == Self.unreadable { return "the hub's share of its zone cannot be read" }
        return "\(caller.map { "'\($0)'" } ?? "who gives no name") may not write to the zone of '\(share.owner)'"
    }

    /// Whether a share, as it is about to be, lets somebody in who could not read the zone before.
    func opens(_ record: Record) throws -> Bool {
        guard let before = try share(of: record.id.zone) else { return false }
        guard !record.isDeleted else { return true }
        let after = try Share(fields: record.fields)
        return !before.mayRead(after.owner) || after.participants.keys.contains { !before.mayRead($0) }
    }

    /// Puts a zone's records behind every token that was given out.
    func bringForward(_ zone: String, after start: Int64) throws -> Int64 {
        var places: [(change: Int64, name: String)] = []
        try forEachRow(Self.names) { place, row in
            if let row, row.equals(1, zone) { places.append((place, row.text(2))) }
            return true
        }
        var last = start
        for (change, name) in places {
            last += 1
            try move(change, of: RecordID(zone: zone, name: name), to: last)
        }
        return last
    }
}
