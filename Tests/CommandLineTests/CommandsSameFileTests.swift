import TestSupport
import Testing

/// Files of a folder that the store has already under another path.
@Suite struct CommandsSameFileTests {
    private func works(_ bench: Workbench) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.linkedFiles') FROM record WHERE type = 'Publication'\"")
    }

    private func assets(_ bench: Workbench) throws -> [String] {
        try bench.shell("sqlite3 store.db 'SELECT path FROM asset'").split(separator: "\n").map(String.init).sorted()
    }

    /// The first import of the README; its advice names what another one takes, and no more.
    @Test func theAdviceAfterTheFirstImport_makesNoDoubles() throws {
        let bench = try Workbench()
        try bench.shell("cp -r '\(Workbench.samples)' samples; chmod -R u+w samples; $T store init")
        let told = try bench.tool("import", "samples", "--attachments", "samples/library/Attachments").stderr
        let count = try #require(told.firstMatch(of: /holds ([0-9]+) files that import does not take/)).1
        let advice = try #require(told.firstMatch(of: /'backup-tool (import samples --attachments [^']*)'/)).1
        let (before, links) = (try assets(bench), try works(bench))
        try bench.shell("$T \(advice) 2>&1 || test $? = 3")
        let now = try assets(bench)
        #expect(now.count == before.count + (Int(count) ?? 0) && Set(before).isSubset(of: now), "\(now)")
        #expect(try works(bench) == links)
        // Nothing is left out by then, whichever of the folders is named.
        let again = try bench.tool("import", "samples", "--attachments", "samples/library/Attachments").stderr
        #expect(!again.contains("does not take"), "\(again)")
        #expect(try assets(bench) == now)
    }

    private func prepareFoundByName() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("my.bib", "@article{smith, title={T}, author={A B}, year=2020, file={papers/smith.pdf}}\n")
        try bench.write("elsewhere/smith.pdf", "%PDF")
        try bench.tool(exit: 0, "import", "--create", "my.bib", "--attachments", "elsewhere")
        return bench
    }

    @Test(arguments: [["my.bib"], ["my.bib", "--attachments", "papers"], ["my.bib", "--attachments", "."]])
    func aFileThatItsWorkHasAlready_isNoSecondOne(words: [String]) throws {
        let bench = try prepareFoundByName()
        try bench.shell("mkdir papers; mv elsewhere/smith.pdf papers")
        let result = try bench.tool(words: ["import"] + words, exit: 0)
        #expect(try assets(bench) == ["Attachments/smith.pdf"], "\(result.stdout)")
        #expect(try works(bench) == "[\"Attachments/smith.pdf\"]\n")
        try bench.tool(exit: 0, "export", "-o", "e", "--format", "dir")
        try bench.tool(exit: 0, "import", "--create", "--store", "new.db", "e/library.bib")
        #expect(try bench.files("new.db.assets") == ["Attachments/smith.pdf"])
    }

    /// The work came with its file; a copy of that lies in a folder of another name.
    @Test func aCopyOfAFileThatAWorkLinks_isNoNewFile() throws {
        let bench = try Workbench()
        try bench.write("my.bib", "@article{smith, title={T}, author={A B}, year=2020, file={papers/smith.pdf}}\n")
        try bench.write("papers/smith.pdf", "%PDF")
        try bench.write("pdfs/2020/smith.pdf", "%PDF")
        try bench.tool(exit: 0, "import", "--create", "my.bib")
        for words in [["my.bib", "--attachments", "pdfs"], ["--attachments", "pdfs"], ["my.bib"]] {
            let told = try bench.tool(words: ["import"] + words, exit: 0).stderr
            #expect(try assets(bench) == ["Attachments/papers/smith.pdf"], "\(words): \(told)")
            #expect(try works(bench) == "[\"Attachments/papers/smith.pdf\"]\n")
        }
    }

    @Test func aFileOfOtherBytes_isAFileOfItsOwn() throws {
        let bench = try prepareFoundByName()
        try bench.write("papers/smith.pdf", "%PDF 2")
        try bench.tool(exit: 0, "import", "my.bib")
        #expect(try assets(bench) == ["Attachments/papers/smith.pdf", "Attachments/smith.pdf"])
        try bench.write("more/in/smith.pdf", "%PDF 3")
        try bench.tool("import", "--attachments", "more")
        #expect(try assets(bench).contains("Attachments/in/smith.pdf"))
    }

    @Test func twoFilesOfOneFolder_stayTwo() throws {
        let bench = try Workbench()
        try bench.write("d/x.pdf", "%PDF")
        try bench.write("d/a/x.pdf", "%PDF")
        try bench.tool("import", "--create", "--attachments", "d")
        #expect(try assets(bench) == ["Attachments/a/x.pdf", "Attachments/x.pdf"])
        try bench.write("d/b/x.pdf", "%PDF")
        try bench.tool("import", "--attachments", "d")
        #expect(try assets(bench).contains("Attachments/b/x.pdf"))
    }

    /// A record names the path, and waits for its file.
    @Test func aFileThatARecordWaitsFor_comesToItsPath() throws {
        let bench = try Workbench()
        try bench.write("lib/my.bib", "@article{smith, title={T}, file={in/x.pdf}}\n")
        try bench.write("lib/in/x.pdf", "%PDF")
        try bench.tool(exit: 0, "import", "--create", "lib/my.bib")
        try bench.tool(exit: 0, "export", "-o", "e", "--format", "dir", "--only", "publications")
        try bench.tool("restore", "e", "--create", "--store", "new.db")
        try bench.tool("import", "--attachments", "lib/in", "--store", "new.db")
        try bench.tool("import", "--attachments", "lib", "--store", "new.db")
        let found = try bench.files("new.db.assets")
        #expect(found.contains("Attachments/in/x.pdf"), "\(found)")
    }
}
