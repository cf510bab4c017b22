import TestSupport
import Testing

/// Event logs that do not say when a line was written, and files of which the end was never written.
@Suite struct CommandsUndatedTests {
    private static func event(_ id: String, _ time: String, _ more: String) -> String {
        #"{"id":"\#(id)","time":"\#(time)","type":"medication",\#(more)}"# + "\n"
    }

    @Test func anEventThatIsMovedToAnEarlierTime_isNotDroppedSilently() throws {
        let bench = try Workbench()
        try bench.write("log.jsonl", Self.event("m", "2026-03-01T18:00:00+01:00", #""note":"10 mg""#))
        try bench.tool(exit: 0, "import", "--create", "log.jsonl")
        try bench.write("log.jsonl", Self.event("m", "2026-03-01T17:30:00+01:00", #""note":"20 mg""#))
        let told = try bench.tool(exit: 3, "import", "log.jsonl").stderr
        #expect(
            told.contains("OllieEvents/m: has no 'modified_at'") && told.contains("(time, note)")
                && told.contains("'backup-tool import --overwrite"), "\(told)")
        try bench.tool(exit: 0, "import", "--overwrite", "log.jsonl")
        try bench.tool(exit: 0, "events", "export", "-o", "out")
        #expect(try bench.shell("cat out/*").contains("20 mg"))
        // An edit on a device has a time, and an old log does not contradict it.
        try bench.tool(exit: 0, "import", "log.jsonl")
        try bench.write("log.jsonl", Self.event("m", "2026-03-01T18:00:00+01:00", #""note":"10 mg""#))
        try bench.tool(exit: 0, "import", "log.jsonl")
    }

    @Test(arguments: ["2026-03-01T18:00:00+01:00", "2026-02-28T09:00:00+01:00"])
    func anUndatedLineThatMayBeLater_isNotDroppedSilently(_ modified: String) throws {
        let bench = try Workbench()
        let time = "2026-03-01T18:00:00+01:00"
        try bench.write("log.jsonl", Self.event("m", time, #""note":"10 mg","modified_at":"\#(modified)""#))
        try bench.tool(exit: 0, "import", "--create", "log.jsonl")
        try bench.write("other.jsonl", Self.event("m", time, #""note":"20 mg""#))
        let told = try bench.tool(exit: 3, "import", "other.jsonl").stderr
        #expect(told.contains("OllieEvents/m: has") && told.contains("other values (note)"), "\(told)")
        // What it says in other words is no other value.
        try bench.write("same.jsonl", Self.event("m", "2026-03-01T17:00Z", #""note":"10 mg""#))
        try bench.tool(exit: 0, "import", "same.jsonl")
        try bench.tool(exit: 0, "events", "export", "-o", "out")
        #expect(try bench.shell("cat out/*").contains("10 mg"))
    }

    @Test func anEventThatIsStillToCome_isNoWarning() throws {
        let bench = try Workbench()
        try bench.write(
            "rota.jsonl",
            Self.event("a", "2090-12-24T08:00:00Z", #""note":"late""#)
                + Self.event("b", "2090-12-24T08:00:00Z", #""modified_at":"2026-01-01T00:00:00Z""#))
        try bench.tool(exit: 0, "import", "--create", "rota.jsonl")
        try bench.tool(exit: 0, "import", "rota.jsonl")
        try bench.tool(exit: 0, "store", "check")
        let ahead = #""modified_at":"2090-01-01T00:00:00Z""#
        try bench.write("ahead.jsonl", Self.event("c", "2026-01-01T08:00:00Z", ahead))
        let told = try bench.tool(exit: 3, "import", "ahead.jsonl").stderr
        #expect(told.contains("OllieEvents/c: was dated in the future"), "\(told)")
    }

    /// It was written by now, whenever it will be, and what is written after it is not as late as it is.
    @Test(arguments: [2, 40_000])
    func anEventThatIsStillToCome_comesBackAsItWas(_ days: Int) throws {
        let bench = try Workbench()
        let day = try bench.shell("date -u -d '+\(days) days' +%Y-%m-%dT10:00:00Z").dropLast()
        try bench.write("rota.jsonl", Self.event("a", String(day), #""note":"late""#))
        try bench.tool(exit: 0, "import", "--create", "rota.jsonl")
        let times = try bench.shell("sqlite3 store.db 'SELECT max(created_at, modified_at) FROM record'")
        let now = try bench.shell("date +%s000")
        #expect(try #require(Int(times.dropLast())) < #require(Int(now.dropLast())) + 2000, "\(times)")
        try bench.write("l.bib", "@misc{k, title={T}}\n")
        try bench.tool(exit: 0, "import", "l.bib")
        try bench.tool(exit: 0, "export", "-o", "b")
        for mode in ["merge", "replace"] {
            let restored = try bench.tool(exit: 0, "restore", "--create", "--store", "\(mode).db", "b", "--mode", mode)
            #expect(!restored.stderr.contains("warning"), "\(restored.stderr)")
            #expect(try bench.digest("\(mode).db") == bench.digest())
        }
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.tool(exit: 0, "store", "init", "--store", "c.db")
        #expect(try !bench.tool(exit: 0, "sync", "--store", "c.db", "--hub", "hub.db").stderr.contains("ahead"))
        // Which of two undated lines is newer nobody knows; one that says when it was written is newer than both.
        let edited = Self.event("a", String(day), #""note":"early""#)
        try bench.write("rota.jsonl", edited)
        let told = try bench.tool(exit: 3, "import", "rota.jsonl").stderr
        #expect(told.contains("has no 'modified_at'") || told.contains("has the same time"), "\(told)")
        try bench.write(
            "dated.jsonl", Self.event("a", String(day), #""note":"dated","modified_at":"2026-01-01T00:00:00Z""#))
        try bench.tool(exit: 0, "import", "dated.jsonl")
        try bench.tool(exit: 0, "import", "rota.jsonl")
        try bench.tool(exit: 0, "events", "export", "-o", "days")
        #expect(try bench.shell("cat days/*").contains("dated"))
    }

    @Test(arguments: ["log.jsonl", "lib.bib"], ["end", "middle", "all"])
    func zerosInTheirText_areNamed(_ file: String, _ place: String) throws {
        let bench = try Workbench()
        func item(_ name: String) -> String {
            file == "lib.bib"
                ? "@misc{\(name), title={\(name)}}\n" : Self.event(name, "2026-01-01T08:00:00Z", #""note":"\#(name)""#)
        }
        let (first, second) = (item("a"), item("b"))
        let zeros = String(repeating: "\0", count: 5000)
        switch place {
        case "end": try bench.write(file, first + zeros)
        case "middle": try bench.write(file, first + zeros + "\n" + second)
        default: try bench.write(file, zeros)
        }
        let told = try bench.tool(exit: 3, "import", "--create", file).stderr
        #expect(told.contains(file), "\(told)")
        // A mirror takes nothing away for a file that lost its end.
        guard place == "end", file == "lib.bib" else { return }
        try bench.write(file, first + second)
        try bench.tool(exit: 0, "import", file)
        try bench.write(file, first + zeros)
        try bench.tool(exit: 1, "import", "--mirror", file)
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try bench.text("out/library.bib").contains("@misc{b"))
    }

    @Test func whatIsNotAskedFor_isNotMissed() throws {
        let bench = try Workbench()
        try bench.write("in/lib.bib", "@misc{a, title={A}}\n")
        try bench.write("in/a.pdf", "%PDF-1.4")
        try bench.tool(exit: 0, "import", "--create", "--only", "publications", "in")
        try bench.tool(exit: 3, "import", "in")
        let told = try bench.tool(exit: 64, "import", "--only", "publications", "--attachments", "in", "in").stderr
        #expect(told.contains("--attachments takes attachments, which --only leaves out"), "\(told)")
        try bench.tool(exit: 0, "import", "--only", "publications,attachments", "--attachments", "in", "in")
    }

    @Test(arguments: ["mkfifo $F", "ln -s /etc/passwd $F", "mkdir $F; touch $F/x"])
    func whatLiesInThePlaceOfAFile_isNamed_andTheFileComesBack(_ make: String) throws {
        let bench = try Workbench()
        try bench.write("in/a.bib", "@misc{a, title={A}}\n")
        try bench.write("in/a.pdf", "%PDF-1.4")
        try bench.tool(exit: 0, "import", "--create", "in/a.bib", "--attachments", "in")
        try bench.tool(exit: 0, "export", "-o", "out.tar")
        let file = "store.db.assets/Attachments/a.pdf"
        try bench.shell("F=\(file); rm $F; \(make)")
        for words in [["store", "repair", "--from", "out.tar"], ["store", "check"], ["store", "adopt"]] {
            let told = try bench.tool(words: words, exit: 3).stderr
            #expect(told.contains("Attachments/a.pdf") && told.contains("is in its place"), "\(told)")
        }
        try bench.shell("rm -r \(file)")
        try bench.tool(exit: 0, "store", "adopt")
        #expect(try bench.text(file) == "%PDF-1.4")
        try bench.tool(exit: 0, "store", "check")
    }

    /// Whether an event is still to come, or its app's clock is ahead: no such time is later than a delete.
    @Test(arguments: [
        #""time":"2090-02-14T16:00:00Z""#, #""time":"2026-01-14T16:00:00Z","modified_at":"2090-01-01T00:00:00Z""#,
    ])
    func anEventThatIsDatedAhead_staysDeleted_whenItsLogIsSavedAgain(_ times: String) throws {
        let bench = try Workbench()
        let line = "{\"id\":\"vet\",\(times),\"type\":\"medicatie\"}\n"
        try bench.write("log.jsonl", line)
        try bench.tool("import", "--create", "log.jsonl")
        try bench.tool(exit: 0, "store", "delete", "vet")
        try bench.write("log.jsonl", line + #"{"id":"new","time":"2026-02-01T16:00:00Z","type":"eten"}"# + "\n")
        try bench.tool("import", "log.jsonl")
        try bench.tool("events", "export", "-o", "out.jsonl")
        let events = try bench.text("out.jsonl")
        #expect(events.contains("new") && !events.contains("vet"), "\(events)")
    }

    /// The delete came by a sync before the log did, and stays the newer one, also when the event's time has come.
    @Test func anEventThatIsToCome_staysDeleted_howeverOftenAnotherDeviceImportsIt() throws {
        let bench = try Workbench()
        let time = try bench.shell("date -u -d '+4 seconds' +%Y-%m-%dT%H:%M:%SZ").dropLast()
        try bench.write("log.jsonl", Self.event("m", String(time), #""note":"appointment""#))
        try bench.shell(
            """
            $T -q hub init hub.db; $T -q import log.jsonl --create --store b.db; $T -q sync --store b.db --hub hub.db
            $T -q store delete m --store b.db; $T -q sync --store b.db; $T -q store init; $T -q sync --hub hub.db
            """)
        for pause in [0, 0, 5] {
            try bench.shell("sleep \(pause)")
            let told = try bench.tool(exit: 0, "import", "log.jsonl")
            #expect(told.stderr.contains("1 stays deleted"), "\(pause): \(told.stderr)")
        }
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM record WHERE deleted_at IS NULL'") == "0\n")
    }

    /// A clock that was wrong when a line was written makes the line no newer with each import, also when its time has come.
    @Test(arguments: [0, 3])
    func aLineThatIsDatedAhead_isAsOldAsItsFirstImport(_ seconds: Int) throws {
        let bench = try Workbench()
        func event(_ note: String, _ modified: String) -> String {
            Self.event("m", "2026-01-01T08:00:00Z", #""note":"\#(note)","modified_at":"\#(modified)""#)
        }
        let times = seconds == 0 ? "+1 day" : "+\(seconds) seconds"
        let ahead = try bench.shell("date -u -d '\(times)' +%Y-%m-%dT%H:%M:%SZ").dropLast()
        try bench.write("log.jsonl", event("old", String(ahead)))
        try bench.tool(exit: 3, "import", "--create", "log.jsonl")
        // Somebody whose clock is right.
        try bench.shell("sleep 1.1")
        let now = try bench.shell("date -u +%Y-%m-%dT%H:%M:%S.%3NZ").dropLast()
        try bench.write("edit.jsonl", event("NEWER", String(now)))
        try bench.tool(exit: 0, "import", "edit.jsonl")
        try bench.shell("sleep \(seconds)")
        try bench.shell("mv log.jsonl moved.jsonl")
        try bench.tool(exit: 0, "import", "moved.jsonl")
        try bench.tool("events", "export", "-o", "out.jsonl")
        #expect(try bench.text("out.jsonl").contains("NEWER"))
    }

    @Test func anEditOfWhatIsKeptHere_isNamed() throws {
        let bench = try Workbench()
        func event(_ note: String, _ day: Int) -> String {
            Self.event("m", "2026-01-01T08:00:00Z", #""note":"\#(note)","modified_at":"2026-01-0\#(day)T00:00:00Z""#)
        }
        try bench.write("log.jsonl", event("old", 2))
        try bench.tool(exit: 0, "import", "--create", "log.jsonl")
        try bench.tool(exit: 0, "store", "set-local", "m")
        try bench.tool(exit: 0, "import", "log.jsonl")
        let edit = event("new", 3).replacing("2026-01-03", with: "2098-01-03")
        try bench.write("log.jsonl", edit)
        for option in [[], ["--overwrite"]] {
            let told = try bench.tool(["import", "log.jsonl"] + option)
            #expect(told.status == 3 && told.stderr.contains("'backup-tool store enable-cloud"), "\(told.stderr)")
        }
        try bench.tool(exit: 0, "store", "enable-cloud", "m")
        try bench.tool("import", "--overwrite", "log.jsonl")
        try bench.tool("events", "export", "-o", "out.jsonl")
        #expect(try bench.text("out.jsonl").contains("new"))
    }
}
