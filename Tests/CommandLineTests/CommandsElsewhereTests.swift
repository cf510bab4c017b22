import BackupKit
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
        try bench.shell("mkdir d; cp -r a/f d; $T -q import --create --store file.db --attachments d || test $? = 3")
        try bench.tool(exit: 0, "restore", "--store", "file.db", target)
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

    /// A file that is here and was left out is not on other devices only.
    @Test func aFileThatWasLeftOut_isCalledThat() throws {
        let bench = try Workbench()
        try bench.write("r.bib", "@misc{k, title={Large}, author={A, B}, year=2020, file={:big.pdf:PDF}}\n")
        try bench.shell(
            "mkdir a; truncate -s 250000001 a/big.pdf; $T -q import --create r.bib --attachments a || test $? = 3")
        try bench.tool(exit: 3, "export", "-o", "e", "--oversize", "skip")
        let told = try bench.tool(exit: 3, "verify", "e").stderr
        #expect(told.contains("was left out when this backup was made") && !told.contains("other devices"), "\(told)")
        let restored = try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "e").stderr
        #expect(restored.contains("big.pdf") && !restored.contains("other devices only"), "\(restored)")
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

    private func id(in bench: Workbench) throws -> String {
        let database = try SQLite(bench.path("new.db"), .readOnly)
        let query = try database.prepare("SELECT local_id FROM record WHERE type = 'Publication'")
        return try query.step() ? "Library/\(query.text(0))" : ""
    }

    /// A stranger's file of the same name, in a store, a folder and a backup for imbib.
    private func makeStranger(in bench: Workbench) throws {
        try bench.write("b/A/f/p.pdf", "%PDF-1.4 another")
        try bench.write("b/r.bib", "@article{s, title={On bees}, author={B}, year=2021, file={:f/p.pdf:PDF}}\n")
        try bench.shell(
            """
            $T import --create --store b.db b/r.bib --attachments b/A
            $T export --store b.db -o im --format imbib; $T export --store b.db -o own
            """)
    }

    @Test(arguments: [["import", "b/r.bib", "--attachments", "b/A"], ["restore", "im"], ["restore", "own"]])
    func aFileElsewhere_isNobodyElses(command: [String]) throws {
        let bench = try export(to: "out")
        try makeStranger(in: bench)
        // The second generation knows it as well as the first.
        try bench.tool(exit: 3, "restore", "--create", "--store", "first.db", "out")
        let told = try bench.tool(exit: 0, "export", "--store", "first.db", "-o", "out2").stderr
        #expect(told.contains("1 linked file is on other devices only"), "\(told)")
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "out2")

        let before = try bench.digest("new.db")
        let came = try bench.tool(["-q"] + command + ["--store", "new.db"])
        #expect(came.status == 3 && came.stderr.contains("p_conflict_"), "\(came.stderr)")
        #expect(try !bench.exists("new.db.assets/Attachments/f/p.pdf"))
        let library = try bench.tool(exit: 0, "export", "--store", "new.db", "--only", "publications", "-o", "e").stderr
        #expect(library.isEmpty || !library.contains("warning"), "\(library)")
        let records = try bench.text("e/records.jsonl").split(separator: "\n")
        let mine = try #require(records.first { $0.contains("On ants") })
        let theirs = try #require(records.first { $0.contains("On bees") })
        #expect(mine.contains("f/p.pdf\"") && !mine.contains("p_conflict_"), "\(mine)")
        #expect(theirs.contains("p_conflict_"), "\(theirs)")

        try bench.tool(exit: 0, "undo", "--store", "new.db")
        #expect(try bench.digest("new.db") == before)
        try bench.tool(exit: 0, "store", "check", "--store", "new.db")
    }

    /// Nor does a file take its name whose own falls together with it on other file systems.
    @Test(arguments: ["P.pdf", "p.PDF"]) func aNameThatFallsTogetherWithAFileElsewhere_isAnother(name: String) throws {
        let bench = try export(to: "out")
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "out")
        try bench.write("b/f/\(name)", "%PDF-1.4 another")
        try bench.write("b/r.bib", "@misc{s, title={Bees}, author={B}, year=2021, file={:f/\(name):PDF}}\n")
        let told = try bench.tool(exit: 3, "import", "--store", "new.db", "b/r.bib").stderr
        #expect(told.contains("differs only in case"), "\(told)")
        #expect(try !bench.exists("new.db.assets/Attachments/f/\(name)"))
        try bench.tool(exit: 0, "import", "--store", "new.db", "a/r.bib")
        #expect(try bench.text("new.db.assets/Attachments/f/p.pdf") == "%PDF-1.4 p")
    }

    @Test func theFileItself_takesItsPlace() throws {
        let bench = try export(to: "out")
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "out")
        try bench.shell("mkdir d; cp -r a/f d/f")
        try bench.tool(exit: 0, "import", "a/r.bib", "--attachments", "d", "--store", "new.db")
        #expect(try bench.text("new.db.assets/Attachments/f/p.pdf") == "%PDF-1.4 p")
        let told = try bench.tool(exit: 0, "export", "--store", "new.db", "-o", "whole").stderr
        #expect(!told.contains("on other devices"), "\(told)")
    }

    /// A replacing restore removes who meant it; its undo brings them back, and not the stranger's file.
    @Test func theUndoOfAReplacingRestore_leavesAFileElsewhereElsewhere() throws {
        let bench = try export(to: "out")
        try makeStranger(in: bench)
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "out")
        try bench.tool(exit: 0, "restore", "--mode", "replace", "--store", "new.db", "own")
        #expect(try bench.text("new.db.assets/Attachments/f/p.pdf") == "%PDF-1.4 another")
        try bench.tool(exit: 0, "undo", "--store", "new.db")
        #expect(try !bench.exists("new.db.assets/Attachments/f/p.pdf"))
        try bench.tool(exit: 0, "undo", "--redo", "--store", "new.db")
        #expect(try bench.text("new.db.assets/Attachments/f/p.pdf") == "%PDF-1.4 another")
    }

    @Test func aPurge_forgetsTheNameOfAFileElsewhere() throws {
        let bench = try export(to: "out")
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "out")
        func names() throws -> Int64 {
            try SQLite(bench.path("new.db"), .readOnly).integer("SELECT count(*) FROM file_elsewhere")
        }
        #expect(try names() == 1)
        let id = try id(in: bench)
        try bench.tool(exit: 0, "store", "delete", id, "--store", "new.db")
        try bench.tool(exit: 0, "store", "purge", id, "--confirm", "--store", "new.db")
        #expect(try names() == 0)
    }
}
