import TestSupport
import Testing

/// Two entries of one cite key may be told apart by little: one has a DOI that the other lacks, or they are volumes of one
/// ISBN. A delete of one is no delete of the other, on whatever device, and what was deleted stays so.
@Suite struct CommandsDeletedTwinTests {
    static let pairs = [
        """
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/a}, note={one}}
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, note={two}}

        """,
        """
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, note={two}}
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, doi={10.1000/a}, note={one}}

        """,
        """
        @book{k, title={On pears}, author={Bee, Ann}, year=2004, isbn={9780306406157}, volume=1, note={one}}
        @book{k, title={On pears}, author={Bee, Ann}, year=2004, isbn={9780306406157}, volume=2, note={two}}

        """,
        """
        @book{k, title={On pears}, author={Bee, Ann}, year=2004, isbn={9780306406157}, volume=1, note={one}}
        @book{k, title={On plums}, author={Bee, Ann}, year=2005, isbn={9780306406157}, volume=2, note={two}}

        """,
    ]

    @Test(arguments: pairs, [("one", "two"), ("two", "one")])
    func theOtherOne_isAliveOnAllDevices(_ text: String, _ notes: (gone: String, kept: String)) throws {
        let bench = try Workbench()
        try bench.write("lib.bib", text)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool("import", "--create", "--store", "a.db", "lib.bib")
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "before.tar")
        try bench.tool("sync", "--hub", "hub.db", "--store", "a.db")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        try bench.tool("sync", "--hub", "hub.db", "--store", "b.db")
        try bench.tool("import", "--create", "--store", "c.db", "lib.bib")
        try bench.delete("a.db", note: notes.gone)
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "after.tar")
        for store in ["a", "b", "c", "a", "b", "c"] {
            try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db")
        }
        try bench.tool("import", "--store", "a.db", "lib.bib")
        for backup in ["before", "after"] { try bench.tool("restore", "--store", "b.db", "\(backup).tar") }
        try bench.tool("restore", "--create", "--store", "d.db", "after.tar")
        try bench.tool("sync", "--hub", "hub.db", "--store", "d.db")
        for store in ["a", "b", "c", "a"] { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
        for store in ["a", "b", "c", "d"] {
            #expect(try bench.notes("\(store).db") == notes.kept + "\n", "\(store)")
        }
        // And so is the other one, when it is deleted.
        try bench.delete("b.db", note: notes.kept)
        for store in ["b", "a", "c", "d"] { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
        try bench.tool("import", "--store", "c.db", "lib.bib")
        try bench.tool("restore", "--store", "d.db", "before.tar")
        for store in ["a", "b", "c", "d"] { #expect(try bench.notes("\(store).db").isEmpty, "\(store)") }
    }

    /// What the deleted one was before it got another key, the other one may be still.
    @Test(arguments: pairs[..<3], ["rename-existing", "rename-incoming"])
    func theOtherOne_isAlive_whenTheDeletedOneHadItsKey(text: String, choice: String) throws {
        let bench = try Workbench()
        try bench.write("lib.bib", text)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool("import", "--create", "--store", "a.db", "lib.bib")
        try bench.tool("sync", "--hub", "hub.db", "--store", "a.db")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--store", "a.db", "--with", choice, "--key", "k2")
        let renamed = try bench.shell(
            """
            sqlite3 a.db "SELECT json_extract(fields, '$.note') FROM record WHERE type = 'Publication' \
            AND deleted_at IS NULL AND json_extract(fields, '$.citeKey') = 'k2'"
            """)
        try bench.delete("a.db", note: String(renamed.dropLast()))
        try bench.tool("import", "--create", "--store", "b.db", "lib.bib")
        for store in ["a", "b", "a"] { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
        for store in ["a", "b"] {
            #expect(try bench.notes("\(store).db") == (renamed == "one\n" ? "two\n" : "one\n"), "\(store)")
        }
    }

    /// Of a set of two volumes each device had one.
    @Test func aDeleteOfAVolume_sparesTheOneThatAnotherDeviceHas() throws {
        let bench = try Workbench()
        let volumes = Self.pairs[2].split(separator: "\n").map { "\($0)\n" }
        for (store, text) in zip(["a", "b"], volumes) {
            try bench.write("\(store).bib", text)
            try bench.tool(exit: 0, "import", "--create", "--store", "\(store).db", "\(store).bib")
        }
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "a.db")
        try bench.delete("a.db", note: "one")
        for store in ["a", "b", "a"] { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
        for store in ["a", "b"] { #expect(try bench.notes("\(store).db") == "two\n", "\(store)") }
    }

    @Test(arguments: ["doi={10.1000/b}", "journal={Fruit}, doi={10.1000/b}", "journal={Fruit}, pages={7--9}"])
    func whatWasCorrectedInItsFile_staysDeleted(correction: String) throws {
        let bench = try Workbench()
        func entry(_ more: String) -> String {
            "@article{k, title={On pears}, author={Bee, Ann}, year=2004, \(more)}\n"
        }
        try bench.write("lib.bib", entry("note={one}"))
        try bench.tool(exit: 0, "import", "--create", "lib.bib")
        try bench.write("lib.bib", entry("note={one}, \(correction)"))
        try bench.tool(exit: 0, "import", "lib.bib")
        try bench.delete("store.db", note: "one")
        try bench.write("lib.bib", entry("note={one},  \(correction)") + "@misc{other, title={Other}}\n")
        try bench.tool("import", "lib.bib")
        #expect(try bench.notes("store.db") == "\n")
    }
}

extension Workbench {
    /// The notes of the living publications, a line each.
    func notes(_ store: String) throws -> String {
        try shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.note') FROM record \
            WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
            """)
    }

    /// Deletes the publication that has this note.
    func delete(_ store: String, note: String) throws {
        let id = try shell(
            """
            sqlite3 \(store) "SELECT ifnull(name, local_id) FROM record WHERE type = 'Publication' \
            AND deleted_at IS NULL AND json_extract(fields, '$.note') = '\(note)'"
            """)
        try tool(exit: 0, "store", "delete", "--store", store, "Library/" + id.dropLast())
    }
}
