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

    @Test(arguments: ["-", "x, y"], [["lib.bib"], ["--mirror", "lib.bib"]])
    func theDeletedOne_isTheOneThatStaysDeleted(keywords: String, arguments: [String]) throws {
        let bench = try bench()
        let id = try bench.shell(
            """
            sqlite3 store.db "SELECT local_id FROM record WHERE type = 'Publication' \
            AND ifnull(json_extract(fields, '$.keywords'), '-') = '\(keywords)'"
            """)
        try bench.tool(exit: 0, "store", "delete", String(id.dropLast()))
        let before = try entries(bench)
        for _ in 0..<3 {
            try bench.shell("touch lib.bib")
            try bench.tool(["import"] + arguments)
            #expect(try entries(bench) == before)
        }
    }
}
