import BackupKit
import TestSupport
import Testing

/// A purge goes by work: all its names, what a sync knows of its files, and what only the undo history has.
struct CommandsPurgeHistoryTests {
    private static let secret = "SECRETWORD"
    private static let byTime = ["store", "purge", "--deleted-before", "2999-01-01", "--confirm", "--with-files"]

    /// A store with one publication and its file, and the publication's id.
    private func bench() throws -> (bench: Workbench, id: String) {
        let bench = try Workbench()
        try bench.write("\(Self.secret).pdf", "%PDF \(Self.secret)\n")
        try bench.write(
            "s.bib",
            "@book{Loc, author={Loc, L}, title={\(Self.secret)}, year={2003}, file={:\(Self.secret).pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "s.bib")
        let ids = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        return (bench, ids.split(separator: "\n").first.map(String.init) ?? "")
    }

    /// Files of the store that hold the word, or have it in their names.
    private func hits(_ bench: Workbench) throws -> String {
        try bench.shell("grep -rlaF '\(Self.secret)' store.db* || true; find store.db* -name '*\(Self.secret)*'")
    }

    @Test(arguments: [true, false]) func whatWasKeptOnThisDeviceOnly_isPurgedUnderAllItsNames(byTime: Bool) throws {
        let (bench, id) = try bench()
        try bench.tool(exit: 0, "store", "set-local", id)
        // The cloud's tombstone alone is no delete of the record.
        try bench.tool("store", "purge", "--deleted-before", "2999-01-01", "--confirm")
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM purged'") == "0\n")
        // Its versions are those of a living record.
        let before = try bench.digest()
        try bench.tool(exit: 0, "undo")
        #expect(
            try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE fields LIKE '%\(Self.secret)%'\"")
                == "1\n")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.digest() == before)
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool(exit: 0, byTime ? Self.byTime : ["store", "purge", id, "--confirm", "--with-files"])
        #expect(try hits(bench) == "")
        for _ in 0..<4 { try bench.tool("undo") }
        #expect(try hits(bench) == "")
        try checkSound(bench.path("store.db"))
    }

    /// The order of a file lists the cite keys of its entries.
    @Test(arguments: [
        "restore b.tar", "restore b.tar --mode replace", "restore b.tar --resurrect", "import copy/l.bib",
        "restore b.tar --sync-policy quarantine", "restore im.zip --mode replace", "import --mirror l.bib",
    ])
    func theCiteKeyOfAPurgedWork_staysAway(command: String) throws {
        let bench = try Workbench()
        let entries = "@misc{\(Self.secret), title={K}}\n@misc{twin, title={X}}\n"
        try bench.write("l.bib", entries)
        try bench.write("copy/l.bib", entries + "@misc{new, title={N}}\n@misc{twin, author={T}, title={Y}}\n")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.tool(exit: 0, "export", "-o", "b.tar")
        try bench.tool(exit: 0, "export", "--format", "imbib", "-o", "im.zip")
        for key in [Self.secret, "twin"] {
            try bench.shell(
                """
                $T -q store delete "$(sqlite3 store.db "SELECT local_id FROM record WHERE fields LIKE '%{\(key),%'")"
                """)
        }
        try bench.tool(exit: 0, Self.byTime)
        try bench.write("other.bib", "@book{twin, author={Another Person}, title={Another work}}\n")
        try bench.tool(exit: 0, "import", "other.bib")
        for _ in 0..<2 {
            try bench.tool(command.split(separator: " ").map(String.init))
            #expect(try hits(bench) == "")
        }
        // Whose work is alive keeps its place. A whole backup replaces also the order of a file that it lacks.
        let isReplaced = command == "restore b.tar --mode replace"
        let orders = "SELECT fields FROM record WHERE fields LIKE '%order%other.bib%'"
        #expect(try bench.shell("sqlite3 store.db \"\(orders)\"").contains("key:twin") != isReplaced)
        if command == "import copy/l.bib" {
            let order = try bench.shell("sqlite3 store.db \"SELECT fields FROM record WHERE fields LIKE '%key:new%'\"")
            #expect(order.contains("key:twin"), "\(order)")
        }
        for words in [["undo"], ["undo", "--redo"]] {
            try bench.tool(words)
            #expect(try hits(bench) == "", "\(words)")
        }
        try checkSound(bench.path("store.db"))
    }

    /// A store with an older order of a file in quarantine.
    private func benchWithOldOrder() throws -> Workbench {
        let bench = try Workbench()
        let entries = "@misc{\(Self.secret), title={K}}\n@misc{l, title={L}}\n"
        try bench.write("l.bib", entries)
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.tool(exit: 0, "export", "-o", "b.tar")
        try bench.write("l.bib", "@misc{new, title={N}}\n" + entries)
        try bench.tool(exit: 0, "import", "l.bib")
        try bench.tool("restore", "b.tar", "--sync-policy", "quarantine")
        return bench
    }

    @Test func theCiteKeyOfAPurgedWork_goesFromAnOldOrderThatWasInQuarantine() throws {
        let bench = try benchWithOldOrder()
        try bench.tool(exit: 0, "undo")
        let works = "SELECT local_id FROM record WHERE fields LIKE '{%{\(Self.secret),%'"
        let work = try bench.shell("sqlite3 store.db \"\(works)\"").split(separator: "\n").first.map(String.init)
        try bench.tool(exit: 0, "store", "delete", #require(work))
        try bench.tool("store", "purge", #require(work), "--confirm", "--with-files")
        #expect(try hits(bench) == "")
        try bench.tool("undo", "--redo")
        try checkSound(bench.path("store.db"))
    }

    @Test func theCiteKeyOfAPurgedWork_goesFromAnOrderInQuarantine() throws {
        let bench = try benchWithOldOrder()
        let kept = "sqlite3 store.db \"SELECT fields FROM record WHERE type = 'Quarantined' AND fields LIKE '%key:l%'\""
        #expect(try bench.shell(kept).contains(Self.secret))
        try bench.shell(
            """
            $T -q store delete "$(sqlite3 store.db "SELECT local_id FROM record WHERE fields LIKE '{%{\(Self.secret),%'")"
            """)
        try bench.tool(exit: 0, Self.byTime)
        #expect(try hits(bench) == "" && bench.shell(kept).contains("key:l"))
        try checkSound(bench.path("store.db"))
    }

    /// A backup of the time between delete and purge lists the entry and lacks its record.
    @Test(arguments: ["honor", "quarantine", "honor --mode replace"])
    func theCiteKeyOfAPurgedWork_staysAway_whereABackupListsItAlone(policy: String) throws {
        let bench = try Workbench()
        let entries = "@misc{\(Self.secret), title={K}}\n@misc{l, title={L}}\n"
        try bench.write("l.bib", entries)
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.shell(
            """
            $T -q store delete "$(sqlite3 store.db "SELECT local_id FROM record WHERE fields LIKE '{%{\(Self.secret),%'")"
            """)
        try bench.tool(exit: 0, "export", "-o", "b.tar")
        #expect(try bench.shell("tar -xOf b.tar").contains("key:\(Self.secret)"))
        try bench.tool(exit: 0, Self.byTime)
        try bench.write("l.bib", "@misc{new, title={N}}\n@misc{l, title={L}}\n")
        try bench.tool("import", "l.bib")
        try bench.tool(["restore", "b.tar", "--sync-policy"] + policy.split(separator: " ").map(String.init))
        #expect(try hits(bench) == "")
        try checkSound(bench.path("store.db"))
    }

    @Test func theNameOfAPurgedFile_goesWithTheSyncThatTellsTheHub() throws {
        let (bench, id) = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "delete", id)
        let purge = ["store", "purge", id, "--confirm", "--with-files"]
        let done = try bench.tool(exit: 3, purge)
        #expect(done.stderr.contains("backup-tool sync"), "\(done.stderr)")
        try bench.tool(exit: 0, "sync")
        #expect(try hits(bench) == "")
        try bench.tool(exit: 0, purge)
        // The same path may bear another file, which the hub gets.
        try bench.write("\(Self.secret).pdf", "%PDF another\n")
        try bench.write("s.bib", "@book{New, title={Another title}, file={:\(Self.secret).pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "s.bib")
        try bench.tool(exit: 0, "sync")
        try bench.tool(exit: 0, "store", "init", "--store", "B.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "B.db")
        #expect(try bench.shell("cat B.db.assets/*/*.pdf").contains("another"))
    }

    @Test(arguments: [true, false]) func anImportThatWasUndone_isPurged_andItsRedoSaysSo(byTime: Bool) throws {
        let (bench, id) = try bench()
        try bench.tool(exit: 0, "undo")
        #expect(try !hits(bench).isEmpty)
        // Not before it was taken back.
        try bench.tool(exit: 0, "store", "purge", "--deleted-before", "30d", "--confirm")
        #expect(try !hits(bench).isEmpty)
        let words = byTime ? Self.byTime : ["store", "purge", id, "--confirm", "--with-files"]
        let plan = try bench.tool(exit: 3, words.filter { $0 != "--confirm" })
        #expect(plan.stdout.contains(id) && plan.stdout.contains("file "), "\(plan.stdout)")
        let done = try bench.tool(exit: 0, words)
        #expect(done.stdout == plan.stdout)
        #expect(try hits(bench) == "")
        let redo = try bench.tool(exit: 3, ["undo", "--redo"])
        #expect(redo.stderr.contains("was purged and stays deleted"), "\(redo.stderr)")
        #expect(try hits(bench) == "")
        // Nobody has deleted the work: a new import may bring it.
        try bench.tool("import", "s.bib")
        #expect(try !hits(bench).isEmpty)
        try checkSound(bench.path("store.db"))
    }

    @Test func aPurgeWithoutRoom_saysWhatIsDone_andTheNextFinishesIt() throws {
        let bench = try Workbench()
        let lines = (0..<6000).map { "@misc{n\($0), title={A title of number \($0)}}\n" }.joined()
        try bench.write("many.bib", lines)
        try bench.write("s.bib", "@misc{s, title={\(Self.secret)}, doi={10.1/s}}\n")
        try bench.tool(exit: 0, "import", "s.bib", "many.bib")
        let id =
            try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%\(Self.secret)%'\"")
            .split(separator: "\n").first.map(String.init) ?? ""
        try bench.tool(exit: 0, "store", "delete", id)
        let told = try bench.shell(
            "(ulimit -f 1500; trap '' XFSZ; $T store purge '\(id)' --confirm 2>&1; echo \"exit $?\") || true")
        #expect(told.contains("already purged") && told.contains("store purge --confirm") && told.contains("exit 1"))
        #expect(try bench.tool("store", "check").stderr.contains("store purge --confirm"))
        try bench.tool(exit: 0, "store", "purge", id, "--confirm")
        #expect(try hits(bench) == "")
        try bench.tool(exit: 0, "store", "check")
    }

    /// Nobody can tell whose it is.
    @Test func aDamagedVersionOfTheHistory_goesWithAPurge() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k1, title={Secret}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        let ids = "SELECT local_id FROM record WHERE type = 'Publication'"
        let id = try bench.shell("sqlite3 store.db \"\(ids)\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", String(id))
        try bench.shell("sqlite3 store.db \"UPDATE batch_record SET local_id = replace(local_id, '-', '+')\"")
        try bench.tool("store", "purge", String(id), "--confirm")
        #expect(try bench.shell("cat store.db* | grep -c Secret || true") == "0\n")
    }
}
