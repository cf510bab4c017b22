import TestSupport
import Testing

/// What a purge has removed stays away, with its files, and no message advises to bring it back by accident.
@Suite struct CommandsPurgedFileTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("p.bib", "@article{k,title={T},author={A}}\n@article{z,title={Z},author={A}}\n")
        try bench.write("A/k.pdf", "scan\n")
        try bench.write("A/z.pdf", "other\n")
        try bench.tool(exit: 0, "import", "p.bib", "--attachments", "A")
        return bench
    }

    private func purge(_ bench: Workbench) throws -> String {
        let id =
            "Library/"
            + (try bench.shell(
                "sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication' AND fields LIKE '%k.pdf%'\""))
            .split(separator: "\n").map(String.init)[0]
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool(exit: 0, "store", "purge", id, "--confirm", "--with-files")
        return id
    }

    @Test func aPurgedFile_staysAwayByEveryRoute() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        let id = try purge(bench)
        try bench.shell("rm store.db.assets/Attachments/z.pdf")
        for command in [
            "restore b.zip --only attachments --dry-run", "restore b.zip --only attachments", "restore b.zip --match k",
            "restore b.zip --mode replace --only attachments", "restore b.zip --match k.pdf",
            "restore b.zip --only attachments --sync-policy quarantine", "import b.zip --only attachments",
        ] {
            let result = try bench.tool(command.split(separator: " ").map(String.init))
            let said = result.stdout + result.stderr
            #expect(
                result.status == 3 && said.contains("k.pdf: was purged with its record \(id)"), "\(command): \(said)")
            #expect(try bench.shell("find store.db.assets -name 'k*'") == "", "\(command)")
        }
        for command in ["restore b.zip", "restore b.zip --mode replace", "restore b.zip --resurrect"] {
            try bench.tool(command.split(separator: " ").map(String.init))
            #expect(try bench.shell("find store.db.assets -name 'k*'") == "", "\(command)")
        }
        #expect(try bench.exists("store.db.assets/Attachments/z.pdf"))
        try bench.tool(exit: 0, "store", "purge", "--allow-return", id)
        try bench.tool(exit: 0, "restore", "b.zip", "--resurrect")
        #expect(try bench.exists("store.db.assets/Attachments/k.pdf"))
        try bench.tool(exit: 0, "store", "check")
    }

    /// A backup of the time between the delete and the purge has the file, and not the record that names it.
    @Test(arguments: ["", "--mode replace", "--resurrect", "--only attachments", "--match k.pdf"])
    func aPurgedFile_staysAway_whereABackupHasItWithoutItsRecord(options: String) throws {
        let bench = try bench()
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%k.pdf%'\"")
            .split(separator: "\n").map(String.init)[0]
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.tool(exit: 0, "store", "purge", id, "--confirm", "--with-files")
        let command = ["restore", "b.zip"] + options.split(separator: " ").map(String.init)
        let told = try bench.tool(command)
        #expect(told.status == 3 && told.stderr.contains("k.pdf: was purged with its record"), "\(told.stderr)")
        #expect(try bench.shell("grep -rl -e '^scan' -e 'k[.]pdf' store.db* || true") == "")
        try bench.tool(exit: 0, "store", "purge", "--allow-return", "Library/\(id)")
        try bench.tool("restore", "b.zip", "--only", "attachments")
        #expect(try bench.exists("store.db.assets/Attachments/k.pdf"))
    }

    private static let deleted = "$(sqlite3 store.db 'SELECT local_id FROM record WHERE deleted_at IS NOT NULL')"

    /// A purge without `--with-files` names the file that it leaves, and what removes it then.
    @Test(arguments: ["\(deleted)", "--deleted-before 2999-01-01"])
    func aFileThatAPurgeHasLeft_goesWithALaterOne(whose: String) throws {
        let bench = try bench()
        try bench.write("q.bib", "@misc{q,title={Q}}\n")
        try bench.shell(
            "$T store delete $(sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%k.pdf%'\")")
        func purge(_ options: String) throws -> ProcessResult {
            let words = try bench.shell("echo \(whose) \(options)").split(whereSeparator: \.isWhitespace)
            return try bench.tool(["store", "purge"] + words.map(String.init))
        }
        for _ in 0..<2 {
            let told = try purge("--confirm")
            #expect(told.status == 3 && told.stderr.contains("k.pdf: only these records linked"), "\(told.stderr)")
            // The undo history forgets who linked the file.
            for _ in 0..<11 { try bench.shell("$T import -q q.bib; $T undo -q") }
        }
        let state = try bench.state()
        let plan = try purge("--with-files --dry-run")
        #expect(try plan.status == 0 && bench.state() == state)
        let done = try purge("--with-files --confirm")
        #expect(done.status == 0 && done.stdout.contains("file Attachments/k.pdf\n"), "\(done)")
        #expect(plan.stdout == done.stdout)
        #expect(try bench.shell("grep -rl -e '^scan' -e 'k[.]pdf' store.db* || true") == "")
        #expect(try bench.exists("store.db.assets/Attachments/z.pdf"))
        try bench.tool(exit: 0, "store", "check")
    }

    /// No version of the record is left here: it was deleted long ago, or on another device.
    @Test(arguments: [true, false])
    func theFileOfARecordThatWasDeletedLongAgo_goesWithItsFirstPurge(byPeer: Bool) throws {
        let bench = try bench()
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%k.pdf%'\"")
            .split(separator: "\n").map(String.init)[0]
        if byPeer {
            try bench.shell(
                """
                $T -q hub init hub.db; $T -q sync --hub hub.db; $T -q store init --store b.db
                $T -q sync --store b.db --hub hub.db; $T -q store delete --store b.db \(id)
                $T -q sync --store b.db; $T -q sync
                """)
        } else {
            try bench.tool(exit: 0, "store", "delete", id)
            try bench.shell("for i in $(seq 21); do echo \"@misc{q$i,title={Q}}\" > q.bib; $T import -q q.bib; done")
        }
        let left = try bench.tool("store", "purge", id, "--confirm")
        #expect(left.status == 3 && left.stderr.contains("k.pdf: only these records linked"), "\(left.stderr)")
        let done = try bench.tool("store", "purge", id, "--confirm", "--with-files")
        #expect(done.stdout.contains("file Attachments/k.pdf\n"), "\(done)")
        if byPeer { try bench.tool(exit: 0, "sync") }
        let orders = try bench.shell("sqlite3 store.db \"SELECT fields FROM record WHERE fields LIKE '%key:z%'\"")
        #expect(!orders.isEmpty && !orders.contains("key:k\""), "\(orders)")
        #expect(try bench.shell("grep -rl -e '^scan' -e 'k[.]pdf' store.db* || true") == "")
        #expect(try bench.exists("store.db.assets/Attachments/z.pdf"))
        try bench.tool(exit: 0, "store", "check")
    }

    /// A later purge takes no file of another purged record, and none that a living record has come to link.
    @Test func aFileThatAPurgeHasLeft_staysForWhoLinksIt() throws {
        let bench = try bench()
        let ids = try ["k", "z"].map {
            try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%\($0).pdf%'\"")
                .replacing("\n", with: "")
        }
        try bench.tool(exit: 0, "store", "delete", ids[0], ids[1])
        let named = try bench.tool(exit: 3, "store", "purge", "--deleted-before", "2999-01-01", "--confirm").stderr
        #expect(named.contains("k.pdf: only") && named.contains("z.pdf: only"), "\(named)")
        try bench.write("A/n.bib", "@misc{n, title={N}, file={:k.pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "A/n.bib")
        for (id, files) in [(ids[0], []), (ids[1], ["Attachments/z.pdf"])] {
            let done = try bench.json(exit: 0, "store", "purge", id, "--with-files", "--confirm")
            #expect(done["files"]?.array?.map(\.string) == files, "\(done)")
        }
        #expect(try bench.shell("ls store.db.assets/Attachments") == "k.pdf\n")
        try bench.tool(exit: 0, "store", "check")
    }

    /// What a purge had no time to remove is nobody's new file, and goes before its name is given to another one.
    @Test(arguments: [false, true]) func aPurgeThatWasKilled_isFinishedByTheNextWriter(isSecond: Bool) throws {
        let bench = try bench()
        try bench.shell(
            """
            id=Library/$(sqlite3 store.db "SELECT local_id FROM record WHERE type = 'Publication' AND fields LIKE '%k.pdf%'")
            $T store delete "$id"
            if \(isSecond); then $T store purge "$id" --confirm || [ $? = 3 ]; fi
            strace -f -qq -o /dev/null -e inject=unlink,unlinkat:signal=KILL \
                $T store purge "$id" --confirm --with-files || [ $? = 137 ]
            test -e store.db.assets/Attachments/k.pdf
            for end in db db-wal; do cp -a store.$end dead.$end; done; cp -a store.db.assets dead.db.assets
            """)
        let check = try bench.tool(exit: 3, "store", "check")
        #expect(check.stderr.contains("a purge was cut short") && !check.stderr.contains("adopt"), "\(check.stderr)")
        try bench.tool(exit: 0, "export", "-q", "-o", "out")
        try bench.tool("store", "adopt", "--new")
        #expect(try bench.shell("find store.db.assets -name 'k*'") == "")
        try bench.tool(exit: 0, "store", "purge", "--confirm")
        try bench.tool(exit: 0, "store", "check")

        try bench.write("B/k.pdf", "another scan\n")
        try bench.tool("import", "--store", "dead.db", "--attachments", "B")
        #expect(try bench.shell("find dead.db.assets -name 'k*'") == "dead.db.assets/Attachments/k.pdf\n")
        try bench.tool(exit: 0, "store", "purge", "--store", "dead.db", "--confirm")
        #expect(try bench.text("dead.db.assets/Attachments/k.pdf") == "another scan\n")
        #expect(try bench.shell("grep -rl '^scan' dead.db.assets || true") == "")
        try bench.tool(exit: 0, "store", "check", "--store", "dead.db")
    }

    @Test(arguments: [true, false])
    func theOrderOfAFile_withoutPurgedEntries_isNoFinding(isOlder: Bool) throws {
        let bench = try bench()
        func setTime(_ time: String) throws {
            try bench.write(
                "set.sql",
                "UPDATE record SET field_times = '{\"items\":' || \(time) || '}', row_hash = NULL\n"
                    + "WHERE type = 'BibliographyPart';\n")
            try bench.shell("sqlite3 store.db < set.sql")
            try bench.tool(exit: 0, "store", "repair")
        }
        let time = try bench.shell(
            "sqlite3 store.db \"SELECT modified_at FROM record WHERE type = 'BibliographyPart'\"")
        try setTime(time)
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        _ = try purge(bench)
        // As a purge of an older version left it.
        if isOlder { try setTime(time) }
        let result = try bench.tool(exit: 0, "restore", "b.zip")
        #expect(!(result.stdout + result.stderr).contains("--overwrite"), "\(result)")
        let digest = try bench.digest()
        try bench.tool(exit: 0, "restore", "b.zip")
        #expect(try bench.digest() == digest)
        // The key of what was purged is not in the list again.
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.shell("grep -c '\"key:k\"' out/records.jsonl || true").hasPrefix("0"))
    }

    /// I789. Another work has the path by now, and its file stays.
    @Test(arguments: [true, false]) func anEarlierFileOfAPath_goesWithThePurgeOfItsRecord(withFiles: Bool) throws {
        let bench = try Workbench()
        for (key, word) in [("k1", "secret"), ("k2", "other"), ("k3", "kept")] {
            try bench.write("\(key)/p.pdf", "%PDF \(word)\n")
            try bench.write("\(key)/refs.bib", "@misc{\(key), title={Title \(key)}, doi={10.1/\(key)}, file={p.pdf}}\n")
        }
        try bench.tool(exit: 0, "import", "--create", "k1/refs.bib")
        try bench.tool(exit: 0, "undo")
        try bench.tool(exit: 0, "import", "k2/refs.bib")
        // What a living record linked stays for the undo.
        try bench.tool("import", "k3/refs.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-incoming")
        let words = ["store", "purge", "--deleted-before", "2999-01-01"] + (withFiles ? ["--with-files"] : [])
        let plan = try bench.tool(exit: 3, words)
        #expect(plan.stdout.contains("earlier file of Attachments/p.pdf"), "\(plan.stdout)")
        #expect(try bench.shell("grep -rlF '%PDF secret' store.db.assets || true") != "")
        let done = try bench.tool(exit: 0, words + ["--confirm"])
        #expect(done.stdout == plan.stdout)
        #expect(try bench.shell("grep -rlF '%PDF secret' store.db* || true") == "")
        #expect(try bench.text("store.db.assets/Attachments/p.pdf") == "%PDF kept\n")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.text("store.db.assets/Attachments/p.pdf") == "%PDF other\n")
    }
}
