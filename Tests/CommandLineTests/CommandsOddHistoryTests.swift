import TestSupport
import Testing

/// A damaged older version in the undo history is named, and no undo takes it for what was there.
@Suite struct CommandsOddHistoryTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        func write(_ note: String) throws {
            let entries = ["k", "z"].map {
                "@article{\($0),title={T\($0)},author={A},doi={10.1/\($0)},note={\(note)}}\n"
            }
            try bench.write("p.bib", entries.joined())
        }
        try write("First")
        try bench.tool(exit: 0, "import", "p.bib")
        try write("Second")
        try bench.tool(exit: 0, "import", "p.bib", "--overwrite")
        return bench
    }

    private func execute(_ bench: Workbench, _ sql: String) throws { try bench.shell("sqlite3 store.db \"\(sql)\"") }

    @Test(arguments: ["fields = replace(fields, 'First', 'Forged')", "schema_version = -1", "fields = '{'"])
    func aDamagedOlderVersion_isNamed_andNoUndoBringsIt(change: String) throws {
        let bench = try bench()
        try execute(bench, "UPDATE batch_record SET \(change) WHERE fields LIKE '%First%' AND fields LIKE '%Tk%'")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains("older version in the undo history"), "\(check)")
        let undo = try bench.tool(exit: 3, "undo")
        #expect(undo.stderr.contains("stays as it is now"), "\(undo)")
        let fields = try bench.shell("sqlite3 store.db \"SELECT fields FROM record WHERE type = 'Publication'\"")
        #expect(fields.contains("Second") && fields.contains("First") && !fields.contains("Forged"), "\(fields)")
        try bench.tool(exit: 0, "store", "check")
        try checkSound(bench.path("store.db"))
    }

    /// The batch would seem to have added what it changed.
    @Test func whereAnOlderVersionIsGone_anUndoRemovesNothing() throws {
        let bench = try bench()
        let digest = try bench.digest()
        try execute(bench, "DELETE FROM batch_record WHERE fields LIKE '%First%' AND fields LIKE '%Tk%'")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("the undo history of batch 2"))
        #expect(try bench.tool(exit: 4, "undo").stderr.contains("nothing was taken back"))
        #expect(try bench.digest() == digest)
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: ["fields = replace(fields, 'First', 'Forged')", "schema_version = -1"])
    func aDamagedOlderVersion_isAccepted(change: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try execute(bench, "UPDATE batch_record SET \(change) WHERE fields LIKE '%First%' AND fields LIKE '%Tk%'")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    /// What has taken the place of a record goes with an undo only when that record comes back.
    @Test(arguments: ["set-local", "mirror", "merge"])
    func anUndo_takesNothingAway_whereTheOlderVersionIsDamaged(act: String) throws {
        let bench = try Workbench()
        try bench.write("l.bib", "@article{k,title={A Study of Barks},author={Ab, C},year=2001,note={mine}}\n")
        try bench.write("m.bib", "@article{k,title={Other Thing},author={Zz, D},year=2011,abstract={second}}\n")
        try bench.tool(exit: act == "merge" ? 3 : 0, ["import", "l.bib"] + (act == "merge" ? ["m.bib"] : []))
        switch act {
        case "set-local":
            let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
            try bench.tool(exit: 0, "store", "set-local", String(id.dropLast()))
        case "mirror":
            try bench.shell("sed -i 's/of Barks/of Purrs/' l.bib")
            try bench.tool(exit: 0, "import", "--mirror", "l.bib")
        default: try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        }
        let digest = try bench.digest()
        let kept = "SELECT group_concat(fields) FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
        let before = try bench.shell("sqlite3 store.db \"\(kept)\"")
        try execute(bench, "UPDATE batch_record SET local_only = -1 WHERE type = 'Publication'")
        let undo = try bench.tool(exit: 4, "undo")
        #expect(undo.stderr.contains("nothing was undone"), "\(undo)")
        #expect(try bench.shell("sqlite3 store.db \"\(kept)\"") == before)
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: ["9223372036854775807", "-1"])
    func aBatchWithAnOddID_stopsNoOther(id: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try execute(bench, "UPDATE batch SET id = \(id) WHERE id = (SELECT max(id) FROM batch)")
        try bench.tool(exit: 4, "store", "check")
        try bench.write("n.bib", "@article{n,title={New},author={B}}\n")
        try bench.tool(exit: 0, "import", "n.bib")
        try bench.tool("restore", "b.zip", "--mode", "replace")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "store", "check")
    }
}
