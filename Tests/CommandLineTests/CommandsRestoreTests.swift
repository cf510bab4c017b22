import BackupKit
import TestSupport
import Testing

/// A store and its export, made of three publications, a note, two events and an attachment.
private func smallBench() throws -> Workbench {
    let bench = try Workbench()
    try bench.write(
        "refs.bib",
        """
        @article{one, title = {First}, year = 2001, doi = {10.1/one}}
        @article{two, title = {Second}, year = 2002, file = {:two.pdf:PDF}}
        @article{three, title = {Third}, year = 2003}
        """)
    try bench.write("files/two.pdf", "%PDF two")
    try bench.write("notes.json", "[{\"citeKey\":\"one\",\"note\":\"read it\"}]")
    try bench.write("settings.json", "{\"sort\":\"year\"}")
    try bench.write(
        "log.jsonl",
        "{\"id\":\"E1\",\"time\":\"2026-01-01T10:00Z\",\"type\":\"eten\"}\n{\"id\":\"E2\",\"time\":\"2026-01-02T10:00Z\",\"type\":\"tuin\"}\n"
    )
    try bench.shell("touch -d 2026-01-05 refs.bib notes.json")
    try bench.tool(
        exit: 0, "import", "refs.bib", "notes.json", "settings.json", "log.jsonl", "--attachments", "files", "--only",
        Workbench.allKinds)
    try bench.tool(exit: 0, "export", "-o", "backup.tar.zst")
    return bench
}

@Test func merge_neverOverwritesWhatIsNewer() throws {
    let bench = try smallBench()
    try bench.write("refs.bib", "@article{one, title = {First, revised}, year = 2001, doi = {10.1/one}}\n")
    try bench.tool(exit: 0, "import", "refs.bib")
    let before = try bench.digest()
    let result = try bench.json(exit: 0, "restore", "backup.tar.zst")
    #expect(result["updated"]?.integer == 0 && result["writes"]?.integer == 0)
    let kept = (result["plan"]?.array ?? []).filter { $0["label"]?.string == "one: First" }
    #expect(kept.first?["reason"]?.string == "is as new or newer in the store")
    #expect(try bench.digest() == before)
}

@Test func whatWasDeletedLater_staysDeletedUnlessResurrected() throws {
    let bench = try smallBench()
    let whole = try bench.digest()
    try bench.tool(exit: 0, "store", "delete", "E1")
    let deleted = try bench.digest()
    let result = try bench.json(exit: 0, "restore", "backup.tar.zst")
    #expect(result["protected"]?.integer == 1)
    #expect(try bench.tool(exit: 0, "restore", "backup.tar.zst").stderr.contains("--resurrect brings back"))
    #expect(try bench.digest() == deleted)
    try bench.tool(exit: 3, "restore", "backup.tar.zst", "--mode", "replace", "--only", "events")
    #expect(try bench.digest() == deleted, "replace respects tombstones, too")
    try bench.tool(exit: 0, "undo", "--list")
    let back = try bench.json(exit: 0, "restore", "backup.tar.zst", "--resurrect")
    #expect(back["updated"]?.integer == 1)
    try bench.tool(exit: 0, "undo")
    #expect(try bench.digest() == deleted && deleted != whole)
}

@Test func whatIsLocalOnly_isLeftAlone() throws {
    let bench = try smallBench()
    try bench.tool(exit: 0, "store", "set-local", "E2")
    let before = try bench.digest()
    for mode in ["merge", "replace"] {
        try bench.tool("restore", "backup.tar.zst", "--mode", mode, "--resurrect")
        let text = try bench.shell(
            "sqlite3 store.db \"SELECT count(*) FROM record WHERE local_only AND fields LIKE '%tuin%'\"")
        #expect(text == "1\n")
    }
    try bench.write("empty.bib", "@misc{x, title={X}}")
    #expect(try !before.isEmpty && bench.digest() == before)
}

@Test func settings_comeOnlyWhenAskedFor() throws {
    let bench = try smallBench()
    try bench.tool(exit: 3, "restore", "--create", "backup.tar.zst", "--store", "a.db")
    #expect(try bench.json(exit: 0, "store", "info", "--store", "a.db")["settings"]?.integer == 0)
    try bench.tool(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "a.db", "--only", "settings")
    #expect(try bench.json(exit: 0, "store", "info", "--store", "a.db")["settings"]?.integer == 1)
}

@Test(arguments: ["publications", "notes", "events", "attachments", "settings"])
func only_restoresThatKindAndNoOther(_ kind: String) throws {
    let bench = try smallBench()
    try bench.tool(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "a.db", "--only", kind)
    let info = try bench.json(exit: 0, "store", "info", "--store", "a.db")
    var counts = (info["records"]?.members ?? []).map { "\($0.key) \($0.value.integer ?? -1)" }
    counts += ["attachments \(info["assets"]?.integer ?? -1)", "settings \(info["settings"]?.integer ?? -1)"]
    let some = counts.filter { !$0.hasSuffix(" 0") }.map { $0.prefix { $0 != " " } }
    #expect(some == [Substring(kind)])
}

@Test func match_bringsBackOneRecordAndItsFile() throws {
    let bench = try smallBench()
    let result = try bench.json(
        exit: 0, "restore", "--create", "backup.tar.zst", "--store", "a.db", "--match", "citeKey=Two")
    // A part of a key is another key.
    try bench.tool("restore", "--create", "backup.tar.zst", "--store", "none.db", "--match", "citeKey=tw")
    #expect(try !bench.exists("none.db"))
    #expect(result["added"]?.integer == 1 && result["attachments"]?["added"]?.integer == 1)
    #expect(try bench.files("a.db.assets") == ["Attachments/two.pdf"])
    // As a disk damages a file: its size stays.
    try bench.shell("printf X | dd of=a.db.assets/Attachments/two.pdf bs=1 seek=1 conv=notrunc status=none")
    let again = ["restore", "--create", "backup.tar.zst", "--store", "a.db", "--match", "two"]
    try bench.shell("touch -d 2020-01-01 a.db.assets/Attachments/two.pdf")
    // Its time says that somebody wrote into it: what that is stays beside the one that was asked for.
    #expect(try bench.tool(again).stderr.contains("that version is kept as Attachments/two_conflict_"))
    try bench.shell("cmp files/two.pdf a.db.assets/Attachments/two.pdf")
    #expect(try bench.tool(again).status == 0)
    try bench.shell("cmp files/two.pdf a.db.assets/Attachments/two.pdf")
    let both = try bench.json(
        exit: 0, "restore", "--create", "backup.tar.zst", "--store", "b.db", "--match", "citeKey=two", "--match",
        "citeKey=one")
    let one = try bench.json(
        exit: 0, "restore", "--create", "backup.tar.zst", "--store", "c.db", "--match", "citeKey=one", "--dry-run")
    #expect(both["added"]?.integer == 1 + (one["added"]?.integer ?? 0) && one["added"]?.integer != 0)
    let none = try bench.tool(exit: 1, "restore", "--create", "backup.tar.zst", "--store", "d.db", "--match", "one,two")
        .stderr
    #expect(none.contains("backup.tar.zst: holds nothing with these words: one,two"))
    let noRecords = try bench.tool(
        exit: 1, "restore", "--create", "backup.tar.zst", "--store", "d.db", "--only", "records")
    #expect(noRecords.stderr.contains("backup.tar.zst: holds no records"))
    try bench.shell("! ls -d d.db*")
}

@Test func replace_makesTheStoreWhatTheBackupSays_andUndoTakesItBack() throws {
    let bench = try smallBench()
    try bench.tool(exit: 0, "store", "digest")
    let wanted = try bench.digest()
    try bench.write(
        "more.bib", "@misc{more, title={More}}\n@article{one, title={First, changed}, year=2001, doi={10.1/one}}")
    try bench.write("files/two.pdf", "%PDF two, annotated")
    try bench.write("files/more.pdf", "%PDF more")
    try bench.tool(exit: 3, "import", "more.bib", "--attachments", "files")
    let before = try bench.digest()
    let state = try bench.state()
    let result = try bench.json(exit: 0, "restore", "backup.tar.zst", "--mode", "replace", "--only", Workbench.allKinds)
    #expect(try bench.digest() == wanted, "\(result)")
    #expect(try bench.files("store.db.assets").filter { !$0.hasPrefix(".") } == ["Attachments/two.pdf"])
    try bench.tool(exit: 0, "undo")
    #expect(try bench.digest() == before)
    for (file, bytes) in state where file.hasPrefix("Attachments/") {
        #expect(try bench.bytes("store.db.assets/\(file)") == bytes, "\(file)")
    }
}

@Test func dryRun_printsThePlanAndWritesNothing() throws {
    let bench = try smallBench()
    // The settings are left out.
    let plan = try bench.tool(exit: 3, "restore", "--create", "backup.tar.zst", "--store", "none.db", "--dry-run")
    #expect(plan.stdout.contains("+ two: Second") && plan.stderr.contains("nothing written"))
    #expect(try !bench.exists("none.db") && !bench.exists("none.db.assets"))
    #expect(try bench.files("tmp").isEmpty)
    try bench.tool(exit: 0, "store", "delete", "E1")
    let state = try bench.state()
    let again = try bench.tool(exit: 0, "restore", "backup.tar.zst", "--dry-run")
    #expect(again.stdout.contains("= ") && again.stdout.contains("was deleted after"))
    #expect(try bench.state() == state)
    // It names a file that is not here.
    try bench.tool(exit: 3, "import", "refs.bib", "--create", "--store", "none.db", "--dry-run")
    #expect(try !bench.exists("none.db"))
}

@Test func undo_afterAnImportWithAttachments_removesTheFiles() throws {
    let bench = try smallBench()
    let before = try bench.digest()
    try bench.write("new/three.pdf", "%PDF three")
    try bench.write("new/stray.pdf", "%PDF stray")
    try bench.tool(exit: 3, "import", "--attachments", "new")
    #expect(try bench.exists("store.db.assets/Attachments/stray.pdf"))
    try bench.tool(exit: 0, "undo")
    #expect(try bench.digest() == before)
    #expect(try bench.files("store.db.assets").filter { !$0.hasPrefix(".") } == ["Attachments/two.pdf"])
}

@Test func anAttachmentWhoseFileIsGone_isPutBack() throws {
    let bench = try smallBench()
    try bench.shell("rm store.db.assets/Attachments/two.pdf")
    #expect(try bench.json(exit: 3, "export", "-o", "lacking")["omitted"]?.array?.count == 1)
    let result = try bench.json(exit: 0, "restore", "backup.tar.zst")
    #expect(result["attachments"]?["mended"]?.integer == 1 && result["attachments"]?["added"]?.integer == 0)
    #expect(try bench.text("store.db.assets/Attachments/two.pdf") == "%PDF two")
    try bench.shell("rm store.db.assets/Attachments/two.pdf")
    try bench.tool(exit: 0, "import", "--attachments", "files")
    #expect(try bench.text("store.db.assets/Attachments/two.pdf") == "%PDF two")
    // One that an app has written into since is nobody's to put back.
    try bench.shell("echo annotated >> store.db.assets/Attachments/two.pdf")
    let grown = try bench.tool(exit: 3, "restore", "backup.tar.zst")
    #expect(grown.stderr.contains("Attachments/two.pdf: has 18 bytes"))
    #expect(try bench.text("store.db.assets/Attachments/two.pdf") == "%PDF twoannotated\n")
}

@Test func aFailedFirstImport_leavesNoStore() throws {
    let bench = try Workbench()
    let missing = try bench.tool(exit: 10, "import", "none.bib")
    #expect(missing.stderr.contains("none.bib: does not exist") && missing.stdout == "")
    try bench.write("bad.tar", "no tar")
    #expect(try bench.tool("restore", "bad.tar").status != 0)
    #expect(try !bench.exists("store.db") && !bench.exists("store.db.assets"))
    try bench.tool(exit: 10, "export", "-o", "x")
    try bench.tool(exit: 10, "undo")
    try bench.tool(exit: 10, "verify", "none")
    try bench.tool(exit: 64, "restore")
    try bench.tool(exit: 64, "export")
}
