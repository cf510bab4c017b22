import BackupKit
import TestSupport
import Testing

// Whatever a command was asked for and did not do is named, and the exit code is 3.

private func codes(_ report: JSON) -> [String] {
    (report["findings"]?.array ?? []).compactMap { $0["code"]?.string }
}

/// UTF-16 with a byte order mark, as Windows writes "Unicode".
private func utf16(_ text: String, bigEndian: Bool = false) -> [UInt8] {
    ([0xFEFF] + Array(text.utf16)).flatMap { unit in
        bigEndian ? [UInt8(unit >> 8), UInt8(unit & 0xFF)] : [UInt8(unit & 0xFF), UInt8(unit >> 8)]
    }
}

@Test func linksToFilesThatAreNotFound_areOneLine_andAListInJSON() throws {
    let bench = try Workbench()
    let entries = (1...3000).map { "@misc{k\($0), title={T\($0)}, file={:papers/p\($0).pdf:PDF}}\n" }
    try bench.write("a.bib", entries.joined())
    let text = try bench.tool(exit: 3, "import", "a.bib", "--dry-run")
    #expect(text.stderr.split(separator: "\n").count { $0.contains("is named in a.bib") } == 1, "\(text.stderr)")
    #expect(text.stderr.contains(" and 2,997 more, each: ") && text.stderr.contains("papers/p1.pdf, papers/p2.pdf"))
    #expect(text.stderr.contains("--verbose or --json lists each of them"))
    let every = try bench.tool(exit: 3, "import", "a.bib", "--dry-run", "-v")
    #expect(every.stderr.split(separator: "\n").count { $0.contains("is named in a.bib") } == 3000)
    let report = try bench.json(exit: 3, "import", "a.bib")
    #expect(report["added"]?.integer == 3001 && codes(report) == Array(repeating: "link-missing", count: 3000))
    // Who asks for publications alone asks for no files.
    let other = try Workbench()
    try other.write("a.bib", entries.joined())
    try other.tool(exit: 0, "import", "a.bib", "--only", "publications")
}

@Test func aLinkedFileThatComesAlong_isNotMissed() throws {
    let bench = try Workbench()
    try bench.write("pdfs/p.pdf", "%PDF")
    try bench.write("a.bib", "@misc{k, title={T}, file={:papers/p.pdf:PDF}}\n")
    for more in [["--dry-run"], [], []] {
        let result = try bench.tool(["import", "a.bib", "--attachments", "pdfs"] + more)
        #expect(result.status == 0, "\(result.stderr)")
    }
    try bench.tool(exit: 0, "import", "a.bib")
}

@Test func photosThatAreNotThere_areReported() throws {
    let bench = try Workbench()
    try bench.write(
        "log/2026-02-14.jsonl", #"{"id":"e","time":"2026-02-14T15:00Z","type":"tuin","photo":"media/a.jpg"}"#)
    #expect(try codes(bench.json(exit: 3, "import", "log")) == ["link-missing"])
    #expect(try codes(bench.json(exit: 3, "events", "import", "log")) == ["link-missing"])
    try bench.write("log/media/a.jpg", "jpg")
    try bench.tool(exit: 0, "import", "log")
}

@Test func manyUnlinkedFiles_areOneLine() throws {
    let bench = try Workbench()
    for number in 0..<200 { try bench.write("pdfs/\(number).pdf", "%PDF \(number)") }
    try bench.write("a.bib", "@misc{k, title={T}}\n")
    let result = try bench.tool(exit: 3, "import", "a.bib", "--attachments", "pdfs")
    #expect(result.stderr.split(separator: "\n").count == 5, "\(result.stderr)")
    #expect(result.stderr.contains(" and 197 more, each: belongs to no publication"))
    let report = try bench.json(exit: 3, "import", "--attachments", "pdfs")
    #expect(codes(report).count == 200)
}

@Test func whatWillNeverSync_isReportedWhenItComesIn() throws {
    let bench = try Workbench()
    try bench.shell("mkdir big; truncate -s 250000001 big/a.bin; truncate -s 250000000 big/b.bin")
    try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
    let report = try bench.json(exit: 3, "import", "a.bib", "--attachments", "big", "--dry-run")
    #expect(codes(report) == ["oversize"])
    #expect(report["findings"]?.array?.first?["severity"]?.string == "warning")
    let long = String(repeating: "x", count: 1_000_001)
    try bench.write("long.bib", "@misc{long, title={\(long)}}\n")
    try bench.write("log.jsonl", #"{"id":"e","time":"2026-02-14T15:00Z","type":"tuin","note":"\#(long)"}"#)
    #expect(try codes(bench.json(exit: 3, "import", "long.bib")).contains("oversize"))
    #expect(try codes(bench.json(exit: 3, "import", "log.jsonl")).contains("oversize"))
    try bench.shell("mkdir -p store.db.assets/Attachments; mv big/*.bin store.db.assets/Attachments")
    #expect(try codes(bench.json(exit: 3, "store", "adopt", "--new")) == ["oversize"])
}

@Test(arguments: [false, true])
func textInUTF16_isReadLikeUTF8(bigEndian: Bool) throws {
    let bib = "@string{j = {Zeitschrift für Rätsel 😀}}\r\n@article{müller, title = {Ä 日本}, journal = j}\r\n"
    let log = "{\"id\":\"e\",\"time\":\"2026-02-14T15:00Z\",\"type\":\"tuin\",\"note\":\"é 😀\"}\r\n"
    let notes = "[{\"citeKey\":\"müller\",\"note\":\"gelesen ✓\"}]"
    let settings = "{\"theme\":\"dünkel\"}"
    let files = [("l.bib", bib), ("log.jsonl", log), ("n/notes.json", notes), ("n/settings.json", settings)]
    let plain = try Workbench()
    let wide = try Workbench()
    for (name, text) in files {
        try plain.write(name, text)
        try wide.write(name, utf16(text, bigEndian: bigEndian))
    }
    for bench in [plain, wide] {
        try bench.shell("touch -d 2026-03-01T00:00:00Z l.bib log.jsonl n/*")
        for (name, _) in files { try bench.tool(exit: 0, "import", name, "--only", Workbench.allKinds) }
    }
    #expect(try plain.digest() == wide.digest())
    #expect(try wide.tool(exit: 0, "import", "log.jsonl").stderr.contains("1 unchanged"))
}

@Test func utf16ThatIsDamaged_isRejectedWhole_andCostsNothingElse() throws {
    let bench = try Workbench()
    try bench.write("odd.bib", utf16("@misc{a, title={A}}") + [0x20])
    try bench.write("alone.bib", utf16("@misc{b, title={B}}") + [0x00, 0xD8, 0x20, 0x00])
    try bench.write("odd.jsonl", utf16("{\"id\":\"e\",\"time\":\"2026-02-14T15:00Z\",\"type\":\"tuin\"}") + [0x20])
    try bench.write("fine.bib", "@misc{c, title={C}}\n")
    let report = try bench.json(exit: 3, "import", "odd.bib", "alone.bib", "odd.jsonl", "fine.bib")
    #expect(report["rejected"]?.integer == 3 && report["added"]?.integer == 2, "\(report)")
}

@Test(arguments: [
    "<!DOCTYPE html>\n<html><style>@page{margin:1px}</style>mail me@example.org</html>\n", "%PDF-1.7\n%âãÏÓ\n",
    "PK\u{3}\u{4}rest", "TY  - JOUR\nER  - \n", "[{\"id\": \"a\"}]", "@\u{0}m\u{0}i\u{0}s\u{0}c\u{0}{\u{0}",
])
func whatIsNamedBibAndIsSomethingElse_isRejected(_ text: String) throws {
    let bench = try Workbench()
    try bench.write("page.bib", text)
    try bench.write("fine.bib", "@misc{c, title={C}}\n")
    let report = try bench.json(exit: 3, "import", "page.bib", "fine.bib")
    #expect(report["rejected"]?.integer == 1 && report["added"]?.integer == 2, "\(report)")
    #expect(report["findings"]?.array?.first?["message"]?.string?.contains("not BibTeX") == true)
}

@Test func textWithoutAnEntry_isKeptAndReported_andCommentsAreFine() throws {
    let bench = try Workbench()
    try bench.write("text.bib", "My references are in the other file.\n")
    try bench.write("empty.bib", "% Encoding: UTF-8\n\n% nothing yet\n")
    try bench.write("page.bib", "<pre>\n@article{a, title={A}}\n</pre>\n")
    #expect(try bench.tool(exit: 3, "import", "text.bib").stderr.contains("holds no BibTeX entry; its text was kept"))
    try bench.tool(exit: 0, "import", "empty.bib")
    try bench.tool(exit: 0, "import", "page.bib")
}

@Test func anImbibExport_namesWhatItCannotHold() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n@misc{open, title={never closed\n")
    try bench.write("log.jsonl", #"{"id":"e","time":"2026-02-14T15:00Z","type":"tuin"}"#)
    try bench.tool(exit: 3, "import", "a.bib", "log.jsonl")
    let report = try bench.json(exit: 3, "export", "-o", "all", "--format", "imbib")
    let omitted = (report["omitted"]?.array ?? []).compactMap { $0["path"]?.string }
    #expect(omitted == ["events", "library.bib"] && report["records"]?["events"]?.integer == 0, "\(report)")
    let told = try bench.tool(exit: 3, "export", "-o", "papers", "--format", "imbib", "--only", "publications").stderr
    #expect(told.contains("an export in any other format keeps it") && !told.contains("store check"), "\(told)")
    // Ours holds all of it.
    try bench.tool(exit: 0, "export", "-o", "ours")
    try bench.write("b.bib", "@misc{b, title={B}}\n")
    try bench.tool(exit: 0, "import", "--store", "b.db", "--create", "b.bib")
    try bench.tool(exit: 0, "export", "--store", "b.db", "-o", "b", "--format", "imbib")
}

@Test(arguments: ["dir", "tar.zst", "zip"])
func aBackupFromWhichAFileWasLeftOut_saysSoToEverybody(_ format: String) throws {
    let bench = try Workbench()
    try bench.write("pdfs/a.pdf", "%PDF a")
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
    try bench.shell("rm store.db.assets/Attachments/a.pdf")
    try bench.tool(exit: 3, "export", "-o", "out", "--format", format)
    for words in [
        ["verify", "out"], ["verify", "out", "--level", "quick"], ["verify", "out", "--level", "deep"],
        ["restore", "--create", "out", "--store", "new.db"],
        ["restore", "--create", "out", "--store", "new.db", "--dry-run"],
        ["restore", "out", "--to", "plain"],
    ] {
        let result = try bench.tool(words)
        #expect(result.status == 3, "\(words): \(result.stderr)")
        let lines = result.stderr.split(separator: "\n").filter {
            $0.contains("was left out when this backup was made")
        }
        #expect(lines.count == 1 && lines.first?.contains("Attachments/a.pdf") == true, "\(words): \(result.stderr)")
    }
    try bench.tool(exit: 0, "restore", "--create", "out", "--store", "new.db", "--only", "publications")
}

@Test func aBackupWithoutAManifest_saysSoToEverybody() throws {
    let bench = try Workbench()
    try bench.write("lib/library.bib", "@misc{a, title={A}}\n")
    // Files of no layout at all prove no more.
    try bench.shell("mkdir odd; echo x > odd/a.txt; tar -cf odd.tar -C odd .")
    for words in [
        ["verify", "lib"], ["restore", "lib"], ["restore", "lib", "--to", "plain"],
        ["restore", "odd.tar", "--to", "odd2"],
    ] {
        let result = try bench.tool(words)
        #expect(result.status == 3 && result.stderr.contains("has no manifest"), "\(words): \(result.stderr)")
    }
}

/// No time says which of the two is right.
@Test func theSameEventWithAnotherTextAndNoLaterTime_isReported() throws {
    let bench = try Workbench()
    func event(_ note: String, _ more: String = "") -> String {
        #"{"id":"e","time":"2026-02-14T15:00Z","type":"tuin","note":"\#(note)"\#(more)}"# + "\n"
    }
    try bench.write("log.jsonl", event("one"))
    try bench.tool(exit: 0, "import", "log.jsonl")
    try bench.write("log.jsonl", event("two"))
    let report = try bench.json(exit: 3, "import", "log.jsonl")
    #expect(codes(report) == ["protected"] && report["protected"]?.integer == 1, "\(report)")
    #expect(report["findings"]?.array?.first?["message"]?.string?.contains("(note)") == true)
    // A field more is taken; the other is told of all the same.
    try bench.write("log.jsonl", event("three", #","who":"Fenna""#))
    #expect(try codes(bench.json(exit: 3, "import", "log.jsonl")) == ["protected"])
    // An older version loses by the rule, a newer one wins, and both are as expected.
    try bench.write("log.jsonl", event("four", #","modified_at":"2026-02-14T16:00Z""#))
    try bench.tool(exit: 0, "import", "log.jsonl")
    try bench.write("log.jsonl", event("five", #","modified_at":"2026-02-14T15:30Z""#))
    try bench.tool(exit: 0, "import", "log.jsonl")
    try bench.tool(exit: 0, "import", "log.jsonl", "--overwrite")
}

@Test func aQueryThatChoosesNothing_isReported_andABlankOneRefused() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={Alpha}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-o", "out")
    let result = try bench.tool(exit: 3, "restore", "out", "--match", "alpha", "--match", "omega")
    #expect(result.stderr.contains("--match omega: nothing in the backup has these words"), "\(result.stderr)")
    #expect(!result.stderr.contains("--match alpha"))
    for blank in ["", "  ", "title="] { try bench.tool(exit: 64, "restore", "out", "--match", blank) }
}

@Test func aFileThatOnlyDoesNotName_isReported() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.write("n/settings.json", "{\"a\":1}")
    try bench.write("n/b.bib", "@misc{b, title={B}}\n")
    #expect(try codes(bench.json(exit: 3, "import", "a.bib", "--only", "events")) == ["skipped"])
    #expect(try codes(bench.json(exit: 3, "import", "n/settings.json")) == ["skipped"])
    #expect(try codes(bench.json(exit: 0, "import", "n", "--only", "publications")) == ["not-asked-for"])
}

@Test func settingsThatAreLeftOut_areReported_unlessTheStoreHasThem() throws {
    let bench = try Workbench()
    try bench.write("n/settings.json", "{\"a\": 1, \"b\": {\"c\": [1.0, 2]}}")
    try bench.write("n/b.bib", "@misc{b, title={B}}\n")
    func left(_ path: String, exit code: Int32) throws -> [String] { try codes(bench.json(exit: code, "import", path)) }
    #expect(try left("n", exit: 3) == ["skipped"])
    try bench.tool(exit: 0, "import", "n", "--only", "settings")
    #expect(try left("n", exit: 0) == [])
    try bench.tool(exit: 0, "export", "-o", "out.zip")
    #expect(try left("out.zip", exit: 0) == [])
    #expect(try codes(bench.json(exit: 3, "import", "out.zip", "--create", "--store", "b.db")) == ["skipped"])
    try bench.tool(exit: 0, "import", "out.zip", "--only", "publications", "--store", "b.db")
    try bench.write("n/settings.json", "{\"a\": 2}")
    #expect(try left("n", exit: 3) == ["skipped"])
    // An empty file says nothing.
    try bench.write("n/settings.json", "{}")
    #expect(try left("n", exit: 0) == [])
}

@Test func aRehearsedExport_leavesOutWhatTheExportLeavesOut() throws {
    let bench = try Workbench()
    for round in 0..<(isTorture ? 60 : 4) {
        countRounds()
        var random = SeededGenerator(seed: testSeed() &+ UInt64(round))
        try bench.shell("rm -rf store.db* out* n; mkdir n")
        for number in 0..<4 {
            try bench.write("n/k\(number).bib", "@misc{k\(number), title={T\(number)}}\n")
            try bench.write("n/k\(number).pdf", "%PDF \(number)")
        }
        // The files of the folder are named as what import does not take, and are taken as attachments.
        try bench.tool("import", "-q", "n", "--attachments", "n/", "--create")
        let file = "store.db.assets/Attachments/k\(random.below(4)).pdf"
        let damages = [
            "rm \(file)", "echo more >> \(file)", "chmod 0 \(file)", "rm \(file); mkdir \(file)",
            "sqlite3 store.db \"UPDATE record SET fields = '{' WHERE change = 1\"", "rm -r store.db.assets", "true",
        ]
        try bench.shell(damages[random.below(damages.count)])
        let format = ["dir", "tar.zst", "zip", "imbib"][random.below(4)]
        let words = ["export", "-o", "out", "--format", format, "--json"]
        let plan = try bench.tool(words + ["--dry-run"])
        #expect(try !bench.exists("out"))
        let done = try bench.tool(words)
        let (left, right) = (try JSON(parsing: plan.stdout), try JSON(parsing: done.stdout))
        for member in ["files", "records", "tombstones", "contentDigest", "omitted", "warnings"] {
            #expect(left[member] == right[member], "round \(round), \(member): \(plan.stdout)\(done.stdout)")
        }
        #expect(plan.status == done.status && left["dryRun"]?.bool == true, "\(plan.stderr)\(done.stderr)")
        let again = try bench.tool(words + ["--dry-run"])
        #expect(again.status == 1 && again.stderr.contains("already exists"))
    }
}

@Test func aLibraryOfOurs_importedWithoutItsFiles_namesThem() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{one, title={One}}\n@misc{two, title={Two}, file={:two.pdf:PDF}}\n")
    for name in ["one.pdf", "two.pdf"] { try bench.write("pdfs/\(name)", "%PDF \(name)") }
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    try bench.shell("mkdir alone; cp out/library.bib alone")
    let report = try bench.json(exit: 3, "import", "alone/library.bib", "--create", "--store", "b.db")
    #expect(codes(report) == ["link-missing", "link-missing"], "\(report)")
    // Beside their files they are whole, and where the store has the files nothing is missing.
    try bench.tool(exit: 0, "import", "out/library.bib", "--store", "b.db")
    let files = try bench.shell("sqlite3 b.db 'SELECT path FROM asset ORDER BY path'")
    #expect(files == "Attachments/one.pdf\nAttachments/two.pdf\n")
    try bench.tool(exit: 0, "import", "alone/library.bib", "--store", "b.db")
    func entries(_ store: String) throws -> String {
        try bench.shell("sqlite3 \(store) \"SELECT fields FROM records WHERE type = 'Publication' ORDER BY fields\"")
    }
    #expect(try entries("b.db") == entries("store.db"))
}

/// A backup of the time before events had ids, and a store that has them with ids: only a person can say that they are one.
@Test(arguments: [("old.jsonl", "new.jsonl"), ("new.jsonl", "old.jsonl")])
func eventsThatComeInASecondForm_areNamed_andDedupMakesThemOne(here: String, backup: String) throws {
    let bench = try Workbench()
    let events = (1...3).map { #""time":"2026-02-14T15:0\#($0):00+01:00","type":"moment","note":"twin"}"# }
    try bench.write("old.jsonl", events.map { "{\($0)\n" }.joined())
    let ids = (1...3).map { #"{"id":"1111111\#($0)-1111-4111-8111-111111111111","# }
    try bench.write("new.jsonl", zip(ids, events).map { "\($0)\($1)\n" }.joined())
    try bench.tool(exit: 0, "import", backup, "--store", "other.db", "--create")
    try bench.tool(exit: 0, "export", "--store", "other.db", "-o", "backup.tar")
    try bench.tool(exit: 0, "import", here)
    let told = try bench.tool(exit: 3, "restore", "backup.tar").stderr
    #expect(told.contains("3 events: are in the store twice now, with and without an id"), "\(told)")
    try bench.tool(exit: 0, "dedup")
    func count() throws -> String { try bench.shell("$T events export -q -o - | grep -c '\"id\":\"1111111'") }
    #expect(try count() == "3\n" && bench.shell("$T events export -q -o - | wc -l") == "3\n")
    try bench.tool(exit: 0, "import", here, backup)
    #expect(try count() == "3\n" && bench.shell("$T events export -q -o - | wc -l") == "3\n")
    try bench.tool(exit: 0, "undo", "--batch", "3")
    #expect(try bench.shell("$T events export -q -o - | wc -l") == "6\n")
}

/// A folder in one import and a file in another, in either order.
@Test(arguments: [true, false])
func aFileAndAFolderOfOneName_areBothImported(isFileFirst: Bool) throws {
    let bench = try Workbench()
    try bench.write("file/pictures", "the file")
    try bench.write("folder/pictures/a.jpg", "below")
    try bench.tool(exit: 3, "import", "--attachments", isFileFirst ? "file" : "folder", "--create")
    let second = try bench.tool(exit: 3, "import", "--attachments", isFileFirst ? "folder" : "file")
    #expect(second.stderr.contains("another file or folder has that name"))
    let place = isFileFirst ? "pictures_2/a.jpg" : "pictures_2"
    #expect(try bench.text("store.db.assets/Attachments/\(place)") == (isFileFirst ? "below" : "the file"))
    try bench.tool(exit: 0, "store", "check")
    try bench.tool(exit: 0, "export", "-o", "out")
    #expect(try bench.shell("find out/Attachments -type f | wc -l") == "2\n")
}

/// A value that a file says for the first time is taken or named, also where something else of its entry is taken.
@Test(arguments: [",\n annote = {x}", ",\n doi = {10.1000/1}", ",\n file = {:p.pdf:PDF}", ""], [[], ["--mirror"]])
func aNewValueThatIsLeftOut_isNamed_whateverElseItsEntryBrings(_ more: String, _ how: [String]) throws {
    let bench = try Workbench()
    func write(_ abstract: String, _ more: String = "") throws {
        try bench.write("a.bib", "@article{k,\n title = {T},\n author = {A},\n abstract = {\(abstract)}\(more)\n}\n")
    }
    try bench.write("p.pdf", "%PDF p")
    try write("old")
    try bench.tool(exit: 0, "import", "--create", "a.bib")
    try write("NEW", more)
    try bench.shell("touch -d '1 hour ago' a.bib")
    let told = try bench.tool(["import", "a.bib"] + how)
    let said = how.isEmpty ? "new values of 'k' were left out" : "is not newer than the store's"
    #expect(told.status == 3 && told.stderr.contains(said), "\(told.stderr)")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "import", "a.bib", "--overwrite")
    #expect(try bench.shell("sqlite3 store.db 'SELECT fields FROM record'").contains("NEW"))
}
