import TestSupport
import Testing

/// A backup of a device that lacks a linked file, because only another device has it: the restore that brings the link says so.
@Suite struct CommandsElsewhereTests {
    /// `out` is the export of a device that knows of `f/p.pdf` and does not have it.
    private func export(to target: String) throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a/f/p.pdf", "%PDF-1.4 p")
        try bench.write("a/r.bib", "@article{k, title={On ants}, author={A}, year=2020, file={:f/p.pdf:PDF}}\n")
        try bench.shell(
            """
            $T import --create --store a.db a/r.bib
            $T hub init h.db
            $T sync --hub h.db --store a.db
            rm -rf h.db.assets/*
            $T store init --store n.db
            $T sync --hub h.db --store n.db && exit 1 || test $? = 3
            """)
        let told = try bench.tool(exit: 0, "export", "--store", "n.db", "-o", target)
        #expect(told.stderr.contains("on other devices only"), "\(told.stderr)")
        return bench
    }

    @Test(arguments: ["out", "out.tar", "out.zip"]) func aRestoreNamesFilesElsewhere_once(target: String) throws {
        let bench = try export(to: target)
        let dry = try bench.tool(exit: 3, "restore", "--create", "--dry-run", "--store", "new.db", target).stderr
        let told = try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", target).stderr
        for text in [dry, told] {
            #expect(
                text.contains("p.pdf") && text.contains("on other devices only when the backup was made"), "\(text)")
            #expect(text.contains("backup-tool sync"), "\(text)")
        }
        // Nobody may ever have it.
        try bench.tool(exit: 0, "restore", "--store", "new.db", target)
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--store", "new.db", target)
        try bench.tool(exit: 0, "store", "check", "--store", "new.db")
        // Asked for without files, it lacks none; and the store that has the file misses nothing.
        try bench.tool(exit: 0, "restore", "--create", "--only", "publications", "--store", "bare.db", target)
        try bench.tool(exit: 0, "restore", "--store", "a.db", target)
    }

    @Test func aVerifyCountsFilesElsewhere_andFindsTheBackupWhole() throws {
        let bench = try export(to: "out")
        for level in ["quick", "full", "deep"] {
            let told = try bench.tool(exit: 0, "verify", "--level", level, "out").stderr
            #expect(told.contains("1 linked file was on other devices only") && told.contains("p.pdf"), "\(told)")
        }
        #expect(try bench.json(exit: 0, "verify", "out")["elsewhere"]?.array?.count == 1)
        try bench.tool(exit: 0, "drill", "out", "--log", "drills.jsonl")
    }

    @Test func aSnapshotTellsTheSame() throws {
        let bench = try export(to: "out")
        try bench.makeCheapVault()
        try bench.write("pw", "secret\n")
        try bench.shell("chmod 600 pw")
        let vault = ["--vault", "v", "--password-file", "pw"]
        let made = try bench.tool(["vault", "backup", "--store", "n.db"] + vault)
        #expect(made.status == 0, "\(made.stderr)")
        let told = try bench.tool(["restore", "--create", "--store", "new.db", "vault:v", "--password-file", "pw"])
        #expect(told.status == 3 && told.stderr.contains("on other devices only when"), "\(told.stderr)")
        #expect(try bench.tool(["verify", "vault:v", "--password-file", "pw"]).status == 0)
    }
}
