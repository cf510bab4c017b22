import BackupKit
import TestSupport
import Testing

/// `--force` replaces what this tool wrote. Everything else stays, in whatever form it is.
@Suite struct CommandsForceTests {
    private static let archives = ["tar.zst", "tar.gz", "tar.xz", "tar", "zip"]

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.write("pdfs/a.pdf", "a")
        try bench.write(
            "diary/2026-02-14.jsonl",
            #"{"time":"2026-02-14T15:00+01:00","type":"walk"}"# + "\n"
                + #"{"id":"e2","time":"2026-02-14T16:00+01:00","type":"eten"}"# + "\n")
        try bench.tool(exit: 0, "import", "lib.bib", "diary", "--attachments", "pdfs")
        return bench
    }

    /// The target stays as it is, and the message says what a person can do.
    private func expectRefusal(
        _ bench: Workbench, _ line: String, _ target: String, _ sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        func state() throws -> String {
            try bench.shell(
                "find \(target) -type f -exec sha256sum {} + | sort; ls -A | grep -v '^store.db' | sort; $T store digest"
            )
        }
        let before = try state()
        let words = line.split(separator: " ").map(String.init)
        // Nobody is told to do what would be refused.
        let unforced = try bench.tool(words)
        #expect(unforced.status == 1, "\(line)", sourceLocation: sourceLocation)
        #expect(!unforced.stderr.contains("replace it with --force"), "\(line)", sourceLocation: sourceLocation)
        let told = try bench.tool(words + ["--force"])
        #expect(told.status == 1, "\(line): \(told.stderr)\(told.stdout)", sourceLocation: sourceLocation)
        #expect(
            told.stderr.contains("--force does not replace"), "\(line): \(told.stderr)", sourceLocation: sourceLocation)
        // Nobody is told to remove what holds the store.
        let holdsStore = told.stderr.contains("lies in it and would be lost")
        #expect(
            told.stderr.contains("remove it yourself") != holdsStore, "\(line): \(told.stderr)",
            sourceLocation: sourceLocation)
        #expect(try state() == before, "\(line)", sourceLocation: sourceLocation)
    }

    /// The store of the command, though a restore into a folder does not read it.
    @Test func aRestoreIntoAFolder_isNoPartOfTheStore() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "good.tar")
        let before = try bench.state()
        for target in ["store.db", "store.db.assets", "store.db.assets/Attachments", "store.db.assets/new"] {
            for force in [[], ["--force"]] {
                let told = try bench.tool(words: ["restore", "good.tar", "--to", target] + force, exit: 1).stderr
                #expect(told.contains("a part of the store") && told.contains("choose another place"), "\(told)")
            }
        }
        try bench.shell("mv store.db.assets elsewhere; ln -s elsewhere store.db.assets")
        for target in ["elsewhere", "elsewhere/new", "store.db.assets"] {
            let told = try bench.tool(words: ["restore", "good.tar", "--to", target, "--force"], exit: 1).stderr
            #expect(told.contains("a part of the store"), "\(told)")
        }
        try bench.shell("rm store.db.assets; mv elsewhere store.db.assets")
        #expect(try bench.state() == before)
    }

    /// Whatever wrote it before: another form, another format, an empty file.
    @Test func everyFormReplacesWhatAnExportWrote() throws {
        let bench = try bench()
        try bench.write("empty.x", "")
        let forms = Self.archives.flatMap { ["--format \($0)", "-o out.\($0)"] } + ["--format dir", "--format imbib"]
        for form in forms {
            let line = form.hasPrefix("-o") ? "export \(form)" : "export -o out.x \(form)"
            for _ in 0..<2 {
                let done = try bench.tool(line.split(separator: " ").map(String.init) + ["--force"])
                // A folder is not put into the place of a file of ours without a word, nor a file into that of a folder.
                #expect([0, 3].contains(done.status), "\(line): \(done.stderr)")
            }
            if form.contains("--format") { try bench.shell("rm -rf out.x") }
        }
        for ending in ["zip", "tar.gz"] {
            for _ in 0..<2 {
                let done = try bench.tool("export", "-o", "imbib.\(ending)", "--format", "imbib", "--force")
                #expect([0, 3].contains(done.status), "\(done.stderr)")
            }
            // The other kind of backup, under the same name.
            try bench.tool(exit: 0, "export", "-o", "imbib.\(ending)", "--force")
        }
        try bench.tool(exit: 0, "export", "-o", "empty.x", "--format", "tar", "--force")
        try bench.tool(exit: 0, "verify", "empty.x")
        // Nor does it matter which store it was.
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try bench.tool(exit: 0, "export", "--store", "other.db", "-o", "out.zip", "--force")
    }

    private static let strangers: [(what: String, make: String)] = [
        ("text", "echo chapter > $f"),
        ("noise", "head -c 5000 /dev/urandom > $f"),
        ("age", "printf 'age-encryption.org/v1\\n-> X25519 abc\\n' > $f; head -c 900 /dev/urandom >> $f"),
        ("zip", "python3 -c 'import zipfile,sys; zipfile.ZipFile(sys.argv[1],\"w\").writestr(\"one.tex\",\"x\")' $f"),
        (
            "zip of a thesis with a library",
            "python3 -c 'import zipfile,sys; z=zipfile.ZipFile(sys.argv[1],\"w\"); z.writestr(\"library.bib\",\"@misc{a}\"); z.writestr(\"Attachments/a.pdf\",\"x\")' $f"
        ),
        ("tar of a folder", "mkdir -p t/events; echo x > t/records.jsonl; tar -cf $f -C t .; rm -r t"),
        (
            "a backup that imbib made",
            "mkdir t; echo '{\"version\":1,\"createdAt\":1,\"appVersion\":\"2.1\",\"schemaVersion\":100,\"publicationCount\":0,\"attachmentCount\":0,\"fileChecksums\":{}}' > t/manifest.json; tar -cf $f -C t .; rm -r t"
        ),
        (
            "ours with a letter added",
            "$T -q export -o t.tar; tar -xf t.tar --one-top-level=u; echo dear > u/letter.txt; tar -cf $f -C u .; rm -r t.tar u"
        ),
        ("ours, cut", "$T -q export -o $f.zip; head -c 700 $f.zip > $f; rm $f.zip"),
    ]

    @Test func noFormReplacesAFileOfSomebodyElse() throws {
        let bench = try bench()
        for (what, make) in Self.strangers {
            for ending in Self.archives {
                let target = "thesis.\(ending)"
                try bench.shell("f=\(target); \(make)")
                try expectRefusal(bench, "export -o \(target)", target)
                guard ending == "zip" else { continue }
                for line in [
                    "export -o \(target) --format dir", "export -o \(target) --format imbib",
                    "restore lib.bib --to \(target)", "restore out --to \(target)",
                ] where !line.contains("lib.bib") {
                    try bench.shell("[ -d out ] || $T -q export -o out")
                    try expectRefusal(bench, line, target)
                }
                #expect(!what.isEmpty)
            }
        }
    }

    /// What was imported from there is in the store, and not in an export that leaves it out or has it elsewhere.
    @Test func noExportReplacesAFolderThatWasImported() throws {
        let bench = try bench()
        try bench.write("Papers/p.pdf", "a paper")
        try bench.write("log/d.jsonl", #"{"id":"q","time":"2026-01-01T10:00:00Z","type":"x"}"# + "\n")
        try bench.write("w.bib", "@article{a, title={T}, author={A}, year=2000}\n")
        try bench.tool("import", "w.bib", "--attachments", "Papers")
        try bench.tool(exit: 0, "import", "log")
        try bench.shell("mkdir -p Lib/Attachments; cp Papers/p.pdf Lib/Attachments")
        for line in [
            "export --only publications -o Lib", "export -o Papers", "export --only publications -o Papers",
            "export --only publications -o log",
            "export --format imbib -o Papers", "events export -o Papers",
        ] { try expectRefusal(bench, line, String(line.split(separator: " ").last ?? "")) }
        #expect(try bench.text("Papers/p.pdf") == "a paper")
        // An export stays one, with a file that it is going to have.
        try bench.tool(exit: 0, "export", "-o", "all")
        try bench.write("more/b.pdf", "another paper")
        try bench.tool("import", "w.bib", "--attachments", "more")
        try bench.shell("cp more/b.pdf all/Attachments/b.pdf")
        try bench.tool(exit: 0, "export", "-o", "all", "--force")
        #expect(try bench.text("all/Attachments/b.pdf") == "another paper")
    }

    /// A folder of backups is none itself, also where it holds just one.
    @Test func aFolderThatHoldsAnExport_isNoExport() throws {
        let bench = try bench()
        try bench.shell("$T -q export -o new.tar")
        for form in [["export"], ["export", "--format", "imbib"], ["restore", "new.tar"]] {
            try bench.shell("rm -rf backups; mkdir backups")
            let to = form[0] == "restore" ? "--to" : "-o"
            try bench.tool(form + [to, "backups/monday"])
            let before = try bench.shell("ls backups backups/monday")
            for line in ["export -o backups", "restore new.tar --to backups", "events export -o backups"] {
                try expectRefusal(bench, line, "backups")
                #expect(try bench.shell("ls backups backups/monday") == before, "\(form) \(line)")
            }
        }
    }

    /// One file more, and the export would be no longer whole.
    @Test(arguments: ["all/second", "all/Attachments/second", "all/new/second"])
    func noFormWritesIntoAnExport(target: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "all")
        try bench.tool(exit: 0, "export", "-o", "other.tar")
        for line in [["export", "-o"], ["events", "export", "-o"], ["restore", "other.tar", "--to"]] {
            let told = try bench.tool(line + [target])
            #expect(told.status == 1 && told.stderr.contains("lies in the export"), "\(line): \(told.stderr)")
        }
        let inside = try bench.shell("cd all && $T export -o third.zip --store ../store.db 2>&1 || echo $?")
        #expect(inside.contains("lies in the export") && inside.hasSuffix("1\n"))
        try bench.tool(exit: 0, "verify", "all")
    }

    /// A folder of papers, a diary, an app's backup: names that an export would give make none.
    @Test func noFormReplacesAFolderOfSomebodyElse() throws {
        let bench = try bench()
        try bench.shell(
            """
            mkdir -p papers/PDFs mine; echo '@misc{z}' > papers/library.bib; echo x > papers/PDFs/z.pdf
            mkdir app; cp papers/library.bib app
            echo '{"version":1,"createdAt":1,"appVersion":"2.1","schemaVersion":100,"publicationCount":0,"attachmentCount":0,"fileChecksums":{"library.bib":"00"}}' > app/manifest.json
            mkdir log; echo '{"id":"z","time":"2026-02-20T15:00+01:00","type":"eten"}' > log/2026-02-20.jsonl
            $T -q export -o out
            """)
        for target in ["papers", "app", "log"] {
            for line in [
                "export -o \(target)", "export -o \(target) --format imbib", "events export -o \(target)",
                "restore out --to \(target)",
            ] {
                try expectRefusal(bench, line, target)
            }
        }
        for line in [
            "export -o i --format imbib", "events export -o days", "restore out --to back", "restore i --to again",
        ] {
            for _ in 0..<2 {
                let done = try bench.tool(line.split(separator: " ").map(String.init) + ["--force"])
                #expect([0, 3].contains(done.status), "\(line): \(done.stderr)")
            }
        }
    }

    /// Work on an export's own files has no undo: it is named, and stays until a person removes it.
    @Test func noFormReplacesWhatSomebodyChangedInAnExport() throws {
        let bench = try bench()
        let changes = [
            ("echo '@misc{c}' >> $d/library.bib", "library.bib"),
            ("echo b > $d/Attachments/a.pdf", "Attachments/a.pdf"),
            ("sed -i 's/A/B/' $d/records.jsonl", "records.jsonl"),
            ("echo >> $d/manifest.json", "manifest.json or SHA256SUMS"),
            ("echo >> $d/SHA256SUMS", "manifest.json or SHA256SUMS"),
        ]
        try bench.shell("$T -q export -o good; $T -q export -o good.i --format imbib || [ $? = 3 ]")
        for (change, name) in changes {
            try bench.shell("rm -rf out out.tar; cp -r good out; d=out; \(change); tar -cf out.tar -C out .")
            for target in ["out", "out.tar"] {
                for line in ["export -o \(target)", "restore good --to \(target)", "events export -o \(target)"] {
                    try expectRefusal(bench, line, target)
                }
                #expect(try bench.tool("export", "-o", target, "--force").stderr.contains("\(name) changed since"))
            }
        }
        try bench.shell("cp -r good.i i; echo '@misc{c}' >> i/library.bib")
        try expectRefusal(bench, "export -o i --format imbib", "i")
        // All of them are named, and a dry run says the same.
        try bench.shell("rm -rf out; cp -r good out; for f in $(find out -type f); do echo >> $f; done")
        let told = try bench.tool(exit: 1, "export", "-o", "out", "--force", "--dry-run").stderr
        #expect(told.contains("more changed since this tool wrote them") && told.contains("'backup-tool verify out'"))
        // What is gone cannot be lost, and what the store has by now is not.
        try bench.shell("rm -rf out; cp -r good out; rm out/library.bib; echo b > out/Attachments/a.pdf")
        try bench.shell("echo b > store.db.assets/Attachments/a.pdf; $T -q store adopt")
        try bench.tool(exit: 0, "export", "-o", "out", "--force")
        try bench.tool(exit: 0, "verify", "out")
    }

    /// What is damaged cannot be judged: it may hold what is nowhere else.
    @Test(arguments: archives) func noFormReplacesADamagedExport(form: String) throws {
        let bench = try bench()
        for (what, change) in [("longer", "echo more >> $f"), ("shorter", "truncate -s -200 $f")] {
            let target = "\(what).\(form)"
            try bench.shell("$T -q export -o \(target); f=\(target); \(change)")
            try expectRefusal(bench, "export -o \(target)", target)
        }
    }

    /// One file of events is ours as far as the store knows every line of it.
    @Test func aFileOfEventsIsReplacedWhenTheStoreKnowsItsLines() throws {
        let bench = try bench()
        let line = "events export -o all.jsonl"
        func again() throws { try bench.tool(exit: 0, "events", "export", "-o", "all.jsonl", "--force") }
        for _ in 0..<2 { try again() }
        // An earlier export stays ours when an event is deleted or changed since, or left out.
        try bench.tool(exit: 0, "events", "export", "-o", "all.jsonl", "--type", "eten", "--force")
        try again()
        try bench.tool(exit: 0, "store", "delete", "e2")
        try again()
        try bench.shell(
            "echo '{\"id\":\"e3\",\"time\":\"2026-02-15T16:00+01:00\",\"type\":\"eten\"}' > more.jsonl; $T -q events import more.jsonl"
        )
        try again()
        try bench.shell(
            "sed -i 's/eten/drinken/; s/\"type\"/\"modified_at\":\"2026-02-16T16:00+01:00\",\"type\"/' more.jsonl; $T -q events import more.jsonl"
        )
        try again()
        // What is not in the store is somebody's.
        let strangers = [
            "echo chapter > all.jsonl", "head -c 3000 /dev/urandom > all.jsonl",
            "echo '{\"id\":\"z\",\"time\":\"2026-02-20T15:00+01:00\",\"type\":\"eten\"}' >> all.jsonl",
            "echo remark >> all.jsonl", "sed -i 's/walk/walk\",\"note\":\"by hand/' all.jsonl",
        ]
        for stranger in strangers {
            try bench.shell("rm -f all.jsonl; $T -q events export -o all.jsonl; \(stranger)")
            try expectRefusal(bench, line, "all.jsonl")
        }
    }

    /// Lines that were rejected before and are rejected again.
    @Test func rejectedLinesAreReplacedByTheSameLines() throws {
        let bench = try bench()
        try bench.write(
            "bad.jsonl", "no event\n" + #"{"id":"e9","time":"2026-02-14T17:00+01:00","type":"walk"}"# + "\n{}\n")
        let line = "events import bad.jsonl --rejected r.txt"
        try bench.write("r.txt", "my chapter\n")
        try expectRefusal(bench, line, "r.txt")
        try bench.shell("rm r.txt")
        for _ in 0..<3 {
            try bench.tool(exit: 3, "events", "import", "bad.jsonl", "--rejected", "r.txt", "--force")
            #expect(try bench.text("r.txt") == "no event\n{}\n")
        }
        // Somebody has begun to mend them.
        try bench.write("r.txt", "an event\n{}\n")
        try expectRefusal(bench, line, "r.txt")
    }

    @Test func everyHelpSaysTheSame() throws {
        let bench = try Workbench()
        for command in ["export", "restore", "events export", "events import"] {
            let help = try bench.tool(command.split(separator: " ").map(String.init) + ["--help"]).stdout
            let flat = help.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(flat.contains("--force") && flat.contains("what this tool wrote, and nothing else"), "\(command)")
        }
    }

    @Test(arguments: ["mine", "mine.jsonl"])
    func aDryRunOfAnEventExport_isRefusedWhereTheExportIs(target: String) throws {
        let bench = try bench()
        try bench.write("mine/note.txt", "mine")
        try bench.write("mine.jsonl", "mine")
        for flags in [[], ["--force"]] {
            for dryRun in [["--dry-run"], []] {
                let told = try bench.tool(words: ["events", "export", "-o", target] + flags + dryRun, exit: 1).stderr
                #expect(told.contains(target), "\(told)")
            }
        }
    }
}
