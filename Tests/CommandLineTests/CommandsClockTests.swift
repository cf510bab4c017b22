import BackupKit
import TestSupport
import Testing

/// Snapshots that a wrong clock has dated ahead, and the command that ends the warnings.
@Suite struct CommandsClockTests {
    /// A library, a vault and a configuration in a folder with a blank in its name.
    private func bench(profile: String = "") throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw; \"$T\" -q import lib.bib")
        try bench.makeCheapVault()
        let settings = "store = '../store.db'\nvault = '../v'\npassword-command = 'cat ../pw'\nkeep.last = 3\n"
        try bench.write("my c/n.toml", profile.isEmpty ? settings : "[profile.\(profile)]\n\(settings)")
        return bench
    }

    private func addSnapshot(_ bench: Workbench, tag: String, year: Int) throws {
        let words = ["vault", "backup", "-q", "--vault", "v", "--tag", tag, "--time", "\(year)-01-01T00:00:00Z"]
        try bench.tool(words, environment: ["BACKUP_TOOL_PASSWORD": "secret"])
    }

    /// Also where the vault and its password are those of one profile.
    @Test(arguments: ["", "papers"])
    func snapshotsThatAreDatedAhead_areEndedByTheCommandThatTheRunNames(_ profile: String) throws {
        let bench = try bench(profile: profile)
        let which = ["--config", "my c/n.toml"] + (profile.isEmpty ? [] : ["--profile", profile])
        #expect(try bench.tool(["run"] + which).status == 0)
        for year in [2036, 2037] { try addSnapshot(bench, tag: profile.isEmpty ? "nightly" : profile, year: year) }
        let run = try bench.tool(["run", "--json"] + which)
        #expect(run.status == 3, "\(run.stderr)")
        let findings = try JSON(parsing: run.stdoutLines.last ?? "")["findings"]?.array ?? []
        let advice = Set(
            findings.compactMap { $0["remedy"]?.string?.firstMatch(of: /'backup-tool (vault forget .+)'/) }.map {
                String($0.1)
            })
        #expect(findings.count == 2 && advice.count == 1, "\(findings)")
        let command = try #require(advice.first)
        #expect(try bench.tool(["run"] + which).stderr.contains(command))
        let status = try bench.tool(["schedule", "status"] + which)
        #expect(status.status == 1 && status.stdout.contains(command), "\(status.stdout)")
        // As somebody types it, anywhere and without an environment.
        try bench.shell("cd /; env -i \"$T\" \(command)")
        for words in [["run"], ["schedule", "status"]] {
            let done = try bench.tool(words + which)
            #expect(done.status == 0, "\(done.stderr)\(done.stdout)")
        }
        try bench.shell("RESTIC_PASSWORD=secret restic --no-cache -q -r v check --read-data")
    }

    /// By hand as well, also for the only snapshot there is, which has passed a drill.
    @Test func aPolicyByHandNamesTheCommandForWhatIsDatedAhead() throws {
        let bench = try bench()
        try addSnapshot(bench, tag: "nightly", year: 2036)
        try addSnapshot(bench, tag: "nightly", year: 2026)
        try addSnapshot(bench, tag: "nightly", year: 2037)
        try bench.tool(exit: 0, "drill", "--config", "my c/n.toml")
        let told = try bench.tool(exit: 3, "vault", "forget", "--keep-last", "1", "--config", "my c/n.toml").stderr
        let typed = try #require(told.firstMatch(of: /'backup-tool (vault forget ([0-9a-f ]+) --config .*?)'/))
        #expect(typed.2.split(separator: " ").count == 2)
        try bench.shell("$T \(typed.1)")
        try bench.tool(exit: 0, "vault", "forget", "--keep-last", "1", "--config", "my c/n.toml")
        // The first run knows nothing of the snapshot that was there before it.
        try bench.tool(exit: 3, "run", "--config", "my c/n.toml")
        try bench.tool(exit: 0, "run", "--config", "my c/n.toml")
    }
}
