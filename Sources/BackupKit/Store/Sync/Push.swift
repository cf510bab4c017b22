/// From the store to the hub.
extension Synchronizer {
    /// Sends what waits. False when somebody else wrote meanwhile, so that there is something to pull.
    func push() throws -> Bool { try keepingAcknowledgements { try pushAll() } }

    /// Sends the shares that wait, before anything of their zones. The result is that of `push`.
    func pushShares() throws -> Bool {
        try keepingAcknowledgements {
            var isAlone = true
            var refused: Set<Int64> = []
            for _ in 0..<Self.roundsMax {
                let batch = try store.pendingShares().filter { !refused.contains($0.change) }
                    .prefix(identity.limits.recordsPerPush)
                guard !batch.isEmpty else { return isAlone }
                switch try send(Array(batch)) {
                case .accepted(let alone):
                    isAlone = isAlone && alone
                    try acknowledge()
                case .rejected(let rows): refused.formUnion(rows)
                }
            }
            throw HubError.busy(retryAfter: 1)
        }
    }

    private func keepingAcknowledgements(_ body: () throws -> Bool) throws -> Bool {
        do { return try body() } catch let error as HubError where error != .tokenUnknown {
            try acknowledge()
            throw error
        }
    }

    private func pushAll() throws -> Bool {
        var isAlone = true
        // Rows that the hub refuses stay behind while the others of their batch go.
        var refused: Set<Int64> = []
        var rejections = 0
        let open = try store.zonesWithoutTheirShare()
        while true {
            let (batch, last, isAll) = try nextBatch(without: refused, notIn: open)
            guard !batch.isEmpty else {
                try acknowledge()
                try passOver(through: last, isAll)
                if isAll { return isAlone }
                continue
            }
            switch try send(batch) {
            case .accepted(let alone):
                isAlone = isAlone && alone
                link.pushedThrough = last
                refused = []
                rejections = 0
                // What is killed before this is written is pulled again, and seen to be the same.
                if unwritten.count >= Self.rowsAtOnce { try acknowledge() }
            case .rejected(let rows):
                rejections += 1
                guard rejections < Self.roundsMax else { throw HubError.busy(retryAfter: 1) }
                refused.formUnion(rows)
            }
        }
    }

    private enum Sent {
        /// Whether nobody else wrote meanwhile.
        case accepted(isAlone: Bool)
        /// Nothing of it; these rows stay here.
        case rejected(Set<Int64>)
    }

    private func send(_ batch: [PendingRow]) throws -> Sent {
        let push = HubPush(items: batch.map { .init($0.record, base: $0.base) }, after: link.newest)
        switch try ask({ try hub.push(push, by: link.user) }) {
        case .accepted(let first, let before, let after):
            let isAlone = link.pushed(from: before, to: after)
            unwritten += batch.enumerated().map { Acknowledgement($1, version: first + Int64($0)) }
            return .accepted(isAlone: isAlone)
        case .rejected(let conflicts, let reasons, let head):
            try acknowledge()
            return .rejected(try takeIn(conflicts, reasons, head, of: batch))
        }
    }

    /// Whether the hub has the record with the same fields: the change was undone here, which only set its times.
    private func isOnHub(_ record: Record) throws -> Bool {
        guard !record.isDeleted, let known = try store.ancestor(record.id), !known.isDeleted else { return false }
        return sameBytes(known.fields, record.fields)
    }

    /// Takes in what speaks against a batch, and returns the rows of it that have to stay.
    private func takeIn(
        _ conflicts: [HubRecord], _ reasons: [Int: String], _ head: String, of batch: [PendingRow]
    ) throws -> Set<Int64> {
        var refused: Set<Int64> = []
        let conflicting = Set(conflicts.map(\.record.id))
        try makeWay(for: conflicts)
        try store.write {
            for (index, reason) in reasons where batch.indices.contains(index) {
                let row = batch[index]
                refused.insert(row.change)
                // Whoever may write there finds the same conflict, and nobody here can do anything about it.
                if Conflict.isUndecided(row.record) { continue }
                if try isOnHub(row.record) {
                    try store.dropAncestor(row.record.id)
                    try store.markClean(row.change)
                    try release(row.record.id)
                    continue
                }
                // It goes when somebody has sent that version again.
                let isDamaged = reason.hasPrefix(HubDefect.ofIt)
                try hold(row.record.id, .permission, reason, size: isDamaged ? 0 : row.record.hubBytes)
            }
            for conflict in conflicts { try apply(conflict) }
            try decidePutOff()
            try notePublications(conflicts)
            try hear(of: head)
            for row in batch {
                guard conflicting.contains(row.record.id) else { continue }
                // One that could not be taken in keeps its record here, and the others go on.
                if try store.isStill(row.change, onVersion: row.base) { refused.insert(row.change) }
            }
        }
        return refused
    }

    /// So many acknowledgements are written in one transaction: each costs a wait for the disk.
    private static let rowsAtOnce = 4000

    struct PendingRow {
        let change: Int64
        let record: Record
        let base: Int64?
        let wasOnAHub: Bool
    }

    /// What the hub has taken, and the store does not say yet.
    struct Acknowledgement {
        let change: Int64
        let version: Int64
        let id: RecordID
        let mayHaveAncestor: Bool
        let isShare: Bool

        init(_ row: PendingRow, version: Int64) {
            (change, self.version, id) = (row.change, version, row.record.id)
            (mayHaveAncestor, isShare) = (row.wasOnAHub, Share.isShare(row.record))
        }
    }

    /// Includes rows with the mark of records that are kept on this device: damage may have set it.
    private static let nextRows = Query(
        """
        SELECT \(Store.recordColumns), \(HubSeal.version), row_hash FROM record WHERE change > ? AND \(Store.isNotOnHub)
        ORDER BY change LIMIT ?
        """)

    /// The next rows to push; `last` is how far the mark may go when they are on the hub.
    private func nextBatch(
        without refused: Set<Int64>, notIn open: Set<String>
    ) throws -> (rows: [PendingRow], last: Int64, isAll: Bool) {
        let newest = try store.lastChange()
        guard link.pushedThrough < newest else { return ([], newest, true) }
        let limit = identity.limits.recordsPerPush
        let query = try store.database.statement(Self.nextRows).bind(1, link.pushedThrough)
            .bind(2, Int64(limit + refused.count))
        defer { query.reset() }
        var rows: [PendingRow] = []
        var kept: [(PendingRow, Held.Kind, String)] = []
        var broken: [DamagedRow] = []
        var (last, count) = (link.pushedThrough, 0)
        while rows.count < limit, try query.step() {
            count += 1
            guard let row = try store.ifSound({ broken.append($0) }, { try store.pendingRow(query) }) else {
                // A number that is out of range must not move the mark beyond what this store has given out.
                last = min(max(last, query.integer(0)), newest)
                continue
            }
            last = row.change
            if refused.contains(row.change) || row.record.isLocalOnly && !row.record.isDeleted { continue }
            if let (kind, reason) = problem(with: row.record, open) {
                kept.append((row, kind, reason))
            } else {
                rows.append(row)
            }
        }
        query.reset()
        let isAll = count < limit + refused.count && rows.count < limit
        if !kept.isEmpty || !broken.isEmpty {
            try store.write {
                for row in broken { try hold(row) }
                for (row, kind, reason) in kept {
                    let size = row.record.nameProblem == nil ? row.record.hubBytes : .max
                    try hold(row.record.id, kind, reason, size: size)
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

    /// Why a record has to stay on this device, or nil.
    private func problem(with record: Record, _ open: Set<String>) -> (Held.Kind, String)? {
        if let reason = record.nameProblem { return (.size, reason) }
        let (size, most) = (record.hubBytes, identity.limits.recordBytes)
        if size > most { return (.size, "has \(size) bytes; the hub takes \(most) a record") }
        return open.contains(record.id.zone) ? (.permission, Self.lacksShare) : nil
    }

    static let lacksShare = "the hub does not yet know with whom its zone is shared, so everybody could read it there"

    private func passOver(through last: Int64, _ isAll: Bool) throws {
        guard last > link.pushedThrough else { return }
        link.pushedThrough = last
        try store.write { try setMark() }
    }

    /// Writes how far the hub has what was changed here; removals that go last still count as a change. Must
    /// run inside `write`.
    private func setMark() throws {
        if removalsWait { _ = store.nextChange() }
        try store.setHubLink(link)
    }

    private static let markClean = Query(
        """
        UPDATE record SET hub_version = change + ?1, clean_at = change,
        hub_seal = \(HubSeal.number(version: "change + ?1", cleanAt: "change")) WHERE change BETWEEN ?2 AND ?3
        """)

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
                if row.mayHaveAncestor { try store.dropAncestor(row.id) }
                try release(row.id)
                if row.isShare { try retryZone(row.id.zone) }
            }
            try setMark()
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

    /// A share has changed: what was refused may be welcome now, the files of its zone included.
    func retryZone(_ zone: String) throws {
        let zones: Set = [zone, Store.assetZone]
        guard heldIDs.contains(where: { zones.contains($0.zone) }) else { return }
        for held in try store.held() where zones.contains(held.id.zone) && held.kind == .permission {
            try retry(held.id)
        }
    }
}
