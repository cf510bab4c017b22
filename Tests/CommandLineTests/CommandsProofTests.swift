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

    @Test func anImbibBackupWithoutItsManifest_isAWarningOfEveryCommand_andItsLostFilesAreNamed() throws {
        let bench = try Workbench()
        try bench.shell(
            """
            cp -r '\(Workbench.samples)/imbib-backup-2026-03-08' im; chmod -R u+w im; rm im/manifest.json im/settings.json
            sed -i 's/Vale 2023.pdf/Gone 23.pdf/; s/journal = {Interfaces and Regret},/&\\n file = {:Attachments\\/gone.pdf:PDF},/' \
                im/library.bib
            """)
        for command in ["list", "show", "verify"] {
            #expect(try bench.tool(exit: 3, command, "im").stderr.contains("has no manifest"))
            #expect(try bench.tool(exit: 3, command, "im", "--json").stdout.contains("message_type"))
        }
        let told = try bench.tool(exit: 3, "restore", "im", "--create").stderr
        for name in ["gone.pdf", "Gone 23.pdf"] {
            #expect(told.contains("\(name): is named by") && told.contains("is not in the backup"), "\(told)")
        }
        // A file that is here, and named by its entry, is not missing.
        #expect(!told.contains("Vale 2023.pdf: is named by"), "\(told)")
        // Damage stays damage.
        try bench.shell("$T -q export -o e; printf x >> e/SHA256SUMS")
        for command in ["list", "show"] { try bench.tool(exit: 4, command, "e") }
    }

    /// What is sound in a folder or beside a damaged backup comes in, and the backup is named with the way to its rest.
    @Test(arguments: [
        "printf x >> f/imbib/library.bib", "rm f/imbib/library.bib", "printf '{\"version\":1,' > f/imbib/manifest.json",
    ])
    func aDamagedBackupInAFolder_costsOnlyItself(damage: String) throws {
        let bench = try Workbench()
        try bench.write("f/a.bib", "@misc{a, title={A}}\n")
        try bench.shell(
            "$T -q import --create f/a.bib; $T -q export --format imbib -o f/imbib; rm -r store.db*; \(damage)")
        let told = try bench.tool(exit: 3, "import", "--create", "f").stderr
        #expect(told.contains("f/imbib") && told.contains("nothing of this backup was imported"), "\(told)")
        #expect(try bench.shell("sqlite3 store.db \"SELECT count(*) FROM record WHERE type = 'Publication'\"") == "1\n")
        #expect(try bench.tool(["import", "f/imbib"]).status == 4)
    }

    /// Our own layout shows that there was a manifest, so what it counted may be missing.
    @Test func anExportWithoutItsManifest_isDamageToEveryCommand() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        try bench.shell(
            """
            $T -q import --create a.bib; $T -q export -o e; rm e/manifest.json; cp -r e bare; rm bare/SHA256SUMS
            for d in e bare; do tar -cf $d.tar -C $d .; done
            """)
        for target in ["e", "bare", "e.tar", "bare.tar"] {
            for command in ["verify", "list", "show"] {
                let told = try bench.tool(exit: 4, command, target).stderr
                #expect(told.contains("manifest.json: is missing"), "\(command) \(target): \(told)")
            }
            try bench.tool(exit: 4, "drill", target, "--log", "drills.jsonl")
            try bench.tool(exit: 4, "restore", "--create", "--store", "new.db", target)
        }
        for command in ["verify", "drill"] {
            let help = try bench.tool(exit: 0, command, "--help").stdout.split(whereSeparator: \.isWhitespace)
            #expect(help.joined(separator: " ").contains("an export that lost its manifest"), "\(help)")
        }
    }

    @Test func aFileFieldOfBibDeskThatNamesNoPath_isNamed() throws {
        let bench = try Workbench()
        let sound = BibFileLinks.bibDeskValue(relativePath: "a.pdf")
        let xml = Base64.encode(
            Array("<plist version=\"1.0\"><dict><key>relativePath</key><string>b.pdf</string></dict></plist>".utf8))
        // {bookmark = <00>}
        let bookmark = Base64.encode(
            Array("bplist00".utf8) + [0xD1, 1, 2, 0x58] + Array("bookmark".utf8) + [0x41, 0, 8, 11, 20]
                + [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + [0, 0, 0, 0, 0, 0, 0, 0]
                + [0, 0, 0, 0, 0, 0, 0, 22])
        let values = [sound, xml, String(sound.prefix(20)), bookmark, ""]
        let entries = values.enumerated().map { "@misc{k\($0), title={T \($0)}, Bdsk-File-1={\($1)}}\n" }
        try bench.write("lib/w.bib", entries.joined())
        for name in ["a.pdf", "b.pdf"] { try bench.write("lib/\(name)", "%PDF \(name)") }
        let told = try bench.json(exit: 3, "import", "lib/w.bib")
        let findings = told["findings"]?.array ?? []
        #expect(findings.compactMap { $0["path"]?.string } == ["k2 in lib/w.bib", "k3 in lib/w.bib"], "\(told)")
        let message = "its Bdsk-File-1 names its file by a bookmark of macOS only, not by a path"
        #expect(findings.last?["message"]?.string == message)
        #expect(try bench.json(exit: 0, "store", "info")["assets"]?.integer == 2)
        try bench.tool(exit: 0, "import", "lib/w.bib", "--only", "publications")
    }
}
