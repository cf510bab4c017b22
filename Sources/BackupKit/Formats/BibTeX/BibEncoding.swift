/// The encoding that a `.bib` file declares in its first lines, as JabRef writes it.
enum BibEncoding {
    /// How much of a file is looked at for it.
    static let headBytes = 4096

    /// The name after `Encoding:`, with or without a `%` before it, in the lines before the first entry; else nil.
    static func declared(in head: [UInt8]) -> String? {
        for line in head.prefix(while: { $0 != BibByte.at }).split(whereSeparator: BibByte.isBreak) {
            let start = line.drop { $0 == BibByte.percent || BibByte.isBlank($0) }
            guard start.prefix(label.count).map(BibText.lowercase) == label else { continue }
            let name = start.dropFirst(label.count).drop(while: BibByte.isBlank).prefix { !BibByte.isWhite($0) }
            return name.isEmpty ? nil : BibText.decode(Array(name)).text
        }
        return nil
    }

    private static let label = Array("encoding:".utf8)
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
