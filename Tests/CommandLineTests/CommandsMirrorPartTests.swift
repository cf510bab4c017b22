import TestSupport
import Testing

/// What a mirrored file takes away of everything that it held, also where backup-tool wrote the file.
@Suite struct CommandsMirrorPartTests {
    /// What somebody removes from the file: a line of it, and a field that stands in one.
    private static let pieces = [
        "% A remark ahead of all entries.", "@preamble{\"\\newcommand{\\x}{y}\"}", "@string{jj = {Journal}}",
        "@comment{jabref-meta: grouping:0 AllEntriesGroup:;}", "@comment{Only a comment}", "Words between entries.",
        "@misc{second, title={Second}, year=2001}", ", note={A note}",
    ]
    private static let text = """
        \(pieces[0])

        \(pieces[1])
        \(pieces[2])
        \(pieces[3])
        \(pieces[4])
        @misc{first, title={First}\(pieces[7]), year=2000}

        \(pieces[5])

        \(pieces[6])
        @misc{third, title={Third}, year=2002}

        """

    enum Start: String, CaseIterable {
        /// The file is the user's own; it is an export that a new store or one with the same library imports; the export has
        /// the order of its sources; another program has removed our first line.
        case own, new, known, sources, headless
    }

    private func bench(_ start: Start) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("refs.bib", Self.text)
        try bench.shell("touch -d '3 days ago' refs.bib")
        guard start != .own else {
            try bench.tool(exit: 0, "import", "--create", "refs.bib")
            return bench
        }
        try bench.tool(exit: 0, "import", "--create", "--store", "old.db", "refs.bib")
        let flags = start == .sources ? ["--order", "source"] : []
        try bench.shell(
            "$T export -q --store old.db -o out \(flags.joined(separator: " ")); cp out/library.bib refs.bib")
        try bench.shell("touch -d '2 days ago' refs.bib")
        if start == .known { try bench.tool(exit: 0, "import", "--create", "out/records.jsonl") }
        try bench.tool(exit: 0, "import", "--create", "refs.bib")
        return bench
    }

    private func remove(_ piece: String, from bench: Workbench, _ start: Start) throws {
        var text = try bench.text("refs.bib")
        if start == .headless {
            text = text.split(separator: "\n", omittingEmptySubsequences: false).filter {
                !$0.hasPrefix("% backup-tool: p")
            }
            .joined(separator: "\n")
        }
        let place = try #require(text.firstRange(of: piece), "\(text)")
        text.removeSubrange(place)
        try bench.write("refs.bib", text)
    }

    private func count(_ piece: String, _ text: String) -> Int {
        text.split(separator: piece, omittingEmptySubsequences: false).count - 1
    }

    private func library(_ bench: Workbench, _ name: String = "new") throws -> String {
        try bench.tool(exit: 0, "export", "-q", "--force", "-o", name)
        return try bench.text("\(name)/library.bib")
    }

    @Test(arguments: pieces, Start.allCases)
    func aMirror_takesAwayWhateverItsFileHasLost(piece: String, start: Start) throws {
        let bench = try bench(start)
        // It is saved for another reason first.
        try bench.shell("echo '@comment{Another}' >> refs.bib; touch -d '1 day ago' refs.bib")
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
        let digest = try bench.digest()
        try remove(piece, from: bench, start)
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
        let library = try library(bench)
        for other in Self.pieces {
            #expect(library.contains(other) == (other != piece), "\(start) \(other): \(library)")
            #expect(count(other, library) < 2, "\(start) \(other): \(library)")
        }
        #expect(try bench.json(exit: 0, "import", "--mirror", "refs.bib")["writes"]?.integer == 0)
        try bench.undoNamedBatch()
        #expect(try bench.digest() == digest)
    }

    /// Whatever its text is: the file that the export came from holds it still, and goes by its own memory.
    @Test(arguments: pieces)
    func whatTheExportLoses_staysForTheFileThatHoldsItAndIsNamedOnce(piece: String) throws {
        let bench = try Workbench()
        try bench.write("refs.bib", Self.text)
        try bench.shell("touch -d '3 days ago' refs.bib")
        try bench.tool(exit: 0, "import", "--create", "refs.bib")
        try bench.shell("$T export -q -o out; mv refs.bib source.bib; cp out/library.bib refs.bib")
        try bench.tool(exit: 0, "import", "source.bib")
        try bench.tool(exit: 0, "import", "refs.bib")
        let before = try library(bench, "before")
        try remove(piece, from: bench, .known)
        let told = try bench.tool("import", "--mirror", "refs.bib")
        #expect(try library(bench) == before)
        #expect(told.status == 3 && told.stderr.contains("but in another file that was imported"), "\(told.stderr)")
        #expect(told.stderr.split(separator: "warning: ").count == 1, "\(told.stderr)")
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
        // Now no file has it.
        try remove(piece, from: bench, as: "source.bib")
        try bench.tool(exit: 0, "import", "--mirror", "source.bib")
        #expect(try !library(bench).contains(piece))
    }

    private func remove(_ piece: String, from bench: Workbench, as name: String) throws {
        var text = try bench.text(name)
        text.removeSubrange(try #require(text.firstRange(of: piece), "\(text)"))
        try bench.write(name, text)
    }

    @Test(arguments: [Start.new, .known, .sources])
    func aFileThatBeganAsAnExport_hasOneOrder(start: Start) throws {
        let bench = try bench(start)
        for number in 1...4 {
            try bench.shell(
                "echo '@comment{Number \(number)}' >> refs.bib; touch -d '\(9 - number) hours ago' refs.bib")
            try bench.tool(exit: 0, "import", "refs.bib")
        }
        let files = try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.file') FROM record WHERE fields LIKE '%\\\"kind\\\":\\\"order\\\"%'\""
        )
        let exports = files.split(separator: "\n").filter { $0.hasPrefix("exported ") }
        #expect(exports.count == 1 && !files.contains("exported exported"), "\(files)")
        #expect(try bench.json(exit: 0, "import", "refs.bib")["writes"]?.integer == 0)
    }

    /// A store in which earlier imports have left an order for each of them.
    @Test func ordersThatWereDoubled_doNoHarm() throws {
        let bench = try bench(.sources)
        try bench.shell(
            """
            $T export -q -o made
            jq -c 'select(.fields.kind == "order") | .fields.file = "exported " + .fields.file | .localId = "older"
            | .recordName = "older" | .fields.items |= reverse | .modifiedAt = "2020-01-01T00:00:00.000Z"
            | .createdAt = .modifiedAt' made/records.jsonl > records.jsonl
            test -s records.jsonl
            $T import records.jsonl
            sqlite3 store.db "UPDATE imported_file SET name = 'exported ' || name WHERE name LIKE 'exported %'"
            # What another program has written there is taken as it is.
            $T -q store repair
            """)
        let order = try bench.shell("$T export -q -o a --order source; grep -v 'backup-tool: pub' a/library.bib")
        #expect(order == (try bench.shell("grep -v 'backup-tool: pub' refs.bib")))
        try remove(Self.pieces[2], from: bench, .sources)
        try bench.tool(exit: 0, "import", "--mirror", "refs.bib")
        let library = try library(bench)
        #expect(!library.contains(Self.pieces[2]) && library.contains(Self.pieces[4]), "\(library)")
        #expect(count(Self.pieces[4], library) == 1, "\(library)")
    }
}
