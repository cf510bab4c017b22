import TestSupport
import Testing

/// One row of a small table that is odd costs itself only, and the advice about it works.
@Suite struct CommandsOddRowTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        for number in 1...4 { try bench.write("lib/pdfs/a\(number).pdf", "file \(number)\n") }
        try bench.write(
            "lib/all.bib",
            (1...4).map { "@misc{k\($0), title={T\($0)}, author={A\($0)}, file={:pdfs/a\($0).pdf:PDF}}\n" }.joined())
        try bench.write("lib/settings.json", #"{"a":1,"b":2,"c":3,"d":4}"#)
        try bench.tool(
            exit: 0, "import", "--create", "lib", "--attachments", "lib/pdfs", "--only",
            "publications,attachments,settings")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    private func execute(_ bench: Workbench, _ sql: String) throws { try bench.shell("sqlite3 store.db \"\(sql)\"") }

    /// A disk tells no trigger.
    private func rot(_ bench: Workbench, _ sql: String) throws {
        try execute(
            bench,
            """
            CREATE TEMP TABLE noted AS SELECT * FROM witness; \(sql); DELETE FROM witness;
            INSERT INTO witness SELECT * FROM noted
            """)
    }

    private func said(_ result: ProcessResult) -> String { result.stdout + result.stderr }

    @Test(arguments: [
        "'Attachments/odd' || char(10) || 'x.pdf'", "'Attachments/odd' || char(0) || 'x.pdf'", "'../odd.pdf'",
        "'/odd.pdf'", "'Attachments/odd' || printf('%.300c', 'n')", "'.blobs/odd'", "'Attachments//odd.pdf'",
    ])
    func aRowThatNamesNoAttachment_costsItselfOnly(path: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.tool(exit: 0, "vault", "init", "--vault", "v")
        try bench.shell("rm store.db.assets/Attachments/a2.pdf")
        try execute(
            bench,
            """
            UPDATE record SET fields = replace(fields, 'T3', 'X3');
            INSERT INTO asset SELECT \(path), size, '0000' || substr(sha256, 5), 0, 1, change FROM asset LIMIT 1
            """)
        let check = said(try bench.tool(exit: 4, "store", "check"))
        #expect(check.contains("odd") && check.contains("a2.pdf") && check.contains("is not what"), "\(check)")
        let mended = said(try bench.tool(exit: 4, "store", "repair", "--from", "good.zip"))
        #expect(mended.contains("a2.pdf: its file was restored") && mended.contains("odd"), "\(mended)")
        #expect(try bench.exists("store.db.assets/Attachments/a2.pdf"))
        for command in [
            "store adopt", "restore good.zip --mode replace", "export -o out", "store digest", "vault backup --vault v",
        ] {
            let result = try bench.tool(command.split(separator: " ").map(String.init))
            #expect(result.status == 3 && said(result).contains("odd"), "\(command): \(said(result))")
        }
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        #expect(try bench.shell("cat store.db.damaged-*").contains("odd"))
    }

    @Test func aRowThatNamesNoAttachment_goes_whereItsBytesAreAnothers() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try rot(bench, "UPDATE asset SET path = 'Attachments/a' || char(7) || '.pdf' WHERE path LIKE '%a2%'")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: ["size + 1", "0", "1 << 59", "300000000"])
    func aWrongSizeOfASoundFile_isSetRight(size: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try execute(bench, "UPDATE asset SET size = \(size) WHERE path LIKE '%a2%'")
        let check = said(try bench.tool(exit: 4, "store", "check"))
        #expect(check.contains("a2.pdf") && !check.contains("--from"), "\(check)")
        for more in [["--from", "good.zip", "--dry-run"], []] {
            let told = try bench.tool(["store", "repair"] + more)
            #expect(told.status == 0 && told.stdoutLines.count == 1, "\(said(told))")
        }
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: ["setting", "asset"])
    func aKeyThatIsThereTwice_isExportedOnce_andNoRepairBreaks(table: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.python(
            """
            import sqlite3, struct, sys
            db = sqlite3.connect('store.db')
            db.execute('pragma wal_checkpoint(truncate)')
            root = db.execute('select rootpage from sqlite_master where name = ?', (sys.argv[1],)).fetchone()[0]
            db.close()
            data = bytearray(open('store.db', 'rb').read())
            page = (root - 1) * struct.unpack('>H', data[16:18])[0] + 8
            data[page + 4:page + 6] = data[page + 2:page + 4]
            open('store.db', 'wb').write(data)
            """, table)
        let check = said(try bench.tool(exit: 4, "store", "check"))
        #expect(check.contains("is there twice"), "\(check)")
        try bench.tool(exit: 3, "store", "digest")
        let export = said(try bench.tool(exit: 3, "export", "-o", "out"))
        #expect(export.contains("is there twice"), "\(export)")
        let settings = try bench.text("out/settings.json")
        #expect(settings.split(separator: "\n").count == (table == "setting" ? 5 : 6), "\(settings)")
        // Something was left out, and nothing is wrong with the rest.
        try bench.tool(exit: 3, "verify", "--level", "deep", "out")
        for way in [["--from", "good.zip"], ["--accept"]] {
            let told = try bench.tool(["store", "repair"] + way)
            #expect(told.status == 4 && said(told).contains("--create --store NEW"), "\(said(told))")
        }
        try bench.shell("$T restore good.zip --create --store new.db --only publications,attachments,settings")
        #expect(try bench.digest("new.db") == digest)
    }

    @Test func aFileWhoseRowIsGone_isNamedByEveryBackup() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.tool(exit: 0, "vault", "init", "--vault", "v")
        try execute(bench, "DELETE FROM asset WHERE path LIKE '%a2%'")
        try bench.tool(exit: 3, "store", "check")
        for command in ["export -o out", "export --format imbib -o imbib", "vault backup --vault v"] {
            let result = try bench.tool(command.split(separator: " ").map(String.init))
            #expect(result.status == 3 && said(result).contains("a2.pdf"), "\(command): \(said(result))")
        }
        try bench.tool(exit: 0, "export", "--only", "publications", "-o", "some")
        try bench.tool(exit: 0, "store", "adopt", "Attachments/a2.pdf")
        try bench.tool(exit: 0, "export", "-o", "whole")
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: [
        "UPDATE meta SET value = '0123456789abcdef' WHERE key = 'hash_seed'",
        "DELETE FROM meta WHERE key = 'hash_seed'", "UPDATE meta SET value = 'x' WHERE key = 'hash_seed'",
        "UPDATE noted SET row = '0123456789abcdef' WHERE key = 'hash_seed'",
        "DELETE FROM meta WHERE key = 'keys_fold_uuids'",
    ])
    func aSeedThatIsNotTheRows_isFound_andCostsNoRecord(rotten: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try rot(bench, rotten)
        let check = said(try bench.tool(exit: 4, "store", "check"))
        #expect(check.contains("meta ") && !check.contains("Library/") && !check.contains("the index"), "\(check)")
        try bench.tool(exit: 0, "export", "-o", "out")
        try bench.shell("cp store.db whole.db; cp -r store.db.assets whole.db.assets")
        try bench.tool(exit: 0, "store", "repair", "--store", "whole.db")
        try bench.tool(exit: 0, "store", "check", "--store", "whole.db")
        #expect(try bench.digest("whole.db") == digest)
        // What really is damaged is told apart.
        try execute(bench, "UPDATE record SET fields = replace(fields, 'T3', 'X3') WHERE fields LIKE '%T3%'")
        let left = said(try bench.tool(exit: 4, "store", "repair"))
        #expect(left.contains("damage: Library/") && !left.contains(" more, each: "), "\(left)")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.zip")
        #expect(try bench.digest() == digest)
    }
}
