import TestSupport
import Testing

/// A vault without its file `config`: the snapshots are there, and the password opens them.
@Suite struct CommandsLostConfigTests {
    @Test func aConfigurationThatIsLost_isMadeAgain_byWhoeverHasThePassword() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        let digest = try bench.digest()
        try bench.tool(exit: 0, "vault", "init", "--vault", "v")
        try bench.tool(exit: 0, "vault", "backup", "--vault", "v")
        try bench.shell("cp v/config kept; rm v/config")
        for command in ["vault check --vault v", "vault backup --vault v", "restore vault:v@latest --to out"] {
            let lost = try bench.tool(command.split(separator: " ").map(String.init))
            let said = lost.stderr
            #expect(lost.status == 4 && said.contains("v/config") && said.contains("vault init --resume"), "\(said)")
        }
        // Without --resume, and with another password, nothing is made.
        let plain = try bench.tool("vault", "init", "--vault", "v")
        #expect(plain.status == 1 && plain.stderr.contains("any copy of this vault"), "\(plain.stderr)")
        try bench.tool(
            exit: 12, "vault", "init", "--resume", "--vault", "v", environment: ["BACKUP_TOOL_PASSWORD": "other"])
        #expect(try !bench.exists("v/config"))
        try bench.tool(exit: 0, "vault", "init", "--resume", "--vault", "v")
        try bench.tool(exit: 0, "vault", "check", "--read-data", "--vault", "v")
        let all = "publications,notes,events,records,attachments,settings"
        try bench.tool(["restore", "vault:v@latest", "--create", "--store", "new.db", "--only", all])
        #expect(try bench.digest("new.db") == digest)
        try bench.tool(exit: 0, "vault", "backup", "--vault", "v")
        // The file from a copy does, too.
        try bench.shell("cp kept v/config")
        try bench.tool(exit: 0, "vault", "check", "--read-data", "--vault", "v")
    }

    @Test func aConfigurationThatIsDamaged_isMadeAgain_asTheMessageSays() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        try bench.shell(
            "$T vault init --vault v; $T vault backup --vault v; chmod u+w v/config; truncate -s -1 v/config")
        let said = try bench.tool(exit: 4, "vault", "check", "--vault", "v").stderr
        #expect(said.contains("move it out of the vault") && said.contains("vault init --resume"), "\(said)")
        try bench.shell("mv v/config aside; $T vault init --resume --vault v; $T vault check --read-data --vault v")
    }

    @Test func aKeyOfAnotherVault_makesNoConfiguration() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        for vault in ["v", "w"] { try bench.tool(exit: 0, "vault", "init", "--vault", vault) }
        try bench.tool(exit: 0, "vault", "backup", "--vault", "v")
        try bench.shell("rm v/config v/keys/*; cp w/keys/* v/keys/")
        let strange = try bench.tool("vault", "init", "--resume", "--vault", "v")
        #expect(strange.status != 0 && strange.stderr.contains("another vault"), "\(strange.stderr)")
        try bench.shell("rm v/keys/*")
        let keyless = try bench.tool("vault", "init", "--vault", "v")
        #expect(keyless.status != 0 && keyless.stderr.contains("keys"), "\(keyless.stderr)")
        #expect(try !bench.exists("v/config") && bench.files("v/keys").isEmpty)
    }

    /// A key that does not open may be damaged, and one that opens may be.
    @Test func aKeyThatIsDamaged_isNamed_andMadeAnew() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        try bench.shell("$T vault init --vault v; $T vault backup --vault v; cp -r v/keys good; chmod u+w v/keys/*")
        let key = try #require(try bench.files("v/keys").first)
        try bench.shell("sed -i 's/\"salt\":\"./\"salt\":\"Q/; t; s/x/y/' v/keys/*")
        let wrong = try bench.tool(exit: 12, "vault", "check", "--vault", "v").stderr
        #expect(wrong.contains("keys/\(key) cannot be used") && wrong.contains("from a copy"), "\(wrong)")
        try bench.shell("rm v/keys/*; cp good/* v/keys; chmod u+w v/keys/*")
        try bench.shell("sed -i 's/\"hostname\":\"./\"hostname\":\"Q/' v/keys/*")
        let opens = try bench.tool(exit: 4, "vault", "check", "--vault", "v").stderr
        #expect(
            opens.contains("keys/\(key): is not what was written") && opens.contains("vault key passwd"), "\(opens)")
        try bench.write("pw", "pw\n")
        try bench.shell("chmod 600 pw")
        try bench.tool(exit: 0, "vault", "key", "passwd", "--new-password-file", "pw", "--vault", "v")
        try bench.tool(exit: 0, "vault", "check", "--vault", "v")
    }

    /// Another key opens the vault, and goes on to do so.
    @Test func aDamagedKeyOfAnotherPassword_isRemovedByTheAdvice() throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        try bench.importSamples()
        try bench.write("pw2", "pw2\n")
        try bench.shell("chmod 600 pw2; $T vault init --vault v; $T vault backup --vault v")
        let first = try #require(try bench.files("v/keys").first)
        try bench.tool(exit: 0, "vault", "key", "add", "--new-password-file", "pw2", "--vault", "v")
        try bench.shell("chmod u+w v/keys/*; truncate -s 200 v/keys/\(first)")
        let words = ["--vault", "v", "--password-file", "pw2"]
        let told = try bench.tool(words: ["vault", "check"] + words, exit: 4).stderr
        #expect(told.contains("'backup-tool vault key remove \(first.prefix(8))"), "\(told)")
        #expect(!told.contains("key passwd"), "\(told)")
        try bench.tool(words: ["vault", "key", "remove", String(first.prefix(8))] + words, exit: 0)
        try bench.tool(words: ["vault", "check"] + words, exit: 0)
    }
}
