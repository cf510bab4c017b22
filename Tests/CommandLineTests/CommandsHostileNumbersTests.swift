import BackupKit
import TestSupport
import Testing

/// Numbers at the ends of their range, wherever somebody could write one.
@Suite struct HostileNumberTests {
    /// Each must end in one of our own ways, whatever it says.
    private static let commands = [
        "store info", "store digest", "store changes", "conflicts", "undo --list", "dedup --dry-run", "import e.jsonl",
        "import extra.bib --attachments pdfs", "sync --hub hub.db", "export -q -o out", "events export -o days",
        "vault backup -q --vault v", "restore backup --dry-run", "restore backup --simulate 2 --hub hub.db",
        "store delete e1", "store set-local e2", "store enable-cloud e2", "undo", "diff backup store.db",
        "sync --store B.db --hub hub.db", "store info --store B.db",
    ]

    @Test func noIntegerOfAStoreOrHubEndsTheProcess() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        try bench.write(
            "e.jsonl",
            (1...3).map { "{\"id\":\"e\($0)\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n" }.joined())
        try bench.write("extra.bib", "@article{extra, title={Extra}}\n")
        try bench.write("pdfs/extra.pdf", "extra")
        try bench.shell(
            """
            $T import -q e.jsonl; $T hub init hub.db 2>&1; $T sync -q --hub hub.db || :
            $T store init -q --store B.db; $T sync -q --store B.db --hub hub.db || :
            $T export -q -o backup || :; $T vault init -q --vault v; $T vault backup -q --vault v || :
            $T store set-local -q e3; $T store delete -q e3
            mkdir keep; cp -a store.db* hub.db* B.db* v keep/
            """)
        var lies: [String] = []
        for database in ["store.db", "hub.db"] {
            let columns = try bench.shell(
                """
                sqlite3 \(database) "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c
                    WHERE m.type = 'table' AND c.type = 'INTEGER' ORDER BY 1"
                """)
            for column in columns.split(separator: "\n") {
                let parts = column.split(separator: ".")
                for value in [Int64.min, -1, 0, 1, .max] {
                    lies.append("sqlite3 \(database) 'UPDATE OR IGNORE \(parts[0]) SET \(parts[1]) = \(value)'")
                }
            }
            for value in [Int32.min, -1, .max] { lies.append("sqlite3 \(database) 'PRAGMA user_version = \(value)'") }
        }
        #expect(lies.count > 200)
        var random = SeededGenerator(seed: testSeed())
        for lie in Workbench.isTorture ? lies : (0..<2).map({ _ in lies[random.below(lies.count)] }) {
            countRounds()
            let ends = try bench.shell(
                """
                rm -rf store.db* hub.db* B.db* v out days; cp -a keep/* .; \(lie) || :
                while read -r words; do
                    r=0; timeout 60 $T $words > said 2>&1 < /dev/null || r=$?
                    case $r in 0|1|3|4|10|11|64|75) ;; *) echo "$r: $words"; tail -3 said;; esac
                done <<'END'
                \(Self.commands.joined(separator: "\n"))
                END
                """, timeout: 600)
            #expect(ends == "", "\(lie)")
        }
    }

    @Test func fileTimesAtTheEndsOfTheirRange_areTaken() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.shell(
            """
            mkdir -p folder/Attachments; cd folder
            printf '@article{a, title={A}}\\n' > old.bib; printf '@article{b, title={B}}\\n' > new.bib
            printf '{"id":"e1","time":"2026-02-14T15:00:00+01:00","type":"tuin"}\\n' > day.jsonl
            printf x > Attachments/a.pdf; printf y > Attachments/b.pdf; printf z > Attachments/c.pdf
            touch -d '1901-12-13' old.bib Attachments/a.pdf; touch -d '2446-05-10' new.bib day.jsonl Attachments/b.pdf
            touch -d '1969-12-31 23:59:59.999999999 UTC' Attachments/c.pdf
            """)
        // b.pdf and c.pdf belong to no publication, and new.bib is dated in the future.
        try bench.tool(exit: 3, "import", "folder/old.bib", "folder/day.jsonl", "--attachments", "folder/Attachments")
        #expect([0, 3].contains(try bench.tool("import", "folder/new.bib").status))
        for format in ["tar", "tar.zst", "zip", "dir"] {
            try bench.tool(exit: 0, "export", "--format", format, "-o", "out-\(format)")
            try bench.tool(exit: 0, "verify", "out-\(format)")
            try bench.tool(exit: 0, "restore", "--create", "out-\(format)", "--store", "new-\(format).db")
        }
        try bench.tool(exit: 0, "vault", "init", "--vault", "v")
        for _ in 0..<2 { try bench.tool(exit: 0, "vault", "backup", "--vault", "v") }
        #expect(try Set(["store", "new-zip", "new-dir"].map { try bench.digest("\($0).db") }).count == 1)
    }

    /// The number of the next conflict is no disk that is full.
    @Test(arguments: [
        "UPDATE sqlite_sequence SET seq = 9223372036854775807", "UPDATE sqlite_sequence SET seq = -5",
        "DELETE FROM sqlite_sequence", "UPDATE conflict_number SET id = 9223372036854775807 WHERE id = 1",
    ])
    func whateverTheStoreSaysOfItsLastConflict_theNextOneGetsANumber(_ lie: String) throws {
        let bench = try Workbench()
        func book(_ key: String, _ title: String) -> String { "@book{\(key), title={\(title)}, author={\(title) A}}\n" }
        try bench.write("a.bib", book("k", "Ants") + book("l", "Bees"))
        try bench.write("b.bib", book("k", "Wasps"))
        try bench.write("c.bib", book("l", "Flies"))
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 3, "import", "b.bib")
        try bench.shell("sqlite3 store.db \"\(lie)\"")
        try bench.tool(exit: 3, "import", "c.bib")
        let listed = try bench.json(exit: 0, "conflicts", "list")
        #expect(listed["conflicts"]?.array?.count == 2, "\(listed)")
    }
}
