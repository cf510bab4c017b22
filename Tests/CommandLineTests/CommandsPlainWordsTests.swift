import TestSupport
import Testing

/// Messages that name what is there, and what to do.
@Suite struct CommandsPlainWordsTests {
    @Test func aConfigurationThatIsNotThere_isRefusedByAll() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init", "--store", "s.db")
        for words in [
            ["store", "info", "--store", "s.db"], ["vault", "snapshots", "--vault", "v"], ["undo", "--list"],
        ] {
            let refused = try bench.tool(words + ["--config", "nosuch.toml"])
            #expect(refused.status != 0 && refused.stderr.contains("nosuch.toml"), "\(words): \(refused.stderr)")
        }
    }

    @Test func whatReadsASnapshot_isHintedAt() throws {
        let bench = try Workbench()
        for (word, command) in [("restore", "restore"), ("ls", "list"), ("list", "list"), ("show", "show")] {
            let refused = try bench.tool(exit: 64, "vault", word)
            #expect(refused.stderr.contains("did you mean '\(command) vault:V@latest'?"), "\(refused.stderr)")
        }
        #expect(try !bench.tool(exit: 64, "vault", "import").stderr.contains("vault:V"))
    }

    @Test func whatAnImportFinds_isCalledWhatItIs() throws {
        let bench = try Workbench()
        try bench.write("notes.txt", "some text\n")
        let text = try bench.tool(exit: 10, "import", "notes.txt").stderr
        #expect(text.contains("is a text file") && text.contains("'backup-tool import notes.bib'"), "\(text)")
        #expect(text.contains("'backup-tool import notes.jsonl'"), "\(text)")
        try bench.write("files/x.pdf", "x")
        try bench.tool(exit: 3, "import", "--attachments", "files")
        let again = try bench.tool(exit: 3, "import", "--attachments", "files").stderr
        #expect(again.contains("1 attachment unchanged.") && !again.contains("Nothing"), "\(again)")
        let key = String(repeating: "k", count: 100)
        try bench.write("large.bib", (0..<10_000).map { "@misc{\(key)\($0), title={T\($0)}}\n" }.joined())
        try bench.tool(exit: 0, "import", "large.bib", "--create", "--store", "large.db")
        try bench.tool(exit: 0, "export", "--store", "large.db", "-o", "out")
        let large = try bench.tool(exit: 3, "import", "out", "--create", "--store", "new.db").stderr
        #expect(large.contains("the order of the entries of large.bib: is larger than 1 MB"), "\(large)")
    }

    /// A placeholder stands only for what the tool does not know.
    @Test func adviceAboutABackup_namesIt() throws {
        let bench = try Workbench()
        try bench.write("x.bib", "@misc{k, title={T}}\n")
        try bench.tool(exit: 0, "import", "x.bib")
        try bench.shell("$T -q export -o 'e x'; echo >> 'e x/records.jsonl'; zip -q plain.zip x.bib")
        for words in [["import", "e x"], ["diff", "e x", "store.db"], ["restore", "e x"]] {
            let told = try bench.tool(words).stderr
            #expect(told.contains("'backup-tool verify e\\ x'"), "\(words): \(told)")
            #expect(told.contains("restore e\\ x --allow-damage") && !told.contains("BACKUP"), "\(words): \(told)")
        }
        #expect(try bench.tool("import", "plain.zip").stderr.contains("'backup-tool list plain.zip'"))
        try bench.write("ot.jsonl", "{\"id\":\"1\",\"time\":\"2026-02-14T15:00Z\",\"type\":\"a\"}\n")
        try bench.tool(exit: 0, "import", "ot.jsonl")
        try bench.write("ot.jsonl", "{\"id\":\"1\",\"time\":\"2026-02-14T15:00Z\",\"type\":\"b\"}\n")
        for command in [["import"], ["events", "import"]] {
            let told = try bench.tool(words: command + ["ot.jsonl"], exit: 3).stderr
            #expect(told.contains("'backup-tool import --overwrite ot.jsonl'"), "\(told)")
        }
    }

    @Test func optionsThatExcludeEachOther_areRefused() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init")
        let calls = [
            ["export", "-o", "y.tar", "--level", "5"], ["export", "-o", "y", "--level", "5"],
            ["export", "-o", "y.zip", "--only", "notes", "--order", "source"], ["undo", "--list", "--redo"],
            ["undo", "--list", "--dry-run"], ["undo", "--list", "--batch", "1"], ["-q", "-v", "store", "info"],
        ]
        for words in calls {
            let refused = try bench.tool(words)
            #expect(refused.status == 64 && refused.stdout == "", "\(words): \(refused.stderr)")
        }
        #expect(try bench.files(".").filter { $0.hasPrefix("y") } == [])
        try bench.tool(exit: 0, "export", "-o", "y.zip", "--level", "5")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        for profile in ["", "[profile.p]\n"] {
            try bench.write("n.toml", "\(profile)password-file = 'pw'\npassword-command = 'cat pw'\n")
            let checked = try bench.tool(exit: 4, "config", "check", "--config", "n.toml")
            #expect(checked.stderr.contains("exclude each other"), "\(checked.stderr)")
        }
        try bench.write("n.toml", "password-file = 'pw'\n[profile.p]\npassword-command = 'cat pw'\n")
        try bench.tool(exit: 0, "config", "check", "--config", "n.toml")
    }

    @Test func aMistake_isCalledWhatItIs_andNamesTheNextCommand() throws {
        let bench = try Workbench()
        try bench.write("x.bib", "@misc{k, title={T}, file={:a.pdf:PDF}}\n")
        try bench.write("a.pdf", "%PDF")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; $T -q import x.bib; $T -q export -o x.zip; rm store.db.assets/Attachments/a.pdf")
        try bench.makeCheapVault()
        try bench.write("c.ckdb", "DEFINE SCHEMA RECORD TYPE")
        let odd = "DEFINE SCHEMA RECORD TYPE Day ( a ASSET QUERYABLE, b STRING );"
        try bench.write("old.ckdb", odd)
        try bench.write("new.ckdb", odd.replacing("a ASSET QUERYABLE, b STRING", with: "a ASSET"))
        try bench.write(
            "old.json", "{\"format\":\"backup-tool-schema\",\"formatVersion\":1,\"version\":1,\"entities\":{\"E\":1}}")
        let calls: [(words: [String], code: Int32, says: String)] = [
            (["schema", "check", "c.ckdb"], 4, "expected a name or a type, found the end"),
            (["schema", "check", "new.ckdb", "--against", "old.ckdb"], 4, "Day.b"),
            (["schema", "check", "new.ckdb", "--against", "old.json"], 4, "'backup-tool schema check old.json'"),
            (["restore", "x.zip", "--to", "d", "--dry-run"], 64, "--dry-run does not go with --to"),
            (["restore", "x.zip", "--to", "d", "--resurrect"], 64, "--resurrect does not go with --to"),
            (["events", "import", "x.bib"], 3, "it holds publications, which were not asked for"),
            (
                ["vault", "key", "remove", "zzz", "--vault", "v", "--password-file", "pw"], 1,
                "'backup-tool vault key list"
            ),
            (["verify", "vault:"], 64, "give the vault's folder"),
            (["export", "-o", "y.zip"], 3, "'backup-tool store check' says how to mend it"),
        ]
        for call in calls {
            let told = try bench.tool(call.words)
            #expect(told.status == call.code && told.stderr.contains(call.says), "\(call.words): \(told.stderr)")
        }
    }
}
