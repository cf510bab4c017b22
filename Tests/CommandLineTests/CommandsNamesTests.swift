import BackupKit
import TestSupport
import Testing

/// Two files or folders whose names differ only in Unicode form are two, wherever they come by.
private struct NamesWorld {
    /// Files by their paths, as bytes.
    var files: [[UInt8]: String] = [:]

    init(_ random: inout SeededGenerator) {
        let forms = ["\u{E9}", "e\u{301}"]
        for _ in 0..<3 + random.below(4) {
            let folder = random.chance(3) ? "" : "d" + forms[random.below(2)] + "/"
            let name = ["f\(forms[0]).pdf", "f\(forms[1]).pdf", "plain.pdf"][random.below(3)]
            let path = Array((folder + name).utf8)
            files[path] = files[path] ?? "content of \(files.count)"
        }
    }

    var paths: [String] {
        files.sorted { $0.value < $1.value }.map { String(decoding: $0.key, as: UTF8.self) }
    }
}

@Test(arguments: testSeeds(Workbench.isTorture ? 50 : 5))
func filesWithNamesInBothForms_comeBackWithTheirBytes(seed: UInt64) throws {
    countRounds()
    var random = SeededGenerator(seed: seed)
    let bench = try Workbench(["BACKUP_TOOL_PASSWORD": "secret", "BACKUP_TOOL_VAULT": "v"])
    let world = NamesWorld(&random)
    var entries = ""
    for (number, path) in world.paths.enumerated() {
        try bench.write("in/\(path)", world.files[Array(path.utf8)] ?? "")
        entries += "@misc{k\(number), title={T\(number)}, file={:\(path):PDF}}\n"
    }
    let isBeside = random.chance(2)
    try bench.write(isBeside ? "in/a.bib" : "a.bib", entries)
    if isBeside {
        try bench.tool("import", "--create", "in/a.bib")
    } else {
        try bench.tool("import", "--create", "a.bib", "--attachments", "in")
    }
    /// What the linked file of each entry says.
    func linked(_ store: String) throws -> [String] {
        try bench.shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.linkedFiles[0]'), json_array_length(fields, '$.linkedFiles') \
            FROM record WHERE type = 'Publication' ORDER BY json_extract(fields, '$.title')" | while IFS='|' read -r file count
            do echo "$count $(cat "\(store).assets/$file")"; done
            """
        ).split(separator: "\n").map(String.init)
    }
    let expected = world.paths.indices.map { "1 content of \($0)" }
    #expect(try linked("store.db") == expected, "seed \(seed): \(world.paths)")
    let digest = try bench.digest()
    for form in ["out", "out.tar.zst", "out.zip"] {
        try bench.tool(exit: 0, "export", "-q", "-o", form)
        try bench.tool(exit: 0, "verify", "-q", form, "--level", "deep")
        try bench.tool(exit: 0, "restore", "-q", "--create", form, "--store", "\(form).db")
        #expect(try bench.digest("\(form).db") == digest && linked("\(form).db") == expected, "seed \(seed), \(form)")
    }
    try bench.makeCheapVault()
    try bench.tool(exit: 0, "vault", "backup", "-q")
    try bench.tool(exit: 0, "restore", "-q", "--create", "vault:v", "--store", "v.db")
    #expect(try bench.digest("v.db") == digest && linked("v.db") == expected, "seed \(seed)")
}

// MARK: Whose file it is

@Test func aBackupOfImbib_linksWhatItsEntriesName_andNoOthers() throws {
    let bench = try Workbench()
    try bench.write("ann.bib", "@misc{ann, title={Owls}, file={:files/x.pdf:PDF}}\n@misc{x, title={Key}}\n")
    try bench.tool(exit: 3, "import", "--create", "ann.bib")
    try bench.shell("mkdir -p b/Attachments/files && printf stranger > b/Attachments/files/x.pdf")
    try bench.shell("printf own > b/Attachments/own.pdf")
    try bench.write(
        "b/library.bib",
        """
        @misc{bob, title={Bees}, file={:Attachments/own.pdf:PDF}}
        @misc{gone, title={Ants}, file={:papers/x.pdf:PDF}}
        @misc{zoe, title={Wasps}, file={:own.pdf:PDF}}

        """)
    try bench.python(
        """
        import json, os
        folds = {}
        for path in ['library.bib', 'Attachments/files/x.pdf', 'Attachments/own.pdf']:
            fold = bytearray(32)
            for index, byte in enumerate(open('b/' + path, 'rb').read()): fold[index % 32] ^= byte
            folds[path] = fold.hex()
        json.dump({'version': 1, 'createdAt': 794655000, 'appVersion': '1', 'schemaVersion': 110,
            'publicationCount': 3, 'attachmentCount': 2, 'fileChecksums': folds}, open('b/manifest.json', 'w'))
        """)
    for command in [["restore", "b"], ["import", "b"]] {
        let result = try bench.tool(command)
        #expect(result.status == 3 && result.stderr.contains("papers/x.pdf"), "\(result.stderr)")
        #expect(!result.stderr.contains("own.pdf"), "\(result.stderr)")
        let links = try bench.shell(
            """
            sqlite3 store.db "SELECT json_extract(fields, '$.citeKey'), json_extract(fields, '$.linkedFiles') FROM record \
            WHERE type = 'Publication' AND fields LIKE '%linkedFiles%' ORDER BY 1"
            """)
        #expect(links == "bob|[\"Attachments/own.pdf\"]\nzoe|[\"Attachments/own.pdf\"]\n", "\(links)")
    }
}

@Test func aStoreInsideTheFolderOfAttachments_isNotTakenIn() throws {
    let bench = try Workbench()
    try bench.write("all/a.bib", "@misc{a, title={A}, file={:x.pdf:PDF}}\n")
    try bench.write("all/x.pdf", "PDF")
    try bench.shell("ln -s all link")
    for _ in 0..<3 {
        for (folder, store) in [("all", "all/store.db"), ("link", "all/store.db"), ("all", "link/store.db")] {
            let result = try bench.tool("import", "--create", folder, "--attachments", folder, "--store", store)
            #expect(!result.stderr.contains("store.db\n  "), "\(result.stderr)")
            #expect(
                !result.stderr.contains("such as store") && !result.stderr.contains("such as ."), "\(result.stderr)")
            let plain = try bench.tool("import", folder, "--store", store)
            #expect(!plain.stderr.contains("store.db"), "\(plain.stderr)")
        }
    }
    let assets = try bench.shell("sqlite3 all/store.db 'SELECT path FROM asset ORDER BY 1'")
    #expect(assets == "Attachments/x.pdf\n", "\(assets)")
}

/// Photos of three phones, whose names differ only in case or not at all.
@Test func namesThatAnImportChooses_canLieSideBySide() throws {
    let bench = try Workbench()
    for (number, names) in [["a", "A"], ["A"], ["a"], ["A"]].enumerated() {
        for (place, name) in names.enumerated() {
            let line = #"{"time":"2026-02-1\#(number)T1\#(place):00:00+01:00","type":"x","photo":"media/\#(name).jpg"}"#
            try bench.shell("mkdir -p l\(number)/media; echo '\(line)' >> l\(number)/l.jsonl")
            // The second one comes with no log.
            if place == 0 { try bench.write("l\(number)/media/\(name).jpg", "photo \(number)") }
        }
        try bench.tool("import", "--create", "l\(number)")
    }
    #expect(try bench.shell("find store.db.assets/Attachments -type f | tr A-Z a-z | sort | uniq -d") == "")
    try bench.tool(exit: 0, "store", "check")
    for carrier in ["e", "e.tar", "e.zip"] {
        let told = try bench.tool(exit: 0, "export", "-o", carrier)
        #expect(!told.stderr.contains("left out"), "\(told)")
    }
    try bench.tool("restore", "e.tar", "--create", "--store", "r.db")
    #expect(try bench.digest("r.db") == bench.digest())
}
