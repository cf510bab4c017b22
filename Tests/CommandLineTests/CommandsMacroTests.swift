import BackupKit
import TestSupport
import Testing

/// A file that defines one macro twice: each definition counts for the entries after it.
@Suite struct CommandsMacroTests {
    enum Start: CaseIterable {
        /// The user's own file; an export in a new store, by key or in the order of its sources; an export in its own store.
        case own, new, sources, known
    }

    private static let first = "@string{m = \"one\"}"
    private static let second = "@string{m = \"two\"}\n\n@misc{k2, title={Second}, note = m, year=2002}\n\n"

    private func bench(_ start: Start) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("refs.bib", "\(Self.first)\n\n@misc{k1, title={First}, note = m, year=2001}\n\n")
        try bench.shell("touch -d '3 days ago' refs.bib")
        try bench.tool(exit: 0, "import", "--create", "refs.bib")
        guard start != .own else { return bench }
        let flags = start == .sources ? "--order source" : ""
        try bench.shell("$T export -q -o first \(flags); cp first/library.bib refs.bib; touch -d '2 days ago' refs.bib")
        if start != .known { try bench.shell("rm -r store.db*; $T import --create refs.bib") }
        try bench.tool(exit: 0, "import", "refs.bib")
        return bench
    }

    /// What `note` says in each entry of a file, as a new store reads it.
    private func notes(_ bench: Workbench, _ file: String) throws -> [String] {
        try bench.shell("rm -rf other.db*; $T import -q --create --store other.db \(file)")
        let database = try SQLite(bench.path("other.db"), .readOnly)
        let query = try database.prepare(
            "SELECT fields ->> 'citeKey', fields ->> 'note' FROM record WHERE type = 'Publication' ORDER BY 1")
        var found: [String] = []
        while try query.step() { found.append("\(query.text(0)) \(query.text(1))") }
        return found
    }

    @Test(arguments: Start.allCases, [true, false])
    func aSecondDefinition_isKeptBesideTheFirst(start: Start, comesLast: Bool) throws {
        let bench = try bench(start)
        let text = try bench.text("refs.bib")
        let place = try #require(text.firstRange(of: Self.first)).lowerBound
        try bench.write("refs.bib", comesLast ? text + Self.second : text[..<place] + Self.second + text[place...])
        try bench.tool(exit: 0, "import", "refs.bib")
        for order in ["key", "source"] {
            try bench.shell("$T export -q --order \(order) -o by-\(order)")
            let exported = try bench.text("by-\(order)/library.bib")
            for definition in ["\"one\"", "\"two\""] {
                #expect(exported.split(separator: "@string{m = \(definition)}").count == 2, "\(exported)")
            }
            #expect(exported.split(separator: "note = m,").count == 3, "\(exported)")
            let notes = try notes(bench, "by-\(order)/library.bib")
            #expect(notes == ["k1 one", "k2 two"], "\(exported)")
        }
        for flags in [[], ["--mirror"]] {
            #expect(try bench.tool(["import", "refs.bib", "--json"] + flags).stdout.contains("\"writes\":0"))
        }
        // One that is edited takes the place of its own former version.
        try bench.write("refs.bib", bench.text("refs.bib").replacing("\"two\"", with: "\"three\""))
        try bench.tool(exit: 0, "import", "refs.bib")
        try bench.shell("$T export -q -o last")
        let last = try bench.text("last/library.bib")
        #expect(try notes(bench, "last/library.bib") == ["k1 one", "k2 three"] && !last.contains("two"))
    }

    private static let files: [(text: String, other: String, values: [String])] = [
        // The second definition of `a` is not what `b` is made of.
        (
            "@string{a={one}}\n@string{b = a # { x}}\n@string{a={two}}\n@misc{k1, title={T}, note=a # b, year=2001}\n",
            "",
            ["k1 twoone x"]
        ),
        // Nobody has defined `foo` for the first entry, which is spelled in two ways there.
        (
            "@misc{k1, title={T}, note=Foo, annote=foo, year=2001}\n",
            "@string{foo={bar}}\n@misc{k2, title={U}, note=foo, year=2002}\n", ["k1 Foofoo", "k2 bar"]
        ),
    ]

    @Test(arguments: [0, 1], ["key", "source"]) func whatMacrosSay_isWhatTheExportSays(file: Int, order: String) throws
    {
        let (text, other, values) = Self.files[file]
        let bench = try Workbench()
        try bench.write("a.bib", text)
        try bench.write("b.bib", other)
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        if !other.isEmpty { try bench.tool(exit: 0, "import", "b.bib") }
        try bench.shell("$T export -q --order \(order) -o out; $T -q import --create --store new.db out/library.bib")
        let database = try SQLite(bench.path("new.db"), .readOnly)
        let query = try database.prepare(
            """
            SELECT fields ->> 'citeKey', fields ->> 'note', ifnull(fields ->> 'annote', '') FROM record
            WHERE type = 'Publication' ORDER BY 1
            """)
        var found: [String] = []
        while try query.step() { found.append("\(query.text(0)) \(query.text(1))\(query.text(2))") }
        let exported = try bench.text("out/library.bib")
        #expect(found == values, "\(exported)")
    }

    /// One that has ten thousands of them keeps no night waiting.
    @Test func anEntryOfManyMacros_costsNoMoreThanItsSize() throws {
        let bench = try Workbench()
        let fields = (0..<20_000).map { "f\($0)=s" }.joined(separator: ",")
        try bench.write("m.bib", "@string{s={x}}\n@misc{k,\(fields)}\n")
        try bench.tool(exit: 0, "import", "--create", "m.bib")
        for command in ["export -q -o out", "import m.bib", "import out/library.bib"] {
            try bench.shell("timeout 60 $T \(command)")
        }
    }
}
