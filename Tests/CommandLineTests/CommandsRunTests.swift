import Glibc
import TestSupport
import Testing

@testable import BackupKit

/// The nightly run as cron starts it.
@Suite struct CommandsRunTests {
    /// A library, a vault and a configuration; `c/nightly.toml` says where they are.
    private func bench(_ more: String = "") throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; \"$T\" -q import lib.bib")
        try bench.makeCheapVault()
        try bench.write(
            "c/nightly.toml",
            "store = '../store.db'\nvault = '../v'\npassword-file = '../pw'\nkeep.last = 3\n\(more)")
        return bench
    }

    private func run(_ bench: Workbench, exit code: Int32, _ words: String...) throws -> ProcessResult {
        try bench.tool(words: ["run", "--config", "c/nightly.toml"] + words, exit: code)
    }

    /// An empty store lies in the place of the library.
    private func lose(_ bench: Workbench) throws {
        try bench.shell("mkdir aside; mv store.db* aside")
        try bench.tool(exit: 0, "store", "init", "--store", "store.db")
    }

    private func judge(_ bench: Workbench) throws {
        try bench.shell(
            "RESTIC_PASSWORD=secret restic --no-cache -q -r v check --read-data; "
                + "RESTIC_PASSWORD=secret $T -q vault check --read-data --vault v")
        #expect(try bench.files("v/locks").isEmpty)
    }

    @Test func theConfigurationsPasswordComesBeforeThatOfRestic_forItsOwnVault() throws {
        let bench = try bench()
        let restic = ["RESTIC_PASSWORD": "of another vault"]
        try bench.tool(exit: 0, "run", "--config", "c/nightly.toml", environment: restic)
        try bench.tool(exit: 0, "vault", "snapshots", "--config", "c/nightly.toml", environment: restic)
        try bench.tool(exit: 0, "verify", "vault:v", "--config", "c/nightly.toml", environment: restic)
        try bench.shell("mkdir w; RESTIC_PASSWORD='of another vault' restic -q -r w init")
        try bench.tool(
            exit: 0, "vault", "snapshots", "--vault", "w", "--config", "c/nightly.toml", environment: restic)
    }

    @Test func anErrorOfARunHasItsAdviceOnALineOfItsOwn() throws {
        let bench = try bench()
        try bench.shell("rm store.db")
        #expect(try run(bench, exit: 10).stderr.contains("there is no store here\n  look whether"))
    }

    /// The log of drills is asked at the beginning, for what may be removed, and again for what is due.
    @Test func aStepThatFailsTwice_isNamedOnce_andSoIsTheReasonOfADrill() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        try bench.shell("mv c/drills.jsonl keep; mkdir c/drills.jsonl; rm c/run-*.json")
        let report = try JSON(parsing: run(bench, exit: 1, "--json").stdoutLines.last ?? "")
        let steps = (report["notDone"]?.array ?? []).compactMap(\.string)
        #expect(steps.contains("drill") && Set(steps).count == steps.count, "\(steps)")
        let again = try run(bench, exit: 1).stderr
        #expect(again.count(of: "the drill") == 1, "\(again)")
        try bench.shell("rmdir c/drills.jsonl; chmod -R u+w v; rm v/data/*/*")
        let failed = try run(bench, exit: 4).stderr
        #expect(failed.count(of: "failed:") == 1 && failed.contains("drill: "), "\(failed)")
    }

    @Test func aPasswordCommandThatHangsIsEndedWithTheRun() throws {
        let bench = try bench()
        try bench.write("h.toml", "store = 'store.db'\nvault = 'v'\npassword-command = 'sleep 3217; true'\n")
        try bench.shell(
            """
            "$T" -q run --config h.toml & p=$!
            until pgrep -f 'sleep 3217' >/dev/null; do sleep 0.05; done
            kill -TERM $p; code=0; wait $p || code=$?
            [ $code = 143 ]; sleep 0.2; ! pgrep -x -f 'sleep 3217'
            """)
    }

    /// As all that the configuration names, what a command names is found where the configuration is.
    @Test func aPasswordCommandRunsWhereTheConfigurationLies() throws {
        let bench = try bench()
        try bench.shell("mkdir \"it's\"; cp pw \"it's/secret\"")
        try bench.write("it's/n.toml", "store = '../store.db'\nvault = '../v'\npassword-command = 'cat ./secret'\n")
        #expect(try bench.shell("cd /; env -i $T -q vault check --config \"\(bench.folder)/it's/n.toml\" 2>&1") == "")
    }

    @Test func aRunNeedsNoEnvironment_andSaysNothingWhenAllIsWell() throws {
        let bench = try bench("metrics.file = '../m.prom'\n")
        for _ in 0..<4 {
            #expect(try bench.shell("cd /; env -i \"$T\" -q run --config '\(bench.folder)/c/nightly.toml' 2>&1") == "")
        }
        #expect(try bench.files("c").sorted() == ["drills.jsonl", "nightly.toml", "run-default.json"])
        #expect(try bench.text("m.prom").contains("backup_tool_last_run_exit_code{profile=\"default\"} 0\n"))
        let kept = try bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --json")
        let count = try JSON(parsing: kept).array?.count ?? 0
        #expect(3...4 ~= count)
        try bench.tool(exit: 0, "schedule", "status", "--config", "c/nightly.toml")
        try judge(bench)
    }

    @Test func aStoreThatIsNotThereIsNamed_alsoByARehearsal() throws {
        let bench = try bench()
        try bench.shell("rm -r store.db*")
        for words in [["--dry-run"], ["-q"]] {
            let message = try run(bench, exit: 10, words.joined()).stderr
            #expect(message.contains("look whether its disk is there, and whether 'store' names"), "\(message)")
        }
    }

    @Test func aLossEndsWith3_untilItIsAcknowledged() throws {
        let bench = try bench("tripwire.at-least = 1\n")
        _ = try run(bench, exit: 0)
        let before = try bench.text("c/run-default.json")
        let plan = try run(bench, exit: 0, "--dry-run")
        let steps = try run(bench, exit: 0, "--dry-run", "--json").stdout.split(separator: "\n").map {
            try JSON(parsing: String($0))["message_type"]?.string
        }
        #expect(steps.dropLast().allSatisfy { $0 == "run-step" } && steps.count > 2 && steps.last == "run")
        #expect(plan.stdout.hasPrefix("snapshot: would be taken\n") && plan.stdout.contains("stays: last snapshot"))
        #expect(try bench.text("c/run-default.json") == before)
        try lose(bench)
        let lost = try run(bench, exit: 3)
        #expect(lost.stderr.contains("publications: fell from 2 to 0"))
        // The last good one is of the store that lay there, and in the vault.
        #expect(!lost.stderr.contains("gone from the vault"))
        let name = try #require(lost.stderr.firstMatch(of: #/its new id is ([0-9a-f]{8})/#)?.1)
        try bench.tool(exit: 0, "vault", "snapshots", String(name), "--config", "c/nightly.toml")
        #expect(
            try bench.tool(exit: 1, "schedule", "status", "--config", "c/nightly.toml").stdout.contains(
                "nothing is removed"))
        _ = try run(bench, exit: 3, "-q")
        let suspects = try bench.shell(
            "RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --json --tag suspect")
        #expect(try JSON(parsing: suspects).array?.count == 2)
        let good = try #require(JSON(parsing: before)["good"]?["snapshot"]?.string)
        #expect(try run(bench, exit: 64, "--ack", good).stderr.contains("was taken before the loss"))
        _ = try run(bench, exit: 0, "--ack", "latest")
        _ = try run(bench, exit: 0)
        try judge(bench)
    }

    /// The first run of a library is no loss of another one, and none hides a loss of the other.
    @Test func runsByHandOfTwoStoresOrIntoTwoVaults_areMeasuredByThemselves() throws {
        let bench = try bench()
        try bench.shell("mv c away")
        try bench.write("many.bib", (1...40).map { "@misc{k\($0), title={Paper \($0)}}\n" }.joined())
        try bench.tool(exit: 0, "-q", "import", "many.bib", "--store", "other.db", "--create")
        try bench.shell("cp -r v w")
        let home = ["XDG_STATE_HOME": bench.path("state")]
        func run(_ store: String, _ vault: String, exit code: Int32) throws -> String {
            try bench.tool(
                exit: code, "run", "--store", store, "--vault", vault, "--password-file", "pw", environment: home
            ).stderr
        }
        for (store, vault) in [("other.db", "v"), ("store.db", "v"), ("other.db", "w"), ("other.db", "v")] {
            _ = try run(store, vault, exit: 0)
        }
        try bench.shell("rm -r other.db*; cp store.db other.db")
        let told = try run("other.db", "v", exit: 3)
        #expect(told.contains("publications: fell from 40 to 2") && told.contains("--store \(bench.path("other.db"))"))
        _ = try run("store.db", "v", exit: 0)
        func status(_ store: String, exit code: Int32) throws -> String {
            try bench.tool(
                exit: code, "schedule", "status", "--store", store, "--vault", "v", environment: home
            ).stdout
        }
        #expect(try status("other.db", exit: 1).contains("fell from 40 to 2"))
        _ = try status("store.db", exit: 0)
        let unknown = try status("third.db", exit: 2)
        #expect(unknown.contains("never ran") && unknown.contains("--store \(bench.path("other.db"))"), "\(unknown)")
    }

    /// Every command of the alarm works from any folder, whatever the folders are called.
    @Test func theAlarmOfALoss_namesCommandsThatBringTheLibraryBack() throws {
        let bench = try bench("tripwire.at-least = 1\n")
        _ = try run(bench, exit: 0)
        try lose(bench)
        _ = try run(bench, exit: 3, "-q")
        // Whoever moves all of it away still has commands of their own folder.
        let place = "it's a $HOME"
        let noStore = ["BACKUP_TOOL_STORE": ""]
        try bench.shell("p=\"it's a \\$HOME\"; mkdir \"$p\"; mv c v pw store.db* lib.bib \"$p\"")
        let told = try bench.tool(
            exit: 3, "run", "-q", "--config", "\(place)/c/nightly.toml", environment: noStore
        ).stderr
        func typed(_ name: Substring, in text: String) throws -> String {
            let start = try #require(text.firstRange(of: "'backup-tool \(name) ")).upperBound
            let end = try #require(TypedCommand.words(of: text[start...])).end
            return "\(name) \(text[start..<end])"
        }
        try bench.shell("cd /; \"$T\" \(typed("diff", in: told))")
        let restore = try typed("restore", in: told)
        try bench.shell("cd /; \"$T\" \(restore)")
        let restored = try bench.tool(exit: 0, "store", "info", "--store", "\(place)/store.db").stdout
        #expect(restored.contains("publications"), "\(restored)")
        let status = try bench.tool(
            exit: 1, "schedule", "status", "--config", "\(place)/c/nightly.toml", environment: noStore
        ).stdout
        #expect(try typed("restore", in: status) == restore, "\(status)")
        let acknowledge = try typed("run", in: status)
        try bench.shell("cd /; unset BACKUP_TOOL_STORE; \"$T\" \(acknowledge)")
        let after = try bench.tool(
            exit: 1, "schedule", "status", "--config", "\(place)/c/nightly.toml", environment: noStore
        ).stdout
        #expect(!after.contains("--ack") && after.contains("accepted by now"), "\(after)")
    }

    /// The latest snapshot may be the one of the empty store.
    @Test func whoeverReadsALatestSnapshotThatIsDoubtful_isTold_andWhichOneIsTheLastSoundOne() throws {
        let bench = try bench("tripwire.at-least = 1\n")
        _ = try run(bench, exit: 0)
        let state = try JSON(parsing: bench.text("c/run-default.json"))
        let good = try #require(state["good"]?["snapshot"]?.string?.prefix(8))
        let config = ["--config", "c/nightly.toml"]
        for words in [["verify", "vault:v"], ["show", "vault:v@latest"]] {
            _ = try bench.tool(words: words + config, exit: 0)
        }
        try lose(bench)
        _ = try run(bench, exit: 3, "-q")
        for words in [
            ["restore", "vault:v", "--store", "store.db"], ["show", "vault:v@latest"], ["verify", "vault:v"],
            ["diff", "vault:v", "aside/store.db"], ["list", "vault:v"], ["restore", "vault:v", "--to", "out"],
        ] {
            let told = try bench.tool(words: words + config, exit: 3).stderr
            #expect(told.contains("tagged as suspect") && told.contains("vault:v@\(good)"), "\(words): \(told)")
        }
        // Who names a snapshot means it.
        _ = try bench.tool(words: ["verify", "vault:v@\(good)"] + config, exit: 0)
        _ = try bench.tool(words: ["restore", "vault:v@ffffffff"] + config, exit: 1)
    }

    @Test func aDryRunEndsAsTheRunWould_whereNothingCanBeWritten() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0, "--dry-run")
        try bench.shell("mv v/snapshots aside")
        _ = try run(bench, exit: 10, "--dry-run")
        try bench.shell("mv aside v/snapshots")
        let settings = try bench.text("c/nightly.toml")
        for line in ["state = '../pw'", "metrics.file = '../pw'"] {
            try bench.write("c/nightly.toml", settings + line)
            _ = try run(bench, exit: 1)
            #expect(try run(bench, exit: 1, "--dry-run").stderr.contains("pw"))
        }
        for target in ["nodir/x.zip", "nodir/x"] {
            let real = try bench.tool(exit: 10, "export", "-o", target).stderr
            #expect(try bench.tool(exit: 10, "export", "-o", target, "--dry-run").stderr == real)
        }
    }

    @Test(arguments: [1, 2])
    func aDryRunNamesTheSnapshotsThatTheRunRemoves(kept: Int) throws {
        let bench = try bench("drill.every = 'never'\n")
        try bench.shell("sed -i 's/^keep.last = 3/keep.last = \(kept)/' c/nightly.toml")
        for round in 0..<4 {
            let before = Set(try bench.files("v/snapshots"))
            let plan = try run(bench, exit: 0, "--dry-run").stdout
            let named = plan.matches(of: /forget: ([0-9a-f]+) would be removed/).map { String($0.1) }
            _ = try run(bench, exit: 0)
            let removed = before.subtracting(try bench.files("v/snapshots")).map { String($0.prefix(8)) }
            #expect(Set(named) == Set(removed), "round \(round): \(plan)")
            #expect(removed.isEmpty == (round < kept), "round \(round): \(removed)")
        }
    }

    @Test func theStatusAndItsJSON_nameTheConfigurationInEveryCommand() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        for pack in try bench.files("v/data").prefix(1) { try bench.shell("rm -f v/data/\(pack)") }
        _ = try run(bench, exit: 4)
        for words in [[], ["--json"]] {
            let status = try bench.tool(
                words: ["schedule", "status", "--config", "c/nightly.toml"] + words, exit: 2
            ).stdout
            let commands = status.matches(of: /'backup-tool ([^']*)'/).map(\.1)
            #expect(!commands.isEmpty && commands.allSatisfy { $0.contains("--config") }, "\(status)")
        }
    }

    @Test func aSnapshotThatCannotBeRead_isNamedOnce_withWhatToDo() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        let id = try #require(try bench.files("v/snapshots").first)
        try bench.shell("chmod u+w v/snapshots/\(id); echo rubbish > v/snapshots/\(id)")
        let told = try run(bench, exit: 4).stderr
        #expect(told.split(separator: "\n").count { $0.contains("snapshots/\(id)") } == 1, "\(told)")
        #expect(told.contains("'backup-tool vault forget \(id.prefix(8)) --config \(bench.folder)/c/nightly.toml'"))
        #expect(
            told.contains(
                "error: a backup was made, but not all was done: the tripwire, the forget and the prune failed\n"),
            "\(told)")
        // Where the report has no place for it, it stands beside it.
        let listed = try bench.tool(exit: 4, "vault", "snapshots", "--json", "--config", "c/nightly.toml")
        #expect(try JSON(parsing: listed.stdout).array?.count == 1)
        #expect(try JSON(parsing: listed.stderr)["path"]?.string == "snapshots/\(id)")
    }

    @Test func aPasswordFileThatIsOfNoUse_isAMistakeOfTheConfiguration() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "config", "check", "--config", "c/nightly.toml")
        try bench.shell("chmod 644 pw")
        let open = try bench.tool(exit: 4, "config", "check", "--config", "c/nightly.toml").stderr
        #expect(open.contains("nightly.toml:3: ") && open.contains("others can read") && open.contains("chmod 600"))
        try bench.write("e/n.toml", "password-file = 'pipe'\n[profile.a]\npassword-file = 'none'\n")
        // Whoever opened it would wait for ever, or take the password away.
        try bench.shell("mkfifo -m 600 e/pipe")
        try bench.write("e/empty", "")
        try bench.shell("chmod 600 e/empty")
        try bench.write("e/m.toml", "[profile.a]\nmetrics.file = 'none/m.prom'\n")
        #expect(
            try bench.tool(exit: 4, "config", "check", "--config", "e/m.toml").stderr.contains("m.toml:2: "))
        let ofProfile = try bench.tool(exit: 4, "config", "check", "--config", "e/n.toml").stderr
        #expect(ofProfile.contains("n.toml:3: ") && ofProfile.contains("there is no such password file"))
        try bench.write("e/n.toml", "password-file = 'empty'\n")
        #expect(try bench.tool(exit: 4, "config", "check", "--config", "e/n.toml").stderr.contains("is empty"))
        try bench.shell("rm pw")
        #expect(
            try bench.tool(exit: 4, "config", "check", "--config", "c/nightly.toml").stderr.contains(
                "no such password file"))
    }

    @Test func whatIsNotThereIsNamed_andNothingIsMadeInItsPlace() throws {
        let bench = try bench()
        try bench.shell("mv store.db away.db; mv store.db.assets away.db.assets")
        let missing = try run(bench, exit: 10)
        #expect(missing.stderr.contains("store.db"))
        #expect(try !bench.exists("store.db"))
        try bench.shell("mv v w")
        _ = try run(bench, exit: 10)
        #expect(try !bench.exists("v"))
        try bench.shell("mv w v; echo wrong > pw")
        _ = try run(bench, exit: 12)
        #expect(
            try bench.tool(exit: 2, "schedule", "status", "--config", "c/nightly.toml").stdout.contains(
                "never succeeded"))
    }

    @Test func aSecondRunAtTheSameTimeIsTurnedAway_orWaits() throws {
        let bench = try bench()
        let result = try bench.shell(
            """
            exec 9< v
            flock -n 9
            touch before; sleep 0.01
            "$T" run --config c/nightly.toml 2>&1 || echo "ended with $?"
            echo "written: $(find . -newer before -type f | tr '\\n' ' ')"
            sleep 2 &
            exec 9<&-
            "$T" -q run --config c/nightly.toml --lock-wait 30
            flock -o v sleep 3 &
            sleep 0.5
            said=$("$T" run --config c/nightly.toml 2>&1 || true)
            grep -c "at work here: process $! since" <<< "$said"
            wait
            """)
        #expect(result.contains("another run is at work") && result.contains("ended with 11"))
        // The other run writes down itself how it went.
        #expect(result.contains("written: \n"), "\(result)")
        #expect(result.hasSuffix("1\n"), "it is named: \(result)")
        #expect(try bench.json(exit: 0, "drill", "--history", "--config", "c/nightly.toml")["ok"]?.bool == true)
        try judge(bench)
    }

    @Test func aRunIsDoneOnceADay_whenCronAsksMoreOften() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0, "--if-older", "25h")
        #expect(try run(bench, exit: 0, "--if-older", "25h").stderr == "The last good run is younger than 25h.\n")
        _ = try run(bench, exit: 64, "--if-older", "soon")
        try judge(bench)
    }

    @Test func profilesShareAVault_andKeepTheirSnapshotsApart() throws {
        let bench = try bench("[profile.papers]\nkeep.last = 1\n[profile.diary]\nkeep.last = 2\n")
        for profile in ["papers", "diary", "papers", "diary", "papers", "diary"] {
            _ = try run(bench, exit: 0, "--profile", profile)
        }
        let listed = try JSON(parsing: bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --json"))
        let tags = listed.array?.compactMap { $0["tags"]?.array?.first?.string } ?? []
        // One more each is the one that a drill has proved.
        #expect(2...3 ~= tags.count { $0 == "diary" } && 1...2 ~= tags.count { $0 == "papers" })
        #expect(tags.count == listed.array?.count)
        try judge(bench)
    }

    @Test func drillsTryTheVault_byItsAddress_andAsTheConfigurationHasIt() throws {
        let bench = try bench("drill.every = 'never'\n")
        for _ in 0..<2 { _ = try run(bench, exit: 0) }
        try bench.shell(
            """
            mkdir other; echo x > other/x
            RESTIC_PASSWORD=secret restic --no-cache -q -r v backup other
            """)
        func drill(exit code: Int32, _ words: String...) throws -> String {
            try bench.tool(words: ["drill", "--password-file", "pw", "--log", "d.jsonl"] + words, exit: code).stderr
        }
        #expect(try drill(exit: 0, "vault:v").split(separator: "\n").count { $0.hasPrefix("OK: snapshot ") } == 2)
        let tag = ["--config", "c/nightly.toml"]
        let listed = try bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --tag nightly --json")
        let id = try #require(try JSON(parsing: listed).array?.first?["short_id"]?.string)
        #expect(try drill(exit: 0, "vault:v@\(id)").hasPrefix("OK: snapshot \(id): "))
        _ = try drill(exit: 0, "vault:v@latest")
        let all = try bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v snapshots --json")
        let foreign = try #require(try JSON(parsing: all).array?.last?["short_id"]?.string)
        _ = try drill(exit: 4, "vault:v@\(foreign)")
        _ = try bench.tool(words: ["drill"] + tag, exit: 0)
        let status = try bench.tool(words: ["schedule", "status"] + tag, exit: 0).stdout
        #expect(status.contains("last drill passed"))
        // The last line, changed, breaks no chain; the state remembers it.
        try bench.shell("sed -i '$s/\"files\":/\"files\":1/' c/drills.jsonl")
        let history = try bench.tool(words: ["drill", "--history"] + tag, exit: 4)
        #expect(history.stderr.contains("run-default.json"))
    }

    @Test func aPolicyByHandKeepsWhatADrillHasProved_andWhatIsSuspectCountsForNothing() throws {
        let bench = try bench("tripwire.at-least = 1\n")
        _ = try run(bench, exit: 0)
        let proved = try bench.json(exit: 0, "drill", "--history", "--config", "c/nightly.toml")["drills"]?.array?.first
        let id = try #require(proved?["snapshot"]?.string)
        _ = try run(bench, exit: 0)
        try lose(bench)
        _ = try run(bench, exit: 3)
        let words = ["--vault", "v", "--password-file", "pw", "--config", "c/nightly.toml", "--keep-last", "1"]
        let plan = try bench.tool(words: ["vault", "forget", "--dry-run"] + words, exit: 0)
        let kept = plan.stdoutLines.filter { $0.hasPrefix("keep ") }
        #expect(kept.count == 3 && plan.stdout.contains("keep    \(id.prefix(8))  the last that passed a drill"))
        // Nor does its name remove it.
        let byName = try bench.tool(words: ["vault", "forget", id] + words.dropLast(2), exit: 1)
        #expect(byName.stderr.contains("the last that passed a drill") && byName.stderr.contains("drill"))
    }

    @Test func aConfigurationDoesNotGoByWhatAnotherLeftBehind() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        try bench.shell("cp c/nightly.toml c/other.toml; cp c/run-default.json before")
        for words in [["run"], ["schedule", "status"], ["drill"]] {
            let result = try bench.tool(words + ["--config", "c/other.toml"])
            #expect(result.status == (words.last == "status" ? 3 : 1), "\(words)")
            let said = result.stderr + result.stdout
            #expect(said.contains(/belongs to the runs of [^ \n]+\/nightly\.toml[\n;]/), "\(words)")
        }
        #expect(try bench.text("c/run-default.json") == bench.text("before"))
        // One that was given another name goes on.
        try bench.shell("mv c/nightly.toml c/other2.toml; rm c/other.toml")
        try bench.tool(exit: 0, "run", "--config", "c/other2.toml")
    }

    @Test func aProfilesPasswordCountsBeforeTheFilesOwn_andTheEnvironmentIsNamed() throws {
        let bench = try bench("[profile.papers]\npassword-command = 'cat ../good'\n")
        try bench.shell("cp pw good; printf wrong > pw")
        try bench.shell("sed -i \"s|cat ../good|cat $PWD/good|\" c/nightly.toml")
        _ = try run(bench, exit: 12)
        _ = try run(bench, exit: 0, "--profile", "papers")
        try bench.shell("cp store.db second.db")
        let words = ["run", "--config", "c/nightly.toml", "--profile", "papers"]
        let named = try bench.tool(words, environment: ["BACKUP_TOOL_STORE": "second.db"])
        #expect(named.status == 3 && named.stderr.contains("$BACKUP_TOOL_STORE: names second.db"))
    }

    @Test func aLogOfDrillsThatWasCutIsMissedByADrill_too() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        try bench.shell("rm c/drills.jsonl")
        let drill = try bench.tool(exit: 4, "drill", "--config", "c/nightly.toml")
        #expect(drill.stderr.contains("has lost lines"))
    }

    /// As when another disk was mounted, or somebody followed the advice to make a new vault.
    @Test func aVaultThatHasLostItsSnapshotsIsSuspect_andNothingIsPruned_untilItIsAcknowledged() throws {
        let bench = try bench("prune.max-unused = 0\n")
        _ = try run(bench, exit: 0)
        try bench.shell("mkdir aside; mv v/snapshots/* aside/; \"$T\" -q import $SAMPLES/*.bib || true")
        let packs = try bench.files("v/data")
        for _ in 0..<2 {
            let lost = try run(bench, exit: 3)
            #expect(lost.stderr.contains("the last good snapshot is gone from the vault"), "\(lost.stderr)")
        }
        #expect(try Set(packs).isSubset(of: bench.files("v/data")))
        try bench.tool(exit: 1, "schedule", "status", "--config", "c/nightly.toml")
        try bench.shell("mv aside/* v/snapshots/")
        _ = try run(bench, exit: 0)
        try bench.shell("rm v/snapshots/*")
        _ = try run(bench, exit: 3)
        _ = try run(bench, exit: 0, "--ack", "latest")
        _ = try run(bench, exit: 0)
        try judge(bench)
    }

    /// What `vault forget` asks for, before it removes the last snapshot that passed a drill, is enough for the next run.
    @Test func whoForgetsTheLastThatPassedADrillAsAdvised_hasLostNothing() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        let old = try bench.shell("ls v/snapshots").prefix(8)
        let forget = ["vault", "forget", String(old), "--config", "c/nightly.toml"]
        let refused = try bench.tool(forget)
        #expect(refused.status != 0, "\(refused)")
        let advised = refused.stderr.matches(of: /'backup-tool ([^']+)'/).map { String($0.1) }
        #expect(advised.count == 2, "\(refused.stderr)")
        for command in advised { try bench.shell("\"$T\" \(command) --config c/nightly.toml") }
        #expect(try bench.tool(forget).status == 0)
        _ = try run(bench, exit: 0)
    }

    @Test func afterADrillThatFailed_allOfTheVaultIsRead() throws {
        let bench = try bench("check.parts = 256\ndrill.every = '1h'\n")
        _ = try run(bench, exit: 0)
        try bench.shell(
            "f=$(ls -S v/data/*/* | head -1); printf xxxx | dd of=$f bs=1 seek=100 conv=notrunc status=none")
        #expect(try run(bench, exit: 4).stderr.contains("failed"))
        let next = try run(bench, exit: 4, "-v")
        #expect((next.stdout + next.stderr).contains("all of it: damage"), "\(next.stdout)\(next.stderr)")
    }

    @Test func aFolderOfMetricsThatIsNotThereIsNoMissingVault() throws {
        let bench = try bench("metrics.file = '../none/m.prom'\n")
        #expect(try run(bench, exit: 1).stderr.contains("change 'metrics.file'"))
        try bench.tool(exit: 2, "schedule", "status", "--config", "c/nightly.toml")
    }

    @Test func vaultCommandsUseTheVaultOfTheConfiguration_unlessOneIsNamed() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        try bench.tool(exit: 0, "vault", "snapshots", "latest", "--config", "c/nightly.toml")
        try bench.tool(exit: 0, "vault", "check", "--config", "c/nightly.toml")
        // That password is not for any other vault.
        try bench.shell("cp -a v other")
        for (vault, code) in [("v", Int32(0)), ("other", 12)] {
            for words in [
                ["vault", "check", "--vault", vault], ["verify", "vault:\(vault)"], ["export", "-o", "vault:\(vault)"],
            ] {
                let named = try bench.tool(words: words + ["--config", "c/nightly.toml"], exit: code)
                #expect(named.stderr.contains("no password is given") == (code == 12), "\(words)")
            }
        }
        // restic may be used for something else; whoever names a configuration means its vault.
        let elsewhere = ["RESTIC_REPOSITORY": "other", "RESTIC_PASSWORD": "secret"]
        let listed = try bench.tool(
            exit: 0, "vault", "snapshots", "--json", "--config", "c/nightly.toml", environment: elsewhere)
        #expect(try JSON(parsing: listed.stdout).array?.count == 2)
        let usual = try bench.tool(exit: 0, "vault", "snapshots", "--json", environment: elsewhere)
        #expect(try JSON(parsing: usual.stdout).array?.count == 1)
    }

    @Test func onlyASnapshotOfItsOwnIsAcknowledged() throws {
        let bench = try bench("[profile.papers]\n")
        _ = try run(bench, exit: 0)
        _ = try run(bench, exit: 0, "--profile", "papers")
        let other = try JSON(parsing: bench.text("c/run-papers.json"))["good"]?["snapshot"]?.string
        #expect(try run(bench, exit: 64, "--ack", #require(other)).stderr.contains("none of the snapshots"))
        let before = try bench.text("c/run-default.json")
        #expect(try run(bench, exit: 0, "--ack", "latest").stderr.contains("nothing to acknowledge"))
        let known = try #require(try JSON(parsing: before)["good"]?["snapshot"]?.string)
        #expect(try run(bench, exit: 0, "--ack", known, "--dry-run").stderr.contains("would compare with"))
        #expect(try bench.text("c/run-default.json") == before)
        try lose(bench)
        _ = try run(bench, exit: 3)
        _ = try run(bench, exit: 0, "--ack", "latest")
        let own = try JSON(parsing: bench.text("c/run-default.json"))["good"]?["snapshot"]?.string
        #expect(own != other && own != nil)
    }

    @Test func metricsOfProfilesThatShareAFileStandBesideEachOther() throws {
        let bench = try bench("metrics.file = '../m.prom'\n[profile.a]\n[profile.b]\n")
        for profile in ["a", "b"] { _ = try run(bench, exit: 0, "--profile", profile) }
        try bench.shell("mv v w")
        _ = try run(bench, exit: 10, "--profile", "b")
        let text = try bench.text("m.prom")
        for profile in ["a", "b"] { #expect(text.contains("last_success_timestamp_seconds{profile=\"\(profile)\"} 1")) }
        #expect(text.contains("last_run_exit_code{profile=\"b\"} 10\n"))
    }

    /// Killed somewhere in the middle, a run leaves nothing that the next one does not put right.
    @Test func aRunThatIsKilledIsMadeUpForByTheNext() throws {
        let bench = try bench()
        _ = try run(bench, exit: 0)
        try bench.write("more.bib", "@misc{c, title={C}}\n")
        try bench.shell("\"$T\" -q import more.bib; mkdir keep; cp -a c v store.db* keep")
        func killed(_ options: [String]) throws {
            try bench.shell("rm -rf c v store.db*; cp -a keep/* .")
            try bench.shell(
                "strace -f -qq -o trace \(options.joined(separator: " ")) \"$T\" -q run --config c/nightly.toml || true"
            )
        }
        try killed(["-e", "trace=fsync,fdatasync,renameat2,rename,unlink,link,linkat"])
        for step in TracedStep.all(in: try bench.text("trace")).chosen(4) {
            countRounds()
            try killed(step.kill)
            _ = try run(bench, exit: 0)
            let drills = try bench.json(exit: 0, "drill", "--history", "--config", "c/nightly.toml")
            #expect(drills["ok"]?.bool == true, "\(step)")
            try judge(bench)
        }
    }
}

extension Workbench {
    @discardableResult func tool(words: [String], exit code: Int32) throws -> ProcessResult {
        let result = try tool(words)
        #expect(result.status == code, "\(words): \(result.stderr)\(result.stdout)")
        return result
    }
}

extension String {
    /// How often a text stands in this one.
    fileprivate func count(of text: String) -> Int { ranges(of: text).count }
}
