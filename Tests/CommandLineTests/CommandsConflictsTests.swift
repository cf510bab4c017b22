import BackupKit
import TestSupport
import Testing

private func benchWithAConflict() throws -> Workbench {
    let bench = try Workbench()
    let long = String(repeating: "A title that is longer than a terminal is wide, ", count: 4)
    try bench.write(
        "refs.bib",
        "@article{Smith2020, title = {\(long)}, year = 2020}\n@book{Smith2020, title = {Short}, publisher = {P}}\n")
    try bench.shell("touch -d 2026-01-05 refs.bib")
    try bench.tool(exit: 3, "import", "refs.bib")
    return bench
}

@Test func conflicts_areListedAndShownIn80Columns() throws {
    let bench = try benchWithAConflict()
    for words in [["conflicts", "list"], ["conflicts", "show", "1"], ["conflicts", "show", "1", "--verbose"]] {
        let result = try bench.tool(words)
        #expect(result.status == 0 && result.stdoutLines.filter { $0.count > 80 } == [], "\(result.stdout)")
        #expect(result.stdout.contains("Smith2020"))
    }
    let lines = try bench.tool(exit: 0, "conflicts", "show", "1").stdoutLines
    #expect(lines.contains { $0.hasPrefix("~ title") && $0.hasSuffix("  Short") })
    #expect(lines.contains { $0.hasPrefix("- year") } && lines.contains { $0.hasPrefix("+ publisher") })
    #expect(!lines.contains { $0.contains("rawBibTeX") })
    let shown = try bench.json(exit: 0, "conflicts", "show", "1")
    #expect(shown["newKey"]?.string == "Smith2020a" && shown["choices"]?.array?.count == 6)
    let title = shown["fields"]?.array?.first { $0["field"]?.string == "title" }
    #expect(title?["incoming"]?.string == "\"Short\"" && title?["differs"]?.bool == true)
    let list = try bench.json(exit: 0, "conflicts", "list")
    #expect(list["conflicts"]?.array?.count == 1)
    #expect(list["conflicts"]?.array?.first?["incoming"]?["label"]?.string == "Smith2020: Short")
}

@Test func worksThatAreCalledTheSame_areToldApartInTheList() throws {
    let bench = try Workbench()
    let volumes = (1...2).map { "@book{k, title={Collected Works}, author={Bee, Bo}, year={2010}, volume={\($0)}}\n" }
    try bench.write("refs.bib", volumes.joined())
    try bench.tool(exit: 3, "import", "--create", "refs.bib")
    let lines = try bench.tool(exit: 0, "conflicts", "list").stdoutLines
    #expect(lines.contains("     existing  k: Collected Works  (volume: 1)"), "\(lines)")
    #expect(lines.contains("     incoming  k: Collected Works  (volume: 2)"), "\(lines)")
}

@Test func aConflict_isDecided_exported_andTakenBack() throws {
    let bench = try benchWithAConflict()
    let before = try (bench.digest(), bench.state())
    let plan = try bench.json(exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming", "--dry-run")
    #expect(try bench.state() == before.1)
    #expect(plan["dryRun"]?.bool == true && plan["settled"]?.integer == 1 && plan["batch"] == .null)
    let done = try bench.json(exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming", "--key", "Smith2020:b")
    #expect(done["plan"]?.array?.count == 1)
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let text = try bench.text("out/library.bib")
    #expect(text.contains("@book{Smith2020:b, title = {Short}, publisher = {P}}"))
    #expect(try bench.json(exit: 0, "store", "info")["conflicts"]?.integer == 0)
    let undone = try bench.tool(exit: 0, "undo")
    #expect(
        undone.stderr.contains("resolve of Smith2020 (rename-incoming)") && undone.stderr.contains("1 conflict open"))
    #expect(try bench.digest() == before.0)
    #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.count == 1)
}

@Test func aWorkThatIsNamed_isKept_onWhicheverSideItIs() throws {
    for side in ["existing", "incoming"] {
        let bench = try benchWithAConflict()
        let shown = try bench.json(exit: 0, "conflicts", "show", "1")
        let (id, label) = (shown[side]?["id"]?.string ?? "", shown[side]?["label"]?.string ?? "")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--keep", id)
        #expect(try bench.json(exit: 0, "conflicts", "list")["conflicts"]?.array?.isEmpty == true)
        try bench.tool(exit: 0, "export", "-q", "-o", "out")
        let title = label.dropFirst("Smith2020: ".count).prefix(20)
        #expect(try bench.text("out/library.bib").contains("title = {\(title)"))
        let decided = try bench.tool(exit: 1, "conflicts", "resolve", "1", "--with", "merge")
        #expect(
            decided.stderr.contains(
                "there is nothing left to decide: the \(side == "existing" ? "incoming" : "existing") one is gone"))
    }
}

@Test func conflicts_thatCannotBeDecidedSo_sayWhy_andWriteNothing() throws {
    let bench = try benchWithAConflict()
    let before = try bench.state()
    for (code, words, text) in [
        (64, ["resolve", "1", "--with", "mrege"], "did you mean 'merge'?"),
        (64, ["resolve", "one", "--with", "merge"], "is not a conflict number"),
        (64, ["resolve", "1"], "--with is missing"),
        (64, ["resolve", "1", "--with", "merge", "--key", "x"], "--key goes with one conflict"),
        (64, ["resolve", "1", "--with", "merge", "--keep", "x"], "--keep goes with one conflict and without --with"),
        (1, ["resolve", "1", "--keep", "x"], "name one of its sides: Library/"),
        (1, ["resolve", "1", "--with", "rename-incoming", "--key", "smith2020"], "the cite key of another"),
        (1, ["resolve", "1", "--with", "rename-incoming", "--key", "a b"], "cannot be cited"),
        (1, ["resolve", "1", "--with", "rename-incoming", "--key", "%x"], "cannot be cited"),
        (1, ["resolve", "1", "2", "--with", "merge"], "there is no conflict of this number"),
        (1, ["show", "7"], "'backup-tool conflicts list' shows"),
    ] as [(Int32, [String], String)] {
        let result = try bench.tool(["conflicts"] + words)
        #expect(result.status == code && result.stderr.contains(text), "\(words): \(result.stderr)")
    }
    #expect(try bench.state() == before)
}

@Test func twoVersionsOfAFile_areDecidedByCommand() throws {
    let bench = try Workbench()
    for (folder, text) in [("one", "first"), ("two", "second")] {
        try bench.write("\(folder)/x.pdf", text)
        try bench.tool("import", "--attachments", folder)
    }
    let shown = try bench.tool(exit: 0, "conflicts", "show", "1").stdoutLines
    #expect(shown.contains { $0.hasPrefix("~ sha256") } && !shown.contains { $0.contains("rename-incoming") })
    let result = try bench.tool(exit: 64, "conflicts", "resolve", "1", "--with", "merge")
    #expect(result.stderr.contains("choose one of: keep-both, keep-existing, keep-incoming"))
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-incoming")
    #expect(try bench.text("store.db.assets/Attachments/x.pdf") == "second")
    #expect(try bench.files("store.db.assets").filter { !$0.hasPrefix(".") } == ["Attachments/x.pdf"])
    try bench.tool(exit: 0, "undo")
    #expect(try bench.text("store.db.assets/Attachments/x.pdf") == "first")
}

/// A conflict that was decided while one of its works was on one device only is no question to others, once they have both.
@Test func aConflictThatWasDecidedOnOneDevice_isNotAskedWhenItsWorksAreShared() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={One}, year=2001}\n")
    try bench.write("b.bib", "@misc{k, title={Two}, year=2002}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
    try bench.tool(exit: 0, "store", "set-local", String(id))
    try bench.tool(exit: 3, "import", "b.bib")
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-both")
    try bench.tool(exit: 0, "store", "enable-cloud", String(id))
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 0, "store", "init", "--store", "other.db")
    for _ in 0..<2 {
        for store in ["store.db", "other.db"] { try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db") }
    }
    for store in ["store.db", "other.db"] {
        #expect(try bench.json(exit: 0, "conflicts", "list", "--store", store)["conflicts"]?.array?.isEmpty == true)
    }
}

/// The survivor may have the id that the other work had, and a backup from before the decision has the other work under it.
/// Its note may be there before, or come with the folder of the other work after the decision.
@Test(arguments: ["On ants", "On bees"], [false, true])
func aBackupFromBeforeAMerge_bringsTheMergedWorkBackInNoOrderOfIDs(_ first: String, isNoteLate: Bool) throws {
    let bench = try Workbench()
    func entry(_ title: String, _ year: Int) -> String {
        "@article{q, title={\(title)}, author={\(title), A}, year={\(year)}}\n"
    }
    try bench.write("a/lib.bib", entry(first, 2001))
    try bench.write("a/notes.json", #"[{"citeKey":"q","note":"thoughts"}]"#)
    try bench.write("c/lib.bib", entry(first == "On ants" ? "On bees" : "On ants", 2002))
    try bench.shell("touch -d '2 hours ago' a/*; touch -d '1 hour ago' c/*")
    try bench.tool(exit: 0, "import", "--create", "--store", "other.db", "a")
    try bench.tool(exit: 0, "export", "--store", "other.db", "-o", "backup.zip")
    try bench.tool(exit: 0, "import", "--create", isNoteLate ? "a/lib.bib" : "a")
    try bench.tool(exit: 3, "import", "c")
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
    if isNoteLate { try bench.tool("import", "a") }
    let digest = try bench.digest()
    for command in ["restore", "import"] {
        try bench.tool(exit: 0, command, "backup.zip")
        #expect(try bench.digest() == digest)
    }
    // On purpose it comes back.
    try bench.tool("restore", "backup.zip", "--resurrect")
    try bench.tool("export", "-o", "out")
    let library = try bench.text("out/library.bib")
    #expect(library.contains("On ants") && library.contains("On bees"), "\(library)")
}

@Test(arguments: ["keep-existing", "keep-incoming", "merge"])
func aFolderWhoseWorkWasDecided_isImportedAgainWithoutAWarning(_ choice: String) throws {
    let bench = try Workbench()
    for (folder, title) in [("a", "Mosses of Fife"), ("b", "Lakes of the North")] {
        try bench.write("\(folder)/x.bib", "@book{smith, title={\(title)}, file={:\(folder).pdf:PDF}}\n")
        try bench.write("\(folder)/\(folder).pdf", "%PDF \(folder)")
    }
    try bench.tool(exit: 0, "import", "a")
    try bench.tool(exit: 3, "import", "b")
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice)
    for folder in ["a", "b"] {
        let again = try bench.tool("import", folder)
        #expect(again.status == 0, "\(folder): \(again.stderr)")
    }
    // What no entry names is still left out.
    try bench.write("b/other.pdf", "%PDF other")
    try bench.tool(exit: 3, "import", "b")
}

/// What waits for a decision about two files goes with the files, be it exported or restored.
@Test func aConflictOfFiles_isOneOfTheAttachments() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={K}}\n")
    try bench.write("files/k.txt", "one\n")
    try bench.write("others/k.txt", "another\n")
    try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
    try bench.tool(exit: 3, "import", "--attachments", "others")
    func waiting(_ store: String) throws -> Int {
        try bench.json(exit: 0, "conflicts", "list", "--store", store)["conflicts"]?.array?.count ?? -1
    }
    #expect(try waiting("store.db") == 1)
    try bench.tool(exit: 0, "export", "-q", "-o", "all")
    try bench.tool(exit: 0, "export", "-q", "--only", "publications", "-o", "rows")
    try bench.tool(exit: 0, "export", "-q", "--only", "attachments", "-o", "files-only")
    for (backup, kinds, count) in [
        ("all", "publications", 0), ("rows", "publications", 0), ("all", "attachments", 1),
        ("files-only", "attachments", 1), ("all", "publications,attachments", 1),
    ] {
        let store = "\(backup)-\(kinds).db"
        try bench.tool("restore", "--create", "--store", store, "--only", kinds, backup)
        #expect(try waiting(store) == count, "\(backup), \(kinds)")
        try bench.tool(exit: 0, "store", "check", "--store", store)
        try bench.tool(exit: 0, "verify", "--level", "deep", backup)
    }
}

/// A device keeps one of two works of a conflict for itself and gives it back when the other one is deleted.
@Test func aConflictWithAWorkThatWasKeptHere_isEverybodysOrNobodysInTheEnd() throws {
    let bench = try Workbench()
    try bench.write("1.bib", "@article{k,title={One thing},author={A, B},year={2000}}\n")
    try bench.write("2.bib", "@book{k,title={Quite another},author={C, D},year={1990}}\n")
    try bench.shell("touch -d '1 hour ago' *.bib; $T hub init hub.db")
    for (store, file) in [("a.db", "1.bib"), ("b.db", "2.bib")] {
        try bench.tool(exit: 0, "import", "--create", "--store", store, file)
    }
    func id(_ title: String, _ store: String) throws -> String {
        let name = "SELECT zone || '/' || ifnull(name, local_id) FROM record WHERE fields LIKE '%\(title)%'"
        return try bench.shell("sqlite3 \(store) \"\(name)\"").split(separator: "\n").map(String.init).first ?? ""
    }
    func sync(_ stores: String...) throws {
        for store in stores { try bench.tool("sync", "--hub", "hub.db", "--store", store) }
    }
    try bench.tool(exit: 0, "store", "set-local", id("Quite", "b.db"), "--store", "b.db")
    try sync("a.db", "b.db", "a.db", "b.db")
    #expect(try bench.tool(exit: 0, "conflicts", "list", "--store", "b.db").stdout.contains("Quite another"))
    try bench.tool(exit: 0, "store", "delete", id("One thing", "a.db"), "--store", "a.db")
    try sync("a.db", "b.db")
    try bench.tool(exit: 0, "store", "enable-cloud", id("Quite", "b.db"), "--store", "b.db")
    try sync("b.db", "a.db", "b.db", "a.db")
    let digests = try ["a.db", "b.db"].map { try bench.tool(exit: 0, "store", "digest", "--store", $0).stdout }
    #expect(digests[0] == digests[1])
    // Who brings the deleted work back has the conflict again, on both devices.
    try bench.tool("undo", "--store", "a.db")
    try sync("a.db", "b.db", "a.db", "b.db")
    for store in ["a.db", "b.db"] {
        #expect(try bench.tool("conflicts", "list", "--store", store).stdout.contains("One thing"), "\(store)")
    }
}
