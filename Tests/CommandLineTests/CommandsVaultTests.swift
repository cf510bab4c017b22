import BackupKit
import TestSupport
import Testing

/// The tool and stock restic take turns with the same vaults.
struct CommandsVaultTests {
    /// A folder with a password, where the tool's vault is `v` and restic's is `r`.
    static func bench() throws -> Workbench {
        let bench = try Workbench([
            "BACKUP_TOOL_VAULT": "v", "BACKUP_TOOL_PASSWORD_FILE": "password", "RESTIC_CACHE_DIR": "cache",
            "RESTIC_PASSWORD": "secret",
        ])
        try bench.write("password", "secret\n")
        try bench.shell("chmod 600 password")
        return bench
    }

    @Test func resticOpensWhatWeMade() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "init")
        try bench.shell(
            """
            restic -r v snapshots -q
            restic -r v check --read-data
            echo hello > file
            restic -r v backup -q file
            restic -r v check --read-data -q
            """)
        #expect(try bench.json(exit: 0, "vault", "snapshots").array?.count == 1)
        #expect(try bench.tool("vault", "key", "list").stdoutLines.count == 2)
    }

    @Test(arguments: ["1", "2"])
    func weOpenWhatResticMade(_ version: String) throws {
        let bench = try Self.bench()
        try bench.shell(
            """
            restic -r v init -q --repository-version \(version)
            echo hello > file
            restic -r v backup -q --tag a,b --host h file --time '2026-01-02 03:04:05'
            restic -r v backup -q --host h file --time '2026-02-02 03:04:05'
            """)
        let ours = try bench.json(exit: 0, "vault", "snapshots")
        #expect(try ours == JSON(parsing: bench.shell("restic -r v snapshots --json")))
        let ids = (ours.array ?? []).compactMap { $0["id"]?.string }
        for (word, place) in [("latest", 1), ("2026-01-31", 0), ("2026-02-02", 1), (String(ids[0].prefix(9)), 0)] {
            let found = try bench.json(exit: 0, "vault", "snapshots", word)
            #expect(found.array?.first?["id"]?.string == ids[place], "\(word)")
        }
        try bench.tool(exit: 1, "vault", "snapshots", "2025-12-31")
        try bench.tool(exit: 1, "vault", "snapshots", "ffffffffffff")
    }

    @Test func passwordsComeFromManyPlacesButNeverFromAnArgument() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "init")
        try bench.write("wrong", "no\n")
        try bench.shell("chmod 600 wrong")
        let refused = try bench.tool(exit: 12, "vault", "snapshots", "--password-file", "wrong").stderr
        #expect(refused.contains("\n  see that it is the password of this vault"))
        // As editors of Windows write it, and restic reads it.
        for encoding in ["UTF-16LE", "UTF-16BE", "UTF-8"] {
            try bench.shell("printf '\\ufeffsecret\\r\\n' | iconv -t \(encoding) > windows; chmod 600 windows")
            try bench.tool(exit: 0, "vault", "snapshots", "--password-file", "windows")
            try bench.shell("restic -q -r v --password-file windows key list")
        }
        // An empty password opens nothing and makes nothing.
        try bench.shell(": > empty; chmod 600 empty")
        for (words, code) in [(["snapshots"], Int32(12)), (["init", "--vault", "w"], 64)] {
            let empty = try bench.tool(["vault"] + words + ["--password-file", "empty"])
            #expect(empty.status == code && empty.stderr.contains("the password is empty\n  "), "\(empty.stderr)")
        }
        #expect(try !bench.exists("w"))
        try bench.tool(exit: 0, "vault", "snapshots", "--password-command", "echo '  secret'; echo")
        try bench.tool(exit: 64, "vault", "snapshots", "--password-command", "echo", "--password-file", "password")
        try bench.tool(exit: 64, "vault", "snapshots", "--password", "secret")
        for (name, value, code) in [
            ("BACKUP_TOOL_PASSWORD", "secret", Int32(0)), ("RESTIC_PASSWORD_COMMAND", "echo secret", 0),
            ("RESTIC_PASSWORD_FILE", "password", 0), ("BACKUP_TOOL_PASSWORD", "Secret", 12), ("X", "", 0),
            ("BACKUP_TOOL_PASSWORD_COMMAND", "exit 1", 1), ("BACKUP_TOOL_PASSWORD_FILE", "missing", 1),
        ] {
            let result = try bench.tool(
                "vault", "snapshots", environment: ["BACKUP_TOOL_PASSWORD_FILE": ""].merging([name: value]) { $1 })
            #expect(result.status == code, "\(name)=\(value): \(result.stderr)")
        }
        try bench.tool(
            exit: 12, "vault", "snapshots", environment: ["BACKUP_TOOL_PASSWORD_FILE": "", "RESTIC_PASSWORD": ""])
        try bench.shell("chmod 644 wrong")
        for words in [["vault", "snapshots"], ["verify", "vault:v"], ["list", "vault:v"]] {
            let told = try bench.tool(words + ["--password-file", "wrong"])
            #expect(told.status == 1 && told.stderr.contains("chmod 600"), "\(words): \(told.stderr)")
        }
        try bench.tool(exit: 0, "vault", "snapshots", environment: ["BACKUP_TOOL_VAULT": "", "RESTIC_REPOSITORY": "v"])
        try bench.tool(exit: 64, "vault", "snapshots", environment: ["BACKUP_TOOL_VAULT": ""])
        try bench.write("place", "v\n")
        try bench.tool(
            exit: 0, "vault", "snapshots", environment: ["BACKUP_TOOL_VAULT": "", "RESTIC_REPOSITORY_FILE": "place"])
        try bench.tool(exit: 0, "vault", "snapshots", "--vault", "vault:v")
        for wrong in ["vault:", "vault:v@latest"] {
            try bench.tool(exit: 64, "vault", "init", "--vault", wrong)
            try bench.tool(exit: 64, "vault", "snapshots", "--vault", wrong)
        }
        try bench.tool(exit: 64, "vault", "snapshots", "--vault", "s3:host/bucket")
        try bench.tool(exit: 10, "vault", "snapshots", "--vault", "none")
    }

    @Test func aVaultIsNotMadeTwice() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "init")
        try bench.tool(exit: 1, "vault", "init")
        try bench.shell("rm -f v/config")
        try bench.tool(exit: 10, "vault", "snapshots")
        try bench.tool(exit: 1, "vault", "init")
        try bench.tool(exit: 0, "vault", "init", "--resume")
        try bench.shell("restic -r v check -q")
    }

    @Test func keysOfBothProgramsOpenTheSameVault() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "init")
        try bench.write("two", "zwei")
        try bench.write("three", "drei")
        try bench.shell("chmod 600 two three")
        try bench.tool(exit: 0, "vault", "key", "add", "--new-password-file", "two", "--user", "ann")
        try bench.shell(
            "restic -r v key list --password-file two | grep ann; restic -r v key add --new-password-file three")
        try bench.tool(exit: 0, "vault", "snapshots", "--password-file", "three")
        #expect(try bench.json(exit: 0, "vault", "key", "list").array?.count == 3)
        try bench.write("four", "vier")
        try bench.shell("chmod 600 four")
        try bench.tool(
            exit: 0, "vault", "key", "passwd", "--password-file", "three", "--new-password-file", "four")
        try bench.tool(exit: 12, "vault", "snapshots", "--password-file", "three")
        let keys = try bench.json(exit: 0, "vault", "key", "list").array ?? []
        let current = try #require(keys.first { $0["current"]?.bool == true }?["id"]?.string)
        try bench.tool(exit: 1, "vault", "key", "remove", current)
        let ann = try #require(keys.first { $0["userName"]?.string == "ann" }?["id"]?.string)
        try bench.tool(exit: 0, "vault", "key", "remove", ann)
        try bench.shell("restic -r v key list --password-file four; ! restic -r v key list --password-file two")
    }

    @Test func locksOfBothProgramsKeepEachOtherOut() throws {
        let bench = try Self.bench()
        try bench.tool(exit: 0, "vault", "init")
        // restic waits for its standard input while it holds its lock.
        try bench.shell(
            """
            (until [ -e done ]; do sleep 0.1; done; echo text) | restic -r v backup -q --stdin &
            for i in $(seq 100); do [ -n "$(ls v/locks)" ] && break; sleep 0.05; done
            sleep 0.2
            "$T" vault snapshots -q
            code=0; "$T" vault key remove 00 2>message || code=$?
            [ $code = 11 ]; grep -q 'in use' message
            code=0; "$T" vault unlock 2>message || code=$?
            [ $code = 3 ]; grep 'stays: process [0-9]* of .* since ' message; ls v/locks | grep .
            grep "'backup-tool vault unlock --remove-all'" message
            code=0; "$T" vault key remove 00 --lock-wait 1 2>message || code=$?
            [ $code = 11 ]; grep -q 'try again later' message
            (sleep 0.5; touch done) &
            "$T" vault key remove 00 --lock-wait 60 2>message || code=$?
            [ $code = 1 ]
            wait
            [ -z "$(ls v/locks)" ]
            """)
    }

    @Test(arguments: ["1", "2"])
    func checkForgetPruneStatsAndCopyWorkOnWhatResticMade(_ version: String) throws {
        let bench = try Self.bench()
        try bench.shell(
            """
            restic -r v init -q --repository-version \(version)
            mkdir d
            for i in 1 2 3 4; do
                head -c 200000 /dev/urandom > d/$i
                restic -r v backup -q d --time "2026-01-0$i 03:04:05" --host h $([ $i = 1 ] && echo --tag a)
                rm d/$i
            done
            """)
        try bench.tool(exit: 0, "vault", "check", "--read-data-subset", "1/2")
        #expect(try bench.json(exit: 0, "vault", "check", "--read-data")["bytesRead"]?.integer ?? 0 > 800_000)
        try bench.tool(exit: 64, "vault", "check", "--read-data-subset", "9/2")
        #expect(try bench.json(exit: 0, "vault", "stats")["snapshots_count"]?.integer == 4)
        try bench.tool(exit: 64, "vault", "forget")
        for (options, count) in [("--keep-last 2", 2), ("--keep-last 1 --keep-tag a", 2)] {
            let ours = try JSON(parsing: bench.shell("\"$T\" vault forget --json --dry-run \(options) | tail -1"))
            let theirs = try JSON(parsing: bench.shell("restic -r v forget --dry-run --json \(options)"))
            let gone = (theirs.array?.first?["remove"]?.array ?? []).compactMap { $0["id"]?.string }
            #expect(Set((ours["removed"]?.array ?? []).compactMap(\.string)) == Set(gone) && gone.count == count)
        }
        try bench.tool(exit: 0, "vault", "forget", "--keep-last", "2", "--prune", "--max-unused", "0")
        try bench.tool(exit: 0, "vault", "prune")
        try bench.shell(
            """
            restic -r v check --read-data -q; restic -r v restore latest --target out -q; [ $(stat -c %s out/d/4) = 200000 ]
            [ $(restic -r v snapshots --json | jq length) = 2 ]
            [ $(du -sk v/data | cut -f1) -lt 1600 ]
            """)
        try bench.shell(
            "\"$T\" vault init -q --vault w; \"$T\" vault copy -q --vault w --from v --from-password-file password")
        try bench.shell("restic -r w check --read-data -q; [ $(restic -r w snapshots --json | jq length) = 2 ]")
        try bench.tool(exit: 0, "vault", "forget", "latest")
        try bench.shell(
            "f=$(find v/data -type f | head -1); chmod u+w $f; printf xxxx | dd of=$f bs=1 seek=9 conv=notrunc status=none"
        )
        #expect(try bench.json(exit: 4, "vault", "check", "--read-data")["ok"]?.bool == false)
        try bench.tool(exit: 0, "vault", "check", "--vault", "w", "--read-data")
    }

    @Test func inAVaultThatResticUsesToo_wordsAndDatesMeanLibraries() throws {
        let bench = try Self.bench()
        try bench.importSamples()
        try bench.tool(exit: 0, "vault", "init")
        try bench.tool(exit: 0, "vault", "backup", "--time", "2026-01-05T00:00:00Z")
        let id = try bench.shell("restic -r v snapshots --json | jq -r '.[0].id'").split(separator: "\n").first
        try bench.shell("mkdir d; echo x > d/x; restic -r v backup -q d")
        try bench.tool(exit: 0, "verify", "vault:v", "--level", "deep")
        try bench.tool(exit: 0, "diff", "vault:v@2026-11-01", "store.db")
        // A date would stand for a snapshot of another day.
        try bench.tool(exit: 1, "vault", "forget", "2026-06-01")
        let plan = try bench.json(exit: 0, "vault", "forget", "latest", "latest", "--dry-run")
        #expect(try plan["removed"]?.array == [.string(String(#require(id)))])
    }

    @Test func aFolderOfSnapshotsThatIsLostIsDamage_andAConfigurationToo() throws {
        let bench = try Self.bench()
        try bench.importSamples()
        try bench.tool(exit: 0, "vault", "init")
        try bench.tool(exit: 0, "vault", "backup")
        try bench.shell("cp -a v w; rm -r w/snapshots")
        for words in [["check"], ["prune"], ["snapshots"], ["backup"]] {
            let result = try bench.tool(["vault"] + words + ["--vault", "w"])
            #expect(result.status == 4 && result.stderr.contains("w/snapshots: the folder is missing"), "\(words)")
        }
        try bench.shell("mkdir w/snapshots")
        let empty = try bench.tool(exit: 3, "vault", "check", "--vault", "w")
        #expect(empty.stderr.contains("snapshots: there is none, and packs hold data"))
        try bench.shell("cp -a v x; rm x/config")
        let lost = try bench.tool(exit: 4, "vault", "check", "--vault", "x")
        #expect(lost.stderr.contains("x/config") && lost.stderr.contains("any copy of this vault"))
        // A folder in the place of the key that was in use, beside one with another password.
        try bench.shell(
            """
            cp -a v y; echo other > other; chmod 600 other
            "$T" vault key add --vault y --new-password-file other -q
            name=$(ls v/keys); rm -f y/keys/$name; mkdir y/keys/$name
            """)
        let misplaced = try bench.tool(exit: 12, "vault", "check", "--vault", "y").stderr
        #expect(try misplaced.contains("keys/\(bench.files("v/keys")[0]) cannot be used"))
    }

    /// Nobody can say what a snapshot needs that cannot be read; by its name it can go.
    @Test func aSnapshotThatCannotBeReadCanBeRemovedByName() throws {
        let bench = try Self.bench()
        try bench.importSamples()
        try bench.tool(exit: 0, "vault", "init")
        for _ in 0..<2 { try bench.tool(exit: 0, "vault", "backup", "--force") }
        try bench.shell("f=$(ls -d v/snapshots/* | head -1); chmod u+w $f; truncate -s -3 $f; basename $f > name")
        let name = try bench.text("name").prefix(8)
        try bench.tool(exit: 4, "vault", "prune")
        try bench.tool(exit: 0, "vault", "forget", String(name), "--prune")
        try bench.shell("restic -r v check --read-data -q; [ $(restic -r v snapshots --json | jq length) = 1 ]")
    }

    /// The day of a date is that of the people here, and may have 25 hours.
    @Test func aDateIncludesItsWholeDayOnTheWallClock() throws {
        let bench = try Self.bench()
        try bench.importSamples()
        try bench.tool(exit: 0, "vault", "init")
        for time in ["2026-10-24T12:00:00Z", "2026-10-25T22:30:00Z", "2026-10-25T23:30:00Z"] {
            try bench.tool(exit: 0, "vault", "backup", "--time", time)
        }
        func time(_ date: String, in zone: String) throws -> String {
            let table = try bench.tool(exit: 0, "vault", "snapshots", date, environment: ["TZ": zone]).stdout
            return String(table.split(separator: " ").first { $0.hasPrefix("2026-") } ?? "")
        }
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3"
        #expect(try time("2026-10-25", in: berlin) == "2026-10-25T23:30:00")
        #expect(try time("2026-10-26", in: berlin) == "2026-10-26T00:30:00")
        #expect(try time("2026-10-25", in: "UTC") == "2026-10-25T23:30:00")
        try bench.tool(exit: 1, "vault", "snapshots", "2026-10-23")
    }
}
