import BackupKit
import TestSupport
import Testing

private let ann = "@article{smith2020, author={Smith, Ann}, title={Fish}, year=2020, journal={J}}\n"
private let zoe = "@book{smith2020, author={Smith, Zoe}, title={Birds}, year=2020, publisher={P}}\n"

extension Workbench {
    /// Cite key and title of each live publication, and whether a field of the other work is in it.
    fileprivate func publications(_ store: String) throws -> [String] {
        let lines = try shell(
            """
            sqlite3 \(store) "SELECT json_extract(fields, '$.citeKey') || ' ' || ifnull(json_extract(fields, '$.title'), '')
            || ' ' || ifnull(json_extract(fields, '$.author'), '') || ' ' || ifnull(json_extract(fields, '$.journal'), '')
            || ' ' || ifnull(json_extract(fields, '$.publisher'), '')
            FROM record WHERE type = 'Publication' AND deleted_at IS NULL ORDER BY 1"
            """)
        return lines.split(separator: "\n").map { String($0).split(separator: " ").joined(separator: " ") }
    }

    /// What version 0.1.0 would have in its store: an id made of the key.
    fileprivate func importAsBefore(
        _ key: String, _ fields: String, into store: String, time: String = "2026-01-01T00:00:00.000Z"
    )
        throws
    {
        let id = try legacyID(key)
        try write(
            "old/records.jsonl",
            """
            {"zone":"Library","recordName":"\(id)","recordType":"Publication","localId":"\(id)",\
            "fields":{"citeKey":"\(key)",\(fields)},"createdAt":"\(time)","modifiedAt":"\(time)","schemaVersion":120}

            """)
        try tool("import", "--create", "--store", store, "old/records.jsonl")
    }

    private func legacyID(_ key: String) throws -> String {
        let script = """
            import hashlib,sys,struct
            h=hashlib.sha256()
            for part in ["Publication", sys.argv[1]]:
                b=part.encode(); h.update(struct.pack("<Q",len(b))+b)
            d=h.hexdigest().upper()[:32]
            d=d[:12]+"8"+d[13:16]+"89AB"[int(d[16],16)&3]+d[17:]
            print("-".join([d[:8],d[8:12],d[12:16],d[16:20],d[20:]]))
            """
        try write("legacy.py", script)
        return try shell("python3 legacy.py \(key)").split(separator: "\n").joined()
    }
}

private let both = ["smith2020 Birds Smith, Zoe P", "smith2020 Fish Smith, Ann J"]

@Test func strangersWithOneKeyOnTwoDevices_stayTwo_onAllAfterSyncs() throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.write("ann.bib", ann)
    try bench.write("zoe.bib", zoe)
    try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "ann.bib")
    try bench.tool(exit: 0, "import", "--create", "--store", "B.db", "zoe.bib")
    try bench.tool(exit: 0, "sync", "--store", "A.db")
    try bench.tool(exit: 3, "sync", "--store", "B.db")
    try bench.tool(exit: 3, "sync", "--store", "A.db")
    for store in ["A.db", "B.db"] { #expect(try bench.publications(store) == both) }
    #expect(try bench.digest("A.db") == bench.digest("B.db"))
}

@Test(arguments: [false, true]) func strangersWithIDsOfVersion010_stayTwo_onAllAfterSyncs(zoeFirst: Bool) throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.importAsBefore(
        "smith2020", #""entryType":"article","author":"Smith, Ann","title":"Fish","year":"2020","journal":"J""#,
        into: "A.db")
    try bench.importAsBefore(
        "smith2020", #""entryType":"book","author":"Smith, Zoe","title":"Birds","year":"2020","publisher":"P""#,
        into: "B.db")
    try bench.write("zoe.bib", zoe)
    try bench.tool(exit: 0, "import", "--create", "--store", "C.db", "zoe.bib")
    for store in zoeFirst ? ["B", "A", "C", "B", "A", "C"] : ["A", "C", "B", "A", "C", "B"] {
        try bench.tool("sync", "--store", "\(store).db")
    }
    for store in ["A.db", "B.db", "C.db"] {
        #expect(try bench.publications(store) == both, "\(store)")
        #expect(try bench.json(exit: 0, "store", "info", "--store", store)["conflicts"]?.integer == 1)
    }
    #expect(try bench.digest("A.db") == bench.digest("B.db") && bench.digest("A.db") == bench.digest("C.db"))
}

@Test func aRestoreOfSomebodyElsesExport_mixesNoTwoWorks_andIsIdempotent() throws {
    let bench = try Workbench()
    try bench.importAsBefore(
        "smith2020", #""entryType":"article","author":"Smith, Ann","title":"Fish","year":"2020","journal":"J""#,
        into: "A.db")
    try bench.importAsBefore(
        "smith2020", #""entryType":"book","author":"Smith, Zoe","title":"Birds","year":"2020","publisher":"P""#,
        into: "B.db")
    try bench.tool(exit: 0, "export", "--store", "B.db", "-o", "b")
    let digest = try bench.digest("B.db")
    let plan = try bench.json(exit: 3, "restore", "--create", "b", "--store", "A.db", "--dry-run")
    let done = try bench.json(exit: 3, "restore", "--create", "b", "--store", "A.db")
    #expect(done["added"]?.integer == 1 && done["conflicts"]?.integer == 1 && plan["added"] == done["added"])
    #expect(try bench.publications("A.db") == both)
    #expect(try bench.json(exit: 0, "restore", "--create", "b", "--store", "A.db")["writes"]?.integer == 0)
    // Replacing is something else: the digest is the backup's.
    try bench.tool(exit: 0, "restore", "--create", "b", "--store", "A.db", "--mode", "replace")
    #expect(try bench.publications("A.db") == [both[0]])
    #expect(try bench.digest("A.db") == digest)
}

@Test func aFileOfVersion010IsRecognised_andItsWorkIsNotAddedAgain() throws {
    let bench = try Workbench()
    try bench.importAsBefore(
        "smith2020", #""entryType":"article","author":"Smith, Ann","title":"Fish","year":"2020","journal":"J""#,
        into: "store.db")
    try bench.write("ann.bib", ann)
    let again = try bench.json(exit: 0, "import", "ann.bib")
    // The list of the file's entries is what is new.
    #expect(again["added"]?.integer == 1, "\(again)")
    #expect(try bench.publications("store.db") == [both[1]])
    // The other way round: a backup of version 0.1.0 meets a store of today.
    try bench.tool(exit: 0, "export", "-o", "out")
    try bench.tool(exit: 0, "import", "--create", "--store", "new.db", "ann.bib")
    try bench.tool(exit: 0, "restore", "--create", "out", "--store", "new.db")
    #expect(try bench.publications("new.db") == [both[1]])
}

@Test func whatWasDeletedStaysDead_andAStrangerWithItsKeyLives() throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.importAsBefore(
        "smith2020", #""entryType":"article","author":"Smith, Ann","title":"Fish","year":"2020","journal":"J""#,
        into: "A.db")
    let id = try bench.shell("sqlite3 A.db \"SELECT local_id FROM record WHERE type = 'Publication'\"")
        .split(separator: "\n").joined()
    try bench.tool(exit: 0, "sync", "--store", "A.db")
    try bench.write("ann.bib", ann)
    try bench.write("zoe.bib", zoe)
    try bench.shell("touch -d 2020-01-01 ann.bib zoe.bib")
    // B has both without ever having synced; C has Zoe's under the old id.
    try bench.tool(exit: 3, "import", "--create", "--store", "B.db", "ann.bib", "zoe.bib")
    try bench.importAsBefore(
        "smith2020", #""entryType":"book","author":"Smith, Zoe","title":"Birds","year":"2020","publisher":"P""#,
        into: "C.db")
    try bench.tool(exit: 0, "store", "delete", "--store", "A.db", id)
    for store in ["A", "B", "C", "A", "B", "C"] { try bench.tool("sync", "--store", "\(store).db") }
    for store in ["A", "B", "C"] { #expect(try bench.publications("\(store).db") == [both[0]], "\(store)") }
    // The file does not bring it back, and is told so once.
    let again = try bench.json(exit: 3, "import", "--create", "--store", "A.db", "ann.bib")
    #expect(again["protected"]?.integer == 1, "\(again)")
    #expect(try bench.publications("A.db") == [both[0]])
}

@Test func oneWorkUnderTwoKeys_isTwoPublications_alsoInOppositeOrder() throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.write("one.bib", "@article{k1, author={A, B}, title={T}, year=2001}\n")
    try bench.write("two.bib", "@article{k2, author={A, B}, title={T}, year=2001}\n")
    try bench.tool(exit: 0, "import", "--create", "--store", "A.db", "one.bib", "two.bib")
    try bench.tool(exit: 0, "import", "--create", "--store", "B.db", "two.bib", "one.bib")
    for store in ["A", "B", "A"] { try bench.tool(exit: 0, "sync", "--store", "\(store).db") }
    for store in ["A.db", "B.db"] { #expect(try bench.publications(store) == ["k1 T A, B", "k2 T A, B"]) }
    #expect(try bench.digest("A.db") == bench.digest("B.db"))
    for file in ["one.bib", "two.bib"] {
        #expect(try bench.json(exit: 0, "import", "--create", "--store", "A.db", file)["unchanged"]?.integer == 2)
    }
}

/// Two devices gave two listings of one work the same id, and each deleted its own.
@Test(arguments: [false, true], [false, true])
func listingsOfOneIDThatTwoDevicesDeleted_areBothDeleted(aDeletesFirst: Bool, bSyncsFirst: Bool) throws {
    let bench = try Workbench(["BACKUP_TOOL_HUB": "hub.db"])
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    func entry(_ key: String, _ more: String) -> String {
        "@article{\(key), author={A, B}, title={Three}, year={1993}, isbn={9781234567003}\(more)}\n"
    }
    try bench.write("a.bib", entry("jones", "") + entry("smith", ", note={n}"))
    try bench.write("b.bib", entry("smith", ", abstract={x}"))
    for name in ["A", "B"] {
        try bench.tool(exit: 0, "import", "--create", "--store", "\(name).db", "\(name.lowercased()).bib")
    }
    let query = "SELECT local_id FROM record WHERE json_extract(fields, '$.citeKey') = "
    let ids = try ["A": "jones", "B": "smith"].mapValues { key in
        key == "jones"
            ? try bench.shell("sqlite3 A.db \"\(query)'jones'\"") : try bench.shell("sqlite3 B.db \"\(query)'smith'\"")
    }.mapValues { String($0.dropLast()) }
    #expect(ids["A"] == ids["B"])
    for name in aDeletesFirst ? ["A", "B"] : ["B", "A"] {
        try bench.tool(exit: 0, "store", "delete", "--store", "\(name).db", try #require(ids[name]))
    }
    // Where B's delete comes first, A has a note under that listing that no hub has seen.
    for (name, code) in bSyncsFirst
        ? [("B", Int32(0)), ("A", 3), ("B", 0), ("A", 0)] : [("A", 0), ("B", 0), ("A", 0), ("B", 0)]
    {
        try bench.tool(exit: code, "sync", "--store", "\(name).db")
    }
    for name in ["A", "B"] {
        #expect(try bench.publications("\(name).db") == [], "\(name)")
        try checkSound(bench.path("\(name).db"))
        try bench.tool(exit: 0, "export", "--store", "\(name).db", "-o", "\(name).tar.zst")
        try bench.tool(exit: 0, "verify", "--level", "deep", "\(name).tar.zst")
    }
}

@Test func theSameWorkFromAnotherFile_isTheSamePublication_newerFieldsWin() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@article{k, author={Able, B. and others}, title={{T}he}, year=2001, note={old}}\n")
    try bench.write("x/b.bib", "@article{k, author={Bob Able}, title={The}, year=2001, note={new}, pages={1--2}}\n")
    try bench.shell("touch -d 2020-01-01 a.bib; touch -d 2021-01-01 x/b.bib")
    try bench.tool(exit: 0, "import", "a.bib")
    // That the files differ is reported.
    let second = try bench.json(exit: 3, "import", "x/b.bib")
    #expect(second["updated"]?.integer == 1 && second["conflicts"]?.integer == 0)
    #expect(try bench.publications("store.db").count == 1)
    #expect(try bench.shell("sqlite3 store.db \"SELECT fields FROM record\"").contains("\"note\":\"new\""))
}

@Test func twinsAreNoConflict_andKeysThatDifferInCaseAreNamed() throws {
    let bench = try Workbench()
    try bench.write("a.bib", "@misc{k, title={A}}\n@misc{k, title={A}}\n")
    #expect(try bench.json(exit: 0, "import", "a.bib")["conflicts"]?.integer == 0)
    try bench.write("b.bib", "@misc{K, title={B}}\n")
    let found = try bench.tool(exit: 3, "import", "b.bib")
    #expect(found.stderr.contains("warning: K and k: "), "\(found.stderr)")
    #expect(try bench.json(exit: 0, "store", "info")["conflicts"]?.integer == 0)
    #expect(try bench.json(exit: 0, "import", "b.bib")["writes"]?.integer == 0)
}

@Test func papersOfOneTitle_inFilesOfOneName_stayApart() throws {
    let bench = try Workbench()
    try bench.write(
        "ann/references.bib",
        "@article{ed, title={Editorial}, note={one}}\n@misc{x1, title={X}}\n@misc{x2, title={Y}}\n")
    try bench.write(
        "bob/references.bib",
        "@article{ed, title={Editorial}, note={two}}\n@misc{y1, title={Z}}\n@misc{y2, title={V}}\n")
    try bench.shell("touch -d 2021-01-01 ann/references.bib; touch -d 2020-01-01 bob/references.bib")
    try bench.tool(exit: 0, "import", "ann/references.bib")
    let second = try bench.json(exit: 3, "import", "bob/references.bib")
    #expect(second["conflicts"]?.integer == 1 && second["protected"]?.integer == 0 && second["updated"]?.integer == 0)
    #expect(try bench.publications("store.db").filter { $0.hasPrefix("ed ") }.count == 2)
}

@Test func anEntryOfLittle_editedInItsFile_isAnEdit_thoughATitleAloneSaysNothing() throws {
    let bench = try Workbench()
    try bench.write("refs.bib", "@misc{k, title={T}, note={old}}\n@misc{m, title={M}}\n")
    try bench.shell("touch -d 2020-01-01 refs.bib")
    try bench.tool(exit: 0, "import", "refs.bib")
    try bench.write("refs.bib", "@misc{k, title={T}, note={new}}\n@misc{m, title={M}}\n")
    let edited = try bench.json(exit: 0, "import", "refs.bib")
    #expect(edited["updated"]?.integer == 1 && edited["conflicts"]?.integer == 0)
    #expect(try bench.publications("store.db") == ["k T", "m M"])
}

// MARK: import --mirror

private let before = """
    @string{j = {Journal}}
    @comment{jabref-meta: grouping: old}
    @article{a, title={A}, journal=j, note={gone}, pages={1}}
    @article{b, title={B}}
    @article{c, title={C}}
    @article{shared, title={S}}

    """
private let after = "@article{a, title={A}, journal={Journal}, pages={1}}\n"

@Test func aMirroredFile_takesAwayWhatItBrought_andNothingElse() throws {
    let bench = try Workbench()
    try bench.write("refs.bib", before)
    try bench.write("other.bib", "@article{shared, title={S}}\n@article{own, title={O}}\n")
    try bench.shell("touch -d 2020-01-01 refs.bib other.bib")
    try bench.tool(exit: 0, "import", "refs.bib")
    try bench.tool(exit: 0, "import", "other.bib")
    // Somebody writes into c, and a field into a.
    try bench.tool(exit: 0, "export", "-q", "-o", "out")
    try bench.shell(
        """
        jq -c 'if .fields.citeKey == "c" or .fields.citeKey == "a" then .fields.keywords = "mine" \
        | .modifiedAt = "2021-01-01T00:00:00.000Z" else . end' \
        out/records.jsonl > records.jsonl
        # One that no file has brought.
        jq -c 'select(.fields.citeKey == "own") | .fields |= {citeKey: "stray", entryType: "misc", title: "Stray"} \
        | .localId = "stray" | .recordName = "stray"' out/records.jsonl >> records.jsonl
        """)
    try bench.tool("import", "records.jsonl")
    try bench.write("refs.bib", after)
    try bench.shell("touch -d 2022-01-01 refs.bib")
    let digest = try bench.digest()
    // A plain import takes nothing away.
    let plan = try bench.json(exit: 3, "import", "--mirror", "refs.bib", "--dry-run")
    #expect(try bench.digest() == digest)
    let done = try bench.json(exit: 3, "import", "--mirror", "refs.bib")
    for count in ["removed", "updated", "protected", "added"] { #expect(done[count] == plan[count], "\(count)") }
    // b, the macro and the groups; c is newer here, and of a the file's fields are as they were.
    #expect(done["removed"]?.integer == 3 && done["protected"]?.integer == 1, "\(done)")
    try bench.tool("export", "-q", "-o", "new")
    let text = try bench.text("new/library.bib")
    #expect(
        !text.contains("gone") && !text.contains("@string") && !text.contains("jabref-meta") && !text.contains("{b,"))
    for kept in ["{c,", "{shared,", "{own,", "{stray,", "pages={1}"] {
        #expect(text.contains(kept), "\(kept): \(text)")
    }
    #expect(text.components(separatedBy: "mine").count == 3, "\(text)")
    // What stays is named once.
    #expect(try bench.json(exit: 0, "import", "--mirror", "refs.bib")["writes"]?.integer == 0)
    // It stays dead, and an undo brings all of it back.
    try bench.undoNamedBatch()
    #expect(try bench.digest() == digest)
}

@Test func aMirrorRefusesWhatItCannotRead_andWhatIsEmpty() throws {
    let bench = try Workbench()
    try bench.write("refs.bib", before)
    try bench.tool(exit: 0, "import", "refs.bib")
    let digest = try bench.digest()
    try bench.write("refs.bib", "@article{a, title={A}}\n@article{b, title={B\n")
    try bench.tool(exit: 1, "import", "--mirror", "refs.bib")
    try bench.write("refs.bib", "")
    try bench.tool(exit: 1, "import", "--mirror", "refs.bib")
    try bench.tool(exit: 64, "import", "--mirror", "refs.bib", "refs.bib")
    #expect(try bench.digest() == digest)
}

@Test func aFileAtItsPlace_isItsLibrary_andAFewCommonKeysMakeNone() throws {
    let bench = try Workbench()
    try bench.write("ann/references.bib", "@string{s={Ann}}\n@article{k, title={One}}\n@article{a1, title={Two}}\n")
    try bench.write(
        "bob/references.bib", "@string{s={Bob}}\n@article{k, title={One}}\n@article{b1, title={Six}}\n@misc{b2}\n")
    try bench.tool(exit: 0, "import", "ann/references.bib")
    try bench.tool(exit: 0, "import", "bob/references.bib")
    let files = try bench.shell(
        "sqlite3 store.db \"SELECT DISTINCT json_extract(fields, '$.file') FROM record WHERE type = 'BibliographyPart' ORDER BY 1\""
    )
    #expect(files.split(separator: "\n").count { $0.hasPrefix("references.bib#") } == 2, "\(files)")
    // Moved elsewhere it is still most of that library; in its place it may become anything.
    try bench.shell("mkdir x && cp ann/references.bib x/references.bib")
    #expect(try bench.json(exit: 0, "import", "x/references.bib")["writes"]?.integer == 0)
    try bench.write("bob/references.bib", "@article{new, title={N}}\n")
    try bench.tool(exit: 0, "import", "bob/references.bib")
    let orders = try bench.shell(
        "sqlite3 store.db \"SELECT count(*) FROM record WHERE json_extract(fields, '$.kind') = 'order'\"")
    #expect(orders == "2\n")
}

extension String {
    fileprivate func components(separatedBy mark: String) -> [Substring] {
        var parts: [Substring] = []
        var rest = self[...]
        while let start = rest.indices.first(where: { rest[$0...].hasPrefix(mark) }) {
            parts.append(rest[..<start])
            rest = rest[start...].dropFirst(mark.count)
        }
        return parts + [rest]
    }
}

/// A merged publication has the identifier of the work that was merged into it; a delete of that work alone takes no other.
@Test func aWorkThatAnotherWasMergedInto_outlivesTheDeleteOfThatOne() throws {
    let bench = try Workbench()
    func id(_ title: String) throws -> String {
        try bench.shell(
            "sqlite3 a.db \"SELECT local_id FROM record WHERE json_extract(fields, '$.title') LIKE '\(title)%'\""
        )
        .filter { $0 != "\n" }
    }
    // The one whose id comes first survives a merge.
    for number in 0..<20 {
        try bench.shell("rm -rf a.db* b.db* hub.db*")
        try bench.write(
            "a.bib",
            """
            @article{k, title={Editorial}, author={Ann Smith}, year=2002, doi={10.1/\(number)}}
            @article{k, title={Other \(number)}, author={Bob Jones}, year=2001}

            """)
        try bench.tool(exit: 3, "import", "a.bib", "--create", "--store", "a.db")
        if try id("Other") < id("Editorial") { break }
    }
    try bench.tool(exit: 0, "hub", "init", "hub.db")
    try bench.tool(exit: 0, "sync", "--hub", "hub.db", "--store", "a.db")
    try bench.tool(exit: 0, "store", "init", "--store", "b.db")
    try bench.tool("sync", "--hub", "hub.db", "--store", "b.db")
    let (dead, alive) = (try id("Editorial"), try id("Other"))
    try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge", "--store", "b.db")
    try bench.tool(exit: 0, "store", "delete", dead, "--store", "a.db")
    for store in ["b.db", "a.db", "b.db", "a.db"] { try bench.tool("sync", "--store", store) }
    for store in ["a.db", "b.db"] {
        let rows = try bench.shell(
            "sqlite3 \(store) \"SELECT record_name FROM records WHERE type = 'Publication' AND NOT deleted\"")
        #expect(rows == "\(alive)\n", "\(store)")
    }
}
