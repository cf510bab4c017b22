import BackupKit
import TestSupport
import Testing

/// Backups and archives that other programs made, cut off or changed.
@Suite struct CommandsForeignArchiveTests {
    private func benchWithNotes() throws -> Workbench {
        let bench = try Workbench()
        for (name, title) in [("A", "apples"), ("Z", "zebras")] {
            try bench.write("\(name)/library.bib", "@misc{k1, title={On \(title)}}\n")
            try bench.write("\(name)/notes.json", #"[{"citeKey":"k1","note":"about \#(title)"}]"#)
            try bench.tool("import", "--store", "s.db", "--create", name)
        }
        return bench
    }

    @Test(arguments: ["merge", "keep-both"])
    func notesOfOneKeyInABackupForImbib_allComeBack(choice: String) throws {
        let bench = try benchWithNotes()
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice, "--store", "s.db")
        try bench.tool("export", "--store", "s.db", "-o", "out", "--format", "imbib")
        try bench.tool("restore", "out", "--store", "t.db", "--create")
        let query = "SELECT fields ->> 'note' FROM record WHERE type = 'Note' ORDER BY 1"
        #expect(try bench.shell("sqlite3 t.db \"\(query)\"") == "about apples\nabout zebras\n")
        let again = try JSON(
            parsing: bench.tool("restore", "out", "--store", "t.db", "--json").stdoutLines.last ?? "null")
        #expect(again["added"]?.integer == 0 && again["updated"]?.integer == 0, "\(again)")
    }

    /// The manifest is at the end of an archive.
    @Test(arguments: [[], ["--match", "citeKey=k2"]])
    func aFileThatACutBackupLost_isNamed(words: [String]) throws {
        let bench = try Workbench()
        for key in ["k1", "k2"] { try bench.write("l/\(key).pdf", "%PDF \(key)") }
        try bench.write("l/a.bib", "@misc{k1, title={One}, file={k1.pdf}}\n@misc{k2, title={Two}, file={k2.pdf}}\n")
        try bench.tool(exit: 0, "import", "--store", "s.db", "--create", "l/a.bib")
        try bench.tool(exit: 0, "export", "--store", "s.db", "-o", "x.tar")
        let find = "import tarfile; print([m.offset for m in tarfile.open('x.tar') if m.name.endswith('k2.pdf')][0])"
        try bench.shell("head -c $(python3 -c \"\(find)\") x.tar > cut.tar")
        for isDry in [true, false] {
            let restored = try bench.tool(
                exit: 3,
                ["restore", "cut.tar", "--store", "r.db", "--create", "--allow-damage", "--verbose"] + words
                    + (isDry ? ["--dry-run"] : []))
            #expect(restored.stderr.contains("Attachments/k2.pdf: is named by k2: Two, but is not in the backup"))
            #expect(!restored.stderr.contains("k1.pdf: is named by"), "\(restored.stderr)")
            // What a restore does not take needs nobody to vouch for it.
            let said = restored.stderr
            #expect(said.contains("k1.pdf: comes from a damaged backup") == words.isEmpty, "\(said)")
        }
    }

    @Test func anArchiveThatCannotBeRead_costsOnlyItself_andIsNamed() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={One}}\n")
        try bench.write("junk.zip", String(repeating: "no zip ", count: 99))
        let make = """
            import zipfile
            z = zipfile.ZipFile('bz.zip', 'w', zipfile.ZIP_BZIP2); z.writestr('library.bib', '@misc{b, title={Two}}'); z.close()
            z = zipfile.ZipFile('up.zip', 'w'); z.writestr('../x.bib', 'y'); z.close()
            """
        try bench.write("make.py", make)
        try bench.shell("python3 make.py; mkdir h; echo x > h/library.bib; ln h/library.bib h/b; tar -cf hard.tar h")
        let archives = ["bz.zip", "up.zip", "junk.zip", "hard.tar"]
        let said = try bench.tool(exit: 3, ["import", "--store", "s.db", "--create", "a.bib"] + archives).stderr
        for archive in archives { #expect(said.contains("damage: \(archive): "), "\(archive): \(said)") }
        #expect(said.contains("bz.zip: library.bib is compressed by method 12"), "\(said)")
        #expect(said.contains("nothing of this backup was imported") && said.contains("unpack it"), "\(said)")
        let count = try bench.shell("sqlite3 s.db \"SELECT count(*) FROM record WHERE type = 'Publication'\"")
        #expect(count == "1\n", "\(said)")
    }

    @Test func whatWindowsAndMacOSPutIntoFolders_isNoDamage() throws {
        let bench = try benchWithNotes()
        try bench.tool("export", "--store", "s.db", "-o", "own")
        for name in ["Thumbs.db", "desktop.ini", "._notes.json"] { try bench.write("own/\(name)", "clutter") }
        try bench.tool(exit: 0, "verify", "own")
        try bench.tool("export", "--store", "s.db", "-o", "out", "--format", "imbib")
        try bench.write("out/Attachments/._a.pdf", "clutter")
        let said = try bench.tool("verify", "out").stderr
        #expect(!said.contains("attachments instead of"), "\(said)")
    }

    @Test func settingsOfABackupThatCannotBeRead_areNamed() throws {
        let bench = try benchWithNotes()
        try bench.tool("export", "--store", "s.db", "-o", "own")
        try bench.shell("mkdir plain; cp own/library.bib plain")
        try bench.write("plain/settings.json", #"{"theme":"dark","a":1,"a":2}"#)
        let said = try bench.tool(exit: 3, "restore", "plain", "--store", "t.db", "--create").stderr
        #expect(said.contains("settings.json: was not restored"), "\(said)")
    }

    @Test func aComparisonOfBackups_namesNoConflictsOfAStore() throws {
        let bench = try benchWithNotes()
        for name in ["one.zip", "two.zip"] { try bench.tool("export", "--store", "s.db", "-o", name) }
        let compared = try bench.tool(exit: 0, "diff", "one.zip", "two.zip")
        #expect(!compared.stderr.contains("conflicts"), "\(compared.stderr)")
    }

    @Test func anExportWhereAFolderOrAFileIsInTheWay_saysSo() throws {
        let bench = try benchWithNotes()
        try bench.tool("export", "--store", "s.db", "-o", "own")
        let folder = try bench.tool("export", "--store", "s.db", "-o", "own", "--format", "zip", "--force").stderr
        #expect(folder.contains("own: is a folder") && folder.contains("remove it"), "\(folder)")
        try bench.write("f", "")
        let file = try bench.tool("export", "--store", "s.db", "-o", "f/x").stderr
        #expect(file.contains("f: is not a folder") && !file.contains("tmp-"), "\(file)")
    }

    @Test func notesThatAreNoArray_areCalledThat() throws {
        let bench = try Workbench()
        try bench.write("notes.json", #"{"k1": "a note"}"#)
        let said = try bench.tool(exit: 3, "import", "--store", "s.db", "--create", "notes.json").stderr
        #expect(said.contains("notes.json: is not an array of notes"), "\(said)")
    }

    /// An import of the folder takes them, or names them.
    @Test func whatAnArchiveWithoutAManifestHoldsBesides_isNamed() throws {
        let bench = try Workbench()
        for (name, text) in [
            ("library.bib", "@misc{a, title={A}}\n"), ("more.bib", "@misc{b, title={B}}\n"), ("paper.pdf", "%PDF"),
        ] { try bench.write("lib/\(name)", text) }
        try bench.shell("tar cf lib.tar -C lib .")
        for line in ["import --create lib.tar --store a.db", "restore lib --create --store b.db"] {
            let said = try bench.tool(exit: 3, line.split(separator: " ").map(String.init)).stderr
            #expect(said.contains("more.bib, paper.pdf were left out") && said.contains("import the folder"), "\(said)")
        }
    }

    @Test func aTimeOfANoteThatIsNone_isNamed_andTheNoteKept() throws {
        let bench = try Workbench()
        try bench.write("notes.json", #"[{"citeKey":"a","note":"x","createdAt":null,"modifiedAt":"yesterday"}]"#)
        let said = try bench.tool(exit: 3, "import", "--store", "s.db", "--create", "notes.json")
        #expect(said.stderr.contains("the note of a: 'modifiedAt' is no time"), "\(said.stderr)")
        #expect(said.stderr.contains("1 added"), "\(said.stderr)")
    }

    /// A difference is told once.
    @Test func anEditedNoteOfAnExport_isReportedOnce() throws {
        let bench = try Workbench()
        try bench.write("notes.json", #"[{"citeKey":"a","note":"old words"}]"#)
        try bench.tool("import", "--create", "notes.json")
        try bench.tool(exit: 0, "export", "-o", "x")
        try bench.shell("sed -i 's/old words/new words/' x/notes.json")
        let said = try bench.tool(exit: 3, "import", "x/notes.json").stderr
        #expect(said.contains("has the same time") && !said.contains("an older value"), "\(said)")
    }

    @Test func citeKeysThatOnlyLookTheSame_areNoConflictThatNobodySees() throws {
        let bench = try Workbench()
        try bench.write(
            "refs.bib",
            "@misc{mu\u{308}ller, title={One}, author={A}, year=2000}\n@misc{m\u{fc}ller, title={Two}, author={B}, year=2001}\n"
        )
        let said = try bench.tool(exit: 3, "import", "--create", "refs.bib").stderr
        #expect(said.contains("look the same") && !said.contains("conflicts list"), "\(said)")
        #expect(try bench.tool(exit: 0, "conflicts", "list").stderr.contains("No conflicts"))
        try bench.tool(exit: 0, "export", "-o", "x")
        #expect(try !bench.text("x/records.jsonl").contains("\"Conflict\""))
    }
}
