import TestSupport
import Testing

/// The bytes of files in a hub.
@Suite struct CommandsHubFileTests {
    /// I822. What was deleted for good is not in the hub either, and a file with the same bytes stays there.
    @Test(arguments: [false, true]) func bytesThatNobodyNames_goFromTheHub(isShared: Bool) throws {
        let bench = try Workbench()
        try bench.write("l/l.bib", "@misc{k, title={T}, file={k.pdf}}\n@misc{z, title={Z}, file={z.pdf}}\n")
        try bench.write("l/k.pdf", "a secret scan\n")
        try bench.write("l/z.pdf", isShared ? "a secret scan\n" : "another\n")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "l")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", store) }
        let sql = "SELECT zone || '/' || local_id FROM record WHERE type = 'Publication' AND fields LIKE '%k.pdf%'"
        let id = String(try bench.shell("sqlite3 a.db \"\(sql)\"").split(separator: "\n")[0])
        try bench.tool(exit: 0, "store", "delete", id, "--store", "a.db")
        try bench.tool("store", "purge", id, "--confirm", "--with-files", "--store", "a.db")
        // A device that has the bytes would send them again.
        for store in ["a.db", "b.db", "a.db"] {
            try bench.tool("sync", "--store", store)
            let left = try bench.shell("grep -ral 'a secret scan' hub.db.assets || true").split(separator: "\n")
            #expect(left.count == (isShared ? 1 : 0), "\(store)")
        }
        #expect(try bench.shell("grep -ac 'a secret scan' hub.db || true") == "0\n")
        try bench.tool(exit: 0, "store", "init", "--store", "c.db")
        try bench.tool("sync", "--hub", "hub.db", "--store", "c.db")
        #expect(try bench.shell("cat c.db.assets/Attachments/z.pdf") == (isShared ? "a secret scan\n" : "another\n"))
    }
}
