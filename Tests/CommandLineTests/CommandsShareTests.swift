import TestSupport
import Testing

/// A share that says something else than what the hub will do.
@Suite struct CommandsShareTests {
    /// A store of Bob's with an event and a publication with a file, and a hub.
    private func bobsBench() throws -> Workbench {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.write("e.jsonl", "{\"id\":\"e1\",\"time\":\"2026-02-14T15:00:00+01:00\",\"type\":\"tuin\"}\n")
        try bench.write("q.pdf", "%PDF-1.4")
        try bench.write("l.bib", "@article{K, title={W}, author={Doe, X}, year={2001}, file={:q.pdf:PDF}}\n")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "--store", "bob.db", "e.jsonl", "l.bib")
        for user in ["ann", "eve"] { try bench.tool(exit: 0, "store", "init", "--store", "\(user).db") }
        return bench
    }

    private func sync(_ bench: Workbench, _ user: String, exit: Int32 = 0) throws -> ProcessResult {
        try bench.tool(exit: exit, "sync", "--store", "\(user).db", "--user", user)
    }

    /// Who may only read has deleted an event, which the hub refuses, and takes it back.
    @Test func whatAReaderTakesBack_isNotHeldForEver() throws {
        let bench = try bobsBench()
        try bench.tool(exit: 0, "store", "share", "--store", "bob.db", "OllieEvents", "--with", "ann", "--owner", "bob")
        _ = try sync(bench, "bob")
        _ = try sync(bench, "ann")
        try bench.tool(exit: 0, "store", "delete", "--store", "ann.db", "e1")
        _ = try sync(bench, "ann", exit: 3)
        try bench.tool(exit: 0, "undo", "--store", "ann.db")
        for _ in 1...2 { _ = try sync(bench, "ann") }
        let time = "2026-02-14T15:00:00+01:00"
        try bench.write(
            "e.jsonl", #"{"id":"e1","time":"\#(time)","modified_at":"2026-02-20T09:00:00Z","type":"slapen"}"# + "\n")
        #expect(try bench.tool("import", "--store", "bob.db", "e.jsonl").stderr.contains("1 updated"))
        _ = try sync(bench, "bob")
        _ = try sync(bench, "ann")
        let type = try bench.shell("sqlite3 ann.db \"SELECT fields ->> 'type' FROM record WHERE local_id = 'e1'\"")
        #expect(type == "slapen\n")
        try bench.tool(exit: 0, "store", "check", "--store", "ann.db")
    }

    @Test func theZoneOfFiles_isNotShared() throws {
        let bench = try bobsBench()
        let refused = try bench.tool(
            exit: 64, "store", "share", "--store", "bob.db", "Assets", "--with", "ann", "--owner", "bob")
        #expect(refused.stderr.contains("files go to everybody who uses the hub"), "\(refused.stderr)")
        _ = try sync(bench, "bob")
        _ = try sync(bench, "eve")
        #expect(try bench.json(exit: 0, "store", "info", "--store", "eve.db")["assets"]?.integer == 1)
    }

    @Test func aZoneWithoutRecords_isNotShared() throws {
        let bench = try bobsBench()
        for zone in ["OllieEvent", "ollieevents"] {
            let refused = try bench.tool(
                exit: 1, "store", "share", "--store", "bob.db", zone, "--with", "ann", "--owner", "bob")
            #expect(refused.stderr.contains("\(zone): no record is in this zone"), "\(refused.stderr)")
            #expect(refused.stderr.contains("the zones of this store are Library, OllieEvents"), "\(refused.stderr)")
        }
        let empty = try bench.tool(
            exit: 1, "store", "share", "--store", "eve.db", "OllieEvents", "--with", "ann", "--owner", "eve")
        #expect(empty.stderr.contains("import its records first"), "\(empty.stderr)")
    }

    @Test func onlyTheOwner_sharesAndUnshares() throws {
        let bench = try bobsBench()
        let zone = "OllieEvents"
        try bench.tool(exit: 0, "store", "share", "--store", "bob.db", zone, "--with", "ann", "--owner", "bob")
        _ = try sync(bench, "bob")
        _ = try sync(bench, "ann")
        let calls = [
            ["share", zone, "--with", "cy"], ["share", zone, "--with", "cy", "--user", "bob"],
            ["unshare", zone], ["unshare", zone, "ann"],
        ]
        for words in calls {
            let refused = try bench.tool(["store"] + words + ["--store", "ann.db"])
            #expect(refused.status == 1 && refused.stdout == "", "\(words): \(refused.stdout)\(refused.stderr)")
            #expect(refused.stderr.contains("only its owner 'bob' may share it, and this store syncs as 'ann'"))
        }
        // Nor does anybody begin a share in another's name.
        let first = try bench.tool(
            exit: 1, "store", "share", "Library", "--with", "cy", "--owner", "bob", "--store", "ann.db")
        #expect(first.stderr.contains("only its owner 'bob' may share it"), "\(first.stderr)")
        #expect(try sync(bench, "ann").stderr == "0 pulled, 0 pushed.\n")
        try bench.tool(exit: 0, "store", "share", "--store", "bob.db", zone, "--with", "eve")
        try bench.tool(exit: 0, "store", "unshare", "--store", "bob.db", zone)
        #expect(try sync(bench, "bob").stderr.contains("1 pushed"))
    }
}
