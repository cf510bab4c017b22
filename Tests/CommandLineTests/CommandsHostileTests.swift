import BackupKit
import Glibc
import TestSupport
import Testing

/// Peak memory of a run, in KiB.
private func peak(_ bench: Workbench, _ command: String) throws -> Int {
    let text = try bench.shell(
        """
        python3 - <<'END'
        import os, resource, subprocess
        subprocess.run('''\(command)''', shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        END
        """)
    return Int(text.prefix { $0 != "\n" }) ?? .max
}

@Test func aLineOfAGigabyte_isRejectedInBoundedMemory() throws {
    let bench = try Workbench()
    // A hole in the file: it takes no space.
    let size = 1 << 30
    try bench.shell(
        """
        echo '{"time":"2026-01-01T00:00Z","type":"x"}' > x.jsonl; truncate -s \(size) x.jsonl; echo >> x.jsonl
        echo '{"time":"2026-01-02T00:00Z","type":"x"}' >> x.jsonl
        """)
    #expect(try peak(bench, "\"$T\" import x.jsonl") < 300_000)
    #expect(try bench.json(exit: 0, "store", "info")["records"]?["events"]?.integer == 2)
    let again = try bench.tool(exit: 3, "import", "x.jsonl")
    #expect(again.stderr.contains("x.jsonl:2: is longer than"))
}

@Test func aRecordOfAGigabyte_isDamageInBoundedMemory() throws {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.tool(exit: 0, "export", "-q", "-o", "good", "--format", "dir")
    try bench.shell("truncate -s \(1 << 30) good/records.jsonl")
    #expect(try peak(bench, "\"$T\" verify good") < 300_000)
    #expect(try bench.tool(exit: 4, "verify", "good").stderr.contains("records.jsonl"))
}

@Test func notesThatAreNestedOrHuge_areRefusedInBoundedMemory() throws {
    let bench = try Workbench()
    try bench.write("deep/notes.json", String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000))
    let deep = try bench.tool(exit: 3, "import", "deep/notes.json")
    #expect(deep.stderr.contains("nested more than"))
    let count = Workbench.isTorture ? 10_000_000 : 1_000_000
    try bench.shell("mkdir wide; python3 -c \"print('[' + '[],' * \(count) + '[]]')\" > wide/notes.json")
    #expect(try peak(bench, "\"$T\" import -q wide/notes.json") < 150_000)
    try bench.write("settings.json", "{\"a\":1,\"a\":2}")
    try bench.tool(exit: 3, "import", "settings.json", "--only", "settings")
}

@Test func linksPipesAndDevices_inAFolder_areRefusedAndNeverWaitedFor() throws {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.tool(exit: 0, "export", "-q", "-o", "good")
    for plant in ["ln -s /etc/passwd bad/link", "mkfifo bad/pipe", "ln -s . bad/Attachments/loop"] {
        try bench.shell("rm -rf bad; cp -a good bad; \(plant)")
        let before = try bench.state()
        let verified = try bench.tool(exit: 4, "verify", "bad")
        #expect(verified.stderr.contains("which a backup does not hold"), "\(verified.stderr)")
        #expect(try bench.tool("restore", "bad").status != 0)
        #expect(try bench.state() == before)
    }
    for plant in ["ln -s /etc/passwd pdfs/link.pdf", "mkfifo pdfs/pipe.pdf"] {
        try bench.shell("rm -rf pdfs; mkdir pdfs; echo a > pdfs/a.pdf; \(plant)")
        let result = try bench.tool(exit: 3, "import", "--attachments", "pdfs")
        #expect(result.stderr.contains("was left out: it is a"))
        #expect(try !bench.files("store.db.assets").contains { $0.contains("link") || $0.contains("pipe") })
    }
    try bench.shell("mkfifo pipe.jsonl pipe.bib pipe.tar")
    for name in ["pipe.jsonl", "pipe.bib", "pipe.tar"] { #expect(try bench.tool("import", name).status == 64) }
    #expect(try bench.tool("verify", "pipe.tar").status == 64)
}

@Test func namesThatFallTogether_areKeptApart() throws {
    let bench = try Workbench()
    try bench.write("pdfs/Paper.pdf", "upper")
    try bench.write("pdfs/paper.pdf", "lower")
    try bench.write("pdfs/caf\u{e9}.pdf", "composed")
    try bench.write("pdfs/cafe\u{301}.pdf", "decomposed")
    let result = try bench.tool(exit: 3, "import", "--attachments", "pdfs")
    #expect(result.stderr.contains("only in case or Unicode form"))
    #expect(try bench.json(exit: 3, "import", "--attachments", "pdfs")["writes"]?.integer == 0)
    // All four are in the export, and nothing stands in its way.
    try bench.tool(exit: 0, "export", "-q", "-o", "out.zip")
    try bench.tool(exit: 0, "verify", "out.zip", "--level", "deep")
    try bench.tool(exit: 0, "restore", "out.zip", "--to", "plain")
    let texts = try bench.files("plain/Attachments").map { try bench.text("plain/Attachments/\($0)") }
    #expect(Set(texts) == ["upper", "lower", "composed", "decomposed"])
}

@Test func aBibliographyThatPointsOutside_linksNothingOutside() throws {
    let bench = try Workbench()
    try bench.write("secret.pdf", "secret")
    try bench.write("lib/a.bib", "@misc{k, title={T}, file={:../secret.pdf:PDF}}\n@misc{j, file={:/etc/passwd:PDF}}\n")
    try bench.write("lib/pdfs/own.pdf", "own")
    try bench.tool(exit: 3, "import", "lib/a.bib", "--attachments", "lib/pdfs")
    #expect(try bench.files("store.db.assets") == ["Attachments/own.pdf"])
    // Even a store that somebody else wrote does not lead an export outside.
    try bench.shell(
        "sqlite3 store.db \"INSERT INTO asset SELECT '../secret.pdf', 6, sha256, 0, 0, 999 FROM asset\"")
    let exported = try bench.json(exit: 3, "export", "-o", "out")
    #expect(exported["warnings"]?.array?.contains { $0["path"]?.string == "../secret.pdf" } == true)
    #expect(try bench.files("out/Attachments") == ["own.pdf"])
}

@Test func whatIsNoStore_isNeverTouched() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k}\n")
    try bench.write("x.txt", String(repeating: "not a store\n", count: 100))
    try bench.shell("sqlite3 y.db 'CREATE TABLE t(x)'; mkdir z.db")
    for store in ["x.txt", "y.db", "z.db"] {
        let before = try bench.shell("ls -lR \(store); (cat \(store) 2>/dev/null || true) | sha256sum")
        for words in [
            ["import", "a.bib"], ["export", "-o", "out"], ["undo"], ["store", "info"], ["store", "delete", "k"],
        ] {
            let result = try bench.tool(words + ["--store", store])
            #expect(result.status == 10 && result.stderr.contains("was not touched"), "\(words) \(result.stderr)")
        }
        #expect(try bench.shell("ls -lR \(store); (cat \(store) 2>/dev/null || true) | sha256sum") == before)
    }
    #expect(try !bench.exists("out"))
}

@Test func aPDFInPlaceOfAnArchive_isCalledWhatItIs() throws {
    let bench = try Workbench()
    try bench.shell("cp \"$SAMPLES/library/Attachments/scan0042.pdf\" x.tar.zst")
    for words in [["verify"], ["restore"], ["import"], ["list"], ["show"]] {
        let result = try bench.tool(words + ["x.tar.zst"])
        #expect(result.status != 0 && result.stderr.contains("it is a PDF"), "\(words): \(result.stderr)")
        #expect(result.stdout == "")
    }
}

@Test func aNewerManifest_isRefusedPolitely() throws {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.tool(exit: 0, "export", "-q", "-o", "new")
    try bench.shell(
        """
        cd new; sed -i 's/"schemaVersion": 120/"schemaVersion": 999/' manifest.json
        sed -i "s/^.*  manifest.json/$(sha256sum manifest.json | cut -c-64)  manifest.json/" SHA256SUMS
        """)
    let verified = try bench.tool(exit: 3, "verify", "new", "--level", "deep")
    #expect(verified.stderr.contains("schema 999"))
    let restored = try bench.tool(exit: 1, "restore", "--create", "new", "--store", "b.db")
    #expect(restored.stderr.contains("use a newer backup-tool"))
    try bench.tool(exit: 0, "restore", "new", "--to", "plain")
}

/// With every name compared with every other one, this takes minutes.
@Test func anEntryOfManyFields_isReadInProportion_andTheFirstOfEqualNamesCounts() throws {
    let bench = try Workbench()
    let fields = (0..<30_000).map { "f\($0) = {v\($0)}" } + ["F17 = {second}", "f29999 = {second}"]
    try bench.write("many.bib", "@misc{many, \(fields.joined(separator: ", "))}\n")
    try bench.tool("import", "-q", "many.bib")
    let found = try bench.shell(
        """
        sqlite3 store.db "SELECT json_extract(fields, '\\$.f17', '\\$.f29999'), (SELECT count(*) FROM json_each(fields))
            FROM record WHERE type = 'Publication'"
        """)
    #expect(found == "[\"v17\",\"v29999\"]|30003\n")
}

/// A store that somebody sends to support may have been written by anybody.
@Test(arguments: ["../victim", "Attachments/../../victim", "/victim"])
func aRowThatNamesAFileOutside_touchesNothingThere(path: String) throws {
    let bench = try Workbench()
    try bench.write("victim", "somebody else's")
    try bench.write("a.bib", "@misc{a, title={A}, doi={10.1/a}}\n")
    try bench.tool(exit: 0, "import", "a.bib", "--create")
    let digest = try bench.shell("sha256sum victim | cut -c1-64").filter { $0 != "\n" }
    for row in ["'\(digest)', ''", "NULL, '\(digest)'"] {
        try bench.shell("sqlite3 store.db \"INSERT INTO asset_pending VALUES ('\(path)', \(row))\"")
        try bench.write("b.bib", "@misc{b, title={B \(row)}, doi={10.1/\(row.count)}}\n")
        try bench.tool("import", "b.bib")
        #expect(try bench.text("victim") == "somebody else's")
        #expect(try bench.shell("sqlite3 store.db 'SELECT count(*) FROM asset_pending'") == "0\n")
    }
    try bench.tool(exit: 0, "store", "check")
}
