import TestSupport
import Testing

@testable import BackupKit

/// Names as JabRef and others write them, each with its name for iconv and a text in it.
private let encodings = [
    ("windows-1251", "CP1251", "Война и мир"), ("Cp1251", "CP1251", "Тихий Дон"), ("ISO8859_2", "ISO-8859-2", "Žižek"),
    ("ISO8859_15", "ISO-8859-15", "Œuvre à 5 €"), ("GBK", "GBK", "红楼梦"),
    ("MacRoman", "MACINTOSH", "Ästhetik à la carte"),
    // Some of these characters hold the bytes of a brace, a backslash or an '@'.
    ("Shift_JIS", "CP932", "表示ソ能ー機械"), ("x-MacCyrillic", "MAC-CYRILLIC", "Обломов"), ("Big5", "BIG5", "功許蓋"),
]

@Test(arguments: encodings)
func aFileIsReadInTheEncodingThatItDeclares(name: String, iconv: String, title: String) throws {
    let bench = try Workbench()
    let text = "% Encoding: \(name)\n\n@misc{k, title={\(title)}, year=1}\n\n@misc{l, title={\(title) 2}, year=2}\n"
    try bench.write("plain/refs.bib", text)
    try bench.shell(
        "mkdir other; iconv -f UTF-8 -t \(iconv) plain/refs.bib > other/refs.bib; touch -d 2020-01-01 */refs.bib")
    try bench.tool(exit: 0, "import", "other/refs.bib")
    // Text that is UTF-8 stays what it is, whatever is declared.
    try bench.tool(exit: 0, "import", "plain/refs.bib", "--create", "--store", "plain.db")
    #expect(try bench.digest() == bench.digest("plain.db"))
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let exported = try bench.text("out/library.bib")
    #expect(exported.contains("@misc{k, title={\(title)}, year=1}") && exported.contains("{\(title) 2}"), "\(exported)")
    for file in ["out/library.bib", "other/refs.bib"] {
        #expect(try bench.json(exit: 0, "import", file)["writes"]?.integer == 0)
    }
}

@Test(arguments: ["klingon", "EBCDIC-US", "UTF-8", "GBK", "CP1251//IGNORE", "../x", "UTF-16"])
func anEncodingThatDoesNotFit_isNamed(name: String) throws {
    let bench = try Workbench()
    try bench.write("a.bib", Array("% Encoding: \(name)\n@misc{a, title={C".utf8) + [0xE9, 0xFF] + Array("}}\n".utf8))
    let result = try bench.tool(exit: 3, "import", "a.bib")
    #expect(result.stderr.contains("a.bib: declares the encoding '\(name)'"), "\(result.stderr)")
    try bench.tool("export", "-q", "-o", "out")
    #expect(try bench.text("out/library.bib").contains("{Céÿ}"))
}

/// Names as BibDesk writes them, and what iconv calls them.
@Test(arguments: [
    ("Western (Mac OS Roman)", "MACINTOSH", "Größe à la Ÿ"), ("Central European (ISO Latin 2)", "ISO-8859-2", "Łódź"),
    ("Cyrillic (Windows)", "CP1251", "Война"), ("Western (ISO Latin 1)", "ISO-8859-1", "Ümläut"),
    ("Western (Windows Latin 1)", "CP1252", "Œuvre à 5 €"), ("Japanese (Shift JIS)", "CP932", "表示ソ能ー機械"),
])
func aFileIsReadInTheEncodingThatBibDeskNames(name: String, iconv: String, title: String) throws {
    let bench = try Workbench()
    let header =
        "%% This BibTeX bibliography file was created using BibDesk.\n\n\n%% Saved with string encoding \(name) \n"
    try bench.write("u.bib", "\(header)\n@misc{k, title={\(title)}, year=1}\n\n@comment{\(title)}\n")
    try bench.shell("iconv -f UTF-8 -t \(iconv) u.bib > m.bib")
    try bench.tool(exit: 0, "import", "--create", "m.bib")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    let exported = try bench.text("out/library.bib")
    #expect(exported.contains("title={\(title)}") && exported.contains("@comment{\(title)}"), "\(exported)")
    #expect(try bench.json(exit: 0, "import", "m.bib")["writes"]?.integer == 0)
}

/// A file is the same library, and holds the same parts, in whichever encoding somebody saves it.
@Test(arguments: ["% Encoding: ", "%% Saved with string encoding "], [false, true])
func aFileThatIsSavedInAnotherEncoding_holdsTheSameParts(label: String, isAlone: Bool) throws {
    let names = label.hasPrefix("%%") ? ["Western (ISO Latin 1)", "Unicode (UTF-8)"] : ["ISO-8859-1", "UTF-8"]
    let bench = try Workbench()
    func save(_ name: String, _ file: String, _ time: String) throws {
        let text = """
            \(label)\(name)\(isAlone ? "\n" : "")
            % Bücher

            @preamble{"Bücher"}
            @string{bü = {Bücher}}
            @comment{Bücher}
            @comment{jabref-meta: saveActions:Bücher;}
            @misc{k, title={Bücher}, year=1}

            Größe

            """
        try bench.write("u.bib", text)
        try bench.shell(
            "iconv -f UTF-8 -t \(name.hasSuffix("1") || name.hasSuffix("1)") ? "ISO-8859-1" : "UTF-8") u.bib > \(file)")
        try bench.shell("touch -d '\(time)' \(file)")
    }
    func parts(_ store: String) throws -> String {
        try bench.shell(
            """
            sqlite3 \(store) "SELECT local_id FROM records WHERE type = 'BibliographyPart' AND NOT deleted ORDER BY 1"
            """)
    }
    try save(names[0], "refs.bib", "5 days ago")
    try bench.tool(exit: 0, "import", "--create", "refs.bib")
    let before = try parts("store.db")
    for (round, name) in [names[1], names[0], names[1]].enumerated() {
        try save(name, "refs.bib", "\(4 - round) days ago")
        try bench.tool(exit: 0, "import", "refs.bib")
        #expect(try parts("store.db") == before)
        try bench.tool(exit: 0, "export", "-q", "--force", "-o", "out")
        let library = try bench.text("out/library.bib")
        for piece in [
            "% Bücher", "@preamble{\"Bücher", "@string{bü", "@comment{Bücher}", "jabref-meta", "@misc", "Größe",
        ] {
            let count = library.split(separator: piece, omittingEmptySubsequences: false).count - 1
            #expect(count == 1, "\(name) \(piece): \(library)")
        }
        #expect(try bench.json(exit: 0, "import", "--mirror", "refs.bib")["writes"]?.integer == 0)
    }
    // At another place it is known by what it holds.
    try bench.shell("rm refs.bib; mkdir moved")
    try save(names[1], "moved/refs.bib", "1 hour ago")
    try bench.tool(exit: 0, "import", "moved/refs.bib")
    #expect(try parts("store.db") == before)
}

@Test(arguments: [
    ("Western (ISO Latin 1)", 0), ("Western (Windows Latin 1)", 0), ("Unicode (UTF-8)", 3), ("Klingon (Old)", 3),
])
func whatBibDeskHasNoOtherNameFor_isReadAsBefore(name: String, exit code: Int32) throws {
    let bench = try Workbench()
    let text = "%% Saved with string encoding \(name) \n\n@misc{k, title={C"
    try bench.write("a.bib", Array(text.utf8) + [0xE9] + Array("}, year=1}\n".utf8))
    let told = try bench.tool(exit: code, "import", "a.bib").stderr
    #expect(told.contains("declares the encoding '\(name)'") == (code == 3), "\(told)")
    #expect(told.contains("'iconv -l'") == name.hasPrefix("Klingon"), "\(told)")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(try bench.text("out/library.bib").contains("{Cé}"))
}

@Test func theEncodingIsDeclaredBeforeTheFirstEntry() {
    func declared(_ text: String) -> String? { BibEncoding.declared(in: Array(text.utf8)) }
    #expect(declared("This file was created with JabRef 2.3.1.\r\nEncoding: Cp1252\r\n\r\n@a{k}") == "Cp1252")
    #expect(declared("%% encoding:GBK x\n") == "GBK")
    #expect(declared("@a{k}\n% Encoding: GBK\n") == nil)
    #expect(declared("% Encoding: \n") == nil)
    #expect(declared("%% saved with string encoding  Western (Mac OS Roman) \t\r\n") == "Western (Mac OS Roman)")
    #expect(declared("%% Saved with string encoding  \n") == nil)
}

@Test(arguments: testSeeds(20))
func howAFileIsCutIntoPieces_changesNoCharacter(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let bytes: [UInt8] = (0..<40).flatMap { _ in
        // The last three are seldom, for each is an error in one of the two encodings.
        [Array("aé".utf8), Array("日本".utf8), Array("😀".utf8), [0x83, 0x5C], [0xFF]][
            random.below(random.below(30) == 0 ? 5 : 2)]
    }
    func pieces(_ body: (UnsafeRawBufferPointer) -> Void) {
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + 1 + random.below(4))
            bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
            start = end
        }
    }
    var check = UTF8Check()
    pieces { check.take($0) }
    check.finish()
    #expect(check.isUTF8 == bytes.withUnsafeBytes { BibText.isUTF8($0) })
    let (whole, cut) = (try #require(CharacterDecoder(of: "CP932")), try #require(CharacterDecoder(of: "CP932")))
    var (expected, text): ([UInt8], [UInt8]) = ([], [])
    let isText = bytes.withUnsafeBytes { whole.decode($0, into: &expected) } && whole.finish(into: &expected)
    var cutIsText = true
    pieces { cutIsText = cutIsText && cut.decode($0, into: &text) }
    cutIsText = cutIsText && cut.finish(into: &text)
    #expect(isText == cutIsText && (!isText || expected == text))
}
