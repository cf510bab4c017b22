import BackupKit
import Glibc
import TestSupport
import Testing

/// What a command says is what it did: its words, its exit code and its advice.
struct CommandsHonestTests {
    private static let event = "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n"

    /// A store with one attachment, and a backup of it.
    private func attachmentBench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("pdfs/a.pdf", "%PDF right")
        // No publication links it.
        try bench.tool(exit: 3, "import", "--create", "--attachments", "pdfs")
        try bench.tool(exit: 0, "export", "-q", "-o", "good.tar.zst")
        return bench
    }

    private static let file = "store.db.assets/Attachments/a.pdf"

    private static let rot =
        "touch -r \(file) t; printf x | dd of=\(file) conv=notrunc status=none; touch -r t \(file)"

    // MARK: Sync

    @Test func whatOthersWriteToALocalRecord_isListedAndNoAlarm() throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.write("e.jsonl", Self.event)
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "e.jsonl")
        try bench.tool(exit: 0, "sync", "--store", "A.db")
        try bench.tool(exit: 0, "store", "init", "--store", "B.db")
        try bench.tool(exit: 0, "sync", "--store", "B.db")
        try bench.tool(exit: 0, "store", "set-local", "--store", "B.db", "e1")
        try bench.tool(exit: 0, "sync", "--store", "B.db")
        try bench.write("e.jsonl", Self.event.replacing("tuin", with: "eten"))
        try bench.tool(exit: 0, "import", "--overwrite", "--store", "A.db", "e.jsonl")
        try bench.tool(exit: 0, "sync", "--store", "A.db")
        for words in [["sync"], ["sync", "--dry-run"]] {
            let held = try bench.tool(words + ["--store", "B.db"])
            #expect(held.status == 0 && !held.stderr.contains("kept on this device only"), "\(held)")
            let told = try bench.tool(words + ["--store", "B.db", "-v"])
            #expect(told.status == 0 && told.stderr.contains("a copy of it is kept on this device only"), "\(told)")
            #expect(try bench.json(exit: 0, "sync", "--store", "B.db")["held"]?.array?.count == 1)
        }
    }

    @Test func aChangeOfTheUser_namesTheUser() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        let refused = try bench.tool(exit: 64, "sync", "--hub", "hub.db", "--change-user")
        #expect(refused.stderr.contains("--user"))
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--change-user", environment: ["BACKUP_TOOL_USER": "ann"])
    }

    @Test func aHubThatIsNotThere_isMissedAndNotMadeAnew() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init")
        try bench.shell("mkdir disk; $T -q hub init disk/hub.db; $T -q sync --hub disk/hub.db; rm -r disk/*")
        let elsewhere = try bench.tool(exit: 10, "sync", "--hub", "none/hub.db")
        #expect(elsewhere.stderr.contains("connect the disk") && !elsewhere.stderr.contains("hub init"))
        // The mount point of a disk that is not connected is often an empty folder.
        for shell in ["true", "rmdir disk"] {
            try bench.shell(shell)
            let missing = try bench.tool(exit: 10, "sync")
            #expect(missing.stderr.contains("connect its disk") && !missing.stderr.contains("hub init"))
        }
        #expect(try bench.tool(exit: 10, "sync", "--hub", "new.db").stderr.contains("'backup-tool hub init new.db'"))
    }

    // MARK: Undo

    @Test func anUndoOfAnAdoption_bringsOldBytesBack_orNamesTheFileThatKeepsItsNewOnes() throws {
        let bench = try attachmentBench()
        try bench.write(Self.file, "%PDF changed")
        try bench.tool(exit: 0, "store", "adopt")
        for words in [["undo", "--dry-run"], ["undo"]] {
            let undone = try bench.tool(words)
            #expect(undone.status == 3, "\(undone)")
            #expect(undone.stderr.contains("Attachments/a.pdf") && undone.stderr.contains("restore BACKUP --match"))
        }
        #expect(try bench.text(Self.file) == "%PDF changed")
        try bench.tool(exit: 0, "undo", "--redo")
        try bench.tool(exit: 0, "store", "check")
        // The same bytes once lay under another name too, and an undo of that keeps them.
        let other = try attachmentBench()
        try other.write("more/b.pdf", "%PDF right")
        try other.tool(exit: 3, "import", "--attachments", "more")
        try other.tool(exit: 0, "restore", "good.tar.zst", "--mode", "replace")
        try other.write(Self.file, "%PDF changed")
        try other.tool(exit: 0, "store", "adopt")
        try other.tool(exit: 0, "undo")
        #expect(try other.text(Self.file) == "%PDF right")
        try other.tool(exit: 0, "store", "check")
        try other.tool(exit: 0, "undo", "--redo")
        #expect(try other.text(Self.file) == "%PDF changed")
        try other.tool(exit: 0, "store", "check")
    }

    @Test func anUndoOfADeleteThatWasPurged_saysThatItStaysDeleted() throws {
        let bench = try Workbench()
        try bench.write("e.jsonl", Self.event)
        try bench.tool(exit: 0, "import", "--create", "e.jsonl")
        try bench.tool(exit: 0, "store", "delete", "e1")
        try bench.tool("store", "purge", "OllieEvents/e1", "--confirm")
        let before = try bench.digest()
        for words in [["undo", "--dry-run"], ["undo"]] {
            let undone = try bench.tool(words)
            #expect(undone.status == 3, "\(undone)")
            #expect(undone.stderr.contains("OllieEvents/e1: was purged and stays deleted"))
            #expect(!undone.stderr.contains("as before"))
        }
        #expect(try bench.digest() == before)
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aCommandThatChangedNothing_promisesNoUndo() throws {
        let bench = try Workbench()
        try bench.write("e.jsonl", Self.event)
        try bench.tool(exit: 0, "import", "--create", "e.jsonl")
        for name in ["set-local", "enable-cloud"] {
            if name == "set-local" { #expect(try bench.tool(exit: 0, "store", name, "e1").stderr.contains("undo")) }
            if name == "enable-cloud" { try bench.tool(exit: 0, "store", name, "e1") }
            let again = try bench.tool(exit: 0, "store", name, "e1")
            #expect(!again.stderr.contains("undo"), "\(again.stderr)")
            #expect(again.stderr.contains("Nothing changed"))
        }
    }

    // MARK: A store that has lost the seed of its hashes

    @Test func aStoreWithoutItsSeed_isReadWhole_andBecomesANewOne() throws {
        let bench = try attachmentBench()
        try bench.write("a.bib", "@misc{k1, title={One}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        let digest = try bench.digest()
        try bench.shell("sqlite3 store.db \"DELETE FROM meta WHERE key = 'hash_seed'\"")
        for command in [["store", "check"], ["import", "a.bib"], ["store", "repair", "--accept"]] {
            let refused = try bench.tool(command)
            #expect(refused.status == 4)
            #expect(refused.stderr.contains("export -o DIR"), "\(refused)")
            #expect(!refused.stderr.contains("'backup-tool store repair"), "\(refused)")
        }
        try bench.tool(exit: 3, "export", "-o", "all", "--format", "dir")
        let compared = try bench.tool(["diff", "store.db", "all"])
        #expect(compared.stderr.contains("export -o DIR") && !compared.stderr.contains("store repair"), "\(compared)")
        let whole = "publications,notes,events,records,attachments,settings"
        _ = try bench.tool(["restore", "all", "--create", "--store", "new.db", "--only", whole])
        #expect(try bench.digest("new.db") == digest)
        try bench.tool(exit: 0, "store", "check", "--store", "new.db")
    }

    // MARK: Damaged attachments

    /// Damage that leaves size and time as they are; a change by an app, longer and shorter; a file that was lost.
    @Test(arguments: ["rot", "change", "cut", "lost"])
    func theAdviceForAnAttachmentThatIsNotWhatItWas_endsInASoundStore(_ harm: String) throws {
        let bench = try attachmentBench()
        let file = Self.file
        let isChange = harm == "change" || harm == "cut"
        switch harm {
        case "rot": try bench.shell(Self.rot)
        case "change": try bench.write(file, "%PDF right, and a note")
        case "cut": try bench.shell("truncate -s 3 \(file)")
        default: try bench.shell("rm \(file)")
        }
        let found = try bench.tool(exit: ["lost", "rot"].contains(harm) ? 4 : 3, "store", "check")
        #expect(found.stderr.contains("Attachments/a.pdf") || found.stdout.contains("Attachments/a.pdf"))
        // Not one of them is taken for sound, and none that nobody wrote on purpose is taken in.
        let adopted = try bench.tool(["store", "adopt", "--dry-run"])
        #expect(!adopted.stderr.contains("Every file is what"), "\(adopted)")
        #expect(adopted.status == (isChange ? 0 : 3), "\(adopted)")
        let advice = found.stderr + found.stdout
        let named = found.status == 4 ? "store repair --from BACKUP" : "restore BACKUP --match"
        #expect(advice.contains(named), "\(advice)")
        let restored = try bench.tool(["restore", "good.tar.zst", "--match", "a.pdf"])
        #expect(restored.status == (isChange ? 3 : 0), "\(restored)")
        #expect(!restored.stderr.contains("unchanged"), "\(restored)")
        #expect(try bench.text(file) == "%PDF right")
        try bench.tool(exit: 0, "store", "check")
        if isChange {
            let kept = try bench.shell("cat store.db.assets/Attachments/a_conflict_*.pdf")
            #expect(kept == (harm == "cut" ? "%PD" : "%PDF right, and a note"))
        }
        try bench.tool(exit: 0, "undo")
        // A redo keeps the changed file beside it again, and says so.
        try bench.tool(exit: isChange ? 3 : 0, "undo", "--redo")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aRestoreOfEverything_mendsRot_andNamesAChangeThatItLeaves() throws {
        let bench = try attachmentBench()
        let file = Self.file
        try bench.shell(Self.rot)
        #expect(
            try bench.tool(exit: 0, "restore", "good.tar.zst").stderr.contains("1 attachment set back"))
        try bench.tool(exit: 0, "store", "check")
        try bench.write(file, "%PDF right, and a note")
        let left = try bench.tool(exit: 3, "restore", "good.tar.zst")
        #expect(left.stderr.contains("store adopt") && left.stderr.contains("--match"))
        #expect(try bench.text(file) == "%PDF right, and a note")
    }

    // MARK: Changed rows

    private func benchWithVault() throws -> Workbench {
        let bench = try Workbench(["BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "pw"])
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        try bench.write("e.jsonl", Self.event)
        try bench.tool(exit: 0, "import", "--create", "e.jsonl")
        return bench
    }

    /// Every kind of backup, and every check of one, says so.
    private func expectNamed(_ what: String, _ bench: Workbench, sourceLocation: SourceLocation = #_sourceLocation)
        throws
    {
        for words in [
            ["export", "-o", "out"], ["export", "-o", "out.tar.zst"], ["verify", "out.tar.zst", "--level", "deep"],
            ["verify", "out", "--level", "quick"], ["vault", "backup"], ["vault", "backup"],
            ["verify", "vault:v@latest", "--level", "deep"],
        ] {
            let said = try bench.tool(words)
            #expect(said.status == 3, "\(words): \(said.stderr)", sourceLocation: sourceLocation)
            #expect(said.stderr.contains(what), "\(words): \(said.stderr)", sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [
        ("setting theme", "UPDATE setting SET value = replace(value, 'hello', 'jello')"),
        ("asset Attachments/a.pdf", "UPDATE asset SET modified_ns = modified_ns + 1"),
        ("asset Attachments/a.pdf", "UPDATE asset SET local_only = 1"),
        ("meta store_id", "UPDATE meta SET value = value || 'x' WHERE key = 'store_id'"),
    ])
    func aSettingOrAttachmentWhoseRowRotted_isNamedByEveryBackup(what: String, rot: String) throws {
        let bench = try benchWithVault()
        try bench.write("settings.json", #"{"theme":"hello-value-1"}"#)
        try bench.write("a.bib", "@misc{a, title={A}}")
        try bench.write("pdfs/a.pdf", "text of the file")
        try bench.tool(exit: 0, "import", "--only", "settings", "settings.json")
        try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
        try bench.tool(exit: 0, "vault", "backup")
        // A disk tells no trigger.
        try bench.shell(
            """
            sqlite3 store.db "CREATE TEMP TABLE noted AS SELECT * FROM witness; \(rot);
            DELETE FROM witness; INSERT INTO witness SELECT * FROM noted"
            """)
        try bench.tool(exit: 4, "store", "check")
        try expectNamed("\(what): is not what the store has written", bench)
    }

    @Test func twoFilesThatDisagreeAboutASetting_areNamed() throws {
        let bench = try Workbench()
        try bench.write("old/settings.json", #"{"theme":"dark","size":12}"#)
        try bench.write("new/settings.json", #"{"theme":"light","size":12}"#)
        try bench.shell("touch -d 2026-01-01 old/settings.json; touch -d 2026-02-01 new/settings.json")
        for (place, order) in [["old", "new"], ["new", "old"], ["old", "new"]].enumerated() {
            let words = ["import", "--create", "--only", "settings"] + order.map { "\($0)/settings.json" }
            let result = try bench.tool(words)
            #expect(
                result.status == 3
                    && result.stderr.contains("theme: has two values: the one of new/settings.json was taken"))
            let count = place == 0 ? "2 settings changed" : "2 settings unchanged"
            #expect(result.stderr.contains(count), "\(result.stderr)")
        }
        #expect(try bench.shell("sqlite3 store.db \"SELECT value FROM setting WHERE key = 'theme'\"") == "\"light\"\n")
    }

    @Test func aRowThatAnotherProgramChanged_isNamedByEveryBackup_andIsInIt() throws {
        let bench = try benchWithVault()
        try bench.shell("sqlite3 store.db \"UPDATE record SET fields = replace(fields, 'tuin', 'tuim')\"")
        try expectNamed("OllieEvents/e1: is not what the store has written", bench)
        #expect(try bench.text("out/records.jsonl").contains("tuim"))
        #expect(try bench.text("out/events/2026-02-14.jsonl").contains("tuim"))
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "export", "-o", "new.tar.zst")
        try bench.tool(exit: 0, "verify", "new.tar.zst", "--level", "deep")
    }

    // MARK: Plans

    @Test func thePlanOfAReplacingRestore_saysWhatIsDeletedAndWhatChanges() throws {
        let bench = try Workbench()
        try bench.write("e.jsonl", Self.event)
        try bench.tool(exit: 0, "import", "--create", "e.jsonl")
        try bench.tool(exit: 0, "export", "-q", "-o", "alive.tar")
        try bench.tool(exit: 0, "store", "delete", "e1")
        try bench.tool(exit: 0, "export", "-q", "-o", "deleted.tar")
        try bench.tool(exit: 0, "restore", "alive.tar", "--mode", "replace", "--resurrect")
        try bench.tool(exit: 0, "store", "delete", "e1")
        try bench.tool(exit: 0, "undo")
        let plan = try bench.json(exit: 0, "restore", "deleted.tar", "--mode", "replace", "--dry-run")["plan"]?.array
        // Brought back later than it was deleted: the backup's delete is older and does not count.
        #expect(plan?.allSatisfy { $0["action"]?.string != "update" } == true, "\(String(describing: plan))")
        try bench.write("e.jsonl", Self.event.replacing("tuin", with: "eten"))
        try bench.tool(exit: 0, "import", "--overwrite", "e.jsonl")
        let changed = try bench.json(exit: 0, "restore", "alive.tar", "--mode", "replace", "--dry-run")["plan"]?.array
        #expect(changed?.count == 1 && changed?[0]["action"]?.string == "update")
        #expect(changed?.first?["changes"]?.array?.isEmpty == false, "\(String(describing: changed))")
    }

    // MARK: Names

    @Test func aMistypedStore_isNotMadeByARestore() throws {
        let bench = try attachmentBench()
        for words in [
            ["restore", "good.tar.zst"], ["restore", "good.tar.zst", "--dry-run"], ["import", "good.tar.zst"],
        ] {
            let refused = try bench.tool(words + ["--store", "typo.db"])
            #expect(refused.status == 10 && refused.stderr.contains("--create"), "\(words): \(refused.stderr)")
            #expect(try !bench.exists("typo.db") && !bench.exists("typo.db.assets"))
        }
        try bench.tool(exit: 0, "restore", "good.tar.zst", "--create", "--store", "new.db")
        try bench.tool(exit: 10, "restore", "good.tar.zst", "--simulate", "2", "--store", "typo.db")
    }

    @Test func whatLiesInTheWayOfAStore_isNamedWithTheWayOut() throws {
        let bench = try Workbench()
        try bench.shell(": > empty.db; ln -s nowhere/x.db link.db; echo text > text.db")
        for (name, word) in [("empty.db", "empty"), ("link.db", "nowhere/x.db"), ("text.db", "not a store")] {
            for words in [["store", "info"], ["store", "init"], ["store", "check"]] {
                let said = try bench.tool(words + ["--store", name]).stderr
                #expect(said.contains(word), "\(words) \(name): \(said)")
                #expect(!said.contains("use this store"), "\(words) \(name): \(said)")
                #expect(name == "text.db" || said.contains("remove"), "\(words) \(name): \(said)")
            }
        }
        // Who follows the advice has a store.
        try bench.shell("rm empty.db link.db")
        for name in ["empty.db", "link.db"] { try bench.tool(exit: 0, "store", "init", "--store", name) }
    }

    @Test func aStoreThatIsNamedAsABackup_isCalledAStore() throws {
        let bench = try attachmentBench()
        for words in [["verify"], ["list"], ["show"], ["restore"], ["import"]] {
            let said = try bench.tool(words + ["store.db"])
            #expect(said.status == 10, "\(words): \(said)")
            #expect(said.stderr.contains("is a store, not a backup"), "\(words): \(said.stderr)")
            #expect(said.stderr.contains("'backup-tool store check --store store.db'"), "\(words): \(said.stderr)")
        }
    }

    @Test func whatIsNotInAStoreOrABackup_endsWith1_andAMissingOneWith10() throws {
        let bench = try attachmentBench()
        for words in [
            ["store", "delete", "none"], ["store", "purge", "none"], ["store", "adopt", "none"],
            ["conflicts", "show", "9"], ["undo", "--batch", "99"], ["show", "good.tar.zst", "none"],
        ] { #expect(try bench.tool(words).status == 1, "\(words)") }
        for words in [
            ["verify", "none"], ["show", "none", "x"], ["restore", "none"], ["import", "none.bib"],
            ["store", "info", "--store", "none"], ["store", "repair", "--from", "none"], ["sync", "--hub", "none"],
            ["drill", "--vault", "none"], ["list", "vault:none@latest"],
        ] { #expect(try bench.tool(words).status == 10, "\(words)") }
    }

    @Test func whatCannotBeABackupOrAFile_isNotCalledDamaged() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        for path in ["a.bib", "/dev/null"] {
            let said = try bench.tool(exit: 64, "verify", path).stderr
            #expect(!said.contains("damage") && said.contains("\(path): is "), "\(said)")
        }
        #expect(try bench.tool(exit: 64, "verify", "a.bib").stderr.contains("'backup-tool import a.bib'"))
        for path in ["-", "/dev/stdin", "/dev/null"] {
            let said = try bench.tool("import", path, stdin: Array("@misc{a, title={A}}\n".utf8))
            #expect(said.status == 64 && said.stderr.contains("not pipes or devices"), "\(said)")
        }
        try bench.write("blank.ckdb", "DEFINE SCHEMA\n")
        let said = try bench.tool(exit: 3, "schema", "check", "blank.ckdb")
        #expect(said.stderr.contains("defines no record type"))
    }

    @Test func whatMayNotBeRead_isNotCalledMissing() throws {
        let bench = try attachmentBench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell("chmod 755 .; chmod 000 store.db hub.db; mkdir own; chmod 777 own")
        try bench.shell("cp $T own/tool")
        let other = geteuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        for words in [["store", "info"], ["export", "-o", "own/out.tar"], ["sync", "--hub", "hub.db"]] {
            let isSync = words[0] == "sync"
            if isSync { try bench.shell("chmod -R a+rwX store.db* .; chmod 000 hub.db") }
            let said = try runProcess(
                other + [bench.path("own/tool")] + words,
                environment: testEnvironment(["BACKUP_TOOL_STORE": "store.db", "TMPDIR": bench.path("own")]),
                in: bench.folder)
            #expect(said.status == 1 && said.stderr.contains("Permission denied"), "\(words): \(said)")
            #expect(!said.stderr.contains("init"), "\(words): \(said.stderr)")
        }
    }

    @Test(arguments: ["empty.bib", "empty.jsonl", "blank.bib", "comment.bib"])
    func anImportOfAFileWithNothingInIt_endsWith3(_ name: String) throws {
        let bench = try Workbench()
        try bench.write("empty.bib", "")
        try bench.write("empty.jsonl", "")
        try bench.write("blank.bib", " \n\n")
        try bench.write("comment.bib", "% my library\n")
        let said = try bench.tool(exit: name == "comment.bib" ? 0 : 3, "import", "--create", name)
        #expect(name == "comment.bib" || said.stderr.contains("\(name): is empty"), "\(said.stderr)")
    }

    @Test func aReaderThatStopsReading_endsTheToolQuietly() throws {
        let bench = try Workbench()
        try bench.write("a.bib", String(repeating: "@misc{a, title={A long title of a work}}\n\n", count: 200_000))
        try bench.shell("tar cf a.tar a.bib")
        let events = (0..<20_000).map { Self.event.replacing("e1", with: "e\($0)") }
        try bench.write("d.jsonl", events.joined())
        try bench.tool(exit: 0, "import", "--create", "-q", "d.jsonl")
        // Whoever only looks may stop; half an export is none.
        let half = "backup-tool: standard output: the program that reads it ended before everything was written\n1\n"
        for (command, end) in [("show a.tar a.bib", "1\n"), ("events export -o -", half), ("list a.tar", "0\n")] {
            let said = try bench.shell(
                "{ $T \(command) 2> said && echo 0 > code || echo $? > code; } | head -c 1 > /dev/null; cat said code")
            #expect(said == end, "\(command): \(said)")
        }
    }
}

/// A disk that is full from some moment on.
struct CommandsFullDiskTests {
    private static let calls = "pwrite64,mkdir,link,linkat,rename,renameat2,ftruncate,fallocate,copy_file_range"

    @Test func aRestoreOnADiskThatIsFullFromSomeMomentOn_saysWhatIsDone() throws {
        let bench = try Workbench()
        for name in ["a", "b", "c"] { try bench.write("pdfs/\(name).pdf", "%PDF \(name)") }
        try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.tool(exit: 3, "import", "--create", "a.bib", "--attachments", "pdfs")
        try bench.tool(exit: 0, "export", "-q", "-o", "good.tar.zst")
        for name in ["a", "b"] { try bench.write("pdfs/\(name).pdf", "%PDF \(name) is another one now") }
        try bench.write("b.bib", "@misc{c, title={C}}\n")
        try bench.tool(exit: 3, "import", "b.bib", "--attachments", "pdfs")
        let words = ["restore", "good.tar.zst", "--mode", "replace"]
        let before = try bench.digest()
        try bench.shell("mkdir keep; cp -a store.db* keep")
        func run(_ options: [String]) throws -> ProcessResult {
            try runProcess(
                ["strace", "-f", "-qq", "-o", "trace"] + options + [try productsDirectory() + "/backup-tool"] + words,
                environment: testEnvironment(["BACKUP_TOOL_STORE": "store.db", "TMPDIR": bench.path("tmp")]),
                in: bench.folder)
        }
        _ = try run(["-e", "trace=\(Self.calls)"])
        let after = try bench.digest()
        #expect(before != after)
        let steps = TracedStep.all(in: try bench.text("trace"))
        var random = SeededGenerator(seed: testSeed())
        let total = steps.count
        let places =
            Workbench.isTorture ? Array(0..<total) : (0..<12).map { _ in total - 1 - random.below(min(total, 30)) }
        for place in Set(places).sorted() {
            countRounds()
            try bench.shell("rm -rf store.db*; cp -a keep/* .")
            let said = try run(TracedStep.failing(from: place, of: steps, error: "ENOSPC"))
            let isDone = said.status != 1
            #expect(try bench.digest() == (isDone ? after : before), "call \(place) of \(total): \(said)")
            #expect([0, 1, 3].contains(said.status), "call \(place) of \(total): \(said)")
            let left = try bench.files("store.db.assets").filter { $0.hasPrefix(".incoming") }
            #expect(isDone || left.isEmpty, "call \(place) of \(total)")
            // The next command that writes puts the rest in order.
            try bench.tool("store", "adopt", "-q")
            #expect(try !bench.exists("store.db.assets/.incoming"), "call \(place) of \(total)")
            #expect(try bench.tool("store", "check").status == 0, "call \(place) of \(total): \(said)")
        }
    }
}
