import TestSupport
import Testing

@testable import BackupKit

/// What `sqlite3 store.db .dump` says of a store that the first version wrote: an import of three events and a file, then
/// a delete and a set-local.
private func oldStore(in folder: String) throws -> String {
    let sql = try #require(readText("\(projectFolder)/Tests/Fixtures/store-version-1.sql"))
    let path = "\(folder)/old.db"
    let database = try SQLite(path, .create)
    try database.execute("PRAGMA application_id = \(StoreSchema.applicationID); PRAGMA user_version = 1")
    try database.execute(sql)
    try database.execute("PRAGMA journal_mode = WAL")
    try writeFile("\(path).assets/Attachments/hi.pdf", "hi\n")
    return path
}

@Suite struct MigrationTests {
    private static let removeMemoryWitnesses =
        Witness.ofMemory.flatMap { witness in
            ["insert", "update", "delete"].map { "DROP TRIGGER \(witness.table)_witness_\($0); " }
        }.joined() + "ALTER TABLE imported_file DROP COLUMN seal; ALTER TABLE batch DROP COLUMN versions; "
        + "DROP TABLE batch_said;"
    private static let removeHubSeals =
        "\(removeMemoryWitnesses) DROP TRIGGER record_keeps_ancestor; ALTER TABLE record DROP COLUMN hub_seal;"
        + ["change", "type", "local_id", "created_at", "device_id", "schema_version", "local_only", "row_hash"]
        .map { " ALTER TABLE ancestor DROP COLUMN \($0);" }.joined()

    /// Version 23.
    @Test func whatTheStoreKnowsOfTheHub_isSealedAsItIs() throws {
        try withDevices("A", "B") { devices in
            for id in ["r", "s"] { try devices.edit("A", id, "{\"a\":1,\"b\":1}") }
            try devices.syncAll()
            try devices.edit("A", "r", "{\"a\":2,\"b\":1}")
            let old = "\(devices.folder)/old.db"
            try Store.copyDatabase(devices.path("A"), to: old)
            try SQLite(old, .readWrite).execute("\(Self.removeHubSeals) PRAGMA user_version = 22")
            let store = try Store(old, .write, clock: devices.clock.clock)
            try checkSound(old)
            #expect(try store.database.integer("SELECT count(*) FROM record WHERE hub_seal IS NULL") == 0)
            let id = RecordID(zone: "Z", name: "r")
            #expect(try store.ancestor(id)?.fields == "{\"a\":1,\"b\":1}")
            try store.database.execute("UPDATE ancestor SET fields = '{\"a\":2,\"b\":1}'")
            #expect(try store.ancestor(id) == nil && store.brokenAncestors() == [id])
            // What changes from now on is sealed, too.
            let other = try #require(try store.record(RecordID(zone: "Z", name: "s")))
            try store.write { try store.rewrite(other, as: other.record) }
            #expect(try store.ancestor(other.record.id) != nil)
            #expect(try store.database.integer("SELECT count(*) FROM ancestor WHERE row_hash IS NULL") == 0)
        }
    }

    private let digest = "6302e21ff56732017a5cd619ac9258602718958989c3b4ac73fd86afd5163742"

    @Test func aReaderBringsAStoreOfTheFirstVersionForward() throws {
        try withTemporaryFolder { folder in
            let path = try oldStore(in: folder)
            let store = try Store(path, .read)
            #expect(try store.digest() == digest)
            #expect(try store.read { try store.info() }.localOnly == 1)
            #expect(try store.find("E2").count == 1)
            #expect(try store.syncState() == nil)
            let hub = try FileHub.create("\(folder)/hub.db")
            let result = try Synchronizer(Store(path, .write), hub, SyncOptions(dryRun: true)).run()
            #expect(result.pushed == 4 && result.pulled == 0)
        }
    }

    @Test(arguments: 1..<StoreSchema.version)
    func aStoreOfEachVersion_isRead_andBroughtForward(version: Int64) throws {
        try withTemporaryFolder { folder in
            let path = try oldStore(in: folder)
            try StoreSchema.migrate(SQLite(path, .readWrite), to: version)
            let before = try readFile(path)
            #expect(try Store(path, .read).digest() == digest)
            #expect(try readFile(path) == before)
            #expect(try Store(path, .write).digest() == digest)
            try checkSound(path)
        }
    }

    @Test func theFirstWriterBringsItForward_andNothingIsLost() throws {
        try withTemporaryFolder { folder in
            let path = try oldStore(in: folder)
            let store = try Store(path, .write)
            #expect(try store.database.integer("PRAGMA user_version") == StoreSchema.version)
            #expect(try store.digest() == digest)
            try store.take(record("new", "{\"x\":1}"))
            _ = try store.enableCloud(["OllieEvents/local:E3"])
            #expect(try store.all().map(\.isDeleted) == [false, true, false, false])
            #expect(try store.undoLast().keptNewer.map(\.name).sorted() == ["E2", "E3"])
            try checkSound(path)
        }
    }

    /// 0.1.0 kept what an undo needs in `.kept/<batch>/`, and moved files before it committed.
    @Test func filesThatTheFirstVersionKeptAreFoundByAnUndo_andItsKilledBatchesAreTakenBack() throws {
        try withTemporaryFolder { folder in
            let path = "\(folder)/s.db"
            let assets = "\(path).assets"
            do {
                let store = try Store.create(path)
                for text in ["A", "new A"] {
                    _ = try store.batch(kind: "import", source: "") {
                        if let old = try store.asset("a.pdf") { try store.removeAsset(old) }
                        return (try place("a.pdf", text, in: store), summary: "")
                    }
                }
                for table in (Witness.ofHistory + [.purged]).map(\.table) {
                    for event in ["insert", "update", "delete"] {
                        try store.database.execute("DROP TRIGGER \(table)_witness_\(event)")
                    }
                }
                try store.database.execute(
                    "UPDATE batch_asset SET kept = '.kept/2/a.pdf' WHERE batch = 2; PRAGMA user_version = \(StoreSchema.version - 15); \(Self.removeHubSeals) DROP TABLE outlived; ALTER TABLE asset_sync DROP COLUMN seal; ALTER TABLE hub_link DROP COLUMN seal; DROP INDEX batch_asset_by_path; DROP INDEX batch_asset_by_kept; DROP INDEX batch_added_by_batch; DROP TABLE asset_pending; DROP TABLE purged; DROP TABLE purge_trace; DROP TABLE awaited_file; DROP TABLE listed; DROP TABLE file_elsewhere; ALTER TABLE imported_file DROP COLUMN since; ALTER TABLE batch_record DROP COLUMN row_hash; ALTER TABLE batch_record DROP COLUMN seal; ALTER TABLE batch_added DROP COLUMN seal"
                )
                try Directory.removeTree("\(assets)/.blobs")
                try writeFile("\(assets)/.kept/2/a.pdf", "A")
                // A batch that was killed had moved a file, put another in its place, and was about to place a third.
                try writeFile("\(assets)/.kept/3/a.pdf", "new A")
                try writeFile("\(assets)/a.pdf", "newer A")
                try writeFile("\(assets)/.kept/3.placed", "a.pdf\0b.p")
                try writeFile("\(assets)/.incoming/0123/file", "x")
            }
            let store = try Store(path, .write)
            try checkSound(path)
            #expect(try readFile("\(assets)/a.pdf") == Array("new A".utf8))
            #expect(try Directory.names(in: assets) == [".blobs", "a.pdf"])
            _ = try store.undoLast()
            #expect(try readFile("\(assets)/a.pdf") == Array("A".utf8))
            try checkSound(path)
        }
    }
}
