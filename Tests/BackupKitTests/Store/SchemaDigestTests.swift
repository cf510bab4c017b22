import TestSupport
import Testing

@testable import BackupKit

/// A store or hub whose schema has the digest that the code names is not compared part by part.
@Suite struct SchemaDigestTests {
    @Test func whatIsMadeToday_hasTheDigestThatTheCodeNames() throws {
        try withStore { test in
            let digest = try ForeignSchema.digest(of: test.store.database).hex
            #expect(try StoreSchema.isAsMade(test.store.database), "\(digest)")
            _ = try FileHub.create("\(test.folder)/hub.db")
            let hub = try SQLite("\(test.folder)/hub.db", .readWrite)
            let ofHub = try ForeignSchema.digest(of: hub).hex
            #expect(try FileHub.isAsMade(hub), "\(ofHub)")
        }
    }

    @Test func whatSomebodyAdds_changesTheDigest() throws {
        try withStore { test in
            let database = try SQLite("\(test.folder)/store.db", .readWrite)
            for sql in ["CREATE VIEW v AS SELECT 1", "CREATE INDEX i ON record (zone)", "CREATE TABLE t (a)"] {
                try database.execute(sql)
                #expect(try StoreSchema.isAsMade(database) == false, "\(sql)")
                try database.execute("DROP \(sql.split(separator: " ")[1]) \(sql.split(separator: " ")[2])")
                #expect(try StoreSchema.isAsMade(database), "\(sql)")
            }
        }
    }
}
