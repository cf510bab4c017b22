import TestSupport
import Testing

/// Files that somebody put into the store's folder and that the store does not know.
@Suite struct CommandsStrangerFileTests {
    let path = "Attachments/k.txt"

    func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{k, title={K}}\n")
        try bench.write("files/k.txt", "one\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        return bench
    }

    /// The database is lost, and its folder has a file that was changed since.
    @Test func aFileInTheWayOfARestore_isKeptBesideIt() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -f store.db store.db-*; echo mine >> store.db.assets/\(path)")
        let restore = ["restore", "b.zip"]
        let planned = try bench.tool(restore + ["--dry-run"])
        #expect(try planned.status == 3 && !bench.exists("store.db"), "\(planned.stderr)")
        #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
        let done = try bench.tool(restore)
        #expect(done.status == 3, "\(done.stderr)")
        let kept = try #require(done.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        #expect(planned.stderr.contains(kept), "\(planned.stderr)")
        func expectBoth() throws {
            #expect(try bench.text("store.db.assets/\(path)") == "one\n")
            #expect(try bench.text("store.db.assets/\(kept)") == "one\nmine\n")
            try bench.tool(exit: 0, "store", "check")
        }
        try expectBoth()
        let digest = try bench.digest()
        for _ in 0..<2 {
            try bench.tool(exit: 0, "undo")
            #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
            #expect(try !bench.exists("store.db.assets/\(kept)"))
            try bench.tool("undo", "--redo")
            try expectBoth()
            #expect(try bench.digest() == digest)
        }
        let command = try #require(done.stderr.firstMatch(of: /'(cp [^']+)' and then '(backup-tool store adopt)'/))
        try bench.shell("\(command.1); $T store adopt")
        #expect(try bench.text("store.db.assets/\(path)") == "one\nmine\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aFileInTheWayOfASync_isKeptBesideIt() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db")
        try bench.write("b.db.assets/\(path)", "mine\n")
        try bench.tool(exit: 0, "store", "init", "--store", "b.db")
        let planned = try bench.tool(exit: 3, "sync", "--store", "b.db", "--hub", "hub.db", "--dry-run")
        let done = try bench.tool(exit: 3, "sync", "--store", "b.db", "--hub", "hub.db")
        let kept = try #require(done.stderr.firstMatch(of: /kept as (Attachments\/k_conflict_[^\n ]+)/)).1
        #expect(planned.stderr.contains(kept), "\(planned.stderr)")
        #expect(try bench.text("b.db.assets/\(path)") == "one\n")
        #expect(try bench.text("b.db.assets/\(kept)") == "mine\n")
        try bench.tool(exit: 0, "sync", "--store", "b.db")
        try bench.tool(exit: 0, "sync")
        #expect(try bench.digest("b.db") == bench.digest())
    }

    /// A link in the place of a file is not followed, and costs nothing else.
    @Test func aLinkInTheWayOfARestore_costsItselfOnly() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.shell("rm -f store.db store.db-*; ln -sf /etc/hostname store.db.assets/\(path)")
        let done = try bench.tool(exit: 3, "restore", "b.zip")
        #expect(done.stderr.contains("make room at store.db.assets/\(path)"), "\(done.stderr)")
        try bench.tool(exit: 0, "export", "-o", "c.zip")
        #expect(try bench.tool(exit: 0, "show", "c.zip", path).stdout == "one\n")
    }
}
