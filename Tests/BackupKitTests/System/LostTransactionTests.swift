import TestSupport
import Testing

@testable import BackupKit

/// SQLite takes back a whole transaction after some errors. Whatever comes then would be committed statement by statement.
@Suite struct LostTransactionTests {
    private func withTable(_ body: (SQLite) throws -> Void) throws {
        let database = try SQLite(":memory:", .create)
        try database.execute("CREATE TABLE t (a)")
        try body(database)
    }

    private func rows(_ database: SQLite) throws -> Int64 { try database.integer("SELECT count(*) FROM t") }

    /// Runs a transaction that ends with an error of ours.
    private func fail(_ database: SQLite, _ body: () throws -> Void) throws {
        do {
            try database.write(body)
            Issue.record("nobody noticed")
        } catch let error as BackupError { #expect(error.code == .failed) }
    }

    @Test func nothingIsWritten_afterATransactionWasTakenBack() throws {
        try withTable { database in
            for last in ["INSERT INTO t VALUES (2)", "SELECT 1"] {
                try fail(database) {
                    try database.execute("INSERT INTO t VALUES (1)")
                    // As after an error that nobody has told us of.
                    try database.execute("ROLLBACK")
                    try database.statement(last).run()
                }
                let left = try rows(database)
                #expect(left == 0, "\(last)")
            }
            try database.write { try database.execute("INSERT INTO t VALUES (3)") }
            let written = try rows(database)
            #expect(written == 1)
        }
    }

    @Test func whatWasOnlyTried_isNotCommitted_whereItCouldNotBeTakenBack() throws {
        try withTable { database in
            for ending in ["ROLLBACK", "RELEASE trial"] {
                try fail(database) {
                    try database.takeBack {
                        try database.execute("INSERT INTO t VALUES (1)")
                        try database.execute(ending)
                    }
                    try database.execute("INSERT INTO t VALUES (2)")
                }
                let left = try rows(database)
                #expect(left == 0, "\(ending)")
            }
        }
    }
}
