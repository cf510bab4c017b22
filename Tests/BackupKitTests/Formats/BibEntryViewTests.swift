import TestSupport
import Testing

@testable import BackupKit

private typealias Link = BibEntryView.Link

private func words(_ random: inout SeededGenerator) -> String {
    let pieces = ["a", "Müller", "x y", "12", "_", "&", "100%", "me@home", "(1)", "é", "#", "~", "-"]
    return (0...random.below(2)).map { _ in pieces[random.below(pieces.count)] }.joined()
}

/// An entry such as apps write, with fields that name some of the paths in some way.
private func entry(_ paths: [String], _ random: inout SeededGenerator) -> [UInt8] {
    var fields: [String] = []
    for (number, path) in paths.enumerated() {
        let old = ["files/", "/home/ann/", "C:\\\\ann\\\\", ""][random.below(4)] + lastComponent(of: path)
        switch random.below(6) {
        case 0: fields.append("file = {:\(old.split(separator: ":").joined(separator: "\\:")):PDF}")
        case 1: fields.append("FILE={Full: \(old):application/pdf; :gone.pdf:PDF}")
        case 2: fields.append("pdf = \"\(old)\"")
        case 3:
            fields.append("Bdsk-File-\(number + random.below(3)) = {\(BibFileLinks.bibDeskValue(relativePath: old))}")
        case 4: fields.append("file = \"a.pdf;\(old)\" # {x}")
        default: fields.append("note = {\(words(&random))}")
        }
    }
    fields.insert("title = {\(words(&random))}", at: random.below(fields.count + 1))
    let separator = [",\n  ", ", ", ",\r\n\t", "\n, "][random.below(4)]
    let end = ["", ",", ",\n", "\n", " % why\n"][random.below(5)]
    let (open, close) = random.chance(3) ? ("(", ")") : ("{", "}")
    let text = "@misc\(open)key\(separator)\(fields.joined(separator: separator))\(end)\(close)"
    guard random.chance(3) else { return Array(text.utf8) }
    return BibText.encode(text + "", asUTF8: false)
}

@Test func everyView_givesTheEntryBack_toTheByte() throws {
    let seed = testSeed()
    var random = SeededGenerator(seed: seed)
    var (placed, named) = (0, 0)
    for round in 0..<3000 {
        let links = (0..<random.below(4)).map { number in
            let path = "Attachments/\(number)/\(words(&random)).pdf"
            return Link(path: path, place: random.chance(4) ? "Attachments/PDFs/\(lastComponent(of: path))" : path)
        }
        let original = entry(links.map(\.path), &random)
        let isNaming = random.chance(2)
        let view = BibEntryView(of: original, links: links, naming: isNaming)
        #expect(BibText.decode(view.bytes).wasUTF8)
        placed += view.marks.count { $0.hasPrefix("was ") }
        named += view.marks.count { $0.hasPrefix("added ") }
        let back = BibEntryView.original(
            of: view.bytes, marks: view.marks, links: links.map { Link(path: $0.place, place: $0.place) })
        #expect(
            back == original,
            "seed \(seed), round \(round): \(String(decoding: original, as: UTF8.self)) → \(String(decoding: view.bytes, as: UTF8.self)) → \(String(decoding: back, as: UTF8.self))"
        )
        guard isNaming, BibEntryLayout(original) != nil else { continue }
        var found: Set<String> = []
        view.bytes.withUnsafeBytes { raw in
            BibParser.parse(raw) { block in
                for field in block.fields where block.name(of: field).hasPrefix("Bdsk-File-") {
                    let name = block.name(of: field)
                    found.formUnion(BibFileLinks.links(field: name, value: block.value(of: field)).map(\.path))
                }
            }
        }
        #expect(Set(links.map(\.place)).subtracting(view.unnamed).isSubset(of: found), "seed \(seed), round \(round)")
    }
    #expect(placed > 500 && named > 500)
}

@Test func whatSomebodyChangesInAView_staysChanged() throws {
    let original = Array("@misc{k, title={Old}, file={:a/x.pdf:PDF}}".utf8)
    let links = [Link(path: "Attachments/x.pdf", place: "Attachments/x.pdf")]
    let view = BibEntryView(of: original, links: links)
    #expect(String(decoding: view.bytes, as: UTF8.self).contains("{:Attachments/x.pdf:PDF}"))
    let edited = try BibEditor.apply([.set(field: "title", value: "New")], to: view.bytes)
    let back = BibEntryView.original(of: edited, marks: view.marks, links: links)
    #expect(String(decoding: back, as: UTF8.self) == "@misc{k, title={New}, file={:a/x.pdf:PDF}}")
    let moved = try BibEditor.apply([.set(field: "file", value: ":y.pdf:PDF")], to: view.bytes)
    #expect(BibEntryView.original(of: moved, marks: view.marks, links: links) == moved)
}

@Test(arguments: [
    ("M{\\\"u}ller{\\_}2020.pdf", "Müller_2020.pdf"), ("{\\\"{u}}\\\"{O}\\'e\\`{a}.pdf", "üÖéà.pdf"),
    ("a\\&b\\%c\\#d\\$e\\_f.pdf", "a&b%c#d$e_f.pdf"), ("\\v{C}{\\c c}\\ss{}x{\\o}\\aa .pdf", "Čçßxøå.pdf"),
    ("{\\'{\\i}}\\~{}\\textasciitilde x$\\sim$.pdf", "í~~x~.pdf"), ("{curly}.pdf", "{curly}.pdf"),
    ("C:\\Users\\x.pdf", "C:\\Users\\x.pdf"), ("plain.pdf", "plain.pdf"), ("\\", "\\"), ("{\\", "{\\"),
    ("\\\"", "\\\""),
])
func latexOfPathsIsUnderstood(_ written: String, _ meant: String) {
    #expect(sameBytes(LaTeXText.plain(written), meant), "\(LaTeXText.plain(written))")
}

@Test func mendeleysBackslashes_escapeColons() {
    let links = BibFileLinks.links(field: "file", value: ":C$\\backslash$:/Users/m/a{\\_}b.pdf:pdf")
    #expect(links.map(\.path) == ["C:/Users/m/a{\\_}b.pdf"] && links[0].readings.last == "C:/Users/m/a_b.pdf")
}
