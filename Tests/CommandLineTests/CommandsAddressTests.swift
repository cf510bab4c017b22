import TestSupport
import Testing

// What is not a path of this machine, or not the name that was meant, makes nothing.

@Test func aMistypedStore_isNotMade_unlessThatIsAskedFor() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.write("log.jsonl", #"{"id":"e","time":"2026-02-14T15:00Z","type":"tuin"}"#)
    for words in [["import", "a.bib"], ["import", "a.bib", "--dry-run"], ["events", "import", "log.jsonl"]] {
        let result = try bench.tool(words + ["--store", "libary.db"])
        #expect(result.status == 10 && result.stderr.contains("--create"), "\(result.stderr)")
        #expect(try !bench.exists("libary.db") && !bench.exists("libary.db.assets"))
    }
    #expect(
        try bench.tool(exit: 0, "import", "a.bib", "--store", "new.db", "--create").stderr
            .contains("New store: new.db"))
    #expect(try !bench.tool(exit: 0, "import", "a.bib", "--store", "new.db").stderr.contains("New store"))
    // The usual place is nobody's typing mistake.
    #expect(try bench.tool(exit: 0, "import", "a.bib").stderr.contains("New store: store.db"))
    try bench.tool(exit: 0, "export", "-o", "out")
    #expect(
        try bench.tool(exit: 0, "restore", "--create", "out", "--store", "back.db").stderr.contains(
            "New store: back.db"))
}

@Test func anAddressThatNobodyKnows_makesNothing() throws {
    let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret"])
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-o", "out")
    let before = Set(try bench.files("."))
    for address in [
        "postgresql://localhost/hub", "s3:bucket/x", "HTTPS://example.org/x", "sftp:me@host:/x", "odd+x://y",
    ] {
        for words in [
            ["hub", "init", address], ["sync", "--hub", address], ["store", "init", "--store", address],
            ["import", "a.bib", "--create", "--store", address], ["import", address], ["export", "-o", address],
            ["restore", "out", "--to", address], ["restore", address], ["verify", address],
            ["events", "export", "-o", address], ["vault", "init", "--vault", address],
            ["export", "-o", "vault:\(address)"], ["drill", "out", "--log", address],
        ] {
            let result = try bench.tool(words)
            #expect(result.status == 64 && result.stderr.contains("not supported"), "\(words): \(result.stderr)")
        }
        for name in ["BACKUP_TOOL_STORE", "BACKUP_TOOL_HUB", "BACKUP_TOOL_VAULT"] {
            let words =
                ["BACKUP_TOOL_VAULT": ["vault", "init"], "BACKUP_TOOL_HUB": ["sync"]][name] ?? ["store", "init"]
            #expect(try bench.tool(words, environment: [name: address]).status == 64, "\(name)")
        }
        try bench.write("c.toml", "store = \"\(address)\"\n")
        #expect(try bench.tool(exit: 4, "config", "check", "--config", "c.toml").stderr.contains("not supported"))
    }
    for words in [
        ["hub", "init", "vault:x"], ["store", "init", "--store", "vault:x"], ["restore", "out", "--to", "vault:x"],
    ] {
        #expect(try bench.tool(words).status == 64, "\(words)")
    }
    #expect(Set(try bench.files(".")).subtracting(before) == ["c.toml"])
    // A name with a colon is still a name.
    try bench.tool(exit: 0, "export", "-o", "out-2026-02-14T15:00.tar.zst")
    try bench.tool(exit: 0, "hub", "init", "./s3:hub.db")
}

@Test func aFolderGetsNoNameOfAFile() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "export", "-o", "out.v2")
    for name in [
        "x.rar", "x.7z", "x.tar.bz2", "x.bib", "X.RAR", "a/x.json", "x.dmg", "x.tar.odd", "x.rpm", "x.iso", "x.tex",
    ] {
        for words in [
            ["export", "-o", name], ["export", "-o", name, "--dry-run"], ["export", "-o", name, "--format", "imbib"],
            ["restore", "out.v2", "--to", name], ["events", "export", "-o", name],
        ] {
            let result = try bench.tool(words)
            #expect(result.status == 64, "\(words): \(result.stderr)")
            #expect(try !bench.exists(name))
        }
    }
    #expect(
        try bench.tool(exit: 64, "export", "-o", "x.rar").stderr.contains(".tar.zst, .tar.gz, .tar.xz, .tar or .zip"))
    try bench.tool(exit: 64, "restore", "out.v2", "--to", "x.tar.zst")
    try bench.tool(exit: 0, "export", "-o", "x.rar", "--format", "dir")
    for name in ["2026.11", "v1.2.3", "Smith et al.", "my.library", ".hidden"] {
        try bench.tool(exit: 0, "export", "-o", name)
        #expect(try bench.exists("\(name)/library.bib"))
    }
}

@Test func anAddressThatNamesNoSnapshot_isRefused() throws {
    let bench = try Workbench()
    try bench.makeCheapVault()
    try bench.write("pw", "secret\n")
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.shell("chmod 600 pw")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool(exit: 0, "vault", "backup", "--vault", "v", "--password-file", "pw")
    for words in [["restore", "vault:v@"], ["list", "vault:v@"], ["verify", "vault:v@"], ["drill", "vault:v@"]] {
        let told = try bench.tool(words + ["--password-file", "pw"])
        #expect(told.status == 64 && told.stderr.contains("v@: names no snapshot"), "\(words): \(told.stderr)")
    }
    try bench.tool(exit: 0, "list", "vault:v@latest", "--password-file", "pw")
}
