import BackupKit
import Glibc
import TestSupport
import Testing

struct CommandsVaultDamageTests {
    /// Damage in people's words: whose PDF it was, and which records cannot be read any more.
    @Test func damageIsNamedDownToRecords() throws {
        let bench = try CommandsVaultIndexTests.bench()
        // The pack of the first snapshot: all attachments, and its own list of records.
        try bench.shell("chmod -R u+w v; rm $(ls -S v/data/*/* | head -1)")
        let report = try bench.json(exit: 4, "vault", "check")
        let hits = report["affected"]?.array ?? []
        func records(_ path: String) -> [[JSON]] {
            hits.filter { $0["path"]?.string == "/library/\(path)" }.map { $0["records"]?.array ?? [] }
        }
        let owners = records("Attachments/Halloran2003 back cover.pdf")
        #expect(owners.count == 2 && owners.allSatisfy { $0.count == 1 })
        #expect(owners.first?.first?["citeKey"]?.string == "Halloran2003")
        #expect(owners.first?.first?["title"]?.string?.hasPrefix("Twenty Years in a Drawer") == true)
        #expect(owners.first?.first?["localId"]?.string?.utf8.count == 36)
        // Only the first snapshot has lost its records; the second tells which they were, and that one came later.
        let lost = records("records.jsonl")
        #expect(lost.count == 1 && (lost.first?.count ?? 0) > 8)
        #expect(lost.first?.contains { $0["citeKey"]?.string == "late" } == false)
        #expect(try bench.tool(exit: 4, "vault", "check").stderr.contains("it affects 'Twenty Years in a Drawer"))
    }

    /// What a store still has comes back with the next backup. Only what is missing after that is lost.
    @Test(arguments: [true, false])
    func whatARepairHasRemoved_isStoredAgainAsAdvised(storeHasIt: Bool) throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret", "BACKUP_TOOL_VAULT": "v"])
        try bench.makeCheapVault()
        try bench.shell("mkdir pdfs; head -c 300000 /dev/urandom > pdfs/a.pdf")
        try bench.tool("import", "--create", "--attachments", "pdfs")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell(
            """
            pack=$(ls -S v/data/*/* | head -1); chmod u+w $pack
            printf ZZZZ | dd of=$pack bs=1 seek=150000 conv=notrunc status=none
            """)
        try bench.tool("vault", "repair", "--save", "saved")
        let told = try bench.tool(exit: 4, "vault", "check").stderr
        let advice = told.matches(of: /'backup-tool (vault (?:backup|check|forget [0-9a-f]+))'/).map { String($0.1) }
        #expect(advice.count >= 3 && advice.prefix(2) == ["vault backup", "vault check"], "\(told)")
        if !storeHasIt { try bench.shell("rm -rf store.db*; $T -q store init") }
        try bench.shell("$T -q vault backup || [ $? = 3 ]")
        let after = try bench.tool(["vault", "check", "--read-data"])
        #expect(after.status == (storeHasIt ? 0 : 4), "\(after.stderr)")
        let forget = after.stderr.matches(of: /'backup-tool (vault forget [0-9a-f]+)'/).map { String($0.1) }
        for command in Set(forget) { try bench.shell("$T -q \(command)") }
        try bench.tool(exit: 0, "vault", "check", "--read-data")
    }

    /// From far too little to enough.
    @Test func tooLittleMemory_isNoDamage() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret", "BACKUP_TOOL_VAULT": "v"])
        try bench.makeCheapVault()
        try bench.shell("mkdir pdfs; for i in 1 2 3 4; do head -c 300000 /dev/urandom > pdfs/$i.pdf; done")
        try bench.tool("import", "--create", "--attachments", "pdfs")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell("cp -a v sound")
        func limited(_ kilobytes: Int, _ command: String) throws -> String {
            try bench.shell(
                "r=0; (ulimit -v \(kilobytes); exec $T vault \(command)) > said 2>&1 || r=$?; echo $r; cat said")
        }
        // The libraries alone take much more than what is used.
        var enough = 100_000
        while try !limited(enough, "check --read-data").hasPrefix("0\n"), enough < 4_000_000 { enough += 20_000 }
        for limit in stride(from: enough, to: enough - 60_000, by: -3_000) {
            for command in ["check --read-data", "repair --save saved"] {
                let said = try limited(limit, command)
                let isDamage = said.hasPrefix("4\n") || said.contains("damage:") || said.contains("eplaced")
                #expect(!isDamage, "\(limit): \(said)")
            }
            // A process that ends for lack of memory leaves its lock.
            try bench.shell("diff -r -x locks v sound; rm -rf saved")
        }
    }

    /// The damaged one may be the latest: an older one in its place would be a loss that nobody notices.
    @Test func noOlderSnapshotPassesForTheLatest() throws {
        let bench = try CommandsVaultIndexTests.bench()
        let all = try bench.json(exit: 0, "vault", "snapshots").array ?? []
        let (old, new) = (try #require(all.first?["id"]?.string), try #require(all.last?["id"]?.string))
        let late = try bench.shell(
            "sqlite3 store.db \"SELECT local_id FROM record WHERE json_extract(fields, '$.citeKey') = 'late'\""
        ).filter { $0 != "\n" }
        try bench.tool(exit: 0, "store", "delete", late)
        try bench.shell(
            "chmod u+w v/snapshots/*; printf xxxx | dd of=v/snapshots/\(new) bs=1 seek=40 conv=notrunc status=none")
        for line in [
            "restore vault:v", "restore vault:v@latest --to out", "restore vault:v@2030-01-01 --dry-run",
            "verify vault:v",
            "drill vault:v --log d.jsonl", "list vault:v@latest", "show vault:v", "diff vault:v store.db",
            "vault stats",
            "vault stats latest", "vault snapshots", "vault forget latest --dry-run",
            "store purge \(late) --confirm --source vault:v", "store repair --from vault:v",
        ] {
            let result = try bench.tool(line.split(separator: " ").map(String.init))
            #expect(result.status == 4 && result.stderr.contains(new), "\(line): \(result.status) \(result.stderr)")
        }
        try bench.tool(exit: 0, "store", "purge", late, "--dry-run", "--source", "vault:v@\(old.prefix(8))")
        try bench.tool(exit: 0, "restore", "vault:v@\(old.prefix(8))", "--to", "old")
        try bench.tool(exit: 0, "vault", "forget", String(new.prefix(8)))
        try bench.tool(exit: 0, "restore", "vault:v", "--to", "latest")
    }

    /// When the only list of records is lost, the files for people tell what was in it, and what in them is no entry is not named.
    @Test func whatTheOnlyListHeldIsNamed_asFarAsTheOtherFilesTell() throws {
        let bench = try CommandsVaultBackupTests.bench()
        try bench.write("samples/2026-02-14.jsonl", #"{"time":"2026-02-14T15:00+01:00","type":"walk"}"# + "\n")
        try bench.tool(exit: 0, "import", "samples/2026-02-14.jsonl")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell(
            """
            tree() { restic -r v cat blob $1 | jq -r ".nodes[] | select(.name == \\"$2\\") | $3"; }
            library=$(tree $(restic -r v snapshots --json | jq -r '.[0].tree') library .subtree)
            blob=$(tree $library records.jsonl '.content[0]')
            set -- $(restic -r v cat index $(ls v/index) | jq -r --arg b $blob \
                '.packs[] | .id as $p | .blobs[] | select(.id == $b) | "\\($p) \\(.offset + .length / 2 | floor)"')
            p=$(ls v/data/*/$1); chmod u+w $p
            printf XYZZYX | dd of=$p bs=1 seek=$2 conv=notrunc status=none
            """)
        let hits = try bench.json(exit: 4, "vault", "check", "--read-data")["affected"]?.array ?? []
        let lost = hits.first { $0["path"]?.string == "/library/records.jsonl" }?["records"]?.array ?? []
        let titles = lost.reduce(into: [:]) { $0[$1["citeKey"]?.string ?? ""] = $1["title"]?.string }
        #expect(titles["Halloran2003"]?.hasPrefix("Twenty Years in a Drawer") == true)
        let ids = try bench.shell(
            "sqlite3 store.db \"SELECT local_id FROM record WHERE type IN ('\(RecordType.note)', '\(RecordType.event)')\""
        )
        let named = Set(lost.compactMap { $0["localId"]?.string })
        let wanted = ids.split(separator: "\n").map(String.init)
        #expect(wanted.count >= 3 && named.isSuperset(of: wanted), "\(wanted) \(named)")
        #expect(titles["ghost"] == nil && !titles.keys.contains { $0.contains("@") || $0.contains(" @") })
    }

    /// SIGKILL at every system call of `forget --prune` that changes something. The snapshot that stays is whole for both programs,
    /// and the next run finishes.
    @Test func killedAnywhere_forgetAndPruneLoseNothing() throws {
        let bench = try CommandsVaultBackupTests.bench()
        let calls = "write,fsync,renameat2,rename,unlink"
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-01T00:00:00Z")
        // Half of the pack is not needed any more, so that it must be copied.
        try bench.write("more/second.txt", "second")
        try bench.shell(
            "rm -f more/large.bin; $T import -q --attachments more || true; rm -f store.db.assets/Attachments/large.bin"
        )
        try bench.tool(exit: 3, "vault", "backup", "--time", "2026-02-01T00:00:00Z")
        let words = ["vault", "forget", "--keep-last", "1", "--prune", "--max-unused", "0"]
        try bench.killed(at: calls, words) { place in
            try bench.shell("restic -r v unlock -q")
            try CommandsVaultBackupTests.check(bench)
            #expect(try bench.tool(words).status == 0, "\(place)")
            try bench.tool(exit: 3, "verify", "vault:v@2026-02-01", "--level", "deep")
            try CommandsVaultBackupTests.check(bench)
            // Nothing is left to do, and nothing of what nobody needs is left.
            let again = try bench.json(exit: 0, "vault", "prune", "--max-unused", "0")
            #expect(again["nothingToDo"]?.bool == true, "\(place)")
            #expect(again["bytesBefore"]?.integer ?? .max < 200_000, "\(place)")
        }
    }

    // MARK: Repair

    /// A vault of two snapshots, whose largest pack is damaged as `damage` does it; `$p` is its path, and `$at` a place in its
    /// largest blob, which is an attachment's.
    private static func damagedBench(_ damage: String) throws -> Workbench {
        let bench = try CommandsVaultIndexTests.bench()
        let pack = try bench.shell("printf %s $(ls -S v/data/*/* | head -1)")
        let packs = try Directory.names(in: bench.path("v/index")).flatMap { name in
            try JSON(parsing: bench.shell("restic -r v cat index \(name)"))["packs"]?.array ?? []
        }
        let blobs = packs.first { pack.hasSuffix($0["id"]?.string ?? "-") }?["blobs"]?.array ?? []
        let largest = try #require(blobs.max { ($0["length"]?.integer ?? 0) < ($1["length"]?.integer ?? 0) })
        let place = (largest["offset"]?.integer ?? 0) + (largest["length"]?.integer ?? 0) / 2
        // Another byte than the one that is there.
        let flip = """
            flip() { c=X; cmp -s <(dd if=$p bs=1 skip=$1 count=1 status=none) <(printf X) && c=Y
            printf $c | dd of=$p bs=1 seek=$1 conv=notrunc status=none; }
            """
        try bench.shell("\(flip)\nchmod -R u+w v; p=\(pack); at=\(place); cp $p pack; \(damage); cp $p hit || true")
        return bench
    }

    /// Every file of the vault, with its digest.
    private static func content(_ bench: Workbench) throws -> String {
        try bench.shell("find v -type f -exec sha256sum {} + | sort")
    }

    @Test(arguments: [
        // One blob of many, the header, the end (whose blobs that is, chance decides), all of it.
        ("flip $at", false),
        ("flip $(($(stat -c %s $p) - 20))", false),
        ("truncate -s -3000 $p", nil), ("rm $p", true),
    ])
    func whatIsDamagedIsLetGo_andStoredAgain(damage: String, isGone: Bool?) throws {
        let bench = try Self.damagedBench(damage)
        let found = try bench.tool(exit: 4, "vault", "check", "--read-data").stderr
        #expect(
            found.contains("\n  bring it back from a copy of the vault; else 'backup-tool vault repair --save FOLDER'"))
        let before = try Self.content(bench)
        try bench.tool(exit: 64, "vault", "repair")
        let plan = try bench.json(exit: 4, "vault", "repair", "--dry-run")
        #expect(try Self.content(bench) == before)
        #expect(plan["packs"]?.integer == 1)
        let isLost = plan["blobsLost"]?.integer != 0
        let done = try bench.json(exit: isLost ? 3 : 0, "vault", "repair", "--save", "saved/here")
        #expect(done["blobsLost"] == plan["blobsLost"] && done["blobsKept"] == plan["blobsKept"])
        try bench.shell("[ ! -e hit ] || cmp saved/here/* hit")
        let again = try bench.tool(exit: 0, "vault", "repair", "--save", "saved/here")
        #expect(again.stderr == "No pack is damaged; 'backup-tool vault check' tells whether anything else is.\n")

        try bench.tool(exit: 0, "vault", "backup")
        try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
        // What the library has no more, such as the lists of an older snapshot, is named until that is forgotten.
        let report = try bench.tool("vault", "check", "--read-data", "--json")
        let affected = try JSON(parsing: report.stdout)["affected"]?.array ?? []
        let hit = Set(affected.compactMap { $0["snapshot"]?.string })
        #expect(report.status == (hit.isEmpty ? 0 : 4) && hit.count <= 1 && (isGone ?? !hit.isEmpty) == !hit.isEmpty)
        if let lost = hit.first {
            let told = try bench.tool("vault", "check", "--read-data").stderr
            #expect(
                told.contains("'backup-tool vault forget \(lost.prefix(8))") && !told.contains("vault repair"),
                "\(told)")
        }
        if !hit.isEmpty { #expect(try bench.tool(["vault", "forget", "--prune"] + hit).status == 0) }
        try bench.tool(exit: 0, "vault", "check", "--read-data")
        try CommandsVaultBackupTests.judge(bench)
    }

    @Test func twoSnapshotsThatHaveChangedPlaces_areToldApartAndPutBack() throws {
        let bench = try CommandsVaultIndexTests.bench()
        let before = try Self.content(bench)
        try bench.shell("chmod u+w v/snapshots/*; set -- v/snapshots/*; mv $1 t; mv $2 $1; mv t $2")
        let told = try bench.tool(exit: 4, "vault", "check").stderr
        for name in try Directory.names(in: bench.path("v/snapshots")) {
            #expect(told.contains("is the snapshot \(name.prefix(8)) under another name"), "\(told)")
            #expect(told.contains("move the file that is snapshots/\(name) out of the vault"), "\(told)")
            let refused = try bench.tool(exit: 1, "vault", "forget", String(name.prefix(8)))
            #expect(refused.stderr.contains("under another name"), "\(refused.stderr)")
        }
        try bench.shell("set -- v/snapshots/*; mv $1 out; mv $2 $1")
        let half = try bench.tool("vault", "check").stderr
        #expect(!half.contains("under another name"), "\(half)")
        try bench.shell("mv out v/snapshots/$(sha256sum out | cut -d' ' -f1)")
        #expect(try Self.content(bench) == before)
        try bench.tool(exit: 0, "vault", "check")
    }

    /// Where a disk is not there, packs may be whole that cannot be seen; what lies under another's name may be, too; and a folder
    /// that leads into the vault saves nothing.
    @Test func whatMayBeWhole_isNotLetGoOf() throws {
        let bench = try Self.damagedBench("flip $at")
        let before = try Self.content(bench)
        func refused(_ words: String, _ reason: String) throws {
            let message = try bench.shell("$T vault repair --save \(words) 2>&1 || true")
            #expect(message.contains(reason), "\(words): \(message)")
        }
        try bench.shell("mkdir sv; ln -s $PWD/$(ls -S v/data/*/* | head -1) sv/")
        try refused("nothere/../v/new", "lies in the vault")
        try refused("nothere/../$(dirname $(ls -S v/data/*/* | head -1))", "lies in the vault")
        try refused("sv", "is no copy of the damaged file")
        try refused("v/new --dry-run", "lies in the vault")
        for place in ["v", "v/data", "v/data/0", "v/snapshots", "v/keys"] {
            try bench.shell(
                "p=$(ls -S v/data/*/* | tail -1); chmod u+w $(dirname $p); echo $p > place; mkdir -p \(place); mv $p \(place)"
            )
            try refused("saved", "a pack lies in the wrong place")
            try bench.shell("p=$(cat place); mv \(place)/$(basename $p) $p; rm -rf v/data/0")
        }
        try bench.shell("p=$(ls -S v/data/*/* | tail -1); cp $p v/snapshots/")
        for words in ["vault forget $(basename $p)", "vault check", "vault unlock --remove-all"] {
            if words.contains("unlock") { try bench.shell("cp $(ls -S v/data/*/* | tail -1) v/locks") }
            let advice = try bench.shell("p=$(ls -S v/data/*/* | tail -1); $T \(words) 2>&1 || true")
            #expect(advice.contains("a pack lies in the wrong place"), "\(words): \(advice)")
        }
        try bench.shell("p=$(basename $(ls -S v/data/*/* | tail -1)); rm -f v/snapshots/$p v/locks/$p")
        try bench.shell("mv v/data away")
        try refused("saved", "the folder of a pack is not there")
        try bench.shell("ln -s nowhere v/data")
        try refused("saved", "the folder of a pack is not there")
        try bench.shell("rm v/data; mv away v/data; rm -rf v/new")
        #expect(try Self.content(bench) == before)
        try bench.tool(exit: 3, "vault", "repair", "--save", "saved")
    }

    /// What cannot be read may be whole, and what was saved before may be better: then nothing is changed.
    @Test func inDoubtARepairChangesNothing() throws {
        let bench = try Self.damagedBench("flip $at")
        let before = try Self.content(bench)
        let read = "strace -f -qq -o trace -e trace=pread64 -e inject=pread64:error=EIO:when=2+"
        let message = try bench.shell(
            "\(read) -P $(ls -S $PWD/v/data/*/* | tail -1) $T vault repair --save saved 2>&1 || echo $?")
        #expect(message.contains("nothing is repaired while a file cannot be read: ") && message.hasSuffix("\n1\n"))
        for place in ["v", "v/data/new", "v/index", "link/locks"] {
            try bench.shell("ln -sfn v link")
            let refused = try bench.tool("vault", "repair", "--save", place)
            #expect(refused.status != 0 && refused.stderr.contains("lies in the vault"), "\(place): \(refused.stderr)")
        }
        try bench.shell("mkdir saved; cp pack saved/$(sha256sum < pack | cut -c1-64)")
        let taken = try bench.tool("vault", "repair", "--save", "saved")
        #expect(taken.status != 0 && taken.stderr.contains("holds something else than the damaged file"))
        #expect(try Self.content(bench) == before)
        #expect(try !bench.exists("v/data/new"))
    }

    /// SIGKILL at system calls of `repair`: the next repair and the next backup make the vault whole all the same.
    @Test func killedAnywhere_aRepairLosesNothing() throws {
        let bench = try Self.damagedBench("flip $at")
        let calls = "write,fsync,renameat2,rename,unlink"
        try bench.killed(at: calls, times: 2, ["vault", "repair", "--save", "saved"]) { place in
            // Where the pack is gone from the vault, it has been saved.
            try bench.shell("cmp -s v/data/*/$(sha256sum < pack | cut -c1-64) hit || cmp saved/* hit")
            #expect([0, 3].contains(try bench.tool("vault", "repair", "--save", "saved").status), "\(place)")
            try bench.tool(exit: 0, "vault", "backup")
            try bench.tool(exit: 0, "vault", "check", "--read-data")
            try CommandsVaultBackupTests.judge(bench)
            try bench.shell("rm -r saved")
        }
    }
}
