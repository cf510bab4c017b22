import TestSupport
import Testing

/// Volumes of one set, and one work under two keys: two devices make the same first id for them, and the hub gives it to one.
@Suite struct CommandsSharedIDTests {
    private static let volume = "title={Collected Works}, author={Bee, Bo}, year={2010}"

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        return bench
    }

    private func sync(_ bench: Workbench, _ devices: String...) throws {
        for device in devices { try bench.tool("sync", "--store", "\(device).db", "--hub", "hub.db") }
    }

    /// What is alive on a device, as "volume note", in the order of the volumes.
    private func notes(_ bench: Workbench, _ device: String) throws -> String {
        try bench.shell(
            """
            sqlite3 -separator ' ' \(device).db "SELECT json_extract(fields, '$.volume'), json_extract(fields, '$.note') \
            FROM record WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1, 2"
            """)
    }

    private func take(_ bench: Workbench, _ device: String, _ key: String, _ volume: Int, _ note: String) throws {
        try bench.write(
            "\(device)/lib.bib", "@book{\(key), \(Self.volume), volume={\(volume)}, note={\(note)}}\n")
        try bench.tool("import", "--create", "--store", "\(device).db", "\(device)/lib.bib")
    }

    @Test(arguments: [true, false], [true, false])
    func keepingAVolumeToOneself_orDeletingIt_leavesTheOtherVolumes(isSyncedFirst: Bool, isDeleted: Bool) throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try take(bench, "B", "k2", 1, "one")
        if isSyncedFirst { try sync(bench, "B") }
        let id = try bench.shell("sqlite3 A.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        try bench.tool(exit: 0, "store", "set-local", "--store", "A.db", "Library/\(id.dropLast())")
        try sync(bench, "A", "B", "A")
        if isDeleted {
            try bench.tool(exit: 0, "store", "delete", "--store", "A.db", "Library/local:\(id.dropLast())")
        } else {
            try bench.tool(exit: 0, "store", "enable-cloud", "--store", "A.db", "Library/local:\(id.dropLast())")
        }
        try sync(bench, "A", "B", "A", "B")
        for device in ["A", "B"] {
            #expect(try notes(bench, device) == (isDeleted ? "1 one\n" : "1 one\n2 two\n"), "\(device)")
        }
    }

    /// What the store notes of a publication that was linked to its file since.
    @Test(arguments: ["restore", "import"])
    func theDeleteOfAVolumeInABackup_leavesAnotherOneThatHasItsID(_ command: String) throws {
        let bench = try bench()
        try bench.write("a/one.pdf", "one")
        try bench.write("a/lib.bib", "@book{k, \(Self.volume), volume={1}, file={:one.pdf:PDF}}\n")
        try bench.write("b/lib.bib", "@book{k, \(Self.volume), volume={2}}\n")
        for (store, folder) in [("A.db", "a"), ("B.db", "b")] {
            try bench.tool(exit: 0, "import", "--create", "--store", store, "\(folder)/lib.bib")
        }
        let id = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", "--store", "B.db", "Library/\(id)")
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        try bench.tool(exit: 0, command, "--store", "A.db", "b.tar")
        #expect(try notes(bench, "A") == "1\n" || notes(bench, "A") == "1 \n")
    }

    /// The hub has the note before its volume, which was renamed since.
    @Test func theNotesOfTwoVolumesOfOneID_stayApart_whicheverComesFirst() throws {
        let bench = try bench()
        for (device, key) in [("A", "k1"), ("B", "k2")] {
            try bench.write("\(device)/notes.json", "[{\"citeKey\":\"\(key)\",\"note\":\"note of \(device)\"}]")
        }
        try take(bench, "A", "k1", 1, "one")
        try bench.tool(exit: 0, "import", "--store", "A.db", "A/lib.bib", "A/notes.json")
        try bench.write("A/other.bib", "@article{k1, title={Rivers}, author={Lee, C.}, year={2019}}\n")
        try bench.tool(exit: 3, "import", "--store", "A.db", "A/other.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-existing", "--store", "A.db")
        try take(bench, "B", "k2", 2, "two")
        try bench.tool(exit: 0, "import", "--store", "B.db", "B/lib.bib", "B/notes.json")
        for device in ["A", "B", "A", "B"] {
            try bench.tool(exit: 0, "sync", "--store", "\(device).db", "--hub", "hub.db")
        }
        for device in ["A", "B"] {
            #expect(try bench.notesOnVolumes(device) == "1 note of A\n2 note of B\n", "\(device)")
        }
    }

    @Test func theNoteOfAVolumeThatGetsAnotherID_comesOnce_howeverOftenItsBackupIsRestored() throws {
        let bench = try bench()
        try bench.write("A/notes.json", #"[{"citeKey":"k1","note":"on the first"}]"#)
        try take(bench, "A", "k1", 1, "one")
        try bench.tool(exit: 0, "import", "--store", "A.db", "A/lib.bib", "A/notes.json")
        try take(bench, "B", "k2", 2, "two")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try bench.tool("restore", "--store", "B.db", "a.tar")
        let digest = try bench.shell("$T store digest --store B.db")
        let again = try bench.tool(exit: 0, "restore", "--store", "B.db", "a.tar")
        #expect(again.stderr.contains("3 unchanged"), "\(again.stderr)")
        #expect(try bench.shell("$T store digest --store B.db") == digest)
    }

    /// The other device has another volume under that id, with or without a note.
    @Test(arguments: [["--only", "notes"], ["--match", "first"]], [true, false])
    func aNoteThatIsRestoredAlone_isOnNoOtherVolume(words: [String], hasNote: Bool) throws {
        let bench = try bench()
        try bench.write("A/notes.json", #"[{"citeKey":"k1","note":"on the first"}]"#)
        try bench.write("B/notes.json", #"[{"citeKey":"k2","note":"on the second"}]"#)
        try take(bench, "A", "k1", 1, "one")
        try take(bench, "B", "k2", 2, "two")
        try bench.tool(exit: 0, "import", "--store", "A.db", "A/lib.bib", "A/notes.json")
        if hasNote { try bench.tool(exit: 0, "import", "--store", "B.db", "B/lib.bib", "B/notes.json") }
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try bench.tool(["restore", "--store", "B.db", "a.tar"] + words)
        let others = hasNote ? "2 on the second\n" : ""
        #expect(try bench.notesOnVolumes("B") == others)
        try bench.tool("restore", "--store", "B.db", "a.tar")
        #expect(try bench.notesOnVolumes("B") == "1 on the first\n" + others)
    }

    @Test(arguments: [true, false]) func theNoteOfAVolumeFollowsIt_whereItsBackupReplacesAll(hasNote: Bool) throws {
        let bench = try bench()
        try bench.write("A/notes.json", #"[{"citeKey":"k1","note":"on the second"}]"#)
        try bench.write("B/notes.json", #"[{"citeKey":"k2","note":"on the third"}]"#)
        try take(bench, "A", "k1", 2, "two")
        if hasNote { try bench.tool(exit: 0, "import", "--store", "A.db", "A/lib.bib", "A/notes.json") }
        try sync(bench, "A")
        try take(bench, "B", "k2", 3, "three")
        try bench.tool(exit: 0, "import", "--store", "B.db", "B/lib.bib", "B/notes.json")
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--store", "A.db", "b.tar")
        #expect(try bench.notesOnVolumes("A") == "3 on the third\n")
        let digest = try bench.shell("$T store digest --store A.db")
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--store", "A.db", "b.tar")
        #expect(try bench.shell("$T store digest --store A.db") == digest)
        try bench.tool(exit: 0, "store", "init", "--store", "C.db")
        try sync(bench, "A", "C", "A")
        #expect(try bench.notesOnVolumes("C") == "3 on the third\n")
    }

    /// The hub gives the id that one side has to another work.
    @Test func aConflictThatWaits_waitsAfterTheSyncThatMovesOneOfItsWorks() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 3, "of A")
        try sync(bench, "A")
        try takeRivals(bench)
        #expect(try sidesOfConflicts(bench, "B") == "Collected Works 5\nTea \n")
        for device in ["B", "A", "B"] {
            try sync(bench, device)
            #expect(try sidesOfConflicts(bench, device) == "Collected Works 5\nTea \n", "\(device)")
        }
        try bench.tool(exit: 0, "store", "check", "--store", "B.db")
    }

    /// One side of the conflict gets another id, for the store's volume has that one.
    @Test(arguments: ["restore", "restore --mode replace --resurrect", "restore --match volume=5", "import"])
    func aConflictOfABackup_isThatOfItsWorks_whateverTheirIDsAreHere(command: String) throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try sync(bench, "A")
        try takeRivals(bench)
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b.tar")
        // The other side is here already where only one is asked for.
        if command.contains("--match") { try bench.tool(exit: 0, "import", "--store", "A.db", "B/more.bib") }
        let words = command.split(separator: " ").map(String.init) + ["--store", "A.db", "b.tar"]
        #expect(try bench.tool(words).status == 3)
        #expect(try sidesOfConflicts(bench, "A") == "Collected Works 5\nTea \n")
        let digest = try bench.shell("$T store digest --store A.db")
        try bench.tool(words)
        #expect(try bench.shell("$T store digest --store A.db") == digest)
        try bench.tool(exit: 0, "store", "check", "--store", "A.db")
    }

    /// The fifth volume and another work, which have one key on B.
    private func takeRivals(_ bench: Workbench) throws {
        try bench.write("B/more.bib", "@misc{k2, title={Tea}, author={Cee, Di}, year={1999}}\n")
        try take(bench, "B", "k2", 5, "five")
        try bench.tool(exit: 3, "import", "--store", "B.db", "B/more.bib")
    }

    private func sidesOfConflicts(_ bench: Workbench, _ device: String) throws -> String {
        let list = try bench.json(exit: 0, "conflicts", "list", "--store", "\(device).db")["conflicts"]?.array ?? []
        let ids = list.flatMap { [$0["existing"]?["id"]?.string, $0["incoming"]?["id"]?.string] }
        let names = ids.map { "'Library/\($0.map { String($0.dropFirst(8)) } ?? "")'" }.joined(separator: ", ")
        return try bench.shell(
            """
            sqlite3 -separator ' ' \(device).db "SELECT json_extract(fields, '$.title'), json_extract(fields, '$.volume') \
            FROM record WHERE 'Library/' || ifnull(name, local_id) IN (\(names)) ORDER BY 1, 2"
            """)
    }

    /// The notes of a device, as "volume text".
    /// Its tombstone in the cloud did not come with it.
    @Test func deletingACopyThatCameAlone_leavesTheOtherVolumes() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try take(bench, "B", "k2", 1, "one")
        let id = try bench.shell("sqlite3 A.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", "--store", "A.db", "Library/\(id)")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try bench.tool(exit: 0, "restore", "--create", "--store", "C.db", "--match", "Library/local:\(id)", "a.tar")
        try bench.tool(exit: 0, "store", "delete", "--store", "C.db", "Library/local:\(id)")
        try sync(bench, "B", "C", "B")
        #expect(try notes(bench, "B") == "1 one\n")
        #expect(try notes(bench, "C") == "1 one\n")
    }

    /// The hub has given the id of the copy to another volume since.
    @Test func theUndoOfSetLocal_leavesTheCopy_whereAnotherVolumeHasTheID() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try take(bench, "B", "k2", 1, "one")
        let id = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", "--store", "B.db", "Library/\(id)")
        try sync(bench, "A", "B")
        #expect(try notes(bench, "B") == "1 one\n2 two\n")
        try bench.tool("undo", "--store", "B.db")
        #expect(try notes(bench, "B") == "1 one\n2 two\n")
    }

    /// Two other volumes were merged, one of which had the id, too.
    @Test func anEditOfADeletedVolume_doesNotGoIntoAnotherOneThatTookInItsID() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try bench.tool(exit: 0, "store", "init", "--store", "B.db")
        try sync(bench, "A", "B")
        try take(bench, "C", "k2", 1, "one")
        try bench.write("C/other.bib", "@book{k2, \(Self.volume), volume={0}, note={zero}}\n")
        try bench.tool("import", "--store", "C.db", "C/other.bib")
        try bench.shell("sleep 1.1")
        try take(bench, "A", "k1", 2, "edited")
        let id = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", "--store", "B.db", "Library/\(id)")
        try sync(bench, "B")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge", "--store", "C.db")
        let merged = try notes(bench, "C")
        try sync(bench, "C", "A", "C", "A")
        #expect(try notes(bench, "A") == merged)
        #expect(try notes(bench, "C") == merged)
    }

    @Test func whatAReplacingRestoreBringsBack_isNotDeletedByTheNextSync() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try take(bench, "B", "k2", 1, "one")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try sync(bench, "B", "A")
        for _ in 0..<2 { try bench.tool("restore", "--store", "A.db", "--mode", "replace", "a.tar") }
        try sync(bench, "A", "B", "A")
        for device in ["A", "B"] { #expect(try notes(bench, device) == "2 two\n", "\(device)") }
    }

    /// A copy that is kept here has the id that another volume has in the backup.
    @Test func aReplacingRestore_leavesTheVolumeThatTheBackupHas_besideAKeptOne() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        try take(bench, "B", "k2", 1, "one")
        let id = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        try bench.tool(exit: 0, "store", "set-local", "--store", "B.db", "Library/\(id.dropLast())")
        try bench.tool("restore", "--store", "B.db", "a.tar")
        #expect(try notes(bench, "B") == "1 one\n2 two\n")
        for _ in 0..<2 {
            try bench.tool("restore", "--store", "B.db", "--mode", "replace", "a.tar")
            #expect(try notes(bench, "B") == "1 one\n2 two\n")
        }
    }

    /// The backup has the work under one key, which was deleted since; the store has it under another one.
    @Test func aReplacingRestore_takesNoWorkThatTheBackupHas() throws {
        let bench = try bench()
        try take(bench, "A", "k1", 1, "first key")
        try bench.tool(exit: 0, "export", "--store", "A.db", "-o", "a.tar")
        let id = try bench.shell("sqlite3 A.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        try bench.write("second.bib", "@book{k2, \(Self.volume), volume={1}, note={second key}}\n")
        try bench.tool(exit: 0, "import", "--store", "A.db", "second.bib")
        try bench.tool(exit: 0, "store", "delete", "--store", "A.db", "Library/\(id.dropLast())")
        #expect(try notes(bench, "A") == "1 second key\n")
        let told = try bench.tool(exit: 3, "restore", "--store", "A.db", "--mode", "replace", "a.tar").stderr
        #expect(told.contains("the backup's record of the same work stays deleted"), "\(told)")
        #expect(try notes(bench, "A") == "1 second key\n")
    }

    /// The file's memory of what it brought follows the work to the id that the hub gave it.
    @Test(arguments: ["touch", "edit", "mirror"])
    func aFileGoesOnToMeanItsOwnVolume(_ what: String) throws {
        let bench = try bench()
        try take(bench, "A", "k1", 2, "two")
        try take(bench, "B", "k1", 1, "one")
        try sync(bench, "A", "B", "A")
        try bench.tool(exit: 0, "conflicts", "resolve", "--store", "B.db", "1", "--with", "rename-existing")
        try sync(bench, "B", "A", "B")
        try bench.shell("sleep 1")
        let note = what == "touch" ? "one" : "edited"
        try bench.write("B/lib.bib", "@book{k1, \(Self.volume), volume={1}, note={\(note)}}\n")
        try bench.tool(["import", "--store", "B.db", "B/lib.bib"] + (what == "mirror" ? ["--mirror"] : []))
        try sync(bench, "B", "A")
        for device in ["A", "B"] { #expect(try notes(bench, device) == "1 \(note)\n2 two\n", "\(device)") }
    }

    /// The memory of what a file brought follows a copy that is kept on one device to another id, too.
    @Test func aFileWhoseEntryIsKeptHere_leavesTheListingOfAnotherDevice() throws {
        let bench = try bench()
        let work = "author={Ann, A}, title={Xylo}, year={2001}"
        let rest = "@misc{z, title={Zed}, author={Z, Z}, year={1999}}\n"
        try bench.write("A/lib.bib", "@article{ka, \(work), note={theirs}}\n")
        try bench.write("B/lib.bib", "@article{kb, \(work), note={mine}}\n" + rest)
        for device in ["A", "B"] {
            try bench.tool(exit: 0, "import", "--create", "--store", "\(device).db", "\(device)/lib.bib")
        }
        let id = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE fields LIKE '%Xylo%'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", "--store", "B.db", "Library/\(id)")
        try sync(bench, "A", "B", "A", "B")
        try bench.tool("import", "--store", "B.db", "B/lib.bib")
        try bench.write("B/lib.bib", rest)
        try bench.tool(exit: 3, "import", "--mirror", "--store", "B.db", "B/lib.bib")
        try sync(bench, "B", "A")
        let query = """
            SELECT json_extract(fields, '$.citeKey'), json_extract(fields, '$.note') FROM record \
            WHERE deleted_at IS NULL AND fields LIKE '%Xylo%' AND type = 'Publication' ORDER BY 1
            """
        #expect(try bench.shell("sqlite3 -separator ' ' A.db \"\(query)\"") == "ka theirs\n")
        #expect(try bench.shell("sqlite3 -separator ' ' B.db \"\(query)\"") == "ka theirs\nkb mine\n")
    }

    /// What an undo took out, the file has not brought: the next work of that id is another's.
    @Test(arguments: ["import", "mirror", "redo"])
    func aFileWhoseImportWasTakenBack_leavesTheVolumeThatGotItsID(_ what: String) throws {
        let bench = try bench()
        try take(bench, "B", "k1", 1, "one")
        try take(bench, "A", "k1", 2, "two")
        try bench.tool(exit: 0, "undo", "--store", "A.db")
        if what == "redo" { try bench.tool(exit: 0, "undo", "--redo", "--store", "A.db") }
        if what != "redo" { try sync(bench, "B", "A") }
        try bench.shell("sleep 1")
        let text = "@book{k1, \(Self.volume), volume={2}, note={edited}}\n@misc{z, title={Zed}}\n"
        try bench.write("A/lib.bib", what == "redo" ? text.replacing("volume={2}", with: "volume={3}") : text)
        let told = try bench.tool(["import", "--store", "A.db", "A/lib.bib"] + (what == "mirror" ? ["--mirror"] : []))
        // The same file's entry was corrected; the other one is a stranger.
        if what == "redo" { return #expect(try notes(bench, "A") == " \n3 edited\n") }
        #expect(told.status == 3)
        try sync(bench, "A", "B")
        for device in ["A", "B"] { #expect(try notes(bench, device) == " \n1 one\n2 edited\n", "\(device)") }
    }

    @Test func aSurvivorThatIsKeptHere_keepsWhatAnotherDeviceMergedIntoIt() throws {
        let bench = try bench()
        try bench.write("a.bib", "@article{k, author={Ann, A}, title={Xylo}, year={2001}}\n")
        try bench.shell("sleep 0.1")
        try bench.write("b.bib", "@article{k, author={Bob, B}, title={Yak}, year={2002}}\n")
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "a.bib")
        try bench.tool(exit: 0, "import", "--create", "--store", "B.db", "b.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "C.db")
        try sync(bench, "A", "B", "C", "A", "B", "C")
        let query = "FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
        // It was written last.
        let survivor = try bench.shell("sqlite3 C.db \"SELECT local_id \(query) AND fields LIKE '%Yak%'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", "--store", "C.db", "Library/\(survivor)")
        try bench.tool(exit: 0, "conflicts", "resolve", "--store", "A.db", "1", "--with", "merge")
        try sync(bench, "A")
        let told = try bench.tool(exit: 3, "sync", "--store", "C.db", "--hub", "hub.db").stderr
        #expect(told.contains("stays on this device: another device merged it into"), "\(told)")
        let titles = "SELECT json_extract(fields, '$.title') \(query) ORDER BY 1"
        #expect(try bench.shell("sqlite3 C.db \"\(titles)\"") == "Xylo\nYak\n")
    }

    @Test func anUndo_putsNoFileOverOneThatCameLater() throws {
        let bench = try bench()
        let two = "doi={10.1000/two}, title={Two}, author={B}, year={2002}"
        try bench.write("b/b.bib", "@article{two, \(two)}\n")
        try bench.write("a/a.bib", "@article{one, doi={10.1000/one}, title={One}, author={A}, file={:q.pdf:PDF}}\n")
        try bench.write("a/q.pdf", "PDF of One")
        try bench.write("c/c.bib", "@article{two, \(two), file={:q.pdf:PDF}}\n")
        try bench.write("c/q.pdf", "PDF of Two")
        try bench.tool(exit: 0, "store", "init", "--store", "B.db")
        try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "empty")
        try bench.tool(exit: 0, "import", "--store", "B.db", "b/b.bib")
        try sync(bench, "B")
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "a/a.bib")
        try bench.tool(exit: 0, "restore", "--store", "A.db", "--mode", "replace", "empty")
        try bench.tool(exit: 0, "import", "--store", "A.db", "c/c.bib")
        try sync(bench, "A")
        try bench.tool(exit: 3, "undo", "--store", "A.db")
        let told = try bench.tool(exit: 3, "undo", "--store", "A.db").stderr
        #expect(told.contains("Attachments/q.pdf: is another file by now, which stays"), "\(told)")
        try sync(bench, "A", "B")
        for device in ["A", "B"] {
            #expect(try bench.text("\(device).db.assets/Attachments/q.pdf") == "PDF of Two", "\(device)")
            #expect(try bench.text("\(device).db.assets/Attachments/q_2.pdf") == "PDF of One", "\(device)")
            try bench.tool(exit: 0, "store", "check", "--store", "\(device).db")
        }
        try bench.tool("undo", "--redo", "--store", "A.db")
        #expect(try bench.text("A.db.assets/Attachments/q.pdf") == "PDF of Two")
        try bench.tool(exit: 0, "store", "check", "--store", "A.db")
    }
}
