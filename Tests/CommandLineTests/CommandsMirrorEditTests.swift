import TestSupport
import Testing

/// What becomes of corrections in a file that is imported from its place again.
@Suite struct CommandsMirrorEditTests {
    private static func entry(_ key: String, _ more: String) -> String {
        "@article{\(key),title={A title},author={Name, Jo},year=2020,\(more)}\n"
    }

    /// Page, volume and number tell one work from the next in two files, and are corrected in one.
    @Test(
        arguments: [
            "pages={11--15},volume=3,number=1", "pages={1--5},volume=4,number=1", "pages={1--5},volume=3,number=2",
        ],
        [[], ["--mirror"]])
    func aCorrectedPlaceInAFileAtItsPlace_isAnEdit(corrected: String, flags: [String]) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry("k", "pages={1--5},volume=3,number=1"))
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.write("a.bib", Self.entry("k", corrected))
        let told = try bench.tool(["import", "a.bib"] + flags)
        #expect(told.status == 0 && told.stderr.hasPrefix("1 updated, "), "\(told.stdout)\(told.stderr)")
        let digest = try bench.digest()
        try bench.tool(["import", "a.bib"] + flags)
        #expect(try bench.digest() == digest)
        try bench.undoNamedBatch()
        try bench.tool(exit: 0, "import", "--overwrite", "a.bib")
        #expect(try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE type = 'Publication'\"") == "1\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aFileThatGotAnotherName_isTheSameLibrary() throws {
        let bench = try Workbench()
        let entries = (1...4).map { Self.entry("k\($0)", "doi={10.1000/\($0)}") }
        try bench.write("a.bib", "@string{j={Journal}}\n" + entries.joined())
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.write("new/refs.bib", "@string{j={Journal}}\n" + entries.dropLast().joined())
        try bench.shell("rm a.bib")
        try bench.tool(exit: 0, "import", "--mirror", "new/refs.bib")
        try bench.tool(exit: 0, "export", "-o", "out")
        let library = try bench.text("out/library.bib")
        #expect(library.matches(of: /@string/).count == 1 && !library.contains("k4"), "\(library)")
    }

    /// Each file brought one of two publications that were merged. The merge keeps the one of `b`.
    @Test(arguments: [
        ("a", "was merged with an entry that is not in the file any more; it stays"),
        ("b", "is not in the file any more, but in another file that was imported; it stays"),
    ])
    func anEntryThatWasMerged_staysForTheOtherFileAndIsNamed(folder: String, message: String) throws {
        let bench = try Workbench()
        try bench.write("a/refs.bib", "@article{k,title={Apples},author={Ann, A},year=2020}\n" + Self.entry("a", ""))
        try bench.write("b/refs.bib", "@article{k,title={Tombs},author={Zoe, Z},year=2019}\n" + Self.entry("b", ""))
        try bench.shell("touch -d '1 hour ago' a/refs.bib b/refs.bib")
        try bench.tool(exit: 0, "import", "--create", "a/refs.bib")
        try bench.tool(exit: 3, "import", "b/refs.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        try bench.write("\(folder)/refs.bib", Self.entry(folder, ""))
        let told = try bench.tool(exit: 3, "import", "--mirror", "\(folder)/refs.bib").stderr
        #expect(told.contains(message), "\(told)")
        try bench.tool(exit: 0, "import", "--mirror", "\(folder)/refs.bib")
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@article{k,"))
        let command = try #require(told.firstMatch(of: /'backup-tool (store delete [^']+)'/)).1
        try bench.shell("$T \(command)")
    }

    /// A file with two entries of one key that are strangers.
    private static let strangers = [1, 2].map { number in
        "@article{k, author={P\(number)}, title={Title \(number)}, year={199\(number)}, note\(number)={n\(number)}, "
            + "keywords={w\(number)}}\n"
    }

    private func decided(_ decision: String) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("refs.bib", Self.strangers.joined())
        try bench.shell("touch -d '1 hour ago' refs.bib")
        try bench.tool(exit: 3, "import", "--create", "refs.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", decision)
        return bench
    }

    private func library(of bench: Workbench) throws -> String {
        try bench.shell("rm -rf out; $T -q export -o out")
        return try bench.text("out/library.bib")
    }

    /// Whichever of two merged entries its file loses, the publication keeps what it has of both.
    @Test(arguments: [0, 1]) func aMergedPublication_staysWholeWhereItsFileLosesAnEntry(lost: Int) throws {
        let bench = try decided("merge")
        try bench.write("refs.bib", Self.strangers[1 - lost])
        try bench.shell("touch -d '50 minutes ago' refs.bib")
        let told = try bench.tool(exit: 3, "import", "--mirror", "refs.bib").stderr
        #expect(told.contains("it stays, with what both have brought") && !told.contains("left out"), "\(told)")
        let library = try library(of: bench)
        for word in ["note1={n1}", "note2={n2}", "w1", "w2"] { #expect(library.contains(word), "\(word): \(library)") }
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
    }

    /// What the surviving entry loses goes; what the other one brought stays.
    @Test(arguments: ["note2={nX}, ", ""])
    func aFieldOfAMergedPublication_goesWithTheEntryThatBroughtIt(field: String) throws {
        let bench = try decided("merge")
        try bench.write("refs.bib", Self.strangers[1].replacing("note2={n2}, ", with: field))
        try bench.tool(exit: 3, "import", "--mirror", "refs.bib")
        let library = try library(of: bench)
        #expect(!library.contains("note2={n2}") && library.contains("note1={n1}"), "\(library)")
        #expect(library.contains(field))
    }

    /// A decision is no difference to report each night.
    @Test(arguments: ["merge", "keep-existing", "keep-incoming"])
    func aDecision_isNotReportedAtEachMirror(decision: String) throws {
        let bench = try decided(decision)
        // A merge leaves nothing out; another decision is told once.
        try bench.tool(exit: decision == "merge" ? 0 : 3, "import", "--mirror", "refs.bib")
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
        try bench.tool(exit: 0, "import", "refs.bib")
    }

    /// A file goes on to hold an entry that the store passed over, because it was deleted there or merged into another one.
    @Test(arguments: ["delete", "merge"], ["import", "mirror"])
    func anEntryThatWasPassedOver_isStillHeldByItsFile(what: String, how: String) throws {
        let bench = try Workbench()
        let again = "import\(how == "mirror" ? " --mirror" : "")".split(separator: " ").map(String.init)
        let ours = "@article{k,title={Apples},author={Ann, A},year=2020}\n"
        let theirs = what == "delete" ? ours : "@article{k,title={Tombs},author={Zoe, Z},year=2019}\n"
        try bench.write("a/refs.bib", ours + Self.entry("a", ""))
        try bench.write("b/refs.bib", theirs)
        try bench.shell("touch -d '1 hour ago' a/refs.bib b/refs.bib")
        try bench.tool(exit: 0, "import", "--create", "a/refs.bib")
        try bench.tool("import", "b/refs.bib")
        if what == "delete" {
            let ids = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%Apples%'\"")
            try bench.tool(exit: 0, "store", "delete", "Library/\(ids.dropLast())")
            try bench.tool(again + ["b/refs.bib"])
            let batch = try bench.shell("sqlite3 store.db \"SELECT max(id) FROM batch WHERE kind = 'delete'\"")
            try bench.tool(exit: 0, "undo", "--batch", "\(batch.dropLast())")
        } else {
            try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
            try bench.tool(again + ["b/refs.bib"])
        }
        try bench.write("a/refs.bib", Self.entry("a", ""))
        let told = try bench.tool(exit: 3, "import", "--mirror", "a/refs.bib").stderr
        #expect(told.contains("not in the file any more"), "\(told)")
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@article{k,"))
        // What the other file loses is named, too, and what it has is not.
        let whole = try bench.tool("import", "--mirror", "b/refs.bib").stderr
        #expect(!whole.contains("not in the file any more"), "\(whole)")
    }

    /// Whichever of two merged entries the file loses.
    @Test(arguments: ["Apples", "Tombs"], [false, true])
    func ofTwoMergedEntriesOfOneFile_oneKeepsTheWork(lost: String, isReadAgain: Bool) throws {
        let bench = try Workbench()
        let entries = [
            "@article{k,title={Apples},author={Ann, A},year=2020}\n",
            "@article{k,title={Tombs},author={Zoe, Z},year=2019}\n",
        ]
        try bench.write("refs.bib", entries.joined() + Self.entry("a", ""))
        try bench.shell("touch -d '1 hour ago' refs.bib")
        try bench.tool(exit: 3, "import", "--create", "refs.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        if isReadAgain { try bench.tool("import", "refs.bib") }
        try bench.write("refs.bib", entries.filter { !$0.contains(lost) }.joined() + Self.entry("a", ""))
        let told = try bench.tool(exit: 3, "import", "--mirror", "refs.bib").stderr
        #expect(told.contains("was merged with an entry that is not in the file any more; it stays"), "\(told)")
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@article{k,"))
    }

    @Test func aMirrorOfAnOlderFile_namesOverwrite() throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry("k", "note={new}"))
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.write("a.bib", Self.entry("k", "note={old}"))
        try bench.shell("touch -d 2001-01-01 a.bib")
        let told = try bench.tool(exit: 3, "import", "--mirror", "a.bib").stderr
        #expect(told.contains("a.bib: 1 record of it is not newer than the store's"), "\(told)")
        let command = try #require(told.firstMatch(of: /'backup-tool (import --mirror --overwrite [^']+)'/)).1
        try bench.shell("$T \(command)")
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("note={old}"))
    }

    /// The tombstone of a work takes no id from a work that comes later.
    @Test func aWorkThatComesBackUnderAnotherKey_isNoWarning() throws {
        let bench = try Workbench()
        let report = "title={Annual Report},author={A, B},year=2000}\n"
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n@misc{k1,\(report)")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n@misc{k2,\(report)")
        let told = try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        #expect(!told.stderr.contains("warning"), "\(told.stderr)")
    }

    @Test func anEntryThatStays_isNamedWithTheCommandThatRemovesIt() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n@misc{k1,title={One}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.shell(
            "$T store set-local $(sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%k1%' AND type = 'Publication'\")"
        )
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "a.bib").stderr
        let command = try #require(told.firstMatch(of: /'backup-tool (store delete [^']+)' removes it/)).1
        try bench.shell("$T \(command)")
    }

    @Test func anEntryThatAnotherFileHolds_isNamedOnceWhenItStays() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n@misc{k1,title={One}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.shell("cp a.bib copy.bib; $T import copy.bib")
        try bench.write("a.bib", "@misc{k0,title={Zero}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "a.bib").stderr
        #expect(told.contains("k1: One: is not in the file any more, but in another file"), "\(told)")
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
    }

    /// It is in no file's import any more, and the second file holds it.
    @Test func anEntryThatMovesToAnotherFile_isNamedWhereItStaysDeleted_once() throws {
        let bench = try Workbench()
        let moved = Self.entry("moved", "doi={10.1000/9}")
        try bench.write("x.bib", Self.entry("x", "doi={10.1000/1}") + moved)
        try bench.write("y.bib", Self.entry("y", "doi={10.1000/2}"))
        try bench.tool(exit: 0, "import", "--create", "x.bib")
        try bench.tool(exit: 0, "import", "y.bib")
        try bench.write("x.bib", Self.entry("x", "doi={10.1000/1}"))
        try bench.write("y.bib", Self.entry("y", "doi={10.1000/2}") + moved)
        try bench.shell("touch -d '1 minute ago' y.bib")
        try bench.tool(exit: 0, "import", "--mirror", "x.bib")
        let told = try bench.tool(exit: 3, "import", "y.bib").stderr
        #expect(told.contains("'moved' was deleted in this store after the file was changed"), "\(told)")
        try bench.tool(exit: 0, "import", "y.bib")
        let advice = try #require(told.firstMatch(of: /'backup-tool (import --overwrite [^']*)'/)).1
        try bench.tool(advice.split(separator: " ").map(String.init))
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("{moved,"))
    }

    /// One file has corrected the key of an entry. Another file that brings the old key is not the same entry.
    @Test(arguments: ["", ", doi={10.1000/4}"])
    func anEntryThatAnotherFileHasCorrected_isNamedWhereItStaysDeleted_once(identifier: String) throws {
        let bench = try Workbench()
        func entry(_ key: String) -> String {
            "@article{\(key), author={Med, Ann}, title={On the history of foo}, year=2020\(identifier)}\n"
        }
        let other = "@misc{z, author={Zed, Z}, title={Other}, year=2001}\n"
        for (hours, key) in [(3, "k"), (2, "new")] {
            try bench.write("a.bib", entry(key) + other)
            try bench.shell("touch -d '\(hours) hours ago' a.bib")
            try bench.tool(exit: 0, "import", "--create", "--mirror", "a.bib")
        }
        try bench.write("b.bib", entry("k") + other)
        try bench.shell("touch -d '4 hours ago' b.bib")
        let told = try bench.tool(exit: 3, "import", "--mirror", "b.bib").stderr
        #expect(told.contains("left out: 'k'") && told.contains("import --mirror --overwrite b.bib"), "\(told)")
        for file in ["b.bib", "a.bib", "b.bib"] { try bench.tool(exit: 0, "import", "--mirror", file) }
        try bench.tool(exit: 0, "import", "--mirror", "--overwrite", "b.bib")
        for file in ["a.bib", "b.bib"] { try bench.tool(exit: 0, "import", "--mirror", file) }
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 3)
    }

    /// An entry goes from one file to another: it is alive, whichever file is saved and mirrored first.
    @Test(arguments: [["a", "b"], ["b", "a"]], [["a", "b"], ["b", "a"]])
    func anEntryThatMovesToAnotherFile_staysAlive(saved: [String], mirrored: [String]) throws {
        let bench = try Workbench()
        func entry(_ key: String) -> String { "@misc{\(key), title={On \(key)}, author={Name, Jo}, year=2001}\n" }
        func write(_ file: String, _ keys: [String], _ hours: Int) throws {
            try bench.write("\(file).bib", keys.map(entry).joined())
            try bench.shell("touch -d '\(hours) hours ago' \(file).bib")
        }
        try write("a", ["one", "two", "moves"], 5)
        try write("b", ["three", "four"], 5)
        for file in ["a", "b"] { try bench.tool(exit: 0, "import", "--create", "\(file).bib") }
        for (hours, file) in zip([3, 2], saved) {
            try write(file, file == "a" ? ["one", "two"] : ["three", "four", "moves"], hours)
        }
        // Where the new file comes first, the mirror of the old one says that the entry stays.
        for file in mirrored { try bench.tool("import", "--mirror", "\(file).bib") }
        for file in mirrored { try bench.tool(exit: 0, "import", "--mirror", "\(file).bib") }
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 5)
        // Now a person deletes it, and no file brings it back.
        try bench.shell(
            "$T store delete -q $(sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%On moves%'\")")
        try write("a", ["one", "two", "moves"], 1)
        for file in ["a", "b"] { try bench.tool("import", "--mirror", "\(file).bib") }
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 4)
    }
}
