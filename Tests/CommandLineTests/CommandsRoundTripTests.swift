import BackupKit
import TestSupport
import Testing

private let epoch = ["SOURCE_DATE_EPOCH": "1700000000"]

@Test(arguments: CarrierFormat.allCases)
func exportVerifyRestore_givesTheSameStore(_ format: CarrierFormat) throws {
    let bench = try Workbench()
    try bench.importSamples()
    // Compression is tried on the small library, the rest on all there is.
    if format == .tarZstandard, let corpora = Workbench.corpora {
        try bench.tool(exit: 3, "import", "\(corpora)/bib", "\(corpora)/ollie")
    }
    try bench.tool(exit: 0, "store", "delete", try anEvent(bench))
    let before = try bench.digest()

    let name = "library.\(format.rawValue)"
    let exported = try bench.tool(
        exit: 0, "export", "-o", name, "--format", format.rawValue, environment: epoch)
    #expect(exported.stdout == "" && exported.stderr.contains(" in \(name)"))
    for level in ["quick", "full", "deep"] {
        let verified = try bench.tool(exit: 0, "verify", name, "--level", level)
        #expect(verified.stdout == "" && verified.stderr.contains("OK"))
    }
    #expect(try bench.files("tmp").isEmpty)

    // The samples hold a conflict that waits for a decision.
    try bench.tool(exit: 3, "restore", "--create", name, "--store", "second.db", "--only", Workbench.allKinds)
    #expect(try bench.digest("second.db") == before)
    let state = try bench.state("second.db")
    let again = try bench.tool(
        exit: 0, "restore", "--create", name, "--store", "second.db", "--only", Workbench.allKinds)
    #expect(try bench.state("second.db") == state, "the second restore wrote: \(again.stderr)")

    try bench.tool(exit: 0, "export", "-o", "again", "--format", format.rawValue, environment: epoch)
    try bench.shell("diff -r \(name) again")
    try bench.tool(
        exit: 0, "export", "--store", "second.db", "-o", "third", "--format", format.rawValue, environment: epoch)
    // But for the id of the store, the restored store exports the same bytes.
    try bench.shell(
        """
        "$T" restore \(name) --to a --force 2>/dev/null; "$T" restore third --to b --force 2>/dev/null
        sed -i '/storeId/d' a/manifest.json b/manifest.json
        sed -i '/manifest.json/d' a/SHA256SUMS b/SHA256SUMS
        diff -r a b
        """)
}

@Test(arguments: CarrierFormat.allCases.filter { $0 != .directory })
func exportToStandardOutput_streamsTheSameBytes(_ format: CarrierFormat) throws {
    let bench = try Workbench(epoch)
    try bench.importSamples()
    try bench.tool(exit: 0, "export", "-o", "file", "--format", format.rawValue)
    let streamed = try bench.tool(exit: 0, "export", "-o", "-", "--format", format.rawValue)
    #expect(streamed.stdoutBytes == (try bench.bytes("file")))
    let named = try bench.json(exit: 0, "export", "-o", "x.\(format.rawValue)")
    #expect(named["path"]?.string == "x.\(format.rawValue)" && named["omitted"]?.array?.isEmpty == true)
    #expect(try bench.bytes("x.\(format.rawValue)") == bench.bytes("file"), "the name alone chooses the format")
}

@Test func secondImport_ofEverything_writesNothing() throws {
    let bench = try Workbench()
    func importAll() throws -> ProcessResult {
        try bench.tool(
            exit: 3, "import", "--json", "\(Workbench.samples)/library", "\(Workbench.samples)/events",
            "\(Workbench.samples)/imbib-backup-2026-03-08", "--attachments", "\(Workbench.samples)/library/Attachments")
    }
    _ = try importAll()
    let state = try bench.state()
    let again = try JSON(parsing: importAll().stdout)
    #expect(again["writes"]?.integer == 0 && again["added"]?.integer == 0 && again["updated"]?.integer == 0)
    #expect(again["batch"] == .null)
    #expect(try bench.state() == state)
    if let corpora = Workbench.corpora {
        try bench.tool(exit: 3, "import", "\(corpora)/bib", "\(corpora)/ollie")
        let state = try bench.state()
        try bench.tool(exit: 3, "import", "\(corpora)/bib", "\(corpora)/ollie")
        #expect(try bench.state() == state)
    }
}

/// Everything is the same but the order in which it came.
@Test func anExport_doesNotDependOnTheOrderOfArrival() throws {
    let bench = try Workbench(epoch)
    try bench.write("a.bib", "@string{j = {One}}\n@article{a, title={A}, journal=j}\n@article{b, title={B}}\n")
    try bench.write("b.bib", "@string{j = {Two}}\n@article{c, title={C}, journal=j}\n")
    try bench.write("n.json", "[{\"citeKey\":\"b\",\"note\":\"x\"},{\"citeKey\":\"a\",\"note\":\"y\"}]")
    try bench.shell("mkdir n && mv n.json n/notes.json && touch -d 2026-01-01 *.bib n/*")
    try bench.tool(exit: 0, "import", "--create", "--store", "1.db", "a.bib")
    try bench.tool(exit: 0, "import", "--create", "--store", "1.db", "b.bib", "n/notes.json")
    try bench.tool(exit: 0, "import", "--create", "--store", "2.db", "n/notes.json", "b.bib")
    try bench.tool(exit: 0, "import", "--create", "--store", "2.db", "a.bib")
    #expect(try bench.digest("1.db") == bench.digest("2.db"))
    try bench.tool(exit: 0, "export", "--store", "1.db", "-o", "one")
    try bench.tool(exit: 0, "export", "--store", "2.db", "-o", "two")
    try bench.shell("diff -r -x manifest.json -x SHA256SUMS one two")
}

@Test func peersReadWhatWeWrite() throws {
    let bench = try Workbench()
    try bench.importSamples()
    try bench.shell(
        """
        for format in dir tar tar.gz tar.xz tar.zst zip; do "$T" export -q -o x.$format --format $format; done
        (cd x.dir && sha256sum --quiet --strict -c SHA256SUMS)
        for format in tar tar.gz tar.xz tar.zst; do
            mkdir -p tar.$format bsd.$format
            if [ $format = tar.zst ]; then zstd -qt x.$format; tar --zstd -C tar.$format -xf x.$format
            else tar -C tar.$format -xf x.$format; fi
            bsdtar -C bsd.$format -xf x.$format
            for way in tar bsd; do (cd $way.$format && sha256sum --quiet --strict -c SHA256SUMS); done
        done
        unzip -tq x.zip
        mkdir zip && (cd zip && unzip -q ../x.zip && sha256sum --quiet --strict -c SHA256SUMS)
        for file in x.dir/*.json x.dir/*.jsonl x.dir/events/*.jsonl; do jq -e . "$file" > /dev/null; done
        [ "$(jq -s length x.dir/records.jsonl)" = "$(sqlite3 store.db 'SELECT count(*) FROM records')" ]
        [ "$(sqlite3 store.db 'PRAGMA integrity_check')" = ok ]
        # The content digest, made with tools that everybody has.
        sqlite3 store.db 'SELECT sha256 FROM asset' | sort > stored
        (cd x.dir && find . -path "./Attachments/*" -type f | xargs -d '\\n' sha256sum | cut -c-64 | sort) > found
        diff stored found
        """)
}

private func anEvent(_ bench: Workbench) throws -> String {
    let text = try bench.shell("sqlite3 store.db \"SELECT local_id FROM record WHERE type = 'PuppyEvent' LIMIT 1\"")
    return String(text.prefix { $0 != "\n" })
}

@Test func notesComeInTheOrderOfTheirCiteKeys_inWhateverOrderTheyCame() throws {
    let bench = try Workbench(["SOURCE_DATE_EPOCH": "1700000000"])
    let keys = ["b", "a", "ä", "c"]
    for (name, keys) in [("one", keys), ("two", keys.reversed())] {
        for key in keys {
            // Each in an import of its own: an order of arrival.
            try bench.write("notes.json", "[{\"citeKey\":\"\(key)\",\"note\":\"of \(key)\"}]\n")
            try bench.tool("import", "--create", "--store", "\(name).db", "notes.json")
        }
        try bench.tool("export", "--store", "\(name).db", "-q", "-o", name)
    }
    #expect(try bench.text("one/notes.json").split(separator: "\n").count == 6)
    try bench.shell("for x in one two; do jq -c 'map(.citeKey)' $x/notes.json > $x.keys; done; cmp *.keys")
}
