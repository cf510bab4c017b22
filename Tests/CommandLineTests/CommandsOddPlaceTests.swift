import BackupKit
import TestSupport
import Testing

/// A folder, link or pipe where a file of the store belongs.
struct CommandsOddPlaceTests {
    private static func bench() throws -> Workbench {
        let bench = try CommandsVaultTests.bench()
        try bench.importSamples()
        try bench.makeCheapVault()
        try bench.tool(exit: 0, "export", "-o", "e")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell("mkdir keep; cp -a store.db* keep")
        return bench
    }

    private static let writing = [
        "restore e", "import late.bib", "sync --hub hub.db", "store repair", "store adopt", "undo",
    ]
    private static let reading = ["store check", "store info", "export -o x", "vault backup", "store digest"]

    @Test(arguments: [
        ("rm -rf store.db*; mkdir store.db", "store.db: is a folder", true),
        ("rm -rf store.db*; mkfifo store.db", "store.db: is not a store", true),
        ("rm -rf store.db*; ln -s nowhere store.db", "store.db: is a link to 'nowhere'", true),
        ("rm -f store.db-*; mkdir store.db-wal", "store.db-wal: is a folder in the place of a file", true),
        ("rm -f store.db-*; mkfifo store.db-wal", "store.db-wal: is a pipe in the place of a file", true),
        ("rm -f store.db-*; mkdir store.db-shm", "store.db-shm: is a folder in the place of a file", true),
        ("rm -rf store.db.assets; echo x > store.db.assets", "store.db.assets: is a file, and not the folder", false),
        ("rm -rf store.db.assets; mkfifo store.db.assets", "store.db.assets: is a pipe, and not the folder", false),
        ("rm -rf store.db.assets; ln -s no store.db.assets", "store.db.assets: is a link to 'no'", false),
    ])
    func whatLiesInThePlaceOfTheStore_isNamedByAll(make: String, message: String, isForReaders: Bool) throws {
        let bench = try Self.bench()
        try bench.write("late.bib", "@misc{late, title={Too Late}}\n")
        try bench.shell(make)
        for line in Self.writing + (isForReaders ? Self.reading : []) {
            let result = try bench.tool(line.split(separator: " ").map(String.init))
            #expect([1, 10].contains(result.status), "\(line): \(result.status) \(result.stderr)")
            #expect(result.stderr.contains(message), "\(line): \(result.stderr)")
        }
        if make.contains("ln -s nowhere") { #expect(try bench.exists("store.db") && !bench.exists("nowhere")) }
        guard !isForReaders else { return }
        #expect(try bench.tool("store", "check").status == 4)
        #expect(try bench.tool("export", "-o", "x").status == 3)
        #expect(try bench.tool("vault", "backup").status == 3)
    }

    @Test(arguments: [
        ("rm hub.db; ln -s nowhere hub.db", "hub.db: is a link to 'nowhere'"),
        ("mkdir hub.db-wal", "hub.db-wal: is a folder in the place of a file of hub.db"),
        ("rm hub.db; mkfifo hub.db", "hub.db: is not a hub"), ("rm hub.db; mkdir hub.db", "hub.db: is not a hub"),
    ])
    func whatLiesInThePlaceOfTheHub_isNamed(make: String, message: String) throws {
        let bench = try Self.bench()
        try bench.shell(make)
        let result = try bench.tool("sync", "--hub", "hub.db")
        #expect([1, 10].contains(result.status) && result.stderr.contains(message), "\(result.stderr)")
    }

    @Test(arguments: ["mkdir", "mkfifo", "ln -s nowhere"])
    func whatLiesInThePlaceOfAnAttachment_isNamed_andTheAdviceWorks(make: String) throws {
        let bench = try Self.bench()
        let file = "store.db.assets/Attachments/scan0042.pdf"
        try bench.shell("rm \(file); \(make) \(file)")
        let check = try bench.tool(exit: 4, "store", "check")
        #expect(check.stderr.contains("scan0042.pdf: its file is missing: "), "\(check.stderr)")
        #expect(check.stderr.contains("is in its place\n  move that away"), "\(check.stderr)")
        try bench.tool(exit: 3, "export", "-o", "x")
        try bench.tool(exit: 3, "vault", "backup")
        try bench.tool(exit: 3, "sync", "--hub", "hub.db")
        // An empty folder makes room.
        let restored = try bench.tool("restore", "e").status
        #expect(try restored == bench.tool("store", "check").status || restored == 3)
        try bench.shell("rm -rf store.db*; cp -a keep/. .; rm \(file); \(make) \(file); mv \(file) away")
        try bench.tool(exit: 0, "store", "repair", "--from", "e")
        try bench.tool(exit: 0, "store", "check")
    }
}
