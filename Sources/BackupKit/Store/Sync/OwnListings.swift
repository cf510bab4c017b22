/// Publications of this device that another device has brought to the hub under the very ids that they have here. An arriving
/// publication of the same key and work is another one beside them: of two entries of one file, one may come first.
extension Synchronizer {
    /// Learns which publications are so, of those that a page may be taken for. Must run before the records are taken, outside
    /// of `write`.
    func askForOwnListings(before page: [HubRecord]) throws {
        var mine: [RecordID: Record] = [:]
        for record in page.map(\.record) where record.type == RecordType.publication {
            for id in try mayBeListings(of: record)
            where id != record.id && listingsAskedFor.insert(id).inserted {
                mine[id] = try unseen(id)?.1
            }
        }
        guard !mine.isEmpty else { return }
        var found = page.filter { mine[$0.record.id] != nil }
        let others = Set(mine.keys).subtracting(found.map(\.record.id)).sorted()
        for start in stride(from: 0, to: others.count, by: identity.limits.recordsPerPush) {
            let group = Array(others[start..<min(others.count, start + identity.limits.recordsPerPush)])
            found += try ask { try hub.fetch(group, for: link.user) }.records
        }
        for theirs in found.map(\.record) {
            guard let record = mine[theirs.id], try isOneRecord(record, theirs, wasOnAHub: false) else { continue }
            ownListings.insert(theirs.id)
            if theirs.isDeleted { deletedListings.insert(theirs.id) }
        }
    }

    /// The publications here that a record which arrives under another id could be.
    private func mayBeListings(of record: Record) throws -> [RecordID] {
        if record.isDeleted {
            return WorkLineage.saysListing(record) ? try listingsUnseen()[record.localID] ?? [] : []
        }
        return try publicationsWithKeys(of: record)
    }
}
