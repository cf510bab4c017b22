import TestSupport
import Testing

/// A file corrects the key, the title or the year of an entry, and another device deletes the entry as it was.
@Suite struct CommandsDeletedUnheardTests {
    private static let corrections = [("K1", "K2"), ("mice", "micee"), ("2001", "2003")]

    @Test(arguments: corrections, [["a", "b", "a"], ["b", "a", "b"]])
    func whatWasDeletedAsItWas_staysAsItIs_andThatIsSaid(_ change: (old: String, new: String), order: [String]) throws {
        let bench = try Workbench()
        let text = "@article{K1, title={Growth in mice}, author={Smith, Ann}, year={2001}, note={it}}\n"
        try bench.write("lib.bib", text)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "lib.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for store in ["a", "b"] { try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "\(store).db") }
        try bench.write("lib.bib", text.replacing(change.old, with: change.new))
        try bench.tool(exit: 0, "import", "--mirror", "--store", "a.db", "lib.bib")
        try bench.delete("b.db", note: "it")
        let told = try order.map { try bench.tool("sync", "--store", "\($0).db") }
        #expect(told.map(\.status) == [0, 3, 0], "\(told)")
        #expect(told[1].stderr.contains("which is this one now") && told[1].stderr.contains("store delete"))
        for store in ["a", "b"] { #expect(try bench.notes("\(store).db") == "it\n", "\(store)") }
        // The advice ends it everywhere.
        let advice = try #require(
            told[1].stderr.split(separator: "'").first { $0.hasPrefix("backup-tool store delete") })
        try bench.shell("$T \(advice.dropFirst("backup-tool ".count))")
        for store in order + order { try bench.tool(exit: 0, "sync", "--store", "\(store).db") }
        for store in ["a", "b"] { #expect(try bench.notes("\(store).db").isEmpty, "\(store)") }
    }
}
