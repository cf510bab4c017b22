/// A table of which triggers note each row a second time, as text in the table `witness`: a change behind SQLite's back shows
/// when the two differ.
struct Witness: Sendable {
    let table: String
    /// The columns that tell its rows apart.
    let place: [String]
    /// What its rows are noted under, of columns with a prefix.
    let key: @Sendable (String) -> String
    /// What is noted of a row; of one where it is NULL, nothing is.
    let row: String
    /// Where each row is noted whole, so that it can be put back: its other columns.
    var rest: [String] = []

    static let asset = Witness(
        "asset", by: "path", row: "size || ' ' || sha256 || ' ' || local_only || ' ' || modified_ns")
    /// What people wrote besides records, and `meta`.
    static let ofData = [
        asset, Witness("setting", by: "key", row: "modified_at || ' ' || value"),
        Witness("meta", by: "key", row: "value"),
    ]
    static let batch = Witness(
        table: "batch", place: ["id"], key: { "CAST(\($0)id AS TEXT)" },
        row: quoted("kind", "source", "started_at", "first_change", "last_change", "summary", "undone_at"))
    /// What an undo goes by, besides its large tables (`HistorySeal`).
    static let ofHistory = [
        batch,
        Witness(
            table: "batch_asset", place: ["batch", "path"], key: { "\($0)batch || ' ' || \($0)path" },
            row: quoted("size", "sha256", "local_only", "modified_ns", "kept")),
        Witness(
            table: "batch_setting", place: ["batch", "key"], key: { "\($0)batch || ' ' || \($0)key" },
            row: quoted("value", "modified_at")),
    ]

    static let purged = Witness(whole: "purged", by: ["zone", "name"], ["type", "local_id"])
    /// What the store remembers beside records, and no backup holds.
    static let ofMemory = [
        Witness(whole: "listed", by: ["name", "zone", "listing"], []),
        Witness(whole: "outlived", by: ["zone", "name"], ["deleted_at"]),
        Witness(whole: "purge_trace", by: ["kind", "name"], ["records"]),
        Witness(whole: "file_elsewhere", by: ["path"], ["size", "sha256"]),
        Witness(whole: "conflict_number", by: ["id"], ["record_zone", "record_name"]),
    ]

    private static func quoted(_ columns: String...) -> String {
        columns.map { "quote(\($0))" }.joined(separator: " || ' ' || ")
    }

    var triggers: String {
        let isSame = place.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ")
        let note = """
            INSERT INTO witness SELECT '\(table)', \(key("")), \(row) FROM \(table)
            WHERE \(isSame) AND (\(row)) IS NOT NULL;
            """
        func forget(_ which: String) -> String {
            "DELETE FROM witness WHERE place = '\(table)' AND key = \(key("\(which)."));"
        }
        return """
            CREATE TRIGGER \(table)_witness_insert AFTER INSERT ON \(table) BEGIN \(forget("NEW")) \(note) END;
            CREATE TRIGGER \(table)_witness_update AFTER UPDATE ON \(table)
                BEGIN \(forget("OLD")) \(forget("NEW")) \(note) END;
            CREATE TRIGGER \(table)_witness_delete AFTER DELETE ON \(table) BEGIN \(forget("OLD")) END;
            """
    }

    /// Takes the table as it is now for what the tool has written.
    func refresh(_ database: SQLite) throws {
        try database.execute(
            """
            DELETE FROM witness WHERE place = '\(table)';
            INSERT OR REPLACE INTO witness SELECT '\(table)', \(key("")), \(row) FROM \(table) WHERE (\(row)) IS NOT NULL;
            """)
    }

    static func refresh(_ witnesses: [Witness], _ database: SQLite) throws {
        for witness in witnesses { try witness.refresh(database) }
    }
}

extension Witness {
    private init(whole table: String, by place: [String], _ rest: [String]) {
        self.init(table: table, place: place, key: { Self.whole(place, $0) }, row: Self.whole(rest), rest: rest)
    }

    private static func whole(_ columns: [String], _ prefix: String = "") -> String {
        columns.isEmpty ? "''" : columns.map { "hex(\(prefix)\($0))" }.joined(separator: " || ' ' || ")
    }

    /// A small table with one column as its key.
    private init(_ table: String, by column: String, row: String) {
        self.init(table: table, place: [column], key: { $0 + column }, row: row)
    }
}
