import Glibc
import Testing

@testable import BackupKit

@Suite struct DatabaseSignalTests {
    /// In a process of its own: a signal that was caught is caught for good.
    @Test func aSignalEndsAnEndlessStatement() async {
        await #expect(processExitsWith: .success) {
            Interrupt.install()
            let database = try SQLite(":memory:", .create)
            try database.execute("CREATE TABLE t (n INTEGER)")
            kill(getpid(), SIGTERM)
            let error = #expect(throws: BackupError.self) {
                try database.write {
                    try database.execute("INSERT INTO t VALUES (1)")
                    // As good as endless.
                    _ = try database.integer(
                        """
                        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000000)
                        SELECT max(i) FROM n
                        """)
                }
            }
            #expect(error?.code == .interrupted)
            #expect(try database.integer("SELECT count(*) FROM t") == 0)
        }
    }
}
