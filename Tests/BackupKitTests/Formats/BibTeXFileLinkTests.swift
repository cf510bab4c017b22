import Testing

@testable import BackupKit

private func links(_ field: String, _ value: String) -> [BibFileLink] { BibFileLinks.links(field: field, value: value) }

@Suite struct BibTeXNamesFiles {
    /// Made with Python's plistlib: the shape BibDesk archives (keys and values by number), with alias data beside the path.
    private let archived = """
        YnBsaXN0MDDUAQIDBAUGHiFZJGFyY2hpdmVyWCRvYmplY3RzVCR0b3BYJHZlcnNpb25fEA9OU0tleWVkQXJjaGl2ZXKnBwgTFBUWF1UkbnVsbNMJCgsM
        DRBWJGNsYXNzV05TLmtleXNaTlMub2JqZWN0c4AGog4PgAKAA6IREoAEgAVccmVsYXRpdmVQYXRoWWFsaWFzRGF0YV8QFVBhcGVycy9LbnV0aCAxOTg0
        LnBkZkoAAAAAAAAAAAAA0hgZGhtYJGNsYXNzZXNaJGNsYXNzbmFtZaMbHB1fEBNOU011dGFibGVEaWN0aW9uYXJ5XE5TRGljdGlvbmFyeVhOU09iamVj
        dNEfIFRyb290gAESAAGGoAAIABEAGwAkACkAMgBEAEwAUgBZAGAAaABzAHUAeAB6AHwAfwCBAIMAkACaALIAvQDCAMsA1gDaAPAA/QEGAQkBDgEQAAAA
        AAAAAgEAAAAAAAAAIgAAAAAAAAAAAAAAAAAAARU=
        """
    /// The same for a plain dictionary with a bookmark and a path beyond ASCII.
    private let plain = """
        YnBsaXN0MDDSAQIDBFhib29rbWFya1xyZWxhdGl2ZVBhdGhPELRib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABi
        b29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29r
        AABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABib29rAABvEBUAxgByAPgALwBNAPwAbABsAGUAcgAgIBMAIAAyADAAMgAwAC4AcABk
        AGYACAANABYAIwDaAAAAAAAAAgEAAAAAAAAABQAAAAAAAAAAAAAAAAAAAQc=
        """

    @Test func bibDeskLinksAreReadInBothShapes() {
        #expect(links("Bdsk-File-1", archived) == [BibFileLink(path: "Papers/Knuth 1984.pdf")])
        #expect(links("bdsk-file-12", plain) == [BibFileLink(path: "Ærø/Müller – 2020.pdf")])
    }

    @Test func aBibDeskLinkInXML_isRead() {
        let xml = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict>
                <key>bookmark</key><data>Ym9vaw==</data>
                <key>relativePath</key>
                <string>R&amp;D/&#xDC;ber &lt;2&gt;.pdf</string>
            </dict></plist>
            """
        let value = Base64.encode(Array(xml.utf8))
        #expect(links("Bdsk-File-1", value) == [BibFileLink(path: "R&D/Über <2>.pdf")])
        for cut in 0..<value.utf8.count { _ = links("Bdsk-File-1", String(value.prefix(cut))) }
    }

    @Test(arguments: ["x.pdf", "Papers/A long name that needs a length of its own.pdf", "Ærø/ü – 😀.pdf", ""])
    func bibDeskLinksReadBackAsWritten(path: String) {
        #expect(links("Bdsk-File-1", BibFileLinks.bibDeskValue(relativePath: path)) == [BibFileLink(path: path)])
    }

    @Test(arguments: [
        (":a/x.pdf:PDF", [BibFileLink(path: "a/x.pdf", mediaType: "PDF")]),
        (
            "Full\\: text:a\\;b/x\\:y.pdf:PDF;:z.ps:PostScript",
            [
                BibFileLink(path: "a;b/x:y.pdf", description: "Full: text", mediaType: "PDF"),
                BibFileLink(path: "z.ps", mediaType: "PostScript"),
            ]
        ),
        (
            "Name:files/12/x.pdf:application/pdf;Snapshot:files/13/x.html:text/html",
            [
                BibFileLink(path: "files/12/x.pdf", description: "Name", mediaType: "application/pdf"),
                BibFileLink(path: "files/13/x.html", description: "Snapshot", mediaType: "text/html"),
            ]
        ),
        ("x.pdf", [BibFileLink(path: "x.pdf")]),
        ("a.pdf;b.pdf; ;", [BibFileLink(path: "a.pdf"), BibFileLink(path: "b.pdf")]),
        ("C\\:\\\\Users\\\\m\\\\x y.pdf", [BibFileLink(path: "C:/Users/m/x y.pdf")]),
        ("C:\\Users\\m\\x.pdf", [BibFileLink(path: "C:/Users/m/x.pdf")]),
        ("C:\\Users\\m\\x.pdf:PDF", [BibFileLink(path: "C:/Users/m/x.pdf", mediaType: "PDF")]),
        (":C\\:/m/x.pdf:PDF", [BibFileLink(path: "C:/m/x.pdf", mediaType: "PDF")]),
        (
            "T:C:\\m\\x.pdf:application/pdf",
            [BibFileLink(path: "C:/m/x.pdf", description: "T", mediaType: "application/pdf")]
        ),
        ("x.pdf:PDF", [BibFileLink(path: "x.pdf", mediaType: "PDF")]),
        ("Text:x.pdf", [BibFileLink(path: "x.pdf", description: "Text")]),
        ("https://example.org/x.pdf", []), ("Text:https\\://example.org/x:PDF", []), ("", []),
        ("a\\_b.pdf", [BibFileLink(path: "a\\_b.pdf")]),
        ("files\\12\\x.pdf", [BibFileLink(path: "files/12/x.pdf")]),
    ])
    func fileFieldsOfEveryKindAreRead(value: String, expected: [BibFileLink]) {
        #expect(links("File", value) == expected)
    }

    @Test func plainPathFieldsAndFileAddressesAreRead() {
        #expect(links("pdf", " a:b;c.pdf ") == [BibFileLink(path: "a:b;c.pdf")])
        #expect(links("Local-Url", "file://localhost/a%20b/%C3%A9%zz.pdf") == [BibFileLink(path: "/a b/é%zz.pdf")])
        #expect(links("title", "x.pdf") == [])
    }

    @Test func fileValuesAreReadAsJabRefWritesThem() {
        let value = #"x\:y\;:a\;b\:c\\d/e.pdf:PDF;:plain.pdf:PDF;:no type.pdf:"#
        #expect(
            links("file", value) == [
                BibFileLink(path: "a;b:c\\d/e.pdf", description: "x:y;", mediaType: "PDF"),
                BibFileLink(path: "plain.pdf", mediaType: "PDF"),
                BibFileLink(path: "no type.pdf"),
            ])
    }

    @Test func allLinksOfAnEntryComeInOrderAndOnce() {
        let text = "@a{k, file = {:x.pdf:PDF}, title = {t}, Bdsk-File-1 = {\(archived)}, pdf = {x.pdf}}"
        var found: [String] = []
        Array(text.utf8).withUnsafeBytes { buffer in
            BibParser.parse(buffer) { found += BibFileLinks.links(in: $0).map(\.path) }
        }
        #expect(found == ["x.pdf", "Papers/Knuth 1984.pdf"])
    }

    @Test(arguments: [UInt64(21), 22])
    func damagedLinksGiveNothingAndNeverTrap(seed: UInt64) throws {
        var random = BibRandom(seed: seed)
        for source in [archived, plain] {
            let whole = try #require(BibBase64.decode(source))
            #expect(BibBase64.decode(BibBase64.encode(whole)) == whole)
            for _ in 0..<400 {
                var bytes = whole
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    let at =
                        Bool.random(using: &random)
                        ? Int.random(in: 0..<bytes.count, using: &random)
                        : max(0, bytes.count - Int.random(in: 1...32, using: &random))
                    bytes[at] = Bool.random(using: &random) ? 0xFF : UInt8.random(in: 0...255, using: &random)
                }
                if Int.random(in: 0..<4, using: &random) == 0 {
                    bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
                }
                _ = BibBinaryPlist(bytes)?.relativePath
                _ = links("file", String(decoding: bytes, as: UTF8.self))
            }
        }
        #expect(links("Bdsk-File-1", "not base64!") == [])
        #expect(links("Bdsk-File-1", "") == [])
    }
}
