import TestSupport
import Testing

@testable import BackupKit

/// A restore and a comparison take no damaged row of the store for the record that it was.
@Suite struct CommandsUnsoundRowTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write(
            "a.bib",
            "@article{k,title={T},author={A},year=2000}\n@article{z,title={Z},author={A},year=2000}\n"
                + "@article{old,title={Old},author={B},year=2001}\n")
        try bench.write("day.jsonl", #"{"id":"E1","time":"2026-02-14T10:00:00+01:00","type":"eten"}"# + "\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "day.jsonl")
        let old = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%Old%'\"")
        try bench.tool(exit: 0, "store", "delete", old.split(separator: "\n").map(String.init)[0])
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    private func execute(_ bench: Workbench, _ sql: String) throws -> String {
        try bench.shell("sqlite3 store.db \"PRAGMA ignore_check_constraints = ON; \(sql)\" 2>&1 || true")
    }

    private static let oddValues = [
        "change": ["change + 100", "-change", "4611686018427387904"],
        "zone": ["'Other'", "''", "'a' || char(10)", "'Library2'"],
        "name": ["'other'", "''", "NULL", "local_id || 'x'"],
        "type": ["'Foo'", "''", "'Note'", "'PuppyEvent'", "'Publication'", "'Conflict'"],
        "local_id": ["'abc'", "''", "local_id || 'x'", "upper(local_id)"],
        "fields": ["'{}'", "'{'", "''", "replace(fields, '2000', '2001')", "'[]'"],
        "field_times": ["'{}'", #"'{\"title\":1}'"#, "'x'", "NULL", #"'{\"title\":99999999999999}'"#],
        "created_at": ["0", "-1", "created_at + 1", "9223372036854775807"],
        "modified_at": ["0", "modified_at + 1", "modified_at - 1", "9223372036854775807"],
        "device_id": ["'other'", "''", "NULL"],
        "schema_version": ["0", "2", "99", "-1"],
        "local_only": ["1", "2", "-1"],
        "deleted_at": ["1", "modified_at", "NULL", "-1"],
        "row_hash": ["0", "row_hash + 1"],
    ]

    @Test(arguments: oddValues.keys.sorted(), [["--mode", "merge"], ["--mode", "replace"]])
    func whateverAColumnOfARowHolds_aRestoreMendsOrNamesIt(column: String, mode: [String]) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db 'PRAGMA wal_checkpoint(TRUNCATE)' && cp store.db sound.db")
        let changes = try bench.shell("sqlite3 sound.db 'SELECT change FROM record'").split(separator: "\n")
        let values = Self.oddValues[column] ?? []
        for change in isTorture ? changes : [changes[1], changes[changes.count - 1]] {
            for value in values {
                try bench.shell("rm -f store.db-*; cp sound.db store.db")
                let id = try bench.shell(
                    "sqlite3 store.db \"SELECT ifnull(name, local_id) FROM record WHERE change = \(change)\"")
                let refused = try execute(bench, "UPDATE record SET \(column) = \(value) WHERE change = \(change)")
                let damaged = try bench.tool("store", "check")
                if !refused.isEmpty || damaged.status == 0 { continue }
                let result = try bench.tool(["restore", "good.zip"] + mode)
                let said = result.stdout + result.stderr
                let isNamed = said.contains(id.split(separator: "\n").first.map(String.init) ?? "?")
                let isBack = try bench.tool("store", "digest").stdout.contains(digest)
                #expect(
                    result.status == 0 && isBack || [3, 4].contains(result.status) && isNamed,
                    "\(column) = \(value) of \(change): \(result.status) \(isBack) \(said)")
                // Whoever follows the advice has the backup's store.
                if isBack { continue }
                try bench.tool("store", "repair", "--from", "good.zip")
                try bench.tool("restore", "good.zip", "--mode", "replace")
                #expect(
                    try bench.tool("store", "digest").stdout.contains(digest),
                    "\(column) = \(value) of \(change): \(said)")
            }
        }
    }

    @Test(arguments: ["type = 'Foo'", "local_id = 'abc'", "fields = replace(fields, 'T', 'U')"])
    func aDamagedRow_isNoUnchangedRecord(change: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        _ = try execute(bench, "UPDATE record SET \(change) WHERE fields LIKE '%Z%'")
        let told = try bench.tool(exit: 3, "diff", "good.zip", "store.db")
        #expect(!told.stdout.contains("No difference") && told.stderr.contains("is not what the store"), "\(told)")
        let dry = try bench.tool(exit: 0, "restore", "good.zip", "--dry-run")
        #expect((dry.stdout + dry.stderr).contains("is again what it was"), "\(dry)")
        try bench.tool(exit: 0, "restore", "good.zip", "--match", "Z")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        try bench.tool(exit: 0, "diff", "good.zip", "store.db")
        try bench.tool(exit: 0, "undo")
    }

    @Test func aDamagedIndex_makesNoSecondRow() throws {
        let bench = try bench()
        let digest = try bench.digest()
        _ = try execute(bench, "UPDATE local_key SET key = 0 WHERE change = (SELECT min(change) FROM record)")
        try bench.tool(exit: 4, "store", "check")
        for mode in ["merge", "replace"] {
            let result = try bench.tool(exit: 0, "restore", "good.zip", "--mode", mode)
            #expect(!(result.stdout + result.stderr).contains("added"), "\(result)")
        }
        #expect(try bench.digest() == digest)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aSecondRowThatTheIndexDoesNotKnow_goesInOneRepair() throws {
        let bench = try bench()
        let digest = try bench.digest()
        let columns = Store.recordColumnNames.dropFirst().joined(separator: ", ")
        _ = try execute(
            bench,
            """
            INSERT INTO record (change, \(columns)) SELECT (SELECT min(change) + 1 FROM record WHERE
            change + 1 NOT IN (SELECT change FROM record)), \(columns) FROM record WHERE fields LIKE '%Z%' AND type = 'Publication'
            """)
        try bench.tool(exit: 4, "store", "check")
        let repair = try bench.tool(exit: 0, "store", "repair")
        #expect((repair.stdout + repair.stderr).contains("has one row again"), "\(repair)")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }
}
