import TestSupport
import Testing

/// Of two entries with one key, one may say all that the other says, and more. Which publication an entry is, then goes by
/// what it lacks, too.
@Suite struct CommandsNearestEntryTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write(
            "lib.bib",
            """
            @article{k, title={On pears}, author={Bee, Ann}, year=2004, journal={Fruit}}
            @article{k, title={On pears}, author={Bee, Ann}, year=2004, keywords={x, y}, journal={Fruit}}

            """)
        try bench.tool(exit: 3, "import", "--create", "lib.bib")
        return bench
    }

    private func entries(_ bench: Workbench) throws -> String {
        try bench.shell(
            """
            sqlite3 store.db "SELECT json_extract(fields, '$.citeKey') || ' ' || ifnull(json_extract(fields, \
            '$.keywords'), '-') FROM record WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
            """)
    }

    /// The local id of the publication that says this.
    private func id(_ bench: Workbench, _ field: String, _ value: String) throws -> String {
        let id = try bench.shell(
            """
            sqlite3 store.db "SELECT local_id FROM record WHERE type = 'Publication' \
            AND ifnull(json_extract(fields, '$.\(field)'), '-') = '\(value)'"
            """)
        return String(id.dropLast())
    }

    @Test(arguments: [["copy.bib"], ["lib.bib"], ["--mirror", "lib.bib"]], ["rename-existing", "rename-incoming"])
    func anEntry_isThePublicationThatItWas_whenOneGotAnotherKey(arguments: [String], choice: String) throws {
        let bench = try bench()
        try bench.shell("cp -p lib.bib copy.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice)
        let before = try entries(bench)
        for _ in 0..<3 {
            try bench.shell("touch \(arguments.last ?? "")")
            try bench.tool(["import"] + arguments)
            #expect(try entries(bench) == before)
        }
    }

    /// As it is where both are imported at once.
    @Test(arguments: [true, false])
    func anEntryThatComesBesideItsTwin_isAPublicationOfItsOwn(isFirst: Bool) throws {
        let bench = try Workbench()
        let known = "@article{k, title={On pears}, author={Bee, Ann}, year=2004}\n"
        let new = "@article{k, title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/b}, keywords={z}}\n"
        try bench.write("lib.bib", known)
        try bench.tool(exit: 0, "import", "--create", "lib.bib")
        try bench.write("lib.bib", isFirst ? new + known : known + new)
        for _ in 0..<2 {
            try bench.tool("import", "lib.bib")
            #expect(try entries(bench) == "k -\nk z\n")
        }
    }

    /// The edit of an entry whose publication was deleted is none of the other one's.
    @Test(arguments: [[], ["--mirror"]])
    func anEditOfTheDeletedOne_isNotWrittenOverTheOther(options: [String]) throws {
        let bench = try Workbench()
        func text(_ doi: String) -> String {
            "@article{k, title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/\(doi)}, keywords={one}}\n"
                + "@article{k, title={On pears}, author={Bee, Ann}, year=2004, keywords={two}}\n"
        }
        try bench.write("lib.bib", text("a"))
        try bench.tool(exit: 3, "import", "--create", "lib.bib")
        let other = try id(bench, "keywords", "two")
        try bench.tool(exit: 0, "store", "delete", try id(bench, "keywords", "one"))
        try bench.write("lib.bib", text("b"))
        for _ in 0..<2 {
            try bench.tool(["import"] + options + ["lib.bib"])
            #expect(try entries(bench) == "k one\nk two\n")
            #expect(try id(bench, "keywords", "two") == other)
        }
    }

    /// What somebody wrote into an entry goes with it under its corrected key, and not to the entry beside it.
    @Test func whatWasWrittenIntoACorrectedEntry_doesNotGoToTheOneBesideIt() throws {
        let bench = try Workbench()
        func text(_ key: String) -> String {
            "@article{\(key), title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/a}}\n"
                + "@book{k, title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/a}, volume=3}\n"
        }
        try bench.write("lib.bib", text("k"))
        try bench.tool(exit: 3, "import", "--create", "lib.bib")
        try bench.shell(
            """
            sqlite3 store.db "UPDATE record SET fields = json_set(fields, '$.keywords', 'mine'), row_hash = NULL \
            WHERE json_extract(fields, '$.entryType') = 'article'"
            """)
        try bench.write("lib.bib", text("kx"))
        try bench.tool("import", "--mirror", "lib.bib")
        #expect(try entries(bench) == "k -\nkx mine\n")
    }

    /// An entry beside it that was deleted is no later version of it.
    @Test func aCorrectedEntry_isNotHeldBackByTheDeletedOneBesideIt() throws {
        let bench = try Workbench()
        func text(_ key: String) -> String {
            "@book{\(key), title={On pears}, author={Bee, Ann}, year=2004, isbn={9780306406157}}\n"
                + "@book{k, title={On pears}, author={Bee, Ann}, year=2004, isbn={9780306406157}, volume=2}\n"
        }
        try bench.write("lib.bib", text("k"))
        try bench.tool("import", "--create", "lib.bib")
        try bench.tool(exit: 0, "store", "delete", try id(bench, "volume", "2"))
        try bench.write("lib.bib", text("kx"))
        for _ in 0..<2 {
            try bench.tool("import", "--mirror", "lib.bib")
            #expect(try entries(bench) == "kx -\n")
        }
    }

    @Test(arguments: ["-", "x, y"], [["lib.bib"], ["--mirror", "lib.bib"]])
    func theDeletedOne_isTheOneThatStaysDeleted(keywords: String, arguments: [String]) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "store", "delete", try id(bench, "keywords", keywords))
        let before = try entries(bench)
        for _ in 0..<3 {
            try bench.shell("touch lib.bib")
            try bench.tool(["import"] + arguments)
            #expect(try entries(bench) == before)
        }
    }
}
