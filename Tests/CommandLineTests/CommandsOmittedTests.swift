import BackupKit
import Glibc
import TestSupport
import Testing

private func oneFile(_ bytes: String = "%PDF") throws -> Workbench {
    let bench = try Workbench()
    try bench.write("pdfs/a.pdf", bytes)
    try bench.write("pdfs/b.pdf", "%PDF b")
    try bench.write("a.bib", "@misc{a, title={A}}\n@misc{b, title={B}}\n")
    try bench.tool(exit: 0, "import", "a.bib", "--attachments", "pdfs")
    return bench
}

@Test(arguments: ["dir", "tar.zst", "zip", "imbib"])
func anAssetWithoutItsFile_isListedAsOmitted(_ format: String) throws {
    let bench = try oneFile()
    try bench.shell("rm store.db.assets/Attachments/a.pdf")
    let result = try bench.json(exit: 3, "export", "-o", "out", "--format", format)
    let omitted = result["omitted"]?.array ?? []
    #expect(omitted.count == 1 && omitted.first?["path"]?.string == "Attachments/a.pdf")
    #expect(omitted.first?["reason"]?.string?.contains("No such file") == true)
    try bench.tool(exit: 3, "verify", "out")
    let text = try bench.tool(exit: 3, "export", "-o", "again")
    #expect(text.stderr.contains("Attachments/a.pdf: left out: ") && text.stdout == "", "\(text.stderr)")
    #expect(try bench.tool(exit: 0, "show", "again").stdout.contains("left out:       1\n"))
    // A quiet run says it too, and the backup itself remembers what it lacks.
    let quiet = try bench.tool(exit: 3, "export", "-q", "-o", "quiet")
    #expect(quiet.stderr.contains("Attachments/a.pdf: left out: "), "\(quiet.stderr)")
    let manifest = try JSON(parsing: bench.text("again/manifest.json"))
    #expect(manifest["omitted"]?.array?.compactMap { $0["path"]?.string } == ["Attachments/a.pdf"])
    #expect(manifest["omitted"]?.array?.first?["reason"]?.string?.contains("No such file") == true)
}

/// As when the disk of the attachments is not mounted: the records are there, and kept.
@Test func withoutTheFolderOfAttachments_theRecordsAreKept() throws {
    let bench = try oneFile()
    try bench.makeCheapVault()
    try bench.write("pw", "secret\n")
    try bench.shell("chmod 600 pw; mv store.db.assets away")
    for words in [["export", "-o", "out"], ["vault", "backup", "--vault", "v", "--password-file", "pw"]] {
        let result = try bench.tool(words)
        #expect(result.status == 3, "\(result.stderr)")
        #expect(result.stderr.contains("Attachments/a.pdf") && result.stderr.contains("is not there"))
    }
    #expect(try bench.text("out/library.bib").contains("@misc{b,"))
}

@Test func anAssetThatWasChanged_isExportedAsItIsAndReported() throws {
    let bench = try oneFile()
    try bench.write("store.db.assets/Attachments/a.pdf", "%PDF annotated")
    let result = try bench.json(exit: 3, "export", "-o", "out")
    #expect(result["warnings"]?.array?.first?["path"]?.string == "Attachments/a.pdf")
    #expect(try bench.text("out/Attachments/a.pdf") == "%PDF annotated")
    try bench.tool(exit: 0, "verify", "out", "--level", "deep")
}

/// One bad sector costs one file, not the backup.
@Test(arguments: ["dir", "tar.zst", "tar", "zip"])
func anAssetThatCannotBeRead_costsNothingElse(_ format: String) throws {
    let bench = try oneFile(String(repeating: "x", count: 3_000_000))
    let result = try runProcess(
        [
            "strace", "-f", "-qq", "-o", "/dev/null", "-P", bench.path("store.db.assets/Attachments/a.pdf"), "-e",
            "inject=pread64:error=EIO:when=2+", try productsDirectory() + "/backup-tool", "export", "--json", "--store",
            bench.path("store.db"), "-o", bench.path("out"), "--format", format,
        ], environment: testEnvironment(["TMPDIR": bench.path("tmp")]))
    #expect(result.status == 3, "\(result.stderr)")
    let omitted = try JSON(parsing: result.stdout)["omitted"]?.array ?? []
    #expect(omitted.first?["reason"]?.string?.contains("Input/output error") == true, "\(result.stdout)")
    try bench.tool(exit: 3, "verify", "out", "--level", "deep")
    try bench.tool(exit: 3, "restore", "out", "--to", "plain")
    #expect(try bench.text("plain/Attachments/b.pdf") == "%PDF b")
    let kept = try bench.bytes("plain/Attachments/a.pdf")
    #expect(kept.count == 3_000_000 && kept.prefix(1 << 20).allSatisfy { $0 == 0x78 } && kept.last == 0)
}

@Test func anAssetNobodyMayRead_isListedAsOmitted() throws {
    guard geteuid() == 0 else { return }
    let bench = try oneFile()
    try bench.shell(
        """
        chmod 000 store.db.assets/Attachments/a.pdf; chown -R nobody . ; chown root store.db.assets/Attachments/a.pdf
        chmod a+rx .
        """)
    guard access(try productsDirectory() + "/backup-tool", X_OK) == 0,
        try runProcess(["setpriv", "--reuid", "nobody", "test", "-x", try productsDirectory() + "/backup-tool"]).status
            == 0
    else { return }
    let result = try runProcess(
        [
            "setpriv", "--reuid", "nobody", try productsDirectory() + "/backup-tool", "export", "--store", "store.db",
            "-o", "out",
        ],
        environment: testEnvironment(["TMPDIR": bench.path("tmp")]), in: bench.folder)
    #expect(result.status == 3 && result.stderr.contains("Permission denied"), "\(result.stderr)")
    try bench.tool(exit: 3, "verify", "out")
}

/// 250,000,000 bytes is the most that the cloud takes; one more is archived all the same, and said.
@Test func oversizeAssets_areIncluded_skippedOrRefused() throws {
    let bench = try Workbench()
    try bench.shell("mkdir big; truncate -s 250000000 big/exact.bin; truncate -s 250000001 big/over.bin")
    try bench.tool(exit: 3, "import", "--attachments", "big")
    let info = try bench.shell("sqlite3 store.db 'SELECT path, local_only FROM asset ORDER BY path'")
    #expect(info == "Attachments/exact.bin|0\nAttachments/over.bin|1\n")
    let included = try bench.json(exit: 0, "export", "-o", "all.tar.zst", "--no-verify")
    #expect(included["warnings"]?.array?.compactMap { $0["path"]?.string } == ["Attachments/over.bin"])
    #expect(included["omitted"]?.array?.isEmpty == true)
    let skipped = try bench.json(exit: 3, "export", "-o", "some.tar.zst", "--oversize", "skip", "--no-verify")
    #expect(skipped["omitted"]?.array?.compactMap { $0["path"]?.string } == ["Attachments/over.bin"])
    let refused = try bench.tool(exit: 1, "export", "-o", "none.tar.zst", "--oversize", "fail")
    #expect(refused.stderr.contains("Attachments/over.bin: is larger than 250 MB"))
    #expect(try !bench.exists("none.tar.zst") && Directory.names(in: bench.folder).allSatisfy { !$0.contains(".tmp-") })
}
