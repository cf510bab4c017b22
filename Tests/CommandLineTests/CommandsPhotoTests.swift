import BackupKit
import TestSupport
import Testing

/// Two people's phones count their photos alike: an event shows its own, whatever else has that name.
struct CommandsPhotoTests {
    private static let people = ["ann", "bob"]

    /// A log with a photo of its own for each person, under one name.
    private func logs(in bench: Workbench) throws {
        for (number, person) in Self.people.enumerated() {
            try bench.write("\(person)/photos/IMG_1.jpg", "a photo of \(person)")
            try bench.write(
                "\(person)/2026-02-14.jsonl",
                """
                {"id":"\(person)","time":"2026-02-14T1\(number):00:00+01:00","type":"moment","photo":"photos/IMG_1.jpg"}

                """)
        }
    }

    /// What the photo of each event shows.
    private func shown(in store: String, _ bench: Workbench) throws -> [String: String] {
        let rows = try bench.shell(
            "sqlite3 \(store) \"SELECT local_id, json_extract(fields, '$.photo') FROM record WHERE type = 'PuppyEvent'\""
        )
        var found: [String: String] = [:]
        for row in rows.split(separator: "\n") {
            let parts = row.split(separator: "|").map(String.init)
            // Of a deleted event nothing is left, and a name may stand for a file that was not there.
            guard parts.count == 2 else { continue }
            found[parts[0]] = try bench.shell(
                "cat '\(store).assets/Attachments/\(parts[1])' 2> /dev/null || true")
        }
        return found
    }

    private let all = ["ann": "a photo of ann", "bob": "a photo of bob"]

    @Test(arguments: ["one by one", "together", "as attachments", "without a log beside"])
    func eachEventShowsItsOwnPhoto_howeverTheLogsAreImported(how: String) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "store", "init")
        switch how {
        case "together": try bench.tool(exit: 3, "import", "ann", "bob")
        case "as attachments":
            // The log itself is no attachment.
            try bench.tool(exit: 0, "import", "ann", "--attachments", "ann")
            try bench.tool(exit: 3, "import", "bob", "--attachments", "bob")
        case "without a log beside":
            try bench.shell("mkdir logs && for p in ann bob; do mkdir logs/$p && mv $p/*.jsonl logs/$p; done")
            try bench.tool(exit: 0, "import", "logs/ann", "--attachments", "ann")
            try bench.tool(exit: 3, "import", "logs/bob", "--attachments", "bob")
        default:
            try bench.tool(exit: 0, "import", "ann")
            try bench.tool(exit: 3, "import", "bob")
        }
        #expect(try shown(in: "store.db", bench) == all)
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM asset'") == "2\n")
        // The logs say nothing new.
        let digest = try bench.tool(exit: 0, "store", "digest").stdout
        if how != "without a log beside" {
            let again = try bench.json(exit: 0, "import", "ann", "bob")
            #expect(again["writes"]?.integer == 0, "\(again)")
        }
        #expect(try bench.tool(exit: 0, "store", "digest").stdout == digest)
        try bench.tool(exit: 0, "export", "-o", "e.tar")
        try bench.tool(exit: 0, "verify", "e.tar", "--level", "deep")
        try bench.tool(exit: 0, "events", "export", "-o", "out")
        try bench.tool(exit: 0, "import", "out", "--store", "other.db", "--create")
        #expect(try shown(in: "other.db", bench) == all)
    }

    @Test func eachEventShowsItsOwnPhoto_afterASyncAndARestore() throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for person in Self.people {
            try bench.tool(exit: 0, "import", person, "--store", "\(person).db", "--create")
            try bench.tool(exit: 0, "export", "--store", "\(person).db", "-o", "\(person).tar")
        }
        for person in Self.people + Self.people {
            try bench.tool("sync", "--hub", "hub.db", "--store", "\(person).db")
        }
        for person in Self.people { #expect(try shown(in: "\(person).db", bench) == all) }
        let digests = try Self.people.map { try bench.tool(exit: 0, "store", "digest", "--store", "\($0).db").stdout }
        #expect(digests[0] == digests[1])
        // Backups from before know the photos by the old name.
        for person in Self.people + Self.people {
            try bench.tool("restore", "ann.tar", "--store", "\(person).db")
            try bench.tool("restore", "bob.tar", "--store", "\(person).db")
            #expect(try shown(in: "\(person).db", bench) == all)
        }
        for backups in [["ann.tar", "bob.tar"], ["bob.tar", "ann.tar"]] {
            try bench.shell("rm -rf new.db*")
            for backup in backups { try bench.tool("restore", backup, "--store", "new.db", "--create") }
            #expect(try shown(in: "new.db", bench) == all)
            try bench.tool(exit: 0, "undo", "--store", "new.db")
            #expect(try shown(in: "new.db", bench).count == 1)
            try bench.tool(exit: 0, "undo", "--redo", "--store", "new.db")
            #expect(try shown(in: "new.db", bench) == all)
        }
    }

    @Test func aDecisionAboutTwoPhotos_movesTheEventToTheOneThatStays() throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "import", "ann", "--create")
        try bench.tool(exit: 3, "import", "bob")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-existing")
        #expect(try shown(in: "store.db", bench) == ["ann": "a photo of ann", "bob": "a photo of ann"])
        try bench.tool(exit: 0, "undo")
        #expect(try shown(in: "store.db", bench) == all)
    }

    @Test func anEventThatIsRestoredByItself_bringsItsPhoto() throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "import", "ann", "--create")
        try bench.tool(exit: 0, "export", "-o", "e.tar")
        try bench.tool(exit: 0, "restore", "e.tar", "--match", "ann", "--store", "new.db", "--create")
        #expect(try shown(in: "new.db", bench) == ["ann": "a photo of ann"])
    }

    @Test(arguments: [["import", "ann"], ["events", "import", "ann"]])
    func aLogOfAPurgedEvent_bringsNoPhoto(command: [String]) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "import", "ann", "--create")
        try bench.tool(exit: 0, "store", "delete", "ann")
        try bench.tool(exit: 0, "store", "purge", "ann", "--with-files", "--confirm")
        let again = try bench.tool(command)
        #expect(again.stderr.contains("1 attachment of deleted records left out"), "\(again.stderr)")
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM asset'") == "0\n")
    }

    /// Ann's photo is not there when her log is imported, and comes later.
    @Test(arguments: ["beside the log", "as attachments", "without a log beside"])
    func aPhotoThatIsNotThereYet_isNotSomebodyElses(how: String) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.shell("mv ann/photos away")
        try bench.tool(exit: 3, "import", "ann", "--create")
        switch how {
        case "as attachments": try bench.tool(exit: 3, "import", "bob", "--attachments", "bob")
        case "without a log beside":
            try bench.shell("mkdir logs && mv bob/*.jsonl logs")
            try bench.tool(exit: 3, "import", "logs", "--attachments", "bob")
        default: try bench.tool(exit: 3, "import", "bob")
        }
        #expect(try bench.shell("sqlite3 store.db 'SELECT path FROM asset'").contains("IMG_1_conflict_"))
        try bench.shell("mv away ann/photos")
        try bench.tool(exit: 3, "import", "ann")
        #expect(try shown(in: "store.db", bench) == all)
    }

    /// Bob's phone has a photo of that name, and Ann's log comes without hers.
    @Test(arguments: ["sync, hers first", "sync, his first", "import", "restore", "restore, replacing"])
    func anEventWithoutItsPhoto_showsNobodyElses(how: String) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.shell("mv ann/photos away")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        let stores = how.hasPrefix("sync") ? ["a.db", "b.db"] : ["b.db"]
        try bench.tool(exit: 3, "import", "ann", "--create", "--store", "a.db")
        try bench.tool(exit: 0, "import", "bob", "--create", "--store", "b.db")
        func syncAll() throws {
            for store in (how == "sync, his first" ? ["b.db", "a.db"] : ["a.db", "b.db"]) + stores {
                try bench.tool("sync", "--store", store, "--hub", "hub.db")
            }
        }
        switch how {
        case "import":
            let result = try bench.tool(exit: 3, "import", "ann", "--store", "b.db")
            #expect(result.stderr.contains("photos/IMG_1.jpg: is named by an event, but was not found"))
        case "restore", "restore, replacing":
            try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "bk")
            let mode = how == "restore" ? "merge" : "replace"
            // What replaces takes his event away, and his photo with it.
            let code: Int32 = mode == "merge" ? 3 : 0
            try bench.tool(exit: code, "restore", "bk", "--store", "b.db", "--mode", mode)
            if mode == "replace" { return #expect(try bench.shell("find b.db.assets -name '*.jpg' | wc -l") == "0\n") }
        default: try syncAll()
        }
        for store in stores {
            let shown = try bench.shell(
                "sqlite3 \(store) \"SELECT sha256 FROM record LEFT JOIN asset ON path = 'Attachments/' || json_extract("
                    + "fields, '$.photo') WHERE local_id = 'ann'\"")
            #expect(shown == "\n", "\(store)")
        }
        // Her photo comes.
        try bench.shell("mv away ann/photos")
        try bench.tool("import", "ann", "--store", stores[0])
        if how.hasPrefix("sync") { try syncAll() }
        for store in stores { #expect(try self.shown(in: store, bench) == all, "\(store)") }
    }

    /// A version that waits in quarantine brings its own photo out.
    @Test func aReleasedEvent_showsItsOwnPhoto() throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.tool(exit: 0, "import", "ann", "--create", "--store", "a.db")
        try bench.tool(exit: 0, "export", "--store", "a.db", "-o", "bk")
        try bench.tool(exit: 0, "import", "bob", "--create", "--store", "b.db")
        try bench.tool(exit: 0, "restore", "bk", "--store", "b.db", "--sync-policy", "quarantine")
        try bench.tool("store", "enable-cloud", "--store", "b.db", "ann")
        #expect(try shown(in: "b.db", bench) == all)
    }

    /// Names that differ in case only, and the second photo comes later.
    @Test func aLatePhotoThatGetsAnotherName_isLinked() throws {
        let bench = try Workbench()
        try bench.write("log/photos/a.jpg", "small")
        try bench.write(
            "log/l.jsonl",
            """
            {"id":"small","time":"2026-02-14T10:00:00+01:00","type":"moment","photo":"photos/a.jpg"}
            {"id":"big","time":"2026-02-14T11:00:00+01:00","type":"moment","photo":"photos/A.jpg"}

            """)
        try bench.tool(exit: 3, "import", "log", "--create")
        try bench.write("log/photos/A.jpg", "BIG")
        try bench.tool(exit: 3, "import", "log")
        #expect(try shown(in: "store.db", bench) == ["small": "small", "big": "BIG"])
        #expect(try bench.json(exit: 0, "import", "log")["writes"]?.integer == 0)
    }

    /// An app gives its lines ids later, or a log comes as it was before.
    @Test(arguments: [["plain", "ids"], ["ids", "plain"], ["plain", "plain"], ["ids", "ids"]])
    func aLogWhosePhotoGaveWay_changesNothingWhenItComesAgain(forms: [String]) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.write("plain/photos/IMG_1.jpg", "a photo of bob")
        try bench.shell("sed 's/\"id\":\"bob\",//' bob/2026-02-14.jsonl > plain/2026-02-14.jsonl; mv bob ids")
        try bench.tool(exit: 0, "import", "ann", "--create")
        try bench.tool(exit: 3, "import", forms[0])
        let second = try bench.tool(exit: 0, "import", forms[1]).stderr
        #expect(second.contains(forms == ["plain", "ids"] ? "1 updated" : "1 unchanged"), "\(second)")
        for log in forms + ["ann"] {
            let again = try bench.tool(exit: 0, "import", log).stderr
            #expect(again.contains("1 unchanged"), "\(again)")
        }
        let found = try shown(in: "store.db", bench)
        #expect(found.count == 2 && Set(found.values) == Set(all.values), "\(found)")
    }

    /// Two files below the folder of the log that would get one path in the store.
    @Test func photosThatWouldGetOnePath_bothCome() throws {
        let bench = try Workbench()
        for (number, path) in ["photos/a.jpg", "Attachments/photos/a.jpg"].enumerated() {
            try bench.write("log/\(path)", "photo \(number)")
            let time = "2026-02-14T1\(number):00:00+01:00"
            let line = #"{"id":"\#(number)","time":"\#(time)","type":"moment","photo":"\#(path)"}"#
            try bench.shell("echo '\(line)' >> log/l.jsonl")
        }
        try bench.tool(exit: 3, "import", "log", "--create")
        try bench.tool(exit: 0, "events", "export", "-o", "out")
        for line in try bench.text("out/2026-02-14.jsonl").split(separator: "\n") {
            let event = try JSON(parsing: String(line))
            let (id, photo) = (try #require(event["id"]?.string), try #require(event["photo"]?.string))
            #expect(try bench.text("out/\(photo)") == "photo \(id)", "\(line)")
        }
    }

    /// A log has an event twice, as a line without an id and as one that has got its id: two events with one photo.
    @Test func twoFormsOfALine_showTheirPhoto_andStayAsTheyAre() throws {
        let bench = try Workbench()
        let line = #""time":"2026-02-14T10:00:00+01:00","type":"moment","photo":"photos/a.jpg"}"#
        let log = "{\(line)\n{\"id\":\"95422412-ed98-45b6-b5c4-16e0d7615b00\",\(line)\n"
        try bench.write("log/2026-02-14.jsonl", log)
        try bench.write("log/photos/a.jpg", "a photo")
        for isEmpty in [true, false] {
            let store = isEmpty ? "new.db" : "store.db"
            if !isEmpty {
                try logs(in: bench)
                try bench.tool(exit: 0, "import", "ann", "--create", "--store", store)
                try bench.tool(exit: 0, "store", "delete", "ann", "--store", store)
            }
            try bench.tool(exit: 0, "import", "log", "--create", "--store", store)
            try bench.shell("rm -rf out")
            try bench.tool(exit: 0, "events", "export", "--store", store, "-o", "out")
            func lines(_ text: String) -> [Substring] { text.split(separator: "\n").sorted() }
            #expect(try lines(bench.text("out/2026-02-14.jsonl")) == lines(log))
            #expect(try bench.files("out").sorted() == ["2026-02-14.jsonl", "photos/a.jpg"])
        }
    }

    /// The photo of a deleted event is no other one's because both are called alike.
    @Test func theFileOfADeletedEvent_isShownByNoOther() throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.shell("mv bob/photos away")
        try bench.tool(exit: 0, "import", "ann", "--create")
        try bench.tool(exit: 0, "store", "delete", "ann")
        let told = try bench.tool(exit: 3, "import", "bob").stderr
        #expect(told.contains("photos/IMG_1.jpg: is named by an event, but was not found"), "\(told)")
        #expect(try shown(in: "store.db", bench)["bob"] == "")
        try bench.shell("mv away bob/photos")
        try bench.tool("import", "bob")
        #expect(try shown(in: "store.db", bench)["bob"] == "a photo of bob")
        try bench.tool(exit: 0, "store", "check")
    }

    /// The photo comes later, with a copy of the log from before its line got an id, or from after it, or with one that tells
    /// the time in other words; also where another event has a photo of its name by then.
    @Test(arguments: ["plain", "ids", "words"], [false, true])
    func aLatePhoto_isTheEvents_inWhicheverFormItsLineComes(form: String, isNameTaken: Bool) throws {
        let bench = try Workbench()
        try logs(in: bench)
        try bench.shell(
            """
            mkdir plain words; sed 's/"id":"bob",//' bob/2026-02-14.jsonl > plain/2026-02-14.jsonl
            sed 's/T\\(..:..\\):00+01:00/T\\1+01:00/' plain/2026-02-14.jsonl > words/2026-02-14.jsonl
            mv bob/photos away; mv bob ids
            """)
        try bench.tool(exit: 3, "import", "plain", "--create")
        try bench.tool(exit: 3, "import", "ids")
        if isNameTaken { try bench.tool(exit: 3, "import", "ann") }
        try bench.shell("mv away \(form)/photos")
        try bench.tool(exit: isNameTaken ? 3 : 0, "import", form)
        #expect(try shown(in: "store.db", bench) == all.filter { isNameTaken || $0.key == "bob" })
        #expect(try bench.json(exit: 0, "import", form)["writes"]?.integer == 0)
    }

    /// The log that `events export` writes says what its store has, also of photos that got other names.
    @Test(arguments: [["a", "a"], ["a", "A"]])
    func anExportedLog_isNoNewsToItsStore(names: [String]) throws {
        let bench = try Workbench()
        for (number, name) in names.enumerated() {
            try bench.write("log\(number)/photos/\(name).jpg", "photo \(number)")
            try bench.write(
                "log\(number)/2026-02-14.jsonl",
                #"{"time":"2026-02-14T1\#(number):00:00+01:00","type":"moment","photo":"photos/\#(name).jpg"}"# + "\n")
            try bench.tool("import", "log\(number)", "--create")
        }
        try bench.tool(exit: 0, "events", "export", "-o", "out")
        for words in [["import"], ["events", "import"], ["import", "--dry-run"], ["import", "--overwrite"]] {
            let again = try bench.tool(words + ["out", "--json"])
            #expect(again.status == 0, "\(again)")
            let done = try JSON(parsing: again.stdout)
            #expect(done["added"]?.integer == 0 && done["unchanged"]?.integer == 2, "\(words): \(done)")
        }
        for log in ["log0", "log1"] { #expect(try bench.json(exit: 0, "import", log)["writes"]?.integer == 0) }
    }

    @Test(arguments: ["photo", "video", "thumbnail_path"])
    func aNameThatIsTooLong_costsItsFileOnly(key: String) throws {
        let bench = try Workbench()
        let name = String(repeating: "n", count: 300)
        try bench.write(
            "day.jsonl",
            """
            {"id":"a","time":"2026-02-14T10:00:00+01:00","type":"moment","\(key)":"\(name).jpg"}
            {"id":"b","time":"2026-02-14T11:00:00+01:00","type":"moment","\(key)":"\(name)/\(name).jpg"}
            {"id":"c","time":"2026-02-14T12:00:00+01:00","type":"eten"}

            """)
        let imported = try bench.tool(exit: 3, "events", "import", "--create", "day.jsonl")
        #expect((imported.stdout + imported.stderr).contains("nnn"))
        #expect(try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE type = 'PuppyEvent'\"") == "3\n")
        try bench.tool("export", "-o", "out")
        let digest = try bench.digest()
        try bench.tool("restore", "out", "--create", "--store", "other.db")
        #expect(try bench.digest("other.db") == digest)
    }
}
