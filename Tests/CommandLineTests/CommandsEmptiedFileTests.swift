import TestSupport
import Testing

/// Files of the store's folder that lost their bytes, which no app has done.
@Suite struct CommandsEmptiedFileTests {
    private static let pdf = "store.db.assets/Attachments/k.pdf"

    /// How a file lost bytes: with its old time, as by a disk, or as empty, as by a program that was killed.
    enum Loss: String, CaseIterable {
        case cut = "printf 123 > $f; touch -r time $f"
        case emptied = ": > $f; touch -r time $f"
        case emptiedLater = ": > $f"
        case rotten = "printf 'other bytes' > $f; touch -r time $f"
    }

    private func bench(_ loss: Loss) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("l/l.bib", "@misc{k, title={T}, file={k.pdf}}\n")
        try bench.write("l/k.pdf", "sound bytes")
        try bench.tool(exit: 0, "import", "--create", "l")
        try bench.tool(exit: 0, "export", "-o", "sound")
        try bench.shell("sleep 1.1; f=\(Self.pdf); touch -r $f time; \(loss.rawValue)")
        return bench
    }

    @Test(arguments: Loss.allCases) func itIsDamage_whoeverMeetsIt(loss: Loss) throws {
        let bench = try bench(loss)
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 4, "export", "-o", "bad")
        let adopted = try bench.tool(exit: 3, "store", "adopt")
        #expect(adopted.stderr.contains(loss == .emptiedLater ? "is empty now" : "is damaged"), "\(adopted)")
        // A backup of the damage does not make it good.
        let restored = try bench.tool(exit: 3, "restore", "bad")
        #expect(restored.stderr.contains("Attachments/k.pdf: is damaged"), "\(restored)")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "restore", "sound", "--match", "Attachments/k.pdf")
        #expect(try bench.shell("cat \(Self.pdf)") == "sound bytes")
    }

    /// Nor does a backup of another library in which that file is empty.
    @Test func anEmptyFileOfAnotherLibrary_makesItNotGood() throws {
        let bench = try bench(.emptied)
        try bench.shell("mkdir m; cp l/l.bib m; : > m/k.pdf")
        try bench.tool(exit: 0, "import", "--create", "--store", "other.db", "m")
        try bench.tool(exit: 0, "export", "--store", "other.db", "-o", "empty")
        try bench.tool(exit: 3, "restore", "empty")
        try bench.tool(exit: 4, "store", "check")
        #expect(try bench.shell("sqlite3 store.db \"SELECT size FROM asset WHERE path LIKE '%k.pdf'\"") == "11\n")
    }
}
