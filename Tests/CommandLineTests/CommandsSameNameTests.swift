import TestSupport
import Testing

/// Files that have a name or their bytes in common, and nothing else.
@Suite struct CommandsSameNameTests {
    /// I814. An app writes into one of them, in place.
    @Test func filesWithTheSameBytes_areFilesOfTheirOwn() throws {
        let bench = try Workbench()
        try bench.write(
            "r.bib", "@misc{k1, title={One}, file={:p1.pdf:PDF}}\n@misc{k2, title={Two}, file={:p2.pdf:PDF}}\n")
        for name in ["p1", "p2"] { try bench.write("\(name).pdf", "form\n") }
        try bench.tool(exit: 0, "import", "--create", "r.bib")
        try bench.tool(exit: 0, "export", "-o", "e.tar.zst")
        try bench.tool(exit: 0, "restore", "e.tar.zst", "--create", "--store", "restored.db")
        try bench.tool(exit: 0, "import", "e.tar.zst", "--create", "--store", "imported.db")
        for store in ["store.db", "restored.db", "imported.db"] {
            let folder = "\(store).assets/Attachments"
            try bench.shell("echo note >> \(folder)/p1.pdf")
            #expect(try bench.text("\(folder)/p2.pdf") == "form\n", "\(store)")
            let told = try bench.tool(exit: 3, "store", "check", "--store", store).stderr
            #expect(told.contains("p1.pdf") && !told.contains("p2.pdf"), "\(store): \(told)")
        }
    }

    /// Two devices and their hub. A has a file that belongs to nothing, B a work with another file of that name.
    private func devices() throws -> (bench: Workbench, work: String) {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.write("b/r.bib", "@misc{k, title={Two}, author={Roe, Ann}, file={:p.pdf:PDF}}\n")
        try bench.write("b/p.pdf", "of B")
        try bench.write("a/p.pdf", "of A")
        try bench.shell(
            """
            $T -q hub init hub.db
            $T -q import --store A.db --create --attachments a || true
            $T -q import --store B.db --create b/r.bib
            """)
        let work = try bench.shell("sqlite3 B.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        return (bench, String(work.dropLast()))
    }

    private func sync(_ bench: Workbench, _ order: String) throws {
        for device in order { try bench.tool("sync", "-q", "--store", "\(device).db") }
    }

    private func files(_ bench: Workbench, _ store: String) throws -> Set<String> {
        Set(try bench.files("\(store).assets/Attachments").map { try bench.text("\(store).assets/Attachments/\($0)") })
    }

    /// I815.
    @Test(arguments: ["before it meets the other one", "afterwards"])
    func aPurge_sparesAFileThatHasOnlyTheNameInCommon(isDeleted: String) throws {
        let (bench, work) = try devices()
        try sync(bench, isDeleted == "afterwards" ? "ABA" : "A")
        try bench.tool(exit: 0, "store", "delete", "--store", "B.db", work)
        try sync(bench, "BABA")
        #expect(try files(bench, "B.db") == ["of A", "of B"])
        let plan = try bench.tool("store", "purge", "--store", "B.db", work, "--with-files").stdout
        #expect(plan.contains("p_conflict_") && !plan.contains("/p.pdf"), "\(plan)")
        try bench.tool("store", "purge", "--store", "B.db", work, "--with-files", "--confirm")
        try sync(bench, "BABABA")
        for store in ["A.db", "B.db"] { #expect(try files(bench, store) == ["of A"], "\(store)") }
        for store in ["A.db", "B.db"] { try bench.tool(exit: 0, "store", "check", "--store", store) }
    }

    /// I818. Both devices have a file of that work, and one of them a file whose name differs only in case.
    @Test func aFileThatGetsANumber_takesNoNameThatTheHubHas() throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        for device in ["A", "B"] {
            try bench.write("\(device)/r.bib", "@misc{k, title={Two}, author={Roe, Ann}, file={:p.pdf:PDF}}\n")
            try bench.write("\(device)/p.pdf", "of \(device)")
        }
        try bench.write("A/P.pdf", "another one")
        try bench.shell(
            """
            $T -q hub init hub.db
            for d in A B; do $T -q import --store $d.db --create $d/r.bib --attachments $d || true; done
            """)
        try sync(bench, "ABABA")
        for store in ["A.db", "B.db"] {
            let links = try bench.shell(
                "sqlite3 \(store) \"SELECT value FROM record, json_each(fields, '$.linkedFiles') WHERE record.type = 'Publication'\""
            )
            let linked = try links.split(separator: "\n").map { try bench.text("\(store).assets/\($0)") }
            #expect(linked.sorted() == ["of A", "of B"], "\(store): \(links)")
        }
    }

    /// I816. It was on the hub, and was taken away there with its record.
    @Test(arguments: ["A", "B"])
    func aNewFile_underThePathOfADeletedRecord_reachesEveryDevice(importer: String) throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.write("a/r.bib", "@misc{k, title={One}, author={Doe, Jane}, file={:p.pdf:PDF}}\n")
        try bench.write("a/p.pdf", "of A")
        try bench.write("b/p.pdf", "of B")
        try bench.shell(
            """
            $T -q hub init hub.db; $T -q store init --store B.db
            $T -q import --store A.db --create a/r.bib
            """)
        try sync(bench, "AB")
        try bench.tool(exit: 0, "undo", "--store", "A.db")
        try sync(bench, "AB")
        let again = importer == "A" ? ["a/r.bib", "--attachments", "a"] : ["--attachments", "b"]
        try bench.tool(["import", "--store", "\(importer).db"] + again)
        try sync(bench, "ABAB")
        for store in ["A.db", "B.db"] { #expect(try files(bench, store) == ["of \(importer)"], "\(store)") }
        let digests = try ["A.db", "B.db"].map { try bench.digest($0) }
        #expect(digests[0] == digests[1])
    }
}
