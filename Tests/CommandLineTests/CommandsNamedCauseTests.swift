import TestSupport
import Testing

/// What went wrong is said with what it is about, the code that a script goes by, and what helps.
@Suite struct CommandsNamedCauseTests {
    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.write("a.bib", "@misc{a, title={A}}\n")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        return bench
    }

    @Test(arguments: ["meta", "counter", "record", "identity", "recent", "push"])
    func aHubThatHasLostATable_isDamaged(table: String) throws {
        let bench = try bench()
        try bench.tool(exit: 0, "hub", "init", "hub.db")
        try bench.shell("sqlite3 hub.db 'DROP TABLE \(table)'")
        let told = try bench.tool(exit: 4, "sync", "--hub", "hub.db").stderr
        #expect(told.contains("its table '\(table)' is missing") && told.contains("hub init"), "\(told)")
    }

    /// SQLite says only that it cannot open a file.
    @Test(arguments: [5, 6, 7]) func aLackOfFileHandles_isTemporary(count: Int) throws {
        let told = try bench().shell("(ulimit -n \(count); $T -q export -o x.zip) 2>&1 || echo $?")
        #expect(told.contains("Too many open files") && told.contains("ulimit -n") && told.hasSuffix("75\n"), "\(told)")
    }

    @Test func aNameThatNoBackupMayHave_isNamedWithItsArchive() throws {
        let bench = try bench()
        try bench.shell("tar -P -cf p.tar --transform 's,^a,../x,' a.bib")
        let told = try bench.tool(exit: 1, "import", "p.tar").stderr
        #expect(told.contains("p.tar: its entry '../x.bib' is not a name") && told.contains("unpack it"), "\(told)")
    }
}
