import BackupKit
import TestSupport
import Testing

private func undoBench() throws -> Workbench {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.write("pdfs/a.pdf", "%PDF a")
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
    return bench
}

@Test func anUndoTakesBackTheDelete_andNotTheImportBeforeIt() throws {
    let bench = try undoBench()
    let before = try bench.digest()
    let id = try bench.shell("sqlite3 store.db 'SELECT local_id FROM record LIMIT 1'").filter { $0 != "\n" }
    let deleted = try bench.tool(exit: 0, "store", "delete", id)
    #expect(deleted.stderr.contains("'backup-tool undo' takes this back."))
    let after = try bench.digest()
    let undone = try bench.tool(exit: 0, "undo")
    #expect(undone.stderr.contains("Took back the delete of \(id)") && undone.stderr.contains("undo --redo"))
    #expect(try bench.digest() == before)
    let redone = try bench.tool(exit: 0, "undo", "--redo")
    #expect(redone.stderr.contains("Brought back the delete of \(id)"))
    #expect(try bench.digest() == after)
    let list = try bench.tool(exit: 0, "undo", "--list").stdout
    #expect(list.contains("redo") && list.contains("redone") && list.contains("undone"))
    try bench.tool(exit: 1, "undo", "--redo")
    try bench.tool(exit: 64, "undo", "--redo", "--batch", "1")
}

@Test func anUndoAfterARestoreThatChangedNothing_takesNothingBackUnasked() throws {
    let bench = try undoBench()
    try bench.tool(exit: 0, "export", "-q", "-o", "backup.tar.zst")
    try bench.tool(exit: 0, "restore", "backup.tar.zst")
    let state = try bench.state()
    for words in [["undo"], ["undo", "--dry-run"]] {
        let refused = try bench.tool(words)
        #expect(refused.status == 1 && refused.stderr.contains("the restore of backup.tar.zst, changed nothing"))
        #expect(refused.stderr.contains("'backup-tool undo --batch 1' takes back what was done before it: the import"))
    }
    #expect(try bench.state() == state)
    try bench.tool(exit: 1, "undo", "--batch", "7")
    try bench.tool(exit: 0, "undo", "--batch", "1")
    #expect(try bench.json(exit: 0, "store", "info")["assets"]?.integer == 0)
    try bench.tool(exit: 0, "undo", "--redo")
    try bench.tool(exit: 0, "undo")
}

@Test func aFileThatAnAppChangedIsAdopted_andOneThatWasRemovedIsNamed() throws {
    let bench = try undoBench()
    let before = try bench.digest()
    let file = "store.db.assets/Attachments/a.pdf"
    #expect(try bench.tool(exit: 0, "store", "adopt").stderr.contains("Every file is what the store remembers"))
    try bench.write(file, "%PDF a, annotated")
    let export = try bench.tool(exit: 3, "export", "-o", "out")
    #expect(export.stderr.contains("'backup-tool store adopt'"))
    #expect(try bench.text("out/Attachments/a.pdf") == "%PDF a, annotated")
    let plan = try bench.tool(exit: 0, "store", "adopt", "--dry-run")
    #expect(plan.stdout == "Attachments/a.pdf would be adopted\n")
    #expect(try bench.digest() == before)
    #expect(try bench.tool(exit: 0, "store", "adopt").stdout == "Attachments/a.pdf adopted\n")
    let adopted = try bench.digest()
    #expect(try bench.json(exit: 0, "export", "-o", "out2")["contentDigest"]?.string.map { $0 + "\n" } == adopted)
    try bench.tool(exit: 3, "undo")
    #expect(try bench.digest() == before && bench.text(file) == "%PDF a, annotated")
    try bench.tool(exit: 0, "undo", "--redo")
    #expect(try bench.digest() == adopted && bench.text(file) == "%PDF a, annotated")
    try bench.shell("rm \(file)")
    let result = try bench.json(exit: 0, "store", "adopt")
    #expect(try result["putBack"]?.array?.count == 1 && bench.text(file) == "%PDF a, annotated")
    try bench.tool(exit: 1, "store", "adopt", "Attachments/none.pdf")
    try bench.write("more/b.pdf", "%PDF b")
    try bench.tool("import", "--attachments", "more")
    try bench.shell("rm store.db.assets/Attachments/b.pdf")
    let lost = try bench.tool(exit: 3, "store", "adopt")
    #expect(lost.stderr.contains("Attachments/b.pdf: is not in the store's folder"))
}

/// A reader sees one state, whatever is written meanwhile: no half, no warning.
@Test func readersLoopWhileRestoresAndUndosRun() throws {
    let bench = try Workbench(["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw"])
    try bench.makeCheapVault()
    try bench.write("pw", "secret\n")
    try bench.shell("chmod 600 pw")
    for round in ["old", "new"] {
        for number in 0..<30 { try bench.write("pdfs/\(number).pdf", "\(round) \(number)") }
        try bench.write("a.bib", "@misc{a, title={\(round)}}\n")
        try bench.tool("import", "a.bib", "--attachments", "pdfs", "--create", "--store", "\(round).db")
        try bench.tool(exit: 0, "export", "-q", "-o", "\(round).tar", "--store", "\(round).db")
    }
    try bench.shell("cp -a old.db store.db; cp -a old.db.assets store.db.assets")
    let wanted = try Set(["old", "new"].map { try bench.digest("\($0).db") })
    try bench.shell(
        """
        (for i in 1 2 3 4 5; do
            "$T" restore -q --mode replace new.tar; "$T" undo -q; "$T" undo -q --redo; "$T" undo -q
        done; touch done) &
        n=0
        while [ ! -e done ]; do
            n=$((n+1))
            "$T" export -q -o "e$n.tar" 2>>said || { echo "export $n ended with $?"; cat said; touch failed; break; }
            strace -f -qq -o /dev/null -e inject=openat,openat2:delay_enter=5000 "$T" store check >>said 2>&1 ||
                { echo "check $n ended with $?"; cat said; touch failed; break; }
            "$T" vault backup -q 2>>said || { echo "backup $n ended with $?"; cat said; touch failed; break; }
        done
        wait
        [ ! -e failed ]
        """)
    for name in try Directory.names(in: bench.folder) where name.hasPrefix("e") && name.hasSuffix(".tar") {
        let verified = try bench.json(exit: 0, "verify", name, "--level", "deep")
        #expect(wanted.contains((verified["contentDigest"]?.string ?? "") + "\n"), "\(name)")
    }
}

@Test func whatAnUndoPassesOver_isSaidAlsoByAQuietRun() throws {
    let bench = try undoBench()
    try bench.write("a.bib", "@misc{a, title={A}, doi={10.1/a}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 0, "store", "init", "--store", "other.db")
    for store in ["store.db", "other.db"] {
        try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db", "--user", "ann")
    }
    try bench.write("a.bib", "@misc{a, title={A}, doi={10.1/a}, note={new}}\n")
    try bench.tool(exit: 0, "import", "--store", "other.db", "a.bib")
    for store in ["other.db", "store.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
    let quiet = try bench.tool(exit: 3, "undo", "-q")
    #expect(quiet.stderr.contains("warning: ") && quiet.stderr.contains("stays as it is now"))
    #expect(quiet.stderr.contains("warning: a: A ("), "\(quiet)")
}

/// What is dead is told from what is alive, by the title that it had.
@Test func anUndoNamesWhatStaysDeleted() throws {
    let bench = try undoBench()
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 0, "store", "init", "--store", "other.db")
    for store in ["store.db", "other.db"] { try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db") }
    try bench.write("a.bib", "@misc{a, title={A}, note={new}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    let id = try bench.shell("sqlite3 other.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
    try bench.tool(exit: 0, "sync")
    try bench.tool(exit: 0, "sync", "--store", "other.db")
    try bench.tool(exit: 0, "store", "delete", "--store", "other.db", id.filter { $0 != "\n" })
    for store in ["other.db", "store.db"] { try bench.tool("sync", "--store", store) }
    let undo = try bench.tool(exit: 3, "undo")
    #expect(undo.stderr.contains("warning: a: A (") && undo.stderr.contains("stays deleted: another device"), "\(undo)")
    #expect(undo.stderr.contains("'backup-tool undo' on that device brings it back"))
}

/// Two devices import one file before they know of each other.
@Test(arguments: [("b.db", true), ("a.db", true), ("a.db", false)])
func anUndo_leavesWhatAnotherDeviceHasBroughtToo(undoing: String, hasHeard: Bool) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}, doi={10.1/a}}\n@misc{b, title={B}, doi={10.1/b}}\n")
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    for store in ["a.db", "b.db"] {
        try bench.tool(exit: 0, "import", "a.bib", "--create", "--store", store)
        try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db")
    }
    let digest = try bench.digest("a.db")
    if hasHeard { try bench.tool(exit: 0, "sync", "--store", undoing) }
    let undo = try bench.tool(exit: hasHeard ? 3 : 0, "undo", "--store", undoing)
    #expect(undo.stderr.contains("another device has brought it, too") == hasHeard)
    for store in ["a.db", "b.db", "a.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
    for store in ["a.db", "b.db"] { #expect(try bench.digest(store) == digest, "\(store)") }
}

/// What an undo takes out waits for no hub any more.
@Test func aRecordThatWasTakenBack_isNotHeld() throws {
    let bench = try Workbench()
    try bench.write("big.bib", "@misc{big, title={Big}, note={\(String(repeating: "x", count: 1_100_000))}}\n")
    try bench.tool(exit: 3, "import", "--create", "big.bib")
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 3, "sync", "--hub", "hub.db")
    try bench.tool(exit: 0, "undo")
    try bench.tool(exit: 0, "store", "check")
    try bench.tool(exit: 0, "sync")
    try bench.tool(exit: 0, "undo", "--redo")
    try bench.tool(exit: 3, "sync")
}

@Test func aRedoThatHasNothingToDo_saysWhatWasLast() throws {
    let bench = try Workbench()
    for name in ["a", "b"] {
        try bench.write("\(name).bib", "@misc{\(name), title={On \(name)}}\n")
        try bench.tool(exit: 0, "import", "--create", "\(name).bib")
        let told = try bench.tool(exit: 1, "undo", "--redo").stderr
        #expect(told.contains("nothing to redo: the last change is the import of \(name).bib"), "\(told)")
    }
    try bench.tool(exit: 0, "undo")
    try bench.tool(exit: 0, "undo", "--redo")
    let told = try bench.tool(exit: 1, "undo", "--redo").stderr
    #expect(told.contains("nothing to redo: the last change is the redo of the import of b.bib"), "\(told)")
    try bench.tool(exit: 0, "undo")
    try bench.write("c.bib", "@misc{c, title={On c}}\n")
    try bench.tool(exit: 0, "import", "c.bib")
    #expect(try bench.tool(exit: 1, "undo", "--redo").stderr.contains("nothing to redo"))
}
