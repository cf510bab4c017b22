import TestSupport
import Testing

/// A file that was changed and has an old time, as a copy from another disk has, says something new all the same.
@Suite struct CommandsPartsLeftOutTests {
    @Test(arguments: ["", "--mirror"])
    func newMacrosAndGroupsOfAnOldFile_areNamed(option: String) throws {
        let bench = try Workbench()
        func file(_ macro: String, _ group: String) -> String {
            """
            @string{acm="\(macro)"}
            @comment{jabref-meta: grouping:
            0 AllEntriesGroup:;\(group)
            }
            @misc{a, title={Alpha}, author={A, B}, year=2000}

            """
        }
        try bench.write("r.bib", file("ACM", ""))
        try bench.tool(exit: 0, "import", "--create", "r.bib")
        try bench.write("r.bib", file("ACM Press", "\n1 StaticGroup:NEW;"))
        try bench.shell("touch -d 2020-01-01 r.bib")
        let words = ["import"] + (option.isEmpty ? [] : [option]) + ["r.bib"]
        let told = try bench.tool(exit: 3, words).stderr
        let part = "r.bib: 2 new macros, groups or comments were left out: the store has newer ones"
        #expect(told.contains(part), "\(told)")
        // They are named once.
        try bench.tool(exit: 0, words)
        try bench.tool(exit: 0, "import", "--overwrite", "r.bib")
        try bench.tool(exit: 0, "export", "-o", "x")
        let library = try bench.shell("cat x/library.bib")
        #expect(library.contains("ACM Press") && library.contains("NEW"), "\(library)")
    }

    /// The entry says what it said. A macro means something else.
    @Test(arguments: [true, false], ["", "--mirror"])
    func aDeletedEntry_doesNotComeBackWithAMacro(isOld: Bool, option: String) throws {
        let bench = try Workbench()
        func file(_ macro: String) -> String {
            "@string{acm=\"\(macro)\"}\n@misc{a, title={Alpha}, journal=acm, author={A, B}, year=2000}\n@misc{b, title={Beta}}\n"
        }
        try bench.write("r.bib", file("ACM"))
        try bench.tool(exit: 0, "import", "--create", "r.bib")
        let query = "SELECT local_id FROM record WHERE fields ->> 'title' = 'Alpha'"
        let id = try bench.shell("sqlite3 store.db \"\(query)\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", String(id))
        try bench.write("r.bib", file("ACM Press"))
        if isOld { try bench.shell("touch -d 2020-01-01 r.bib") }
        try bench.tool(["import"] + (option.isEmpty ? [] : [option]) + ["r.bib"])
        let living = "SELECT count(*) FROM record WHERE fields ->> 'title' = 'Alpha' AND deleted_at IS NULL"
        #expect(try bench.shell("sqlite3 store.db \"\(living)\"") == "0\n")
    }
}
