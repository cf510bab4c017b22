import TestSupport
import Testing

@testable import BackupKit

/// What a nightly job, a restore and a log of drills say when something is wrong, and whether their commands mend it.
@Suite struct CommandsNightAdviceTests {
    private static let config = ["--config", "n.toml"]

    private static func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("pw", "secret\n")
        try bench.write("more/p.pdf", "%PDF right\n")
        try bench.write("n.toml", "store = 'store.db'\nvault = 'v'\npassword-file = 'pw'\nkeep.last = 5\n")
        try bench.shell("chmod 600 pw; $T -q store init; $T -q import --attachments more || true")
        try bench.makeCheapVault()
        return bench
    }

    private static func run(_ bench: Workbench, exit code: Int32) throws -> String {
        try bench.tool(words: ["run", "-q"] + config, exit: code).stderr
    }

    /// The first command of this name in a message.
    private static func typed(_ name: String, in text: String) throws -> String {
        let start = try #require(text.firstRange(of: "'backup-tool \(name) "), "\(text)").upperBound
        let end = try #require(TypedCommand.words(of: text[start...])).end
        return "\(name) \(text[start..<end])"
    }

    /// Of the same size and time, as a disk leaves it.
    private static let rot = """
        f=store.db.assets/Attachments/p.pdf; cp -p $f old; printf '%%PDF wrong\\n' > $f; touch -r old $f
        """

    @Test func aRottenAttachment_isDamageToEveryBackup_andTheRunNamesTheSnapshotThatHasIt() throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        try bench.shell(Self.rot)
        for _ in 0..<2 {
            let told = try Self.run(bench, exit: 4)
            #expect(told.contains("is damaged") && !told.contains("adopt"), "\(told)")
            #expect(try Self.typed("restore", in: told).contains("@"), "\(told)")
        }
        let export = try bench.tool(exit: 4, "export", "-o", "damaged")
        #expect(export.stderr.contains("is damaged") && !export.stderr.contains("adopt"), "\(export.stderr)")
        try bench.tool(words: ["vault", "backup", "--vault", "v", "--password-file", "pw"], exit: 4)
        let restored = try bench.tool(exit: 3, "restore", "damaged", "--create", "--store", "new.db")
        #expect(restored.stderr.contains("Attachments/p.pdf: is damaged"), "\(restored.stderr)")
        let partial = try bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --json --tag partial")
        #expect(try JSON(parsing: partial).array?.count == 2)
        try bench.shell("$T \(Self.typed("restore", in: try Self.run(bench, exit: 4)))")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.text("store.db.assets/Attachments/p.pdf") == "%PDF right\n")
        _ = try Self.run(bench, exit: 0)
    }

    @Test func theAdviceForALossOfSettingsOrByDeletes_bringsBackWhatIsGone() throws {
        let bench = try Self.bench()
        let settings = (0..<12).map { "\"k\($0)\": \($0)" }.joined(separator: ", ")
        try bench.write("settings.json", "{\(settings)}")
        try bench.write("x.bib", (0..<12).map { "@misc{k\($0), title={T \($0)}}\n" }.joined())
        try bench.shell("$T -q import settings.json --only settings; $T -q import x.bib")
        _ = try Self.run(bench, exit: 0)
        for loss in [
            "sqlite3 store.db 'DELETE FROM setting'",
            "$T -q store delete $(sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\") >/dev/null",
        ] {
            try bench.shell(loss)
            let told = try bench.tool(words: ["run"] + Self.config, exit: 3).stderr
            let lines = told.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }
            for start in ["to see what is gone: '", "to restore it: '", "if it was meant: '"] {
                #expect(lines.count { $0.hasPrefix(start) } == 1, "\(start) \(told)")
            }
            try bench.shell("$T -q \(Self.typed("restore", in: told))")
            _ = try Self.run(bench, exit: 0)
        }
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM setting'") == "12\n")
        let alive = "SELECT count(*) FROM record WHERE deleted_at IS NULL AND type = 'Publication'"
        #expect(try bench.shell("sqlite3 store.db \"\(alive)\"") == "12\n")
    }

    /// The records are there, and newer than what the snapshot has of them.
    @Test func theAdviceForALossOfValues_bringsThemBack() throws {
        let bench = try Self.bench()
        func write(_ abstract: String) throws {
            try bench.write("x.bib", (0..<12).map { "@misc{k\($0), title={T \($0)}\(abstract)}\n" }.joined())
        }
        try write(", abstract={On it}")
        try bench.shell("$T -q import x.bib; touch -d 2026-01-01 x.bib")
        _ = try Self.run(bench, exit: 0)
        try write("")
        try bench.shell("$T -q import --mirror x.bib")
        let told = try bench.tool(words: ["run"] + Self.config, exit: 3).stderr
        #expect(told.contains("to restore it, and undo all later changes: '"), "\(told)")
        let advised = try Self.typed("restore", in: told)
        #expect(advised.contains("--mode replace"), "\(told)")
        try bench.shell("$T -q \(advised)")
        _ = try Self.run(bench, exit: 0)
        let abstracts = "SELECT count(*) FROM record WHERE deleted_at IS NULL AND fields LIKE '%On it%'"
        #expect(try bench.shell("sqlite3 store.db \"\(abstracts)\"") == "12\n")
    }

    @Test func aRottenAttachment_isNoChangeToASync() throws {
        let bench = try Self.bench()
        try bench.shell("$T -q hub init hub.db; \(Self.rot)")
        let told = try bench.tool(exit: 3, "sync", "--hub", "hub.db").stderr
        #expect(told.contains("its file is damaged; 'backup-tool store check'"), "\(told)")
        #expect(!told.contains("adopt"), "\(told)")
    }

    @Test func aRestoreThatLeavesSettingsOut_saysSo_unlessTheStoreHasThem() throws {
        let bench = try Self.bench()
        try bench.write("settings.json", "{\"a\": 1, \"b\": 2}")
        try bench.shell("$T -q import settings.json --only settings; $T -q export -o good.zip")
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.shell("sqlite3 store.db \"DELETE FROM setting WHERE key = 'a'\"")
        let told = try bench.tool(exit: 3, "restore", "good.zip").stderr
        #expect(told.contains("settings.json: 1 setting was not restored"), "\(told)")
        try bench.tool(exit: 1, "restore", "good.zip", "--only", "publications")
        try bench.shell("$T \(Self.typed("restore", in: told))")
        try bench.tool(exit: 0, "restore", "good.zip")
    }

    @Test func aLineThatIsNoDrill_isNamedInEveryHistory() throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        try bench.tool(words: ["drill", "--history"] + Self.config, exit: 0)
        try bench.shell("echo garbage >> drills.jsonl")
        for _ in 0..<2 {
            let told = try bench.tool(words: ["drill", "--history"] + Self.config, exit: 3).stderr
            #expect(told.contains("drills.jsonl:2: is no record of a drill"), "\(told)")
            try bench.tool(words: ["drill", "-q"] + Self.config, exit: 0)
        }
    }

    @Test(arguments: ["store.db", "pw", "n.toml", "drills.jsonl", "notes.txt", "v"])
    func whatIsNoFileOfMetrics_isNotWrittenOver(file: String) throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        try bench.shell("echo mine > notes.txt; echo \"metrics.file = '\(file)'\" >> n.toml; cp -r \(file) before")
        let found = try bench.tool(words: ["config", "check"] + Self.config, exit: 4).stderr
        #expect(found.contains("n.toml:5: \"\(file)\": is no file of metrics"), "\(found)")
        let told = try Self.run(bench, exit: 1)
        #expect(told.contains("\(file): is no file of metrics") && told.contains("'metrics.file'"), "\(told)")
        if file != "v" { try bench.shell("cmp before \(file)") }
        try bench.shell("sed -i '$s/.*/metrics.file = \"m.prom\"/' n.toml; touch m.prom")
        for _ in 0..<2 { _ = try Self.run(bench, exit: 0) }
        #expect(try bench.text("m.prom").hasPrefix("# HELP backup_tool_"))
    }

    @Test(arguments: ["x.bib", "day.jsonl", "store.db", "b.zip", "zeros"])
    func aDrill_addsNothingToAFileThatIsNoLogOfDrills(file: String) throws {
        let bench = try Self.bench()
        try bench.write("x.bib", "@misc{a, title={A}}\n")
        // An event log may end without a newline.
        try bench.write("day.jsonl", "{\"time\":\"2026-03-01T10:00:00Z\",\"type\":\"eten\"}")
        try bench.shell(
            "head -c 9 /dev/zero > zeros; $T -q export -o b.zip; $T -q run --config n.toml; cp \(file) before")
        for words in [["b.zip"], Self.config] {
            let told = try bench.tool(words: ["drill", "--log", file] + words, exit: 1).stderr
            #expect(told.contains("\(file): is no log of drills") && told.contains("--log"), "\(told)")
            try bench.shell("cmp before \(file)")
        }
    }

    @Test func aLogWhoseOnlyLineWasCut_goesOn() throws {
        let bench = try Self.bench()
        try bench.write("d.jsonl", "{\"time\":\"2026")
        try bench.shell("$T -q export -o b.zip")
        for _ in 0..<2 { try bench.tool(exit: 0, "drill", "b.zip", "--log", "d.jsonl") }
        try bench.tool(exit: 3, "drill", "--history", "--log", "d.jsonl")
    }

    @Test func aRestoredConflict_endsWith3_asItsImportDid() throws {
        let bench = try Workbench()
        try bench.write("x.bib", "@article{a, title={One}}\n@book{a, title={Two}, publisher={P}}\n")
        try bench.tool(exit: 3, "import", "x.bib")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        let told = try bench.tool(exit: 3, "restore", "good.zip", "--create", "--store", "new.db").stderr
        #expect(told.contains("1 conflict") && told.contains("'backup-tool conflicts list --store new.db'"), "\(told)")
        try bench.tool(exit: 0, "restore", "good.zip", "--store", "new.db")
        let quiet = try bench.tool(exit: 3, "-q", "restore", "good.zip", "--create", "--store", "quiet.db").stderr
        #expect(quiet.contains("1 conflict waits for a decision"), "\(quiet)")
    }

    @Test func aDrilledSnapshotThatIsLost_canBeRemovedAsTheRunSays() throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        let drilled = try bench.shell("ls v/snapshots | head -c 8")
        // Its own list of files: nobody stores that again.
        try bench.shell(
            """
            export RESTIC_PASSWORD=secret; r="restic --no-cache -q -r v"
            tree=$($r cat snapshot \(drilled) | jq -r .tree)
            p=$($r cat index $(ls v/index | head -1) | jq -r --arg t $tree '.packs[] | select(any(.blobs[]; .id == $t)) | .id')
            rm -f v/data/*/$p; $T -q import "$SAMPLES/refs.bib" || true
            $T -q vault repair --save saved --config n.toml || true; $T -q vault backup --config n.toml
            """)
        let told = try Self.run(bench, exit: 4)
        #expect(told.contains("run 'backup-tool drill"), "\(told)")
        try bench.shell("$T -q \(Self.typed("drill", in: told)) || true; $T -q \(Self.typed("vault forget", in: told))")
        _ = try Self.run(bench, exit: 0)
    }

    @Test func aSuggestedRepetition_keepsTheOptionsThatItNeeds() throws {
        let bench = try Workbench()
        try bench.write("x.bib", "@article{a, title={One}}\n")
        try bench.shell("$T -q import x.bib; $T -q export -o d --format dir; echo x >> d/library.bib")
        let told = try bench.tool(
            exit: 4, "restore", "d", "--create", "--store", "n.db", "--only", "publications,settings"
        ).stderr
        let again = try Self.typed("restore", in: told)
        #expect(again.contains("--create") && again.contains("--only publications --only settings"), "\(told)")
        try bench.shell("$T \(again) || [ $? = 3 ]; $T store check --store n.db")
    }

    @Test func aHubThatIsGone_isMissed_howeverItIsNamed() throws {
        let bench = try Workbench()
        try bench.shell("$T -q store init; mkdir disk; $T -q hub init disk/hub.db")
        try bench.shell("$T -q sync --hub disk/hub.db; rm disk/*")
        for words in [["sync"], ["sync", "--hub", "disk/hub.db"], ["sync", "--hub", "\(bench.folder)/disk/hub.db"]] {
            let told = try bench.tool(words: words, exit: 10).stderr
            #expect(told.contains("connect its disk") && !told.contains("hub init"), "\(told)")
        }
        let other = try bench.tool(exit: 10, "sync", "--hub", "disk/hbu.db").stderr
        #expect(other.contains("\n  check the name"), "\(other)")
    }

    @Test func aStoreThatNoRepairTakes_isNotToBeRepaired() throws {
        let bench = try Workbench()
        try bench.write("x.bib", "@article{a, title={One}}\n")
        try bench.shell("$T -q import x.bib")
        try bench.shell("sqlite3 store.db \"DELETE FROM meta WHERE key='schema_version'; UPDATE counter SET value=0\"")
        let told = try bench.tool(exit: 4, "store", "check").stderr
        #expect(told.contains("--create --store NEW") && !told.contains("store repair"), "\(told)")
    }

    @Test(arguments: ["mkfifo", "mkdir", "ln -s /nonexistent"])
    func whatLiesInThePlaceOfAFileOfTheVault_isNamed_andTheAdviceWorks(_ make: String) throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        for file in try bench.shell("ls v/data/*/* | head -1; ls v/index/* | head -1").split(separator: "\n") {
            try bench.shell("rm -f \(file); \(make) \(file)")
            let told = try bench.tool(words: ["vault", "check"] + Self.config, exit: 4).stderr
            #expect(!told.contains("no command reads it") && told.contains("remove"), "\(told)")
            let refused = try bench.tool(["vault", "repair", "--save", "saved"] + Self.config)
            #expect(refused.status != 0 && refused.stderr.contains("remove"), "\(refused)")
            try bench.shell("rm -r \(file)")
            _ = try bench.tool(["vault", "repair", "--save", "saved"] + Self.config)
            try bench.tool(words: ["vault", "backup", "--force"] + Self.config, exit: 0)
            try bench.tool(words: ["verify", "vault:v"] + Self.config, exit: 0)
        }
    }

    @Test func aFolderOfPacksThatIsGone_isRepairedWithoutHelp() throws {
        let bench = try Self.bench()
        _ = try Self.run(bench, exit: 0)
        try bench.shell("rm -r $(dirname $(ls v/data/*/* | head -1))")
        let told = try bench.tool(words: ["vault", "repair", "--save", "saved"] + Self.config, exit: 3).stderr
        #expect(told.contains("1 missing pack was removed from the index: "), "\(told)")
        try bench.tool(words: ["vault", "backup", "--force"] + Self.config, exit: 0)
    }

    @Test func noColorHolds_alsoWhereTheCommandIsMistyped() throws {
        let bench = try Workbench()
        let shown = try bench.shell("script -qec \"env TERM=xterm $T --no-color store chek\" /dev/null || true")
        #expect(shown.contains("unknown command") && !shown.contains("\u{1B}["), "\(shown)")
    }

    /// The paths in a configuration start at the folder in which it is found, so the advice names it there.
    @Test func theAdviceOfARun_namesALinkedConfigurationByItsLink() throws {
        let bench = try Self.bench()
        try bench.shell("mkdir real; mv n.toml real; ln -s real/n.toml n.toml")
        _ = try Self.run(bench, exit: 0)
        try bench.shell("mkdir aside; mv store.db* aside; $T -q store init")
        let told = try Self.run(bench, exit: 3)
        #expect(told.contains("--config \(bench.path("n.toml"))") && !told.contains("real/n.toml"), "\(told)")
        try bench.shell("$T \(Self.typed("run", in: told))")
    }
}
