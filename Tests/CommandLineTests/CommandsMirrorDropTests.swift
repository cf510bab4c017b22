import BackupKit
import TestSupport
import Testing

/// What a mirrored file drops after its entry was corrected, or after somebody has changed the publication elsewhere.
@Suite struct CommandsMirrorDropTests {
    private static let entry =
        "@article{k, author={Ann One}, title={A study of rivers}, year={1991}, doi={10.1/z}, abstract={s}, "
        + "keywords={v, w}, note={n}}\n"
    private static let corrections = [
        ("{k,", "{k2,"), ("study of rivers", "study of the rivers"), ("1991", "1992"), ("10.1/z", "10.1/zz"),
    ]

    private func publications(_ bench: Workbench) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT fields FROM record WHERE type = 'Publication' AND deleted_at IS NULL\"")
    }

    @Test(arguments: corrections.indices, [false, true])
    func whatIsDroppedAfterACorrection_goes(correction: Int, isImportedFirst: Bool) throws {
        let bench = try Workbench()
        try bench.write("l.bib", Self.entry)
        try bench.tool(exit: 0, "import", "--create", "--mirror", "l.bib")
        var text = Self.entry.replacing(Self.corrections[correction].0, with: Self.corrections[correction].1)
        try bench.write("l.bib", text)
        if isImportedFirst { try bench.tool("import", "l.bib") }
        try bench.tool(exit: 0, "import", "--mirror", "l.bib")
        for dropped in [", note={n}", "v, ", ", keywords={w}", "abstract={s}"] {
            text = text.replacing(dropped, with: "")
            try bench.write("l.bib", text)
            let told = try bench.tool(exit: 0, "import", "--mirror", "l.bib")
            #expect(told.stderr.contains("1 updated"), "\(told.stderr)")
            let rest = try publications(bench)
            #expect(!rest.contains(dropped) && rest.matches(of: /Ann One/).count == 2, "\(rest)")
        }
        #expect(try !publications(bench).contains("\"keywords\""))
        try bench.tool(exit: 0, "store", "check")
    }

    /// Another device imports the same file, and hears of the correction by a sync.
    @Test func whatIsDroppedAfterACorrectionOfAnotherDevice_goes() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        func both(_ text: String) throws -> [Int32] {
            try bench.write("l.bib", text)
            return try ["store.db", "other.db"].map { store in
                try bench.tool("sync", "--hub", "hub.db", "--store", store)
                let told = try bench.tool("import", "--create", "--store", store, "--mirror", "l.bib")
                try bench.tool("sync", "--hub", "hub.db", "--store", store)
                return told.status
            }
        }
        try bench.tool(exit: 0, "store", "init")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        let corrected = Self.entry.replacing("{k,", with: "{k2,")
        #expect(try both(Self.entry) == [0, 0])
        #expect(try both(corrected) == [0, 0])
        try bench.write("l.bib", corrected.replacing(", note={n}", with: ""))
        try bench.tool(exit: 0, "import", "--store", "other.db", "--mirror", "l.bib")
        let rest = try bench.shell("sqlite3 other.db \"SELECT fields FROM record WHERE deleted_at IS NULL\"")
        #expect(!rest.contains("note={n}") && rest.contains("k2"), "\(rest)")
    }

    /// Two works of one key; a decision has given the first one another key.
    private func renamed() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a/l.bib", Self.entry + "@misc{a, title={More of a}}\n")
        try bench.write("b/l.bib", "@article{k, author={Bob Two}, title={Mice and men}, year={1999}}\n")
        try bench.tool(exit: 3, "import", "--create", "a/l.bib", "b/l.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-existing")
        #expect(try publications(bench).contains("@article{ka,"))
        return bench
    }

    @Test(arguments: corrections.indices)
    func aCorrectionOfARenamedPublication_isTaken(correction: Int) throws {
        let bench = try renamed()
        let (before, after) = Self.corrections[correction]
        var text = Self.entry.replacing(before, with: after) + "@misc{a, title={More of a}}\n"
        try bench.write("a/l.bib", text)
        let told = try bench.tool("import", "--mirror", "a/l.bib")
        #expect(told.status == 0, "\(told.stderr)")
        var stored = try publications(bench)
        #expect(stored.matches(of: /"Ann One"/).count == 1 && stored.contains(after), "\(stored)")
        #expect(stored.contains(correction == 0 ? "\"k2\"" : "\"ka\""), "\(stored)")
        for more in [["--mirror"], []] {
            let again = try bench.tool(["import", "a/l.bib"] + more)
            #expect(again.status == 0, "\(again.stderr)")
        }
        #expect(try publications(bench) == stored)
        text = text.replacing(", note={n}", with: "")
        try bench.write("a/l.bib", text)
        try bench.tool(exit: 0, "import", "--mirror", "a/l.bib")
        stored = try publications(bench)
        #expect(!stored.contains("note={n}"), "\(stored)")
        try bench.tool(exit: 0, "store", "check")
    }

    /// The new key is no reason to keep what the file has dropped.
    @Test func aRenamedPublication_goesWithItsEntry() throws {
        let bench = try renamed()
        try bench.write("a/l.bib", "@misc{a, title={More of a}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "a/l.bib")
        #expect(try !publications(bench).contains("Ann One"))
    }

    /// What another device has written into an entry that the file has lost: named in one import, and not again.
    @Test func whatWasChangedElsewhere_isNamedOnceWhereItStays() throws {
        let bench = try Workbench()
        try bench.write("l.bib", Self.entry + "@misc{a, title={More of a}}\n")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "l.bib")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "other.db")
        try bench.write("other/l.bib", Self.entry.replacing("abstract={s}", with: "abstract={written elsewhere}"))
        try bench.shell("touch -d '+1 second' other/l.bib; sleep 1")
        try bench.tool("import", "--store", "other.db", "other/l.bib")
        try bench.tool(exit: 0, "sync", "--store", "other.db")
        try bench.tool(exit: 0, "sync")
        try bench.write("l.bib", "@misc{a, title={More of a}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "l.bib")
        #expect(told.stderr.contains("was changed elsewhere since; it stays"), "\(told.stderr)")
        #expect(!told.stderr.contains("--mirror removes"), "\(told.stderr)")
        try bench.tool(exit: 0, "import", "--mirror", "l.bib")
        #expect(try publications(bench).contains("written elsewhere"))
    }
}
