import BackupKit
import TestSupport
import Testing

/// A damaged index of SQLite costs nothing: no command takes what it leaves out for gone.
@Suite struct CommandsDamagedIndexTests {
    /// A library of two works, and then an import that changes one of them and brings a file.
    private func bench() throws -> (bench: Workbench, before: String) {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, doi={10.1000/a}, note={old}}\n@misc{b, title={B}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        let before = try bench.digest()
        try bench.write("a.bib", "@misc{a, doi={10.1000/a}, note={new}}\n@misc{b, title={B}}\n")
        try bench.write("pdfs/a.pdf", "%PDF a")
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
        return (bench, before)
    }

    @Test(arguments: [
        (
            "batch_record_by_batch", "UPDATE batch_record SET batch = batch + 64",
            "UPDATE batch_record SET batch = batch - 64"
        ),
        (
            "batch_record_by_after", "UPDATE batch_record SET after = after + 4096",
            "UPDATE batch_record SET after = after - 4096"
        ),
        (
            "batch_added_by_batch", "INSERT INTO batch_added VALUES (4096, 1, 66)",
            "UPDATE batch_added SET batch = 2 WHERE batch = 66"
        ),
        (
            "batch_asset_by_path", "UPDATE batch_asset SET path = 'x' || path",
            "UPDATE batch_asset SET path = substr(path, 2)"
        ),
    ]) func noUndoTrustsADamagedHistory(index: String, lie: String, truth: String) throws {
        let (bench, before) = try bench()
        try SQLite.misindex(bench.path("store.db"), index, lie: lie, truth: truth)
        try expectRefused(["undo"], bench, index)
        try bench.tool("undo")
        #expect(try bench.digest() == before)
    }

    @Test func noRedoTrustsADamagedHistory() throws {
        let (bench, _) = try bench()
        let after = try bench.digest()
        try bench.tool(exit: 0, "undo")
        try SQLite.misindex(
            bench.path("store.db"), "batch_record_by_batch", lie: "UPDATE batch_record SET batch = batch + 64",
            truth: "UPDATE batch_record SET batch = batch - 64")
        try expectRefused(["undo", "--redo"], bench, "batch_record_by_batch")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.digest() == after)
    }

    /// Refused before anything is written, and the way that is named mends the store.
    private func expectRefused(_ words: [String], _ bench: Workbench, _ index: String) throws {
        let state = try bench.state()
        for words in [words + ["--dry-run"], words] {
            let told = try bench.tool(words)
            #expect(told.status == 4 && told.stderr.contains("nothing was taken back"), "\(told)")
            #expect(told.stderr.contains(index) && told.stderr.contains("'backup-tool store repair"), "\(told)")
        }
        #expect(try bench.state() == state)
        try bench.tool(exit: 0, "store", "repair")
        try bench.tool(exit: 0, "store", "check")
    }
}
