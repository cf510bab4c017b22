import TestSupport
import Testing

/// Two entries with one cite key that may be one work, on several devices: whatever a device has of them, and has done before it
/// met the others, each entry goes on to be itself.
@Suite struct CommandsTwinsApartTests {
    private static let pairs = CommandsDeletedTwinTests.pairs
    /// Only their place tells them apart, and the second one has an id that the first would never have.
    private static let ofOneTitle = """
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, journal={Fruit}, note={one}}
        @article{k, title={On pears}, author={Bee, Ann}, year=2004, note={two}}

        """
    private static let choices = [("one", "two"), ("two", "one")]

    private func sync(_ bench: Workbench, _ stores: String...) throws {
        for store in stores { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
    }

    /// A store `a` with both entries, which the hub has, too.
    private func bench(_ text: String) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", text)
        try bench.shell("touch -d '2024-01-01' lib.bib")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool("import", "--create", "--store", "a.db", "lib.bib")
        try sync(bench, "a")
        return bench
    }

    /// By a sync, and by a restore.
    @Test(arguments: pairs, ["one", "two"])
    func theOneThatADeviceHasAlone_isNotTheOther(text: String, own: String) throws {
        let bench = try bench(text)
        let entry = try #require(text.split(separator: "\n").first { $0.contains("={\(own)}") })
        try bench.write("own.bib", "\(entry)\n")
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "a.tar")
        for store in ["b", "c"] {
            try bench.tool(exit: 0, "import", "--create", "--store", "\(store).db", "own.bib")
        }
        try sync(bench, "b", "a", "b")
        try bench.tool("restore", "--store", "c.db", "a.tar")
        for store in ["a", "b", "c"] { #expect(try bench.notes("\(store).db") == "one\ntwo\n", "\(store)") }
    }

    /// Nor is the one that stays, when the other one was deleted before the first sync.
    @Test(arguments: pairs, choices)
    func aDeleteBeforeTheFirstSync_isOfThatOne(_ text: String, _ notes: (gone: String, kept: String)) throws {
        let bench = try bench(text)
        try bench.tool("import", "--create", "--store", "b.db", "lib.bib")
        try bench.delete("b.db", note: notes.gone)
        try sync(bench, "b", "a", "b", "a")
        for store in ["a", "b"] { #expect(try bench.notes("\(store).db") == notes.kept + "\n", "\(store)") }
    }

    @Test(arguments: pairs + [ofOneTitle], choices)
    func twoDeletesOnTwoDevices_leaveNone(_ text: String, _ notes: (first: String, second: String)) throws {
        let bench = try bench(text)
        try bench.tool("import", "--create", "--store", "b.db", "lib.bib")
        try bench.delete("a.db", note: notes.first)
        try sync(bench, "a")
        try bench.delete("b.db", note: notes.second)
        try sync(bench, "b", "a", "b", "a")
        for store in ["a", "b"] { #expect(try bench.notes("\(store).db").isEmpty, "\(store)") }
    }

    @Test(arguments: pairs, ["keep-existing", "keep-incoming"])
    func aDecisionBeforeTheFirstSync_isAboutThatOne(text: String, choice: String) throws {
        let bench = try bench(text)
        try bench.tool("import", "--create", "--store", "b.db", "lib.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--store", "b.db", "--with", choice)
        let kept = try bench.notes("b.db")
        try sync(bench, "b", "a", "b", "a")
        for store in ["a", "b"] {
            #expect(try bench.notes("\(store).db") == kept, "\(store)")
            #expect(try bench.json(exit: 0, "conflicts", "list", "--store", "\(store).db")["conflicts"]?.array == [])
        }
    }
}
