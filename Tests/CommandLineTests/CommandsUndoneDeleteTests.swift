import TestSupport
import Testing

/// A restore repeats no delete that was undone after the backup was made.
@Suite struct CommandsUndoneDeleteTests {
    private func bench(hasHub: Bool) throws -> Workbench {
        let bench = try Workbench()
        try bench.write(
            "lib.bib",
            """
            @article{k, title={On pears}, author={Bee, Ann}, year=2004}
            @article{k, title={On plums}, author={Cee, Bob}, year=2005}

            """)
        try bench.tool(exit: 3, "import", "--create", "lib.bib")
        if hasHub { try bench.tool(exit: 0, "hub", "init", "hub.db") }
        return bench
    }

    private func sync(_ bench: Workbench, _ hasHub: Bool) throws {
        if hasHub { try bench.tool("sync", "--hub", "hub.db") }
    }

    private func titles(_ bench: Workbench) throws -> String {
        try bench.shell(
            """
            sqlite3 store.db "SELECT json_extract(fields, '$.title') FROM record \
            WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
            """)
    }

    private func id(_ bench: Workbench, of title: String) throws -> String {
        try "Library/"
            + bench.shell(
                """
                sqlite3 store.db "SELECT ifnull(name, local_id) FROM record WHERE type = 'Publication' \
                AND deleted_at IS NULL AND json_extract(fields, '$.title') = '\(title)'"
                """
            ).dropLast()
    }

    @Test(arguments: [false, true])
    func aRestore_doesNotRepeatADeleteThatWasUndone(hasHub: Bool) throws {
        let bench = try bench(hasHub: hasHub)
        try sync(bench, hasHub)
        let before = try bench.digest()
        try bench.tool(exit: 0, "store", "delete", try id(bench, of: "On pears"))
        try bench.tool(exit: 0, "export", "-o", "x.tar")
        try bench.tool(exit: 0, "undo")
        if !hasHub { #expect(try bench.digest() == before) }
        try sync(bench, hasHub)
        try bench.tool("restore", "x.tar")
        #expect(try titles(bench) == "On pears\nOn plums\n")
        // Another delete is one.
        try bench.tool(exit: 0, "store", "delete", try id(bench, of: "On pears"))
        try bench.tool(exit: 0, "export", "-o", "y.tar")
        try bench.tool("restore", "y.tar")
        try bench.tool("restore", "x.tar")
        #expect(try titles(bench) == "On plums\n")
    }

    /// The delete came with the backup, and whoever repeats the restore wants it.
    @Test func aRestoreThatWasUndone_doesTheSameAgain() throws {
        let bench = try bench(hasHub: false)
        try bench.tool(exit: 0, "export", "-o", "both.tar")
        try bench.tool(exit: 0, "store", "delete", try id(bench, of: "On pears"))
        try bench.tool(exit: 0, "export", "-o", "one.tar")
        try bench.tool("restore", "--create", "--store", "new.db", "both.tar")
        let restore = ["restore", "--store", "new.db", "one.tar"]
        try bench.tool(exit: 0, restore)
        let once = try bench.digest("new.db")
        try bench.tool(exit: 0, "undo", "--store", "new.db")
        #expect(try bench.digest("new.db") != once)
        try bench.tool(exit: 0, restore)
        #expect(try bench.digest("new.db") == once)
    }

    @Test(arguments: ["merge", "keep-existing"], [false, true])
    func aRestore_doesNotRepeatADecisionThatWasUndone(choice: String, hasHub: Bool) throws {
        let bench = try bench(hasHub: hasHub)
        try sync(bench, hasHub)
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice)
        let kept = try titles(bench)
        try bench.tool(exit: 0, "export", "-o", "x.tar")
        try bench.tool(exit: 0, "undo")
        try sync(bench, hasHub)
        try bench.tool(exit: 0, "store", "delete", try id(bench, of: String(kept.dropLast())))
        try sync(bench, hasHub)
        try bench.tool("restore", "x.tar")
        let other = kept == "On pears\n" ? "On plums\n" : "On pears\n"
        #expect(try titles(bench) == other)
    }
}
