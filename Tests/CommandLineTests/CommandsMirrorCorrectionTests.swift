import BackupKit
import TestSupport
import Testing

/// What is linked to a work whose entry was corrected in a mirrored file.
@Suite struct CommandsMirrorCorrectionTests {
    /// A library of one entry with a PDF and a note, and one more.
    private func library(_ entry: String, named name: String = "k") throws -> Workbench {
        let bench = try Workbench()
        try bench.write("lib/a.bib", entry + "@misc{other,title={Another thing}}\n")
        try bench.write("lib/notes.json", "[{\"citeKey\":\"\(name)\",\"note\":\"read this\"}]")
        try bench.write("pdfs/\(name).pdf", "%PDF-1.4 of \(name)")
        try bench.shell("touch -d '1 hour ago' lib/*")
        try bench.tool(exit: 0, "import", "--create", "lib", "--attachments", "pdfs")
        return bench
    }

    private static func entry(
        key: String = "k", title: String = "Growth in mice", author: String = "Name, Jo", year: Int = 2020,
        doi: String? = "10.1000/1", pages: String = "1--5"
    ) -> String {
        let doi = doi.map { ",doi={\($0)}" } ?? ""
        return "@article{\(key),title={\(title)},author={\(author)},year={\(year)},pages={\(pages)}\(doi)}\n"
    }

    /// The keys of living publications with the files that they link, and with their notes.
    private func linked(_ bench: Workbench) throws -> String {
        try bench.shell(
            """
            sqlite3 store.db "SELECT json_extract(p.fields, '$.citeKey'), ifnull(json_extract(p.fields, '$.linkedFiles'), '-'),
            (SELECT group_concat(json_extract(n.fields, '$.note')) FROM record n WHERE n.type = 'Note' AND n.deleted_at IS NULL
            AND json_extract(n.fields, '$.publication') = p.local_id)
            FROM record p WHERE p.type = 'Publication' AND p.deleted_at IS NULL AND p.fields LIKE '%Name%' ORDER BY 1"
            """)
    }

    private static let corrections: [(before: String, after: String, key: String)] = [
        (entry(), entry(key: "new"), "new"),
        (entry(doi: nil), entry(key: "new", doi: nil), "new"),
        (entry(), entry(title: "Growth of mice"), "k"),
        (entry(doi: nil), entry(title: "Growth of mice", doi: nil), "k"),
        (entry(doi: nil), entry(title: "Growth in small mice", doi: nil), "k"),
        (entry(), entry(year: 2021), "k"),
        (entry(doi: nil), entry(year: 2021, doi: nil), "k"),
        (entry(), entry(doi: "10.1000/2"), "k"),
        (entry(), entry(title: "Growth of mice", pages: "11--15"), "k"),
        (entry(), entry(key: "new", title: "Growth of mice", year: 2021), "new"),
    ]

    @Test(arguments: corrections.indices, [false, true])
    func whatIsLinkedToACorrectedEntry_goesWithIt(_ number: Int, isImportedFirst: Bool) throws {
        let (before, after, key) = Self.corrections[number]
        let bench = try library(before)
        let digest = try bench.digest()
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\n")
        try bench.write("lib/a.bib", after + "@misc{other,title={Another thing}}\n")
        if isImportedFirst { try bench.tool("import", "lib/a.bib") }
        let plan = try bench.tool("import", "--mirror", "lib/a.bib", "--dry-run")
        let between = try bench.digest()
        let told = try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(plan.status == 0 && !told.stderr.contains("warning"), "\(told.stderr)")
        #expect(try linked(bench) == "\(key)|[\"Attachments/k.pdf\"]|read this\n", "\(told.stderr)")
        let now = try bench.digest()
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        try bench.tool(exit: 0, "import", "lib/a.bib")
        #expect(try bench.digest() == now)
        try bench.tool(exit: 0, "store", "check")
        guard now != between else { return }
        try bench.undoMirror()
        #expect(try bench.digest() == between)
        if !isImportedFirst { #expect(between == digest) }
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(try linked(bench) == "\(key)|[\"Attachments/k.pdf\"]|read this\n")
        // And back, more than once.
        for (text, key) in [(before, "k"), (after, key), (before, "k")] {
            try bench.write("lib/a.bib", text + "@misc{other,title={Another thing}}\n")
            let told = try bench.tool("import", "--mirror", "lib/a.bib")
            #expect(told.status == 0, "\(told.stderr)")
            #expect(try linked(bench) == "\(key)|[\"Attachments/k.pdf\"]|read this\n", "\(told.stderr)")
        }
    }

    /// A key that another work has now.
    @Test(arguments: [
        entry(title: "Stars", author: "Zoe, Z", year: 2021, doi: "10.1000/2"),
        entry(title: "Growth in rats", year: 2020, doi: "10.1000/2"),
        entry(title: "Growth in mice", year: 2021, doi: "10.1000/2"),
        entry(title: "Growth in mice, part 2", doi: nil, pages: "6--9"),
    ])
    func aKeyThatAnotherWorkHasNow_takesNothingOver(_ after: String) throws {
        let bench = try library(Self.entry())
        let digest = try bench.digest()
        try bench.write("lib/a.bib", after + "@misc{other,title={Another thing}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "lib/a.bib").stderr
        #expect(
            told.contains(
                "was removed: the file now has another work with this key; 1 file and 1 note did not go over"),
            "\(told)")
        #expect(try !linked(bench).contains("pdf") && !linked(bench).contains("read this"))
        try bench.tool(exit: 0, "undo")
        #expect(try bench.digest() == digest)
        // The advice: both are kept, with a conflict.
        try bench.tool(exit: 3, "import", "lib/a.bib")
        try bench.tool(exit: 0, "conflicts", "resolve", "1", "--with", "merge")
        #expect(try linked(bench).contains("pdf") || linked(bench).isEmpty)
    }

    /// Two entries came that may be the one that went, and say as much of it: nobody knows whose the PDF is.
    @Test(arguments: [
        (entry(doi: nil), entry(year: 2021, doi: nil), entry(key: "z9", doi: nil, pages: "207")),
        (entry(doi: nil), entry(author: "Name, Bo", doi: nil), entry(key: "z9", year: 2021, doi: nil)),
    ])
    func whatMayBeTwoEntries_isHandedToNone(_ before: String, _ own: String, _ foreign: String) throws {
        let bench = try library(before)
        try bench.write("lib/a.bib", foreign + own + "@misc{other,title={Another thing}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "lib/a.bib")
        #expect(told.stderr.contains("1 file and 1 note") && told.stderr.contains("z9"), "\(told.stderr)")
        #expect(try linked(bench) == "k|-|\nz9|-|\n")
    }

    /// More than the key was corrected at once: nothing tells that it is the same work, so what stays behind is named.
    @Test(arguments: [
        (entry(doi: nil), entry(key: "new", title: "Growth of mice", doi: nil)),
        (entry(doi: nil), entry(key: "new", year: 2021, doi: nil)),
        (entry(), entry(key: "new", doi: "10.1000/2")),
        (entry(doi: nil), entry(key: "new", title: "How rodents get large", doi: nil)),
    ])
    func aWorkThatMayBeTheOneUnderAnotherKey_isNamed(_ before: String, _ after: String) throws {
        let bench = try library(before)
        let digest = try bench.digest()
        let other = "@misc{other,title={Another thing}}\n"
        try bench.write("lib/a.bib", after + other)
        let plan = try bench.tool(exit: 3, "import", "--mirror", "lib/a.bib", "--dry-run").stderr
        let told = try bench.tool(exit: 3, "import", "--mirror", "lib/a.bib").stderr
        for text in [plan, told] {
            #expect(
                text.contains("the file now has new, which may be the same work") && text.contains("1 file and 1 note"),
                "\(text)")
        }
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        // The advice.
        try bench.undoMirror()
        if try bench.digest() != digest { try bench.tool(exit: 0, "undo") }
        #expect(try bench.digest() == digest)
        try bench.write("lib/a.bib", before.replacing("{k,", with: "{new,") + other)
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(try linked(bench) == "new|[\"Attachments/k.pdf\"]|read this\n")
        guard !after.contains("rodents") else { return }
        try bench.write("lib/a.bib", after + other)
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(try linked(bench) == "new|[\"Attachments/k.pdf\"]|read this\n")
    }

    /// A note that came alone goes by its key, and stays under it, too.
    @Test func aNoteByKey_isNamed_whenMoreThanTheKeyIsCorrected() throws {
        let bench = try Workbench()
        try bench.write("a.bib", Self.entry(doi: nil))
        try bench.write("notes.json", "[{\"citeKey\":\"k\",\"note\":\"read this\"}]")
        try bench.tool(exit: 0, "import", "--create", "a.bib")
        try bench.tool(exit: 0, "import", "notes.json")
        try bench.write("a.bib", Self.entry(key: "new", year: 2021, doi: nil))
        let told = try bench.tool(exit: 3, "import", "--mirror", "a.bib").stderr
        #expect(told.contains("; 1 note did not go over to it"), "\(told)")
    }

    /// The file is sound, and the store is not: what the file says of the damaged record is not known.
    @Test func aDamagedRow_isNamedAndNotTheFile_andNothingIsRemoved() throws {
        let bench = try library(Self.entry())
        try bench.write("lib/a.bib", Self.entry() + "@misc{other,title={Another thing}}\n@misc{gone,title={Zoo}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        try bench.tool(exit: 0, "export", "-o", "good.tar.zst")
        try bench.shell(
            "sqlite3 store.db \"UPDATE record SET fields = '{' WHERE type = 'Publication' AND fields LIKE '%Name%'\"")
        try bench.write("lib/a.bib", Self.entry() + "@misc{other,title={Another thing},year={1999}}\n")
        let told = try bench.tool("import", "--mirror", "lib/a.bib")
        #expect(told.status != 0 && told.status != 1, "\(told.status): \(told.stderr)")
        #expect(told.stderr.contains("nothing was removed: Library/") && told.stderr.contains("store repair --from"))
        #expect(!told.stderr.contains("mend the file"), "\(told.stderr)")
        let fields = "sqlite3 store.db \"SELECT fields FROM record WHERE type = 'Publication' AND deleted_at IS NULL\""
        #expect(try bench.shell(fields).contains("1999") && bench.shell(fields).contains("Zoo"))
        // The advice.
        try bench.tool("store", "repair", "--from", "good.tar.zst")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(try !bench.shell(fields).contains("Zoo"))
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\n")
    }

    /// Who takes an entry out of a file, and adds another one, has replaced nothing.
    @Test func anEntryThatGoes_isNotTakenForAnotherOne() throws {
        let bench = try library(Self.entry(doi: nil))
        let next = Self.entry(key: "new", title: "Stars", author: "Zoe, Z", doi: nil)
        try bench.write("lib/a.bib", next + "@misc{other,title={Another thing}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        #expect(try !linked(bench).contains("pdf"))
    }

    /// An identifier, a key and the people tell that it is the same work, also to an import that removes nothing.
    @Test func anEntryWithItsIdentifier_isEditedWhateverElseIsCorrected() throws {
        let bench = try library(Self.entry())
        try bench.write(
            "lib/a.bib", Self.entry(title: "Growth of mice", pages: "11--15") + "@misc{other,title={Another thing}}\n")
        let told = try bench.tool(exit: 0, "import", "lib/a.bib").stderr
        #expect(told.hasPrefix("1 updated, "), "\(told)")
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\n")
        // Parts of one book that carry its identifier are none.
        try bench.write(
            "lib/a.bib",
            Self.entry(title: "Growth of rats, part 2", pages: "21--25") + "@misc{other,title={Another thing}}\n")
        try bench.tool(exit: 3, "import", "lib/a.bib")
        #expect(try linked(bench).split(separator: "\n").count == 2)
    }

    /// An import that removes nothing keeps what is linked where it is.
    @Test func anImportOfACorrectedKey_losesNothing() throws {
        let bench = try library(Self.entry())
        try bench.write("lib/a.bib", Self.entry(key: "new") + "@misc{other,title={Another thing}}\n")
        let told = try bench.tool(exit: 0, "import", "lib/a.bib").stderr
        #expect(told.hasPrefix("1 added"), "\(told)")
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\nnew|-|\n")
    }

    /// An older version of the file is put back.
    @Test(arguments: [("k", "in another version, which was deleted here later"), ("new", "under another key")])
    func aWorkWhoseOlderVersionStaysDeleted_staysAndIsNamed(key: String, message: String) throws {
        let bench = try library(Self.entry(doi: nil))
        try bench.shell("cp -p lib/a.bib old.bib")
        let title = key == "k" ? "Growth of mice" : "Growth in mice"
        try bench.write(
            "lib/a.bib", Self.entry(key: key, title: title, doi: nil) + "@misc{other,title={Another thing}}\n")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        try bench.shell("cp -p old.bib lib/a.bib")
        let told = try bench.tool(exit: 3, "import", "--mirror", "lib/a.bib").stderr
        #expect(told.contains("stays: the file has it \(message)"), "\(told)")
        #expect(try linked(bench) == "\(key)|[\"Attachments/k.pdf\"]|read this\n")
        let command = try #require(told.firstMatch(of: /'backup-tool (import --mirror --overwrite [^']+)'/)).1
        try bench.shell("$T \(command)")
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\n")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        try bench.tool(exit: 0, "store", "check")
    }

    @Test func aSmallFileAtAnotherPlace_isNamedOnce() throws {
        let bench = try library(Self.entry())
        try bench.shell("mkdir moved; mv lib/a.bib moved/a.bib")
        try bench.write("moved/a.bib", "@misc{other,title={Another thing}}\n")
        let told = try bench.tool(exit: 3, "import", "--mirror", "moved/a.bib").stderr
        #expect(
            told.contains("was not imported from here before, so nothing was removed; \(bench.path("lib/a.bib"))"),
            "\(told)")
        #expect(try linked(bench) == "k|[\"Attachments/k.pdf\"]|read this\n")
        try bench.tool(exit: 0, "import", "--mirror", "moved/a.bib")
        // The advice.
        let command = try #require(told.firstMatch(of: /'backup-tool (import --mirror [^']+)'/)).1
        try bench.shell("mv moved/a.bib lib/a.bib; $T \(command)")
        #expect(try linked(bench) == "")
    }

    /// What an app wrote into the publication goes over, too.
    @Test func whatAnAppWroteIntoACorrectedEntry_goesWithIt() throws {
        let bench = try library(Self.entry())
        try bench.shell(
            """
            $T export -q --force -o out
            jq -c 'if .fields.citeKey == "k" and .fields.title then .fields.rating = "5" | .modifiedAt = (now | todate) else . end' \
            out/records.jsonl > records.jsonl
            $T import records.jsonl
            """)
        try bench.write("lib/a.bib", Self.entry(key: "new") + "@misc{other,title={Another thing}}\n")
        let plan = try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib", "--dry-run").stdout
        #expect(plan.contains("rating: nothing → \"5\"") && plan.contains("is a note on Library/"), "\(plan)")
        try bench.tool(exit: 0, "import", "--mirror", "lib/a.bib")
        let ratings =
            "sqlite3 store.db \"SELECT json_extract(fields, '$.rating') FROM record WHERE fields LIKE '%{new,%'\""
        #expect(try bench.shell(ratings) == "5\n")
        let again = try bench.tool("import", "--mirror", "lib/a.bib")
        #expect(again.status == 0, "\(again.stderr)")
        #expect(try bench.shell(ratings) == "5\n")
    }
}

extension Workbench {
    /// Takes back the last import that changed something.
    fileprivate func undoMirror() throws {
        let batch = try shell(
            "sqlite3 store.db \"SELECT max(id) FROM batch WHERE kind = 'import' AND first_change <= last_change\"")
        try tool(exit: 0, "undo", "--batch", String(batch.dropLast()))
    }
}
