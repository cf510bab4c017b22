/// Values that are not of the type of their column: one flipped bit makes a text a blob. Readers take the bytes as they are.
extension StoreRepair {
    /// Gives such values their types back, with the bytes that they have. What was noted of their rows is left as it is, and so
    /// it tells, as hashes do, whether anything else is wrong with them.
    mutating func mendTypes() throws {
        let database = store.database
        let model = try StoreSchema.model()
        for table in try StoreSchema.parts() where table.type == "table" && !table.name.hasPrefix("sqlite_") {
            let columns = try TypedColumn.all(of: table.name, in: model)
            let isWrong = columns.map(\.isWrong).joined(separator: " OR ")
            let count = try database.integer("SELECT count(*) FROM \(table.name) NOT INDEXED WHERE \(isWrong)")
            if count == 0 { continue }
            try database.execute("DROP TRIGGER IF EXISTS \(table.name)_witness_update")
            try database.execute(
                "UPDATE \(table.name) NOT INDEXED SET \(columns.map(\.mended).joined(separator: ", ")) WHERE \(isWrong)"
            )
            try StoreSchema.makeMissing(database)
            let values = count == 1 ? "a value of one row has its" : "values of \(count) rows have their"
            note(.index, "table \(table.name)", "\(values) type again")
        }
    }
}

private struct TypedColumn {
    private let name: String
    private let type: String
    private let mayBeNull: Bool

    /// All but the number of the row, which has no type of its own.
    static func all(of table: String, in model: SQLite) throws -> [TypedColumn] {
        let isKeyed = try model.integer("SELECT wr FROM pragma_table_list WHERE name = '\(table)'") != 0
        let query = try model.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)").bind(1, table)
        var found: [TypedColumn] = []
        while try query.step() {
            if !isKeyed, query.integer(3) != 0, query.text(1) == "INTEGER" { continue }
            found.append(
                TypedColumn(
                    name: query.text(0), type: query.text(1),
                    mayBeNull: query.integer(2) == 0 && query.integer(3) == 0))
        }
        return found
    }

    var isWrong: String {
        "typeof(\(name)) NOT IN ('\(type.lowercased())'\(mayBeNull ? ", 'null'" : ""))"
    }

    var mended: String {
        "\(name) = CASE WHEN \(isWrong) THEN CAST(CASE typeof(\(name)) WHEN 'null' THEN '' ELSE \(name) END AS \(type)) ELSE \(name) END"
    }
}
