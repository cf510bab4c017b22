import BackupKit
import TestSupport
import Testing

/// A note belongs to its work. Notes came without an id, and their cite keys are shared by strangers.
@Suite struct CommandsNotesTests {
    private func library(_ bench: Workbench, _ name: String, title: String, note: String, key: String = "smith") throws
    {
        try bench.write(
            "\(name)/library.bib", "@article{\(key), title={\(title)}, author={\(name) Smith}, year={2020}}\n")
        try bench.write("\(name)/notes.json", "[{\"citeKey\":\"\(key)\",\"note\":\"\(note)\"}]")
    }

    private func notes(_ bench: Workbench, _ store: String) throws -> String {
        try bench.shell("rm -rf out")
        try bench.tool(["export", "--store", store, "-o", "out"])
        return try bench.text("out/notes.json")
    }

    @Test(arguments: ["import", "restore", "older backup", "sync"])
    func notesOfTwoWorksWithOneKey_areTwoNotes(_ way: String) throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann")
        try library(bench, "zoe", title: "A study of whales", note: "of zoe")
        try bench.shell("touch -d 2026-01-01 ann/*; touch -d 2026-02-01 zoe/*")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "ann")
        try bench.tool(exit: 0, "import", "--create", "--store", "b.db", "zoe")
        if way == "older backup" { try forgetWorks(bench, ["a.db", "b.db"]) }
        switch way {
        case "import": try bench.tool(exit: 3, "import", "--store", "a.db", "zoe")
        case "sync":
            try bench.tool(exit: 0, "hub", "init", "hub.db")
            for store in ["a.db", "b.db", "a.db"] { try bench.tool(["sync", "--store", store, "--hub", "hub.db"]) }
            #expect(try notes(bench, "b.db").contains("of ann"))
        default:
            try bench.tool(exit: 0, "export", "--store", "b.db", "-o", "b.zip")
            try bench.tool(exit: 3, "restore", "--store", "a.db", "b.zip")
        }
        let both = try notes(bench, "a.db")
        #expect(both.contains("of ann") && both.contains("of zoe"), "\(both)")
        // Whatever comes once more says nothing new.
        let digest = try bench.digest("a.db")
        if way == "import" { try bench.tool(exit: 0, "import", "--store", "a.db", "ann", "zoe") }
        if way == "restore" || way == "older backup" { try bench.tool(exit: 0, "restore", "--store", "a.db", "b.zip") }
        #expect(try bench.digest("a.db") == digest)
    }

    /// What version 0.1.0 made of notes: an id of their key, and no word of their work.
    private func forgetWorks(_ bench: Workbench, _ stores: [String]) throws {
        for store in stores {
            try bench.tool(exit: 0, "export", "--store", store, "-o", "old")
            try bench.python(
                """
                import json, sys
                id = sys.argv[1]
                lines = [json.loads(line) for line in open('old/records.jsonl')]
                for line in lines:
                    if line['recordType'] == 'Note':
                        line['fields'].pop('publication')
                        line['localId'] = line['recordName'] = id
                open('old/records.jsonl', 'w').write(''.join(json.dumps(line) + '\\n' for line in lines))
                """, DeterministicID.make(RecordType.note, "smith"))
            try bench.shell("rm \(store) old/SHA256SUMS old/manifest.json")
            try bench.tool(["restore", "--create", "--store", store, "--allow-damage", "old"])
            try bench.shell("rm -r old")
        }
    }

    @Test func notesOfAnOlderVersion_areKnownAgain() throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "ann")
        try forgetWorks(bench, ["a.db"])
        let before = try bench.digest("a.db")
        try bench.tool(exit: 0, "import", "--store", "a.db", "ann")
        #expect(try bench.digest("a.db") == before)
        // What it says now is the same note's.
        try library(bench, "ann", title: "On ants", note: "of ann, later")
        try bench.tool(exit: 0, "import", "--store", "a.db", "ann")
        let note = try notes(bench, "a.db")
        #expect(note.contains("later") && note.split(separator: "\n").count == 3, "\(note)")
    }

    @Test func aNoteGoesWithItsWork_whenThatGetsAnotherKey() throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann")
        try bench.tool(exit: 0, "import", "--create", "ann")
        try library(bench, "zoe", title: "A study of whales", note: "of zoe")
        try bench.tool(exit: 3, "import", "zoe")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming")
        let named = try notes(bench, "store.db")
        #expect(named.contains("\"citeKey\":\"smith\",\"note\":\"of ann\""), "\(named)")
        #expect(!named.contains("\"citeKey\":\"smith\",\"note\":\"of zoe\""), "\(named)")
        // imbib reads the note under the key that its publication has there.
        try bench.tool(exit: 0, "export", "--format", "imbib", "-o", "imbib")
        try bench.tool(exit: 0, "restore", "--create", "--store", "b.db", "imbib")
        let again = try notes(bench, "b.db")
        #expect(again.contains("of ann") && again.contains("of zoe"), "\(again)")
    }

    private func texts(_ bench: Workbench, _ store: String) throws -> [String] {
        try notes(bench, store).matches(of: /"note":"([^"]*)"/).map { String($0.1) }.sorted()
    }

    /// A note of a stranger that has only the key is nobody else's, in whatever way one of them comes again.
    @Test(arguments: [
        "restore zip", "restore --mode replace zip", "restore imbib", "import imbib", "import ann",
        "import zoe/notes.json",
        "import --only notes ann", "import --only notes zoe",
    ])
    func noNoteTakesThePlaceOfAnother(_ way: String) throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann")
        try library(bench, "zoe", title: "A study of whales", note: "of zoe")
        try bench.shell("touch -d 2026-01-01 ann/*; touch -d 2026-02-01 zoe/*")
        for order in [["zoe/notes.json", "ann"], ["ann", "zoe/notes.json"]] {
            try bench.shell("rm -rf store.db* zip imbib")
            for path in order { try bench.tool(["import", "--create", "--store", "store.db", path]) }
            #expect(try texts(bench, "store.db") == ["of ann", "of zoe"], "\(order)")
            try bench.tool(exit: 0, "export", "-o", "zip")
            try bench.tool(["export", "--format", "imbib", "-o", "imbib"])
            try bench.tool(way.split(separator: " ").map(String.init))
            #expect(try texts(bench, "store.db") == ["of ann", "of zoe"], "\(order)")
            try bench.tool(exit: 0, "restore", "--create", "--store", "n.db", "zip")
            #expect(try texts(bench, "n.db") == ["of ann", "of zoe"], "\(order)")
            try bench.tool(exit: 0, "verify", "zip", "--level", "deep")
            try bench.shell("rm -rf n.db*")
        }
    }

    @Test(arguments: [true, false])
    func aNoteThatWasDeleted_staysSo(withItsWork: Bool) throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann")
        try bench.tool(exit: 0, "import", "--create", "ann")
        let kinds = withItsWork ? "'Note', 'Publication'" : "'Note'"
        let ids = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type IN (\(kinds))\"")
        try bench.tool(["store", "delete"] + ids.split(separator: "\n").map(String.init))
        try bench.tool("import", "ann")
        #expect(try texts(bench, "store.db").isEmpty)
    }

    /// An app saves all notes, and all settings, for the sake of one.
    @Test func aFileThatWasSavedAgain_isNoNewerInWhatItSaidBefore() throws {
        let bench = try Workbench()
        func write(_ folder: String, _ notes: String, _ settings: String) throws {
            try bench.write("\(folder)/notes.json", "[\(notes)]")
            try bench.write("\(folder)/settings.json", "{\(settings)}")
        }
        let kinds = ["--only", "notes,settings"]
        let old = #"{"citeKey":"ants","note":"old"},{"citeKey":"bees","note":"deleted"}"#
        try write("app", old, #""theme":"old""#)
        try bench.shell("touch -d '3 hours ago' app/*")
        try bench.tool(["import", "--create", "app"] + kinds)
        try write("other", #"{"citeKey":"ants","note":"NEWER"}"#, #""theme":"NEWER""#)
        try bench.shell("touch -d '2 hours ago' other/*")
        try bench.tool(["import", "other"] + kinds)
        try bench.shell(
            "$T store delete $(sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%deleted%'\")")
        // One more note and setting; nobody touched the others.
        try write("app", old + #",{"citeKey":"cats","note":"new"}"#, #""theme":"old","size":1"#)
        try bench.tool(["import", "app"] + kinds)
        let found = try notes(bench, "store.db")
        #expect(found.contains("NEWER") && found.contains("new") && !found.contains("deleted"), "\(found)")
        #expect(try bench.text("out/settings.json").contains("NEWER"))
        // What is written into the file is an edit.
        try write("app", #"{"citeKey":"ants","note":"newest"}"#, #""theme":"newest""#)
        try bench.tool(["import", "app"] + kinds)
        #expect(try notes(bench, "store.db").contains("newest"))
        #expect(try bench.text("out/settings.json").contains("newest"))
    }

    /// What a file says for the first time is taken, or named.
    @Test func anOlderNoteThatIsNew_isNamedOnce() throws {
        let bench = try Workbench()
        func write(_ folder: String, _ note: String, hours: Int) throws {
            try bench.write("\(folder)/notes.json", "[{\"citeKey\":\"k\",\"note\":\"\(note)\"}]")
            try bench.shell("touch -d '\(hours) hours ago' \(folder)/notes.json")
        }
        try write("new", "p1", hours: 1)
        try write("old", "q2", hours: 9)
        try bench.tool(exit: 0, "import", "--create", "new")
        for note in ["q2", "q3"] {
            try write("old", note, hours: 5)
            let told = try bench.tool(exit: 3, "import", "old").stderr
            #expect(told.contains("the note of k: has an older value in old/notes.json"), "\(told)")
            try bench.tool(exit: 0, "import", "old")
        }
        #expect(try notes(bench, "store.db").contains("p1"))
        try bench.tool(exit: 0, "import", "old", "--overwrite")
        #expect(try notes(bench, "store.db").contains("q3"))
    }

    /// Also at its first import from there, and from a backup.
    @Test func anOlderSettingReplacesNoNewerOne() throws {
        let bench = try Workbench()
        let settings = ["--only", "settings"]
        func value() throws -> String {
            try bench.shell("sqlite3 store.db \"SELECT value FROM setting WHERE key = 'theme'\"")
        }
        for (folder, hours) in [("old", 5), ("older", 9), ("new", 2)] {
            try bench.write("\(folder)/settings.json", "{\"theme\":\"\(folder)\"}")
            try bench.shell("touch -d '\(hours) hours ago' \(folder)/settings.json")
        }
        try bench.tool(["import", "--create", "old"] + settings)
        try bench.tool(exit: 0, "export", "-o", "backup")
        try bench.tool(["import", "new"] + settings)
        let told = try bench.tool(exit: 3, "import", "older", "--only", "settings", "-v")
        #expect(
            told.stderr.contains("theme: has an older value in older/settings.json, which was left out"),
            "\(told.stderr)")
        #expect(told.stdout == "= theme  (is as new or newer in the store)\n", "\(told.stdout)")
        #expect(told.stderr.contains("1 protected"), "\(told.stderr)")
        #expect(try value() == "\"new\"\n")
        try bench.tool(exit: 0, "import", "older", "--only", "settings")
        try bench.tool(exit: 0, "import", "older", "--only", "settings", "--overwrite")
        #expect(try value() == "\"older\"\n")
        try bench.tool(exit: 0, "restore", "backup", "--only", "settings", "--mode", "replace")
        #expect(try value() == "\"old\"\n")
    }

    /// The key of a work that was merged, or deleted, may be somebody else's by now.
    @Test func aNoteOfAWorkThatIsGone_isNoNoteOnAnotherWork() throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "of ann", key: "k")
        try library(bench, "zoe", title: "On zebras", note: "of zoe", key: "k")
        try bench.shell("touch -d '1 hour ago' ann/*")
        try bench.tool(exit: 0, "import", "--create", "ann")
        try bench.tool(exit: 3, "import", "zoe")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        try bench.tool(exit: 0, "export", "-o", "merged")
        #expect(try notes(bench, "store.db").matches(of: /"citeKey": *"k"/).count == 2)
        try library(bench, "bob", title: "On bees", note: "of bob", key: "k")
        try bench.tool(exit: 3, "import", "bob")
        let merged = try bench.shell(
            """
            sqlite3 store.db "SELECT local_id FROM record
                WHERE type = 'Publication' AND deleted_at IS NULL AND field_times LIKE '%merged%'"
            """
        )
        try bench.tool(exit: 0, "store", "delete", String(merged.dropLast()))
        let told = try bench.tool(exit: 3, "export", "--format", "imbib", "-o", "imbib").stderr
        #expect(told.contains("a note on a publication that is gone; another one has its cite key, 'k'"), "\(told)")
        let kept = try bench.text("imbib/notes.json")
        #expect(kept.contains("of bob") && !kept.contains("of ann") && !kept.contains("of zoe"), "\(kept)")
    }

    @Test func oneWorkUnderTwoKeys_hasTwoNotes_onTwoDevices() throws {
        let bench = try Workbench()
        try library(bench, "ann", title: "On ants", note: "first", key: "e1")
        try bench.write("zoe/library.bib", try bench.text("ann/library.bib").replacing("{e1", with: "{e2"))
        try bench.write("zoe/notes.json", #"[{"citeKey":"e2","note":"second"}]"#)
        try bench.shell("touch -d 2026-01-01 ann/* zoe/*")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "ann")
        try bench.tool(exit: 0, "import", "--create", "--store", "b.db", "zoe")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for store in ["a.db", "b.db", "a.db"] { try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db") }
        for store in ["a.db", "b.db"] { #expect(try texts(bench, store) == ["first", "second"]) }
    }

    /// Nobody can tell which of the two it is about.
    @Test(arguments: ["@book{k, title={Whales}, author={B}, year={1990}}\n", ""])
    func twoNotesOfOneKeyInOneFile_areBothKept(_ other: String) throws {
        let bench = try Workbench()
        try bench.write("all/library.bib", "@article{k, title={On ants}, author={A}, year={2020}}\n\(other)")
        try bench.write("all/notes.json", #"[{"citeKey":"k","note":"one"},{"citeKey":"k","note":"two"}]"#)
        try bench.tool(exit: other.isEmpty ? 0 : 3, "import", "--create", "all")
        let both = try notes(bench, "store.db")
        #expect(both.contains("\"one\"") && both.contains("\"two\""), "\(both)")
        let digest = try bench.digest()
        try bench.tool(exit: 0, "import", "all")
        #expect(try bench.digest() == digest)
        // Which of the two was edited, nobody can tell either.
        try bench.write("all/notes.json", #"[{"citeKey":"k","note":"one"},{"citeKey":"k","note":"two, later"}]"#)
        try bench.tool(exit: 0, "import", "all")
        let edited = try notes(bench, "store.db")
        #expect(edited.contains("\"one\"") && edited.contains("\"two, later\""), "\(edited)")
    }

    @Test func aNoteOnAMergedWork_isShownUnderTheKeyThatItHasNow() throws {
        let bench = try Workbench()
        for (name, title) in [("ann", "On ants"), ("zoe", "On zebras")] {
            try library(bench, name, title: title, note: "of \(name)", key: "k")
        }
        try bench.shell("touch -d '1 hour ago' ann/*")
        try bench.tool(exit: 0, "import", "--create", "ann")
        try bench.tool(exit: 3, "import", "zoe")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        try library(bench, "bob", title: "On bees", note: "of bob", key: "k")
        try bench.tool(exit: 3, "import", "bob")
        try bench.tool(exit: 0, "conflicts", "resolve", "2", "--with", "rename-existing", "--key", "later")
        let shown = try notes(bench, "store.db")
        #expect(shown.matches(of: /"citeKey": *"later"/).count == 2, "\(shown)")
    }

    /// A list that is a set: another file's silence takes nothing away.
    @Test(arguments: [[], ["--mirror"]])
    func keywordsOfAnotherFile_standBesideThoseThatAreThere(_ how: [String]) throws {
        let bench = try Workbench()
        func entry(_ keywords: String, _ more: String = "") -> String {
            "@article{k, title={On ants}, author={A}, year={2020}, keywords={\(keywords)}\(more)}\n"
        }
        try bench.write("mine.bib", entry("ants, nests"))
        try bench.write("theirs.bib", entry("ants, field work"))
        try bench.shell("touch -d 2026-01-01 mine.bib; touch -d 2026-02-01 theirs.bib")
        try bench.tool(exit: 0, "import", "--create", "mine.bib")
        try bench.tool(["import"] + how + ["theirs.bib"])
        func exported() throws -> String {
            try bench.shell("rm -rf out")
            try bench.tool(exit: 0, "export", "-o", "out")
            return try bench.text("out/library.bib")
        }
        let joined = try exported()
        #expect(joined.contains("{ants, field work, nests}"), "\(joined)")
        // A file that says what it said before adds nothing, and a keyword that it loses is not another file's.
        try bench.tool(["import"] + how + ["theirs.bib"])
        try bench.write("mine.bib", entry("ants, nests", ", note={seen}"))
        try bench.tool(["import"] + how + ["mine.bib"])
        let still = try exported()
        #expect(still.contains("field work"), "\(still)")
    }

    @Test func aKeywordThatAFileLoses_isGone() throws {
        let bench = try Workbench()
        try bench.write("mine.bib", "@article{k, title={On ants}, keywords={ants, nests}}\n")
        try bench.shell("touch -d 2026-01-01 mine.bib")
        try bench.tool(exit: 0, "import", "--create", "mine.bib")
        try bench.write("mine.bib", "@article{k, title={On ants}, keywords={ants}}\n")
        try bench.tool(exit: 0, "import", "mine.bib")
        try bench.tool(exit: 0, "export", "-o", "out")
        #expect(try !bench.text("out/library.bib").contains("nests"))
    }
}

/// Taken alone, a note has an id of its key; beside its publication it has another one.
@Test func aNoteThatABackupHasTwice_comesTwice() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={On ants}}\n")
    try bench.write("notes.json", #"[{"citeKey":"k","note":"on it"}]"#)
    try bench.tool(exit: 0, "import", "--create", "--store", "other.db", "a.bib", "notes.json")
    try bench.tool(exit: 0, "export", "--store", "other.db", "-o", "other.tar")
    try bench.tool(exit: 0, "import", "--create", "notes.json")
    try bench.tool(exit: 0, "restore", "other.tar")
    try bench.tool(exit: 0, "export", "-o", "a.tar")
    try bench.tool(exit: 0, "verify", "--level", "deep", "a.tar")
    try bench.tool(exit: 0, "restore", "--create", "--store", "new.db", "a.tar")
    #expect(try bench.shell("$T store digest --store new.db") == bench.shell("$T store digest --store store.db"))
}
