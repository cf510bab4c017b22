import TestSupport
import Testing

/// Rows that other rows name: a publication with a note, a file that a conflict or an event names, an event with a photo.
@Suite struct CommandsNamedRowTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write(
            "L/library.bib", "@book{k,title={T},author={A},year=1990}\n@book{l,title={U},author={B},year=1991}\n")
        try bench.write("L/notes.json", "[{\"citeKey\":\"k\",\"note\":\"n\"}]")
        try bench.write("p/v.pdf", "one")
        try bench.write("q/v.pdf", "two")
        let walk = "{\"time\":\"2026-03-01T10:00:00+01:00\",\"type\":\"walk\",\"photo\":\"w.jpg\"}\n"
        try bench.write("D/2026-03-01.jsonl", walk)
        try bench.write("D/w.jpg", "walk")
        try bench.write("E/2026-03-02.jsonl", walk.replacing("03-01", with: "03-02"))
        try bench.write("E/w.jpg", "another walk")
        try bench.shell(
            """
            $T import -q --create L --attachments p || [ $? = 3 ]
            $T import -q --attachments q || [ $? = 3 ]
            for d in D E; do $T import -q $d || [ $? = 3 ]; done
            $T export -q -o good || [ $? = 3 ]
            $T hub init -q hub.db
            """)
        return bench
    }

    private static let damages = [
        "UPDATE record SET fields = '{' WHERE type = 'Publication' AND fields LIKE '%\"k\"%'",
        "UPDATE record SET field_times = '{' WHERE type = 'Publication' AND fields LIKE '%\"k\"%'",
        "UPDATE asset SET size = -1 WHERE path LIKE '%/v.pdf'",
        "UPDATE asset SET sha256 = 'zz' WHERE path LIKE '%/v_%'",
        "UPDATE asset SET size = -1 WHERE path LIKE '%/w.jpg'", "UPDATE asset SET size = -1 WHERE path LIKE '%/w_%'",
        "UPDATE record SET fields = '{' WHERE type = 'PuppyEvent' AND fields LIKE '%03-01%'",
        "UPDATE record SET fields = '{' WHERE type = 'PuppyEvent' AND fields LIKE '%03-02%'",
    ]

    /// Each does its work as far as it can, and says so.
    @Test(arguments: damages.indices)
    func aDamagedRowThatOthersName_stopsNoCommand(_ number: Int) throws {
        let damage = Self.damages[number]
        let bench = try bench()
        try bench.shell("sqlite3 store.db \"\(damage)\"")
        for line in [
            "store info", "conflicts list", "store digest", "export -o e", "export -o i --format imbib",
            "export -o n --only notes", "import L", "import D", "import E", "restore good",
            "restore good --dry-run", "sync --hub hub.db", "import --attachments q",
        ] {
            let told = try bench.tool(line.split(separator: " ").map(String.init))
            #expect([0, 3].contains(told.status), "\(damage), \(line): \(told.status) \(told.stderr)")
        }
        #expect(try bench.exists("e/library.bib") && bench.exists("e/damaged.jsonl"), "\(damage)")
    }
}
