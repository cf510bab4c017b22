import TestSupport
import Testing

@testable import BackupKit

/// A repair says what is wrong with attachments, ends it, and goes in no circle.
@Suite struct CommandsHarmedFilesTests {
    private static let file = "store.db.assets/Attachments/k1.txt"
    /// As a disk does it: the time stays.
    private static let rot = "touch -r \(file) t; printf 'tezt\\n' > \(file); touch -r t \(file)"

    private func bench(_ environment: [String: String] = [:]) throws -> Workbench {
        let bench = try Workbench(environment)
        try bench.write("a.bib", "@misc{k1, title={One}, file={k1.txt}}\n@misc{k2, title={Two}}\n")
        try bench.write("k1.txt", "text\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "good.zip")
        return bench
    }

    @Test func aDamagedFile_isLeft_untilItIsTakenAsItIs() throws {
        let bench = try bench()
        try bench.shell(Self.rot)
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("'backup-tool store repair --accept'"))
        for words in [["store", "repair"], ["store", "repair", "--dry-run"]] {
            let told = try bench.tool(words)
            #expect(told.status == 4 && told.stderr.contains("Attachments/k1.txt"), "\(words): \(told)")
            #expect(told.stderr.contains("'backup-tool store repair --accept' takes it as it is"), "\(told.stderr)")
        }
        let left = try bench.json(exit: 4, "store", "repair")["left"]?.array?.first
        #expect(left?["path"]?.string == "Attachments/k1.txt" && left?["code"]?.string == "digest-mismatch")
        let plan = try bench.tool(exit: 0, "store", "repair", "--accept", "--dry-run")
        try bench.tool(exit: 4, "store", "check")
        let done = try bench.tool(exit: 0, "store", "repair", "--accept")
        #expect(plan.stdout == done.stdout && done.stdout.contains("was taken as it is"), "\(done.stdout)")
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "export", "-o", "after.zip")
        #expect(try bench.text(Self.file) == "tezt\n")
        // Only this step can be undone.
        #expect(try bench.tool(exit: 3, "undo").stderr.contains("Took back the repair"))
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 0, "restore", "good.zip")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.text(Self.file) == "text\n")
    }

    /// An app has written more into it, so soon that the time says nothing.
    @Test func aRepairLeavesWhatAnAppHasWritten() throws {
        let bench = try bench()
        try bench.shell("touch -r \(Self.file) t; echo mine >> \(Self.file); touch -r t \(Self.file)")
        let plan = try bench.tool(exit: 3, "store", "repair", "--from", "good.zip", "--dry-run").stderr
        let done = try bench.tool(exit: 3, "store", "repair", "--from", "good.zip").stderr
        for told in [plan, done] {
            #expect(told.contains("its file has 10 bytes instead of 5") && told.contains("'backup-tool store adopt'"))
        }
        #expect(try bench.text(Self.file) == "text\nmine\n")
        try bench.tool(exit: 0, "store", "adopt")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.text(Self.file) == "text\nmine\n")
    }

    @Test func aDamagedFileThatTheHubHas_comesBackFromThere() throws {
        let bench = try bench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync")
        try bench.shell(Self.rot)
        #expect(try bench.tool(exit: 0, "store", "repair", "--accept").stdout.contains("from the hub"))
        try bench.tool(exit: 0, "sync")
        #expect(try bench.text(Self.file) == "text\n")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aBackupThatLacksTheFile_isNotAskedAgain() throws {
        let bench = try bench()
        try bench.tool(exit: 0, "export", "-o", "without.zip", "--only", "publications")
        try bench.shell(Self.rot)
        let told = try bench.tool(exit: 4, "store", "repair", "--from", "without.zip").stderr
        #expect(
            told.contains("this backup does not have it") && told.contains("name another backup with --from"), "\(told)"
        )
        #expect(!told.contains("--from BACKUP"), "\(told)")
        // A backup of the damage mends nothing.
        try bench.tool(exit: 4, "export", "-o", "bad.zip")
        try bench.tool(exit: 4, "store", "repair", "--from", "bad.zip")
        #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("Attachments/k1.txt"))
    }

    /// The row and what was noted of it agree, as another program leaves them; the file is sound.
    @Test(arguments: ["good.zip", "copy.db"], [", size = 7", ""])
    func aWrongDigest_isSetRight_byTheBackupThatHasTheFile(backup: String, also: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("cp store.db copy.db; cp -rp store.db.assets copy.db.assets")
        let zeros = String(repeating: "0", count: 64)
        try bench.shell("sqlite3 store.db \"UPDATE asset SET sha256 = '\(zeros)'\(also)\"")
        try bench.tool(exit: 4, "store", "check")
        try bench.tool(exit: 4, "store", "repair")
        let plan = try bench.tool(exit: 0, "store", "repair", "--from", backup, "--dry-run")
        try bench.tool(exit: 4, "store", "check")
        let done = try bench.tool(exit: 0, "store", "repair", "--from", backup)
        #expect(plan.stdout == done.stdout && done.stdout.contains("has the digest of its file again"), "\(done)")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
    }

    @Test(arguments: [", size = 7", ", size = 3", ""])
    func aWrongDigest_makesNoConflict(also: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        let zeros = String(repeating: "0", count: 64)
        try bench.shell("sqlite3 store.db \"UPDATE asset SET sha256 = '\(zeros)'\(also)\"")
        let plan = try bench.json(exit: 0, "restore", "good.zip", "--match", "k1.txt", "--dry-run")
        #expect(plan["conflicts"]?.integer ?? 0 == 0, "\(plan)")
        let told = try bench.tool(exit: 0, "restore", "good.zip", "--match", "k1.txt")
        #expect(!told.stderr.contains("conflict"), "\(told.stderr)")
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.digest() == digest)
        #expect(try !bench.files("store.db.assets").contains { $0.contains("conflict") })
        // A file that an app has saved is another one.
        try bench.shell("echo more >> \(Self.file); touch -d '2030-01-01' \(Self.file)")
        try bench.tool(exit: 0, "store", "adopt")
        #expect(try bench.tool(exit: 3, "restore", "good.zip").stderr.contains("differs from the file of that name"))
        #expect(try bench.text(Self.file) == "text\nmore\n")
    }

    @Test func aWrongDigest_isNotSetRight_byABackupOfTheDamage() throws {
        let bench = try bench()
        try bench.shell(Self.rot)
        try bench.shell("cp store.db copy.db; cp -rp store.db.assets copy.db.assets")
        try bench.tool(exit: 4, "export", "-o", "bad.zip")
        for backup in ["bad.zip", "copy.db"] {
            try bench.tool(exit: 4, "store", "repair", "--from", backup)
            #expect(try bench.tool(exit: 4, "store", "check").stderr.contains("Attachments/k1.txt"))
        }
    }

    /// Nothing in the store says any more that the file was here; its record does.
    @Test(arguments: ["good.zip", "copy.db"])
    func aFileThatLostItsRow_comesBackFromABackup(_ backup: String) throws {
        let bench = try bench()
        let digest = try bench.digest()
        try bench.shell("cp store.db copy.db; cp -rp store.db.assets copy.db.assets")
        try bench.shell("sqlite3 store.db 'DELETE FROM asset'; rm \(Self.file)")
        let plan = try bench.tool(exit: 0, "store", "repair", "--from", backup, "--dry-run")
        let done = try bench.tool(exit: 0, "store", "repair", "--from", backup)
        #expect(plan.stdout == done.stdout && done.stdout.contains("Attachments/k1.txt: is back"), "\(done)")
        #expect(try bench.text(Self.file) == "text\n" && bench.digest() == digest)
        try bench.tool(exit: 0, "store", "check")
        #expect(try bench.tool(exit: 0, "store", "repair", "--from", backup).stderr.contains("0 repairs"))
        // What no record links was removed on purpose, or is of another library.
        try bench.tool(exit: 0, "store", "init", "--store", "other.db")
        #expect(try bench.tool("store", "repair", "--store", "other.db", "--from", backup).stderr.contains("0 repairs"))
    }

    @Test(arguments: ["good.zip", "copy.db"])
    func anUndo_stepsOverARepair(_ backup: String) throws {
        let bench = try bench()
        try bench.write("b.bib", "@misc{k3, title={Three}}\n")
        try bench.tool(exit: 0, "import", "b.bib")
        try bench.tool(exit: 0, "undo")
        try bench.shell("cp store.db copy.db; cp -rp store.db.assets copy.db.assets")
        for harm in ["rm \(Self.file)", Self.rot] {
            try bench.shell(harm)
            try bench.tool(exit: 0, "store", "repair", "--from", backup)
        }
        let list = try bench.tool(exit: 0, "undo", "--list").stdout
        #expect(!list.contains("repair") && !list.contains("mend"), "\(list)")
        // Nor does it end a redo.
        #expect(try bench.tool(exit: 0, "undo", "--redo").stderr.contains("import of b.bib: 2 records"))
        try bench.tool(exit: 0, "undo")
        #expect(try bench.tool(exit: 0, "undo").stderr.contains("Took back the import of a.bib"))
        #expect(try !bench.exists(Self.file))
        try bench.tool(exit: 0, "store", "check")
        try bench.tool(exit: 0, "undo", "--redo")
        #expect(try bench.text(Self.file) == "text\n")
        try bench.tool(exit: 0, "store", "check")
    }
}
