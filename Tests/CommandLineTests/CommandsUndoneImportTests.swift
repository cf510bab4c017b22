import TestSupport
import Testing

/// A file was saved wrongly and imported, and that import was taken back: what the file had lost by then it has not lost.
@Suite struct CommandsUndoneImportTests {
    private func entry(_ key: String, _ title: String) -> String {
        "@article{\(key), title={\(title)}, author={Smith, Ann}, year=2001}\n"
    }

    private func titles(_ bench: Workbench) throws -> String {
        let living = "FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
        return try bench.shell("sqlite3 store.db \"SELECT group_concat(fields ->> 'title') \(living)\"")
    }

    @Test func whatWasDeleted_staysDeleted_whenTheFileIsAsItWas() throws {
        let bench = try Workbench()
        let good = entry("k", "Mice") + entry("z", "Herons")
        try bench.write("f.bib", good)
        try bench.tool(exit: 0, "import", "--create", "f.bib")
        let query = "SELECT local_id FROM record WHERE fields ->> 'title' = 'Mice'"
        let id = try bench.shell("sqlite3 store.db \"\(query)\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", String(id))
        let digest = try bench.digest()
        try bench.write("f.bib", entry("z", "Herons").replacing("year=2001", with: "year=2001, note={north}"))
        try bench.tool(exit: 0, "import", "f.bib")
        try bench.tool(exit: 0, "undo")
        #expect(try bench.digest() == digest)
        try bench.write("f.bib", good)
        try bench.tool("import", "f.bib")
        #expect(try titles(bench) == "Herons\n")
        try checkSound(bench.path("store.db"))
    }

    @Test func whatTheFileHolds_staysWhenAnotherFileIsMirrored() throws {
        let bench = try Workbench()
        let good = entry("k", "Mice") + entry("z", "Herons")
        try bench.write("f.bib", good)
        try bench.write("g.bib", entry("k", "Mice") + entry("w", "Walls"))
        try bench.tool(exit: 0, "import", "--create", "g.bib")
        try bench.tool(exit: 0, "import", "f.bib")
        try bench.shell("cp -p f.bib good")
        try bench.write("f.bib", entry("z", "Herons") + entry("c", "Clay"))
        try bench.tool(exit: 0, "import", "f.bib")
        try bench.tool(exit: 0, "undo")
        try bench.shell("cp -p good f.bib")
        try bench.write("g.bib", entry("w", "Walls"))
        let mirror = try bench.tool(exit: 3, "import", "--mirror", "g.bib")
        #expect(mirror.stderr.contains("in another file that was imported"), "\(mirror)")
        #expect(try titles(bench).contains("Mice"))
    }
}
