/// From the store to the hub.
extension Synchronizer {
    /// Sends what waits. False when somebody else wrote meanwhile, so that there is something to pull.
    func push() throws -> Bool {
        do { return try pushAll() } catch let error as HubError where error != .tokenUnknown {
            try acknowledge()
            throw error
        }
    }

    private func pushAll() throws -> Bool {
        var isAlone = true
        // Rows that the hub refuses stay behind while the others of their batch go.
        var refused: Set<Int64> = []
        var rejections = 0
        while true {
            let (batch, last, isAll) = try nextBatch(without: refused)
            guard !batch.isEmpty else {
                try acknowledge()
                try passOver(through: last, isAll)
                if isAll { return isAlone }
                continue
            }
            let items = batch.map { HubPush.Item($0.record, base: $0.base) }
            let push = HubPush(items: items, after: link.newest)
            switch try ask({ try hub.push(push, by: options.user) }) {
            case .accepted(let first, let before, let after):
                if !link.pushed(from: before, to: after) { isAlone = false }
                unwritten += batch.enumerated().map { Acknowledgement($1, version: first + Int64($0)) }
                link.pushedThrough = last
                refused = []
                rejections = 0
                // What is killed before this is written is pulled again, and seen to be the same.
                if unwritten.count >= Self.rowsAtOnce { try acknowledge() }
            case .rejected(let conflicts, let reasons, let head):
                rejections += 1
                guard rejections < Self.roundsMax else { throw HubError.busy(retryAfter: 1) }
                try acknowledge()
                try store.write {
                    for (index, reason) in reasons where batch.indices.contains(index) {
                        let row = batch[index]
                        try hold(row.record.id, .permission, reason, size: row.record.hubBytes)
                        refused.insert(row.change)
                    }
                    for conflict in conflicts { try apply(conflict) }
                    try notePublications(conflicts)
                    try hear(of: head)
                    // One that could not be taken in keeps its record here, and the others go on.
                    for row in batch where conflicts.contains(where: { $0.record.id == row.record.id }) {
                        if try store.isStill(row.change, onVersion: row.base) { refused.insert(row.change) }
                    }
                }
            }
        }
    }

    /// So many acknowledgements are written in one transaction: each costs a wait for the disk.
    private static let rowsAtOnce = 4000

    struct PendingRow {
        let change: Int64
        let record: Record
        let base: Int64?
    }

    /// What the hub has taken, and the store does not say yet.
    struct Acknowledgement {
        let change: Int64
        let version: Int64
        let id: RecordID
        let hadBase: Bool
        let isShare: Bool

        init(_ row: PendingRow, version: Int64) {
            (change, self.version, id) = (row.change, version, row.record.id)
            (hadBase, isShare) = (row.base != nil, Share.isShare(row.record))
        }
    }

    private static let nextRows = Query(
        """
        SELECT \(Store.recordColumns), hub_version, row_hash FROM record WHERE change > ? AND \(Store.isPending)
        ORDER BY change LIMIT ?
        """)

    /// The next rows to push; `last` is how far the mark may go when they are on the hub.
    private func nextBatch(without refused: Set<Int64>) throws -> (rows: [PendingRow], last: Int64, isAll: Bool) {
        let newest = try store.lastChange()
        guard link.pushedThrough < newest else { return ([], newest, true) }
        let limit = identity.limits.recordsPerPush
        let query = try store.database.statement(Self.nextRows).bind(1, link.pushedThrough)
            .bind(2, Int64(limit + refused.count))
        defer { query.reset() }
        var rows: [PendingRow] = []
        var oversize: [PendingRow] = []
        var broken: [DamagedRow] = []
        var (last, count) = (link.pushedThrough, 0)
        while rows.count < limit, try query.step() {
            count += 1
            guard let stored = try store.ifSound({ broken.append($0) }, { try store.rowToPush(query) }) else {
                // A number that is out of range must not move the mark beyond what this store has given out.
                last = min(max(last, query.integer(0)), newest)
                continue
            }
            last = stored.change
            if refused.contains(stored.change) { continue }
            let base = query.optionalInteger(13).flatMap { $0 > 0 ? $0 : nil }
            let row = PendingRow(change: stored.change, record: stored.record, base: base)
            if stored.record.hubBytes > identity.limits.recordBytes { oversize.append(row) } else { rows.append(row) }
        }
        query.reset()
        let isAll = count < limit + refused.count && rows.count < limit
        if !oversize.isEmpty || !broken.isEmpty {
            try store.write {
                for row in broken { try hold(row) }
                for row in oversize {
                    let size = row.record.hubBytes
                    let reason = "has \(size) bytes; the hub takes \(identity.limits.recordBytes) a record"
                    try hold(row.record.id, .size, reason, size: size)
                }
            }
        }
        return (rows, isAll ? newest : last, isAll)
    }

    /// Rows that no push comes by, for their numbers are none that this store has given out.
    func holdUnreachable() throws {
        let query = try store.database.prepare(
            "SELECT \(Store.recordColumns) FROM record WHERE change < 1 OR change > \(RowReader.changeLimit)")
        var unreachable: [DamagedRow] = []
        while try query.step() {
            _ = try store.ifSound({ unreachable.append($0) }, { try RowReader.record(query) })
        }
        guard !unreachable.isEmpty else { return }
        try store.write {
            for row in unreachable { try hold(row) }
        }
    }

    private func passOver(through last: Int64, _ isAll: Bool) throws {
        guard last > link.pushedThrough else { return }
        link.pushedThrough = last
        try store.write { try store.setHubLink(link) }
    }

    private static let markClean = Query(
        "UPDATE record SET hub_version = change + ?, clean_at = change WHERE change BETWEEN ? AND ?")

    private func acknowledge() throws {
        let rows = unwritten
        guard !rows.isEmpty else { return }
        unwritten = []
        try store.write {
            var run = 0..<0
            while run.upperBound < rows.count {
                run = Self.run(from: run.upperBound, of: rows)
                let (first, last) = (rows[run.lowerBound], rows[run.upperBound - 1])
                try store.database.statement(Self.markClean).bind(1, first.version - first.change)
                    .bind(2, first.change).bind(3, last.change).run()
            }
            for row in rows {
                if row.hadBase { try store.dropAncestor(row.id) }
                try release(row.id)
                if row.isShare { try retryZone(row.id.zone) }
            }
            try store.setHubLink(link)
        }
        result.pushed += rows.count
    }

    /// Neighbours whose versions are neighbours too, as nearly always: they are marked in one go.
    private static func run(from start: Int, of rows: [Acknowledgement]) -> Range<Int> {
        var end = start + 1
        while end < rows.count, rows[end].change == rows[end - 1].change + 1,
            rows[end].version == rows[end - 1].version + 1
        { end += 1 }
        return start..<end
    }

    /// A share has changed: what was refused may be welcome now.
    func retryZone(_ zone: String) throws {
        guard heldIDs.contains(where: { $0.zone == zone }) else { return }
        for held in try store.held() where held.id.zone == zone && held.kind == .permission { try retry(held.id) }
    }
}
