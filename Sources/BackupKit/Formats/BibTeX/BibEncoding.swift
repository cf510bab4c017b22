/// The encoding that a `.bib` file declares in its first lines, as JabRef and BibDesk write it.
enum BibEncoding {
    /// How much of a file is looked at for it.
    static let headBytes = 4096

    /// The name after `Encoding:` or `Saved with string encoding`, with or without a `%` before it, in the lines before the
    /// first entry; else nil.
    static func declared(in head: [UInt8]) -> String? {
        for line in head.prefix(while: { $0 != BibByte.at }).split(whereSeparator: BibByte.isBreak) {
            let start = line.drop { $0 == BibByte.percent || BibByte.isBlank($0) }
            func rest(after label: [UInt8]) -> ArraySlice<UInt8>? {
                guard start.prefix(label.count).map(BibText.lowercase) == label else { return nil }
                return start.dropFirst(label.count).drop(while: BibByte.isBlank)
            }
            var name = rest(after: label)?.prefix { !BibByte.isWhite($0) }
            if var words = rest(after: bibDeskLabel) {
                while let last = words.last, BibByte.isBlank(last) { words.removeLast() }
                name = words
            }
            if let name { return name.isEmpty ? nil : BibText.decode(Array(name)).text }
        }
        return nil
    }

    /// Whether a text is what BibDesk writes at the head of its files: one of its lines names the encoding.
    static func isBibDeskHead(_ text: UnsafeRawBufferPointer) -> Bool {
        text.split(whereSeparator: BibByte.isBreak).contains { line in
            let start = line.drop { $0 == BibByte.percent || BibByte.isBlank($0) }
            return start.prefix(bibDeskLabel.count).map(BibText.lowercase) == bibDeskLabel
        }
    }

    private static let label = Array("encoding:".utf8)
    private static let bibDeskLabel = Array("saved with string encoding ".utf8)

    /// What iconv calls an encoding that BibDesk names in macOS's words; nil for any other.
    static func iconvName(_ name: String) -> String? { bibDeskNames[name] }

    private static let bibDeskNames = [
        "Unicode (UTF-8)": "UTF-8", "Western (ISO Latin 1)": "ISO-8859-1", "Western (Windows Latin 1)": "CP1252",
        "Western (Mac OS Roman)": "MACINTOSH", "Western (ISO Latin 9)": "ISO-8859-15",
        "Central European (ISO Latin 2)": "ISO-8859-2", "Central European (Windows Latin 2)": "CP1250",
        "Central European (Mac OS)": "MAC-CENTRALEUROPE", "Cyrillic (ISO 8859-5)": "ISO-8859-5",
        "Cyrillic (Windows)": "CP1251", "Cyrillic (KOI8-R)": "KOI8-R", "Cyrillic (Mac OS)": "MAC-CYRILLIC",
        "Greek (ISO 8859-7)": "ISO-8859-7", "Greek (Windows)": "CP1253", "Turkish (ISO Latin 5)": "ISO-8859-9",
        "Turkish (Windows Latin 5)": "CP1254", "Japanese (EUC)": "EUC-JP", "Japanese (Shift JIS)": "CP932",
        "Japanese (Windows, DOS)": "CP932", "Simplified Chinese (GB 18030)": "GB18030",
        "Traditional Chinese (Big 5)": "BIG5", "Korean (EUC)": "EUC-KR",
    ]
}

/// Whether bytes that come in pieces are UTF-8.
struct UTF8Check {
    /// The first bytes of a character that the last piece cut apart.
    private var rest: [UInt8] = []
    private(set) var isUTF8 = true

    mutating func take(_ bytes: UnsafeRawBufferPointer) {
        var start = 0
        if !rest.isEmpty {
            while start < bytes.count, bytes[start] & 0xC0 == 0x80, rest.count < 4 {
                rest.append(bytes[start])
                start += 1
            }
            if start == bytes.count, rest.count < 4 { return }
            finish()
        }
        var end = bytes.count
        while end > start, bytes.count - end < 3, bytes[end - 1] & 0xC0 == 0x80 { end -= 1 }
        if end > start, bytes[end - 1] >= 0xC0 {
            end -= 1
            rest = Array(bytes[end...])
        } else {
            end = bytes.count
        }
        isUTF8 = isUTF8 && BibText.isUTF8(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
    }

    mutating func finish() {
        isUTF8 = isUTF8 && rest.withUnsafeBytes { BibText.isUTF8($0) }
        rest = []
    }
}
