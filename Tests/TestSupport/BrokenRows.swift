import BackupKit

/// What a column may hold when a disk or another program has had its way, as SQL.
public enum BrokenValue {
    static let texts = [
        "NULL", "''", "7", "9223372036854775807", "1.5", "x'00ff80'", "CAST(x'7b226122ff7d' AS TEXT)",
        "CAST(x'610062' AS TEXT)", "'{'", "'{\"a\":1,\"a\":2}'", "'[]'", "'{\"a\":\"\\ud800\"}'",
        "'{\"a\":'||char(10)||'1}'",
        "replace(hex(zeroblob(100000)),'00','[')", "'{\"title\":\"2026-99-99\"}'", "'zé/…'||char(7)",
    ]
    static let numbers = [
        "NULL", "9223372036854775807", "-9223372036854775808", "-1", "0", "2", "253402300800000", "1152921504606846977",
        "'text'", "x'00ff'", "1.5", "1e300",
    ]
    static let places = ["9223372036854775807", "-9223372036854775808", "0", "-1", "1152921504606846977"]

    /// Every column of the tables whose rows come out of a store, with every value.
    public static var all: [(table: String, column: String, value: String)] {
        func every(_ table: String, _ columns: [String], _ values: [String]) -> [(String, String, String)] {
            columns.flatMap { column in values.map { (table, column, $0) } }
        }
        let names = ["zone", "name", "type", "local_id", "fields", "field_times", "device_id"]
        let counts = ["created_at", "modified_at", "schema_version", "local_only", "deleted_at"]
        return every("record", names, texts) + every("record", counts, numbers) + every("record", ["change"], places)
            + every("record", ["hub_version", "clean_at"], numbers)
            + every("asset", ["size", "local_only", "modified_ns"], numbers) + every("asset", ["sha256"], texts)
            + every("setting", ["value"], texts) + every("setting", ["modified_at"], numbers)
    }
}

extension SQLite {
    /// Lets a store's tables hold anything, as a damaged file does.
    public static func loosen(_ path: String) throws {
        let script = """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1])
            db.execute('PRAGMA writable_schema=ON')
            for old, new in ((' STRICT, WITHOUT', ' WITHOUT'), (' STRICT', ''), (' NOT NULL', ''), (' TEXT', ' BLOB')):
                db.execute('UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name IN (?, ?, ?)',
                    (old, new, 'record', 'asset', 'setting'))
            db.commit()
            """
        let result = try runProcess(["python3", "-c", script, path])
        guard result.status == 0 else { throw BackupError(.failed, result.stderr, at: path) }
    }

    /// Lets an index say what its table does not, as in a damaged file: it hears of the statement `lie`, not of `truth`.
    public static func misindex(_ path: String, _ index: String, lie: String, truth: String) throws {
        let script = """
            import sqlite3, sys
            _, path, index, lie, truth = sys.argv
            def run(*statements):
                db = sqlite3.connect(path, isolation_level=None)
                db.execute('PRAGMA writable_schema=ON')
                rows = [db.execute(*statement).fetchone() for statement in statements]
                db.close()
                return rows[-1]
            run((lie,))
            row = run(('SELECT * FROM sqlite_schema WHERE name = ?', (index,)))
            run(('DELETE FROM sqlite_schema WHERE name = ?', (index,)))
            run((truth,))
            run(('INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)', row))
            """
        let result = try runProcess(["python3", "-c", script, path, index, lie, truth])
        guard result.status == 0 else { throw BackupError(.failed, result.stderr, at: path) }
    }
}
