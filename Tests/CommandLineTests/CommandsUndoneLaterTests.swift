import TestSupport
import Testing

/// What an undo or a redo takes away from what others have heard of comes back by no file, backup, hub or device from before.
@Suite struct CommandsUndoneLaterTests {
    private static let entry = "@article{k, title={On pears}, author={Bee, Ann}, year=2004, note={one}}\n"

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("x/lib.bib", Self.entry)
        try bench.shell("touch -d '-1 hour' x/lib.bib")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "x/lib.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        try sync(bench, "a", "b")
        return bench
    }

    private func sync(_ bench: Workbench, _ names: String..., hub: String = "hub.db") throws {
        for name in names { try bench.tool("sync", "--store", "\(name).db", "--hub", hub) }
    }

    /// The notes of what is alive on both devices.
    private func notes(_ bench: Workbench) throws -> [String] {
        try ["a", "b"].map { name in
            try bench.shell(
                """
                sqlite3 \(name).db "SELECT json_extract(fields, '$.note') FROM record \
                WHERE type = 'Publication' AND deleted_at IS NULL"
                """)
        }
    }

    enum Way: String, CaseIterable, Sendable { case overwrite, resurrect, redo }
    enum End: String, CaseIterable, Sendable { case restore, newHub, olderEdit, oldFile }

    @Test(arguments: Way.allCases, End.allCases)
    func whatCameBackAndWasTakenBack_staysDeleted(way: Way, end: End) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "first.tar")
        let id = try bench.shell("sqlite3 a.db \"SELECT local_id FROM record WHERE type = 'Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", "--store", "a.db", "Library/\(id)")
        try sync(bench, "a", "b")
        switch way {
        case .overwrite: try bench.tool("import", "--overwrite", "--store", "a.db", "x/lib.bib")
        case .resurrect: try bench.tool("restore", "--resurrect", "--store", "a.db", "first.tar")
        case .redo: try bench.tool(exit: 0, "undo", "--store", "a.db")
        }
        try sync(bench, "a", "b")
        #expect(try notes(bench) == ["one\n", "one\n"])
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "between.tar")
        if end == .olderEdit {
            try bench.shell("sed 's/one/two/' x/lib.bib > b.bib; sleep 0.05")
            try bench.tool("import", "--store", "b.db", "b.bib")
            try bench.shell("sleep 0.05")
        }
        try bench.tool(words: ["undo"] + (way == .redo ? ["--redo"] : []) + ["--store", "a.db"], exit: 0)
        switch end {
        case .restore:
            try sync(bench, "a", "b")
            try bench.tool("restore", "--store", "a.db", "between.tar")
        case .oldFile:
            try sync(bench, "a", "b")
            try bench.tool("import", "--store", "a.db", "x/lib.bib")
        case .newHub:
            try sync(bench, "a")
            try bench.tool(exit: 0, "hub", "init", "new.db")
            try sync(bench, "a", "b", "a", hub: "new.db")
        case .olderEdit: try sync(bench, "a", "b")
        }
        if end != .newHub { try sync(bench, "a", "b") }
        #expect(try notes(bench) == ["", ""])
    }

    @Test(arguments: [End.restore, .newHub])
    func anEditThatWasTakenBack_staysTakenBack(end: End) throws {
        let bench = try bench()
        try bench.shell("sed -i 's/one/two/' x/lib.bib")
        try bench.tool(exit: 0, "import", "--store", "a.db", "x/lib.bib")
        try sync(bench, "a", "b")
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "between.tar")
        try bench.tool(exit: 0, "undo", "--store", "a.db")
        switch end {
        case .restore:
            try sync(bench, "a", "b")
            try bench.tool("restore", "--store", "a.db", "between.tar")
        default:
            try sync(bench, "a")
            try bench.tool(exit: 0, "hub", "init", "new.db")
            try sync(bench, "a", "b", "a", hub: "new.db")
        }
        #expect(try notes(bench) == ["one\n", "one\n"])
    }

    /// A redo is later than what another device has decided since the undo.
    @Test(arguments: [["a", "b"], ["b", "a"]]) func aDecisionThatIsRedone_isTheLaterOne(order: [String]) throws {
        let bench = try bench()
        try bench.write("y/lib.bib", "@book{k, title={On plums}, author={Cee, Bob}, year=2005, note={plums}}\n")
        try bench.tool("import", "--store", "b.db", "y/lib.bib")
        try sync(bench, "a", "b", "a", "b")
        func id(_ note: String) throws -> String {
            let query = "SELECT ifnull(name, local_id) FROM record WHERE json_extract(fields, '$.note') = '\(note)'"
            return String(try bench.shell("sqlite3 a.db \"\(query)\"").dropLast())
        }
        let (pears, plums) = (try id("one"), try id("plums"))
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--keep", pears, "--store", "a.db")
        try bench.tool(exit: 0, "undo", "--store", "a.db")
        try sync(bench, "a", "b")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--keep", plums, "--store", "b.db")
        try bench.shell("sleep 0.05")
        try bench.tool(exit: 0, "undo", "--redo", "--store", "a.db")
        for _ in 0..<2 { for name in order { try sync(bench, name) } }
        #expect(try notes(bench) == ["one\n", "one\n"])
    }

    /// What a file repeats of the store is no newer than that, and overwrites no edit that was made before it was repeated.
    @Test func anEntryThatRepeatsWhatTheStoreHas_overwritesNothing() throws {
        let bench = try bench()
        try bench.write("y/other.bib", "@book{m, title={On plums}, author={Cee, Bob}, year=2005}\n")
        try bench.tool("import", "--store", "b.db", "y/other.bib")
        try bench.shell("sed -i 's/one/two/' x/lib.bib; sleep 0.05")
        try bench.tool(exit: 0, "import", "--store", "a.db", "x/lib.bib")
        try bench.shell("printf '%s' '\(Self.entry)' >> y/other.bib")
        try bench.tool("import", "--store", "b.db", "y/other.bib")
        try sync(bench, "a", "b")
        try bench.tool("import", "--store", "b.db", "y/other.bib")
        try bench.shell("sleep 0.05; echo '@misc{n, title={More}}' >> y/other.bib")
        try bench.tool("import", "--store", "b.db", "y/other.bib")
        try sync(bench, "b", "a")
        #expect(try notes(bench).allSatisfy { $0.contains("two\n") && !$0.contains("one") })
    }
}
