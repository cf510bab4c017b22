/// The damaged rows of some kinds: those that lie in their tables, and those that were set aside.
final class DamagedRows {
    private let kinds: Set<Kind>
    /// By their lines, so that one that is in both places counts once.
    private var rows: [String: DamagedRow] = [:]

    /// Begins with what was set aside.
    init(_ store: Store, _ kinds: Set<Kind>) throws {
        self.kinds = kinds
        for row in try store.setAside() { add(row) }
    }

    func add(_ row: DamagedRow) { if kinds.contains(row.kind) { rows[row.line] = row } }

    /// `damaged.jsonl`, line by line.
    var lines: [String] { rows.keys.sorted { precedesBytewise($0, $1) } }

    var all: [DamagedRow] { lines.compactMap { rows[$0] } }
}

/// The table `damaged`: rows that a restore brought back as they were, or that a repair took out of their tables.
extension Store {
    func setAside() throws -> [DamagedRow] { try linesSetAside().map(\.row) }

    /// The same, with what their table has: a line may be damaged itself.
    func linesSetAside() throws -> [(line: String, row: DamagedRow)] {
        let query = try database.prepare("SELECT line FROM damaged ORDER BY line")
        var found: [(line: String, row: DamagedRow)] = []
        while try query.step() {
            let row =
                try ifReadable { try DamagedRow(line: query.text(0)) }
                ?? DamagedRow(
                    .record, "a row that was set aside", "is not what was set aside", kind: .records,
                    columns: ["line"], of: query)
            damage.note(row)
            found.append((query.text(0), row))
        }
        return found
    }

    /// Keeps a damaged row beside the others; false when it is there already. Must run inside `write`.
    func setAside(_ row: DamagedRow) throws -> Bool {
        try database.statement("INSERT OR IGNORE INTO damaged VALUES (?, ?, ?)")
            .bind(1, row.line).bind(2, clock.now().milliseconds).bind(3, currentBatch?.id).run()
        guard database.changes > 0 else { return false }
        _ = nextChange()
        return true
    }

    /// Nil when the text that `read` meets is broken.
    func ifReadable<Value>(_ read: () throws -> Value) throws -> Value? {
        do { return try read() } catch let error as BackupError where error.code == .damaged { return nil }
    }
}
