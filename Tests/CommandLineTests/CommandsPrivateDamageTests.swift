import TestSupport
import Testing

/// What is kept on one device only stays there, whatever a backup has lost.
@Suite struct CommandsPrivateDamageTests {
    @Test(arguments: ["dir", "zip"])
    func aDamagedBackup_makesNothingPublic(form: String) throws {
        let bench = try Workbench()
        try bench.write(
            "log/2026-03-01.jsonl",
            """
            {"id":"mine","time":"2026-03-01T01:00:00+01:00","type":"meal","note":"PRIVATE event"}
            {"id":"ours","time":"2026-03-01T02:00:00+01:00","type":"meal","note":"public"}

            """)
        try bench.write(
            "lib.bib",
            """
            @article{k, title={PRIVATE title}, author={Bee, Ann}, year=2001}
            @article{k, title={Shared}, author={Cee, Bob}, year=2002}

            """)
        try bench.write("notes.json", "[{\"citeKey\":\"other\",\"note\":\"PRIVATE note\"}]")
        try bench.tool(exit: 3, "import", "--create", "log", "lib.bib", "notes.json")
        let ids = try bench.shell(
            """
            sqlite3 store.db "SELECT zone || '/' || ifnull(name, local_id) FROM record WHERE fields LIKE '%PRIVATE%'"
            """)
        try bench.tool(exit: 0, ["store", "set-local"] + ids.split(separator: "\n").map(String.init))
        try bench.tool(exit: 0, "export", "-o", "x", "--format", "dir")
        try bench.shell("sed -i 's/\"public\"/\"publiC\"/' x/records.jsonl")
        if form == "zip" { try bench.shell("cd x; zip -qr ../x.zip .") }
        let backup = form == "zip" ? "x.zip" : "x"
        try bench.tool(exit: 3, "restore", backup, "--create", "--store", "new.db", "--allow-damage")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool("sync", "--store", "new.db", "--hub", "hub.db")
        let kept = try bench.shell(
            "sqlite3 new.db \"SELECT count(*) FROM record WHERE local_only AND fields LIKE '%PRIVATE%'\"")
        let shared = try bench.shell("sqlite3 hub.db \"SELECT count(*) FROM record WHERE fields LIKE '%PRIVATE%'\"")
        #expect(kept == "3\n" && shared == "0\n", "\(kept) \(shared)")
        let all = try bench.shell(
            """
            sqlite3 hub.db "SELECT count(*) FROM record WHERE fields LIKE '%public%' OR fields LIKE '%Shared%'"
            """)
        #expect(all == "2\n")
    }
}
