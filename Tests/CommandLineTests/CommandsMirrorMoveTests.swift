import TestSupport
import Testing

/// A mirrored library that is moved to another place.
@Suite struct CommandsMirrorMoveTests {
    private static func entries(_ keys: String...) -> String {
        keys.map { "@misc{\($0),title={Work number \($0)}}\n" }.joined()
    }

    @Test func whoFollowsTheAdviceAboutAMovedFile_canMirrorItAtItsNewPlace() throws {
        let bench = try Workbench()
        try bench.write("lib/a.bib", "@comment{of the old one}\n" + Self.entries("a", "b", "c", "d"))
        try bench.shell("mkdir moved; touch -d '1 hour ago' lib/a.bib")
        try bench.tool(exit: 0, "import", "--create", "--mirror", "lib/a.bib")
        try bench.shell("mv lib/a.bib moved/a.bib")
        try bench.write("moved/a.bib", "@comment{of both}\n" + Self.entries("a"))
        let told = try bench.tool(exit: 3, "import", "--mirror", "moved/a.bib").stderr
        let command = try #require(told.firstMatch(of: /'backup-tool (import --mirror [^']+)'/)).1
        try bench.write("moved/a.bib", "@comment{of both}\n" + Self.entries("a", "e", "f", "g"))
        try bench.shell("mv moved/a.bib lib/a.bib; $T \(command)")
        #expect(try bench.liveKeys() == ["a", "e", "f", "g"])
        try bench.shell("mv lib/a.bib moved/a.bib")
        try bench.write("moved/a.bib", "@comment{of both}\n" + Self.entries("a", "e", "f"))
        let last = try bench.tool("import", "--mirror", "moved/a.bib")
        #expect(last.status == 0, "\(last.stderr)")
        #expect(try bench.liveKeys() == ["a", "e", "f"])
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").split(separator: "@comment").count == 2)
        try bench.tool(exit: 0, "store", "check")
        // Nothing is left of the old place.
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM imported_file'") == "1\n")
        #expect(
            try bench.shell(
                """
                sqlite3 store.db "SELECT count(*) FROM record WHERE type = 'BibliographyPart' AND deleted_at IS NULL
                AND json_extract(fields, '$.kind') = 'order'"
                """) == "1\n")
    }

    /// It has no order of its own by which it could be known.
    @Test func anExportThatMoved_isMirroredAtItsNewPlace() throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entries("a", "b", "c", "d"))
        try bench.shell("touch -d '1 hour ago' a.bib; mkdir old new")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "out")
        try bench.shell("cp out/library.bib old/library.bib; $T import --mirror old/library.bib; rm a.bib")
        try bench.shell("$T import --mirror old/library.bib; mv old/library.bib new/library.bib")
        try bench.shell("sed -i '/Work number d/d' new/library.bib; cat new/library.bib")
        let told = try bench.tool("import", "--mirror", "new/library.bib")
        // The file `a.bib` was not mirrored, so it may hold the entry still.
        #expect(told.stderr.contains("in another file"), "\(told.stderr)")
        try bench.write("a.bib", Self.entries("a", "b", "c"))
        try bench.shell("$T import --mirror a.bib; $T import --mirror new/library.bib")
        #expect(try bench.liveKeys() == ["a", "b", "c"])
    }

    /// A drive with a copy of the library is not connected.
    @Test func aCopyThatIsGone_keepsWhatItHolds() throws {
        let bench = try Workbench()
        try bench.write("drive/a.bib", Self.entries("a", "b", "c", "d", "e"))
        try bench.write("home/a.bib", Self.entries("a", "b", "c", "d"))
        try bench.shell("touch -d '1 hour ago' */a.bib")
        for place in ["drive", "home"] { try bench.tool("import", "--create", "\(place)/a.bib") }
        try bench.shell("mv drive unplugged")
        try bench.write("home/a.bib", Self.entries("a", "b", "c"))
        try bench.tool(exit: 3, "import", "--mirror", "home/a.bib")
        #expect(try bench.liveKeys() == ["a", "b", "c", "d", "e"])
    }
}

/// JabRef's reading of such an entry loses nothing of it, so it is no reason to mirror nothing. A loss still is.
@Test(arguments: ["title={a \\} b}", "note={x}, title={a \\{ b}"])
func aBraceThatJabRefHasEscaped_isNoReasonToMirrorNothing(_ fields: String) throws {
    let bench = try Workbench()
    let (kept, lost) = ("@article{a, \(fields)}\n@article{c, title={C}}\n", "@article{b, title={B}}\n")
    try bench.write("refs.bib", kept + lost)
    try bench.tool(exit: 3, "import", "refs.bib")
    try bench.write("refs.bib", kept)
    let told = try bench.tool(exit: 3, "import", "--mirror", "refs.bib").stderr
    #expect(told.contains("behind a backslash"), "\(told)")
    #expect(try bench.liveKeys() == ["a", "c"])
    try bench.write("refs.bib", "@article{a, \(fields)}\n@article{c, title={C}\n")
    try bench.tool(exit: 1, "import", "--mirror", "refs.bib")
    #expect(try bench.liveKeys().count == 2)
}

extension Workbench {
    /// The cite keys of living publications.
    func liveKeys() throws -> [Substring] {
        try shell(
            """
            sqlite3 store.db "SELECT json_extract(fields, '$.citeKey') FROM record
            WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
            """
        ).split(separator: "\n")
    }
}
