import BackupKit
import TestSupport
import Testing

/// An independent reader of imbib's format: what its decoder insists on.
private let judge = """
    import base64, json, os, sys
    root = sys.argv[1]
    manifest = json.load(open(root + '/manifest.json'))
    assert list(sorted(manifest)) == sorted(['version', 'createdAt', 'appVersion', 'schemaVersion',
        'publicationCount', 'attachmentCount', 'fileChecksums']), manifest
    assert manifest['version'] == 1 and type(manifest['createdAt']) in (int, float)
    assert type(manifest['appVersion']) is str and type(manifest['schemaVersion']) is int
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if path == 'manifest.json': continue
            fold = bytearray(32)
            for index, byte in enumerate(open(os.path.join(folder, name), 'rb').read()): fold[index % 32] ^= byte
            found[path] = fold.hex()
    assert found == manifest['fileChecksums'], (found, manifest['fileChecksums'])
    attachments = [path for path in found if path.startswith('Attachments/')]
    assert manifest['attachmentCount'] == len(attachments)
    assert set(path.split('/')[0] for path in found) <= {'library.bib', 'notes.json', 'settings.json', 'Attachments'}
    notes = json.load(open(root + '/notes.json'))
    assert all(set(note) == {'citeKey', 'note'} for note in notes), notes
    assert type(json.load(open(root + '/settings.json'))) is dict
    """

@Test func whatWeWriteForImbib_itsDecoderAccepts() throws {
    let bench = try Workbench(["SOURCE_DATE_EPOCH": "1700000000"])
    try bench.importSamples()
    try bench.write("pdfs/PDFs/scan0042.pdf", "%PDF of the older folder")
    try bench.tool(exit: 3, "import", "--attachments", "pdfs")
    // Two files belong to nobody.
    try bench.tool(exit: 3, "export", "--format", "imbib", "-o", "folder")
    try bench.tool(exit: 3, "export", "--format", "imbib", "-o", "backup.zip")
    try bench.shell("mkdir unzipped && cd unzipped && unzip -q ../backup.zip && diff -r . ../folder")
    try bench.python(judge, "folder")
    #expect(try bench.text("folder/manifest.json").contains("\"createdAt\": 721692800,"))
    let verified = try bench.tool(exit: 3, "verify", "folder")
    #expect(verified.stderr.contains("They do not notice blocks of 32 bytes that changed places"))
    try bench.tool(exit: 3, "verify", "backup.zip", "--level", "deep")
    let back = try bench.json(exit: 3, "restore", "--create", "backup.zip", "--store", "b.db")
    let info = try bench.json(exit: 0, "store", "info", "--store", "b.db")
    let own = try bench.json(exit: 0, "store", "info")
    #expect(info["records"]?["publications"] == own["records"]?["publications"], "\(back)")
    #expect(info["records"]?["notes"] == own["records"]?["notes"] && info["assets"] == own["assets"])
}

/// Both generations, as a folder and as macOS zips it.
@Test(arguments: [true, false])
func imbibBackups_ofBothGenerations_areRead(_ isOld: Bool) throws {
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 new")
    if isOld {
        try bench.python(
            """
            import json, os
            os.rename('new/Attachments', 'new/PDFs')
            library = open('new/library.bib').read()
            fold = lambda path: (lambda f: [f.__setitem__(i % 32, f[i % 32] ^ b) for i, b in
                enumerate(open(path, 'rb').read())] and f.hex())(bytearray(32))
            manifest = json.load(open('new/manifest.json'))
            manifest['pdfCount'] = manifest.pop('attachmentCount')
            manifest['createdAt'] = '2026-03-08T10:10:00Z'
            manifest['fileChecksums'] = {(p.replace('Attachments/', 'PDFs/')): s
                for p, s in manifest['fileChecksums'].items()}
            json.dump(manifest, open('new/manifest.json', 'w'))
            """)
    }
    try bench.python(
        """
        import os, zipfile
        with zipfile.ZipFile('mac.zip', 'w') as archive:
            for folder, _, names in os.walk('new'):
                for name in names:
                    path = os.path.join(folder, name)
                    archive.write(path, 'imbib-backup/' + os.path.relpath(path, 'new'))
                    archive.writestr('__MACOSX/imbib-backup/._' + name, b'resource fork')
            archive.writestr('imbib-backup/.DS_Store', b'finder')
            archive.writestr('imbib-backup/._library.bib', b'resource fork')
        """)
    for path in ["new", "mac.zip"] {
        for level in ["quick", "full", "deep"] { try bench.tool(exit: 3, "verify", path, "--level", level) }
    }
    try bench.tool("import", "new", "--create", "--store", "a.db")
    try bench.tool("restore", "--create", "mac.zip", "--store", "b.db")
    #expect(try bench.digest("a.db") == bench.digest("b.db"))
    let info = try bench.json(exit: 0, "store", "info", "--store", "b.db")
    #expect(info["records"]?["publications"]?.integer ?? 0 >= 3 && info["assets"]?.integer == 1)
    #expect(try bench.files("b.db.assets") == [(isOld ? "PDFs/" : "Attachments/") + "Vale 2023.pdf"])
    let linked = try bench.shell(
        "sqlite3 b.db \"SELECT count(*) FROM record WHERE fields LIKE '%linkedFiles%Vale 2023.pdf%'\"")
    #expect(linked == "1\n")
}

@Test func aDamagedImbibBackup_isFoundByItsOwnChecksums_andNotRestored() throws {
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 bad; printf x >> 'bad/Attachments/Vale 2023.pdf'")
    let verified = try bench.tool(exit: 4, "verify", "bad")
    #expect(verified.stderr.contains("Attachments/Vale 2023.pdf: does not have the checksum"))
    try bench.tool(exit: 4, "restore", "bad")
    #expect(try !bench.exists("store.db"))
    try bench.tool(exit: 3, "restore", "bad", "--allow-damage")
    #expect(try bench.files("store.db.assets").isEmpty)
    try bench.shell("rm 'bad/Attachments/Vale 2023.pdf'")
    for level in ["quick", "full"] {
        #expect(try bench.tool(exit: 4, "verify", "bad", "--level", level).stderr.contains("Vale 2023.pdf"))
    }
}

/// imbib has one folder for all files, and the store may have them in two.
@Test(arguments: ["PDFs", "Attachments"], ["import", "restore"])
func ourOwnImbibBackup_addsNothingToTheStoreThatItCameFrom(folder: String, command: String) throws {
    let bench = try Workbench()
    try bench.write("\(folder)/p.pdf", "%PDF-1.4 one")
    try bench.write("r.bib", "@article{k1, title={One}, author={Smith, A}, year=2020, file={:\(folder)/p.pdf:PDF}}\n")
    try bench.tool(exit: 0, "import", "r.bib", "--create")
    try bench.tool("export", "-o", "e.zip", "--format", "imbib")
    let before = try bench.tool(exit: 0, "store", "digest").stdout
    let again = try bench.tool([command, "e.zip", "--json"])
    #expect(try JSON(parsing: again.stdoutLines.last ?? "")["writes"]?.integer == 0, "\(again.stdout)\(again.stderr)")
    #expect(try bench.tool(exit: 0, "store", "digest").stdout == before)
}

/// Its sums prove nothing of an entry that is gone.
@Test(arguments: ["restore", "import"], [[], ["--mode", "replace"]])
func whatAnImbibBackupHasLost_isNoReasonToRemoveIt(_ command: String, _ how: [String]) throws {
    guard command == "restore" || how.isEmpty else { return }
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 whole; cp -a whole lost")
    try bench.tool(["import", "--create", "--store", "store.db", "whole"])
    try bench.python(
        """
        import json
        text = open('lost/library.bib').read()
        text = text[:text.rfind('@')]
        open('lost/library.bib', 'w').write(text)
        fold = bytearray(32)
        for index, byte in enumerate(text.encode()): fold[index % 32] ^= byte
        manifest = json.load(open('lost/manifest.json'))
        manifest['fileChecksums']['library.bib'] = fold.hex()
        json.dump(manifest, open('lost/manifest.json', 'w'))
        """)
    let before = try bench.digest()
    let refused = try bench.tool([command] + how + ["lost"])
    #expect(refused.status == 4 && refused.stderr.contains("publications instead of"), "\(refused)")
    #expect(try bench.digest() == before)
}

/// imbib writes the whole library into each backup. In the next one nobody needs to have edited anything.
@Test func theNextBackup_isNoNewerInWhatTheOneBeforeSaid() throws {
    let bench = try Workbench()
    func backup(_ name: String, hoursAgo: Int, _ ants: String, _ more: String = "", note: String) throws {
        let library = """
            @article{ants, title={On ants}, author={Ann Smith}, year={2020}, abstract={\(ants)}}
            @article{bees, title={On bees}, author={Bob Smith}, year={2021}}
            \(more)
            """
        try bench.write("\(name)/library.bib", library + "\n")
        try bench.write("\(name)/notes.json", #"[{"citeKey":"ants","note":"\#(note)"}]"#)
        try bench.write("\(name)/settings.json", "{}")
        try bench.write(
            "make.py",
            """
            import json, sys, time
            folder, hours = sys.argv[1], int(sys.argv[2])
            folds = {}
            for path in ['library.bib', 'notes.json', 'settings.json']:
                fold = bytearray(32)
                for index, byte in enumerate(open(folder + '/' + path, 'rb').read()): fold[index % 32] ^= byte
                folds[path] = fold.hex()
            json.dump({'version': 1, 'createdAt': int(time.time()) - hours * 3600 - 978307200, 'appVersion': '1.0',
                'schemaVersion': 120, 'publicationCount': open(folder + '/library.bib').read().count('@'),
                'attachmentCount': 0, 'fileChecksums': folds},
                open(folder + '/manifest.json', 'w'))
            """)
        try bench.shell("python3 make.py \(name) \(hoursAgo)")
    }
    func library() throws -> String {
        try bench.shell("rm -rf out")
        try bench.tool(exit: 0, "export", "-o", "out")
        return try bench.shell("cat out/library.bib out/notes.json")
    }
    try backup("first", hoursAgo: 4, "old", note: "old note")
    try bench.tool("restore", "--create", "first")
    try bench.write(
        "mine/library.bib", "@article{ants, title={On ants}, author={Ann Smith}, year={2020}, abstract={NEWER}}\n")
    try bench.write("mine/notes.json", #"[{"citeKey":"ants","note":"NEWER NOTE"}]"#)
    try bench.shell("touch -d '3 hours ago' mine/*")
    try bench.tool("import", "mine")
    try bench.shell("$T store delete $(sqlite3 store.db \"SELECT local_id FROM record WHERE fields LIKE '%On bees%'\")")
    try backup("second", hoursAgo: 0, "old", "@misc{cats, title={On cats}, year={2022}}", note: "old note")
    // What a person chooses of a backup makes the rest of it no newer.
    try bench.tool("restore", "second", "--match", "cats")
    try bench.tool("restore", "second")
    let kept = try library()
    #expect(kept.contains("NEWER}") && kept.contains("NEWER NOTE") && kept.contains("On cats"), "\(kept)")
    #expect(!kept.contains("On bees"), "\(kept)")
    // What imbib's user wrote since is an edit.
    try backup("third", hoursAgo: 0, "newest", note: "newest note")
    try bench.tool("restore", "third")
    let edited = try library()
    #expect(edited.contains("{newest}") && edited.contains("newest note"), "\(edited)")
    try bench.tool("restore", "first", "--mode", "replace")
    #expect(try library().contains("{old}"))
}

@Test func membersOfNotesThatImbibDoesNotKnow_goIntoItsBackupToo() throws {
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 lib; rm lib/*.json")
    let note = "{\"citeKey\":\"Vale2023\",\"note\":\"A\",\"color\":\"red\",\"tags\":[\"x\"],\"page\":12}"
    try bench.write("lib/notes.json", "[\(note)]")
    try bench.tool("import", "lib", "--attachments", "lib", "--create")
    try bench.tool(exit: 0, "export", "--format", "imbib", "-o", "im")
    #expect(try bench.text("im/notes.json") == "[\n  \(note)\n]\n")
    try bench.tool("restore", "--create", "im", "--store", "b.db")
    let diff = try bench.tool("diff", "store.db", "b.db").stdout
    #expect(!diff.contains("notes"), "\(diff)")
}

/// What the backup shows stays where it is; what the store had of its own goes once.
@Test(arguments: [true, false])
func aReplaceByAnImbibBackup_leavesWhatTheBackupShows_andComesToRest(isOwn: Bool) throws {
    let bench = try Workbench()
    for name in ["a", "b"] {
        try bench.write(
            "\(name).bib",
            """
            % the library of \(name)
            @string{mac = "Journal of \(name)"}
            @preamble{"\\relax"}
            @article{z\(name), title={On bees}, author={Z, \(name)}, year=2001, journal=mac}
            @article{q, title={On ants}, author={A, A}, year=2001, journal=mac}

            """)
        try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", "\(name).bib")
    }
    try bench.tool("export", "--store", "a.db", "--format", "imbib", "-o", "im")
    let store = isOwn ? "a.db" : "b.db"
    var exports: [String] = []
    for run in 1...3 {
        let done = try bench.json(exit: 0, "restore", "im", "--store", store, "--mode", "replace")
        if run > 1 { #expect(done["writes"]?.integer == 0, "run \(run): \(done)") }
        try bench.shell("rm -rf out")
        try bench.tool(exit: 0, "export", "--store", store, "-o", "out")
        exports.append(try bench.text("out/library.bib"))
    }
    for text in exports {
        for part in ["% the library of a", "Journal of a", "@preamble", "{za,", "{q,"] {
            #expect(text.contains(part), "\(part): \(text)")
        }
        #expect(!text.contains("Journal of b") && !text.contains("library of b") && !text.contains("{zb,"), "\(text)")
    }
    if isOwn {
        #expect(try bench.json(exit: 0, "import", "a.bib", "--store", "a.db")["writes"]?.integer == 0)
    }
}

/// The backup has the work under the key that it had before a decision.
@Test func aReplaceByAnImbibBackup_leavesAWorkThatHasAnotherKeySince() throws {
    let bench = try Workbench()
    for (name, title) in [("a", "On ants"), ("b", "On bees")] {
        try bench.write("\(name).bib", "@article{k, title={\(title)}, author={A, \(name)}, year=2001}\n")
        try bench.tool("import", "--create", "\(name).bib")
    }
    try bench.tool("export", "--format", "imbib", "-o", "im")
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "rename-incoming")
    for _ in 1...2 {
        try bench.tool("restore", "im", "--mode", "replace")
        let titles = try bench.shell(
            "sqlite3 store.db \"SELECT json_extract(fields, '$.title') FROM record WHERE type = 'Publication'\"")
        #expect(Set(titles.split(separator: "\n")).isSuperset(of: ["On ants", "On bees"]), "\(titles)")
    }
}

/// Other apps and editors begin a text with it.
@Test(arguments: ["restore", "import"])
func aByteOrderMark_inTheJSONOfABackup_isNoDamage(command: String) throws {
    let bench = try Workbench()
    try bench.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 plain; cp -a plain marked")
    try bench.python(
        """
        import json
        def mark(name, text):
            data = b'\\xef\\xbb\\xbf' + text
            open('marked/' + name, 'wb').write(data)
            fold = bytearray(32)
            for index, byte in enumerate(data): fold[index % 32] ^= byte
            return fold.hex()
        manifest = json.load(open('marked/manifest.json'))
        for name in ['notes.json', 'settings.json']:
            manifest['fileChecksums'][name] = mark(name, open('marked/' + name, 'rb').read())
        mark('manifest.json', json.dumps(manifest).encode())
        """)
    #expect(try bench.tool("verify", "marked").status == bench.tool("verify", "plain").status)
    for name in ["plain", "marked"] {
        let words = [command, "--create", name, "--store", "\(name).db"]
        for more in [[], ["--only", "settings"]] { try bench.tool(words + more) }
    }
    #expect(try bench.digest("marked.db") == bench.digest("plain.db"))
    let info = try bench.json(exit: 0, "store", "info", "--store", "marked.db")
    #expect(info["settings"]?.integer ?? 0 > 0 && info["records"]?["notes"]?.integer ?? 0 > 0, "\(info)")
    // A folder that holds such a backup, and a note file by itself.
    try bench.shell("mkdir -p above alone; cp -a marked above; cp marked/notes.json alone")
    let told = try bench.tool("import", "--create", "--store", "c.db", "above").stderr
    #expect(!told.contains("JSON"), "\(told)")
    #expect(try !bench.tool("import", "--create", "--store", "d.db", "alone/notes.json").stderr.contains("JSON"))
}

/// Not by the place where an archive was unpacked.
@Test(arguments: ["i", "z.zip"]) func aBadEntryOfABackup_isNamedByItsPlaceInTheBackup(backup: String) throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{a, title={A}}\n")
    try bench.tool(exit: 0, "import", "a.bib")
    try bench.tool("export", "-o", "i", "--format", "imbib")
    try bench.python(
        """
        import json
        data = open('i/library.bib', 'rb').read() + b'@misc{b, title={never closed\\n'
        open('i/library.bib', 'wb').write(data)
        fold = bytearray(32)
        for index, byte in enumerate(data): fold[index % 32] ^= byte
        manifest = json.load(open('i/manifest.json'))
        manifest['fileChecksums']['library.bib'] = fold.hex()
        json.dump(manifest, open('i/manifest.json', 'w'))
        """)
    try bench.shell("cd i; zip -q -r ../z.zip .")
    for command in ["import", "restore", "restore --mode replace --dry-run", "verify --level deep", "diff store.db"] {
        let told = try bench.tool(words: command.split(separator: " ").map(String.init) + [backup], exit: 3).stderr
        let line = try #require(told.firstMatch(of: /.*entry 'b' is never closed/), "\(command): \(told)").0
        #expect(line.hasPrefix("warning: library.bib:"), "\(command): \(told)")
    }
}
