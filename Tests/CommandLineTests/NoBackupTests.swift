import TestSupport
import Testing

/// People name what is no backup, or no place for one.
@Suite struct NoBackupTests {
    @Test(arguments: ["notes.md", "scan.pdf", "store.db", "folder"], ["verify", "list", "restore", "drill"])
    func whatIsNoBackup_isNoDamage(name: String, command: String) throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init")
        try bench.write("notes.md", "# Notes\n\nNothing else.\n")
        try bench.write("scan.pdf", "%PDF-1.7\n")
        try bench.write("folder/thesis.txt", "thesis")
        // The files of any folder can be listed.
        if name == "folder", command == "list" { return }
        let said = try bench.tool(exit: 10, [command, name] + (command == "drill" ? ["--log", "drills.jsonl"] : []))
        #expect(!said.stderr.contains("damage:") && !said.stderr.contains("failed:"), "\(said.stderr)")
        #expect(try bench.shell("ls").contains("drills.jsonl") == false)
    }

    @Test func theFolderOfAVault_isNamedAsThat() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret", "BACKUP_TOOL_VAULT": "v"])
        try bench.makeCheapVault()
        for command in ["drill", "verify", "restore"] {
            #expect(try bench.tool(exit: 10, command, "v").stderr.contains("write vault:v"), "\(command)")
        }
    }

    @Test func aVaultIsNotMadeAmongOtherFiles() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret"])
        try bench.write("documents/thesis.txt", "thesis")
        let said = try bench.tool(exit: 1, "vault", "init", "--vault", "documents")
        #expect(said.stderr.contains("documents/vault"), "\(said.stderr)")
        #expect(try bench.shell("ls -A documents") == "thesis.txt\n")
        try bench.shell("mkdir -p disk/lost+found")
        try bench.tool(exit: 0, "vault", "init", "--vault", "disk")
    }

    @Test func whatIsThereAndNoHub_isNotRecommendedAsOne() throws {
        let bench = try Workbench()
        try bench.tool(exit: 0, "store", "init")
        #expect(try bench.tool(exit: 1, "hub", "init", "store.db").stderr.contains("is not a hub"))
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        #expect(try bench.tool(exit: 1, "hub", "init", "hub.db").stderr.contains("is a hub already"))
    }

    /// The owner is who the store syncs as, when nobody is named.
    @Test func aZoneIsSharedByWhoTheStoreSyncsAs() throws {
        let bench = try Workbench()
        try bench.write("day.jsonl", #"{"time":"2026-02-14T15:00:00+01:00","type":"moment"}"# + "\n")
        try bench.tool(exit: 0, "events", "import", "--create", "day.jsonl")
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--user", "ann")
        try bench.tool(exit: 0, "store", "share", "OllieEvents", "--with", "ben")
    }
}
