import BackupKit
import TestSupport
import Testing

/// An exported sample library, and a store that the damaged copies are restored into.
private func damageBench(_ format: String) throws -> Workbench {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.tool(exit: 0, "export", "-q", "-o", "good", "--format", format)
    try bench.write("other.bib", "@misc{other, title={Another library}}")
    try bench.tool(exit: 0, "import", "--create", "--store", "target.db", "other.bib")
    return bench
}

/// Verify says 4 and names `entry`; restore says 4 and changes nothing.
private func expectRefused(
    _ bench: Workbench, _ name: String, naming entry: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let verified = try bench.tool("verify", name)
    #expect(
        verified.status == 4 && verified.stdout == "" && verified.stderr.contains(entry),
        "\(entry): \(verified.status) \(verified.stderr)", sourceLocation: sourceLocation)
    let before = try bench.state("target.db")
    let restored = try bench.tool("restore", "--create", name, "--store", "target.db")
    #expect(
        restored.status == 4 && restored.stderr.contains("--allow-damage"), "\(entry): \(restored.stderr)",
        sourceLocation: sourceLocation)
    let unchanged = try bench.state("target.db") == before
    #expect(unchanged, "\(entry): the store was changed", sourceLocation: sourceLocation)
}

@Test func aChangedByteInAnyFileOfAFolder_isNamed() throws {
    let bench = try damageBench("dir")
    var seed = testSeed()
    for file in try bench.files("good") {
        let bytes = try bench.bytes("good/\(file)")
        guard !bytes.isEmpty else { continue }
        var damaged = bytes
        seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        damaged[Int(seed >> 33) % bytes.count] ^= 1 << UInt8(seed >> 20 & 7)
        try bench.write("good/\(file)", damaged)
        let verified = try bench.tool("verify", "good")
        #expect(verified.status == 4 && verified.stderr.contains(file), "\(file): \(verified.stderr)")
        try bench.write("good/\(file)", bytes)
    }
    try bench.tool(exit: 0, "verify", "good")
}

@Test func whatIsMissing_added_orChangedPlaces_isNamedAndNotRestored() throws {
    let bench = try damageBench("dir")
    func damage(_ script: String, naming entry: String, _ location: SourceLocation = #_sourceLocation) throws {
        try bench.shell("rm -rf bad; cp -a good bad; cd bad; \(script)")
        try expectRefused(bench, "bad", naming: entry, sourceLocation: location)
    }
    let pdf = "Attachments/ibarra-lund-2021.pdf"
    for file in ["library.bib", "records.jsonl", "SHA256SUMS", "manifest.json", "README.txt", pdf] {
        try damage("rm \(file)", naming: file)
        try damage("printf x >> \(file)", naming: file)
        try damage("truncate -s -1 \(file)", naming: file)
    }
    try damage("touch Attachments/extra.pdf", naming: "Attachments/extra.pdf")
    try damage("mv \(pdf) x; mv Attachments/scan0042.pdf \(pdf); mv x Attachments/scan0042.pdf", naming: pdf)
    try damage("sed -i 's/\"publications\":[0-9]*/\"publications\":999/' manifest.json", naming: "manifest.json")
    // A liar who also writes the checksums anew is told by the counts.
    try damage(
        """
        sed -i 's/"publications":[0-9]*/"publications":999/' manifest.json
        sed -i "s/^.*  manifest.json/$(sha256sum manifest.json | cut -c-64)  manifest.json/" SHA256SUMS
        ! "$T" verify . 2>&1 | tee ../said; grep -q 'instead of 999' ../said; rm manifest.json
        """, naming: "manifest.json")
}

@Test(arguments: ["tar", "tar.gz", "tar.xz", "tar.zst", "zip"])
func aDamagedArchive_isRefused(_ format: String) throws {
    let bench = try damageBench(format)
    let (bytes, bad) = (try bench.bytes("good"), "bad.\(format)")
    var seed = testSeed()
    print("seed \(seed)")
    for round in 0..<(Workbench.isTorture ? 120 : 8) {
        seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        countRounds()
        var damaged = bytes
        let place = Int(seed >> 33) % bytes.count
        damaged[place] ^= 1 << UInt8(seed >> 20 & 7)
        try bench.write(bad, damaged)
        let before = try bench.state("target.db")
        let verified = try bench.tool("verify", bad)
        if verified.status != 4 {
            // A byte that means nothing, such as one of a tar's padding, may pass: then all is whole.
            #expect([0, 3].contains(verified.status))
            try bench.tool("restore", "--create", bad, "--store", "whole\(round).db", "--only", Workbench.allKinds)
            #expect(try bench.digest("whole\(round).db") == bench.digest(), "byte \(place)")
        } else {
            let restored = try bench.tool("restore", "--create", bad, "--store", "target.db")
            #expect(restored.status != 0, "byte \(place)")
            #expect(try bench.state("target.db") == before, "byte \(place)")
        }
    }
    for cut in [1, 100, bytes.count / 2, bytes.count - 10] {
        try bench.write(bad, Array(bytes.dropLast(cut)))
        let before = try bench.state("target.db")
        let verified = try bench.tool(exit: 4, "verify", bad)
        #expect(verified.stderr.contains(bad))
        #expect(try bench.tool("restore", "--create", bad, "--store", "target.db").status != 0)
        #expect(try bench.state("target.db") == before)
    }
    try bench.write(bad, bytes + Array("more".utf8))
    #expect(try bench.tool("verify", bad).status == 4)
}

@Test func allowDamage_restoresWhatIsSound_andListsTheRest() throws {
    let bench = try damageBench("dir")
    try bench.shell("printf x >> good/Attachments/ibarra-lund-2021.pdf; rm good/Attachments/scan0042.pdf")
    let result = try bench.json(exit: 3, "restore", "--create", "good", "--store", "target.db", "--allow-damage")
    let findings = (result["findings"]?.array ?? []).compactMap { $0["path"]?.string }
    #expect(findings == ["Attachments/ibarra-lund-2021.pdf", "Attachments/scan0042.pdf", "settings.json"])
    #expect(try bench.exists("target.db.assets/Attachments/Halloran2003 back cover.pdf"))
    #expect(try !bench.exists("target.db.assets/Attachments/ibarra-lund-2021.pdf"))
    let counts = try bench.json(exit: 0, "store", "info", "--store", "target.db")
    let whole = try bench.json(exit: 0, "store", "info")
    #expect(counts["records"]?["events"] == whole["records"]?["events"])
    #expect(counts["assets"]?.integer == (whole["assets"]?.integer ?? 0) - 2)

    let files = try bench.tool(exit: 3, "restore", "good", "--to", "plain", "--allow-damage")
    #expect(files.stderr.contains("Attachments/ibarra-lund-2021.pdf"))
    #expect(try !bench.exists("plain/Attachments/ibarra-lund-2021.pdf") && bench.exists("plain/library.bib"))
}

@Test func damagedRecords_areRebuiltFromTheViews_andThatIsSaid() throws {
    let bench = try damageBench("dir")
    try bench.tool(exit: 0, "export", "-q", "-o", "before")
    try bench.shell("rm -rf bad; cp -a good bad; sed -i '3s/a/b/' bad/records.jsonl")
    let result = try bench.tool(
        exit: 3, "restore", "--create", "bad", "--store", "fresh.db", "--allow-damage", "--only", Workbench.allKinds)
    #expect(result.stderr.contains("records.jsonl") && result.stderr.contains("rebuilt"), "\(result.stderr)")
    try bench.tool(exit: 0, "export", "--store", "fresh.db", "-q", "-o", "rebuilt")
    // The views tell the same story, but for tombstones and sync facts.
    try bench.shell("diff -r before/events rebuilt/events && diff -r before/Attachments rebuilt/Attachments")
    try bench.shell("diff before/library.bib rebuilt/library.bib")
    try bench.shell("for x in before rebuilt; do jq -S 'map({citeKey, note})' $x/notes.json > $x.n; done; cmp *.n")
    try bench.shell("jq -S . before/settings.json > a; jq -S . rebuilt/settings.json | diff a -")
}

@Test func withoutItsManifest_aLibraryIsStillJudgedByItsChecksums() throws {
    let bench = try damageBench("dir")
    try bench.shell("rm good/manifest.json; printf x >> good/Attachments/scan0042.pdf")
    let verified = try bench.tool(exit: 4, "verify", "good")
    #expect(verified.stderr.contains("manifest.json") && verified.stderr.contains("scan0042.pdf"))
    try bench.tool(exit: 3, "restore", "--create", "good", "--store", "target.db", "--allow-damage")
    #expect(try !bench.exists("target.db.assets/Attachments/scan0042.pdf"))
    #expect(try bench.exists("target.db.assets/Attachments/ibarra-lund-2021.pdf"))
}

@Test func anUnreadableFile_isAFindingAndNoEndOfTheCheck() throws {
    let bench = try damageBench("dir")
    // Root reads what nobody may read, so the disk is made to fail instead.
    let result = try runProcess(
        [
            "strace", "-f", "-qq", "-o", "/dev/null", "-P", bench.path("good/library.bib"), "-e",
            "inject=pread64:error=EIO", try productsDirectory() + "/backup-tool", "verify", bench.path("good"),
        ], environment: testEnvironment(), timeout: 60)
    #expect(result.status == 4 && result.stderr.contains("library.bib: cannot be read"), "\(result.stderr)")
    #expect(result.stderr.contains("1 piece of damage"))
}

@Test func aRestoreOfEverythingNoticesAFileThatBecameAnother_atItsOldSize() throws {
    let bench = try damageBench("dir")
    let name = try #require(try bench.files("store.db.assets").first { $0.hasSuffix(".pdf") })
    let path = "store.db.assets/\(name)"
    try bench.tool(exit: 0, "restore", "good")
    try bench.shell("head -c $(stat -c %s '\(path)') /dev/urandom > x; cat x > '\(path)'")
    let told = try bench.tool(exit: 3, "restore", "good").stderr
    #expect(told.contains(name) && told.contains("what the store remembers"), "\(told)")
    try bench.shell("rm '\(path)'")
    try bench.tool(exit: 0, "restore", "good")
    try bench.tool(exit: 0, "restore", "good")
}

@Test func aMissingFolderForTemporaryDataIsNoMissingBackup() throws {
    let bench = try damageBench("dir")
    for words in [["verify", "good", "--level", "deep"], ["export", "-o", "again.tar.zst"]] {
        let told = try bench.tool(words, environment: ["TMPDIR": bench.path("none")])
        #expect(told.status == 1 && told.stderr.contains("set TMPDIR"), "\(words): \(told.status) \(told.stderr)")
    }
}

@Test(arguments: ["list", "show"])
func whoeverLooksAtABackupWithoutItsManifest_isTold_alsoInJSON(_ command: String) throws {
    let bench = try damageBench("dir")
    try bench.shell("echo rubbish > good/manifest.json")
    for words in [[command, "good"], [command, "good", "--json"]] {
        let told = try bench.tool(words)
        #expect(told.status == 4 && told.stderr.contains("manifest.json"), "\(words): \(told.status) \(told.stderr)")
    }
}

/// What the packing gives in front of the cut is restored, also of an archive that is small.
@Test(arguments: ["tar.gz", "tar.xz", "tar"])
func aSmallArchiveThatIsCutOff_givesWhatIsInFrontOfTheCut(_ format: String) throws {
    let bench = try damageBench(format)
    try bench.shell("head -c $(($(stat -c %s good) * 95 / 100)) good > cut")
    let verified = try bench.tool(exit: 4, "verify", "cut")
    #expect(!verified.stderr.contains("0 files"), "\(verified.stderr)")
    let restored = try bench.json(exit: 3, "restore", "cut", "--create", "--store", "new.db", "--allow-damage")
    #expect(restored["added"]?.integer ?? 0 > 40, "\(restored)")
    let messages = restored["findings"]?.array?.compactMap { $0["message"]?.string } ?? []
    let sizes = Set(messages.compactMap { $0.firstMatch(of: /after (\d+) bytes/)?.1 })
    #expect(sizes.count == (format == "tar" ? 1 : 0), "\(restored)")
}

/// What packs the files is whole but for the number at its end that proves it.
@Test(arguments: ["tar.gz", "tar.xz"], [1, 4, 8, 9, 13])
func anArchiveThatLacksItsLastBytes_givesAllItsFiles(_ format: String, lacking count: Int) throws {
    let bench = try damageBench(format)
    let all = try bench.json(exit: 3, "restore", "good", "--create", "--store", "all.db")["added"]?.integer
    try bench.shell("head -c -\(count) good > cut")
    try bench.tool(exit: 4, "verify", "cut")
    try bench.tool(exit: 4, "restore", "cut", "--create", "--store", "new.db")
    let restored = try bench.json(exit: 3, "restore", "cut", "--create", "--store", "new.db", "--allow-damage")
    #expect(restored["added"]?.integer == all, "\(restored)")
}

/// The number at the end that proves it is wrong.
@Test(arguments: ["tar.gz", "tar.xz"])
func anArchiveThatIsDamagedAtItsEnd_givesAllItsFiles(_ format: String) throws {
    let bench = try damageBench(format)
    let all = try bench.json(exit: 3, "restore", "good", "--create", "--store", "all.db")["added"]?.integer
    try bench.shell(
        "cp good bad; printf 'XX' | dd of=bad bs=1 seek=$(($(stat -c %s good) - 8)) conv=notrunc status=none")
    try bench.tool(exit: 4, "verify", "bad")
    let restored = try bench.json(exit: 3, "restore", "bad", "--create", "--store", "new.db", "--allow-damage")
    #expect(restored["added"]?.integer == all, "\(restored)")
}

/// One block of zstd is whole or nothing.
@Test func anArchiveOfWhichNothingCanBeRead_saysSo() throws {
    let bench = try damageBench("tar.zst")
    try bench.shell("head -c 2000 good > cut")
    let restored = try bench.tool(exit: 4, "restore", "cut", "--create", "--store", "new.db", "--allow-damage")
    #expect(restored.stderr.contains("no file of it can be read"), "\(restored.stderr)")
    #expect(try !bench.exists("new.db"))
}

/// A zip that is cut off in any of its files gives back those in front of it, the empty ones and the stored ones, too.
@Test(arguments: [true, false])
func aZipThatIsCutOff_givesBackWhatLiesInFrontOfTheCut(hasRecords: Bool) throws {
    let bench = try Workbench()
    if hasRecords { try bench.importSamples() } else { try bench.tool("store", "init") }
    try bench.shell("mkdir a && for i in 1 2 3; do head -c 90000 /dev/urandom > a/f$i.pdf; done")
    try bench.tool("import", "--attachments", "a")
    try bench.tool("export", "-o", "whole.zip")
    let entries = try bench.shell(
        """
        python3 -c "import zipfile
        for entry in zipfile.ZipFile('whole.zip').infolist(): print(entry.header_offset, entry.filename)"
        """
    ).split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
    for (number, entry) in entries.enumerated().dropFirst() {
        let cut = try #require(Int(entry[0])) + [0, 1, 12, 22, 60][number % 5]
        try bench.shell("rm -rf out; head -c \(cut) whole.zip > cut.zip")
        let told = try bench.tool("restore", "cut.zip", "--to", "out", "--allow-damage")
        #expect(told.status == 3, "\(entry): \(told)")
        let back = Set(try bench.files("out"))
        let missing = entries[..<number].map { String($0[1]) }.filter { !back.contains($0) }
        #expect(missing.isEmpty, "\(entry): \(missing)")
    }
}

/// What `show` prints of an archive that only a checksum at its end vouches for is right, or the exit code is not 0.
@Test(arguments: ["tar.gz", "tar.xz", "tar.zst", "zip"])
func whatIsShownOfADamagedArchive_isRightOrNamed(format: String) throws {
    let bench = try Workbench()
    try bench.shell("mkdir a && for i in 1 2 3; do head -c 20000 /dev/urandom > a/f$i.pdf; done")
    try bench.tool("import", "--create", "--attachments", "a")
    try bench.tool(exit: 0, "export", "-o", "good.\(format)")
    let bytes = try bench.bytes("good.\(format)")
    var random = SeededGenerator(seed: testSeed())
    for _ in 0..<(Workbench.isTorture ? 200 : 12) {
        countRounds()
        var damaged = bytes
        let place = Int.random(in: 0..<bytes.count, using: &random)
        damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try bench.write("bad.\(format)", damaged)
        for number in 1...3 {
            let shown = try bench.tool("show", "bad.\(format)", "Attachments/f\(number).pdf")
            let isRight = try shown.stdoutBytes == bench.bytes("a/f\(number).pdf")
            #expect(isRight || shown.status != 0, "byte \(place), file \(number): \(shown.stderr)")
        }
    }
}
