import BackupKit
import TestSupport
import Testing

/// Devices A, B and C with two events each, a backup of A, and a delete of `e1` on B that the hub knows.
private func policyBench(isPulled: Bool = false) throws -> Workbench {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.write(
        "e.jsonl",
        """
        {"id":"e1","time":"2026-02-14T15:00:00+01:00","type":"tuin"}
        {"id":"e2","time":"2026-02-14T16:00:00+01:00","type":"eten"}

        """)
    try bench.shell(
        """
        $T hub init -q hub.db
        for d in A B C; do $T store init -q --store $d.db; done
        $T import -q --store A.db e.jsonl
        for d in A B C; do $T sync -q --store $d.db; done
        $T export -q --store A.db -o backup.tar.zst
        $T store delete -q --store B.db e1
        $T sync -q --store B.db
        """)
    if isPulled { try bench.tool(exit: 0, "sync", "--store", "A.db") }
    return bench
}

extension Workbench {
    fileprivate func settle() throws {
        try shell("for i in 1 2 3; do for d in A B C; do $T sync -q --store $d.db; done; done")
    }

    /// The live events that a device shows.
    fileprivate func events(_ device: String) throws -> String {
        try shell(
            "sqlite3 \(device).db \"SELECT local_id FROM record WHERE deleted_at IS NULL AND type = 'PuppyEvent'\"")
    }
}

@Test(arguments: [false, true])
func honor_theSimulationSaysWhatWillBeGone(isPulled: Bool) throws {
    let bench = try policyBench(isPulled: isPulled)
    let played = try bench.json(
        exit: isPulled ? 0 : 3, "restore", "backup.tar.zst", "--store", "A.db", "--simulate", "3")
    #expect(played["hub"]?.string?.hasSuffix("/hub.db") == true && played["devices"]?.integer == 3)
    let outcomes = played["outcomes"]
    #expect(outcomes?["alive-everywhere"]?.integer == 1)
    #expect(outcomes?["deleted-again"]?.integer == (isPulled ? 0 : 1))
    #expect(outcomes?["stays-deleted"]?.integer == (isPulled ? 1 : 0))
    #expect(played["records"]?.array?.map { $0["record"]?.string } == ["OllieEvents/e1"])
    // And so it comes.
    try bench.tool(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "A.db")
    try bench.settle()
    for device in ["A", "B", "C"] { #expect(try bench.events(device) == "e2\n") }
}

@Test(arguments: [false, true])
func resurrect_theSimulationAndTheSyncsAgree(isPulled: Bool) throws {
    let bench = try policyBench(isPulled: isPulled)
    let options = ["restore", "--create", "backup.tar.zst", "--store", "A.db", "--sync-policy", "resurrect"]
    let played = try bench.tool(options + ["--simulate", "2"])
    #expect(played.status == 0, "\(played.stderr)")
    #expect(
        played.stderr.contains("2 alive everywhere.\n2 devices and a copy of \(bench.path("hub.db")), at rest after"))
    let plan = try bench.tool(options + ["--dry-run"])
    #expect(plan.stdout.contains("OllieEvents/e1  (\(isPulled ? "comes back" : "outlives deletes"))") || !isPulled)
    #expect(plan.stdout.contains("(outlives deletes that this device has not heard of)"))
    let result = try bench.json(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "A.db", "--resurrect")
    #expect(result["updated"]?.integer == (isPulled ? 1 : 0) && result["kept"]?.integer == (isPulled ? 1 : 2))
    #expect(
        try bench.json(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "A.db", "--resurrect")["writes"]
            == JSON(0))
    try bench.settle()
    for device in ["A", "B", "C"] { #expect(try bench.events(device).split(separator: "\n").sorted() == ["e1", "e2"]) }
}

@Test func quarantine_isLookedAt_andReleased() throws {
    let bench = try policyBench(isPulled: true)
    let options = ["restore", "--create", "backup.tar.zst", "--store", "A.db", "--sync-policy", "quarantine"]
    let plan = try bench.tool(options + ["--dry-run"])
    #expect(plan.stdout.hasPrefix("? 2026-02-14T15:00:00+01:00 tuin  Quarantine/e1@"), "\(plan.stdout)")
    #expect(plan.stdout.contains("(was deleted after this version was written)"))
    let played = try bench.tool(options + ["--simulate", "3", "--json"])
    #expect(played.status == 0 && played.stdout.contains("\"kept-here-only\":1"))
    let first = try bench.tool(options + ["--json"])
    #expect(first.stdout.contains("\"quarantined\":1"))
    let second = try bench.tool(options + ["--json"])
    #expect(second.stdout.contains("\"writes\":0") && second.stdout.contains("\"quarantined\":0"))
    try bench.settle()
    for device in ["A", "B", "C"] { #expect(try bench.events(device) == "e2\n") }
    #expect(try bench.json(exit: 0, "store", "info", "--store", "A.db")["types"]?["Quarantined"]?.integer == 1)
    #expect(try bench.json(exit: 0, "store", "info", "--store", "B.db")["types"]?["Quarantined"] == nil)
    let dry = try bench.tool(exit: 0, "store", "enable-cloud", "--store", "A.db", "e1", "--dry-run")
    #expect(dry.stdout == "OllieEvents/e1 would be given back\n")
    try bench.tool(exit: 0, "store", "enable-cloud", "--store", "A.db", "e1")
    try bench.settle()
    for device in ["A", "B", "C"] { #expect(try bench.events(device).split(separator: "\n").sorted() == ["e1", "e2"]) }
}

@Test func quarantine_takesTheFilesOfAPublicationWithIt_andBack() throws {
    let bench = try Workbench()
    try bench.write("refs.bib", "@article{two, title = {Second}, year = 2002}\n")
    try bench.write("files/two.pdf", "%PDF two")
    try bench.tool(exit: 0, "import", "refs.bib", "--attachments", "files")
    try bench.tool(exit: 0, "export", "-o", "backup.tar.zst")
    let whole = try bench.text("store.db.assets/Attachments/two.pdf")
    let options = ["restore", "--create", "backup.tar.zst", "--store", "new.db", "--sync-policy", "quarantine"]
    #expect(try bench.tool(options).status == 0)
    #expect(try bench.files("new.db.assets") == ["Quarantine/Attachments/two.pdf"])
    #expect(try bench.tool(options + ["--json"]).stdout.contains("\"writes\":0"))
    // Nothing of it is a publication yet.
    try bench.tool(exit: 0, "export", "--store", "new.db", "-o", "again")
    #expect(try bench.json(exit: 0, "store", "info", "--store", "new.db")["records"]?["publications"]?.integer == 0)
    let label = try bench.tool(exit: 0, "store", "changes", "--store", "new.db").stdout
    let name = try #require(label.split(separator: "\n").first { $0.contains("two: Second") })
    let id = try #require(name.split(separator: " ").first { $0.hasPrefix("Quarantine/") })
    try bench.tool(exit: 0, "store", "enable-cloud", "--store", "new.db", String(id))
    #expect(try bench.files("new.db.assets").filter { !$0.hasPrefix(".") } == ["Attachments/two.pdf"])
    #expect(try bench.text("new.db.assets/Attachments/two.pdf") == whole)
    try bench.tool(exit: 0, "undo", "--store", "new.db")
    #expect(try bench.files("new.db.assets").filter { !$0.hasPrefix(".") } == ["Quarantine/Attachments/two.pdf"])
}

@Test func simulate_touchesNothing() throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.importSamples(into: "A.db")
    try bench.shell(
        """
        $T hub init -q hub.db
        $T sync -q --store A.db
        $T export -q --store A.db -o backup.tar.zst
        $T store set-local -q --store A.db $(sqlite3 A.db "SELECT local_id FROM record WHERE type = 'Note' LIMIT 1")
        $T sync -q --store A.db || true
        $T store delete -q --store A.db $(sqlite3 A.db "SELECT local_id FROM record WHERE type = 'PuppyEvent' LIMIT 1")
        """)
    func everything() throws -> [String: [UInt8]] {
        var all = try bench.state("A.db")
        for file in try bench.files("hub.db.assets") { all["hub " + file] = try bench.bytes("hub.db.assets/\(file)") }
        for file in ["hub.db", "backup.tar.zst"] { all[file] = try bench.bytes(file) }
        return all
    }
    let before = try everything()
    for policy in ["honor", "resurrect", "quarantine"] {
        let played = try bench.tool(
            "restore", "backup.tar.zst", "--store", "A.db", "--sync-policy", policy, "--simulate", "4", "--json")
        #expect([0, 3].contains(played.status), "\(played.stderr)")
        let now = try everything()
        #expect(now.keys.sorted() == before.keys.sorted())
        for (file, bytes) in before { #expect(now[file] == bytes, "\(policy): \(file)") }
        #expect(try bench.files("tmp").isEmpty)
    }
    // Nor does it make anything.
    try bench.tool(exit: 0, "restore", "--create", "backup.tar.zst", "--store", "none.db", "--simulate", "2")
    #expect(try !bench.exists("none.db") && !bench.exists("none.db.assets"))
}

@Test func simulate_playsWhatOnlyThisDeviceKnowsToo() throws {
    let bench = try policyBench()
    // What waits for the hub here is not on the others, and does not come from them.
    try bench.write("more.jsonl", "{\"id\":\"e2\",\"time\":\"2026-02-14T16:00:00+01:00\",\"type\":\"slapen\"}\n")
    try bench.tool(exit: 3, "import", "--create", "--store", "A.db", "more.jsonl")
    try bench.tool(exit: 0, "store", "set-local", "--store", "A.db", "e1")
    let played = try bench.json(exit: 0, "restore", "backup.tar.zst", "--store", "A.db", "--simulate", "3")
    #expect(played["outcomes"]?["kept-here-only"]?.integer == 1)
    #expect(played["outcomes"]?["deleted-again"]?.integer == 0)
}

@Test func simulate_withoutTheHub_saysThatItKnowsLess() throws {
    let bench = try policyBench()
    try bench.shell("mv hub.db elsewhere.db; mv hub.db.assets elsewhere.db.assets 2>/dev/null || true")
    let options = ["restore", "backup.tar.zst", "--store", "A.db", "--simulate", "3"]
    let blind = try bench.tool(options)
    #expect(blind.status == 3 && blind.stderr.contains("hub.db: the hub cannot be reached"))
    #expect(blind.stderr.contains("2 alive everywhere.\n3 devices and a new hub"))
    let seen = try bench.tool(options + ["--hub", "elsewhere.db"])
    #expect(seen.status == 3 && seen.stdout.contains("OllieEvents/e1  deleted again: was deleted at"))
    #expect(try bench.tool(options + ["--hub", "none.db"]).status == 10)
    // A store that never synced has nobody to ask.
    #expect(try bench.tool("restore", "--create", "backup.tar.zst", "--store", "new.db", "--simulate", "2").status == 0)
}

@Test func policies_thatContradictEachOther_areRefused() throws {
    let bench = try policyBench()
    for more in [
        ["--sync-policy", "honor", "--resurrect"], ["--sync-policy", "quarantine", "--mode", "replace"],
        ["--sync-policy", "forget"], ["--simulate", "1"], ["--simulate", "many"], ["--hub", "hub.db"],
        ["--to", "x", "--simulate", "2"],
    ] {
        #expect(
            try bench.tool(["restore", "--create", "backup.tar.zst", "--store", "A.db"] + more).status == 64, "\(more)")
    }
}
