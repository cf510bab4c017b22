import BackupKit
import TestSupport
import Testing

/// Which cite keys the order of a file may list: none that a purge has removed, and on a hub none of what is kept on one
/// device.
@Suite struct CommandsOrderKeysTests {
    private static func entry(_ key: String, _ title: String) -> String {
        "@article{\(key), title={\(title)}, author={Ann B}, year={2001}}\n"
    }

    private func id(_ bench: Workbench, _ title: String, _ store: String = "store.db") throws -> String {
        let sql = "SELECT 'Library/' || local_id FROM record WHERE fields LIKE '%\(title)%' AND type = 'Publication'"
        return String(try bench.shell("sqlite3 \(store) \"\(sql)\"").dropLast())
    }

    private func orders(_ bench: Workbench, _ store: String = "store.db") throws -> String {
        let sql = "SELECT fields FROM record WHERE fields LIKE '%\\\"order\\\"%' AND deleted_at IS NULL ORDER BY 1"
        return try bench.shell("sqlite3 \(store) \"\(sql)\"")
    }

    /// A replace comes to rest at once, whoever else has the key while it runs, and the hub does not hear of it.
    @Test(
        arguments: [("purged", "bak.tar"), ("purged", "bak.zip"), ("kept", "bak.tar"), ("kept", "bak.zip")],
        ["none", "twin", "kept twin"])
    func aReplaceBringsNoUnwantedKeyBack(of: (what: String, backup: String), other: String) throws {
        let (what, backup) = of
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry("secretkey", "Alpha") + Self.entry("k2", "Beta"))
        try bench.write("b.bib", Self.entry("secretkey", "Gamma"))
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        // A backup of imbib has no records, and its .bib file says the order.
        try bench.tool(["export", "-o", backup] + (backup == "bak.zip" ? ["--format", "imbib"] : []))
        let alpha = try id(bench, "Alpha")
        if what == "purged" {
            try bench.tool(exit: 0, "store", "delete", alpha)
            try bench.tool(exit: 0, "store", "purge", alpha, "--confirm")
        } else {
            try bench.tool(exit: 0, "store", "set-local", alpha)
        }
        if other != "none" { try bench.tool("import", "b.bib") }
        if other == "kept twin" { try bench.tool(exit: 0, "store", "set-local", try id(bench, "Gamma")) }
        try bench.tool("restore", backup, "--mode", "replace")
        // The order of b.bib may stay with a backup of imbib, which does not say which files there were.
        func hasKey(_ text: String) -> Bool {
            text.split(separator: "\n").contains { $0.contains("a.bib") && $0.contains("secretkey") }
        }
        let (digest, said) = (try bench.digest(), try orders(bench))
        #expect(!hasKey(said), "\(said)")
        let again = try bench.tool("restore", backup, "--mode", "replace", "-v")
        #expect(try bench.digest() == digest, "\(again.stdout)")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool("sync", "--hub", "hub.db")
        #expect(try !hasKey(bench.shell("sqlite3 hub.db .dump")))
        try bench.tool(exit: 0, "store", "check")
    }

    /// Another device has a key in the order of its file that belongs here to what is kept on this device.
    @Test func anExport_restoresToItsDigest_whateverItsOrdersList() throws {
        let bench = try Workbench()
        for name in ["a", "b"] { try bench.write("\(name).bib", Self.entry("k3", "Study")) }
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "import", "--create", "b.bib")
        try bench.tool(exit: 0, "store", "set-local", try id(bench, "Study"))
        try bench.tool(exit: 0, "import", "--create", "--store", "a.db", "a.bib")
        try bench.tool(exit: 0, "sync", "--store", "a.db", "--hub", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        #expect(try orders(bench).contains("k3"))
        try bench.tool(exit: 0, "export", "-o", "out.tar")
        try bench.tool(exit: 0, "verify", "--level", "deep", "out.tar")
        for mode in ["merge", "replace"] {
            let new = "\(mode).db"
            try bench.tool(exit: 0, "restore", "out.tar", "--create", "--store", new, "--mode", mode)
            #expect(try bench.digest(new) == bench.digest())
            try bench.tool(exit: 0, "restore", "out.tar", "--store", new, "--mode", "replace")
            #expect(try bench.digest(new) == bench.digest())
            // A new hub never hears of it.
            try bench.tool(exit: 0, "hub", "init", "\(mode).hub")
            try bench.tool(exit: 0, "sync", "--store", new, "--hub", "\(mode).hub")
            #expect(try !bench.shell("sqlite3 \(mode).hub .dump").contains("k3"))
            let digest = try bench.digest(new)
            try bench.tool(exit: 0, "sync", "--store", new)
            #expect(try bench.digest(new) == digest)
        }
        // Also here: what the undo of an import brings back stays on this device.
        try bench.write("b.bib", Self.entry("k4", "More") + Self.entry("k3", "Study"))
        try bench.tool(exit: 0, "import", "b.bib")
        try bench.tool(exit: 0, "sync")
        try bench.tool(exit: 0, "sync", "--store", "a.db")
        #expect(try bench.shell("sqlite3 hub.db .dump").matches(of: /key:k3/).count == 1)
    }

    /// Two devices do at random what has to do with keys. After each step the export of either restores to its digest, and
    /// a replace that is repeated changes nothing.
    @Test(arguments: testSeeds(isTorture ? 60 : 3))
    func afterAnyHistory_anExportRestoresToItsDigest(seed: UInt64) throws {
        countRounds()
        var random = SeededGenerator(seed: seed)
        let bench = try Workbench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        for store in ["a.db", "b.db"] { try bench.tool(exit: 0, "store", "init", "--store", store) }
        var steps: [String] = []
        for _ in 0..<10 {
            let store = ["a.db", "b.db"][random.below(2)]
            func run(_ words: String...) throws {
                steps.append("\(store): \(words.joined(separator: " "))")
                try bench.tool(words + ["--store", store])
            }
            func some() throws -> String? {
                let sql = "SELECT zone || '/' || ifnull(name, local_id) FROM record WHERE type = 'Publication' "
                let ids = try bench.shell("sqlite3 \(store) \"\(sql) ORDER BY 1\"").split(separator: "\n")
                return ids.isEmpty ? nil : String(ids[random.below(ids.count)])
            }
            switch random.below(8) {
            case 0, 1:
                let file = ["l.bib", "m.bib"][random.below(2)]
                let entries = ["k1", "k2", "k3"].filter { _ in random.below(2) == 0 }
                    .map { Self.entry($0, ["One", "Two"][random.below(2)] + $0) }
                try bench.write(file, entries.isEmpty ? Self.entry("k9", "Nine") : entries.joined())
                try run("import", file)
            case 2: if let id = try some() { try run("store", "set-local", id) }
            case 3: if let id = try some() { try run("store", "delete", id) }
            case 4: if let id = try some() { try run("store", "purge", id, "--confirm") }
            case 5: try run("undo")
            case 6 where try bench.exists("bak.tar"): try run("restore", "bak.tar", "--mode", "replace")
            default: try run("sync", "--hub", "hub.db")
            }
            try bench.tool(exit: 0, "export", "--store", store, "-o", "now.tar", "--force")
            let told = try bench.tool("verify", "--level", "deep", "now.tar")
            #expect(told.status == 0, "\(steps) \(told.stdout)\(told.stderr)")
            if random.below(3) == 0 { try bench.shell("mv now.tar bak.tar") }
        }
        guard try bench.exists("bak.tar") else { return }
        for store in ["a.db", "b.db"] {
            let replace = ["restore", "bak.tar", "--mode", "replace", "--store", store]
            try bench.tool(replace)
            let digest = try bench.digest(store)
            let told = try bench.tool(replace + ["-v"])
            #expect(try bench.digest(store) == digest, "\(steps) \(told.stdout)")
            try bench.tool("store", "check", "--store", store)
        }
    }
}
