import BackupKit
import Glibc
import TestSupport
import Testing

/// What somebody names is done, or the run says why not.
struct CommandsNamedTests {
    private func diary(_ bench: Workbench) throws {
        try bench.write(
            "day.jsonl",
            """
            {"id":"walk","time":"2026-02-14T10:00:00+01:00","type":"uitlaten"}
            {"id":"walk2","time":"2026-02-14T11:00:00+01:00","type":"uitlaten"}

            """)
        try bench.tool(exit: 0, "import", "day.jsonl")
        try bench.tool(exit: 0, "export", "-o", "e.tar")
    }

    @Test func aPurgedRecordIsLeftOutAndNamed_untilItsReturnIsAllowed() throws {
        let bench = try Workbench()
        try diary(bench)
        try bench.tool(exit: 0, "store", "delete", "walk")
        try bench.tool(exit: 0, "store", "purge", "walk", "--confirm")
        for words in [
            ["restore", "e.tar", "--resurrect"], ["restore", "e.tar", "--resurrect", "--dry-run"],
            ["restore", "e.tar", "--resurrect", "--mode", "replace"], ["import", "day.jsonl", "--overwrite"],
            ["restore", "e.tar", "--sync-policy", "quarantine"],
        ] {
            let result = try bench.tool(words)
            #expect(result.status == 3, "\(words): \(result.stderr)")
            #expect(result.stderr.contains("OllieEvents/walk: was purged, so it stays deleted"), "\(result.stderr)")
            #expect(result.stderr.contains("'backup-tool store purge --allow-return OllieEvents/walk'"))
        }
        try bench.tool(exit: 1, "store", "enable-cloud", "walk")
        try bench.tool(exit: 0, "restore", "e.tar")
        #expect(try bench.json(exit: 0, "store", "info")["tombstones"]?.integer == 1)
        try bench.tool(exit: 64, "store", "purge", "--allow-return", "walk", "--confirm")
        try bench.tool(exit: 1, "store", "purge", "--allow-return", "walk2")
        try bench.tool(exit: 0, "store", "purge", "--allow-return", "OllieEvents/walk")
        let back = try bench.tool(exit: 0, "restore", "e.tar", "--match", "OllieEvents/walk", "--resurrect")
        #expect(back.stderr.contains("1 brought back."), "\(back.stderr)")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func filesOfRecordsThatStayDeleted_stayAwayWithThem() throws {
        let bench = try Workbench()
        for name in ["dead", "shared", "alive"] { try bench.write("\(name).pdf", "%PDF-1.4 \(name)") }
        try bench.write(
            "a.bib",
            """
            @misc{dead, title = {Dead}, doi = {10.1/dead}, file = {:dead.pdf:PDF;:shared.pdf:PDF}}
            @misc{alive, title = {Alive}, doi = {10.1/alive}, file = {:shared.pdf:PDF;:alive.pdf:PDF}}

            """)
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar")
        let id = try bench.shell(
            "sqlite3 store.db \"SELECT record_name FROM records WHERE type = 'Publication' AND fields LIKE '%10.1/dead%'\""
        )
        .split(separator: "\n")[0]
        try bench.tool(exit: 0, "store", "delete", String(id))
        try bench.tool(exit: 0, "store", "purge", String(id), "--confirm", "--with-files")
        for words in [["--dry-run"], [], ["--mode", "replace"]] {
            let result = try bench.tool(["restore", "e.tar"] + words)
            #expect(result.stderr.contains("1 attachment of deleted records left out"), "\(result.stderr)")
            #expect(try bench.shell("ls store.db.assets/Attachments") == "alive.pdf\nshared.pdf\n", "\(words)")
        }
        // A purge is taken back by name, and not by a word that the file's name has, too.
        let named = try bench.tool(exit: 3, "restore", "e.tar", "--match", "dead.pdf")
        #expect(named.stderr.contains("--allow-return"), "\(named.stderr)")
        #expect(try bench.shell("ls store.db.assets/Attachments") == "alive.pdf\nshared.pdf\n")
        try bench.tool(exit: 0, "store", "purge", "--allow-return", "Library/\(id)")
        try bench.tool(exit: 0, "restore", "e.tar", "--resurrect")
        #expect(try bench.shell("ls store.db.assets/Attachments") == "alive.pdf\ndead.pdf\nshared.pdf\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aNamedRecordThatStaysDeleted_isNamed() throws {
        let bench = try Workbench()
        try diary(bench)
        try bench.tool(exit: 0, "store", "delete", "walk")
        let all = try bench.tool(exit: 0, "restore", "e.tar")
        #expect(all.stderr.contains("1 stays deleted (deleted after the backup was made)"), "\(all.stderr)")
        for words in [["--match", "OllieEvents/walk"], ["--only", "events"]] {
            let result = try bench.tool(["restore", "e.tar"] + words)
            #expect(result.status == 3 && result.stderr.contains("OllieEvents/walk: stays deleted"), "\(result.stderr)")
            let advice = "'backup-tool restore e.tar \(words.joined(separator: " ")) --resurrect' brings it back"
            #expect(result.stderr.contains(advice), "\(result.stderr)")
            #expect(try bench.tool(["restore", "e.tar"] + words + ["--dry-run"]).status == 3)
        }
        let back = try bench.json(exit: 0, "restore", "e.tar", "--match", "OllieEvents/walk", "--resurrect")
        #expect(back["updated"]?.integer == 1 && back["read"]?.integer == 1, "\(back)")
    }

    @Test func notesAreFoundByTheirMonth_andTheRemedyNamesTheFileOfTheKind() throws {
        let bench = try Workbench()
        try bench.shell("cp -r \"$SAMPLES\" samples")
        try bench.tool("import", "samples")
        try bench.tool("export", "-o", "e.tar")
        let day = try bench.shell(
            "sqlite3 store.db \"SELECT substr(modified, 1, 7) FROM records WHERE type = 'Note' LIMIT 1\"")
        let month = String(day.prefix(7))
        let found = try bench.json(exit: 0, "restore", "e.tar", "--match", month, "--only", "notes")
        #expect((found["read"]?.integer ?? 0) > 0, "\(found)")
        for (kind, file) in [("notes", "notes.json"), ("publications", "library.bib"), ("events", "records.jsonl")] {
            let none = try bench.tool(exit: 1, "restore", "e.tar", "--match", "zzzz", "--only", kind)
            #expect(none.stderr.contains("'backup-tool show e.tar \(file)'"), "\(none.stderr)")
            try bench.tool(exit: 0, "show", "e.tar", file)
        }
    }

    @Test func aConflictThatARestoreOpensAgain_isCountedAndSaid() throws {
        let bench = try Workbench()
        try bench.tool("import", "\(Workbench.samples)/library/references.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar")
        let number = try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.first?["id"]?.integer
        try bench.tool(exit: 0, "conflicts", "resolve", "\(try #require(number))", "--with", "keep-existing")
        for words in [["--dry-run"], []] {
            let result = try bench.tool(["restore", "e.tar", "--match", "tombs", "--resurrect", "--json"] + words)
            let report = try JSON(parsing: result.stdoutLines.last ?? "null")
            #expect(result.status == 3 && report["conflicts"]?.integer == 1, "\(report)")
        }
        #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.count == 1)
    }

    @Test func aLinkInAFolder_isNamed_andTheAdviceImportsIt() throws {
        let bench = try Workbench()
        try bench.write("real.bib", "@misc{a, title={A}}\n")
        try bench.write("g/other.txt", "x")
        try bench.shell("ln -s ../real.bib g/link.bib; mkdir h; ln -s ../real.bib h/link.bib")
        for folder in ["g", "h"] {
            let result = try bench.tool(exit: 3, "import", folder)
            #expect(result.stderr.contains("\(folder)/link.bib: was left out: it is a link"), "\(result.stderr)")
            #expect(result.stderr.contains("'backup-tool import \(folder)/link.bib'"), "\(result.stderr)")
        }
        try bench.tool(exit: 0, "import", "g/link.bib")
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 1)
    }

    @Test func eventsThatNobodyHas_andDaysTheWrongWayRound() throws {
        let bench = try Workbench()
        try diary(bench)
        for target in ["days", "one.jsonl", "-"] {
            let none = try bench.tool(exit: 3, "events", "export", "--type", "uitlatn", "-o", target)
            #expect(none.stderr.contains("uitlatn"), "\(none.stderr)")
        }
        try bench.tool(exit: 3, "events", "export", "--from", "2027-01-01", "-o", "-", "--dry-run")
        try bench.tool(
            exit: 64, "events", "export", "--from", "2026-03-02", "--to", "2026-03-01", "-o", "back")
        try bench.tool(exit: 0, "events", "export", "--type", "uitlaten", "-o", "good")
    }

    @Test func aMistypedPath_makesNoFolder() throws {
        let bench = try Workbench(["XDG_DATA_HOME": "data", "BACKUP_TOOL_STORE": ""])
        for words in [["restore", "nope"], ["import", "nope"], ["events", "import", "nope"]] {
            let result = try bench.tool(words, environment: ["XDG_DATA_HOME": bench.path("data/deep")])
            #expect(result.status != 0)
            #expect(try !bench.exists("data"), "\(words)")
        }
    }

    @Test func aStoreThatCannotBeWritten_isNamedWithARemedy() throws {
        let bench = try Workbench()
        try diary(bench)
        try bench.shell("chmod 755 . ; chmod -R a+rX . ; chmod -R a-w store.db store.db.assets; chmod a-w .")
        let other = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : ""
        for words in [
            "import day.jsonl", "import day.jsonl --dry-run", "restore e.tar", "restore e.tar --dry-run", "undo",
            "store delete walk", "store purge walk", "hub init h.db",
        ] {
            let text = try bench.shell("(\(other)\"$T\" \(words) 2>&1 || echo \"ended $?\")")
            #expect(text.contains("permission to write") && text.contains("ended 1"), "\(words): \(text)")
            #expect(text.contains("run the command as the user who owns it"), "\(words): \(text)")
            #expect(!text.contains("tmp-") && !text.contains("readonly database"), "\(words): \(text)")
        }
    }
}
