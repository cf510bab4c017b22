import TestSupport
import Testing

/// What one import says twice of one record, and what is known of a record by another wording of it.
@Suite struct CommandsSaidTwiceTests {
    private static let work = "title={One}, author={A, B}, year=2000"

    private func count(_ bench: Workbench, _ what: String) throws -> String {
        try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE deleted_at IS NULL AND \(what)\"")
    }

    @Test func ofTwoFilesOfOneOverwrite_theFirstCounts_theOtherIsNamed_andASecondRunWritesNothing() throws {
        let bench = try Workbench()
        for (file, note) in [("a", "FIRST"), ("b", "SECOND")] {
            try bench.write("two/\(file).bib", "@article{k, \(Self.work), doi={10.1/x}, note={\(note)}}\n")
        }
        for number in 0..<3 {
            let told = try bench.json(exit: 3, "import", "--overwrite", "--create", "two")
            #expect(number == 0 || told["writes"]?.integer == 0, "\(told)")
            let message = told["findings"]?.array?.first?["message"]?.string ?? ""
            #expect(message.contains("(note); the values of the first one count"), "\(told)")
        }
        #expect(try count(bench, "fields LIKE '%FIRST%'") == "1\n")
        // What only the second one says comes all the same.
        try bench.write("two/b.bib", "@article{k, \(Self.work), doi={10.1/x}, note={FIRST}, volume=7}\n")
        try bench.tool(exit: 0, "import", "--overwrite", "two")
        #expect(try count(bench, "fields LIKE '%FIRST%' AND json_extract(fields, '$.volume') = '7'") == "1\n")
        #expect(try bench.json(exit: 0, "import", "--overwrite", "two")["writes"]?.integer == 0)
    }

    @Test(arguments: [
        ["[{\"citeKey\":\"A\",\"note\":\"first\"},{\"citeKey\":\"A\",\"note\":\"second\"}]"],
        [
            """
            [{"citeKey":"A","note":"first","localId":"L"}, {"citeKey":"B","note":"second","localId":"L"}]
            """
        ],
        ["[{\"citeKey\":\"A\",\"note\":\"first\"}]", "[{\"citeKey\":\"A\",\"note\":\"second\"}]"],
    ])
    func ofTwoNotesOfOneOverwrite_noneIsLostSilently(_ files: [String]) throws {
        let bench = try Workbench()
        for (number, text) in files.enumerated() { try bench.write("\(number)/notes.json", text) }
        let words = ["import", "--overwrite", "--create", "--json"] + files.indices.map(String.init)
        for number in 0..<2 {
            let told = try bench.tool(words)
            #expect(told.status == 3 && told.stdout.contains("two entries of this import are this record"), "\(told)")
            #expect(number == 0 || told.stdout.contains("\"writes\":0"), "\(told)")
        }
        #expect(try count(bench, "fields LIKE '%first%'") == "1\n")
    }

    /// The store knew it as the same work, and took nothing of it.
    @Test(arguments: [false, true])
    func anOlderWordingOfADeletedWork_staysDeleted(isNewer: Bool) throws {
        let bench = try Workbench()
        try bench.write("full.bib", "@article{k, \(Self.work), doi={10.1/x}, journal={J. Cats}}\n")
        try bench.write("short.bib", "@article{k, \(Self.work), journal={Journal of Cats}}\n")
        try bench.shell("touch -d '2026-01-03' full.bib; touch -d '2026-01-0\(isNewer ? 4 : 1)' short.bib")
        try bench.tool(exit: 0, "import", "--create", "full.bib")
        try bench.tool("import", "short.bib")
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        try bench.tool(exit: 0, "store", "delete", "Library/\(id.dropLast())")
        for file in ["short.bib", "full.bib"] {
            try bench.tool("import", file)
            #expect(try count(bench, "type = 'Publication'") == "0\n", "\(file)")
        }
        // On a device that has heard of the delete, too.
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try bench.tool(exit: 0, "sync", "--store", "other.db", "--hub", "hub.db")
        try bench.tool("import", "short.bib", "--store", "other.db")
        let other = try bench.shell(
            "sqlite3 other.db \"SELECT count(*) FROM record WHERE type = 'Publication' AND deleted_at IS NULL\"")
        #expect(other == "0\n")
    }

    /// The other entry of the file was merged into the publication, and still has the keyword. Their ids decide which one
    /// stays, so both are tried.
    @Test(arguments: [false, true])
    func aKeywordOfAMergedWork_staysAsLongAsAnEntryOfTheFileHasIt(isOther: Bool) throws {
        let bench = try Workbench()
        let pears = "@article{k, title={On pears}, author={Bee, Ann}, year=2004, keywords={pears}}\n"
        let plums = "@article{k, title={On plums}, author={Cee, Bob}, year=2005, keywords={plums}}\n"
        let (mine, theirs) = isOther ? (plums, pears) : (pears, plums)
        try bench.write("mine.bib", mine)
        try bench.write("theirs.bib", theirs)
        try bench.shell("touch -d '2026-01-03' *.bib")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        func sync(_ stores: String...) throws {
            for store in stores { try bench.tool("sync", "--store", store, "--hub", "hub.db") }
        }
        try bench.tool(exit: 0, "import", "--create", "mine.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try sync("store.db", "other.db")
        try bench.tool(exit: 3, "import", "theirs.bib", "--store", "other.db")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge", "--store", "other.db")
        try sync("other.db", "store.db")
        try bench.write("mine.bib", mine + theirs)
        try bench.tool("import", "mine.bib")
        let words = "json_extract(fields, '$.keywords')"
        #expect(try count(bench, "\(words) LIKE '%pears%' AND \(words) LIKE '%plums%'") == "1\n")
    }
}
