import TestSupport
import Testing

/// Files that are too large for the cloud: other devices know of them, and take no other file for them.
struct CommandsOversizeTests {
    /// What the publications of a store link, by the sizes of their files; 0 where there is none.
    private func linked(in store: String, _ bench: Workbench) throws -> [String: [String]] {
        let rows = try bench.shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.citeKey'), ifnull(asset.size, 0) FROM record,
            json_each(fields, '$.linkedFiles') LEFT JOIN asset ON asset.path = value WHERE record.type = 'Publication' ORDER BY 1, 2"
            """)
        return Dictionary(
            rows.split(separator: "\n").map { row in
                let parts = row.split(separator: "|").map(String.init)
                return (parts[0], [parts[1]])
            }, uniquingKeysWith: +)
    }

    @Test(arguments: [true, false])
    func aFileThatIsTooLarge_isNoOtherFileOnOtherDevices(isOtherLarge: Bool) throws {
        let bench = try Workbench()
        try bench.shell("mkdir one two && truncate -s 251M one/x.pdf")
        try bench.shell(isOtherLarge ? "truncate -s 252M two/x.pdf" : "printf 12345 > two/x.pdf")
        for (number, folder) in ["one", "two"].enumerated() {
            try bench.write(
                "\(folder)/l.bib", "@article{k\(number), title={Work \(folder)}, author={A}, file={:x.pdf:PDF}}\n")
        }
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 3, "import", "one/l.bib", "--create", "--store", "a.db")
        try bench.tool(exit: isOtherLarge ? 3 : 0, "import", "two/l.bib", "--create", "--store", "b.db")
        for store in ["a.db", "b.db", "a.db", "b.db"] {
            let sync = try bench.tool(exit: 3, "sync", "--store", store, "--hub", "hub.db")
            #expect(sync.stderr.contains("x.pdf"), "\(store)")
        }
        let other = isOtherLarge ? "264241152" : "5"
        #expect(try linked(in: "a.db", bench) == ["k0": ["263192576"], "k1": [isOtherLarge ? "0" : "5"]])
        #expect(try linked(in: "b.db", bench) == ["k0": ["0"], "k1": [other]])
        #expect(try bench.tool(exit: 0, "export", "--store", "b.db", "-o", "out").stderr.contains("other devices only"))
    }

    @Test func aFileThatGrowsTooLarge_isHeld_andSentWhenItIsSmallAgain() throws {
        let bench = try Workbench()
        try bench.write("l.bib", "@article{k, title={Work}, author={A}, file={:x.pdf:PDF}}\n")
        try bench.write("x.pdf", "first")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "l.bib", "--create", "--store", "a.db")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "sync", "--store", store, "--hub", "hub.db") }
        let file = "a.db.assets/Attachments/x.pdf"
        try bench.shell("truncate -s 251M \(file)")
        #expect(try bench.tool(exit: 3, "store", "adopt", "--store", "a.db").stderr.contains("250 MB"))
        for store in ["a.db", "b.db", "a.db"] { try bench.tool(exit: 3, "sync", "--store", store) }
        try bench.shell("rm \(file) && printf small-again > \(file)")
        try bench.tool(exit: 0, "store", "adopt", "--store", "a.db")
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "sync", "--store", store) }
        #expect(try bench.text("b.db.assets/Attachments/x.pdf") == "small-again")
    }
}
