import Glibc
import TestSupport
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

    /// Who is interrupted while an old export is read has not found out that it is somebody else's.
    @Test func aSignalIsNoVerdictOnAnOldExport() async {
        await #expect(processExitsWith: .success) {
            try withTemporaryFolder { folder in
                let store = try Store.create("\(folder)/store.db")
                let old = "\(folder)/old.zip"
                _ = try Exporter.export(store, to: old, ExportOptions(form: .imbib(.zip)))
                Interrupt.install()
                kill(getpid(), SIGTERM)
                let error = #expect(throws: BackupError.self) {
                    try Replacing(source: "none", besides: nil) { _, _ in false }.check(old, replace: true)
                }
                #expect(error?.code == .interrupted)
            }
        }
    }
}
