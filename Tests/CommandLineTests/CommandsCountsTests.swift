import BackupKit
import TestSupport
import Testing

/// A manifest counts what an export holds. Whoever changes a store by an export judges it as `verify` does.
@Suite struct CommandsCountsTests {
    /// Runs `change` on the files of an export and writes its manifest and checksums anew, so that they fit what is there.
    private static let edit = """
        import hashlib, json, os, sys
        folder = sys.argv[1]
        def digest(path): return hashlib.sha256(open(path, 'rb').read()).hexdigest()
        manifest = json.load(open(folder + '/manifest.json'))
        def lines(name): return open(f'{folder}/{name}').read().splitlines(keepends=True)
        def save(name, text): open(f'{folder}/{name}', 'w').write(''.join(text))
        def drop(name):
            os.remove(f'{folder}/{name}')
            del manifest['files'][name]
        exec(sys.argv[2])
        for name, facts in manifest['files'].items():
            facts.update(size=os.path.getsize(f'{folder}/{name}'), sha256=digest(f'{folder}/{name}'))
        json.dump(manifest, open(folder + '/manifest.json', 'w'), indent=1)
        names = sorted(list(manifest['files']) + ['manifest.json'])
        save('SHA256SUMS', [f'{digest(folder + "/" + name)}  {name}\\n' for name in names])
        """

    private func bench() throws -> Workbench {
        let bench = try Workbench()
        try bench.importSamples()
        try bench.write("macro.bib", "@string{lncs = {Lecture Notes}}\n")
        try bench.tool(exit: 0, "import", "macro.bib")
        try bench.write("later.bib", "@misc{onlyHere, title={Only in the store}}\n")
        try bench.tool(exit: 0, "export", "-q", "-o", "whole", "--format", "dir")
        try bench.tool(exit: 0, "import", "later.bib")
        return bench
    }

    private static let losses: [(what: String, change: String, said: String)] = [
        ("a record", "save('records.jsonl', lines('records.jsonl')[:-1])", " instead of "),
        ("all records", "drop('records.jsonl')", "publications instead of "),
        ("a setting", "drop('settings.json')", "settings instead of "),
        (
            "some settings",
            "save('settings.json', [json.dumps(dict(list(json.load(open(folder + '/settings.json')).items())[1:]))])",
            "settings instead of "
        ),
        ("a file", "drop('Attachments/scan0042.pdf')", "attachments instead of "),
        (
            "a record for which another one stands twice",
            """
            found = lines('records.jsonl')
            twice = json.loads(found[-2])
            other = {**json.loads(found[-1]), 'zone': twice['zone'], 'recordName': twice['recordName']}
            save('records.jsonl', found[:-1] + [json.dumps(other) + '\\n'])
            """, "is there twice"
        ),
        (
            "a record that a tombstone holds",
            """
            found = lines('records.jsonl')
            dead = {**json.loads(found[-1]), 'deletedAt': '2026-11-26T23:59:00.000Z'}
            save('records.jsonl', found[:-1] + [json.dumps(dead) + '\\n'])
            """, "still holds data"
        ),
        (
            "what nobody counts",
            """
            found = lines('records.jsonl')
            save('records.jsonl', [line for line in found if json.loads(line)['recordType'] != 'BibliographyPart'])
            assert len(lines('records.jsonl')) < len(found)
            """, "content digest"
        ),
        (
            "a file and its count", "drop('Attachments/scan0042.pdf'); manifest['counts']['attachments'] -= 1",
            "content digest"
        ),
        (
            "a file's name",
            """
            os.rename(folder + '/Attachments/scan0042.pdf', folder + '/Attachments/other.pdf')
            manifest['files']['Attachments/other.pdf'] = manifest['files'].pop('Attachments/scan0042.pdf')
            """, "content digest"
        ),
        (
            "a value", "save('records.jsonl', [line.replace('title', 'tilte') for line in lines('records.jsonl')])",
            "content digest"
        ),
        (
            "a setting's value",
            "save('settings.json', [json.dumps({key: 1 for key in json.load(open(folder + '/settings.json'))})])",
            "content digest"
        ),
        (
            "that a file stays here", "manifest['files']['Attachments/scan0042.pdf']['localOnly'] = True",
            "content digest"
        ),
        ("a line", "save('records.jsonl', lines('records.jsonl')[:-1] + ['{\"zone\":\\n'])", "records.jsonl"),
    ]

    @Test(arguments: losses.indices)
    func whatAnExportHasLost_isNoReasonToRemoveIt(_ number: Int) throws {
        let (what, change, said) = Self.losses[number]
        let archive = [nil, "tar.zst", "zip"][number % 3]
        let bench = try bench()
        try bench.shell("cp -a whole lost")
        try bench.python(Self.edit, "lost", change)
        let path = archive.map { "lost.\($0)" } ?? "lost"
        if archive == "zip" { try bench.shell("cd lost; zip -qr ../lost.zip .") }
        if archive == "tar.zst" { try bench.shell("tar -C lost -cf - . | zstd -q > lost.tar.zst") }
        let verified = try bench.tool(exit: 4, "verify", path)
        #expect(verified.stderr.contains(said), "\(what): \(verified.stderr)")
        let before = try bench.digest()
        let replace = ["restore", path, "--mode", "replace", "--only", Workbench.allKinds]
        for words in [replace, ["restore", path], ["import", path]] {
            let refused = try bench.tool(words)
            #expect(refused.status == 4 && refused.stderr.contains(said), "\(what), \(words): \(refused.stderr)")
            #expect(try bench.digest() == before, "\(what), \(words)")
        }
        // What it holds comes, and nothing goes.
        let told = try bench.json(
            exit: 3, "restore", path, "--mode", "replace", "--only", Workbench.allKinds, "--allow-damage")
        #expect(told["removed"]?.integer == 0 && told["attachmentsRemoved"]?.integer ?? 0 == 0, "\(what): \(told)")
        #expect(try bench.tool("export", "-q", "-o", "after", "--format", "dir").status == 0)
        #expect(try bench.text("after/library.bib").contains("onlyHere"), "\(what)")
        try bench.tool(exit: 4, "restore", path, "--to", "plain")
        try bench.tool(exit: 3, "restore", path, "--to", "plain", "--allow-damage")
        #expect(try bench.exists("plain/records.jsonl") == !change.contains("drop('records"), "\(what)")
    }

    @Test func whatAnImportSaysItHasAdded_isWhatTheStoreCounts() throws {
        let bench = try Workbench()
        let told = try bench.json(
            exit: 3, "import", "--create", "\(Workbench.samples)/library/references.bib",
            "\(Workbench.samples)/library/notes.json", "\(Workbench.samples)/events")
        let lines = try bench.tool(exit: 0, "store", "info").stdout.split(separator: "\n")
        let table = lines.map { $0.split(separator: " ") }
        let counted = table.filter { row in
            ["publications", "notes", "events", "records", "other"].contains { $0 == row.first ?? "" }
        }
        #expect(counted.count == 5)
        let added = told["added"]?.integer ?? 0
        #expect(counted.compactMap { Int64($0.last ?? "") }.reduce(0, +) == added, "\(table) \(told)")
    }

    /// What was counted and is not there is no reason to read nothing of a file that is whole.
    @Test func ofABackupThatHasLostARecord_theOthersCome() throws {
        let bench = try bench()
        try bench.python(Self.edit, "whole", "save('records.jsonl', lines('records.jsonl')[:-1])")
        try bench.tool(exit: 3, "restore", "--create", "--store", "new.db", "whole", "--allow-damage")
        let counts = try bench.json(exit: 0, "store", "info", "--store", "new.db")["records"]
        let whole = try bench.json(exit: 0, "store", "info")["records"]
        let all = ["publications", "notes", "events", "records"]
        let (found, had) = (all.compactMap { counts?[$0]?.integer }, all.compactMap { whole?[$0]?.integer })
        // One has come to the store since, and one is lost.
        #expect(found.reduce(0, +) == had.reduce(0, +) - 2, "\(found) \(had)")

        let imbib = try Workbench()
        try imbib.shell("cp -a $SAMPLES/imbib-backup-2026-03-08 lost")
        try imbib.shell("sed -i -E 's/\"publicationCount\" ?: ?[0-9]+/\"publicationCount\": 99/' lost/manifest.json")
        try imbib.tool(exit: 4, "restore", "--create", "lost")
        try imbib.tool(exit: 3, "restore", "--create", "lost", "--allow-damage")
        #expect(try imbib.json(exit: 0, "store", "info")["records"]?["publications"]?.integer ?? 0 > 0)
    }

    @Test(arguments: [
        ("manifest['counts']['publications'] = -1", "publications"),
        ("manifest['counts']['publications'] = '3'", "publications"),
        ("manifest['counts']['publications'] = 1.5", "publications"),
        ("manifest['counts']['publications'] = 10 ** 30", "publications"),
        ("manifest['counts']['publications'] = None", "publications"),
        ("manifest['counts']['publications'] = [3]", "publications"), ("del manifest['counts']['notes']", "notes"),
        ("manifest['kinds'] = ['foo']", "foo"), ("del manifest['kinds']", "kinds"),
        ("manifest['omitted'] = 'x'", "omitted"), ("manifest['omitted'] = [{'path': 'a'}]", "omitted"),
        ("manifest['counts']['settings'] = -1", "settings"), ("manifest['counts']['books'] = 3", "books"),
        ("manifest['counts'] = []", "counts"), ("manifest['counts'] = {}", "counts"),
        ("del manifest['counts']", "counts"), ("manifest['counts']['tombstones'] = 2 ** 62", "instead of"),
    ])
    func anOddManifestIsDamage(_ change: String, _ said: String) throws {
        let bench = try bench()
        try bench.python(Self.edit, "whole", change)
        let before = try bench.digest()
        for words in [["verify", "whole"], ["restore", "whole", "--mode", "replace"]] {
            let told = try bench.tool(words)
            #expect(told.status == 4 && told.stderr.contains(said), "\(change), \(words): \(told.stderr)")
        }
        try bench.tool(exit: 3, "restore", "whole", "--mode", "replace", "--allow-damage")
        #expect(try bench.digest() == before, "\(change)")
    }

    /// What is here may be what was exported, and come back as something else.
    @Test func whatDoesNotComeBackIsFoundByTheDeepCheck() throws {
        let bench = try bench()
        try bench.python(
            Self.edit, "whole",
            """
            settings = ''.join(lines('settings.json'))
            save('settings.json', ['{"twice": 1, "twice": 2, ' + settings[settings.index('{') + 1:]])
            manifest['counts']['settings'] += 2
            """)
        let said = try bench.tool(exit: 4, "verify", "whole").stderr
        let digest = try #require(said.firstMatch(of: /content digest is ([0-9a-f]{64})/)).1
        try bench.python(Self.edit, "whole", "manifest['contentDigest'] = '\(digest)'")
        try bench.tool(exit: 0, "verify", "whole")
        let deep = try bench.tool(exit: 4, "verify", "--level", "deep", "whole").stderr
        #expect(deep.contains("restores to content digest"), "\(deep)")
    }

    @Test func anExportOfVersion01_countsNoFilesInQuarantine() throws {
        let bench = try bench()
        try bench.write("whole/Quarantine/a.pdf", "a")
        try bench.python(Self.edit, "whole", "manifest['files']['Quarantine/a.pdf'] = {}")
        // It did count them into the content digest.
        try bench.tool(
            exit: 3, "restore", "--create", "--store", "old.db", "whole", "--allow-damage", "--only", Workbench.allKinds
        )
        let digest = try bench.json(exit: 0, "store", "digest", "--store", "old.db")["contentDigest"]?.string ?? ""
        try bench.python(Self.edit, "whole", "manifest['contentDigest'] = '\(digest)'")
        try bench.tool(exit: 0, "verify", "whole")
        try bench.tool(exit: 0, "restore", "whole", "--only", Workbench.allKinds)
    }

    /// What was written by an export counts, whatever it left out.
    @Test(arguments: ["", "--only notes", "--only attachments", "--only settings,records"], ["dir", "imbib"])
    func whatAnExportLeavesOut_isNotMissing(_ options: String, _ format: String) throws {
        let bench = try bench()
        try bench.shell("$T export -q -o part --format \(format) \(options) || [ $? = 3 ]")
        let verified = try bench.tool("verify", "part")
        #expect([0, 3].contains(verified.status), "\(options): \(verified.stderr)")
        let restored = try bench.tool("restore", "part", "--mode", "replace", "--only", Workbench.allKinds)
        #expect([0, 3].contains(restored.status), "\(options): \(restored.stderr)")
    }
}
