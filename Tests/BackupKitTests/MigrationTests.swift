import TestSupport
import Testing

@testable import BackupKit

/// What `sqlite3 store.db .dump` says of a store that the first version wrote: an import of three events and a file, then
/// a delete and a set-local.
private func oldStore(in folder: String) throws -> String {
    let source = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let sql = try #require(readText("\(source)/Fixtures/store-version-1.sql"))
    let path = "\(folder)/old.db"
    let database = try SQLite(path, .create)
    try database.execute("PRAGMA application_id = \(StoreSchema.applicationID); PRAGMA user_version = 1")
    try database.execute(sql)
    try database.execute("PRAGMA journal_mode = WAL")
    try writeFile("\(path).assets/Attachments/hi.pdf", "hi\n")
    return path
}

@Suite struct MigrationTests {
    private let digest = "6302e21ff56732017a5cd619ac9258602718958989c3b4ac73fd86afd5163742"

    @Test func aReaderBringsAStoreOfTheFirstVersionForward() throws {
        try withTemporaryFolder { folder in
            let store = try Store(try oldStore(in: folder), .read)
            #expect(try store.digest() == digest)
            #expect(try store.read { try store.info() }.localOnly == 1)
            #expect(try store.find("E2").count == 1)
            #expect(try store.syncState() == nil)
            let hub = try FileHub.create("\(folder)/hub.db")
            let result = try Synchronizer(store, hub, SyncOptions(dryRun: true)).run()
            #expect(result.pushed == 4 && result.pulled == 0)
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
}
