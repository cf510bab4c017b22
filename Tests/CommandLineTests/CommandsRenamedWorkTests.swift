import TestSupport
import Testing

/// A decision gives one of two works another cite key. A device that has the same file and has not heard of it yet keeps the
/// old one, and its copy of the file may have been saved later.
struct CommandsRenamedWorkTests {
    private static let first = "@article{k,\n author={Au, A},\n title={One},\n year={2001}\n}\n"
    private static let second = "@article{k,\n author={Au, B},\n title={Two},\n year={2002}\n}\n"
    private static let noted = "@article{k,\n author={Au, B},\n title={Two},\n year={2002},\n note={n}\n}\n"

    private static let copies = [first + second, first + noted, second, noted]

    private func keys(of store: String, _ bench: Workbench) throws -> String {
        try bench.shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.title') || ' ' || json_extract(fields, '$.citeKey')
                FROM record WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1" | tr '\\n' ' '
            """)
    }

    @Test(arguments: ["rename-incoming", "rename-existing"], copies)
    func aRenamedWork_isOneWorkOnADeviceWithALaterCopyOfItsFile(choice: String, copy: String) throws {
        for way in ["sync", "restore", "late sync", "late restore"] {
            let bench = try Workbench()
            try bench.write("r.bib", Self.first + Self.second)
            try bench.write("o/r.bib", copy)
            try bench.shell("touch -d '2026-03-01 12:00' r.bib; touch -d '2026-03-02 12:00' o/r.bib")
            try bench.tool(exit: 0, "hub", "init", "hub.db")
            try bench.tool(exit: 3, "import", "--store", "a.db", "--create", "r.bib")
            func takeCopy() throws { _ = try bench.tool("import", "--store", "b.db", "--create", "o/r.bib") }
            if !way.hasPrefix("late") { try takeCopy() }
            try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice, "--store", "a.db")
            // A copy that was saved after the decision is no newer, either.
            if way.hasPrefix("late") {
                try bench.shell("sleep 0.05; touch o/r.bib; sleep 0.05")
                try takeCopy()
            }
            let decided = try keys(of: "a.db", bench)
            #expect(decided.contains("ka"), "\(decided)")
            if way.hasSuffix("restore") {
                try bench.tool(exit: 0, "export", "--store", "b.db", "-o", "b.zip")
                _ = try bench.tool("restore", "b.zip", "--store", "a.db")
            } else {
                for store in ["a.db", "b.db", "a.db", "b.db"] {
                    _ = try bench.tool("sync", "--store", store, "--hub", "hub.db")
                }
                #expect(try keys(of: "b.db", bench) == decided, "\(way)")
                let waiting = try bench.tool(exit: 0, "conflicts", "list", "--store", "b.db").stdout
                #expect(!waiting.contains("Two"), "\(way) \(waiting)")
            }
            #expect(try keys(of: "a.db", bench) == decided, "\(way)")
        }
    }

    /// A decision that leaves a cite key as it is hides no later change of it.
    @Test(arguments: ["keep-both", "keep-existing", "keep-incoming", "merge", "rename-existing", "rename-incoming"])
    func aKeyThatAFileChangesAfterADecision_isTaken(choice: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.first)
        try bench.write("b.bib", Self.second)
        try bench.shell("touch -d '2026-03-01 12:00' a.bib b.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 3, "import", "b.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice)
        for (file, text) in [("a.bib", Self.first), ("b.bib", Self.second)] {
            try bench.write(file, text.replacing("{k,", with: "{later\(file.prefix(1)),"))
            try bench.tool("import", file)
            #expect(try keys(of: "store.db", bench).contains("later\(file.prefix(1))"), "\(file)")
        }
    }
}
