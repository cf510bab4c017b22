import TestSupport
import Testing

/// Backups of several stores that have one work in other words: whichever is restored first, the store has it once.
@Suite struct CommandsRestoreOrderTests {
    private static let identifiers = [
        "doi={10.1000/1}", "pmid={123456}", "eprint={2001.00001}", "isbn={9780306406157}",
    ]

    private static func entry(_ more: [String], key: String = "k", type: String = "article") -> String {
        (["@\(type){\(key)", "author={A Smith}", "title={Editorial}", "year=2020"] + more).joined(separator: ", ")
            + "}\n"
    }

    /// Restores backups of stores that have these entries in each order; returns how many publications there are then.
    private func counts(_ files: [String], then more: (Workbench) throws -> Void = { _ in }) throws -> [[Int]: Int] {
        let bench = try Workbench()
        for (number, text) in files.enumerated() {
            try bench.write("\(number).bib", text)
            try bench.tool("import", "--create", "--store", "\(number).db", "\(number).bib")
            try bench.tool(exit: 0, "export", "--store", "\(number).db", "-o", "\(number).tar")
        }
        var found: [[Int]: Int] = [:]
        for order in Self.orders(files.count) {
            try bench.shell("rm -rf new.db*")
            for number in order {
                let told = try bench.tool("restore", "--create", "--store", "new.db", "\(number).tar")
                #expect(told.status == 0 || told.status == 3, "\(told.stderr)")
            }
            let again = try bench.tool("restore", "--store", "new.db", "\(order[0]).tar")
            #expect(again.status == 0, "\(order): \(again.stderr)")
            found[order] = Int(
                try bench.shell(
                    "sqlite3 new.db \"SELECT count(*) FROM record WHERE type = 'Publication' AND deleted_at IS NULL\""
                ).dropLast())
            try bench.tool(exit: 0, "store", "check", "--store", "new.db")
        }
        return found
    }

    private static func orders(_ count: Int) -> [[Int]] {
        (0..<count).reduce([[]]) { known, number in
            known.flatMap { order in
                (0...order.count).map { Array(order[..<$0]) + [number] + Array(order[$0...]) }
            }
        }
    }

    @Test func aWorkWithAndWithoutItsDOI_isOne() throws {
        let found = try counts([Self.entry(["doi={10.1/x}"]), Self.entry([])])
        #expect(found == [[0, 1]: 1, [1, 0]: 1])
    }

    @Test(arguments: testSeeds(3)) func aWorkWithAnyOfItsIdentifiers_isOneInAnyOrder(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let files = (0..<3).map { _ in
            Self.entry(Self.identifiers.filter { _ in random.below(2) == 0 }, type: "book")
        }
        let found = try counts(files)
        #expect(found.count == 6 && found.values.allSatisfy { $0 == 1 }, "\(files): \(found)")
    }

    /// Another key, another place, or two of them in one backup: nothing is merged.
    @Test func whatIsNotOneWork_staysTwo() throws {
        let other = try counts([Self.entry(["doi={10.1/x}"]), Self.entry(["journal={B}"], key: "other")])
        #expect(Set(other.values) == [2])
        let places = try counts([
            Self.entry(["doi={10.1/x}", "journal={Nature}"]), Self.entry(["journal={Annals of Botany}"]),
        ])
        #expect(Set(places.values) == [2])
        let both = try counts([Self.entry(["doi={10.1/x}"]), Self.entry(["doi={10.1/x}"]) + Self.entry([])])
        #expect(Set(both.values) == [2])
    }
}
