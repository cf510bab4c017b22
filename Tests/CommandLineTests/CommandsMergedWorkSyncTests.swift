import TestSupport
import Testing

/// A device merges one work into another while the others go on to write the one that is merged.
@Suite struct CommandsMergedWorkSyncTests {
    private static let kept = "@misc{k1, author={Smith, Ann}, title={Editorial}, year={2001}, journal={Letters}}\n"

    private static func merged(_ fields: String) -> String {
        "@misc{k1, author={Zed, Bo}, title={The study}, year={1992}\(fields)}\n"
    }

    /// The devices, each with a file of its own that is so many hours old, after their first sync and the merge on A.
    private func devices(_ files: [(text: String, age: Int)]) throws -> (Workbench, [String]) {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        let names = ["a", "b", "c"].prefix(files.count).map { "\($0).db" }
        for (name, file) in zip(names, files) {
            try bench.write("\(name).bib", file.text)
            try bench.shell("touch -d '2026-11-01 00:00:00 -\(file.age) hours' \(name).bib")
            try bench.tool(exit: 3, "import", "--create", "--store", name, "\(name).bib")
            try bench.tool("sync", "--hub", "hub.db", "--store", name)
        }
        let told = try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge", "--store", "a.db")
        #expect(told.stderr.contains("author, title, year"), "\(told.stderr)")
        for name in names + names { try bench.tool("sync", "--store", name) }
        return (bench, names)
    }

    private func living(_ bench: Workbench, _ store: String, _ field: String) throws -> String {
        try bench.shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.title'), ifnull(json_extract(fields, '$.\(field)'), '-')
            FROM record WHERE type = 'Publication' AND deleted_at IS NULL"
            """)
    }

    /// Which work the survivor is stays as it says, also by the identifier that it does not have.
    @Test(arguments: [[3, 2, 1], [3, 1, 2], [1, 2, 3], [2, 3, 1], [1, 1, 1]])
    func theWorkThatStays_getsNoIdentifierOfTheOther(ages: [Int]) throws {
        let (bench, names) = try devices([
            (Self.merged(", doi={10.55/w2}") + Self.kept, ages[0]),
            (Self.merged(", doi={10.55/w2}, keywords={x}") + Self.kept, ages[1]),
            (Self.kept + Self.merged(""), ages[2]),
        ])
        for name in names { #expect(try living(bench, name, "doi") == "Editorial|-\n", "\(name)") }
        let digests = try Set(names.map { try bench.digest($0) })
        #expect(digests.count == 1)
    }

    /// A version of which the merge had not heard, as old as the one that it took: files that were unpacked have equal times.
    @Test(arguments: [0, 1])
    func aVersionOfOneTime_thatTheMergeHadNotHeardOf_isNotLost(age: Int) throws {
        let (bench, names) = try devices([
            (Self.merged(", doi={10.55/w2}") + Self.kept, 1),
            (Self.merged(", doi={10.55/w2}, abstract={newer}") + Self.kept, age),
        ])
        for name in names { #expect(try living(bench, name, "abstract") == "Editorial|newer\n", "\(name)") }
    }
}
