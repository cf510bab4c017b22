import BackupKit
import TestSupport
import Testing

@testable import backup_tool

@Test(arguments: [
    ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本語", 6), ("한국", 4), ("ｆ", 2), ("👩‍👩‍👧", 2), ("🇫🇷", 2), ("❤️", 2),
    ("a\u{200D}b", 2), ("…", 1), ("ﬁ", 1), ("\u{301}", 0),
])
func displayWidth_countsColumns(text: String, expected: Int) {
    #expect(displayWidth(text) == expected)
}

@Test func truncation_neverExceedsItsColumns() {
    #expect(truncated("library", to: 7) == "library")
    #expect(truncated("library", to: 6) == "libra…")
    #expect(truncated("日本語", to: 5) == "日本…")
    #expect(truncated("日本語", to: 4) == "日…")
    #expect(truncated("abc", to: 0) == "")
}

@Test func table_alignsByDisplayWidthAndCutsOnlyItsLastColumn() {
    var table = Table([.left("NAME"), .right("SIZE"), .left("PATH")])
    table.add(["日本語", "1.2 GB", "a/very/long/path/to.pdf"])
    table.add(["x", "9 B", "b\u{1B}"])
    table.add(["only a name"])
    #expect(
        table.lines(columns: 42, style: .plain) == [
            "NAME           SIZE  PATH",
            "日本語       1.2 GB  a/very/long/path/to.…",
            "x               9 B  b\\u{1b}",
            "only a name",
        ])
    #expect(table.lines(columns: nil, style: .plain)[1].hasSuffix("a/very/long/path/to.pdf"))
    // A name of which less than that could be seen is broken, and not cut.
    let blocks = table.lines(columns: 24, style: .plain)
    #expect(blocks.prefix(4) == ["NAME  日本語", "SIZE  1.2 GB", "PATH  a/very/long/path/t", "      o.pdf"])
}

/// No line is wider than the terminal, which would break it anywhere.
@Test(arguments: [20, 40, 60, 80, 81, 120, 200])
func aTable_neverExceedsItsColumns(columns: Int) {
    var table = Table([.left("ID"), .left("TIME"), .right("SIZE"), .left("HOST"), .left("TAGS"), .left("PATHS")])
    table.add([
        "93eff758", "2026-11-25T10:47:35", "25 kB", "a-very-long-host-name.example.org", "nightly,before-the-move",
        "/library",
    ])
    table.add(["71574d88", "2026-11-25T10:47:34", "1.5 GB", "vm", "", "/library"])
    let lines = table.lines(columns: columns, style: .plain)
    #expect(lines.allSatisfy { displayWidth($0) <= columns }, "\(lines)")
    for id in ["93eff758", "71574d88"] { #expect(lines.contains { $0.contains(id) }) }
    if columns >= 40 { #expect(lines.contains { $0.contains("2026-11-25T10:47:35") }, "\(lines)") }
    let isBlocks = columns < 80
    let broken = columns == 20 ? 5 : 0
    #expect(lines.count == (isBlocks ? 6 + 1 + 5 + broken : 3), "\(lines)")
    #expect(lines.contains { $0.contains("a-very-long-host-name.example.org") } == ![20, 80, 81].contains(columns))
}

/// On a narrow terminal the values stand below their field.
@Test(arguments: [30, 40, 60, 80, 200])
func sideBySide_neverExceedsItsColumns(columns: Int) {
    var table = SideBySide("EXISTING", "INCOMING")
    table.add("(record)", "Library/AF640A9B-360D-8C79-B11C-3AB8BE229699", nil, differs: true)
    table.add("a-field-of-20-letter", "What the Tombstone Remembers", "What the Tombstone Forgot", differs: true)
    let lines = table.lines(columns: columns, style: .plain)
    #expect(lines.allSatisfy { displayWidth($0) <= columns }, "\(lines)")
    let text = lines.joined(separator: " ").split(separator: " ")
    for word in ["a-field-of-20-letter", "Remembers", "Forgot"] { #expect(text.contains { $0 == word }, "\(lines)") }
}

@Test func json_escapesWhatItMustAndWhatATerminalWouldObey() {
    let value: JSONValue = [
        "z": "a\"\\\n\t\u{1}\u{7F}\u{9B}\u{202E}é日😀", "a": [1, true, nil], "e": [:],
        "l": [],
    ]
    #expect(
        value.text
            == #"{"z":"a\"\\\n\t\u0001\u007f\u009b\u202eé日😀","a":[1,true,null],"e":{},"l":[]}"#)
}

@Test(arguments: [
    (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1234, "1.2 kB"), (9949, "9.9 kB"), (9950, "10 kB"),
    (999_499, "999 kB"),
    (999_500, "1.0 MB"), (1_234_567_890, "1.2 GB"), (UInt64.max, "18 EB"),
])
func bytes_areDecimalAndShort(count: UInt64, expected: String) {
    #expect(HumanText.bytes(count) == expected)
}

@Test func countsAndDurations_readWell() {
    #expect(HumanText.count(0) == "0" && HumanText.count(999) == "999" && HumanText.count(1000) == "1,000")
    #expect(HumanText.count(-1_234_567) == "-1,234,567" && HumanText.count(Int.min).hasPrefix("-9,223,"))
    #expect(HumanText.count(1, "entry", "entries") == "1 entry" && HumanText.count(2, "record") == "2 records")
    #expect(
        [0, 0.34, 9.96, 59.4, 59.6, 3599.6, 3700].map(HumanText.duration)
            == ["0.0 s", "0.3 s", "10 s", "59 s", "1 min 0 s", "1 h 0 min", "1 h 1 min"])
    #expect(HumanText.duration(.infinity) == "?" && HumanText.duration(-1) == "?")
}

@Test func progressLine_tellsShareRateAndTimeLeft_andFits() {
    let event = ProgressEvent("exporting", done: 500_000_000, of: 2_000_000_000, item: "PDFs/a.pdf")
    #expect(
        ProgressBar.line(event, since: 0, seconds: 2, columns: 79)
            == "exporting [====>                ]   25%  500 MB of 2.0 GB  250 MB/s  6.0 s left")
    #expect(ProgressBar.line(event, since: 0, seconds: 0, columns: 30) == "exporting   25%  500 MB of 2.…")
    let open = ProgressEvent("reading", done: 1200, unit: .items, item: "a\u{1B}b")
    #expect(ProgressBar.line(open, since: 200, seconds: 1, columns: 79) == "reading  1,200  1,000/s  a\\u{1b}b")
    for columns in 1...120 {
        for done in [0, 1, 999, UInt64.max] {
            let event = ProgressEvent("verifying", done: done, of: 1000, item: "日本語")
            #expect(displayWidth(ProgressBar.line(event, since: 5, seconds: 0.1, columns: columns)) <= columns)
        }
    }
}

@Test func progress_neverHasMoreDoneThanThereIs() {
    let event = ProgressEvent("exporting", done: 11_000_000, of: 9_000_000)
    #expect(ProgressBar.line(event, since: 0, seconds: 0, columns: 79).contains("100%  11 MB of 11 MB"))
}

/// A terminal that cannot move back in its line would show each drawing, and the characters that ask for it.
@Test(arguments: ["dumb", "xterm"])
func progress_isDrawnWhereTheTerminalCanTakeItAway(terminal: String) throws {
    let bench = try Workbench()
    try bench.shell("head -c 3000000 /dev/urandom > a.pdf; echo '@misc{a, title={A}, file={:a.pdf:PDF}}' > a.bib")
    try bench.tool(exit: 0, "import", "--create", "a.bib")
    try bench.python(
        """
        import os, pty, sys
        said = b""
        def read(descriptor):
            global said
            text = os.read(descriptor, 65536)
            said += text
            return b"."
        os.environ["TERM"] = sys.argv[2]
        os.environ["BACKUP_TOOL_STORE"] = "store.db"
        status = pty.spawn([sys.argv[1], "export", "--level", "9", "-o", "x.tar.xz"], read, lambda descriptor: b"")
        assert os.waitstatus_to_exitcode(status) == 0, said
        assert b"in x.tar.xz" in said, said
        assert (b"\\r\\x1b[K" in said) == (b"\\x1b" in said) == (b"ing [" in said) == (sys.argv[2] == "xterm"), said
        """, "\(productsDirectory())/backup-tool", terminal)
}

@Test func progressBar_drawsAtMostTenTimesASecond() {
    nonisolated(unsafe) var drawn = 0
    let bar = ProgressBar { _ in drawn += 1 }
    for done in 0..<200_000 { bar.report(ProgressEvent("reading", done: UInt64(done))) }
    #expect(drawn <= 50)
}

@Test func text_isWrappedBetweenWordsByDisplayWidth() {
    #expect(wrapped("one two three", columns: 9, indent: 2) == "  one two\n  three")
    #expect(wrapped("日本語 日本語", columns: 8, indent: 0) == "日本語\n日本語")
    #expect(wrapped("averyverylongword x", columns: 5, indent: 1) == " averyverylongword\n x")
    #expect(wrapped("", columns: 5, indent: 1) == "")
    #expect(paragraphs("one\ntwo\n\nthree") == ["one two", "three"])
}

@Test func help_fitsEveryWidthFromSixtyToAHundred() {
    for (path, command) in sampleRoot.everyCommand() {
        for columns in 60...100 {
            let help = Help(command, path: path, style: .plain, columns: columns).full()
            // Usage lines and exact example commands are never broken.
            for line in help.split(separator: "\n") where !line.contains("backup-tool") {
                #expect(displayWidth(String(line)) <= columns, "\(line)")
            }
        }
    }
}
