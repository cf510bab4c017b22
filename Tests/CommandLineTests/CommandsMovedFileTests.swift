import TestSupport
import Testing

/// Files that got names of their own because others have theirs.
@Suite struct CommandsMovedFileTests {
    private func write(
        _ folder: String, key: String, doi: String, file: String, bytes: String, _ bench: Workbench
    ) throws {
        try bench.write("\(folder)/\(file)", "%PDF \(bytes)\n")
        try bench.write(
            "\(folder)/refs.bib", "@misc{\(key), title={Title \(doi)}, doi={10.1/\(doi)}, file={:\(file):PDF}}\n")
    }

    /// The bytes of the first file that the publication with this key links.
    private func bytes(of key: String, in store: String, _ bench: Workbench) throws -> String {
        try bench.shell(
            """
            path=$(sqlite3 \(store) "SELECT json_extract(fields, '$.linkedFiles[0]') FROM record \
            WHERE json_extract(fields, '$.citeKey') = '\(key)'")
            printf %s "$(cat "\(store).assets/$path")"
            """)
    }

    /// I785. A name with a number is that of the backup's file only where it has its bytes.
    @Test func aReplaceLeavesNoFileUnderANameWithANumber_andIsDoneOnce() throws {
        let bench = try Workbench()
        try write("d", key: "d", doi: "d", file: "p.pdf", bytes: "d", bench)
        try bench.tool(exit: 0, "import", "--create", "--store", "old.db", "d/refs.bib")
        try bench.tool(exit: 0, "export", "--store", "old.db", "-o", "b.tar")
        try write("a", key: "a", doi: "a", file: "P.pdf", bytes: "a", bench)
        try write("e", key: "e", doi: "e", file: "p.pdf", bytes: "e", bench)
        try bench.tool(exit: 0, "import", "--create", "a/refs.bib")
        try bench.tool("import", "e/refs.bib")
        try bench.shell(
            """
            "$T" store set-local "$(sqlite3 store.db \
            "SELECT zone || '/' || local_id FROM record WHERE fields LIKE '%10.1/a%'")"
            """)
        try bench.tool("restore", "b.tar", "--mode", "replace")
        #expect(try bytes(of: "d", in: "store.db", bench) == "%PDF d")
        #expect(try bench.files("store.db.assets/Attachments").sorted() == ["P.pdf", "p_2.pdf"])
        let again = try bench.json(exit: 0, "restore", "b.tar", "--mode", "replace")
        #expect(again["attachments"]?["added"]?.integer == 0, "\(again)")
    }

    /// I786. What a decision replaced is back under another name, because another device's file has its path by now.
    @Test func aDecisionThatIsTakenBackLate_givesEachWorkItsFile() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try write("a0", key: "S0", doi: "0", file: "s.pdf", bytes: "zero", bench)
        try write("a1", key: "S1", doi: "2", file: "s.pdf", bytes: "two", bench)
        try write("b1", key: "S1", doi: "2", file: "s.pdf", bytes: "two", bench)
        try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "a0/refs.bib")
        try bench.tool("import", "--store", "A.db", "a1/refs.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "keep-incoming", "--store", "A.db")
        try bench.tool("import", "--create", "--store", "B.db", "b1/refs.bib")
        for store in ["B.db", "A.db"] { try bench.tool("sync", "--hub", "hub.db", "--store", store) }
        try bench.tool("undo", "--store", "A.db")
        for _ in 0..<2 {
            #expect(try bytes(of: "S0", in: "A.db", bench) == "%PDF zero")
            #expect(try bytes(of: "S1", in: "A.db", bench) == "%PDF two")
            for store in ["A.db", "B.db", "A.db"] { try bench.tool("sync", "--hub", "hub.db", "--store", store) }
        }
        #expect(try bytes(of: "S0", in: "B.db", bench) == "%PDF zero")
        try bench.tool("undo", "--redo", "--store", "A.db")
        for store in ["A.db", "B.db"] { try bench.tool("store", "check", "--store", store) }
    }

    /// I788. A sync gives another name to the file that a decision left. What the decision replaced and what it removed
    /// are two files there, too.
    @Test(arguments: ["keep-incoming", "keep-existing"])
    func aDecisionThatIsTakenBackAfterASyncMovedItsFile_givesEachWorkItsFile(choice: String) throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for (key, store) in [("k1", "A.db"), ("k2", "B.db"), ("k3", "B.db")] {
            try write(key, key: key, doi: key, file: "p.pdf", bytes: key, bench)
            if key == "k2" { try bench.tool("sync", "--store", "A.db") }
            try bench.tool("import", "--create", "--store", store, "\(key)/refs.bib")
        }
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", choice, "--store", "B.db")
        try bench.tool("sync", "--store", "B.db")
        try bench.tool("undo", "--store", "B.db")
        for key in ["k1", "k2", "k3"] { #expect(try bytes(of: key, in: "B.db", bench) == "%PDF \(key)") }
        for store in ["A.db", "B.db", "A.db", "B.db"] { try bench.tool("sync", "--store", store) }
        for store in ["A.db", "B.db"] {
            for key in ["k1", "k2", "k3"] { #expect(try bytes(of: key, in: store, bench) == "%PDF \(key)") }
            #expect(try bench.tool("conflicts", "list", "--store", store).stdout.contains("attachment"))
            try bench.tool(exit: 0, "store", "check", "--store", store)
        }
    }

    /// I792. A file of a record that was deleted before the hub had it stays here also when it has to leave its path.
    @Test func theFileOfADeletedRecord_staysHere_whateverNameASyncGivesIt() throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for (key, store) in [("k1", "A.db"), ("k2", "B.db")] {
            try write(key, key: key, doi: key, file: "p.pdf", bytes: key, bench)
            try bench.tool(exit: 0, "import", "--create", "--store", store, "\(key)/refs.bib")
        }
        try bench.shell(
            """
            "$T" store delete --store A.db "$(sqlite3 A.db \
            "SELECT zone || '/' || local_id FROM record WHERE type = 'Publication'")"
            """)
        for store in ["B.db", "A.db", "B.db"] { try bench.tool("sync", "--store", store) }
        #expect(try bench.shell("grep -rlF '%PDF k1' hub.db.assets B.db.assets || true") == "")
        #expect(try bytes(of: "k2", in: "A.db", bench) == "%PDF k2")
        try bench.tool(
            "store", "purge", "--store", "A.db", "--deleted-before", "2999-01-01", "--with-files", "--confirm")
        #expect(try bench.shell("grep -rlF '%PDF k1' A.db.assets || true") == "")
        try bench.tool(exit: 0, "store", "check", "--store", "A.db")
    }
}
