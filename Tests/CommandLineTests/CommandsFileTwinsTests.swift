import TestSupport
import Testing

/// Two works of one title, year and key in one file, of which a command has renamed or removed one. An edit of its entry
/// reaches no other work, whichever entry stands first.
@Suite struct CommandsFileTwinsTests {
    private static func entry(_ volume: Int, _ pages: String, _ more: String) -> String {
        "@article{ed, author={Zoe, Bo}, title={Editorial}, year={2002}, journal={Annals}, volume={\(volume)}, "
            + "pages={\(pages)}, \(more)}\n"
    }
    private static let first = "annote={of the first}, file={one.pdf}"
    private static let second = "abstract={of the second}, file={two.pdf}"

    private func prepare(_ reversed: Bool) throws -> Workbench {
        let bench = try Workbench()
        for name in ["one.pdf", "two.pdf"] { try bench.write(name, "%PDF \(name)") }
        try save(bench, Self.entry(1, "1--2", Self.first), reversed)
        try bench.tool(exit: 3, "import", "--create", "r.bib")
        return bench
    }

    private func save(_ bench: Workbench, _ first: String, _ reversed: Bool) throws {
        let entries = [first, Self.entry(2, "7--9", Self.second)]
        try bench.write("r.bib", (reversed ? entries.reversed() : entries).joined())
    }

    /// Key, volume, pages, notes and files of each living publication.
    private func works(_ bench: Workbench) throws -> [String] {
        let names = ["citeKey", "volume", "pages", "annote", "abstract", "linkedFiles"]
        let columns = names.map { "ifnull(json_extract(fields, '$.\($0)'), '-')" }.joined(separator: ", ")
        return try bench.shell(
            "sqlite3 store.db \"SELECT \(columns) FROM record WHERE type = 'Publication' AND deleted_at IS NULL\""
        ).split(separator: "\n").map(String.init).sorted()
    }

    private static let survivor = "ed|2|7--9|-|of the second|[\"Attachments/two.pdf\"]"

    @Test(arguments: [[], ["--mirror"]], [false, true])
    func aCorrectedEntryOfARenamedWork_reachesThatWorkAlone(way: [String], reversed: Bool) throws {
        let bench = try prepare(reversed)
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-existing", "--key", "ed2002a")
        try save(bench, Self.entry(5, "1--2", Self.first), reversed)
        let told = try bench.tool(["import", "r.bib"] + way)
        #expect(told.status == 0, "\(told.stdout)\(told.stderr)")
        #expect(try works(bench) == ["ed2002a|5|1--2|of the first|-|[\"Attachments/one.pdf\"]", Self.survivor])
    }

    /// The entry of the survivor is not in the file any more: what the file has said before tells the two apart.
    @Test(arguments: [[], ["--mirror"]])
    func theOnlyEntryLeft_reachesItsRenamedWork(way: [String]) throws {
        let bench = try prepare(false)
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-existing", "--key", "ed2002a")
        try bench.write("r.bib", Self.entry(5, "1--2", Self.first))
        try bench.tool(["import", "r.bib"] + way)
        let renamed = "ed2002a|5|1--2|of the first|-|[\"Attachments/one.pdf\"]"
        #expect(try works(bench) == (way.isEmpty ? [renamed, Self.survivor] : [renamed]))
    }

    @Test(
        arguments: ["delete", "purge", "keep"],
        ["1 1--2 keywords={x}", "5 1--2 keywords={x}", "1 3--5 note={n}", "1 1-2 note={n}"])
    func anEditedEntryOfADeletedWork_isNotWrittenOverTheOtherWork(command: String, edit: String) throws {
        let edit = edit.split(separator: " ").map(String.init)
        for (reversed, way) in [(false, []), (true, []), (false, ["--mirror"]), (true, ["--mirror"])] {
            let bench = try prepare(reversed)
            let id = try bench.shell(
                "sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%of the first%'\""
            ).split(separator: "\n").joined()
            if command == "keep" {
                try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-incoming")
            } else {
                try bench.tool(exit: 0, "store", "delete", id)
                if command == "purge" { try bench.tool("store", "purge", "--confirm", id) }
            }
            // A decision gives the files of both to the one that stays.
            let survivor = try works(bench)
            #expect(survivor.count == 1 && survivor[0].hasPrefix("ed|2|7--9|-|of the second|"), "\(survivor)")
            try save(bench, Self.entry(Int(edit[0]) ?? 0, edit[1], "\(Self.first), \(edit[2])"), reversed)
            let told = try bench.tool(["import", "r.bib"] + way)
            let now = try works(bench)
            #expect(told.status == 3 && now.contains(survivor[0]), "\(told.stderr) \(reversed) \(way): \(now)")
            // What was purged stays deleted, and the import says so.
            if told.stderr.contains("was purged, so it stays deleted") { continue }
            #expect(now.count == 2 && told.stderr.contains("conflict"), "\(told.stderr) \(reversed) \(way): \(now)")
            let back = "ed|\(edit[0])|\(edit[1])|of the first|-|[\"Attachments/one.pdf\"]"
            #expect(now.contains(back), "\(reversed) \(way): \(now)")
        }
    }

    /// The entry of the survivor is not in the file any more.
    @Test(arguments: ["1 1--2", "5 1--2"])
    func theOnlyEntryLeft_isItsDeletedWork(edit: String) throws {
        let edit = edit.split(separator: " ").map(String.init)
        let bench = try prepare(false)
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-incoming")
        let survivor = try works(bench)
        try bench.write("r.bib", Self.entry(Int(edit[0]) ?? 0, edit[1], "\(Self.first), note={n}"))
        try bench.tool(exit: 3, "import", "r.bib")
        let now = try works(bench)
        #expect(survivor.count == 1 && now.count == 2 && now.contains(survivor[0]), "\(now)")
    }

    /// The second entry came later, and stood beside the first one; a plain import came between, or not.
    @Test(arguments: [false, true], [false, true])
    func anEntryThatGoes_isNotTakenForTheOtherOneOfItsKey(isPlainFirst: Bool, isRekeyed: Bool) throws {
        let bench = try Workbench()
        for name in ["one.pdf", "two.pdf"] { try bench.write(name, "%PDF \(name)") }
        try bench.write("r.bib", Self.entry(1, "1--2", Self.first))
        try bench.tool(exit: 0, "import", "--create", "r.bib")
        try bench.shell("sleep 0.05")
        try save(bench, Self.entry(1, "1--2", Self.first), false)
        try bench.tool(exit: 3, "import", "r.bib")
        let next = Self.entry(5, "1--2", "annote={of the first}").replacing("{ed,", with: "{z9,")
        try save(bench, isRekeyed ? next : "@misc{other, title={Another thing}}\n", false)
        if isPlainFirst { try bench.tool("import", "r.bib") }
        let told = try bench.tool("import", "--mirror", "r.bib")
        #expect(try works(bench).contains(Self.survivor))
        #expect(told.status == (isRekeyed ? 3 : 0), "\(told.stderr)")
        #expect(told.stderr.contains("1 file did not go over") == isRekeyed, "\(told.stderr)")
    }

    /// One of two entries of a key is deleted and comes back as another work; the other one was corrected before.
    @Test func anEntryWithAFileOfItsOwn_takesOverNoFileThatAnotherEntryHas() throws {
        let bench = try Workbench()
        func save(_ volumes: (a: Int, c: Int)) throws {
            func entry(_ name: String, _ volume: Int, _ pages: String) -> String {
                "@article{ed, author={Zoe, Bo}, title={Editorial}, year={2002}, journal={Annals}, volume={\(volume)}, "
                    + "pages={\(pages)}, mark={\(name)}, file={\(name).pdf}}\n"
            }
            try bench.write("r.bib", entry("a", volumes.a, "1--9") + entry("c", volumes.c, "21--29"))
        }
        for name in ["a", "c"] { try bench.write("\(name).pdf", "%PDF \(name)") }
        try save((1, 3))
        try bench.tool(exit: 3, "import", "--create", "r.bib")
        try save((1, 13))
        try bench.tool("import", "r.bib")
        let isA = "type = 'Publication' AND fields ->> 'mark' = 'a'"
        let id = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE \(isA)\"").dropLast()
        try bench.tool(exit: 0, "store", "delete", "\(id)")
        try save((11, 13))
        try bench.tool(exit: 3, "import", "--mirror", "r.bib")
        let links = try bench.shell("sqlite3 store.db \"SELECT fields ->> 'linkedFiles' FROM record WHERE \(isA)\"")
        #expect(links == "[\"Attachments/a.pdf\"]\n")
    }
}
