import TestSupport
import Testing

/// Somebody has put an older copy of the database back, beside the folder of files as it is now.
@Suite struct CommandsOlderDatabaseTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={K}, file={:k.pdf:PDF}}\n@misc{l, title={L}, file={:l.pdf:PDF}}\n")
        for name in ["k", "l"] { try bench.write("\(name).pdf", "%PDF \(name)") }
        try bench.tool(exit: 0, "import", "a.bib", "--create")
        return bench
    }

    private func putBack(_ bench: Workbench, after change: String) throws {
        try bench.shell("cp store.db old.db; \(change); rm -f store.db-wal store.db-shm; cp old.db store.db")
    }

    /// The undo has taken the files out of the folder, and their last bytes are what it keeps for a redo.
    @Test(arguments: [
        "", "store adopt --dry-run", "import a.bib --dry-run", "undo --dry-run", "store repair --dry-run",
        "store delete k --dry-run", "store purge --deleted-before 30d", "export -o x.zip", "import n.bib",
    ])
    func theBytesThatItsRowsName_stay_whateverComesFirst(_ command: String) throws {
        let bench = try bench()
        try bench.write("n.bib", "@misc{n, title={N}}\n")
        try putBack(bench, after: "$T -q undo")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains("'backup-tool store adopt' puts it back"), "\(check.stderr)")
        if !command.isEmpty { try bench.tool(command.split(separator: " ").map(String.init)) }
        try bench.tool(exit: 0, "store", "adopt")
        try bench.tool(exit: 0, "store", "check")
        for name in ["k", "l"] { #expect(try bench.text("store.db.assets/Attachments/\(name).pdf") == "%PDF \(name)") }
        try checkSound(bench.path("store.db"))
    }

    /// What an undo keeps lies where no check looks.
    @Test(arguments: ["printf x | dd of=$f conv=notrunc status=none", "rm $f"])
    func bytesThatAnUndoHasLost_areNamedByIt(_ harm: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "undo")
        try bench.shell("f=$(ls store.db.assets/.blobs/* | head -1); chmod u+w $f; \(harm)")
        for words in [["undo", "--redo", "--dry-run"], ["undo", "--redo"]] {
            let told = try bench.tool(words: words, exit: 3).stderr
            let reason = harm.hasPrefix("rm") ? "did not come back" : "came back damaged"
            #expect(told.contains(reason) && told.contains("store repair --from BACKUP"), "\(told)")
        }
        #expect(try [3, 4].contains(bench.tool("store", "check").status))
    }
}
