import BackupKit
import TestSupport
import Testing

/// What `restore --mode replace` leaves of a publication that a decision has kept since the backup, and of the files of the one
/// that it has deleted.
@Suite struct CommandsKeptFilesTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        for file in ["p1", "p3"] { try bench.write("t/\(file).pdf", "bytes of \(file)\n") }
        try bench.write(
            "lib.bib",
            "@article{k, author={One, A}, title={First work}, year={1991}, file={t/p1.pdf}}\n"
                + "@article{k, author={Three, C}, title={Third thing}, year={1993}, file={t/p3.pdf}}\n")
        try bench.tool(exit: 3, "import", "-q", "--create", "lib.bib")
        try bench.tool(exit: 0, "export", "-q", "-o", "bk.tar")
        return bench
    }

    private func keepThird(_ bench: Workbench) throws {
        let id = try bench.shell(
            "sqlite3 store.db \"SELECT 'Library/' || local_id FROM record WHERE fields LIKE '%Third thing%'"
                + " AND type = 'Publication'\"")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--keep", String(id.dropLast()))
    }

    private func works(_ bench: Workbench) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.title'), json_extract(fields, '$.linkedFiles') FROM record"
                + " WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1\"")
    }

    @Test func aReplace_leavesNoFileOfADeletedWorkWithoutALink() throws {
        let bench = try bench()
        try keepThird(bench)
        let kept = "Third thing|[\"Attachments/t/p1.pdf\",\"Attachments/t/p3.pdf\"]\n"
        #expect(try works(bench) == kept)
        let told = try bench.tool(exit: 3, "restore", "bk.tar", "--mode", "replace").stderr
        #expect(told.contains("'backup-tool restore --mode replace --resurrect bk.tar' brings it back"), "\(told)")
        #expect(try works(bench) == kept)
        let again = try bench.json(exit: 3, "restore", "bk.tar", "--mode", "replace")
        #expect(again["writes"]?.integer == 0, "\(again)")
        try bench.tool(exit: 0, "store", "check")
        // Both come back as the backup has them.
        try bench.tool("restore", "bk.tar", "--mode", "replace", "--resurrect")
        #expect(
            try works(bench)
                == "First work|[\"Attachments/t/p1.pdf\"]\nThird thing|[\"Attachments/t/p3.pdf\"]\n")
    }

    /// More than one thing of an entry was corrected, so that nothing says that it is the same work: the older one is deleted, and
    /// the newer one not in the backup.
    @Test func aReplace_saysThatAWorkOfTheBackupStaysDeleted() throws {
        let bench = try Workbench()
        try bench.write("m.bib", "@article{k0, title={Whales}, author={Smith, Ann}, year={2020}}\n")
        try bench.tool(exit: 0, "import", "--create", "m.bib")
        try bench.tool(exit: 0, "export", "-o", "x")
        try bench.write("m.bib", "@article{k0, title={Whales of the north}, author={Smith, Ann}, year={2021}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "m.bib")
        for flags in [["--dry-run"], []] {
            let told = try bench.tool(["restore", "--mode", "replace", "x"] + flags)
            #expect(told.status == 3 && told.stderr.contains("stays deleted"), "\(told.stderr)")
        }
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--resurrect", "x")
        #expect(try works(bench) == "Whales|\n")
    }

    /// A backup that has only the work which the decision deleted.
    @Test func aReplace_leavesTheWorkThatADecisionKept() throws {
        let bench = try bench()
        try bench.write("one.bib", "@article{k, author={One, A}, title={First work}, year={1991}}\n")
        try bench.tool(exit: 0, "import", "-q", "--store", "one.db", "--create", "one.bib")
        try bench.tool(exit: 0, "export", "-q", "--store", "one.db", "-o", "one.tar")
        try keepThird(bench)
        try bench.tool(exit: 3, "restore", "one.tar", "--mode", "replace")
        #expect(try works(bench).hasPrefix("Third thing|"))
    }
}
