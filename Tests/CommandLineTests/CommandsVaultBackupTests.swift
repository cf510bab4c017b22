import BackupKit
import Glibc
import TestSupport
import Testing

/// Snapshots of a store, with stock restic as the judge.
struct CommandsVaultBackupTests {
    /// A store with the samples and a large attachment, and an empty vault `v`.
    static func bench() throws -> Workbench {
        let bench = try CommandsVaultTests.bench()
        try bench.importSamples()
        var random = SeededGenerator(seed: 5)
        var large: [UInt8] = []
        for _ in 0..<400_000 { withUnsafeBytes(of: random.next()) { large += $0 } }
        try bench.write("more/large.bin", large)
        try bench.write("more/empty.txt", "")
        try bench.tool("import", "--attachments", "more")
        try bench.makeCheapVault()
        return bench
    }

    /// What every test of a change ends with: both programs read all of it and find nothing.
    static func check(_ bench: Workbench, _ vault: String = "v") throws {
        try bench.shell("restic -r \(vault) check --read-data -q")
        try bench.tool(exit: 0, "vault", "check", "--read-data", "--vault", vault)
    }

    static func judge(_ bench: Workbench, _ vault: String = "v") throws {
        try check(bench, vault)
        try bench.tool(exit: 0, "verify", "vault:\(vault)", "--level", "deep")
        #expect(try bench.files("\(vault)/locks").isEmpty)
        let left = try bench.files(vault).filter { $0.contains(".tmp-") }
        #expect(left.isEmpty)
    }

    /// Runs know by these tags which of their snapshots lack something.
    @Test(arguments: ["suspect", "partial"]) func aTagOfRuns_isNotGivenByHand(_ tag: String) throws {
        let bench = try CommandsVaultTests.bench()
        try bench.tool(exit: 0, "store", "init")
        try bench.makeCheapVault()
        let refused = try bench.tool(exit: 64, "vault", "backup", "--vault", "v", "--tag", "mine,\(tag)")
        #expect(refused.stderr.contains("the tag '\(tag)'") && refused.stderr.contains("another tag"))
        try bench.tool(exit: 0, "vault", "backup", "--vault", "v", "--tag", "mine")
    }

    @Test func resticRestoresWhatWeBackedUp_asPlainFiles() throws {
        let bench = try Self.bench()
        let summary = try bench.json(exit: 0, "vault", "backup", "--tag", "a,b", "--tag", "c", "--host", "h")
        #expect(summary["message_type"]?.string == "summary")
        let id = try #require(summary["snapshot_id"]?.string)
        try bench.shell("restic -r v restore -q latest --target out; cd out/library; sha256sum -c --quiet SHA256SUMS")
        try bench.tool(exit: 0, "verify", "out/library", "--level", "deep")
        try bench.tool(exit: 0, "export", "-o", "exported")
        try bench.shell("diff -r -x manifest.json -x SHA256SUMS out/library exported")
        let listed = try JSON(parsing: bench.shell("restic -r v snapshots --json"))
        #expect(listed.array?.count == 1)
        #expect(listed.array?.first?["id"]?.string == id)
        #expect(listed.array?.first?["hostname"]?.string == "h")
        #expect(listed.array?.first?["tags"]?.array == ["a", "b", "c"])
        #expect(listed.array?.first?["paths"]?.array == ["/library"])
        let files = try bench.shell("restic -r v ls latest | grep -c Attachments/large.bin")
        #expect(files == "1\n")
        try Self.judge(bench)
    }

    @Test func nothingIsStoredOrReadTwice() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "backup")
        let size = try bench.shell("du -sb v/data")
        let again = try bench.json(exit: 0, "vault", "backup")
        #expect(again["files_new"]?.integer == 0 && again["files_changed"]?.integer == 0)
        #expect(again["data_blobs"]?.integer == 0 && again["tree_blobs"]?.integer == 0)
        #expect(try bench.shell("du -sb v/data") == size)
        // A manifest names its time; the snapshot is the same all the same.
        let skipped = try bench.json(exit: 0, "vault", "backup", "--skip-if-unchanged")
        #expect(skipped["snapshot_id"] == nil)
        let trace = try bench.shell(
            """
            strace -f -qq -o trace -e trace=openat2 "$T" vault backup -q
            grep large.bin trace | grep -vc O_PATH || true
            strace -f -qq -o trace -e trace=openat2 "$T" vault backup -q --force
            grep large.bin trace | grep -vc O_PATH
            """)
        #expect(trace == "0\n1\n")
        #expect(try bench.json(exit: 0, "vault", "backup", "--force")["data_added"]?.integer == 0)
        #expect(try bench.json(exit: 0, "vault", "snapshots").array?.count == 5)
        try Self.judge(bench)
    }

    @Test func onlyWhatChangedIsAdded() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.write("new.bib", "@misc{n, title={New}}\n")
        try bench.write("more/new.txt", "new")
        try bench.tool("import", "new.bib", "--attachments", "more")
        let second = try bench.json(exit: 0, "vault", "backup")
        #expect(second["files_new"]?.integer == 1)
        let ids = (try bench.json(exit: 0, "vault", "snapshots").array ?? []).compactMap { $0["id"]?.string }
        let changed = try bench.shell("restic -r v diff \(ids[0]) \(ids[1]) | grep -c '^+ .*new.txt'")
        #expect(changed == "1\n")
        #expect((second["data_added"]?.integer ?? .max) < 300_000)
        let difference = try bench.tool("diff", "vault:v@\(ids[0])", "vault:v")
        #expect(difference.stdout.contains("Attachments/new.txt"))
        #expect(try bench.json(exit: 0, "diff", "vault:v", "store.db")["differences"]?.integer == 0)
        let table = try bench.tool(exit: 0, "vault", "snapshots").stdout.split(separator: "\n")
        let files = try #require(second["total_files_processed"]?.integer)
        #expect(table.count == 3 && table[2].contains("  \(files)  "), "\(table)")
        try Self.judge(bench)
    }

    @Test func forceReplacesOnlyWhatAnExportOrARestoreWrote() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell(
            """
            mkdir -p inner docs thesis/chapters deep/events empty
            cp -a v inner/v; cp -a v deep/events/v; echo '{}' > deep/records.jsonl
            echo text > docs/letter.txt; echo text > thesis/chapters/one.tex; cp out.bib thesis/library.bib || touch thesis/library.bib
            "$T" -q export -o mine; echo mine > mine/remarks.txt
            """)
        for target in ["v", "inner", "docs", "thesis", "deep", "mine", "store.db", "."] {
            for words in [["export", "-o", target], ["restore", "vault:v", "--to", target]] {
                let before = try bench.shell("find . | sort | sha256sum")
                let told = try bench.tool(words + ["--force"])
                #expect(told.status == 1, "\(words): \(told.stderr)")
                #expect(told.stderr.contains("--force does not replace"), "\(words): \(told.stderr)")
                #expect(try bench.shell("find . | sort | sha256sum") == before)
            }
        }
        for _ in 0..<2 {
            try bench.tool(exit: 0, "export", "-q", "-o", "out", "--force")
            try bench.tool(exit: 0, "restore", "vault:v", "--to", "empty", "--force")
            try bench.tool(exit: 0, "export", "-q", "-o", "out.tar.zst", "--force")
            try bench.tool(exit: 0, "events", "export", "-o", "days", "--force")
            // What has no manifest and other names is replaced by itself.
            try bench.shell("mkdir -p bare; printf '@misc{a, title={A}}' > bare/other.bib")
            try bench.tool("restore", "bare", "--to", "back", "--force")
            #expect(try bench.exists("back/other.bib"))
        }
        // Not out of itself.
        try bench.tool(exit: 1, "restore", "out", "--to", "out", "--force")
        try Self.judge(bench)
    }

    /// A backup takes over what the last one made of the same rows; a row that a stranger edits in place counts no change.
    @Test func whateverIsChangedInPlaceIsInTheNextSnapshot() throws {
        let bench = try Self.bench()
        // What a stranger changed is in the snapshot, and named.
        func tree(exit code: Int32) throws -> String? {
            try bench.tool(exit: code, "vault", "backup", "--quiet")
            #expect(try bench.tool(exit: code, "diff", "vault:v", "store.db").stderr.contains("No difference"))
            return try JSON(parsing: bench.shell("restic -r v snapshots --json latest")).array?.last?["tree"]?.string
        }
        var last = try tree(exit: 0)
        #expect(try tree(exit: 0) == last)
        for change in [
            "UPDATE record SET fields = replace(fields, 'Title', 'Titel'), change = change WHERE type = 'Publication'",
            "UPDATE record SET fields = json_set(fields, '$.more', 1) WHERE change = (SELECT max(change) FROM record WHERE type <> 'Publication' AND deleted_at IS NULL)",
            "UPDATE record SET local_only = 1 - local_only WHERE change = (SELECT min(change) FROM record)",
            "UPDATE record SET modified_at = modified_at + 1 WHERE change = (SELECT min(change) FROM record)",
            // The store says that something has changed, but not that this has.
            "UPDATE counter SET value = value + 1; UPDATE record SET fields = replace(fields, 'Titel', 'Titre') WHERE type = 'Publication'",
            "UPDATE asset SET local_only = 1 WHERE path LIKE '%empty%'",
            "INSERT INTO setting VALUES ('a new one', 'true', 0)",
        ] {
            #expect(try bench.shell("sqlite3 store.db \"\(change); SELECT changes() > 0\"") == "1\n", "\(change)")
            let next = try tree(exit: 3)
            #expect(next != last, "\(change)")
            last = next
        }
        // Of the same size and time.
        try bench.shell(
            "cp -p store.db.assets/Attachments/large.bin old; printf x | dd conv=notrunc of=store.db.assets/Attachments/large.bin status=none; touch -r old store.db.assets/Attachments/large.bin"
        )
        try bench.tool(exit: 4, "vault", "backup", "--quiet")
        let shown = try bench.shell(
            "restic -r v dump latest /library/Attachments/large.bin | cmp - store.db.assets/Attachments/large.bin && echo same"
        )
        #expect(shown == "same\n")
        // It is told every night, and when the file is put back the digest of everything is the store's again.
        #expect(try bench.tool(exit: 4, "vault", "backup", "--quiet").stderr.contains("large.bin: is damaged"))
        try bench.shell("cp -p old store.db.assets/Attachments/large.bin")
        try bench.tool(exit: 0, "store", "repair", "--accept")
        try bench.tool(exit: 0, "vault", "backup", "--quiet")
        let verified = try bench.json(exit: 0, "verify", "vault:v", "--level", "deep")
        #expect(try verified["contentDigest"]?.string.map { $0 + "\n" } == bench.digest())
        try Self.check(bench)
    }

    @Test func aDryRunWritesNothing() throws {
        let bench = try Self.bench()
        let before = try bench.files("v")
        let told = try bench.tool(exit: 0, "vault", "backup", "--dry-run").stderr
        #expect(told.contains("Nothing was written"))
        #expect(try bench.json(exit: 0, "vault", "backup", "--dry-run")["dry_run"]?.bool == true)
        #expect(try bench.files("v") == before)
    }

    @Test func anExportMayGoIntoAVault() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "export", "-o", "vault:v")
        try bench.tool(exit: 64, "export", "-o", "vault:v", "--format", "zip")
        try bench.tool(exit: 10, "export", "-o", "vault:none")
        for wrong in ["vault:", "vault:v@latest"] {
            try bench.tool(exit: 64, "export", "-o", wrong)
            #expect(try FileStatus.ofName("\(bench.folder)/\(wrong)") == nil)
        }
        try bench.tool(exit: 64, "verify", "vault:")
        #expect(try bench.tool(exit: 0, "diff", "vault:v", "store.db").stderr.contains("No difference"))
        try Self.judge(bench)
    }

    /// A note is no reason to make the files of an unchanged library again: the snapshot says what they were made of.
    @Test func aNoteAboutTheEncoding_doesNotSlowTheNextBackup() throws {
        let bench = try CommandsVaultTests.bench()
        try bench.write(
            "latin.bib", Array("@misc{k, title={Caf".utf8) + [0xE9] + Array("}, author={A}, year=2001}\n".utf8))
        try bench.tool("import", "latin.bib")
        try bench.makeCheapVault()
        let told = try bench.tool(exit: 0, "vault", "backup", "-v").stderr
        #expect(told.contains("converted from"), "\(told)")
        #expect(try bench.json(exit: 0, "vault", "snapshots").array?.last?["backup_tool"]?["terms"] != nil)
    }

    @Test func aBackupRestoresIntoANewStore() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-02T03:04:05Z")
        // The samples have a conflict.
        try bench.tool(
            exit: 3, "restore", "--create", "vault:v@2026-01-02", "--store", "new.db", "--only", Workbench.allKinds)
        #expect(try bench.digest("new.db") == bench.digest())
        try bench.tool(exit: 0, "restore", "vault:v", "--to", "plain")
        try bench.shell("cd plain; sha256sum -c --quiet SHA256SUMS")
        try bench.tool(exit: 1, "restore", "vault:v@2025-12-31", "--to", "other")
        #expect(try bench.tool(exit: 10, "verify", "v").stderr.contains("write vault:v"))
        #expect(try bench.tool(exit: 10, "restore", "v", "--to", "other").stderr.contains("write vault:v"))
        try bench.tool(
            exit: 12, "list", "vault:v", environment: ["BACKUP_TOOL_PASSWORD_FILE": "", "RESTIC_PASSWORD": "x"])
        try bench.tool(exit: 0, "list", "vault:v", "--password-file", "password", environment: ["RESTIC_PASSWORD": "x"])
        #expect(try bench.tool(exit: 0, "show", "vault:v", "README.txt").stdout.contains("You do not need backup-tool"))
        try Self.judge(bench)
    }

    @Test(arguments: ["1", "2"])
    func weReadWhatResticBackedUp(_ version: String) throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "export", "-o", "exported")
        try bench.shell(
            """
            restic -r r init -q --repository-version \(version)
            restic -r r backup -q exported
            restic -r r backup -q "$PWD/exported" --host other
            cd exported; RESTIC_CACHE_DIR=../cache restic -r ../r backup -q .
            """)
        let count = try bench.json(exit: 0, "list", "exported")["entries"]?.array?.count
        for snapshot in try bench.json(exit: 0, "vault", "snapshots", "--vault", "r").array ?? [] {
            let id = try #require(snapshot["short_id"]?.string)
            try bench.tool(exit: 0, "verify", "vault:r@\(id)", "--level", "deep")
            #expect(try bench.json(exit: 0, "list", "vault:r@\(id)")["entries"]?.array?.count == count)
        }
        try bench.tool(exit: 0, "vault", "backup", "--vault", "r")
        try bench.tool(exit: 0, "diff", "vault:r", "exported")
        let config = try JSON(parsing: bench.shell("restic -r r cat config -q"))
        #expect(config["version"]?.integer == Int64(version))
        try Self.judge(bench, "r")
        // The polynomial is the vault's, so what restic has cut is not stored again.
        try bench.tool(exit: 0, "vault", "forget", "--keep-last", "1", "--prune", "--max-unused", "0", "--vault", "r")
        try Self.judge(bench, "r")
    }

    @Test func attachmentsThatResticHasCutAreNotStoredAgain() throws {
        let bench = try Self.bench()
        try bench.shell("restic -r v backup -q store.db.assets")
        let summary = try bench.json(exit: 0, "vault", "backup")
        #expect((summary["data_added"]?.integer ?? .max) < 1_000_000)
        try Self.judge(bench)
    }

    @Test func whatIsLostOrChangesMeanwhileIsSaid() throws {
        let bench = try Self.bench()
        try bench.shell("rm -f store.db.assets/Attachments/empty.txt")
        let lost = try bench.tool(exit: 3, "vault", "backup")
        #expect(lost.stderr.contains("Attachments/empty.txt"))
        let messages = try bench.tool("vault", "backup", "--json").stdoutLines.map { try JSON(parsing: $0) }
        #expect(messages.contains { $0["message_type"]?.string == "error" && $0["during"]?.string == "archival" })
        // A file that grows without end.
        try bench.shell(
            """
            (while [ ! -e done ]; do printf x >> store.db.assets/Attachments/large.bin; done) &
            # Reading is made slow, so that something happens meanwhile however busy the machine is.
            code=0
            strace -f -qq -o trace -e trace=pread64 -e inject=pread64:delay_enter=10000 "$T" vault backup 2>said || code=$?
            touch done; wait
            [ $code = 3 ]; grep -q 'large.bin: changed' said
            """)
        try Self.check(bench)
    }

    /// The first try finds a large file, the second a small one, which goes another way.
    @Test func aFileThatShrinksWhileItIsRead_isStoredAsItIsThen() throws {
        let bench = try Self.bench()
        let said = try bench.shell(
            """
            f=store.db.assets/Attachments/large.bin
            (until grep -qs 'pread64.*large.bin' trace; do sleep 0.01; done; printf small > $f) &
            strace -y -f -qq -o trace -P "$PWD/$f" -e trace=pread64 -e inject=pread64:delay_exit=100000 \
                "$T" vault backup 2>&1 >/dev/null || [ $? = 3 ]
            wait
            """)
        #expect(said.contains("large.bin"))
        try bench.shell("restic -r v restore -q latest --target out; cd out/library; sha256sum -c --quiet SHA256SUMS")
        #expect(try bench.shell("cat out/library/Attachments/large.bin") == "small")
    }

    @Test func noAttachmentTakesThePlaceOfAFileOfOurs() throws {
        let bench = try Self.bench()
        let foreign = [
            "Library.bib", "records.jsonl", "Events/2026-01-01.jsonl", "events/2026-02-14.jsonl", "mine.txt",
        ]
        for path in foreign {
            try bench.write("store.db.assets/\(path)", "of somebody else")
            try bench.shell(
                """
                sqlite3 store.db "INSERT INTO asset (path, size, sha256, modified_ns, local_only, change)
                  SELECT '\(path)', 16, '\(SHA256Digest.of("of somebody else").hex)', 0, 0, max(change) + 1 FROM asset"
                """)
        }
        let said = try bench.tool(exit: 3, "vault", "backup").stderr
        for path in foreign { #expect(said.contains(path) == (path != "mine.txt"), "\(path)") }
        try bench.shell("restic -r v restore -q latest --target out; cd out/library; sha256sum -c --quiet SHA256SUMS")
        #expect(try bench.shell("cat out/library/mine.txt") == "of somebody else")
        try bench.shell("! grep -r 'of somebody else' --exclude mine.txt out/library")
    }

    @Test func aLockedVaultIsSaidInResticsWords() throws {
        let bench = try Self.bench()
        let wrong = try bench.tool(
            "vault", "backup", "--json", environment: ["BACKUP_TOOL_PASSWORD_FILE": "", "RESTIC_PASSWORD": "no"])
        #expect(wrong.status == 12)
        let message = try JSON(parsing: wrong.stderr.split(separator: "\n").last.map(String.init) ?? "")
        #expect(message["message_type"]?.string == "exit_error" && message["code"]?.integer == 12)
    }

    /// SIGKILL at every system call of a backup that changes something. Nothing that was committed is lost, both programs find the
    /// vault sound, and the next backup uses what the killed one left.
    @Test func killedAnywhere_aBackupCostsNothing() throws {
        let bench = try Self.bench()
        // Between two of these nothing on disk changes but that a new, empty file has a name.
        let calls = "write,pwrite64,fsync,renameat2,rename,unlink,mkdir"
        try bench.write("late.bib", "@misc{late, title={Late}}\n")
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-01T00:00:00Z")
        try bench.shell(
            """
            "$T" import -q late.bib; head -c 5000000 /dev/urandom > more/second.bin
            "$T" import -q --attachments more || true
            """)
        /// Of all packs. A pack that was not finished has no name yet, and waits for `prune`: another machine may write it.
        func packBytes(_ vault: String) throws -> Int {
            let sizes = try bench.shell("find \(vault)/data -type f ! -name '.*' -printf '%s\\n'")
            return sizes.split(separator: "\n").reduce(0) { $0 + (Int($1) ?? 0) }
        }
        try bench.killed(at: calls, ["vault", "backup", "-q"]) { place in
            try bench.shell("restic -r v unlock -q")
            try Self.check(bench)
            try bench.tool(exit: 0, "verify", "vault:v@2026-01-01")
            let left = try packBytes("v")
            let next = try bench.tool("vault", "backup", "--json")
            #expect(next.status == 0, "\(place): \(next.stderr)")
            // The five million bytes lie there once, whoever brought them.
            let added = try packBytes("v") - packBytes("keep")
            #expect((5_000_000..<7_000_000).contains(added), "\(place): \(added), \(left) left by the killed one")
            try Self.check(bench)
            try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
        }
    }

    @Test func aLostIndexIsMadeAgainFromThePacks() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell("chmod -R u+w v/index; rm -f v/index/*; ! restic -r v check -q 2>/dev/null")
        let summary = try bench.json(exit: 0, "vault", "backup")
        #expect(summary["data_added"]?.integer == 0)
        #expect(summary["files_new"]?.integer == 0)
        try Self.judge(bench)
    }

    /// The index names packs that somebody removed or cut. A backup that trusted it would be one in name only.
    @Test(arguments: ["rm -f", "truncate -s -1"])
    func whatALostPackHeldIsStoredAgain(_ damage: String) throws {
        let bench = try Self.bench()
        let first = try bench.json(exit: 0, "vault", "backup")["snapshot_id"]?.string ?? ""
        try bench.shell("chmod -R u+w v/data; find v/data -type f -print0 | xargs -0 \(damage)")
        let next = try bench.tool(exit: 3, "vault", "backup", "-q")
        #expect(
            next.stderr.hasPrefix("damage: data/") && next.stderr.contains("'backup-tool vault repair --save FOLDER'"))
        try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
        // The older one had a manifest of its own, which is lost. Without it pruning clears up.
        try bench.tool(exit: 0, "vault", "forget", first)
        try bench.tool(exit: 0, "vault", "prune")
        #expect(try bench.tool(exit: 0, "vault", "backup").stderr.contains(" 0 B added"))
        try Self.judge(bench)
    }

    @Test func bothProgramsMayBackUpAtOnce() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "export", "-o", "exported")
        try bench.shell(
            """
            for i in 1 2 3; do "$T" vault backup -q --force & restic -r v backup -q exported & wait; done
            [ $(restic -r v snapshots --json | tr , '\\n' | grep -c short_id) = 6 ]
            """)
        try Self.check(bench)
        try bench.shell("restic -r v forget -q --keep-last 1 --prune")
        try Self.check(bench)
        let snapshots = try bench.json(exit: 0, "vault", "snapshots").array ?? []
        for snapshot in snapshots {
            try bench.tool(exit: 0, "verify", "vault:v@\(snapshot["id"]?.string ?? "")")
        }
    }
}
