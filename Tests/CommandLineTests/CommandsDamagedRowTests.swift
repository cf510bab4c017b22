import BackupKit
import TestSupport
import Testing

struct CommandsDamagedRowTests {
    @Test func everyReadingCommandNamesADamagedRow_andNoneEndsWith0() throws {
        let bench = try Workbench()
        try bench.write(
            "2026-02-14.jsonl",
            """
            {"id":"E1","time":"2026-02-14T10:00:00+01:00","type":"eten"}
            {"id":"E2","time":"2026-02-14T11:00:00+01:00","type":"eten"}

            """)
        try bench.write("library.bib", "@book{a, title={A}}\n@book{b, title={B}}\n")
        try bench.tool(exit: 0, "import", "library.bib", "2026-02-14.jsonl")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = '{\\\"id\\\":' WHERE local_id = 'E1'\"")
        for command in [
            ["export", "-o", "all.tar.zst"], ["export", "-o", "imbib.zip", "--format", "imbib"],
            ["events", "export", "-o", "days"], ["store", "digest"], ["store", "changes"],
            ["diff", "all.tar.zst", "store.db"],
            ["restore", "all.tar.zst"], ["sync", "--hub", "hub.db"],
        ] {
            let result = try bench.tool(command)
            #expect(result.status == 3, "\(command): \(result.stderr)")
            #expect((result.stderr + result.stdout).contains("OllieEvents/E1"), "\(command): \(result.stderr)")
        }
        #expect(try bench.text("days/2026-02-14.jsonl").contains("E2"))
        #expect(try bench.tool(exit: 3, "store", "digest").stderr.contains("store repair --from"))
        let shown = try bench.tool(exit: 0, "show", "all.tar.zst", "damaged.jsonl").stdout
        #expect(shown.contains("\"fields\":\"{\\\"id\\\":\""))
        try bench.tool(exit: 3, "verify", "all.tar.zst")
        let held = try bench.shell("sqlite3 hub.db 'SELECT count(*) FROM record'")
        #expect(held.hasPrefix("4"))
    }

    @Test func aNightDoesNotTakeBitRotForAGoodBackup() throws {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={Alpha}}\n@misc{b, title={Beta}}\n")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; \"$T\" -q import lib.bib")
        try bench.makeCheapVault()
        try bench.write(
            "c/nightly.toml", "store = '../store.db'\nvault = '../v'\npassword-file = '../pw'\nkeep.last = 1\n")
        try bench.tool(exit: 0, "run", "--config", "c/nightly.toml")
        try bench.tool(exit: 0, "export", "-o", "good.tar.zst")
        let digest = try bench.tool(exit: 0, "store", "digest").stdout
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = replace(fields, 'Alpha', 'Alphe')\"")
        let night = try bench.tool(exit: 4, "run", "--config", "c/nightly.toml")
        #expect(night.stderr.contains("Library/") && night.stderr.contains("store repair --store"), "\(night.stderr)")
        // The good one, not the one of tonight.
        let state = try JSON(parsing: bench.text("c/run-default.json"))
        let good = try #require(state["good"]?["snapshot"]?.string?.prefix(8))
        #expect(night.stderr.contains("--from vault:\(bench.folder)/v@\(good)"), "\(night.stderr)")
        let snapshots = try bench.tool(exit: 0, "vault", "snapshots", "--config", "c/nightly.toml").stdout
        // Where the table is narrow, the last tags are cut off.
        #expect(snapshots.contains("  partial,nightly,"), "\(snapshots)")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("is not what the store has written"))
        try bench.tool(exit: 4, "store", "repair", "--from", "vault:v", "--config", "c/nightly.toml")
        try bench.tool(exit: 0, "store", "repair", "--from", "good.tar.zst")
        #expect(try bench.tool(exit: 0, "store", "digest").stdout == digest)
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "run", "--config", "c/nightly.toml")
    }
}

@Test func anUndo_passesOverTheRowOfADamagedAttachment() throws {
    let bench = try Workbench()
    try bench.shell(
        "mkdir p; echo 0 > p/0.txt; echo 1 > p/1.txt; $T -q store init; $T -q import --attachments p || true")
    try bench.shell(
        "sqlite3 store.db \"PRAGMA ignore_check_constraints = ON; UPDATE asset SET size = -1 WHERE path LIKE '%1.txt'\""
    )
    let done = try bench.tool(exit: 3, "undo")
    #expect(done.stderr.contains("1.txt: 'size' is out of range"), "\(done.stderr)")
    #expect(try bench.shell("sqlite3 store.db 'SELECT path FROM asset'").hasSuffix("1.txt\n"))
}

/// A disk that has lost a sector of the table of records costs the records in it, and a repair does not pretend.
@Test(arguments: [512, 2048, 6000]) func aLostSectorOfATable_costsItsRecordsOnly(offset: Int) throws {
    let bench = try Workbench()
    let note = String(repeating: "x", count: 120)
    let lines = (100..<160).map {
        "{\"id\":\"event\($0)\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"eten\",\"note\":\"\(note)\"}\n"
    }
    try bench.write("2026-02-14.jsonl", lines.joined())
    try bench.tool(exit: 0, "import", "--create", "2026-02-14.jsonl")
    try bench.tool(exit: 0, "export", "-o", "good.tar")
    try bench.python(
        """
        import sqlite3, sys
        base = sqlite3.connect('store.db')
        base.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        size = base.execute('PRAGMA page_size').fetchone()[0]
        leaves = [page for page, kind in base.execute(
            "SELECT pageno, pagetype FROM dbstat WHERE name = 'record'") if kind == 'leaf']
        base.close()
        data = bytearray(open('store.db', 'rb').read())
        start = (leaves[1] - 1) * size + int(sys.argv[1])
        data[start:start + 512] = bytes(512)
        open('store.db', 'wb').write(data)
        """, String(offset))
    let before = try bench.bytes("store.db")
    let check = try bench.tool(exit: 4, "store", "check")
    #expect(check.stderr.contains("'backup-tool restore BACKUP --create --store NEW"), "\(check.stderr)")
    #expect(!check.stderr.contains("'backup-tool store repair"), "\(check.stderr)")
    let export = try bench.tool("export", "-o", "left.tar")
    #expect([3, 4].contains(export.status), "\(export.stderr)")
    try bench.tool(exit: 3, "restore", "left.tar", "--create", "--store", "left.db")
    for words in [["--from", "good.tar"], ["--accept"]] {
        let repair = try bench.tool(["store", "repair"] + words)
        #expect(repair.status == 4 && repair.stderr.contains("nothing was repaired"), "\(repair.stderr)")
    }
    #expect(try bench.bytes("store.db") == before)
    try bench.tool(exit: 0, "restore", "good.tar", "--create", "--store", "new.db")
    #expect(try bench.shell("sqlite3 new.db 'SELECT count(*) FROM record'") == "60\n")
}

/// What `store check` names is gone after the command that it names.
@Test(arguments: [
    ("INSERT INTO damaged VALUES ('{x', 1, NULL)", ["--accept"]),
    ("INSERT INTO held VALUES ('', 'x', 'size', '', 1, 1)", []),
    ("INSERT INTO held VALUES ('Z', 'a/b', 'permission', '', 1, 1)", []),
    ("INSERT INTO held VALUES ('Z', '', 'odd', '', 1, 1)", []),
])
func whatWaitsInVain_isNamedAndEnds(row: String, options: [String]) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}, doi={10.1/a}}\n")
    try bench.tool(exit: 0, "import", "a.bib", "--create")
    try bench.shell("sqlite3 store.db \"\(row)\"")
    #expect(try bench.tool(exit: 3, "store", "check").stderr.contains("'backup-tool store repair"))
    try bench.tool(["store", "repair"] + options)
    try bench.tool(exit: 0, "store", "check")
    try bench.tool(exit: 0, "export", "-o", "e.tar")
}
