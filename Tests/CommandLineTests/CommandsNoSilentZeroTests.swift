import TestSupport
import Testing

/// Commands that left something out used to end with 0.
@Suite struct CommandsNoSilentZeroTests {
    @Test(arguments: [
        ("@article[b, title={B}]", "it begins with '['"), ("article{b, title={B}}", "it has no '@'"),
        ("@book<b, title={B}>", "it begins with '<'"), ("  Article {b,\n  title = {B},\n}", "it has no '@'"),
        ("@{b, title={B}}", "it has no type"),
    ])
    func whatLooksLikeAnEntry_isNamed(_ text: String, what: String) throws {
        let bench = try Workbench()
        let (before, behind) = ("@misc{a, title={A}}\n", "\n@misc{c, title={C}}\n")
        try bench.write("a.bib", before + text + behind)
        let told = try bench.tool(exit: 3, "import", "--create", "a.bib").stderr
        #expect(told.contains("a.bib:2:") && told.contains(what), "\(told)")
        #expect(try bench.liveKeys() == ["a", "c"])
        // Nobody's entry is removed for it.
        try bench.write("a.bib", before + "@misc{b, title={B}}" + behind)
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.write("a.bib", before + text + behind)
        #expect(try bench.tool(exit: 1, "import", "--mirror", "a.bib").stderr.contains("cannot be read in full"))
        #expect(try bench.liveKeys().count == 3)
    }

    @Test(arguments: ["see the end of file one", "by me@work,", "1.", "A_B+c-"])
    func anEntryBehindAWord_isRead(_ before: String) throws {
        let bench = try Workbench()
        try bench.write(
            "a.bib",
            "@misc{a, title={A}}\n\n\(before)@article{b,\n  title={B}}\n\(before)@string{s = {S}}\n@misc{c, note=s}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        #expect(try bench.liveKeys() == ["a", "b", "c"])
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        #expect(try bench.liveKeys() == ["a", "b", "c"])
        try bench.tool(exit: 0, "export", "-o", "out")
        let shown = try bench.text("out/library.bib")
        #expect(shown.contains("@article{b,\n  title={B}}") && shown.contains(before), "\(shown)")
    }

    /// Without an entry a file is no bibliography of ours, in whatever format it is.
    @Test(arguments: [
        "%0 Journal Article\n%T Foo\n%A Smith\n", "%A Smith\r\n%D 1999\r\n", "%0 Book\r%T Foo\r",
        "% exported yesterday\n\nTY  - JOUR\n", "PMID- 123\nTI  - Foo\n", "title,year\nFoo,1999\n",
    ])
    func aFileWithoutAnEntry_isNamed(_ text: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", text)
        let told = try bench.tool(exit: 3, "import", "--create", "a.bib").stderr
        #expect(
            told.contains("a.bib: holds no BibTeX entry; its text was kept") && told.contains("save it as BibTeX"),
            "\(told)")
    }

    @Test(arguments: [
        "% My library\n", "%A comment\n%\n%%% end\n", "% a\n@string{s = {S}}\n", "@comment{x}\n\nfree text\n",
    ])
    func aFileOfCommentsAndMacros_isNotNamed(_ text: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", text)
        try bench.tool(exit: 0, "import", "--create", "a.bib")
    }

    @Test(arguments: [
        "me@article.org", "me@host{1,2}", "me@article{k, or so}", "%@article{b, title={B}}", "me@comment{x}",
        "me@a{b,c,d}",
        "Collected by hand: see [a, b=c] and {d, e=f}", "% article{b, title={B}}", "article{b}", "f(x, y = 2)",
        "mail me@article[b, c=d]", "\\newcommand{b, c=d}", "Note: article{b, title={B}}", "@article[b]",
        "poem{roses, violets}",
    ])
    func whatIsAComment_staysOne(_ text: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n\(text)\n@misc{c, title={C}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        #expect(try bench.liveKeys() == ["a", "c"])
    }

    @Test(arguments: [
        "read @article(b, title={B})", "and @book{\n b, title={B}}", "see @misc{my key, title={B}}",
        "x @ misc {b, title={B}}",
        "macros: @string(m=\"B\")",
    ])
    func whatSeemsToBeAnEntryBehindText_isNamed(_ text: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n\n\(text)\n\n@misc{c, title={C}}\n")
        let told = try bench.tool(exit: 3, "import", "--create", "a.bib").stderr
        #expect(told.contains("a.bib:3:") && told.contains("behind other text"), "\(told)")
        #expect(try bench.liveKeys() == ["a", "c"])
    }

    @Test func aFileThatAnEventNames_andTheStoreDoesNotHave_isNamed() throws {
        let bench = try Workbench()
        try bench.write(
            "log/a.jsonl",
            "{\"id\":\"e1\",\"type\":\"eten\",\"time\":\"2026-03-01T10:00:00\",\"photo\":\"photos/x.jpg\"}\n")
        try bench.tool(exit: 3, "import", "--create", "log")
        let told = try bench.tool(exit: 3, "events", "export", "-o", "days").stderr
        #expect(told.contains("photos/x.jpg") && told.contains("is not in the store"), "\(told)")
        #expect(try bench.exists("days/2026-03-01.jsonl"))
        try bench.write("log/photos/x.jpg", "jpeg")
        try bench.tool("import", "log")
        try bench.tool(exit: 0, "events", "export", "-o", "again")
        #expect(try bench.text("again/photos/x.jpg") == "jpeg")
    }

    @Test func aTagThatNoSnapshotHas_isNamed() throws {
        let bench = try Workbench()
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        try bench.shell("chmod 600 pw")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        let vault = ["--vault", "v", "--password-file", "pw"]
        try bench.tool(["vault", "backup", "--tag", "work", "--tag", "all", "--host", "desk"] + vault)
        for words in [["--tag", "work"], ["--host", "desk"], ["--tag", "work,all", "--host", "desk"], []] {
            let result = try bench.tool(["vault", "forget", "--keep-last", "1"] + words + vault)
            #expect(result.status == 0, "\(words): \(result.stderr)")
        }
        for (words, named) in [
            (["--tag", "wrok"], "--tag wrok"), (["--tag", "work", "--tag", "work,wrok"], "--tag work,wrok"),
            (["--host", "dsek"], "--host dsek"),
        ] {
            let result = try bench.tool(["vault", "forget", "--keep-last", "1"] + words + vault)
            #expect(result.status == 3 && result.stderr.contains("\(named): no snapshot has this"), "\(result.stderr)")
        }
        try bench.tool(["vault", "backup", "--tag", "home", "--host", "lap"] + vault)
        let both = try bench.tool(["vault", "forget", "--keep-last", "1", "--tag", "home", "--host", "desk"] + vault)
        #expect(both.status == 3 && both.stderr.contains("--host and --tag"), "\(both.stderr)")
    }

    @Test func aBackupWithoutOneOfTheKindsThatAreAskedFor_isNamed() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        try bench.write("pdfs/a.pdf", "%PDF")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "pdfs")
        for (name, options) in [("all.zip", []), ("some.zip", ["--only", "publications,attachments"])] {
            try bench.tool(words: ["export", "-q", "-o", name] + options, exit: 0)
            for more in [[], ["--dry-run"], ["--create", "--store", "new-\(name).db"]] {
                let words = ["restore", name, "--only", "notes,publications,events"] + more
                let told = try bench.tool(words: words, exit: 3).stderr
                #expect(told.contains("\(name): holds no events, notes"), "\(told)")
            }
            for kinds in ["publications,attachments", Workbench.allKinds] {
                try bench.tool(exit: 0, "restore", name, "--only", kinds, "--dry-run")
            }
        }
        // A state without notes is a state, too.
        try bench.tool(exit: 0, "restore", "all.zip", "--only", "notes,publications", "--mode", "replace")
        try bench.tool(exit: 3, "restore", "some.zip", "--only", "notes,publications", "--mode", "replace")
    }

    @Test func aBackupWithoutTheKindThatIsAskedFor_isNamed() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.shell("$T export -q -o one; $T export -q -o two.zip; mkdir three; cp -a one three/in")
        for path in ["one", "two.zip", "three"] {
            let told = try bench.tool(exit: 3, "import", "--only", "attachments", path, "--dry-run").stderr
            #expect(told.contains("holds no attachments"), "\(told)")
            try bench.tool(exit: 0, "import", "--only", "publications", path)
        }
    }
}
