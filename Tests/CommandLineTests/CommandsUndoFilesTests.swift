import TestSupport
import Testing

/// What an undo does with attachments.
@Suite struct CommandsUndoFilesTests {
    /// A store with a publication whose file is not here, and a backup and a folder that have the file.
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n")
        try bench.write("with/a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n")
        for folder in ["with", "pdf"] { try bench.write("\(folder)/a.pdf", "one\n") }
        try bench.tool(exit: 0, "import", "with/a.bib", "--create", "--store", "full.db")
        try bench.tool(exit: 0, "export", "-q", "-o", "b.zip", "--store", "full.db")
        return bench
    }

    private static let files = "find store.db.assets -type f -not -path '*/.blobs/*' 2>/dev/null || true"

    @Test func theList_saysWhichFilesAnUndoRemoved() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "import", "with/a.bib", "--create")
        #expect(try !bench.tool(exit: 0, "undo", "--list").stdout.contains("a.pdf"))
        try bench.tool(exit: 0, "undo")
        let list = try bench.tool(exit: 0, "undo", "--list").stdout
        #expect(list.contains("import of with/a.bib; removed Attachments/a.pdf\n"), "\(list)")
    }

    /// The link of a publication may be here before its file.
    @Test(arguments: [
        ["restore b.zip --only publications", "restore b.zip --only attachments"],
        ["import a.bib", "import a.bib --attachments pdf"],
        ["import a.bib", "restore b.zip --mode replace"],
        ["import a.bib", "import with/a.bib"],
    ])
    func aFileThatCameAfterItsLink_goesWithTheUndo(commands: [String]) throws {
        let bench = try bench()
        try bench.shell("$T store init; $T -q \(commands[0]) || [ $? = 3 ]")
        let (before, empty) = (try bench.digest(), try bench.shell(Self.files))
        try bench.shell("$T -q \(commands[1])")
        let (after, file) = (try bench.digest(), try bench.shell(Self.files))
        #expect(file == "store.db.assets/Attachments/a.pdf\n" && empty == "")
        for (words, digest, files) in [
            (["undo"], before, empty), (["undo", "--redo"], after, file), (["undo"], before, empty),
        ] {
            let told = try bench.tool(words: words, exit: 0)
            #expect(told.stderr.contains("1 attachment"), "\(told.stderr)")
            #expect(try bench.digest() == digest && bench.shell(Self.files) == files, "\(words)")
        }
        try bench.tool(exit: 0, "undo")
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM record, asset'") == "0\n")
    }

    /// Nor does it matter that the publication was changed since, where that was taken back.
    @Test func aFileThatCameAfterItsLink_goesAlsoWhereTheRecordWasChangedAndChangedBack() throws {
        let bench = try bench()
        try bench.shell("$T store init; $T -q restore b.zip --only publications || [ $? = 3 ]")
        let before = try bench.digest()
        try bench.shell(
            """
            $T -q restore b.zip --only attachments
            $T store set-local "$(sqlite3 store.db "SELECT local_id FROM record WHERE type = 'Publication'")"
            $T undo; $T undo --redo; $T undo
            """)
        try bench.tool(exit: 0, "undo")
        #expect(try bench.digest() == before && bench.shell(Self.files) == "")
    }

    /// Nor where the batch that brought the file has changed the publication, too, which may have come by a sync.
    @Test(arguments: ["restore b.zip --only publications", "sync --hub hub.db"])
    func aFileThatCameWithAChangeOfItsRecord_goesWithTheUndo(first: String) throws {
        let bench = try bench()
        try bench.write("with/a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}, note={n}}\n")
        try bench.shell("$T -q import with/a.bib --store full.db; $T -q export -o c.zip --store full.db")
        try bench.shell(
            """
            $T -q hub init hub.db; $T -q store init --store o.db
            $T -q restore b.zip --only publications --store o.db || [ $? = 3 ]
            $T -q sync --hub hub.db --store o.db; $T -q store init; $T -q \(first) || [ $? = 3 ]
            """)
        let before = try bench.digest()
        try bench.shell("$T -q restore c.zip")
        #expect(try bench.shell(Self.files) != "")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.digest() == before && bench.shell(Self.files) == "")
    }

    @Test func aFileThatARecordHasComeToLinkSince_staysAndIsNamed() throws {
        let bench = try bench()
        try bench.write("other/o.bib", "@misc{o, title={Other}, file={:a.pdf:PDF}}\n")
        try bench.write("other/a.pdf", "one\n")
        try bench.shell(
            """
            $T -q hub init hub.db; $T -q import with/a.bib --create; $T -q import other/o.bib --create --store other.db
            for store in store other store; do $T -q sync --store $store.db --hub hub.db; done
            """)
        for words in [["undo", "--dry-run"], ["undo"]] {
            let told = try bench.tool(words: words, exit: 3)
            #expect(told.stderr.contains("Attachments/a.pdf: stays: a record"), "\(told.stderr)")
        }
        #expect(try bench.shell(Self.files) == "store.db.assets/Attachments/a.pdf\n")
        #expect(try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE deleted_at IS NULL\"") != "0\n")
    }

    private static let file = "store.db.assets/Attachments/a.pdf"

    /// To put back what a disk has lost is a repair, and no undo takes that back.
    @Test(
        arguments: ["rm \(file)", "touch -r \(file) t; printf 'onE\\n' > \(file); touch -r t \(file)"],
        ["merge", "replace"])
    func aFileThatARestoreHasSetBack_stays(harm: String, mode: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "import", "with/a.bib", "--create")
        let digest = try bench.digest()
        try bench.shell(harm)
        try bench.tool(exit: 4, "store", "check")
        let restored = try bench.tool(exit: 0, "restore", "b.zip", "--mode", mode)
        #expect(restored.stderr.contains("1 attachment set back"), "\(restored.stderr)")
        for (words, says) in [
            (["undo", "--dry-run"], "1 attachment that it had set back stays"),
            (["undo"], "1 attachment that it had set back stays"), (["undo", "--redo"], "nothing changed"),
            (["undo"], "nothing changed"),
        ] {
            let told = try bench.tool(words: words, exit: 0)
            #expect(told.stderr.contains(says) && !told.stderr.contains("1 attachment."), "\(words): \(told.stderr)")
            #expect(!told.stderr.contains("back again") && !told.stderr.contains("brings it back"), "\(told.stderr)")
            #expect(try bench.digest() == digest && bench.text(Self.file) == "one\n")
            try bench.tool(exit: 0, "store", "check")
        }
        try bench.tool(exit: 0, "undo")
        #expect(try bench.shell(Self.files) == "")
    }

    /// What an app wrote there since is no damage.
    @Test func aFileThatAnAppHasChanged_comesBackWithTheUndo() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "import", "with/a.bib", "--create")
        try bench.shell("echo more >> \(Self.file)")
        try bench.tool(exit: 3, "restore", "b.zip", "--mode", "replace")
        #expect(try bench.text(Self.file) == "one\n")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.text(Self.file) == "one\nmore\n" && bench.shell(Self.files) == "\(Self.file)\n")
        let redone = try bench.tool(exit: 3, "undo", "--redo")
        #expect(try bench.text(Self.file) == "one\n" && redone.stderr.contains("that version is kept as"))
    }

    /// I791. Two records link the file that a replace puts back, and only one of them is in the backup.
    @Test func theFileOfTwoRecords_comesBackUnderItsName() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "import", "with/a.bib", "--create")
        try bench.write(Self.file, "two\n")
        try bench.tool(exit: 0, "store", "adopt")
        try bench.write("t/a.pdf", "two\n")
        try bench.write("t/b.bib", "@misc{b, title={B}, file={:a.pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "t/b.bib")
        let (digest, files) = (try bench.digest(), try bench.shell(Self.files))
        try bench.tool(exit: 0, "restore", "b.zip", "--mode", "replace")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.digest() == digest)
        #expect(try bench.shell(Self.files) == files && bench.text(Self.file) == "two\n")
    }
}

/// A backup with other bytes was restored where the file was lost or had rotted: what was there before is no state to go back to.
@Test(arguments: ["rm $F", "printf xxx > $F; touch -r keep $F"])
func whatARestoreHasPutInThePlaceOfALostFile_stays(harm: String) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={K}}\n")
    try bench.write("files/k.txt", "two")
    try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
    try bench.tool(exit: 0, "export", "-q", "-o", "two.tar")
    try bench.write("files/k.txt", "one")
    try bench.shell("rm -r store.db*; $T -q import --create a.bib --attachments files")
    let file = "store.db.assets/Attachments/k.txt"
    try bench.shell("F=\(file); touch -r $F keep; \(harm)")
    try bench.tool("restore", "--mode", "replace", "two.tar")
    #expect(try bench.text(file) == "two")
    try bench.tool(exit: 0, "store", "check")
    let told = try bench.tool(exit: 3, "undo")
    #expect(told.stderr.contains("Attachments/k.txt: stays: what lay here before"), "\(told.stderr)")
    #expect(try bench.text(file) == "two")
    try bench.tool(exit: 0, "store", "check")
}

/// Nobody has changed it in place, and there are no new bytes.
@Test func aFileThatIsLostBetweenUndoAndRedo_isNamedAsThat() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={K}}\n")
    try bench.write("files/k.txt", "one")
    try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
    try bench.shell("rm store.db.assets/Attachments/k.txt")
    try bench.tool("undo")
    let told = try bench.tool(exit: 3, "undo", "--redo")
    #expect(told.stderr.contains("Attachments/k.txt: did not come back"), "\(told.stderr)")
    #expect(!told.stderr.contains("changed in place"), "\(told.stderr)")
}

/// Somebody has put something else in the place of a file that an import had brought.
@Test(arguments: ["mkfifo $F", "ln -s /etc/passwd $F", "mkdir $F; echo mine > $F/x"])
func whatLiesInThePlaceOfAFile_isNamedByTheUndo(command: String) throws {
    let bench = try Workbench()
    try bench.write("files/k.txt", "one")
    try bench.tool("import", "--create", "--attachments", "files")
    let file = "store.db.assets/Attachments/k.txt"
    try bench.shell("F=\(file); rm $F; \(command)")
    let told = try bench.tool(exit: 3, "undo")
    #expect(told.stderr.contains("Attachments/k.txt: stays: "), "\(told.stderr)")
    try bench.shell("test -e \(file)")
}
