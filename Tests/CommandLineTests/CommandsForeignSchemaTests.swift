import BackupKit
import TestSupport
import Testing

/// Stores and hubs are SQLite files, and another program can put anything into them.
@Suite struct CommandsForeignSchemaTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.write("more.bib", "@misc{c, title={C}}\n")
        try bench.write("pdfs/a.pdf", "a")
        try bench.tool(exit: 0, "import", "lib.bib", "--attachments", "pdfs")
        try bench.shell("$T hub init -q hub.db; $T sync -q --hub hub.db; $T export -q -o backup --format dir")
        return bench
    }

    private static let endless = """
        SELECT 1 AS change FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n)
        """

    /// What somebody runs in SQLite, and what the message names.
    private static let plants: [(sql: String, name: String)] = [
        (
            "CREATE TRIGGER quiet BEFORE INSERT ON record BEGIN SELECT RAISE(IGNORE); END",
            "'quiet' on the table 'record'"
        ),
        ("CREATE TRIGGER q BEFORE UPDATE ON Counter BEGIN SELECT RAISE(IGNORE); END", "'q' on the table '"),
        ("CREATE TRIGGER slow AFTER INSERT ON record BEGIN \(endless); END", "'slow' on the table 'record'"),
        ("ALTER TABLE record RENAME TO r; CREATE VIEW record AS SELECT * FROM r", "'record' is a view"),
        ("ALTER TABLE record RENAME TO r; CREATE VIEW RECORD AS \(endless)", "'RECORD' is a view"),
        ("ALTER TABLE meta RENAME TO m; CREATE VIEW meta AS SELECT * FROM m", "'meta' is a view"),
        (
            "ALTER TABLE record RENAME TO r; CREATE VIRTUAL TABLE record USING fts5(change, zone, name)",
            "'record' is no ordinary table"
        ),
        ("CREATE UNIQUE INDEX one ON record (change)", "'one' on 'record'"),
    ]

    private static let ofStores: [(sql: String, name: String)] =
        plants + [
            (
                """
                DROP TRIGGER asset_witness_delete;
                CREATE TRIGGER asset_witness_delete AFTER DELETE ON asset BEGIN SELECT RAISE(IGNORE); END
                """, "'asset_witness_delete' on the table 'asset'"
            ),
            ("ALTER TABLE setting RENAME TO s; CREATE VIEW setting AS SELECT * FROM s", "'setting' is a view"),
            (
                """
                DROP TABLE purged;
                CREATE TABLE purged (zone TEXT, name TEXT, type TEXT, local_id TEXT, UNIQUE (zone) ON CONFLICT IGNORE)
                """, "the table 'purged' drops rows by itself"
            ),
        ]

    private static let commands = [
        "store info", "store digest", "store check", "store repair", "export -o out", "import more.bib", "undo",
        "restore backup", "restore backup --mode replace --dry-run", "sync --hub hub.db", "store delete a",
        "diff backup store.db", "store purge --confirm",
    ]

    @Test(arguments: ofStores.indices)
    func whatActsOnATableOfTheStore_isRefused(_ number: Int) throws {
        let (sql, name) = Self.ofStores[number]
        let bench = try bench()
        try plant(sql, in: "store.db", bench)
        try expectRefusals(bench, Self.commands, in: "store.db", name)
    }

    @Test(arguments: plants.indices)
    func whatActsOnATableOfAHub_isRefused(_ number: Int) throws {
        let (sql, name) = Self.plants[number]
        let bench = try bench()
        try bench.tool(exit: 0, "import", "more.bib")
        try plant(sql, in: "hub.db", bench)
        let commands = ["sync --hub hub.db", "sync --hub hub.db --dry-run"]
        try expectRefusals(bench, commands, in: "hub.db", name, "backup-tool hub init")
    }

    private func plant(_ sql: String, in database: String, _ bench: Workbench) throws {
        try bench.python(
            """
            import sqlite3, sys
            db = sqlite3.connect(sys.argv[1])
            db.execute('PRAGMA legacy_alter_table = ON')
            db.executescript(sys.argv[2])
            db.commit()
            db.close()
            """, database, sql)
    }

    /// Every command ends with 4, says why and what to do, and leaves the database as it is.
    private func expectRefusals(
        _ bench: Workbench, _ commands: some Sequence<String>, in database: String, _ name: String,
        _ remedy: String = "--create --store NEW"
    ) throws {
        let before = try bench.shell("sqlite3 \(database) .schema; sha256sum < \(database)")
        for line in commands {
            let told = try bench.tool(line.split(separator: " ").map(String.init))
            #expect(told.status == 4, "\(line): \(told.status) \(told.stderr)")
            #expect(told.stderr.contains(name) && told.stderr.contains(remedy), "\(line): \(told.stderr)")
        }
        #expect(try bench.shell("sqlite3 \(database) .schema; sha256sum < \(database)") == before)
        try bench.shell("! test -e out")
    }

    /// A person's own tables and views, and an index that makes a query quick, are nobody's harm.
    @Test func whatActsOnNoTableOfOurs_isLeftAlone() throws {
        let bench = try bench()
        let own = """
            CREATE VIEW mine AS SELECT type, count(*) FROM records GROUP BY type;
            CREATE TABLE log (text TEXT UNIQUE ON CONFLICT IGNORE);
            CREATE TABLE read (change INTEGER REFERENCES record (change), path TEXT REFERENCES asset (path));
            CREATE TRIGGER log_quiet BEFORE INSERT ON log BEGIN SELECT RAISE(IGNORE); END;
            CREATE INDEX by_device ON record (device_id)
            """
        for database in ["store.db", "hub.db"] {
            try plant(
                database == "hub.db" ? own.replacing("FROM records", with: "FROM record") : own, in: database, bench)
        }
        try bench.shell("sqlite3 store.db 'INSERT INTO read SELECT change, NULL FROM record'")
        try bench.shell("sqlite3 store.db 'INSERT INTO read SELECT NULL, path FROM asset'")
        for line in ["store check", "import more.bib", "sync --hub hub.db", "undo", "undo", "export -o out"] {
            let told = try bench.tool(line.split(separator: " ").map(String.init))
            #expect(told.status == 0, "\(line): \(told.stderr)")
        }
        try bench.tool(exit: 0, "store", "check")
    }
}
