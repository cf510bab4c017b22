import TestSupport
import Testing

@testable import BackupKit

/// What another program or a disk took out of a store's tables or folder comes back, or a person gives it up.
@Suite struct CommandsGoneTests {
    private func bench(_ environment: [String: String] = [:]) throws -> Workbench {
        let bench = try Workbench(environment)
        try bench.write("a.bib", "@misc{k1, title={One}}\n@misc{k2, title={Two}}\n")
        try bench.write("files/k1.txt", "text\n")
        try bench.write("day.jsonl", #"{"id":"E1","time":"2026-02-14T10:00:00+01:00","type":"eten"}"# + "\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "day.jsonl", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    private func damage(_ bench: Workbench, _ statement: String) throws {
        try bench.shell("sqlite3 store.db \"PRAGMA ignore_check_constraints = ON; \(statement)\"")
    }

    // MARK: Records

    @Test(arguments: [
        ["restore", "good.zip"], ["restore", "good.zip", "--mode", "replace"], ["import", "a.bib", "day.jsonl"],
        ["store", "repair", "--from", "good.zip"],
    ])
    func recordsThatAreGone_comeBack_andAreNoLongerMissed(command: [String]) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%' OR local_id = 'E1'")
        let told = try bench.tool(command)
        #expect(told.status == 0 || told.status == 3, "\(told)")
        #expect(try bench.shell("sqlite3 store.db \"\(Self.count)\"") == "1\n1\n")
        try bench.tool(exit: 0, "store", "check")
        if command[0] != "import" { #expect(try bench.digest() == digest) }
        // What is written twice is there once.
        _ = try bench.tool(command)
        #expect(try bench.shell("sqlite3 store.db \"\(Self.count)\"") == "1\n1\n")
    }

    private static let count =
        "SELECT count(*) FROM record WHERE fields LIKE '%One%'; SELECT count(*) FROM record WHERE local_id = 'E1'"

    @Test func ofTwoRecordsThatAreGone_theOtherStaysMissed() throws {
        let bench = try bench()
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%' OR fields LIKE '%Two%'")
        try bench.tool(exit: 0, "restore", "good.zip", "--match", "One")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        // Nor does an undo make it forgotten.
        try bench.tool(exit: 0, "undo")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        #expect(try bench.tool(exit: 4, "store", "repair").stderr.contains("1 record is gone"))
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func whatAnotherProgramAdds_makesNoRecordForgottenThatIsGone() throws {
        let bench = try bench()
        try damage(
            bench,
            """
            DELETE FROM record WHERE fields LIKE '%One%'; INSERT INTO record (change, zone, type, local_id, fields,
            created_at, modified_at, schema_version) SELECT 1000, zone, type, 'E2', fields, created_at, modified_at,
            schema_version FROM record WHERE local_id = 'E1'
            """)
        try bench.tool(exit: 0, "restore", "good.zip", "--match", "Two")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("1 record is gone"))
        try bench.tool(exit: 0, "restore", "good.zip")
        #expect(try !bench.tool(["store", "check"]).stderr.contains("is gone"))
    }

    @Test func manyLinesOfALog_bringBackThoseThatAreGone() throws {
        let bench = try Workbench()
        let lines = (100..<400).map { #"{"id":"E\#($0)","time":"2026-02-14T10:00:00+01:00","type":"eten"}"# }
        try bench.write("day.jsonl", lines.map { "\($0)\n" }.joined())
        try bench.tool(exit: 0, "import", "--create", "day.jsonl")
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM record WHERE local_id LIKE 'E_50'")
        #expect(try bench.tool(exit: 0, "import", "day.jsonl").stderr.contains("3 added"))
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test func aSyncAndADigest_nameARecordThatIsGone() throws {
        let bench = try bench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync")
        try damage(bench, "DELETE FROM record WHERE fields LIKE '%One%'")
        for command in [["sync"], ["sync", "--dry-run"], ["store", "digest"]] {
            let told = try bench.tool(command)
            #expect(told.status == 3 && told.stderr.contains("1 record is gone"), "\(command): \(told)")
        }
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.tool(exit: 0, "sync")
        try bench.tool(exit: 0, "store", "check")
    }

    // MARK: Files

    @Test func aLinkedFileWithoutARow_isNamed_andTakenIn() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try damage(bench, "DELETE FROM asset")
        let told = try bench.tool(exit: 3, "store", "check")
        #expect(told.stderr.contains("'backup-tool store adopt Attachments/k1.txt'"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "adopt", "Attachments/k1.txt")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        // The file was there before, and an undo leaves it.
        try bench.tool(exit: 0, "undo")
        #expect(try bench.text("store.db.assets/Attachments/k1.txt") == "text\n")
    }
}
