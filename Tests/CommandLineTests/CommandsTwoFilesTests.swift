import TestSupport
import Testing

/// Two files that give one work different values: this is reported once, and following the advice ends it.
@Suite struct CommandsTwoFilesTests {
    private static func entry(_ year: Int, _ note: String) -> String {
        "@article{k,title={A title},author={Name, Jo},year={\(year)},doi={10.1000/1},note={\(note)}}\n"
    }

    /// Imports both files in both ways, twice; none of them reports anything.
    private func expectSilence(_ bench: Workbench, _ when: String) throws {
        for arguments in [["a.bib"], ["b.bib"], ["--mirror", "a.bib"], ["--mirror", "b.bib"], ["a.bib"], ["b.bib"]] {
            let told = try bench.tool(["import"] + arguments)
            #expect(told.status == 0 && !told.stderr.contains("warning"), "\(when), \(arguments): \(told.stderr)")
        }
    }

    private func note(_ bench: Workbench) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.note') FROM record WHERE type = 'Publication'\"")
    }

    @Test(arguments: [(2, 1), (1, 2), (1, 1)], [[], ["--mirror"]])
    func twoFilesWithOtherValues_areReportedOnce(days: (Int, Int), flags: [String]) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry(2020, "of a"))
        try bench.write("b.bib", Self.entry(2021, "of b"))
        try bench.shell(
            "touch -d \"$(date -d '\(days.0) days ago' +%F)\" a.bib; touch -d \"$(date -d '\(days.1) days ago' +%F)\" b.bib"
        )
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        let told = try bench.tool(["import"] + flags + ["b.bib"])
        #expect(told.status == 3 && told.stderr.split(separator: "warning: ").count == 1, "\(told.stderr)")
        #expect(
            told.stderr.contains("b.bib: 'k' has other values in \(bench.path("a.bib")) (note, year); the store"),
            "\(told.stderr)")
        #expect(try note(bench) == (days.0 > days.1 ? "of b\n" : "of a\n"))
        try expectSilence(bench, "again")
        let command = try #require(told.stderr.firstMatch(of: /'backup-tool (import --overwrite [^']+)'/)).1
        try bench.shell("$T \(command)")
        #expect(try note(bench) == (days.0 > days.1 ? "of a\n" : "of b\n"))
        try expectSilence(bench, "after the advice")
        // Both say the same now.
        try bench.write("a.bib", Self.entry(2022, "of both"))
        try bench.write("b.bib", Self.entry(2022, "of both"))
        try bench.tool("import", "a.bib", "b.bib")
        #expect(try note(bench) == "of both\n")
        try expectSilence(bench, "alike")
        // Another difference is new.
        try bench.write("b.bib", Self.entry(2023, "of b, edited"))
        try bench.tool(exit: 3, "import", "b.bib")
        try expectSilence(bench, "edited")
    }

    /// What a mirror does not take for an edit of another device, too.
    @Test func aMirrorThatTakesNoOlderValues_saysSoOnce() throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry(2020, "of a"))
        try bench.shell("touch -d '3 days ago' a.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        for note in ["edited", "edited again"] {
            try bench.shell(
                """
                $T export -q --force -o out
                jq -c '.fields.note = "\(note)" | .modifiedAt = (now | todate)' out/records.jsonl > records.jsonl
                sleep 1.1
                $T import records.jsonl
                """)
            let told = try bench.tool(exit: 3, "import", "--mirror", "a.bib").stderr
            #expect(told.contains("a.bib: 1 record of it is not newer than the store's"), "\(told)")
            try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        }
        try bench.tool(exit: 0, "import", "--mirror", "--overwrite", "a.bib")
        #expect(try note(bench) == "of a\n")
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
    }

    /// A file that is gone says nothing, and neither does the earlier text of a file.
    @Test(arguments: ["gone", "edited"])
    func whatNoFileSaysAnyMore_isNoDifference(what: String) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry(2020, "of a"))
        try bench.write("b.bib", Self.entry(2020, what == "gone" ? "of b" : "of a"))
        try bench.shell("touch -d '3 days ago' a.bib; touch -d '2 days ago' b.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        if what == "gone" { try bench.shell("rm a.bib") } else { try bench.tool(exit: 0, "import", "b.bib") }
        if what == "edited" {
            try bench.write("a.bib", Self.entry(2020, "of a, edited"))
            try bench.tool("import", "a.bib")
            try bench.write("b.bib", Self.entry(2020, "of a, edited"))
        }
        let told = try bench.tool(exit: 0, "import", "b.bib").stderr
        #expect(!told.contains("other values"), "\(told)")
    }
}

/// What both files drop goes, and keywords belong to the files that hold them.
@Suite struct CommandsTwoFilesDropTests {
    private static func entry(_ more: String, year: Int = 2020) -> String {
        "@article{k,title={A title},author={Name, Jo},year=\(year),doi={10.1000/1}\(more)}\n"
    }

    private func field(_ bench: Workbench, _ name: String) throws -> String {
        try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.\(name)') FROM record WHERE fields LIKE '%A title%'\"")
    }

    private func twoFiles(_ ofA: String, _ ofB: String) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry(ofA) + "@misc{o,title={Of a}}\n")
        try bench.write("b.bib", Self.entry(ofB) + "@misc{p,title={Of b}}\n")
        try bench.shell("touch -d '3 days ago' a.bib; touch -d '2 days ago' b.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool("import", "b.bib")
        return bench
    }

    @Test(arguments: [["a", "b"], ["b", "a"]], [false, true])
    func aFieldThatBothFilesDrop_goes(order: [String], isImportedFirst: Bool) throws {
        let bench = try twoFiles(",note={of a}", ",note={of b}")
        try bench.write("a.bib", Self.entry("") + "@misc{o,title={Of a}}\n")
        try bench.write("b.bib", Self.entry("") + "@misc{p,title={Of b}}\n")
        if isImportedFirst { for name in order { try bench.tool(exit: 0, "import", "\(name).bib") } }
        for name in order { try bench.tool("import", "--mirror", "\(name).bib") }
        #expect(try field(bench, "note") == "\n")
        for name in order {
            try bench.tool(exit: 0, "import", "--mirror", "\(name).bib")
            try bench.tool(exit: 0, "import", "\(name).bib")
        }
    }

    @Test(arguments: [["a", "b"], ["b", "a"]], [false, true])
    func anEntryThatBothFilesDrop_goes(order: [String], isImportedFirst: Bool) throws {
        let bench = try twoFiles(",note={of a}", ",note={of b}")
        try bench.write("a.bib", "@misc{o,title={Of a}}\n")
        try bench.write("b.bib", "@misc{p,title={Of b}}\n")
        if isImportedFirst { for name in order { try bench.tool(exit: 0, "import", "\(name).bib") } }
        for name in order { try bench.tool("import", "--mirror", "\(name).bib") }
        #expect(try field(bench, "note") == "")
        for name in order { try bench.tool(exit: 0, "import", "--mirror", "\(name).bib") }
    }

    /// What somebody wrote elsewhere stays, whoever drops it.
    @Test func aFieldThatAnAppWrote_staysWhenBothFilesDropIt() throws {
        let bench = try twoFiles(",note={of a}", ",note={of b}")
        try bench.shell(
            """
            $T export -q --force -o out
            jq -c 'if .fields.citeKey == "k" then .fields.note = "of an app" | .modifiedAt = (now | todate) else . end' \
            out/records.jsonl > records.jsonl
            sleep 1.1
            $T import records.jsonl
            """)
        try bench.write("a.bib", Self.entry("") + "@misc{o,title={Of a}}\n")
        try bench.write("b.bib", "@misc{p,title={Of b}}\n")
        for name in ["a", "b", "a"] { try bench.tool("import", "--mirror", "\(name).bib") }
        #expect(try field(bench, "note") == "of an app\n")
    }

    @Test(arguments: [["a", "b"], ["b", "a"]])
    func oneNewValueInBothFiles_isNoDifference(order: [String]) throws {
        let bench = try twoFiles(",note={of a}", ",note={of b}")
        try bench.write("a.bib", Self.entry(",note={of both}"))
        try bench.write("b.bib", Self.entry(",note={of both}"))
        let told = try bench.tool(["import"] + order.map { "\($0).bib" })
        #expect(told.status == 0 && !told.stderr.contains("other values"), "\(told.stderr)")
        // The old value of one file is a difference again.
        try bench.write("b.bib", Self.entry(",note={of b}"))
        let again = try bench.tool(exit: 3, "import", "b.bib").stderr
        #expect(again.contains("has other values in \(bench.path("a.bib")) (note)"), "\(again)")
        try bench.tool(exit: 0, "import", "b.bib", "a.bib")
    }

    @Test func aKeyword_staysAsLongAsAFileHoldsIt() throws {
        let bench = try twoFiles(",keywords={x, y}", ",keywords={y, z}")
        #expect(try field(bench, "keywords") == "y, z, x\n")
        try bench.tool(exit: 0, "import", "--overwrite", "a.bib")
        #expect(try field(bench, "keywords").count == "x, y, z\n".count)
        try bench.write("a.bib", Self.entry(",keywords={y}"))
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        #expect(try Set(field(bench, "keywords")) == Set("y, z\n"))
        try bench.write("b.bib", Self.entry(""))
        try bench.tool(exit: 3, "import", "--mirror", "b.bib")
        #expect(try field(bench, "keywords") == "y\n")
        try bench.write("a.bib", Self.entry(""))
        try bench.tool(exit: 0, "import", "--mirror", "a.bib")
        #expect(try field(bench, "keywords") == "\n")
        for name in ["a", "b", "a"] { try bench.tool(exit: 0, "import", "--mirror", "\(name).bib") }
        try bench.tool(exit: 0, "store", "check")
    }

    /// A keyword that an app added is nobody's to remove, and one that the file lost goes also where others stay.
    @Test func aKeywordThatAnAppAdded_stays() throws {
        let bench = try twoFiles(",keywords={x; y}", ",keywords={x; y}")
        try bench.shell(
            """
            $T export -q --force -o out
            jq -c 'if .fields.citeKey == "k" then .fields.keywords = "x; y; mine" | .modifiedAt = (now | todate) else . end' \
            out/records.jsonl > records.jsonl
            sleep 1.1
            $T import records.jsonl
            """)
        try bench.tool("import", "--overwrite", "a.bib")
        #expect(try field(bench, "keywords").contains("mine"))
        try bench.write("a.bib", Self.entry(",keywords={y}"))
        try bench.write("b.bib", Self.entry(",keywords={y}"))
        for name in ["a", "b"] { try bench.tool("import", "--mirror", "\(name).bib") }
        #expect(try field(bench, "keywords") == "y; mine\n")
    }
}

/// A keyword is there as long as any file holds it, whichever of them is edited and imported again.
@Suite struct CommandsKeywordOwnerTests {
    private static func entry(_ keywords: String) -> String {
        "@article{k,title={A title},author={Name, Jo},year=2020,doi={10.1000/1},keywords={\(keywords)}}\n"
    }

    private func keywords(_ bench: Workbench) throws -> Set<String> {
        let text = try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.keywords') FROM record WHERE type = 'Publication'\"")
        return Set(text.dropLast().split(separator: ",").map { String($0.drop { $0 == " " }) })
    }

    @Test(arguments: ["x, y", "y, x", "y"], [[], ["--mirror"], ["--overwrite"]])
    func aKeywordThatOneFileLoses_staysForTheOther(ofB: String, flags: [String]) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry("x, y"))
        try bench.write("b.bib", Self.entry(ofB))
        try bench.shell("touch -d '3 days ago' a.bib; touch -d '2 days ago' b.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "import", "b.bib")
        try bench.write("a.bib", Self.entry("x"))
        try bench.tool(["import"] + flags + ["a.bib"])
        #expect(try keywords(bench) == ["x", "y"])
        try bench.write("b.bib", Self.entry("z"))
        try bench.tool(["import"] + flags + ["b.bib"])
        #expect(try keywords(bench) == ["x", "z"])
    }

    @Test(arguments: testSeeds(4)) func whatTheFilesHoldTogether_isWhatTheStoreHas(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        let words = ["u", "v", "w", "x", "y"]
        var held: [String: Set<String>] = [:]
        try bench.tool(exit: 0, "store", "init")
        for step in 0..<10 {
            let file = ["a.bib", "b.bib", "c.bib"][random.below(3)]
            var now = words.filter { _ in random.below(2) == 0 }
            if now.isEmpty { now = ["u"] }
            for index in now.indices { now.swapAt(index, random.below(now.count)) }
            held[file] = Set(now)
            try bench.write(file, Self.entry(now.joined(separator: ", ")))
            let flags = [[], ["--mirror"], ["--overwrite"]][random.below(3)]
            let told = try bench.tool(["import"] + flags + [file])
            #expect(told.status == 0, "\(told.stderr)")
            let all = held.values.reduce(into: Set<String>()) { $0.formUnion($1) }
            #expect(try keywords(bench) == all, "step \(step): \(file) \(now) \(flags)")
        }
        try bench.tool(exit: 0, "store", "check")
    }

    /// An export holds the keywords of all files: edited, it removes what no other file holds.
    @Test(arguments: [[], ["--overwrite"]]) func anEditedExport_removesWhatNoFileHolds(flags: [String]) throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry("x, y"))
        try bench.shell("touch -d '3 days ago' a.bib")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.shell(
            """
            $T export -q -o out
            jq -c '.fields.keywords = "x, y, mine" | .modifiedAt = "2026-01-02T00:00:00Z"' out/records.jsonl > records.jsonl
            $T import --overwrite records.jsonl
            $T export -q --force -o out
            sed -i 's/x, y, mine/x/' out/library.bib
            """)
        try bench.tool(["import"] + flags + ["out/library.bib"])
        #expect(try keywords(bench) == ["x", "y"])
    }

    /// Most of their entries are the same, and both lie where they were imported from.
    @Test(arguments: [[], ["--mirror"]])
    func twoFilesWithMostEntriesInCommon_keepTheirMacrosAndGroups(flags: [String]) throws {
        let bench = try Workbench()
        let common = (1...4).map { "@misc{k\($0), title={Title \($0)}, author={Both, Of}, year={201\($0)}}\n" }.joined()
        func text(_ name: String, _ group: String) -> String {
            "@string{acm = {Acm of \(name)}}\n\(common)@misc{\(name), title={By \(name)}, journal=acm}\n"
                + "@comment{jabref-meta: grouping:\n1 StaticGroup:\(group)\\;0\\;1\\;\\;\\;\\;;\n}\n"
        }
        try bench.write("ann.bib", text("ann", "Thesis"))
        try bench.write("bob.bib", text("bob", "Reviews"))
        try bench.shell("touch -d '1 hour ago' *.bib; $T store init")
        for file in ["ann.bib", "bob.bib", "ann.bib", "bob.bib"] {
            let told = try bench.tool(words: ["import"] + flags + [file], exit: 0)
            #expect(!told.stderr.contains("warning"), "\(file): \(told.stderr)")
        }
        func exported(_ name: String) throws -> String {
            try bench.tool(exit: 0, "export", "-q", "-o", name, "--order", "source")
            return try bench.text("\(name)/library.bib")
        }
        let both = try exported("both")
        for part in ["Acm of ann", "Acm of bob", "By ann}, journal=acm", "By bob}, journal=acm", "Thesis", "Reviews"] {
            #expect(both.contains(part), "\(part): \(both)")
        }
        // Ann's groups go with her file, and nothing of Bob's.
        try bench.shell("sed -i '/^@comment/,$d' ann.bib")
        for file in ["ann.bib", "bob.bib", "ann.bib"] { try bench.tool(exit: 0, "import", "--mirror", file) }
        let bobs = try exported("bobs")
        #expect(!bobs.contains("Thesis") && bobs.contains("Reviews") && bobs.contains("Acm of ann"), "\(bobs)")
    }

    /// They began as one text. The first that is edited gets parts of its own, and a mirror of one takes nothing of the other.
    @Test(arguments: ["ann.bib", "bob.bib"], [[], ["--mirror"]])
    func aCopyThatIsEdited_isAFileOfItsOwn(edited: String, flags: [String]) throws {
        let bench = try Workbench()
        let other = edited == "ann.bib" ? "bob.bib" : "ann.bib"
        let entries = (1...9).map { "@misc{k\($0), title={Title \($0)}, author={Both, Of}, year={201\($0)}}" }.joined()
        try bench.write(
            "ann.bib",
            "@string{acm = {Acm of both}}\n\(entries)\n"
                + "@comment{jabref-meta: grouping:\n1 StaticGroup:Both\\;0\\;1\\;\\;\\;\\;;\n}\n")
        try bench.shell("touch -d '1 hour ago' ann.bib; cp -p ann.bib bob.bib; $T store init")
        for file in ["ann.bib", "bob.bib"] { try bench.tool(words: ["import"] + flags + [file], exit: 0) }
        #expect(try bench.json(exit: 0, "export", "-o", "copies")["records"]?["publications"]?.integer == 9)
        try bench.shell("sed -i 's/Acm of both/Acm of one/; s/Group:Both/Group:One/' \(edited)")
        try bench.shell("touch -d '30 minutes ago' \(edited)")
        let digest = try bench.digest()
        try bench.tool(words: ["import"] + flags + [other], exit: 0)
        #expect(try bench.digest() == digest)
        for file in [edited, other, edited] { try bench.tool(words: ["import"] + flags + [file], exit: 0) }
        func exported(_ name: String) throws -> String {
            try bench.tool(exit: 0, "export", "-q", "-o", name, "--order", "source")
            return try bench.text("\(name)/library.bib")
        }
        let both = try exported("first")
        for part in ["Acm of both", "Acm of one", "Group:One", "Group:Both"] {
            #expect(both.contains(part), "\(part): \(both)")
        }
        try bench.shell("sed -i '/^@string/d; /^@comment/,$d' \(edited)")
        for file in [edited, other, edited] { try bench.tool(exit: 0, "import", "--mirror", file) }
        let left = try exported("second")
        #expect(left.contains("Acm of both") && left.contains("Group:Both"), "\(left)")
        #expect(!left.contains("Acm of one") && !left.contains("Group:One"), "\(left)")
    }
}
