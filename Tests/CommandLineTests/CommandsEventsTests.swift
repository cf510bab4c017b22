import BackupKit
import TestSupport
import Testing

@Test func lines_comeBackAsTheyWere_inTheFileOfTheirOwnDay() throws {
    let bench = try Workbench()
    let late =
        #"{"time": "2026-02-14T23:30-05:00" , "type":"eten", "detail":"80 g \u00e9", "neverSeen": {"a":[1.50,null]}}"#
    let lines = [
        #"{"id":"A","time":"2026-02-14T15:00+01:00","type":"milestone","reaction":"\ud83d\udc36"}"#,
        #"{"time":"2026-02-14T16:00+01:00","type":"drinken"}"#, #"{"time":"2026-02-14T16:00+01:00","type":"drinken"}"#,
        late,
    ]
    // A mark at the start, CRLF, a blank line, no end of the last line.
    try bench.write("x.jsonl", [0xEF, 0xBB, 0xBF] + Array(lines.joined(separator: "\r\n\n").utf8))
    #expect(try bench.json(exit: 0, "import", "x.jsonl")["added"]?.integer == 4)
    #expect(try bench.json(exit: 0, "import", "x.jsonl")["writes"]?.integer == 0)
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(try bench.files("out/events") == ["2026-02-14.jsonl"])
    #expect(try bench.text("out/events/2026-02-14.jsonl") == lines.joined(separator: "\n") + "\n")
    // What was exported is the same log.
    #expect(try bench.json(exit: 0, "import", "out/events")["writes"]?.integer == 0)
    // A third equal line is a third event.
    try bench.write("y.jsonl", String(repeating: lines[1] + "\n", count: 3))
    #expect(try bench.json(exit: 0, "import", "y.jsonl")["added"]?.integer == 1)
}

/// Two events of one time are two, and stand in one order however they came.
@Test func eventsOfOneTime_giveOneFile_inWhateverOrderTheyCame() throws {
    let bench = try Workbench(["SOURCE_DATE_EPOCH": "1700000000"])
    let lines = ["eten", "drinken", "slapen", "eten"].map {
        "{\"time\":\"2026-02-14T16:00+01:00\",\"type\":\"\($0)\"}\n"
    }
    for (name, lines) in [("one", lines), ("two", lines.reversed())] {
        for line in lines {
            // Each in an import of its own: an order of arrival.
            try bench.write("x.jsonl", line)
            try bench.tool("import", "--create", "--store", "\(name).db", "x.jsonl")
        }
        try bench.write("x.jsonl", lines.joined())
        try bench.tool(exit: 0, "import", "--store", "\(name).db", "x.jsonl")
        try bench.tool(exit: 0, "export", "--store", "\(name).db", "-q", "-o", name)
    }
    #expect(try bench.text("one/events/2026-02-14.jsonl").split(separator: "\n").count == 4)
    try bench.shell("cmp one/events/2026-02-14.jsonl two/events/2026-02-14.jsonl")
}

@Test func badLines_areRejectedWithTheirPlace_andTheRestIsTaken() throws {
    let bench = try Workbench()
    let bad = [
        "not json", #"{"type":"eten"}"#, #"{"time":"yesterday","type":"eten"}"#, #"{"time":"2026-01-01"}"#, "[1]",
        #"{"time":"2026-01-01T00:00Z","type":"x","photo":"../../etc/passwd"}"#,
        #"{"time":"2026-01-01T00:00Z","type":"x","video":"/etc/passwd"}"#,
        #"{"time":"2026-01-01T00:00Z","type":"x","thumbnail_path":"a\\..\\b"}"#,
        #"{"time":"2026-01-01T00:00Z","type":"x","a":1,"a":2}"#,
        #"{"time":"2026-01-01T00:00Z","type":"x","deep":"# + String(repeating: "[", count: 100_000)
            + String(repeating: "]", count: 100_000) + "}",
        "{\"time\":\"2026-01-01T00:00Z\",\"type\":\"\u{1}\"}",
    ]
    let good = #"{"time":"2026-01-01T00:00Z","type":"x","photo":"photos/a..b.jpg","video":"https://x.example/../v"}"#
    try bench.write("x.jsonl", (bad + [good]).joined(separator: "\n"))
    let result = try bench.tool(exit: 3, "import", "x.jsonl")
    for number in 1...bad.count { #expect(result.stderr.contains("x.jsonl:\(number): "), "line \(number)") }
    #expect(!result.stderr.contains("x.jsonl:\(bad.count + 1)"))
    #expect(result.stderr.contains("1 added, \(bad.count) rejected."), "\(result.stderr)")
    #expect(result.stdout == "")
}

@Test func samplesOfTheLog_survive_unknownKeysIncluded() throws {
    let bench = try Workbench()
    try bench.tool(exit: 0, "import", "\(Workbench.samples)/events")
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    try bench.shell("cat $SAMPLES/events/*.jsonl | sort > a; cat out/events/*.jsonl | sort > b; cmp a b")
    if let corpora = Workbench.corpora {
        try bench.tool(exit: 0, "import", "--create", "--store", "o.db", "\(corpora)/ollie")
        try bench.tool(exit: 0, "export", "--store", "o.db", "-q", "-o", "ollie")
        try bench.shell("grep -hv '^$' \(corpora)/ollie/* | sort > a; cat ollie/events/*.jsonl | sort > b; cmp a b")
    }
}

@Test func anEditedEvent_keepsWhatTheAppDoesNotKnow() throws {
    let bench = try Workbench()
    try bench.write(
        "a.jsonl",
        #"{"id":"A","time":"2026-01-01T10:00Z","type":"eten","poster":"Mo","modified_at":"2026-01-01T10:00Z"}"#)
    try bench.tool(exit: 0, "import", "a.jsonl")
    try bench.write(
        "a.jsonl",
        #"{"id":"A","time":"2026-01-01T10:00Z","type":"drinken","poster":"Mo","modified_at":"2026-01-02T10:00Z"}"#)
    #expect(try bench.json(exit: 0, "import", "a.jsonl")["updated"]?.integer == 1)
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    #expect(try bench.text("out/events/2026-01-01.jsonl") == bench.text("a.jsonl") + "\n")
}
