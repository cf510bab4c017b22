import TestSupport
import Testing

@testable import BackupKit

/// What is left unproved, or cannot be read, is named and ends with 3.
@Suite struct CommandsProofTests {
    /// imbib's XOR sums notice no blocks that changed places.
    @Test func aDrill_saysWhatVerifySays() throws {
        let bench = try Workbench()
        try bench.shell("cp -r '\(Workbench.samples)/imbib-backup-2026-03-08' im; chmod -R u+w im")
        for isWithoutManifest in [false, true] {
            if isWithoutManifest { try bench.shell("rm im/manifest.json") }
            let verify = try bench.tool(exit: 3, "verify", "im")
            let sentence = isWithoutManifest ? "manifest" : "is not proved"
            #expect(verify.stderr.contains(sentence))
            let drill = try bench.tool(exit: 3, "drill", "im", "--log", "d.jsonl")
            #expect(drill.stderr.contains(sentence) && !drill.stderr.contains("OK"), "\(drill.stderr)")
        }
        let history = try bench.tool(exit: 0, "drill", "--history", "--log", "d.jsonl").stdout
        #expect(history.split(separator: "passed with warnings").count == 3, "\(history)")
        let json = try bench.json(exit: 3, "drill", "im", "--log", "d.jsonl")
        #expect(json["ok"]?.bool == true && json["warnings"]?.array?.count == 1, "\(json)")
        try bench.shell("$T -q store init; $T -q export -o e.zip")
        #expect(try bench.tool(exit: 0, "drill", "e.zip", "--log", "d.jsonl").stderr.contains("OK"))
    }
}
