import TestSupport
import Testing

/// The comment lines `% backup-tool: …` of an exported library, after somebody has edited the file.
@Suite struct CommandsEntryLinesTests {
    private static let links = """
        SELECT json_extract(fields, '$.citeKey'), json_extract(fields, '$.linkedFiles') FROM record
        WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1
        """

    /// An export of two entries with a PDF each, in the folder `form`.
    private func bench(_ form: String) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib/p/1.pdf", "one\n")
        try bench.write("lib/p/2.pdf", "two\n")
        try bench.write(
            "lib/l.bib",
            """
            @article{k1, title={Paper 1}, author={A, N1}, year={2001}, file={:p/1.pdf:PDF}}

            @article{k2, title={Paper 2}, author={A, N2}, year={2001}, note={own}, file={:p/2.pdf:PDF}}

            """)
        try bench.tool(exit: 0, "import", "--create", "lib/l.bib")
        try bench.tool(exit: 0, "export", "-o", form, "--format", form)
        return bench
    }

    @Test(arguments: ["dir", "imbib"]) func linesOfAnEntryThatWasTakenOut_linkNothing(form: String) throws {
        let bench = try bench(form)
        try bench.shell("sed -i '/^@article{k1/d' \(form)/library.bib")
        let told = try bench.tool(exit: 3, "import", "--create", "--store", "new.db", "\(form)/library.bib").stderr
        #expect(told.contains("names files of an entry 'k1' that it does not hold"), "\(told)")
        #expect(try bench.shell("sqlite3 new.db \"\(Self.links)\"") == "k2|[\"Attachments/p/2.pdf\"]\n")
        let own = "SELECT json_extract(fields, '$.rawBibTeX') FROM record WHERE fields LIKE '%Paper 2%'"
        #expect(try bench.shell("sqlite3 new.db \"\(own)\"") == bench.shell("sqlite3 store.db \"\(own)\""))
        let before = try bench.digest()
        try bench.tool(exit: 3, "import", "\(form)/library.bib")
        #expect(try bench.digest() == before)
    }

    @Test(arguments: ["dir", "imbib"]) func linesAtTheTopOfTheFile_findTheirEntries(form: String) throws {
        let bench = try bench(form)
        try bench.shell(
            "cd \(form); (grep '^%' library.bib; grep -v '^%' library.bib) > top.bib; mv top.bib library.bib")
        try bench.tool(exit: 0, "import", "--create", "--store", "new.db", "\(form)/library.bib")
        #expect(
            try bench.shell("sqlite3 new.db \"\(Self.links)\"")
                == "k1|[\"Attachments/p/1.pdf\"]\nk2|[\"Attachments/p/2.pdf\"]\n")
    }

    /// One library has the file, and the other one has lost its own of that name.
    @Test(arguments: ["dir", "imbib"]) func aLostFileOfOurExport_isNoOtherEntrysFile(form: String) throws {
        let bench = try Workbench()
        try bench.write("ann/x.pdf", "Ann's\n")
        for (name, path) in [("ann", "x.pdf"), ("bob", "Attachments/x.pdf")] {
            let entry = "@article{\(name), title={Of \(name)}, author={A, \(name)}, year={2001}"
            try bench.write("\(name)/references.bib", "\(entry), file={:\(path):PDF}}\n")
        }
        try bench.tool(exit: 3, "import", "--create", "ann", "bob")
        try bench.tool("export", "-o", "out", "--format", form)
        try bench.shell("mkdir part; cp -r out/library.bib out/Attachments part")
        let right = "ann|[\"Attachments/x.pdf\"]\nbob|\n"
        for (number, words) in ["import part/library.bib", "import out", "restore out"].enumerated() {
            let command = words.split(separator: " ").map(String.init)
            let told = try bench.tool(command + ["--create", "--store", "\(number).db"])
            #expect(try bench.shell("sqlite3 \(number).db \"\(Self.links)\"") == right, "\(words)")
            // Where records are, they say it.
            if number > 0, form == "dir" { continue }
            #expect(told.status == 3, "\(words)")
            #expect(told.stderr.contains("Attachments/x.pdf: is named"), "\(words): \(told.stderr)")
        }
        try bench.tool("import", "part/library.bib")
        #expect(try bench.shell("sqlite3 store.db \"\(Self.links)\"") == right)
    }
}
