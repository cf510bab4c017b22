import BackupKit
import TestSupport
import Testing

/// Folders in which files have names that mean something else here.
@Suite struct CommandsStrangeFolderTests {
    @Test(arguments: [#"{"name": "my app"}"#, "[1, 2]", #"{"format": 3, "files": {}}"#], ["web", "."])
    func aManifestOfAnotherProgram_isAFileThatIsLeftOut(_ text: String, _ place: String) throws {
        let bench = try Workbench()
        try bench.write("root/\(place)/manifest.json", text)
        try bench.write("root/web/a.bib", "@article{a, title={A}}\n")
        let result = try bench.tool(exit: 3, "import", "root")
        #expect(result.stderr.contains("manifest.json") && !result.stderr.contains("damage"), "\(result.stderr)")
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 1)
    }

    /// A tree with a backup, a bibliography with its files further down, and files of no kind.
    @Test func theAdviceForFilesThatAreLeftOut_takesThese_andNoOthers() throws {
        let bench = try Workbench()
        try bench.shell("cp -r '\(Workbench.samples)' root; chmod -R u+w root; $T store init --store p.db")
        let told = try bench.tool("import", "root", "--store", "p.db").stderr
        let count = try #require(told.firstMatch(of: /holds ([0-9]+) files that import does not take/)).1
        let advice = try #require(told.firstMatch(of: /'backup-tool (import root --attachments root [^']*)'/)).1
        func assets() throws -> [Int] {
            let info = try bench.json(exit: 0, "store", "info", "--store", "p.db")
            return [info["assets"], info["records"]?["publications"]].map { Int($0?.integer ?? 0) }
        }
        let before = try assets()
        let taken = try bench.shell("$T \(advice) 2>&1 || test $? = 3")
        #expect(try assets() == [before[0] + (Int(count) ?? 0), before[1]], "\(told)\(taken)")
        let again = try bench.tool("import", "root", "--store", "p.db", "--attachments", "root").stderr
        #expect(!again.contains("does not take"), "\(again)")
    }

    /// Two backups of one library in a folder are two states of it: a person says which one is meant.
    @Test func anArchiveInAFolder_isNamedWithTheCommandThatImportsIt() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@article{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "a.bib", "--create", "--store", "old.db")
        try bench.shell("mkdir in")
        try bench.tool(exit: 0, "export", "-o", "in/b-1.zip", "--format", "imbib", "--store", "old.db")
        try bench.tool(exit: 0, "export", "-o", "in/b-2.tar.zst", "--store", "old.db")
        try bench.tool(exit: 0, "store", "init")
        let alone = try bench.tool(exit: 1, "import", "in").stderr
        #expect(alone.contains("'backup-tool import in/b-1.zip'"), "\(alone)")
        try bench.write("in/b.bib", "@article{b, title={B}}\n")
        for only in [[], ["--only", "publications"]] {
            let told = try bench.tool(words: ["import", "in"] + only, exit: 3).stderr
            #expect(told.contains("2 archives") && told.contains("'backup-tool import in/b-1.zip"), "\(told)")
        }
        try bench.tool(exit: 0, "import", "in/b-1.zip")
        #expect(try bench.json(exit: 0, "store", "info")["records"]?["publications"]?.integer == 2)
        #expect(try bench.tool(exit: 3, "import", "in").stderr.contains("2 archives"))
    }

    @Test func theAdviceForALinkedFolder_importsWhatIsInIt() throws {
        let bench = try Workbench()
        try bench.write("in/b.bib", "@article{b, title={B}}\n")
        try bench.write("pdfs/b.pdf", "%PDF")
        try bench.write("more/c.bib", "@article{c, title={C}}\n")
        try bench.shell("$T -q store init; ln -s ../pdfs in/pdfs; ln -s ../more in/more")
        let told = try bench.tool(exit: 3, "import", "in").stderr
        let commands = told.matches(of: /'backup-tool ([^']+)'/).map { String($0.1) }
        #expect(commands.sorted() == ["import --attachments in/pdfs", "import in/more"], "\(told)")
        for command in commands { try bench.shell("$T -q \(command)") }
        let info = try bench.json(exit: 0, "store", "info")
        #expect(info["assets"]?.integer == 1 && info["records"]?["publications"]?.integer == 2)
    }

    @Test func aDamagedManifestOfABackup_staysDamage() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@article{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "own", "--only", "notes")
        try bench.tool(exit: 0, "export", "-o", "app", "--format", "imbib")
        try bench.shell("rm -f own/records.jsonl app/records.jsonl; cp -a own renamed; cp -a own cut; cp -a app appcut")
        try bench.shell("sed -i 's/backup-tool-library/x/' renamed/manifest.json")
        try bench.shell("truncate -s 60 cut/manifest.json; truncate -s -3 appcut/manifest.json")
        for folder in ["renamed", "cut", "appcut"] {
            let result = try bench.tool(exit: 4, "import", folder)
            #expect(result.stderr.contains("damaged"), "\(folder): \(result.stderr)")
        }
    }

    @Test func namesOfABackupThatDifferInCaseOnly_costTheSecondOne() throws {
        let bench = try Workbench()
        try bench.write("a.bib", "@article{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "a.bib")
        try bench.tool(exit: 0, "export", "-o", "backup", "--format", "imbib")
        try bench.shell("mkdir backup/Attachments; cd backup/Attachments; echo 1 > x.pdf; echo 2 > X.PDF")
        let result = try bench.tool(exit: 3, "import", "backup", "--create", "--store", "new.db")
        #expect(result.stderr.contains("x.pdf") && result.stderr.contains("X.PDF"), "\(result.stderr)")
        #expect(try bench.json(exit: 0, "store", "info", "--store", "new.db")["records"]?["publications"]?.integer == 1)
        let refused = try bench.tool(["verify", "backup"])
        #expect(refused.status != 0 && refused.stderr.contains("another name"), "\(refused.stderr)")
        #expect(refused.stderr.contains("x.pdf") && refused.stderr.contains("X.PDF"), "\(refused.stderr)")
    }

    @Test func aPipeInAFolder_isNoFileThatAttachmentsTakes() throws {
        let bench = try Workbench()
        try bench.write("root/a.bib", "@article{a, title={A}}\n")
        try bench.shell("mkfifo root/pipe")
        let result = try bench.tool(exit: 3, "import", "root")
        #expect(result.stderr.contains("root/pipe: was left out: it is a device or a pipe"), "\(result.stderr)")
        #expect(!result.stderr.contains("--attachments"), "\(result.stderr)")
    }

    /// The second one gets another name, and that is said.
    @Test func theDryRunOfAnEventImport_namesTheFilesOfTheImport() throws {
        let bench = try Workbench()
        let names = "aAbBcCdDeEfF".map(String.init)
        for name in names { try bench.write("log/photos/\(name).jpg", name) }
        let lines = names.map {
            "{\"time\":\"2026-02-14T16:00+01:00\",\"type\":\"x\",\"photo\":\"photos/\($0).jpg\"}"
        }
        try bench.write("log/x.jsonl", lines.joined(separator: "\n"))
        let plan = try bench.tool(exit: 3, "import", "log", "--dry-run").stdout
        try bench.tool(exit: 3, "import", "log")
        for file in try bench.files("store.db.assets") { #expect(plan.contains(file), "\(file): \(plan)") }
    }

    @Test func aStoreThatAFullDiskHasNoRoomFor_leavesNothing() throws {
        let bench = try Workbench()
        try bench.shell("mkdir small")
        // Only root may mount.
        let mount = try runProcess(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", bench.path("small")])
        guard mount.status == 0 else { return }
        defer { _ = try? runProcess(["umount", bench.path("small")]) }
        try bench.tool(exit: 1, "store", "init", "--store", "small/s.db")
        #expect(try bench.files("small").isEmpty)
    }
}
