/// The tables of the sync store. People read them with the stock `sqlite3`; `docs/formats.md` describes them.
enum StoreSchema {
    /// "BkTs" in the header of the database says that it is ours.
    static let applicationID: Int64 = 0x426B_5473
    /// Publications are 2 KB each: smaller pages would leave a third of themselves empty.
    static let pageSize = 8192
    static var version: Int64 { Int64(migrations.count) }

    /// The steps from each version to the next; the first makes an empty database a store.
    private static let migrations: [@Sendable (SQLite) throws -> Void] = [
        { try $0.execute(first) },
        { database in
            try database.execute(second)
            try RecordHasher.fillKeys(database)
        },
        // Each new conflict is looked for among those that wait, and a large library can bring hundreds.
        { try $0.execute("CREATE INDEX conflict_by_subject ON conflict (subject)") },
        // A token of the newest place that this store has heard of, where `token` is one before it.
        { try $0.execute("ALTER TABLE hub_link ADD COLUMN head TEXT") },
        { database in
            try database.execute(soundness)
            try RecordHasher(database).sealRows(database)
        },
        { try $0.execute(seenTime) },
        { try Conflict.makeRecords(in: $0) },
        { try RecordHasher.foldUUIDs($0) },
        // The .bib files that were imported here, by their real paths, and hashes of all that each has brought.
        {
            try $0.execute(
                "CREATE TABLE imported_file (path TEXT PRIMARY KEY, name TEXT NOT NULL, brought BLOB NOT NULL) STRICT")
        },
        { database in
            try database.execute(
                """
                CREATE TABLE witness (place TEXT NOT NULL, key TEXT NOT NULL, row TEXT NOT NULL,
                    PRIMARY KEY (place, key)) STRICT, WITHOUT ROWID
                """)
            for witness in Witness.ofData { try database.execute(witness.triggers) }
            try Witness.refresh(Witness.ofData, database)
        },
        // Paths whose files are not what their rows say yet. was: the digest of what lies there, NULL: nothing. place: the
        // digest of what shall lie there where it is not the row's, empty for nothing.
        {
            try $0.execute(
                "CREATE TABLE asset_pending (path TEXT PRIMARY KEY, was TEXT, place TEXT) STRICT, WITHOUT ROWID")
        },
        // Tombstones whose records were purged here: only a sync outlives them.
        {
            try $0.execute(
                """
                CREATE TABLE purged (zone TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, local_id TEXT NOT NULL,
                    PRIMARY KEY (zone, name)) STRICT, WITHOUT ROWID;
                CREATE INDEX purged_by_local_id ON purged (local_id);
                """)
        },
        // Since when each file has said what it says (`HeldSince`).
        { try $0.execute("ALTER TABLE imported_file ADD COLUMN since BLOB NOT NULL DEFAULT x''") },
        // Files that records link which came in a sync that has not finished.
        { try $0.execute("CREATE TABLE awaited_file (path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID") },
        // For questions that are asked once for each file or batch.
        {
            try $0.execute("CREATE INDEX batch_asset_by_path ON batch_asset (path)")
            try $0.execute("CREATE INDEX batch_asset_by_kept ON batch_asset (kept)")
            try $0.execute("CREATE INDEX batch_added_by_batch ON batch_added (batch)")
        },
        // The hash of an older version as it was kept. NULL: nothing proves it.
        { try $0.execute("ALTER TABLE batch_record ADD COLUMN row_hash INTEGER") },
        // A hash of what the store knows of its hub. NULL: nothing proves it.
        { database in
            for table in RowSeal.ofSync {
                try database.execute("ALTER TABLE \(table.name) ADD COLUMN seal INTEGER")
                try table.sealAll(RecordHasher(database), database)
            }
        },
        // Which listings each publication was before it was edited: a delete of it is one of them all.
        {
            try $0.execute(
                """
                CREATE TABLE listed (listing TEXT NOT NULL, zone TEXT NOT NULL, name TEXT NOT NULL,
                    PRIMARY KEY (name, zone, listing)) STRICT, WITHOUT ROWID
                """)
            try $0.execute("CREATE INDEX listed_by_listing ON listed (listing)")
        },
        // Which files links of a restored backup mean that were on other devices only when it was made.
        {
            try $0.execute(
                """
                CREATE TABLE file_elsewhere (path TEXT PRIMARY KEY, size INTEGER NOT NULL, sha256 TEXT NOT NULL)
                    STRICT, WITHOUT ROWID
                """)
        },
        // Files and cite keys whose records are gone (`PurgeTraces`).
        {
            try $0.execute(
                """
                CREATE TABLE purge_trace (kind TEXT NOT NULL, name TEXT NOT NULL, records TEXT NOT NULL,
                    PRIMARY KEY (kind, name)) STRICT, WITHOUT ROWID;
                INSERT INTO purge_trace SELECT 'left', substr(key, 12), value FROM meta
                WHERE key >= 'purge_left:' AND key < 'purge_left;';
                INSERT INTO purge_trace SELECT 'file', substr(key, 13), value FROM meta
                WHERE key >= 'purged_file:' AND key < 'purged_file;';
                DELETE FROM meta WHERE key >= 'purge_left:' AND key < 'purge_left;'
                OR key >= 'purged_file:' AND key < 'purged_file;';
                """)
        },
        { database in
            let witnesses = Witness.ofHistory + [Witness.purged]
            for witness in witnesses { try database.execute(witness.triggers) }
            try Witness.refresh(witnesses, database)
            try HistorySeal.sealAll(database)
        },
        // Deletes that were undone before any hub heard of them (`OutlivedDeletes`).
        {
            try $0.execute(
                """
                CREATE TABLE outlived (zone TEXT NOT NULL, name TEXT NOT NULL, deleted_at INTEGER NOT NULL,
                    PRIMARY KEY (zone, name)) STRICT, WITHOUT ROWID
                """)
        },
        // What vouches for what the store knows of the hub about a record: `hub_seal`, and a hash of each ancestor.
        { try HubSeal.sealAll(RecordHasher($0), $0) },
        { database in
            for witness in Witness.ofMemory { try database.execute(witness.triggers) }
            try Witness.refresh(Witness.ofMemory, database)
            try database.execute("ALTER TABLE imported_file ADD COLUMN seal INTEGER")
            try RowSeal.imported.sealAll(RecordHasher(database), database)
        },
        // How many older versions each batch has kept (NULL: nothing proves that none is missing), and what files said before.
        {
            try $0.execute(
                """
                ALTER TABLE batch ADD COLUMN versions INTEGER;
                CREATE TABLE batch_said (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, path TEXT NOT NULL,
                    lost BLOB NOT NULL, new BLOB NOT NULL, since BLOB NOT NULL, PRIMARY KEY (batch, path))
                    STRICT, WITHOUT ROWID;
                """)
        },
    ]

    private static let first =
        """
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        -- The last change number that was given out.
        CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
        INSERT INTO counter VALUES (0);

        -- One row a record. Its key is the number of its last change, so the changes since a token are a range.
        -- A name that is NULL is the same as local_id, which spares new records a second index entry.
        CREATE TABLE record (
            change INTEGER PRIMARY KEY, zone TEXT NOT NULL, name TEXT, type TEXT NOT NULL, local_id TEXT NOT NULL,
            fields TEXT NOT NULL, field_times TEXT, created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,
            device_id TEXT, schema_version INTEGER NOT NULL, local_only INTEGER NOT NULL DEFAULT 0,
            deleted_at INTEGER) STRICT;
        CREATE INDEX record_by_local_id ON record (local_id);
        CREATE UNIQUE INDEX record_by_name ON record (name, zone) WHERE name IS NOT NULL;
        CREATE INDEX record_by_type ON record (type) WHERE type <> 'PuppyEvent';
        -- The same for people: names filled in, times readable.
        CREATE VIEW records AS SELECT zone, ifnull(name, local_id) AS record_name, type, local_id, fields,
            strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created,
            strftime('%Y-%m-%dT%H:%M:%fZ', modified_at / 1000.0, 'unixepoch') AS modified,
            device_id, schema_version, local_only, deleted_at IS NOT NULL AS deleted FROM record;

        -- Files beside the database, in <store>.assets/<path>.
        CREATE TABLE asset (path TEXT PRIMARY KEY, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
            local_only INTEGER NOT NULL DEFAULT 0, modified_ns INTEGER NOT NULL, change INTEGER NOT NULL)
            STRICT, WITHOUT ROWID;
        CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL, modified_at INTEGER NOT NULL)
            STRICT, WITHOUT ROWID;
        CREATE TABLE conflict (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL,
            existing TEXT NOT NULL, incoming TEXT NOT NULL, detected_at INTEGER NOT NULL, batch INTEGER) STRICT;

        -- What each import and restore did, with what it replaced: the undo.
        CREATE TABLE batch (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL,
            started_at INTEGER NOT NULL, first_change INTEGER NOT NULL, last_change INTEGER NOT NULL,
            summary TEXT NOT NULL, undone_at INTEGER) STRICT;
        CREATE TABLE batch_record (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, after INTEGER,
            change INTEGER NOT NULL, zone TEXT NOT NULL, name TEXT, type TEXT NOT NULL, local_id TEXT NOT NULL,
            fields TEXT NOT NULL, field_times TEXT, created_at INTEGER NOT NULL, modified_at INTEGER NOT NULL,
            device_id TEXT, schema_version INTEGER NOT NULL, local_only INTEGER NOT NULL, deleted_at INTEGER) STRICT;
        CREATE INDEX batch_record_by_batch ON batch_record (batch);
        CREATE INDEX batch_record_by_after ON batch_record (after);
        -- Rows that a batch added and that have got another number since: from a person's edit, which stays, or from
        -- the undo of a later batch.
        CREATE TABLE batch_added (change INTEGER PRIMARY KEY, edited INTEGER NOT NULL,
            batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE) STRICT;
        -- size IS NULL: there was no such asset before. kept: where its bytes wait, below <store>.assets; the path
        -- itself when the batch found the file in place.
        CREATE TABLE batch_asset (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, path TEXT NOT NULL,
            size INTEGER, sha256 TEXT, local_only INTEGER, modified_ns INTEGER, kept TEXT,
            PRIMARY KEY (batch, path)) STRICT, WITHOUT ROWID;
        CREATE TABLE batch_setting (batch INTEGER NOT NULL REFERENCES batch ON DELETE CASCADE, key TEXT NOT NULL,
            value TEXT, modified_at INTEGER, PRIMARY KEY (batch, key)) STRICT, WITHOUT ROWID;
        -- Records that an undo took out again, for those who saw them come.
        CREATE TABLE removed (change INTEGER PRIMARY KEY, zone TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
            local_id TEXT NOT NULL) STRICT;
        """

    private static let second =
        """
        -- An index by local id that the tool keeps itself (`RecordHasher`), because a large import can fill it in its own
        -- order, in one sweep. content is a hash of all that makes a live record, 0 of every other row.
        CREATE TABLE local_key (key INTEGER NOT NULL, change INTEGER NOT NULL, content INTEGER NOT NULL,
            PRIMARY KEY (key, change)) STRICT, WITHOUT ROWID;
        DROP INDEX record_by_local_id;

        -- hub_version: the hub's version of the record that this device saw last; 0: some version of a hub that was
        -- reset since; NULL: it never was on a hub. clean_at: the change number at which the row said what that version
        -- says. Whatever writes a row gives it a new number, and so it is pending by itself.
        ALTER TABLE record ADD COLUMN hub_version INTEGER;
        ALTER TABLE record ADD COLUMN clean_at INTEGER;
        -- The hub that this store syncs with. What changed up to pushed_through is on the hub, or is in `held`.
        CREATE TABLE hub_link (id INTEGER PRIMARY KEY CHECK (id = 1), hub_id TEXT NOT NULL, location TEXT NOT NULL,
            user TEXT, token TEXT, pushed_through INTEGER NOT NULL, synced_at INTEGER) STRICT;
        -- What cannot go to the hub, or not come from it, and why. It blocks nothing else.
        CREATE TABLE held (zone TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
            size INTEGER NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (zone, name)) STRICT, WITHOUT ROWID;
        -- What both sides knew of a record that has changed here since: the base of a three-way merge.
        CREATE TABLE ancestor (zone TEXT NOT NULL, name TEXT NOT NULL, fields TEXT NOT NULL, field_times TEXT,
            modified_at INTEGER NOT NULL, deleted_at INTEGER, PRIMARY KEY (zone, name)) STRICT, WITHOUT ROWID;
        CREATE TRIGGER record_keeps_ancestor BEFORE UPDATE OF change ON record
            WHEN OLD.clean_at = OLD.change AND NEW.clean_at IS NOT NEW.change
            BEGIN INSERT OR REPLACE INTO ancestor VALUES (OLD.zone, ifnull(OLD.name, OLD.local_id), OLD.fields,
                OLD.field_times, OLD.modified_at, OLD.deleted_at); END;
        -- The hub's versions of assets. base: the digest that both sides had last. wanted: the hub has another file, or
        -- none, and this side has not followed yet.
        CREATE TABLE asset_sync (path TEXT PRIMARY KEY, version INTEGER NOT NULL, size INTEGER NOT NULL, sha256 TEXT,
            modified_ns INTEGER NOT NULL, base TEXT, wanted INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        """

    private static let soundness =
        """
        -- A hash of all columns that `records.jsonl` is made of, and of the change number: what the row said when the tool
        -- wrote it. NULL: another program wrote it.
        ALTER TABLE record ADD COLUMN row_hash INTEGER;
        -- Rows that cannot be read, kept as they were (`damaged.jsonl` in docs/formats.md). batch: the restore that
        -- brought it.
        CREATE TABLE damaged (line TEXT PRIMARY KEY, since INTEGER NOT NULL,
            batch INTEGER REFERENCES batch ON DELETE SET NULL) STRICT, WITHOUT ROWID;
        """

    /// The latest time that the store has seen: its clock never falls behind it.
    private static let seenTime =
        """
        INSERT INTO meta SELECT 'latest_time', CAST(latest AS TEXT) FROM (SELECT max(modified_at) AS latest FROM record)
            WHERE latest IS NOT NULL
        """

    /// The rows of `asset` that are what was noted of them.
    static let unchangedAssets = """
        (SELECT * FROM asset AS told WHERE (\(Witness.asset.row)) IS
            (SELECT row FROM witness WHERE place = 'asset' AND key = told.path))
        """

    static func isOld(_ database: SQLite) throws -> Bool { try database.integer("PRAGMA user_version") < version }

    /// `last`: the version at which it stops.
    static func migrate(_ database: SQLite, to last: Int64 = version) throws {
        let found = try database.integer("PRAGMA user_version")
        guard found >= 0 else {
            throw BackupError(
                .damaged, "is of store version \(found), which was never one", at: database.path,
                remedy: "restore a backup into a new store")
        }
        guard found <= version else {
            throw BackupError(
                .refused, "was written by a newer backup-tool (store version \(found), this one knows \(version))",
                at: database.path, remedy: "use the newer version, or export with it first")
        }
        guard found < last else { return }
        try database.write {
            for step in migrations[Int(found)..<Int(last)] { try step(database) }
            try database.execute("PRAGMA user_version = \(last)")
        }
    }
}
