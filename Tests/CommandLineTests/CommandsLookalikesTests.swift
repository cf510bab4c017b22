import TestSupport
import Testing

/// Two entries of one file that may be one work, for one of them says less: neither takes what belongs to the other.
@Suite struct CommandsLookalikesTests {
    private static let whole =
        "@article{k, title={T}, author={A, B}, year={2011}, journal={J}, note={whole}, abstract={A1}}"
    private static let bare = "@article{k, title={T}, author={A, B}, year={2011}, note={bare}, abstract={A2}}"
    private static let pairs = [(whole, bare), (bare, whole)]

    private func text(_ bench: Workbench, _ store: String) throws -> String {
        try bench.tool(exit: 0, "export", "--store", store, "-o", "x.tar", "--force")
        return try bench.shell("tar xOf x.tar library.bib | grep ^@")
    }

    @Test(arguments: pairs)
    func theDeletedOneIsNotWrittenOverTheOther(gone: String, kept: String) throws {
        let bench = try Workbench()
        try bench.write("f.bib", "\(gone)\n\(kept)\n")
        try bench.tool(exit: 3, "import", "--create", "--store", "a.db", "f.bib")
        try bench.delete("a.db", note: gone.contains("{bare}") ? "bare" : "whole")
        try bench.write("f.bib", "\(gone)\n")
        try bench.tool("import", "--overwrite", "--store", "a.db", "f.bib")
        #expect(try text(bench, "a.db").split(separator: "\n").sorted() == [gone, kept].sorted().map { Substring($0) })
    }

    /// One of them goes from the mirrored file, or its title is corrected there, and another device has written into it.
    @Test(arguments: pairs, [true, false])
    func whatWasWrittenIntoOne_doesNotComeIntoTheOther(_ pair: (one: String, other: String), isGone: Bool) throws {
        let bench = try Workbench()
        let written = pair.one.replacing("}}", with: "}, keywords={mine}}")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("f.bib", "\(pair.one)\n\(pair.other)\n")
        try bench.tool(exit: 3, "import", "--create", "--store", "a.db", "f.bib")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for store in ["a", "b"] { try bench.tool("sync", "--hub", "hub.db", "--store", "\(store).db") }
        try bench.write("g.bib", "\(written)\n\(pair.other)\n")
        try bench.tool("import", "--store", "b.db", "g.bib")
        let corrected = pair.one.replacing("{T}", with: "{T corrected}")
        try bench.write("f.bib", (isGone ? "" : corrected + "\n") + pair.other + "\n")
        try bench.tool("import", "--mirror", "--store", "a.db", "f.bib")
        let told = try ["a", "b", "a", "b"].map { try bench.tool("sync", "--store", "\($0).db") }
        if isGone { #expect(told.contains { $0.stderr.contains("quarantine") }, "\(told)") }
        for store in ["a", "b"] {
            let lines = try text(bench, "\(store).db").split(separator: "\n").map(String.init)
            #expect(lines.contains(pair.other), "\(store): \(lines)")
            #expect(lines.count == (isGone ? 1 : 2), "\(store): \(lines)")
            #expect(isGone || lines.contains { $0.contains("{T corrected}") && $0.contains("{mine}") }, "\(lines)")
        }
    }
}
