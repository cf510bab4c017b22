import BackupKit
import TestSupport
import Testing

/// Entries that name several files which are called the same.
@Suite struct CommandsFileNameTests {
    /// What an entry names, and with which code an import of it ends.
    private static let names: [(paths: [String], code: Int32)] = [
        (["a/paper.pdf", "b/paper.pdf"], 0), (["paper.pdf", "a/paper.pdf", "b/paper.pdf", "b/a/paper.pdf"], 0),
        (["b/a/x.pdf", "a/x.pdf", "x.pdf", "x_2.pdf", "a/x_2.pdf"], 0), (["P.pdf", "a/p.pdf", "p.pdf"], 3),
        (["\u{E9}.pdf", "b/\u{E9}.pdf", "e\u{301}.pdf"], 3),
    ]

    enum Program: CaseIterable { case jabRef, zotero, bibDesk }

    private func fields(_ program: Program, _ paths: [String]) -> String {
        switch program {
        case .jabRef: "file={\(paths.map { ":\($0):PDF" }.joined(separator: ";"))}"
        case .zotero: "file={\(paths.map { "PDF:\($0):application/pdf" }.joined(separator: ";"))}"
        case .bibDesk:
            paths.enumerated().map { "Bdsk-File-\($0 + 1)={\(BibFileLinks.bibDeskValue(relativePath: $1))}" }
                .joined(separator: ", ")
        }
    }

    /// Of each entry in an exported library the texts of the files that it names: by `file`, and by BibDesk's fields.
    private func texts(_ bench: Workbench, _ folder: String) throws -> [String: [[String]]] {
        var found: [String: [[String]]] = [:]
        let bytes = try bench.bytes("\(folder)/library.bib")
        try bytes.withUnsafeBytes { raw in
            try BibParser.parse(raw) { block in
                guard block.kind == .entry else { return }
                var texts = [[String]](repeating: [], count: 2)
                for field in block.fields {
                    let name = block.name(of: field)
                    for link in BibFileLinks.links(field: name, value: block.value(of: field)) {
                        texts[name == "file" ? 0 : 1].append(try bench.text("\(folder)/\(link.path)"))
                    }
                }
                found[block.key] = texts.map { $0.sorted() }
            }
        }
        return found
    }

    @Test(arguments: Program.allCases, [0, 1, 2, 3, 4])
    func eachNameOfAnEntry_namesItsOwnFileInEveryExport(program: Program, number: Int) throws {
        let (paths, code) = Self.names[number]
        let bench = try Workbench()
        var wanted: [String: [String]] = [:]
        // Two libraries with equal paths, the second of which give way to the first.
        for key in ["k1", "k2"] {
            for path in paths { try bench.write("\(key)/\(path)", "\(path) of \(key)") }
            wanted[key] = paths.map { "\($0) of \(key)" }.sorted()
            try bench.write(
                "\(key)/r.bib",
                "@misc{\(key), title={Title of \(key)}, author={\(key), A}, year=2001, \(fields(program, paths))}\n")
            try bench.tool(exit: key == "k1" ? code : 3, "import", "--create", "\(key)/r.bib")
        }
        func check(_ folder: String, isImbib: Bool = false) throws {
            let found = try texts(bench, folder)
            for key in ["k1", "k2"] {
                let (byFile, byBibDesk) = (program == .bibDesk ? [] : wanted[key], wanted[key])
                #expect(found[key]?.first == byFile, "\(folder)")
                if isImbib || program == .bibDesk { #expect(found[key]?.last == byBibDesk, "\(folder)") }
            }
        }
        let digest = try bench.digest()
        for (form, name) in [("dir", "out"), ("zip", "out.zip"), ("imbib", "imbib")] {
            try bench.tool(exit: 0, "export", "-q", "--format", form, "-o", name)
            if form != "zip" { try check(name, isImbib: form == "imbib") }
            try bench.tool(["import", "-q", "--create", "--store", "\(form).db", name])
            if form != "imbib" { #expect(try bench.digest("\(form).db") == digest) }
            try bench.tool(exit: 0, "export", "-q", "--store", "\(form).db", "-o", "again-\(form)")
            try check("again-\(form)")
        }
    }
}
