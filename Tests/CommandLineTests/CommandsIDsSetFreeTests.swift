import TestSupport
import Testing

/// What is left of a work, and of its id, when a batch takes records out.
@Suite struct CommandsIDsSetFreeTests {
    /// Two volumes of a set have one id by title, authors and year: the second gets it where the first is gone.
    @Test func aWorkThatARestoreTookOut_isNotTheOneThatGetsItsID() throws {
        let bench = try Workbench()
        func volume(_ number: Int) -> String {
            "@book{k, title={Set}, author={Bee, Bo}, volume={\(number)}, year={2001}, mark={volume \(number)}}\n"
        }
        try bench.tool(exit: 0, "store", "init")
        try bench.tool("export", "-o", "empty")
        try bench.write("a.bib", volume(1))
        try bench.write("b.bib", volume(2))
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool("restore", "empty", "--mode", "replace")
        try bench.tool(exit: 0, "import", "b.bib")
        try bench.shell("touch a.bib")
        try bench.tool("import", "a.bib")
        try bench.tool("export", "-o", "out")
        let library = try bench.text("out/library.bib")
        #expect(library.contains(volume(1).dropLast()) && library.contains(volume(2).dropLast()), "\(library)")
    }

    /// The other device has kept it for itself as well, and so has deleted it for everybody else.
    @Test func theUndoOfSetLocal_leavesTheCopy_whereSomebodyHasDeletedTheRecord() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("a.bib", "@misc{k, title={T}, year={2001}}\n")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "a.bib")
        try bench.tool(exit: 0, "sync", "--store", "a.db", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        try bench.tool(exit: 0, "sync", "--store", "b.db", "--hub", "hub.db")
        let id = try bench.shell("sqlite3 a.db \"SELECT local_id FROM record WHERE type='Publication'\"").dropLast()
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "store", "set-local", String(id), "--store", store) }
        for store in ["b.db", "a.db"] { try bench.tool("sync", "--store", store) }
        let undone = try bench.tool("undo", "--store", "a.db")
        try bench.tool("export", "--store", "a.db", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@misc{k"), "\(undone)")
        try bench.tool(exit: 0, "store", "check", "--store", "a.db")
    }

    /// One work under two keys: a sync gives one of the two records another id.
    @Test func anUndo_takesNoIDThatAnotherRecordHasByNow() throws {
        let bench = try Workbench()
        func entry(_ key: String, _ note: Int) -> String {
            "@book{\(key), title={W}, author={A, A}, year={2001}, note={\(note)}}\n"
        }
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("a.bib", entry("k1", 1))
        try bench.write("c.bib", entry("k0", 0))
        for name in ["a", "c"] {
            try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", "\(name).bib")
        }
        let id = try bench.shell("sqlite3 a.db \"SELECT local_id FROM record WHERE type='Publication'\"").dropLast()
        try bench.tool(exit: 0, "sync", "--store", "c.db", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "delete", String(id), "--store", "c.db")
        try bench.tool(exit: 0, "store", "delete", String(id), "--store", "a.db")
        try bench.shell("sleep 1.1")
        try bench.write("a.bib", entry("k1", 0))
        try bench.tool(exit: 0, "import", "--store", "a.db", "a.bib")
        try bench.tool("sync", "--store", "c.db")
        try bench.tool("sync", "--store", "a.db", "--hub", "hub.db")
        for _ in 0..<2 { try bench.tool("undo", "--store", "a.db") }
        let twice = "SELECT count(*) FROM record GROUP BY zone, ifnull(name, local_id) HAVING count(*) > 1"
        #expect(try bench.shell("sqlite3 a.db \"\(twice)\"") == "")
        try bench.tool("export", "--store", "a.db", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@book{k1"))
        try bench.tool(exit: 0, "store", "check", "--store", "a.db")
    }

    /// What an undo brings back was deleted before, and is no delete of the undo.
    @Test func theUndoOfEnableCloud_keepsTheRecordForThisDevice() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("a.bib", "@misc{k, title={T}, year={2001}}\n")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "a.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for name in ["a.db", "b.db"] { try bench.tool(exit: 0, "sync", "--store", name, "--hub", "hub.db") }
        let ids = "SELECT local_id FROM record WHERE type='Publication'"
        let id = String(try bench.shell("sqlite3 a.db \"\(ids)\"").dropLast())
        // The other device has changed its mind before, and this one has not heard of it.
        for change in ["set-local", "enable-cloud"] {
            try bench.tool(exit: 0, "store", change, id, "--store", "b.db")
            try bench.tool(exit: 0, "sync", "--store", "b.db")
        }
        for change in ["set-local", "enable-cloud"] {
            try bench.shell("sleep 0.1")
            try bench.tool(exit: 0, "store", change, id, "--store", "a.db")
        }
        try bench.tool(exit: 0, "undo", "--store", "a.db")
        for name in ["a.db", "b.db"] { try bench.tool("sync", "--store", name) }
        let living = "SELECT local_only FROM record WHERE type='Publication' AND deleted_at IS NULL"
        #expect(try bench.shell("sqlite3 a.db \"\(living)\"; sqlite3 b.db \"\(living)\"") == "1\n")
    }

    /// Somebody has edited the record since: it stays in the cloud, and there is no second one for this device.
    @Test func theRedoOfSetLocal_makesNoSecondRecord() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("a.bib", "@book{k, title={T}, author={A, A}, year={2001}}\n")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "a.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for name in ["a.db", "b.db"] { try bench.tool(exit: 0, "sync", "--store", name, "--hub", "hub.db") }
        let id = try bench.shell("sqlite3 a.db \"SELECT local_id FROM record WHERE type='Publication'\"").dropLast()
        try bench.tool(exit: 0, "store", "set-local", String(id), "--store", "a.db")
        try bench.tool(exit: 0, "undo", "--store", "a.db")
        try bench.tool(exit: 0, "sync", "--store", "a.db")
        try bench.shell("sleep 1.1")
        try bench.write("b.bib", "@book{k, title={T}, author={A, A}, year={2001}, note={n}}\n")
        try bench.tool(exit: 0, "import", "--store", "b.db", "b.bib")
        for name in ["b.db", "a.db"] { try bench.tool(exit: 0, "sync", "--store", name) }
        let redo = try bench.tool("undo", "--redo", "--store", "a.db")
        #expect(redo.status == 3 && redo.stderr.contains("changed since"), "\(redo)")
        let living = "SELECT local_only FROM record WHERE type='Publication' AND deleted_at IS NULL"
        #expect(try bench.shell("sqlite3 a.db \"\(living)\"") == "0\n")
    }
}
