/// Records of which the store does not know what the hub has: what it noted of that is not what it has written.
struct OddHubState {
    let id: RecordID

    private static let remedy = "'backup-tool store repair' lets the next sync compare both versions"

    var finding: Finding {
        Finding(
            .recordChanged, .error, id.description, "what the store knows of the hub's version \(DamagedRow.changed)",
            remedy: Self.remedy)
    }

    var ancestorFinding: Finding {
        Finding(
            .recordChanged, .error, id.description,
            "its version from before it was changed here \(DamagedRow.changed)", remedy: Self.remedy)
    }
}

extension OddHubState {
    /// From a row of `recordColumns`.
    init(row: Statement) {
        id = RecordID(zone: row.text(1), name: row.text(row.isNull(2) ? 4 : 2))
    }
}

extension Store {
    static let hasOddHubState = "(NOT \(HubSeal.isSound) OR \(HubSeal.lacksAncestor))"

    /// The rows of records whose state on the hub is not what the store has written, or is not whole.
    func oddHubStates() throws -> [(change: Int64, id: RecordID)] {
        let query = try database.prepare("SELECT \(Self.recordColumns) FROM record WHERE \(Self.hasOddHubState)")
        var rows: [(change: Int64, id: RecordID)] = []
        while try query.step() { rows.append((query.integer(0), OddHubState(row: query).id)) }
        return rows
    }
}

extension StoreRepair {
    /// Nothing tells what it was. The next sync merges both versions, and keeps what loses.
    mutating func mendHubMemory() throws {
        for id in try store.brokenAncestors() {
            try store.dropAncestor(id)
            note(.queue, "\(id)", "its damaged version from before it was changed here was removed")
        }
        for (change, id) in try store.oddHubStates() {
            try store.noteUnknown(change)
            try store.dropAncestor(id)
            note(.queue, "\(id)", "will be compared with the hub's version by the next sync")
        }
    }
}
