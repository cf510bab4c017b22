import TestSupport
import Testing

/// Copies of a bibliography say nothing that is newer than what it said.
@Suite struct CommandsCopiedFileTests {
    private static let entry = "@article{knuth84, title={Literate Programming}, author={Knuth, D.}, year={1984}}\n"

    @Test(arguments: [
        "cp refs.bib copy.bib", "cp before/library.bib copy.bib", "mkdir d; cp refs.bib d/copy.bib; mv d/copy.bib .",
    ])
    func aDeletedEntry_staysDeleted_whenACopyOfItsFileComes(copy: String) throws {
        let bench = try Workbench()
        try bench.write("refs.bib", Self.entry + "@misc{other, title={Other}, year={2000}}\n")
        try bench.tool(exit: 0, "import", "--create", "refs.bib")
        try bench.tool(exit: 0, "export", "-o", "before")
        let sql = "SELECT zone || '/' || local_id FROM record WHERE type = 'Publication' AND fields LIKE '%knuth84%'"
        let id = String(try bench.shell("sqlite3 store.db \"\(sql)\"").split(separator: "\n")[0])
        try bench.tool(exit: 0, "store", "delete", id)
        try bench.shell("sleep 1.1; \(copy); touch copy.bib")
        let told = try bench.tool(exit: 3, "import", "copy.bib")
        #expect(told.stderr.contains("'knuth84' was deleted in this store"), "\(told)")
        let living = "SELECT count(*) FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
        #expect(try bench.shell("sqlite3 store.db \"\(living)\"") == "1\n")
        // What the file says anew is newer.
        try bench.write("copy.bib", Self.entry.replacing("1984", with: "1985"))
        try bench.tool(exit: 0, "import", "copy.bib")
        #expect(try bench.shell("sqlite3 store.db \"\(living)\"") == "2\n")
    }
}
