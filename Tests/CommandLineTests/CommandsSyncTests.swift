import BackupKit
import Glibc
import TestSupport
import Testing

/// Two stores, A and B, and a hub.
private func syncBench() throws -> Workbench {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    for device in ["A", "B"] { try bench.tool(exit: 0, "store", "init", "--store", "\(device).db") }
    return bench
}

@Test func theCasesOfSyncingCanBeWatched() throws {
    let tool = try productsDirectory() + "/backup-tool"
    let result = try runProcess(
        ["\(Workbench.samples)/sync-cases.sh"], environment: testEnvironment(["BACKUP_TOOL": tool]), timeout: 120)
    #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
    #expect(result.stdoutLines.count { $0.hasPrefix("  ✓") } == 23)
}

@Test func sync_saysWhatItDid_forPeopleAndForScripts() throws {
    let bench = try syncBench()
    try bench.importSamples(into: "A.db")
    let info = try bench.json(exit: 0, "store", "info", "--store", "A.db")
    #expect(info["sync"] == .null)
    let dry = try bench.json(exit: 0, "sync", "--store", "A.db", "--dry-run")
    let sent = try bench.json(exit: 0, "sync", "--store", "A.db")
    #expect(sent["pushed"]?.integer ?? 0 > 30 && sent["pushed"] == dry["pushed"])
    #expect(sent["attachments"]?["sent"]?.integer == 4)
    // Two of the samples share a cite key, and that is for a person to decide.
    let fetched = try bench.json(exit: 3, "sync", "--store", "B.db")
    #expect(fetched["conflicts"]?.integer == 1)
    #expect(fetched["attachments"]?["fetched"]?.integer == 4)
    let kinds = "publications,notes,events,records,attachments"
    let digests = try ["A", "B"].map {
        try bench.tool(exit: 0, "store", "digest", "--store", "\($0).db", "--only", kinds).stdout
    }
    #expect(digests[0] == digests[1])
    let again = try bench.tool(exit: 0, "sync", "--store", "A.db")
    #expect(again.stderr == "0 pulled, 0 pushed.\n" && again.stdout == "")
    let linked = try bench.json(exit: 0, "store", "info", "--store", "A.db")["sync"]
    #expect(
        linked?["hub"]?.string == bench.path("hub.db") && linked?["pending"]?.integer == 0
            && linked?["held"]?.array == [])
}

@Test func sync_namesWhatIsHeld_andEndsWith3() throws {
    let bench = try syncBench()
    try bench.write("e.jsonl", "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n")
    try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "e.jsonl")
    let shared = try bench.tool(
        exit: 0, "store", "share", "OllieEvents", "--store", "A.db", "--with", "ben", "--owner", "ann")
    #expect(shared.stdout == "OllieEvents of ann: ben (read)\n")
    try bench.tool(exit: 0, "sync", "--store", "A.db", "--user", "ann")
    try bench.tool(exit: 0, "sync", "--store", "B.db", environment: ["BACKUP_TOOL_USER": "ben"])
    try bench.tool(exit: 0, "store", "delete", "--store", "B.db", "e1")
    let held = try bench.tool(exit: 3, "sync", "--store", "B.db", "--user", "ben")
    #expect(held.stderr.contains("OllieEvents/e1: stays on this device: 'ben' may not write to the zone of 'ann'"))
    let info = try bench.json(exit: 0, "store", "info", "--store", "B.db")["sync"]
    #expect(info?["held"]?.array?.first?["kind"]?.string == "permission")
    try bench.tool(exit: 0, "store", "unshare", "OllieEvents", "--store", "A.db")
    try bench.tool(exit: 0, "sync", "--store", "A.db", "--user", "ann")
    try bench.tool(exit: 0, "sync", "--store", "B.db", "--user", "ben")
    try bench.tool(exit: 0, "sync", "--store", "A.db", "--user", "ann")
    #expect(try bench.tool(exit: 0, "store", "changes", "--store", "A.db").stdout.contains("deleted  OllieEvents/e1"))
}

@Test func sync_withoutAHubOrAStore_saysWhatIsMissing() throws {
    let bench = try syncBench()
    try bench.tool(exit: 10, "sync", "--store", "none.db")
    try bench.tool(exit: 10, "sync", "--store", "A.db", "--hub", "none.db")
    try bench.tool(exit: 10, "sync", "--store", "A.db", "--hub", "B.db")
    try bench.tool(exit: 64, "sync", "--store", "A.db", environment: ["BACKUP_TOOL_HUB": ""])
    try bench.tool(exit: 1, "hub", "init", "hub.db")
}

@Test func sync_repeatsTheLastHubAndUser() throws {
    let bench = try Workbench()
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 0, "store", "init")
    try bench.tool(exit: 64, "sync")
    try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--user", "ann")
    try bench.tool(exit: 0, "sync")
    try bench.shell("mkdir elsewhere; cd elsewhere; $T sync --store ../store.db")
    let refused = try bench.tool(exit: 1, "sync", "--user", "ben")
    #expect(refused.stderr.contains("syncs as 'ann', not as 'ben'") && refused.stderr.contains("--change-user"))
    try bench.tool(exit: 0, "sync", "--user", "ben", "--change-user")
    try bench.tool(exit: 0, "sync", environment: ["BACKUP_TOOL_USER": "ben"])
}

/// The kernel's answer is changed on its way: the hub looks as if it lay on NFS.
@Test func sync_refusesAHubOnANetworkFileSystem_unlessAllowed() throws {
    let bench = try syncBench()
    let tool = try productsDirectory() + "/backup-tool"
    func run(_ words: String...) throws -> ProcessResult {
        try runProcess(
            ["strace", "-f", "-qq", "-o", "trace", "-e", "inject=statfs:poke_exit=@arg2=6969000000000000", tool]
                + words,
            environment: testEnvironment(), in: bench.folder)
    }
    for words in [["sync", "--store", "A.db", "--hub", "hub.db"], ["hub", "init", "new.db"]] {
        let refused = try run(words[0], words[1], words[2], words.last == "hub.db" ? "--hub=hub.db" : "-q")
        #expect(refused.status == 1, "\(refused.stderr)")
        #expect(refused.stderr.contains("network file system (NFS)") && refused.stderr.contains("--allow-network"))
    }
    #expect(try run("sync", "--store", "A.db", "--hub", "hub.db", "--allow-network").status == 0)
    #expect(try run("hub", "init", "new.db", "--allow-network").status == 0)
}

/// A row of 120 MB in a hub, and 400 MB of address space.
@Test func sync_readsNoRowThatIsTooLarge() throws {
    let bench = try syncBench()
    try bench.write("e.jsonl", "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n")
    try bench.tool(exit: 0, "import", "--store", "A.db", "e.jsonl")
    try bench.tool(exit: 0, "sync", "--store", "A.db")
    try bench.shell(
        """
        sqlite3 hub.db "UPDATE record SET fields = printf('{\"x\":\"%.*c\"}', 120000000, 'x')"
        r=0; (ulimit -v 400000; exec $T sync --store B.db) 2> said || r=$?; test $r = 3; grep 'too large to be read' said
        """)
}

@Test func sync_printsNoEscapesOfAShare() throws {
    let bench = try syncBench()
    try bench.write("e.jsonl", "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n")
    try bench.tool(exit: 0, "import", "--store", "A.db", "e.jsonl")
    let owner = "\u{1B}[31mann\u{1B}]0;x\u{07}"
    let shared = try bench.tool(
        exit: 0, "store", "share", "OllieEvents", "--store", "A.db", "--with", "\u{1B}[1mben", "--owner", owner)
    try bench.tool(exit: 0, "sync", "--store", "A.db", "--user", owner)
    try bench.tool(exit: 0, "import", "--store", "B.db", "e.jsonl")
    let held = try bench.tool(exit: 3, "sync", "--store", "B.db", "--user", "eve")
    let info = try bench.tool(exit: 0, "store", "info", "--store", "B.db")
    for text in [shared.stdout, held.stderr, info.stderr, info.stdout] { #expect(!text.contains("\u{1B}")) }
    #expect(held.stderr.contains("\\u{1b}[31mann"))
}

/// Many processes at one hub, each with a store of its own.
@Test func manyProcessesSyncThroughOneHubAtOnce() throws {
    let bench = try syncBench()
    try bench.shell(
        """
        for i in 1 2 3 4; do
            $T store init -q --store s$i.db
            for j in $(seq 1 60); do
                printf '{"id":"e%s-%s","time":"2026-02-14T15:00:00+01:00","type":"tuin"}\\n' $i $j
            done > e$i.jsonl
            $T import -q --store s$i.db e$i.jsonl
        done
        for i in 1 2 3 4; do
            (for j in 1 2 3; do $T sync -q --store s$i.db || echo $? >> failed; done) &
        done
        wait
        for i in 1 2 3 4; do $T sync -q --store s$i.db; done
        """)
    #expect(try !bench.exists("failed"))
    let digests = Set(try (1...4).map { try bench.digest("s\($0).db") })
    #expect(digests.count == 1)
    #expect(try bench.shell("sqlite3 hub.db 'PRAGMA integrity_check; SELECT count(*) FROM record'") == "ok\n240\n")
}

/// SIGKILL at a system call: whatever it cuts in two, the next sync goes on, and both stores come to the same.
@Test func aKilledSyncGoesOnTheNextTime() throws {
    let bench = try syncBench()
    try bench.importSamples(into: "A.db")
    try bench.shell("cp -a A.db keepA.db; cp -a A.db.assets keepA.db.assets; cp -a B.db keepB.db; cp -a hub.db keep.db")
    let calls = "openat,write,pwrite64,fsync,fdatasync,renameat2,rename,unlink,mkdir,ftruncate,rmdir"
    let tool = try productsDirectory() + "/backup-tool"
    func run(_ store: String, _ options: [String]) throws -> ProcessResult {
        try runProcess(
            ["strace", "-f", "-qq", "-o", "trace"] + options + [
                tool, "sync", "-q", "--hub", "hub.db", "--store", store,
            ],
            environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: bench.folder)
    }
    let kinds = "publications,notes,events,records,attachments"
    func digest(_ store: String) throws -> String {
        try bench.tool(exit: 0, "store", "digest", "--store", store, "--only", kinds).stdout
    }
    func reset() throws {
        try bench.shell(
            """
            rm -rf hub.db hub.db-* hub.db.assets A.db* B.db*
            cp -a keepA.db A.db; cp -a keepA.db.assets A.db.assets; cp -a keepB.db B.db; cp -a keep.db hub.db
            mkdir B.db.assets
            """)
    }
    try reset()
    let steps = try ["A.db", "B.db"].map { store in
        _ = try run(store, ["-e", "trace=\(calls)"])
        return (store: store, all: TracedStep.all(in: try bench.text("trace")))
    }
    var random = SeededGenerator(seed: testSeed())
    for round in 0..<(Workbench.isTorture ? 60 : 4) {
        countRounds()
        try reset()
        for (store, all) in steps {
            let step = all[random.below(all.count)]
            _ = try run(store, step.kill)
            #expect(try bench.shell("sqlite3 hub.db 'PRAGMA integrity_check'") == "ok\n", "round \(round), \(step)")
            #expect([0, 3].contains(try bench.tool("sync", "--store", store).status))
        }
        #expect(try digest("A.db") == digest("B.db"), "round \(round)")
        try checkSound(bench.path("A.db"))
        try checkSound(bench.path("B.db"))
    }
}

/// Bytes that two attachments have in common are sent once, and a dry run knows that.
@Test func aDryRunOfASync_countsBytesOfTwoAttachmentsOnce() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
    for name in ["a", "b"] { try bench.write("files/\(name).pdf", "%PDF the same") }
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "files")
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    for words in [["--dry-run"], []] {
        let done = try bench.tool(["sync", "--hub", "hub.db", "--json"] + words)
        let result = try JSON(parsing: done.stdoutLines.last ?? "null")
        #expect(result["attachments"]?["sent"]?.integer == 1, "\(words): \(done.stdout)")
    }
}

/// Two devices have the same names for other files, so that those of the second one get other names.
@Test func aDryRunOfASync_countsBytesOfTwoRenamedAttachmentsOnce() throws {
    let bench = try Workbench()
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    for device in ["A", "B"] {
        try bench.write("\(device).bib", "@misc{a, title={A of \(device)}}\n@misc{b, title={B of \(device)}}\n")
        for name in ["a", "b"] { try bench.write("\(device)/\(name).pdf", "%PDF of \(device)") }
        try bench.tool(["import", "--create", "--store", "\(device).db", "\(device).bib", "--attachments", device])
    }
    try bench.tool(["sync", "--store", "A.db", "--hub", "hub.db"])
    for words in [["--dry-run"], []] {
        let done = try bench.tool(["sync", "--store", "B.db", "--hub", "hub.db", "--json"] + words)
        let result = try JSON(parsing: done.stdoutLines.last ?? "null")
        #expect(result["attachments"]?["sent"]?.integer == 1, "\(words): \(done.stdout)")
    }
}

@Test(arguments: ["''", "'17'", "'/nowhere/hub.db'"])
func aDamagedPlaceOfTheHub_isNamed_andTheAdviceMendsIt(location: String) throws {
    let bench = try Workbench()
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.write("a.bib", "@misc{k1, title={One}}\n")
    try bench.tool(exit: 0, "import", "--create", "a.bib")
    try bench.tool(exit: 0, "sync", "--hub", "hub.db")
    try bench.shell("sqlite3 store.db \"UPDATE hub_link SET location = \(location)\"")
    #expect(try bench.tool(exit: 3, "store", "check").stderr.contains("sync --hub PATH"))
    #expect(try bench.tool(exit: 10, "sync").stderr.contains("name the hub: 'backup-tool sync --hub PATH'"))
    try bench.tool(exit: 3, "sync", "--hub", "hub.db")
    try bench.tool(exit: 0, "sync")
    try bench.tool(exit: 0, "store", "check")
}
