/// What a store holds, as numbers that are cheap to make: the same numbers mean that nothing has changed, whoever wrote in
/// between and whether or not they told the change counter. They mean nothing outside the store, whose seed they use.
struct StoreState: Sendable, Equatable {
    /// Publications, and what stands between them in their files.
    var bibliography: UInt64
    /// Everything else: other records, tombstones, settings and what is known of attachments.
    var others: UInt64
}

extension Store {
    /// Must run inside `read`, like everything that goes by it.
    func state() throws -> StoreState {
        var tally = RowTally()
        return try state(tally: &tally, ofRows: { _, _ in })
    }

    /// The same, and visits every record on the way, in the order of changes.
    func state(
        tally: inout RowTally, damaged: ((DamagedRow) throws -> Void)? = nil,
        visiting body: (StoredRecord) throws -> Void
    ) throws -> StoreState {
        try state(
            tally: &tally,
            ofRows: { row, hash in
                if let stored = try ifSound(damaged, { try StoredRecord(judging: row, as: hash) }) { try body(stored) }
            })
    }

    private func state(
        tally: inout RowTally, ofRows body: (Statement, _ hash: Int64) throws -> Void
    ) throws -> StoreState {
        var state = StoreState(bibliography: 0, others: 0)
        // A statement of its own: the body may use the others.
        let records = try database.prepare("SELECT \(Self.recordColumns), row_hash FROM record ORDER BY change")
        let types = RecordType.ofBibliography
        while try records.step() {
            tally.add(change: records.integer(0))
            // Each byte of a row is hashed once, for this and to tell whether the row is as it was written.
            let hash = hasher.row(of: records)
            let words = (hash, records.optionalInteger(13) ?? ~hash)
            if records.isNull(12), types.contains(where: { records.equals(3, $0) }) {
                state.bibliography = withUnsafeBytes(of: words) { hasher.text($0, after: state.bibliography) }
            } else {
                state.others = withUnsafeBytes(of: words) { hasher.text($0, after: state.others) }
            }
            try body(records, hash)
        }
        for query in [
            "SELECT path, size, sha256, local_only, modified_ns FROM asset ORDER BY path",
            "SELECT key, value, modified_at FROM setting ORDER BY key",
            "SELECT value FROM meta WHERE key IN ('schema_version', 'store_id') ORDER BY key",
            "SELECT line FROM damaged ORDER BY line",
        ] {
            let rows = try database.prepare(query)
            while try rows.step() { add(rows, to: &state.others) }
            state.others = hasher.text(query, after: state.others)
        }
        // What a backup says of records that are gone, and of files that are not here.
        state.others = hasher.text("\(try goneRecords(besides: tally).count)", after: state.others)
        for file in try awaitedFiles() {
            state.others = hasher.text("\(file.path)\n\(file.size) \(file.digest.hex)", after: state.others)
        }
        for path in try filesOnTheWay() { state.others = hasher.text(path, after: state.others) }
        return state
    }

    private func add(_ row: Statement, to state: inout UInt64) {
        for column in 0..<row.columnCount {
            switch row.kind(column) {
            case .integer:
                state = withUnsafeBytes(of: row.integer(column)) { hasher.text($0, after: state) }
            case .text: state = hasher.text(row.bytes(column), after: state)
            // An empty text is not the same as none.
            case .other: state = hasher.text(row.isNull(column) ? "null" : row.text(column), after: ~state)
            }
        }
    }

    /// The newest change of anything that `library.bib` is made of, deletions included.
    func lastBibliographyChange() throws -> Int64 {
        try RecordType.ofBibliography.map { type in
            // The index leaves events out, and is only used where the query does.
            let query = try database.prepare(
                "SELECT max(change) FROM \(rowsByType) WHERE type = ? AND type <> 'PuppyEvent'")
            return try query.bind(1, type).step() ? query.integer(0) : 0
        }.max() ?? 0
    }
}
