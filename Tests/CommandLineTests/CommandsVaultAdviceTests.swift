import TestSupport
import Testing

/// A vault that is missing is made by the command that the message prints, wherever the vault was named.
@Suite struct CommandsVaultAdviceTests {
    @Test(
        arguments: [
            "export -o vault:my\\ vault", "diff vault:my\\ vault store.db", "diff store.db vault:my\\ vault",
            "diff vault:v vault:my\\ vault", "store repair --from vault:my\\ vault", "list vault:my\\ vault",
            "store purge k --source vault:my\\ vault", "store purge k --source vault:v --source vault:my\\ vault",
            "vault backup --vault my\\ vault", "verify vault:my\\ vault@latest", "drill vault:my\\ vault",
        ], ["", "other"])
    func aMissingVault_isMadeAsAdvised(line: String, usual: String) throws {
        var environment = ["BACKUP_TOOL_PASSWORD": "secret"]
        if !usual.isEmpty { environment["BACKUP_TOOL_VAULT"] = usual }
        let bench = try Workbench(environment)
        try bench.makeCheapVault()
        try bench.shell("$T -q store init; $T -q vault backup --vault v")
        let told = try bench.shell("$T \(line) 2>&1 || [ $? = 10 ]")
        let advice = try #require(told.firstMatch(of: /'backup-tool (vault init.*?)' makes/), "\(told)").1
        #expect(advice == "vault init --vault my\\ vault")
        try bench.shell("$T -q \(advice)")
        #expect(try bench.exists("my vault/config") && !bench.exists("other"))
    }

    /// The message is about a blob, whose name says nothing of the vault that lacks it.
    @Test(arguments: ["list vault:my\\ vault", "restore vault:my\\ vault"])
    func theVaultThatLacksABlob_isNamed(line: String) throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret", "BACKUP_TOOL_VAULT": "other"])
        try bench.makeCheapVault()
        try bench.shell("mv v 'my vault'; $T -q store init; $T -q vault backup --vault 'my vault'; rm my*/index/*")
        let told = try bench.shell("$T \(line) 2>&1 || true")
        #expect(told.contains("vault repair --save FOLDER --vault my\\ vault'"), "\(told)")
    }
}
