import TestSupport
import Testing

/// What stands in the folder of attachments and is nothing of the store's: it is named, left alone and never gone through.
@Suite struct CommandsAssetLinkTests {
    private let file = "store.db.assets/Attachments/k.txt"

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@article{k,title={K},author={A}}\n")
        try bench.write("x.bib", "@misc{x,title={X}}\n")
        try bench.write("files/k.txt", "one\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib", "--attachments", "files")
        try bench.tool(exit: 0, "export", "-o", "b.zip")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell(
            "mkdir mine; echo 'not the store`s' > mine/k.txt; touch -d 2020-01-01 mine/k.txt; ls -l mine > was")
        return bench
    }

    private func expectUntouched(_ bench: Workbench, _ what: String) throws {
        #expect(try bench.shell("ls -l mine") == bench.text("was"), "\(what)")
    }

    @Test(arguments: [
        "store repair --from b.zip", "restore b.zip --mode replace", "restore b.zip", "undo", "store adopt",
        "store adopt --new", "sync --hub hub.db", "import a.bib --attachments files --overwrite",
        "store repair --accept",
        "import x.bib", "store purge --deleted-before 2999-01-01 --with-files --confirm",
    ])
    func aFolderThatIsALink_isNeverGoneThrough(command: String) throws {
        let bench = try bench()
        if command.contains("purge") {
            try bench.shell(
                "$T -q store delete $(sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'Publication'\")")
        }
        try bench.shell("rm -r store.db.assets/Attachments; ln -s ../mine store.db.assets/Attachments")
        for _ in 0..<2 {
            let done = try bench.tool(command.split(separator: " ").map(String.init))
            try expectUntouched(bench, command)
            let said = done.stderr + done.stdout
            let isRepair = command.contains("--from") && done.status != 0
            #expect(!isRepair || said.contains("store.db.assets/Attachments"), "\(said)")
            if command.contains("purge") { #expect(done.status == 1 && said.contains("link"), "\(said)") }
        }
        let check = try bench.tool("store", "check")
        #expect([3, 4].contains(check.status) && check.stderr.contains("Attachments: "), "\(check.stderr)")
        try bench.shell("rm store.db.assets/Attachments")
        if command.contains("purge") {
            try bench.tool(exit: 0, "store", "purge", "--confirm")
        } else {
            try bench.tool("store", "repair", "--from", "b.zip")
            try bench.tool(exit: 0, "restore", "b.zip", "--mode", "replace")
        }
        try bench.tool(exit: 0, "store", "check")
        try expectUntouched(bench, command)
    }

    @Test(arguments: ["mv $F mine/k.txt; ln -s ../../mine/k.txt $F", "mv $F mine/k.txt; mkdir $F; touch $F/x"])
    func aPurgedFileThatMayLieElsewhere_isNamed(move: String) throws {
        let bench = try bench()
        let id = "SELECT local_id FROM record WHERE type = 'Publication'"
        try bench.shell("$T -q store delete $(sqlite3 store.db \"\(id)\")")
        try bench.shell("rm mine/*; F=\(file); \(move)")
        let purge = ["store", "purge", "--deleted-before", "2999-01-01", "--with-files", "--confirm"]
        let told = try bench.tool(words: purge, exit: 1).stderr
        #expect(
            told.contains("\(file): ") && told.contains(": is a ")
                && told.contains("remove Attachments/k.txt where it lies"), "\(told)")
        #expect(try bench.text("mine/k.txt") == "one\n")
        try bench.shell("rm -r \(file) mine")
        try bench.tool(exit: 0, "store", "purge", "--confirm")
        try bench.tool(exit: 0, "store", "check")
    }

    /// The bytes come into the store all the same, so that exports have them.
    @Test(
        arguments: ["store repair --from b.zip", "restore b.zip --mode replace"],
        ["ln -s ../mine store.db.assets/Attachments", "cp mine/k.txt store.db.assets/Attachments"])
    func aFileThatCannotLieInItsFolder_waitsForRoom(command: String, obstacle: String) throws {
        let bench = try bench()
        try bench.shell("rm -r store.db.assets/Attachments; \(obstacle)")
        let done = try bench.tool(command.split(separator: " ").map(String.init))
        #expect(
            done.status == 3 && done.stderr.contains("make room at store.db.assets/Attachments, then"), "\(done.stderr)"
        )
        let found = try bench.tool("store", "check").stderr
        #expect(found.contains("make room at store.db.assets/Attachments, then"), "\(found)")
        try bench.tool("export", "-o", "c.zip")
        #expect(try bench.tool(exit: 0, "show", "c.zip", "Attachments/k.txt").stdout == "one\n")
        try bench.shell("rm store.db.assets/Attachments")
        try bench.tool(exit: 0, "import", "x.bib")
        #expect(try bench.text(file) == "one\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aFolderOfBlobsThatIsALink_stopsWriters_andNothingBehindItGoes() throws {
        let bench = try bench()
        try bench.shell("rm -r store.db.assets/.blobs; ln -s ../mine store.db.assets/.blobs")
        for words in [["undo"], ["import", "x.bib"], ["store", "repair"], ["restore", "b.zip"]] {
            let done = try bench.tool(words)
            #expect(done.status == 1 && done.stderr.contains(".blobs: is a link"), "\(words): \(done.stderr)")
            try expectUntouched(bench, "\(words)")
        }
        let check = try bench.tool(exit: 3, "store", "check")
        #expect(check.stderr.contains(".blobs: a link stands"), "\(check.stderr)")
        try bench.tool(exit: 0, "export", "-o", "c.zip")
        for other in ["true", "touch store.db.assets/.blobs"] {
            try bench.shell("rm -r store.db.assets/.blobs; \(other)")
            if other != "true" {
                try bench.tool(exit: 3, "store", "check")
                try bench.tool(exit: 0, "export", "-o", "d.zip")
                try bench.tool(exit: 1, "undo")
                try bench.shell("rm store.db.assets/.blobs")
            }
            try bench.tool(exit: 0, "import", "a.bib")
            try bench.tool(exit: 0, "store", "check")
        }
    }

    @Test func aLinkInAHubsFolder_costsItsFileOnly() throws {
        let bench = try bench()
        try bench.shell("mkdir -p hub.db.assets; ln -s ../mine hub.db.assets/$(sha256sum files/k.txt | cut -c1-2)")
        let done = try bench.tool(exit: 3, "sync", "--hub", "hub.db")
        #expect(
            done.stderr.contains("stays on this device") && done.stderr.contains("hub.db.assets/"), "\(done.stderr)")
        try expectUntouched(bench, "sync")
        try bench.shell("rm hub.db.assets/*")
        try bench.tool(exit: 0, "sync")
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        try bench.tool(exit: 0, "sync", "--store", "other.db", "--hub", "hub.db")
        #expect(try bench.text("other.db.assets/Attachments/k.txt") == "one\n")
    }

    /// What a NAS or a person puts beside the bytes of an undo.
    @Test func whatIsNotOurs_amongTheBlobs_isLeftAlone() throws {
        let bench = try bench()
        let list = "cd store.db.assets/.blobs; ls -d @eaDir mine notes.txt pipe"
        try bench.shell(
            "cd store.db.assets/.blobs; mkdir @eaDir; ln -s ../../mine mine; echo x > notes.txt; mkfifo pipe")
        for words in [
            ["import", "a.bib"], ["import", "x.bib"], ["undo"], ["restore", "b.zip"],
            ["store", "repair", "--from", "b.zip"],
            ["store", "adopt"], ["export", "-o", "c.zip"], ["store", "check"],
        ] {
            try bench.tool(words)
            let done = try bench.tool(words + (words[0] == "export" ? ["--force"] : []))
            #expect(words == ["undo"] || done.status == 0, "\(words): \(done.stderr)")
            try bench.shell(list)
        }
        try expectUntouched(bench, "blobs")
    }

    /// Of a version that an undo needs, or of the file itself.
    @Test(arguments: ["mkfifo", "mkdir", "ln -s /etc/hostname"])
    func whatHasTheNameOfBytes_hidesNoSoundFile(kind: String) throws {
        let bench = try bench()
        let digest = try bench.shell("sha256sum < files/k.txt | cut -c1-64").prefix(64)
        try bench.shell("\(kind) store.db.assets/.blobs/\(digest)")
        let check = try bench.tool(exit: 3, "store", "check")
        #expect(check.stderr.contains(".blobs/\(digest): ") && !check.stderr.contains("k.txt"), "\(check.stderr)")
        try bench.tool(exit: 0, "export", "-o", "c.zip")
        #expect(try bench.tool(exit: 0, "show", "c.zip", "Attachments/k.txt").stdout == "one\n")
        for _ in 0..<2 { try bench.tool(exit: 0, "restore", "b.zip") }
        // An undo would need that name, and says so.
        let undo = try bench.tool(exit: 1, "undo", "--batch", "1")
        #expect(
            undo.stderr.contains(".blobs/\(digest): is a") && undo.stderr.contains("move it away"), "\(undo.stderr)")
        #expect(try bench.text(file) == "one\n")
        try bench.shell("mv store.db.assets/.blobs/\(digest) away")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "undo", "--batch", "1")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.text(file) == "one\n")
    }

    @Test func aFolderInThePlaceOfTheIdleNote_stopsNoCommandThatIsDone() throws {
        let bench = try bench()
        try bench.shell("rm -f store.db-idle; mkdir -p store.db-idle/x")
        try bench.tool(exit: 0, "import", "x.bib")
        try bench.tool(exit: 0, "undo")
        // This one changes nothing, and cannot note that: the next undo would take back another one.
        let idle = try bench.tool(exit: 1, "import", "a.bib")
        #expect(idle.stderr.contains("store.db-idle: is a folder") && idle.stderr.contains("move it"), "\(idle.stderr)")
        try bench.shell("mv store.db-idle away")
        try bench.tool(exit: 0, "import", "a.bib")
        #expect(try bench.exists("store.db-idle"))
    }
}
