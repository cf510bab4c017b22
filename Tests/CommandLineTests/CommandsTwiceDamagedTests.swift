import TestSupport
import Testing

@testable import BackupKit

/// What a damaged backup has in two files comes back from what is left of both.
@Suite struct CommandsTwiceDamagedTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        let entries = (1...9).map { "@misc{k\($0), title={Title \($0)}, author={Author, Ann}, year={200\($0)}}\n" }
        try bench.write("a.bib", entries.joined())
        try bench.write("notes.json", #"[{"citeKey":"k1","note":"One"},{"citeKey":"k2","note":"Two"}]"#)
        let day = "2026-02-14T1"
        try bench.write(
            "day.jsonl",
            (0..<4).map { #"{"id":"E\#($0)","time":"\#(day)\#($0):00:00+01:00","type":"eten"}"# + "\n" }.joined())
        try bench.tool(exit: 0, "import", "--create", "a.bib", "notes.json", "day.jsonl")
        try bench.tool(exit: 0, "export", "-q", "-o", "good")
        try bench.shell("cp -r good bad")
        return bench
    }

    /// Files of random words, the same in each run.
    private func writeWords(_ bench: Workbench, _ count: Int, _ names: [String]) throws {
        try bench.python(
            """
            import random, sys
            r = random.Random(1)
            words = "alpha beta gamma delta the of and restore backup".split()
            for name in sys.argv[2].split(): open(name, "w").write(" ".join(r.choice(words) for _ in range(int(sys.argv[1]))))
            """, String(count), names.joined(separator: " "))
    }

    private func count(_ bench: Workbench, _ type: String) throws -> String {
        try bench.shell("sqlite3 new.db \"SELECT count(*) FROM record WHERE type = '\(type)' AND deleted_at IS NULL\"")
    }

    private func restore(_ bench: Workbench) throws -> String {
        let words = ["restore", "bad", "--create", "--store", "new.db", "--allow-damage"]
        let told = try bench.tool(words)
        #expect(told.status == 3, "\(told)")
        try bench.tool(exit: 0, "store", "check", "--store", "new.db")
        return told.stderr
    }

    /// The line of a publication is gone from one file, and letters are others in the other.
    @Test func everyPublicationComesBack_andTheDoubtfulOnesAreNamed() throws {
        let bench = try bench()
        try bench.shell("sed -i '/\"citeKey\":\"k3\"/d' bad/records.jsonl; sed -i 's/Title 5/Titel 5/' bad/library.bib")
        let told = try restore(bench)
        #expect(try count(bench, "Publication") == "9\n", "\(told)")
        #expect(told.contains("library.bib: is missing or damaged: 9 of 9 publications were restored"), "\(told)")
        #expect(told.contains("k3: was restored from library.bib: records.jsonl lacks it"), "\(told)")
        #expect(told.contains("k5: is not the same in records.jsonl and library.bib"), "\(told)")
        #expect(!told.contains("k4: ") && told.contains("notes and events were rebuilt"), "\(told)")
        let titles = try bench.shell("sqlite3 new.db \"SELECT fields FROM record WHERE type = 'Publication'\"")
        #expect(titles.contains("Title 5") && titles.contains("Title 3") && !titles.contains("Titel"), "\(titles)")
    }

    @Test func withoutRecords_whatCanBeReadOfTheBibliographyComesBack() throws {
        let bench = try bench()
        try bench.shell("rm bad/records.jsonl; sed -i '/k3/d' bad/library.bib")
        let told = try restore(bench)
        #expect(try count(bench, "Publication") == "8\n", "\(told)")
        #expect(
            told.contains("8 of 9 publications were restored from what is left of it; 1 of them are missing"), "\(told)"
        )
    }

    @Test func withoutAnyViews_theLinesOfTheRecordsComeBack() throws {
        let bench = try bench()
        try bench.shell("rm -r bad/library.bib bad/notes.json bad/events; sed -i '/\"E2\"/d' bad/records.jsonl")
        let told = try restore(bench)
        #expect(try count(bench, "Publication") == "9\n" && count(bench, "Note") == "2\n", "\(told)")
        #expect(try count(bench, "PuppyEvent") == "3\n", "\(told)")
        #expect(told.contains("3 of 4 events were restored"), "\(told)")
    }

    @Test func notesAndEventsOfTwoDamagedFiles_areThereOnce() throws {
        let bench = try bench()
        try bench.shell(
            """
            sed -i '/"E2"/d; /"note":"Two"/d' bad/records.jsonl
            echo >> bad/notes.json; sed -i '/"E1"/d' bad/events/2026-02-14.jsonl
            """)
        let told = try restore(bench)
        #expect(try count(bench, "Note") == "2\n" && count(bench, "PuppyEvent") == "4\n", "\(told)")
        #expect(told.contains("2 of 2 notes") && told.contains("4 of 4 events"), "\(told)")
    }

    /// What no checksum vouches for takes no row's place; the backup is said to be damaged.
    @Test func aRepairFromADamagedBackup_saysThatItIsDamaged() throws {
        let bench = try bench()
        try bench.shell("sed -i '/k3/d' bad/records.jsonl; sed -i 's/Title 5/Titel 5/' bad/library.bib")
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = replace(fields, 'Title 5', 'Tilte 5')\"")
        let told = try bench.tool(exit: 4, "store", "repair", "--from", "bad").stderr
        #expect(told.contains("this backup is damaged itself") && told.contains("'backup-tool verify bad'"), "\(told)")
        try bench.tool(exit: 0, "store", "repair", "--from", "good")
        try bench.tool(exit: 0, "store", "check")
    }

    /// I577. Whether the wanted file lies in the damaged part or not.
    @Test(arguments: ["a", "b"]) func aRepairOfAFileFromADamagedBackup_saysThatItIsDamaged(name: String) throws {
        let bench = try Workbench()
        try bench.python("import os\nfor n in 'ab': open(n + '.pdf', 'wb').write(os.urandom(90000))")
        try bench.write("a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n@misc{b, title={B}, file={:b.pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar.zst")
        try bench.python(
            """
            archive = bytearray(open('e.tar.zst', 'rb').read())
            archive[archive.index(open('b.pdf', 'rb').read()[70000:70016])] ^= 1
            open('e.tar.zst', 'wb').write(archive)
            """)
        try bench.shell("rm store.db.assets/Attachments/\(name).pdf")
        let told = try bench.tool(exit: name == "a" ? 3 : 4, "store", "repair", "--from", "e.tar.zst").stderr
        #expect(told.contains("is damaged itself"), "\(told)")
        #expect(try bench.exists("store.db.assets/Attachments/\(name).pdf") == (name == "a"))
    }

    /// I817. One flipped bit of an archive that is read from front to back.
    @Test func aFileThatNothingVouchesFor_isNamed() throws {
        let bench = try Workbench()
        try writeWords(bench, 3000, ["a.txt", "b.txt", "c.txt", "d.txt"])
        try bench.write("a.bib", "abcd".map { "@misc{\($0), title={\($0)}, file={:\($0).txt:TXT}}\n" }.joined())
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar.gz")
        let bytes = try bench.bytes("e.tar.gz")
        var random = SeededGenerator(seed: testSeed())
        var wrong = 0
        for _ in 0..<(isTorture ? 300 : 30) {
            countRounds()
            var flipped = bytes
            flipped[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
            try bench.write("x.tar.gz", flipped)
            try bench.shell("rm -rf out new.db*")
            let restored = try bench.tool(
                "restore", "x.tar.gz", "--allow-damage", "--create", "--store", "new.db", "-v")
            let extracted = try bench.tool("restore", "x.tar.gz", "--allow-damage", "--to", "out", "-v")
            for (folder, told) in [("new.db.assets", restored), ("out", extracted)] where try bench.exists(folder) {
                for file in try bench.files(folder) where file.hasSuffix(".txt") {
                    let name = String(file.split(separator: "/").last ?? "")
                    guard try bench.exists(name), try bench.bytes("\(folder)/\(file)") != bench.bytes(name) else {
                        continue
                    }
                    wrong += 1
                    #expect(told.status == 3 && told.stderr.contains("\(name)"), "\(folder)/\(file): \(told)")
                }
            }
        }
        #expect(wrong > 0)
    }

    /// A flipped bit of a compressed archive hides its manifest, and nothing vouches for the files before it.
    @Test(arguments: ["a.tar.gz", "a.tar.xz", "a.tar.zst"])
    func whatNothingVouchesFor_replacesNoFile(backup: String) throws {
        let bench = try Workbench()
        try writeWords(bench, 900, ["a.pdf", "b.pdf"])
        try bench.write("a.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n@misc{b, title={B}, file={:b.pdf:PDF}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "export", "-o", backup)
        try bench.shell("rm -r store.db.assets/Attachments/b.pdf; mkdir keep; cp -a store.db* keep")
        let sound = try bench.bytes("a.pdf")
        let bytes = try bench.bytes(backup)
        var random = SeededGenerator(seed: testSeed())
        var told = 0
        for _ in 0..<(isTorture ? 400 : 25) {
            countRounds()
            var flipped = bytes
            flipped[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
            try bench.write("x-\(backup)", flipped)
            try bench.shell("rm -rf store.db*; cp -a keep/store.db* .")
            let run = try bench.tool("restore", "x-\(backup)", "--mode", "replace", "--allow-damage")
            #expect(try bench.bytes("store.db.assets/Attachments/a.pdf") == sound, "\(run)")
            guard run.stderr.contains("no checksum vouches for what is left of it, so nothing in the store was") else {
                continue
            }
            told += 1
            #expect(run.status == 3, "\(run)")
        }
        #expect(told > 0 || backup != "a.tar.gz")
    }
}
