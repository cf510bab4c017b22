import BackupKit
import TestSupport
import Testing

/// What a mirrored file drops after its entry was corrected, or after somebody has changed the publication elsewhere.
@Suite struct CommandsMirrorDropTests {
    private static let entry =
        "@article{k, author={Ann One}, title={A study of rivers}, year={1991}, doi={10.1/z}, abstract={s}, "
        + "keywords={v, w}, note={n}}\n"
    private static let corrections = [
        ("{k,", "{k2,"), ("study of rivers", "study of the rivers"), ("1991", "1992"), ("10.1/z", "10.1/zz"),
    ]

    private func publications(_ bench: Workbench) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT fields FROM record WHERE type = 'Publication' AND deleted_at IS NULL\"")
    }

    @Test(arguments: corrections.indices, [false, true])
    func whatIsDroppedAfterACorrection_goes(correction: Int, isImportedFirst: Bool) throws {
        let bench = try Workbench()
        try bench.write("l.bib", Self.entry)
        try bench.tool(exit: 0, "import", "--create", "--mirror", "l.bib")
        var text = Self.entry.replacing(Self.corrections[correction].0, with: Self.corrections[correction].1)
        try bench.write("l.bib", text)
        if isImportedFirst { try bench.tool("import", "l.bib") }
        try bench.tool(exit: 0, "import", "--mirror", "l.bib")
        for dropped in [", note={n}", "v, ", ", keywords={w}", "abstract={s}"] {
            text = text.replacing(dropped, with: "")
            try bench.write("l.bib", text)
            let told = try bench.tool(exit: 0, "import", "--mirror", "l.bib")
            #expect(told.stderr.contains("1 updated"), "\(told.stderr)")
            let rest = try publications(bench)
            #expect(!rest.contains(dropped) && rest.matches(of: /Ann One/).count == 2, "\(rest)")
        }
        #expect(try !publications(bench).contains("\"keywords\""))
        try bench.tool(exit: 0, "store", "check")
    }

    /// Another device imports the same file, and hears of the correction by a sync.
    @Test func whatIsDroppedAfterACorrectionOfAnotherDevice_goes() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        func both(_ text: String) throws -> [Int32] {
            try bench.write("l.bib", text)
            return try ["store.db", "other.db"].map { store in
                try bench.tool("sync", "--hub", "hub.db", "--store", store)
                let told = try bench.tool("import", "--create", "--store", store, "--mirror", "l.bib")
                try bench.tool("sync", "--hub", "hub.db", "--store", store)
                return told.status
            }
        }
        try bench.tool(exit: 0, "store", "init")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        let corrected = Self.entry.replacing("{k,", with: "{k2,")
        #expect(try both(Self.entry) == [0, 0])
        #expect(try both(corrected) == [0, 0])
        try bench.write("l.bib", corrected.replacing(", note={n}", with: ""))
        try bench.tool(exit: 0, "import", "--store", "other.db", "--mirror", "l.bib")
        let rest = try bench.shell("sqlite3 other.db \"SELECT fields FROM record WHERE deleted_at IS NULL\"")
        #expect(!rest.contains("note={n}") && rest.contains("k2"), "\(rest)")
    }
}
