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
        var state = StoreState(bibliography: 0, others: 0)
        let records = try database.prepare(
            """
            SELECT type IN ('\(RecordType.publication)', '\(RecordType.bibliographyPart)') AND deleted_at IS NULL,
            \(Self.recordColumns) FROM record ORDER BY change
            """)
        while try records.step() {
            if records.integer(0) == 1 {
                add(records, from: 1, to: &state.bibliography)
            } else {
                add(records, from: 1, to: &state.others)
            }
        }
        for query in [
            "SELECT path, size, sha256, local_only FROM asset ORDER BY path",
            "SELECT key, value FROM setting ORDER BY key",
            "SELECT value FROM meta WHERE key = 'schema_version'",
        ] {
            let rows = try database.prepare(query)
            while try rows.step() { add(rows, from: 0, to: &state.others) }
            state.others = hasher.text(query, after: state.others)
        }
        return state
    }

    private func add(_ row: Statement, from first: Int32, to state: inout UInt64) {
        for column in first..<row.columnCount {
            switch row.kind(column) {
            case .integer:
                state = withUnsafeBytes(of: row.integer(column)) { hasher.text($0, after: state) }
            case .text: state = hasher.text(row.bytes(column), after: state)
            // An empty text is not the same as none.
            case .other: state = hasher.text(row.isNull(column) ? "null" : row.text(column), after: ~state)
            }
        }
    }
}
