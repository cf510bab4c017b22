import BackupKit
import TestSupport
import Testing

/// What `restore --mode replace` leaves of a publication that has taken in another one since the backup: its files, too.
@Suite struct CommandsReplaceMergedTests {
    private static let titles = ["a": "Alpha one", "b": "Beta two", "c": "Gamma three"]

    /// The works a, b and c in folders of their own, all under one cite key; each has a PDF.
    private func bench(_ files: [String: String] = [:], keys: [String: String] = [:]) throws -> Workbench {
        let bench = try Workbench()
        for (name, entry) in [
            ("a", "@article{KEY, author={Smith, Ann}, title={Alpha one}, year={2020}, file={:FILE:PDF}}"),
            ("b", "@book{KEY, author={Jones, Bob}, title={Beta two}, year={2021}, file={:FILE:PDF}}"),
            ("c", "@misc{KEY, author={Doe, Cat}, title={Gamma three}, year={2022}, file={:FILE:PDF}}"),
        ] {
            let file = "pdf/\(files[name] ?? name).pdf"
            try bench.write("\(name)/\(file)", "bytes of \(name)\n")
            let text = try bench.shell(
                "echo '\(entry)' | sed 's|KEY|\(keys[name] ?? "k")|; s|FILE|\(file)|' | tee \(name)/lib.bib")
            #expect(text.contains(file))
        }
        return bench
    }

    /// Takes in `second` beside `first` and merges the two, so that the one called `survivor` lives on.
    private func merge(_ bench: Workbench, _ second: String, into survivor: String) throws {
        // Of two works the file that was saved last says which one stays.
        let old = survivor == second ? "" : "touch -d '3 days ago' \(second)/lib.bib; "
        try bench.shell("\(old)$T import \(second)/lib.bib -q || true; $T conflicts list --json > conflicts.json")
        let number = try #require(try bench.text("conflicts.json").firstMatch(of: /"(?:id|number)": ?(\d+)/)).1
        try bench.tool(exit: 0, "conflicts", "resolve", "\(number)", "--with", "merge")
        #expect(try titles(bench).contains(try #require(Self.titles[survivor])))
    }

    private func titles(_ bench: Workbench) throws -> [String] {
        try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.title') FROM record WHERE type = 'Publication'"
                + " AND deleted_at IS NULL ORDER BY 1\""
        ).split(separator: "\n").map(String.init)
    }

    /// The bytes that each living publication links, by its title; nil where there is no file.
    private func linked(_ bench: Workbench, store: String = "store.db") throws -> [String: Set<String>] {
        let rows = try bench.shell(
            "sqlite3 -separator '|' \(store) \"SELECT json_extract(r.fields, '$.title'), l.value FROM record r,"
                + " json_each(r.fields, '$.linkedFiles') l WHERE r.type = 'Publication' AND r.deleted_at IS NULL\"")
        var found: [String: Set<String>] = [:]
        for row in rows.split(separator: "\n") {
            let parts = row.split(separator: "|").map(String.init)
            let known = try bench.shell("sqlite3 \(store) \"SELECT count(*) FROM asset WHERE path = '\(parts[1])'\"")
            let bytes = try bench.shell("cat \(store).assets/\(parts[1]) 2> /dev/null || echo nothing")
            found[parts[0], default: []].insert(known == "1\n" ? bytes : "no file")
        }
        return found
    }

    /// Restores as a dry run and in earnest, which say the same, and then once more, which changes nothing.
    private func replace(_ bench: Workbench, by backup: String) throws -> (told: String, counts: JSON) {
        let plan = try bench.json(exit: 3, "restore", backup, "--mode", "replace", "--dry-run")
        let before = try bench.digest()
        #expect(try bench.digest() == before)
        try bench.shell("cp store.db probe.db; cp -r store.db.assets probe.db.assets")
        let done = try bench.json(exit: 3, "restore", backup, "--mode", "replace", "--store", "probe.db")
        let told = try bench.tool(exit: 3, "restore", backup, "--mode", "replace").stderr
        for field in ["added", "updated", "removed", "protected", "attachments"] {
            #expect(plan[field] == done[field], "\(field): \(plan) and \(done)")
        }
        let again = try bench.json(exit: 3, "restore", backup, "--mode", "replace")
        #expect(again["writes"]?.integer == 0, "\(again)")
        try bench.tool(exit: 0, "store", "check")
        return (told, done)
    }

    /// The advice, typed as it was printed.
    private func follow(_ bench: Workbench, _ told: String) throws -> String {
        let line = try #require(
            told.split(separator: "\n").first { $0.contains("--resurrect' ") || $0.hasSuffix("--resurrect'") })
        let commands = line.matches(of: /'backup-tool ([^']+)'/).map { String($0.1) }
        #expect(!commands.isEmpty)
        for command in commands { try bench.shell("$T \(command) 2>> said.txt") }
        return String(line)
    }

    @Test func aWorkThatIsNotInTheBackup_keepsItsFiles() throws {
        let bench = try bench()
        try bench.shell("$T import --create a/lib.bib; $T export -o old.tar")
        try merge(bench, "b", into: "b")
        let both: Set = ["bytes of a\n", "bytes of b\n"]
        #expect(try linked(bench) == ["Beta two": both])
        let (told, counts) = try replace(bench, by: "old.tar")
        #expect(counts["attachments"]?["removed"]?.integer == 0, "\(counts)")
        #expect(try linked(bench) == ["Beta two": both])
        let advice = try follow(bench, told)
        #expect(advice.contains("brings that one back and removes this one"), "\(advice)")
        #expect(try linked(bench) == ["Alpha one": ["bytes of a\n"]])
        try bench.tool(exit: 0, "restore", "old.tar", "--mode", "replace")
    }

    @Test func aWorkThatTheBackupHasAsItWasBefore_keepsItsFiles() throws {
        let bench = try bench()
        try bench.shell("$T import --create a/lib.bib; $T export -o old.tar")
        try merge(bench, "b", into: "a")
        let both: Set = ["bytes of a\n", "bytes of b\n"]
        let (told, counts) = try replace(bench, by: "old.tar")
        #expect(counts["attachments"]?["removed"]?.integer == 0, "\(counts)")
        #expect(try linked(bench) == ["Alpha one": both])
        let advice = try follow(bench, told)
        #expect(advice.contains("'backup-tool store delete Library/"), "\(advice)")
        #expect(try linked(bench) == ["Alpha one": ["bytes of a\n"]])
        try bench.tool(exit: 0, "restore", "old.tar", "--mode", "replace")
        #expect(try bench.shell("ls store.db.assets/Attachments/pdf") == "a.pdf\n")
    }

    @Test func twoVersionsThatHaveEachTakenInAnother_keepAllFiles() throws {
        let bench = try bench()
        try bench.shell("$T import --create a/lib.bib -q; $T export -o a.tar")
        try merge(bench, "b", into: "a")
        try bench.shell("$T export -o ab.tar; rm -rf store.db*; $T restore a.tar --create")
        try merge(bench, "c", into: "a")
        let (told, _) = try replace(bench, by: "ab.tar")
        let all: Set = ["bytes of a\n", "bytes of b\n", "bytes of c\n"]
        #expect(try linked(bench) == ["Alpha one": all])
        _ = try follow(bench, told)
        #expect(try linked(bench) == ["Alpha one": ["bytes of a\n", "bytes of b\n"]])
    }

    /// Both are called the same, and mean other bytes.
    @Test func twoVersionsWhoseFilesHaveOneName_keepBoth() throws {
        let bench = try bench(["b": "p", "c": "p"])
        try bench.shell("$T import --create a/lib.bib -q; $T export -o a.tar")
        try merge(bench, "b", into: "a")
        try bench.shell("$T export -o ab.tar; rm -rf store.db*; $T restore a.tar --create")
        try merge(bench, "c", into: "a")
        _ = try replace(bench, by: "ab.tar")
        #expect(try linked(bench) == ["Alpha one": ["bytes of a\n", "bytes of b\n", "bytes of c\n"]])
    }

    @Test(arguments: ["p", "P"]) func aFileOfAnotherWork_liesBesideThatOfTheWorkThatWasLeft(_ name: String) throws {
        let bench = try bench(["a": "p", "c": name], keys: ["c": "g"])
        try bench.shell("$T import --create b/lib.bib -q; $T import c/lib.bib -q; $T export -o bc.tar; $T undo")
        try merge(bench, "a", into: "b")
        let (told, counts) = try replace(bench, by: "bc.tar")
        let kept = name == "p" ? "p_conflict_" : "P_2.pdf"
        #expect(told.contains("kept as Attachments/pdf/\(kept)"), "\(told)")
        #expect(
            try linked(bench) == ["Beta two": ["bytes of a\n", "bytes of b\n"], "Gamma three": ["bytes of c\n"]])
        try bench.tool(exit: 0, "undo", "--batch", "\(counts["batch"]?.integer ?? 0)")
        #expect(try linked(bench) == ["Beta two": ["bytes of a\n", "bytes of b\n"]])
    }

    /// The file that the record waits for is not the other work's either.
    @Test func aPathThatTheWorkWhichWasLeftWaitsFor_isNotGivenToAnotherWork() throws {
        let bench = try bench(["a": "p", "c": "p"], keys: ["c": "g"])
        try bench.shell("$T import --create b/lib.bib -q; $T import c/lib.bib -q; $T export -o bc.tar; $T undo")
        try bench.shell("mkdir x; $T import --create --store x/x.db a/lib.bib -q")
        try bench.shell("$T export --store x/x.db -o a.tar -q; $T restore a.tar --only publications || true")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        _ = try replace(bench, by: "bc.tar")
        #expect(try linked(bench) == ["Beta two": ["bytes of b\n", "no file"], "Gamma three": ["bytes of c\n"]])
    }

    @Test func otherDevicesKeepTheFiles() throws {
        let bench = try bench()
        try bench.shell("$T hub init hub.db -q; $T store init --store m.db -q; $T import --create a/lib.bib -q")
        try bench.shell("$T export -o old.tar -q")
        try merge(bench, "b", into: "b")
        try bench.shell("$T sync --hub hub.db -q")
        try bench.tool(exit: 3, "restore", "old.tar", "--mode", "replace")
        for _ in 0..<3 { try bench.shell("$T sync --hub hub.db -q; $T sync --store m.db --hub hub.db -q") }
        for store in ["store.db", "m.db"] {
            #expect(try linked(bench, store: store) == ["Beta two": ["bytes of a\n", "bytes of b\n"]], "\(store)")
        }
    }

    /// What words choose is replaced, and nothing else: the other works keep their files.
    @Test func aReplaceOfChosenWorks_leavesTheFilesOfTheOthers() throws {
        let bench = try bench(["a": "p", "c": "p"], keys: ["a": "a", "c": "g"])
        try bench.shell("$T import --create a/lib.bib -q; $T export -o old.tar; $T undo; $T import c/lib.bib -q")
        try bench.tool(exit: 3, "restore", "old.tar", "--mode", "replace", "--match", "Alpha")
        #expect(try linked(bench) == ["Alpha one": ["bytes of a\n"], "Gamma three": ["bytes of c\n"]])
    }
}
