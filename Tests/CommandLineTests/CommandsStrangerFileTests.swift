import TestSupport
import Testing

/// Files that somebody put into the store's folder and that the store does not know.
@Suite struct CommandsStrangerFileTests {
    let path = "Attachments/k.txt"

    func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={K}}\n")
        try bench.write("files/k.txt", "one\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        return bench
    }

    /// The database is lost, and its folder has a file that was changed since.
    @Test func aFileInTheWayOfARestore_isKeptBesideIt() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -f store.db store.db-*; echo mine >> store.db.assets/\(path)")
        let restore = ["restore", "b.zip"]
        let planned = try bench.tool(restore + ["--dry-run"])
        #expect(try planned.status == 3 && !bench.exists("store.db"), "\(planned.stderr)")
        #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
        let done = try bench.tool(restore)
        #expect(done.status == 3, "\(done.stderr)")
        let kept = try #require(done.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        #expect(planned.stderr.contains(kept), "\(planned.stderr)")
        func expectBoth() throws {
            #expect(try bench.text("store.db.assets/\(path)") == "one\n")
            #expect(try bench.text("store.db.assets/\(kept)") == "one\nmine\n")
            try bench.tool(exit: 0, "store", "check")
        }
        try expectBoth()
        let digest = try bench.digest()
        for _ in 0..<2 {
            try bench.tool(exit: 0, "undo")
            #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
            #expect(try !bench.exists("store.db.assets/\(kept)"))
            try bench.tool("undo", "--redo")
            try expectBoth()
            #expect(try bench.digest() == digest)
        }
        let command = try #require(done.stderr.firstMatch(of: /'(cp [^']+)' and then '(backup-tool store adopt)'/))
        try bench.shell("\(command.1); $T store adopt")
        #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
        try bench.tool(exit: 0, "store", "check")
    }

    /// The backup has a file of the name that would be given to the one in the way, and so has the folder.
    @Test(arguments: ["merge", "replace"])
    func aFileInTheWay_takesNoNameOfTheBackup(_ mode: String) throws {
        let bench = try bench()
        let day = try bench.shell("date -u +%F").dropLast()
        try bench.write("files/k_conflict_\(day).txt", "two\n")
        try bench.tool(exit: 3, "import", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -f store.db store.db-*")
        try bench.shell("cd store.db.assets/Attachments; echo mine > k.txt; echo three > k_*.txt")
        try bench.tool(exit: 3, "restore", "b.zip", "--mode", mode)
        #expect(try bench.text("store.db.assets/\(path)") == "one\n")
        #expect(try bench.text("store.db.assets/Attachments/k_conflict_\(day).txt") == "two\n")
        let texts = try bench.shell("cat store.db.assets/Attachments/* | sort")
        #expect(texts == "mine\none\nthree\ntwo\n")
        try bench.tool(exit: 0, "store", "check")
    }

    /// The name that the file in the way would get is free, and a file of the backup has it.
    @Test(arguments: ["merge", "replace"])
    func aFileInTheWay_leavesTheNamesThatAreToCome(_ mode: String) throws {
        let bench = try bench()
        let day = try bench.shell("date -u +%F").dropLast()
        try bench.write("files/k_conflict_\(day).txt", "two\n")
        try bench.tool(exit: 3, "import", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -rf store.db*; mkdir -p store.db.assets/Attachments; echo mine > store.db.assets/\(path)")
        try bench.tool(exit: 3, "restore", "b.zip", "--mode", mode)
        #expect(try bench.text("store.db.assets/Attachments/k_conflict_\(day).txt") == "two\n")
        #expect(try bench.shell("cat store.db.assets/Attachments/* | sort") == "mine\none\ntwo\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aFileInTheWayOfASync_isKeptBesideIt() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.write("b.db.assets/\(path)", "mine\n")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        let planned = try bench.tool(exit: 3, "sync", "--store", "b.db", "--hub", "hub.db", "--dry-run")
        let done = try bench.tool(exit: 3, "sync", "--store", "b.db", "--hub", "hub.db")
        let kept = try #require(done.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        #expect(planned.stderr.contains(kept), "\(planned.stderr)")
        #expect(try bench.text("b.db.assets/\(path)") == "one\n")
        #expect(try bench.text("b.db.assets/\(kept)") == "mine\n")
        try bench.tool(exit: 0, "sync", "--store", "b.db")
        try bench.tool(exit: 0, "sync")
        #expect(try bench.digest("b.db") == bench.digest())
    }

    /// A link in the place of a file is not followed, and costs nothing else.
    @Test func aLinkInTheWayOfARestore_costsItselfOnly() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -f store.db store.db-*; ln -sf /etc/hostname store.db.assets/\(path)")
        let done = try bench.tool(exit: 3, "restore", "b.zip")
        #expect(done.stderr.contains("make room at store.db.assets/\(path)"), "\(done.stderr)")
        try bench.tool(exit: 0, "export", "-o", "c.zip")
        #expect(try bench.tool(exit: 0, "show", "c.zip", path).stdout == "one\n")
    }
}

extension CommandsStrangerFileTests {
    /// A file that somebody drops into the folder is in no backup, and everything that could have it says so.
    @Test func aFileThatLiesInTheFolder_isNamedByAll_andTakenIn() throws {
        let bench = try bench()
        try bench.write("store.db.assets/Attachments/new.pdf", "new\n")
        try bench.shell("ln -s /etc/hostname store.db.assets/Attachments/link.pdf")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        try bench.makeCheapVault()
        try bench.write("n.toml", "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.last = 1\n")
        for words in [
            ["store", "check"], ["store", "check", "--quick"], ["store", "adopt"], ["export", "-o", "a.zip"],
            ["import", "--attachments", "store.db.assets"], ["import", "--attachments", "store.db.assets/Attachments"],
            ["import", "a.bib", "--attachments", "."], ["run", "--config", "n.toml"],
            // Nothing has changed since.
            ["run", "--config", "n.toml"],
        ] {
            let told = try bench.tool(words)
            #expect(told.status == 3, "\(words): \(told.stderr)")
            for text in [
                "new.pdf: lies in", "link.pdf: lies in the store's folder, and no backup has it: it is a symbolic link",
                "'backup-tool store adopt --new",
            ] {
                #expect(told.stderr.contains(text), "\(words): \(told.stderr)")
            }
        }
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "files")
        try bench.tool(exit: 3, "store", "adopt", "--new")
        try bench.shell("rm store.db.assets/Attachments/link.pdf")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        #expect(try bench.tool(exit: 0, "show", "b.zip", "Attachments/new.pdf").stdout == "new\n")
    }

    /// A command was killed after its commit and before it put its file in place, or an app was faster.
    private func writeLate(_ bench: Workbench, was: String) throws {
        let folder = "store.db.assets"
        let digest = try bench.shell("sha256sum < \(folder)/\(path) | cut -c1-64").prefix(64)
        try bench.shell(
            """
            mkdir -p \(folder)/.blobs; cp -p \(folder)/\(path) \(folder)/.blobs/\(digest)
            sqlite3 store.db "INSERT INTO asset_pending VALUES ('\(path)', \(was.isEmpty ? "'\(digest)'" : was), NULL)"
            sleep 0.01; echo mine > new; mv new \(folder)/\(path)
            """)
    }

    @Test(arguments: ["NULL", "'\(String(repeating: "0", count: 64))'"])
    func whatAnAppWroteBeforeAKilledCommandsFile_isNamedByAll_andKeptBesideIt(was: String) throws {
        let bench = try bench()
        try writeLate(bench, was: was)
        try bench.write("e.jsonl", #"{"id":"e","time":"2026-02-14T15:00:00+01:00","type":"eten"}"# + "\n")
        for words in [
            ["store", "check"], ["export", "-o", "a.zip"], ["import", "e.jsonl"], ["store", "check", "--quick"],
        ] {
            let done = try bench.tool(words)
            #expect(
                done.status == 3 && done.stderr.contains("\(path): was written by another program"),
                "\(words) \(done.stderr)")
            #expect(!done.stderr.contains("exports have it"), "\(words) \(done.stderr)")
        }
        let adopted = try bench.tool(exit: 3, "store", "adopt")
        let kept = try #require(adopted.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        #expect(try bench.text("store.db.assets/\(path)") == "one\n")
        #expect(try bench.text("store.db.assets/\(kept)") == "mine\n")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "undo")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.text("store.db.assets/\(kept)") == "mine\n")
    }

    @Test func whatAnAppWroteOverAFileThatWasInPlace_isAnOrdinaryChange() throws {
        let bench = try bench()
        try writeLate(bench, was: "")
        try bench.tool(exit: 3, "export", "-o", "a.zip")
        let adopted = try bench.tool(exit: 0, "store", "adopt")
        #expect(adopted.stderr.contains("adopted") || adopted.stdout.contains(path), "\(adopted.stderr)")
        #expect(try bench.text("store.db.assets/\(path)") == "mine\n")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        #expect(try bench.tool(exit: 0, "show", "b.zip", path).stdout == "mine\n")
    }
}
