import TestSupport
import Testing

/// What a sync that was killed has left to come.
@Suite struct CommandsKilledSyncTests {
    @Test func filesThatAKilledSyncDidNotBring_areNamedByWhoeverLooksAtTheStore() throws {
        let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
        try bench.write("x.bib", "@misc{a, title={A}, file={:a.pdf:PDF}}\n@misc{b, title={B}, file={:b.pdf:PDF}}\n")
        for name in ["a", "b"] { try bench.write("\(name).pdf", "%PDF \(name)") }
        try bench.shell(
            """
            $T -q import --create --store A.db x.bib; $T -q hub init hub.db; $T -q sync --store A.db
            $T -q store init --store B.db
            strace -f -qq -o trace -e trace=renameat -e inject=renameat:signal=KILL:when=1 $T sync --store B.db || true
            """)
        let store = ["--store", "B.db"]
        let files = "2 files did not come from the hub yet"
        let names = "Attachments/a.pdf, Attachments/b.pdf"
        for (words, code) in [(["store", "info"], 0), (["store", "check"], 3), (["sync", "--dry-run"], 0)] {
            let told = try bench.tool(exit: Int32(code), words + store).stderr
            #expect(told.contains("\(files): \(names)"), "\(words): \(told)")
            #expect(told.contains("'backup-tool sync --store B.db'"), "\(words): \(told)")
            let json = try bench.tool(exit: Int32(code), words + store + ["--json"]).stdout
            #expect(json.contains("Attachments/b.pdf"), "\(words): \(json)")
        }
        let exported = try bench.tool(exit: 3, ["export", "-o", "e.zip"] + store).stderr
        #expect(exported.contains("\(files) and are not in this backup: \(names)"), "\(exported)")
        try bench.tool(exit: 0, ["sync"] + store)
        for words in [["store", "info"], ["store", "check"], ["sync", "--dry-run"]] {
            let told = try bench.tool(exit: 0, words + store)
            #expect(!(told.stdout + told.stderr).contains("did not come"), "\(words): \(told.stderr)")
        }
    }
}
