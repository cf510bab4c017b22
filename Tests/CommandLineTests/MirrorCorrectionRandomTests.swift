import BackupKit
import TestSupport
import Testing

/// Random corrections in a mirrored file: what was linked to a work that is still in it is linked to a living record of it.
@Suite struct MirrorCorrectionRandomTests {
    private struct Work {
        let number: Int
        var key: String
        var title: String
        var year: Int
        var doi: String?
        var pages: String
        /// What a person adds and drops: fields, and keywords.
        var extras: [String: String] = [:]
        var words: [String] = []

        var entry: String {
            var doi = doi.map { ",\n  doi = {\($0)}" } ?? ""
            for (name, value) in extras.sorted(by: { $0.key < $1.key }) { doi += ",\n  \(name) = {\(value)}" }
            if !words.isEmpty { doi += ",\n  keywords = {\(words.joined(separator: ", "))}" }
            return "@article{\(key),\n  title = {\(title)},\n  author = {Name\(number), Jo},\n  year = \(year),\n"
                + "  pages = {\(pages)}\(doi)\n}\n"
        }
    }

    private static let things = ["mice", "stars", "rivers", "languages", "prices", "moss", "tides", "glass"]

    @Test(arguments: testSeeds(Workbench.isTorture ? 60 : 4))
    func whatIsLinkedToAWork_staysWithIt(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        var works = Self.things.enumerated().map { number, thing in
            Work(
                number: number, key: "k\(number)", title: "On the long history of \(thing)", year: 1990 + number,
                doi: number % 2 == 0 ? "10.1000/\(number)" : nil, pages: "\(number * 10 + 1)--\(number * 10 + 9)",
                extras: ["note": "n\(number)", "abstract": "a\(number)"], words: ["w\(number)", "v\(number)"])
        }
        func save() throws { try bench.write("lib/a.bib", works.map(\.entry).joined(separator: "\n")) }
        try save()
        let notes = works.map { "{\"citeKey\":\"\($0.key)\",\"note\":\"note \($0.number)\"}" }
        try bench.write("lib/notes.json", "[\(notes.joined(separator: ","))]")
        for work in works { try bench.write("pdfs/\(work.key).pdf", "%PDF \(work.number)") }
        try bench.shell("touch -d '1 hour ago' lib/*")
        try bench.tool(exit: 0, "import", "--create", "lib", "--attachments", "pdfs")
        var story: [String] = []
        for round in 0..<(Workbench.isTorture ? 8 : 4) {
            for _ in 0...random.below(3) {
                let place = random.below(works.count)
                // One correction of an entry between two imports; two of them may be another work.
                guard !story.contains("\(round) \(works[place].number)") else { continue }
                story.append("\(round) \(works[place].number)")
                switch random.below(7) {
                case 0: works[place].key = "r\(round)n\(works[place].number)"
                case 1: works[place].title += ["", " and others", ": a study", " again"][random.below(4)]
                case 2: works[place].year += 1
                case 3: works[place].doi = "10.1000/\(round).\(works[place].number)"
                case 4: works[place].pages = "\(round + 200)--\(round + 220)"
                case 5:
                    (works[place].key, works[place].pages) = ("p\(round)n\(works[place].number)", works[place].pages)
                default: if works.count > 4 { works.remove(at: place) }
                }
                story.append("\(works.map(\.key))")
            }
            for _ in 0...random.below(3) {
                let place = random.below(works.count)
                let name = ["note", "abstract", "langid"][random.below(3)]
                switch random.below(4) {
                case 0: works[place].extras[name] = "\(name) \(round)"
                case 1: works[place].words.append("r\(round)")
                case 2: if !works[place].words.isEmpty { works[place].words.removeFirst() }
                default: works[place].extras[name] = nil
                }
                story.append("\(works[place].key): \(works[place].extras) \(works[place].words)")
            }
            works.shuffle(using: &random)
            try save()
            if random.chance(3) { try bench.tool("import", "lib/a.bib") }
            let before = try bench.digest()
            let told = try bench.tool("import", "--mirror", "lib/a.bib", "--json")
            #expect(told.status == 0, "\(story): \(told.stdout)\(told.stderr)")
            try expectLinks(bench, works, "\(story)")
            try expectFields(bench, works, "\(story)")
            let after = try bench.digest()
            let batch = told.stdout.firstMatch(of: /"batch": ?([0-9]+)/)?.1
            if let batch, before != after {
                try bench.tool(exit: 0, "undo", "--batch", "\(batch)")
                #expect(try bench.digest() == before)
                try bench.tool(exit: 0, "undo", "--redo")
            }
            #expect(try bench.digest() == after)
            let again = try bench.tool("import", "--mirror", "lib/a.bib")
            #expect(again.status == 0, "\(again.stderr)")
            #expect(try bench.digest() == after, "\(story)")
        }
        try bench.tool(exit: 0, "store", "check")
    }

    /// What the file has dropped is gone, also after a correction.
    private func expectFields(_ bench: Workbench, _ works: [Work], _ story: String) throws {
        let names = ["note", "abstract", "langid", "keywords"]
        let columns = (["author"] + names).map { "ifnull(json_extract(fields, '$.\($0)'), '-')" }
        let stored = try bench.shell(
            """
            sqlite3 store.db "SELECT \(columns.joined(separator: ", ")) FROM record
            WHERE type = 'Publication' AND deleted_at IS NULL"
            """)
        let expected = works.map { work in
            let keywords = work.words.isEmpty ? "-" : work.words.sorted().joined(separator: ", ")
            return (["Name\(work.number), Jo"] + names.dropLast().map { work.extras[$0] ?? "-" } + [keywords])
                .joined(separator: "|")
        }
        let lines = stored.split(separator: "\n").map { line in
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let words = parts[parts.count - 1].split(separator: ", ").sorted().joined(separator: ", ")
            return (parts.dropLast() + [words]).joined(separator: "|")
        }
        #expect(lines.sorted() == expected.sorted(), "\(story)")
    }

    private func expectLinks(_ bench: Workbench, _ works: [Work], _ story: String) throws {
        let linked = try bench.shell(
            """
            sqlite3 store.db "SELECT json_extract(p.fields, '$.author'), json_extract(p.fields, '$.citeKey'),
            ifnull(json_extract(p.fields, '$.linkedFiles'), '-'), ifnull((SELECT group_concat(json_extract(n.fields, '$.note'))
            FROM record n WHERE n.type = 'Note' AND n.deleted_at IS NULL
            AND json_extract(n.fields, '$.publication') = p.local_id), '-')
            FROM record p WHERE p.type = 'Publication' AND p.deleted_at IS NULL"
            """)
        let expected = works.map {
            "Name\($0.number), Jo|\($0.key)|[\"Attachments/k\($0.number).pdf\"]|note \($0.number)"
        }
        #expect(linked.split(separator: "\n").map(String.init).sorted() == expected.sorted(), "\(story)")
    }
}
