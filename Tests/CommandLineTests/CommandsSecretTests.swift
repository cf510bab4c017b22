import TestSupport
import Testing

/// What people put into addresses and commands stays out of what is printed.
@Suite struct CommandsSecretTests {
    @Test(arguments: [
        ["sync", "--hub", "postgres://u:s3cr3t@h/db"], ["sync", "--hub", "POSTGRES://u:s3/cr@s3cr3t@h/db"],
        ["export", "--store", "postgres://h/db?user=u&password=s3cr3t", "-o", "x"],
        ["vault", "check", "--vault", "rest:https://u:s3cr3t@h/db"], ["hub", "init", "https://u:s3cr3t@h"],
        ["verify", "https://u:s3cr3t@h/x"], ["restore", "vault:rest:https://u:s3cr3t@h/x@latest"],
        ["vault", "init", "--vault", "sftp://u:s3cr3t@h/x"], ["restore", "https://u:s3cr3t@h/x", "--create"],
    ])
    func anAddressIsNamedWithoutItsPassword(words: [String]) throws {
        let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "pw"])
        let result = try bench.tool(words)
        #expect(result.status == 64, "\(result.stderr)")
        #expect(!(result.stdout + result.stderr).contains("s3cr3t"), "\(result.stderr)")
        #expect(result.stderr.contains("://"), "\(result.stderr)")
        let json = try bench.tool(words + ["--json"])
        #expect(!(json.stdout + json.stderr).contains("s3cr3t"), "\(json.stderr)")
    }

    @Test func theConfigurationIsShownWithoutSecrets() throws {
        let bench = try Workbench()
        try bench.write(
            "c.toml",
            """
            store = "s.db"
            hub = "postgres://u:s3cr3t@h/db"
            password-command = "echo s3cr3t"
            ping.url = "https://u:s3cr3t@hc.example/s3cr3t?t=s3cr3t"

            """)
        for more in [[], ["--json"]] {
            let result = try bench.tool(["config", "check", "--config", "c.toml"] + more)
            let said = result.stdout + result.stderr
            #expect(result.status == 4 && !said.contains("s3cr3t"), "\(said)")
            #expect(said.contains("https://hc.example/…") && said.contains("password-command"), "\(said)")
        }
    }
}
