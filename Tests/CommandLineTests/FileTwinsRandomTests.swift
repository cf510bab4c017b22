import BackupKit
import TestSupport
import Testing

/// Works of one title, year and key in one file, of which a command has renamed or removed some: later edits of their entries
/// never mix two of them, whichever stands first.
@Suite struct FileTwinsRandomTests {
    private struct Work {
        let name: String
        var volume: Int
        var pages: String
        var note = ""
        var words: [String] = []
        /// All that the entry has ever said.
        var said: Set<String> = []

        var entry: String {
            let keywords = words.isEmpty ? "" : ", keywords={\(words.joined())}"
            let more = (note.isEmpty ? "" : ", note={\(note)}") + keywords
            return "@article{ed, author={Zoe, Bo}, title={Editorial}, year={2002}, journal={Annals}, "
                + "volume={\(volume)}, pages={\(pages)}, mark={\(name)}, file={\(name).pdf}\(more)}\n"
        }

        mutating func edit(_ round: Int, _ random: inout SeededGenerator) {
            switch random.below(4) {
            case 0: words = ["word\(round)\(name)"]
            case 1: volume += 10
            case 2: pages = "\(volume)\(round)1--\(volume)\(round)9"
            default: note = "note \(round) of \(name)"
            }
            remember()
        }

        mutating func remember() { said.formUnion(["volume \(volume)", "pages \(pages)", "note \(note)"]) }
    }

    @Test(arguments: testSeeds(Workbench.isTorture ? 50 : 6))
    func theWorksOfOneKeyInAFile_areNeverMixed(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        var works = ["a", "b", "c"].prefix(2 + random.below(2)).enumerated().map { place, name in
            Work(name: name, volume: place + 1, pages: "\(place)1--\(place)9")
        }
        for place in works.indices {
            works[place].remember()
            try bench.write("\(works[place].name).pdf", "%PDF \(works[place].name)")
        }
        func save() throws { try bench.write("r.bib", works.map(\.entry).joined()) }
        try save()
        try bench.tool(exit: 3, "import", "--create", "r.bib")
        var story: [String] = []
        for round in 1...(Workbench.isTorture ? 4 : 3) {
            story.append(try command(bench, &random))
            works.shuffle(using: &random)
            for place in works.indices where place == 0 || random.chance(4) { works[place].edit(round, &random) }
            works.shuffle(using: &random)
            try save()
            let way = random.chance(2) ? ["--mirror"] : []
            story.append("\(way)\n\(works.map(\.entry).joined())")
            let told = try bench.tool(["import", "r.bib"] + way)
            #expect(told.status == 0 || told.status == 3, "\(told.stderr)")
            try expectWholeWorks(bench, works, story.joined(separator: "\n"))
        }
        try bench.tool(exit: 0, "store", "check")
    }

    /// A command of somebody about one of the works.
    private func command(_ bench: Workbench, _ random: inout SeededGenerator) throws -> String {
        let ids = try bench.shell(
            "sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication' AND deleted_at IS NULL\""
        ).split(separator: "\n").map(String.init)
        guard !ids.isEmpty else { return "none" }
        let id = ids[random.below(ids.count)]
        switch random.below(6) {
        case 0, 1, 2:
            let choices = ["rename-existing", "rename-incoming", "keep-existing", "keep-incoming"]
            let choice = choices[random.below(choices.count)]
            let list = try bench.tool("conflicts", "list").stdout
            guard let number = list.firstMatch(of: /([0-9]+)  publication/)?.1 else { return "none" }
            return "\(choice) \(try bench.tool("conflicts", "resolve", "\(number)", "--with", choice).status)"
        case 3: return "delete \(try bench.tool("store", "delete", id).status)"
        case 4:
            try bench.tool("store", "delete", id)
            return "purge \(try bench.tool("store", "purge", "--confirm", id).status)"
        default: return "set-local \(try bench.tool("store", "set-local", id).status)"
        }
    }

    private func expectWholeWorks(_ bench: Workbench, _ works: [Work], _ story: String) throws {
        let columns = ["mark", "volume", "pages", "note", "keywords", "linkedFiles"]
            .map { "ifnull(json_extract(fields, '$.\($0)'), '')" }
        let stored = try bench.shell(
            """
            sqlite3 store.db "SELECT \(columns.joined(separator: ", ")) FROM record
            WHERE type = 'Publication' AND deleted_at IS NULL"
            """)
        for line in stored.split(separator: "\n") {
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let work = try #require(works.first { $0.name == parts[0] })
            let said = ["volume \(parts[1])", "pages \(parts[2])", "note \(parts[3])"]
            #expect(work.said.isSuperset(of: said), "\(line)\n\(story)")
            #expect(parts[4].isEmpty || parts[4].hasSuffix(work.name), "\(line)\n\(story)")
            // A decision gives the files of both to the one that stays.
            let links = "[\"Attachments/\(work.name).pdf\"]"
            #expect(story.contains("keep-") || ["", links].contains(parts[5]), "\(line)\n\(story)")
        }
    }
}
