import BackupKit
import TestSupport
import Testing

@Test func eventsExport_givesBackWhatCameIn_byDayAndWithItsMedia() throws {
    let bench = try Workbench()
    try bench.shell("mkdir -p log/media && printf JPEG > log/media/one.jpg && printf MP4 > log/media/two.mp4")
    let first = #"{"id":"A","time":"2026-02-14T23:30:00-05:00","type":"eten","photo":"media/one.jpg", "odd" : [1,{}]}"#
    let second = #"{"id":"B","time":"2026-02-15T07:00+01:00","type":"moment","video":"media/two.mp4","poster":"x"}"#
    let third = #"{"id":"C","time":"2026-02-15T06:00+01:00","type":"eten","photo":"media/gone.jpg"}"#
    try bench.write("log/2026-02.jsonl", "\u{FEFF}\(first)\r\n\n\(second)\n\(third)")
    let plan = try bench.json(exit: 3, "events", "import", "log", "--dry-run")
    #expect(try plan["added"]?.integer == 3 && plan["attachments"]?["added"]?.integer == 2 && !bench.exists("store.db"))
    let result = try bench.json(exit: 3, "events", "import", "log")
    #expect(result["added"]?.integer == 3 && result["attachments"]?["added"]?.integer == 2)
    #expect(try bench.json(exit: 3, "events", "import", "log")["writes"]?.integer == 0)
    let export = try bench.json(exit: 3, "events", "export", "-o", "out")
    #expect(export["events"]?.integer == 3 && export["days"]?.integer == 2 && export["media"]?.integer == 2)
    #expect(export["omitted"]?.array?.compactMap { $0["path"]?.string } == ["media/gone.jpg"])
    #expect(try bench.text("out/2026-02-14.jsonl") == first + "\n")
    #expect(try bench.text("out/2026-02-15.jsonl") == third + "\n" + second + "\n")
    #expect(try bench.text("out/media/one.jpg") == "JPEG" && bench.text("out/media/two.mp4") == "MP4")
    // What is exported is what another store takes in, bytes and all.
    try bench.tool(exit: 3, "events", "import", "out", "--create", "--store", "b.db", "-q")
    #expect(try bench.digest("b.db") == bench.digest())
    #expect(
        try bench.tool(exit: 0, "events", "export", "-o", "-", "--type", "eten").stdout == first + "\n" + third + "\n")
    let day = ["events", "export", "-o", "day.jsonl", "--from", "2026-02-15", "--to", "2026-02-15"]
    try bench.tool(exit: 0, day[0], day[1], day[2], day[3], day[4], day[5], day[6], day[7])
    #expect(try bench.text("day.jsonl") == third + "\n" + second + "\n")
    #expect(try bench.tool("events", "export", "-o", "-", "--from", "yesterday").status == 64)
    #expect(try bench.tool("events", "export", "-o", "out").status == 1)
}

@Test func linesThatCannotBeTaken_areNamedAndKept_andTheOthersCome() throws {
    let bench = try Workbench()
    let bad = [
        #"{"id":"1","time":"2026-02-14T15:00Z","type":"eten""#, #"{"id":"2","time":"noon","type":"eten"}"#,
        #"{"id":"3","time":"2026-02-14T15:00Z","type":"eten","photo":"../x.jpg"}"#,
        #"{"id":"4","time":"2026-02-14T15:00Z","type":"eten","type":"eten"}"#,
        #"{"id":"5","time":"2026-02-14T15:00Z","type":"eten","note":""# + String(repeating: "x", count: 500) + "\"}",
    ]
    let good = #"{"id":"9","time":"2026-02-14T15:00Z","type":"eten"}"#
    try bench.write("log.jsonl", ([good] + bad).joined(separator: "\n") + "\n")
    try bench.shell(#"printf '{"id":"6","time":"2026-02-14T15:00Z","type":"eten","note":"\377"}\n' >> log.jsonl"#)
    let result = try bench.json(
        exit: 3, "events", "import", "log.jsonl", "--rejected", "rejected.jsonl", "--max-line", "400")
    #expect(result["added"]?.integer == 1 && result["rejected"]?.integer == 6)
    let subjects = result["findings"]?.array?.compactMap { $0["path"]?.string } ?? []
    #expect(subjects == (2...7).map { "log.jsonl:\($0)" })
    try bench.shell("tail -n +2 log.jsonl | cmp - rejected.jsonl")
    // Where each line is shown they are read in another way.
    try bench.tool(
        exit: 3, "events", "import", "-v", "log.jsonl", "--rejected", "shown.jsonl", "--max-line", "400", "--create",
        "--store", "b.db")
    try bench.shell("cmp rejected.jsonl shown.jsonl")
    let again = try bench.tool("events", "import", "log.jsonl", "--rejected", "rejected.jsonl")
    #expect(again.status == 1 && again.stderr.contains("already exists"))
}

@Test func aLineLongerThanAnyBuffer_isKeptWhole() throws {
    let bench = try Workbench()
    let line = "{\"id\":\"1\",\"note\":\"\(String(repeating: "x", count: 3_000_000))\"}"
    let good = #"{"id":"9","time":"2026-02-14T15:00Z","type":"eten"}"#
    try bench.write("log.jsonl", "\(line)\n\(good)\n\(line)")
    try bench.tool(
        exit: 3, "events", "import", "log.jsonl", "--rejected", "rejected.jsonl", "--max-line", "1000")
    try bench.write("expected.jsonl", "\(line)\n\(line)\n")
    try bench.shell("cmp expected.jsonl rejected.jsonl")
}

@Test func whatTheStoreHasNewerOrDeleted_staysUnlessItIsOverwritten() throws {
    let bench = try Workbench()
    func line(_ type: String) -> String { #"{"id":"9","time":"2026-02-14T15:00Z","type":"\#(type)"}"# + "\n" }
    func shown(_ store: String) throws -> String {
        try bench.tool(exit: 0, "events", "export", "-q", "-o", "-", "--store", store).stdout
    }
    func sync() throws {
        for store in ["store.db", "b.db", "store.db"] {
            try bench.tool(exit: 0, "sync", "-q", "--store", store, "--hub", "hub.db")
        }
    }
    try bench.tool(exit: 0, "hub", "init", "hub.db", "-q")
    try bench.tool(exit: 0, "store", "init", "-q", "--store", "b.db")
    try bench.write("log.jsonl", line("eten"))
    try bench.tool(exit: 0, "events", "import", "log.jsonl")
    try sync()
    // By hand, in an editor that knows of no modified_at.
    try bench.write("log.jsonl", line("drinken"))
    let usual = try bench.tool(exit: 3, "events", "import", "log.jsonl")
    #expect(usual.stderr.contains("1 protected.\n") && usual.stderr.contains("--overwrite"), "\(usual.stderr)")
    #expect(try shown("store.db") == line("eten"))
    let plan = try bench.json(exit: 0, "events", "import", "log.jsonl", "--overwrite", "--dry-run")
    #expect(try plan["updated"]?.integer == 1 && shown("store.db") == line("eten"))
    #expect(try bench.json(exit: 0, "events", "import", "log.jsonl", "--overwrite")["updated"]?.integer == 1)
    #expect(try bench.json(exit: 0, "events", "import", "log.jsonl", "--overwrite")["writes"]?.integer == 0)
    try sync()
    #expect(try shown("store.db") == line("drinken") && shown("b.db") == line("drinken"))
    // Undone and synced, so deleted for everybody; and then wanted after all.
    try bench.tool(exit: 0, "store", "delete", "-q", "9")
    try sync()
    #expect(try bench.json(exit: 0, "events", "import", "log.jsonl")["protected"]?.integer == 1)
    #expect(try shown("b.db") == "")
    try bench.tool(exit: 0, "import", "log.jsonl", "--overwrite")
    try sync()
    #expect(try shown("store.db") == line("drinken") && shown("b.db") == line("drinken"))
}

/// What a log names is looked up, and not searched for: twenty times as many photos would take four hundred times as long.
@Test func aLogOfManyPhotos_isImportedInTimeThatGrowsWithTheirNumber() throws {
    let bench = try Workbench()
    func seconds(_ photos: Int) throws -> Double {
        let folder = "of\(photos)"
        let lines = (0..<photos).map {
            "{\"id\":\"e\($0)\",\"time\":\"2026-01-01T10:00:00\",\"type\":\"walk\",\"photo\":\"media/p\($0).jpg\"}\n"
        }
        try bench.write("\(folder)/log.jsonl", lines.joined())
        try bench.shell(
            "mkdir \(folder)/media; cd \(folder)/media; for i in $(seq 0 \(photos - 1)); do echo $i > p$i.jpg; done")
        return try (0..<2).map { round in
            let start = ContinuousClock.now
            try bench.tool(
                exit: 0, "import", "-q", "\(folder)/log.jsonl", "--create", "--store", "\(folder)/\(round).db")
            // A log without its photos, which the store has.
            try bench.shell(
                "mkdir \(folder)/\(round); sed 's/\"e/\"x/' \(folder)/log.jsonl > \(folder)/\(round)/log.jsonl")
            try bench.tool("import", "-q", "\(folder)/\(round)/log.jsonl", "--store", "\(folder)/\(round).db")
            return (ContinuousClock.now - start) / .seconds(1)
        }.min() ?? 0
    }
    let (few, many) = (try seconds(50), try seconds(1000))
    #expect(many < 100 * few, "\(few) s for 50, \(many) s for 1000")
}
