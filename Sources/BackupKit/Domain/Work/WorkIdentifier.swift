/// The identifiers by which libraries know a work, normalised so that equal ones are equal texts. Nil and empty answers
/// mean that a field holds none.
enum WorkIdentifier {
    enum Kind: String, CaseIterable { case doi, arxiv, pmid, bibcode, isbn }

    /// Of `10.1000/ABC`, `doi:10.1000/abc`, `https://doi.org/10.1000%2Fabc` and the like: `10.1000/abc`.
    static func doi(_ field: String) -> String? {
        let text = plain(field).lowercased()
        guard let start = doiStart(in: text) else { return nil }
        let found = text[start...].prefix { !$0.isWhitespace && $0 != "\"" && $0 != "," && $0 != ";" }
        let trimmed = trimmingEnd(String(found))
        guard let slash = trimmed.firstIndex(of: "/"), trimmed.index(after: slash) < trimmed.endIndex,
            trimmed[..<slash].allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") })
        else { return nil }
        return trimmed
    }

    /// An address says that it leads to a DOI; numbers that happen to look like one say nothing.
    static func doi(inAddress field: String) -> String? {
        if lacks("doi", field) { return nil }
        let text = plain(field).lowercased()
        for mark in ["doi.org/", "doi:"] {
            guard let end = endOfFirst(mark, in: text) else { continue }
            let rest = text[end...].drop { $0 == " " }
            if rest.hasPrefix("10.") { return doi(String(rest.prefix { $0 != "?" && $0 != "#" })) }
        }
        return nil
    }

    /// DOIs that arXiv gives out are names of its own numbers.
    static func arxiv(ofDOI doi: String) -> String? {
        let prefix = "10.48550/arxiv."
        return doi.hasPrefix(prefix) ? arxiv(String(doi.dropFirst(prefix.count))) : nil
    }

    /// `2101.00001`, `hep-th/9901001`, without version and class of the archive.
    static func arxiv(_ field: String) -> String? {
        var text = plain(field).lowercased().filter { !$0.isWhitespace }
        for mark in ["arxiv:", "arxiv.org/abs/", "arxiv.org/pdf/", "arxiv.org/html/"] {
            if let end = endOfFirst(mark, in: text) { text = String(text[end...]) }
        }
        if let bracket = text.firstIndex(where: { $0 == "[" || $0 == "?" || $0 == "#" }) {
            text = String(text[..<bracket])
        }
        if text.hasSuffix(".pdf") { text.removeLast(4) }
        if let version = text.lastIndex(of: "v"), text[text.index(after: version)...].allSatisfy(\.isNumber),
            version != text.startIndex
        {
            text = String(text[..<version])
        }
        let isNew = digits(text, before: ".", count: 4...4).map { (4...5).contains($0.count) && isDigits($0) } ?? false
        if isNew { return text }
        guard let slash = text.firstIndex(of: "/") else { return nil }
        let number = text[text.index(after: slash)...]
        let archive = text[..<slash].split(separator: ".").first ?? ""
        guard number.count == 7, isDigits(number), !archive.isEmpty,
            archive.allSatisfy({ $0.isASCII && ($0.isLetter || $0 == "-") })
        else { return nil }
        return "\(archive)/\(number)"
    }

    static func arxiv(inAddress field: String) -> String? {
        !lacks("arxiv", field) && endOfFirst("arxiv.org/", in: field.lowercased()) != nil ? arxiv(field) : nil
    }

    static func pmid(_ field: String) -> String? {
        var text = plain(field).lowercased().filter { !$0.isWhitespace }
        if let end = endOfFirst("pmid:", in: text) { text = String(text[end...]) }
        let number = text.drop { $0 == "0" }
        return !number.isEmpty && number.count < 10 && isDigits(number) ? String(number) : nil
    }

    static func pmid(inAddress field: String) -> String? {
        if lacks("pubmed", field) { return nil }
        let text = plain(field).lowercased()
        for mark in ["pubmed.ncbi.nlm.nih.gov/", "ncbi.nlm.nih.gov/pubmed/"] {
            if let end = endOfFirst(mark, in: text) { return pmid(String(text[end...].prefix { $0.isNumber })) }
        }
        return nil
    }

    /// 19 characters that begin with a year. One that ADS made for an arXiv paper is `(nil, its number)`.
    static func bibcode(_ field: String) -> (bibcode: String?, arxiv: String?) {
        var text = plain(field)
        for mark in ["/abs/", "bibcode="] {
            if let end = endOfFirst(mark, in: text) { text = String(text[end...]) }
        }
        let code = text.filter { !$0.isWhitespace }.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard code.utf8.count == 19, isDigits(code.prefix(4)) else { return (nil, nil) }
        if code.dropFirst(4).lowercased().hasPrefix("arxiv") {
            let number = code.dropFirst(9).prefix(9)
            return (nil, arxiv("\(number.prefix(4)).\(number.suffix(5))"))
        }
        return (code.lowercased(), nil)
    }

    /// Every ISBN of a field that has its right check digit, as 13 digits.
    static func isbns(_ field: String) -> [String] {
        var found: [String] = []
        // Dashes need not be of ASCII.
        let pieces = plain(field).utf8.split { !isISBNDigit($0) && $0 < 0x80 && $0 != 0x20 && $0 != 0x2D }
        for piece in pieces {
            let words = piece.split(separator: 0x20).map { $0.filter(isISBNDigit) }
            // "978 3 16 148410 0" is one number, "9783161484100 316148410X" are two.
            if let one = isbn(words.flatMap(\.self)) { found.append(one) } else { found += words.compactMap(isbn) }
        }
        return found
    }

    private static func isISBNDigit(_ byte: UInt8) -> Bool { 0x30...0x39 ~= byte || byte | 0x20 == UInt8(ascii: "x") }

    private static func isbn(_ text: [UInt8]) -> String? {
        let values = text.map { $0 < 0x3A ? Int($0 - 0x30) : 10 }
        guard values.dropLast().allSatisfy({ $0 < 10 }) else { return nil }
        if values.count == 13, values[12] < 10 {
            let sum = values.enumerated().reduce(0) { $0 + $1.element * ($1.offset % 2 == 0 ? 1 : 3) }
            let isBook = values[0] == 9 && values[1] == 7 && values[2] >= 8
            return sum % 10 == 0 && isBook ? String(decoding: text, as: UTF8.self) : nil
        }
        guard values.count == 10, values.enumerated().reduce(0, { $0 + $1.element * (10 - $1.offset) }) % 11 == 0 else {
            return nil
        }
        let body = [9, 7, 8] + values.dropLast()
        let sum = body.enumerated().reduce(0) { $0 + $1.element * ($1.offset % 2 == 0 ? 1 : 3) }
        return (body + [(10 - sum % 10) % 10]).map(String.init).joined()
    }

    // MARK: Texts

    /// Whether a field surely holds no such word, whatever the case of its letters: most addresses need no closer look.
    private static func lacks(_ word: StaticString, _ field: String) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        var field = field
        return field.withUTF8 { bytes in
            for (index, byte) in bytes.enumerated() {
                switch byte {
                case UInt8(ascii: "%"), UInt8(ascii: "\\"), UInt8(ascii: "{"), UInt8(ascii: "}"): return false
                case word[0], word[0] & ~0x20:
                    let rest = bytes[index...].prefix(word.count)
                    if rest.count == word.count, zip(rest, word).allSatisfy({ $0 | 0x20 == $1 }) { return false }
                default: break
                }
            }
            return true
        }
    }

    /// Without TeX's escapes and braces, and with what an address has encoded.
    private static func plain(_ field: String) -> String {
        var bytes: [UInt8] = []
        let source = Array(field.utf8)
        var index = 0
        while index < source.count {
            let byte = source[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < source.count, let high = hexValue(source[index]),
                let low = hexValue(source[index + 1])
            {
                bytes.append(high << 4 | low)
                index += 2
            } else if byte != UInt8(ascii: "\\"), byte != UInt8(ascii: "{"), byte != UInt8(ascii: "}") {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func doiStart(in text: String) -> String.Index? {
        if text.hasPrefix("10.") { return text.startIndex }
        for mark in ["doi.org/", "doi:", "doi "] {
            guard let end = endOfFirst(mark, in: text) else { continue }
            let rest = text[end...].drop { $0 == " " }
            if rest.hasPrefix("10.") { return rest.startIndex }
        }
        let trimmed = text.drop { $0.isWhitespace }
        return trimmed.hasPrefix("10.") ? trimmed.startIndex : nil
    }

    /// Full stops and brackets that close what the DOI stands in.
    private static func trimmingEnd(_ text: String) -> String {
        var text = text
        while let last = text.last, ".:)>]".contains(last) {
            // SICIs hold brackets of their own.
            if last == ")", text.contains("(") { break }
            if last == ">", text.contains("<") { break }
            if last == "]", text.contains("[") { break }
            text.removeLast()
        }
        return text
    }

    private static func endOfFirst(_ mark: String, in text: String) -> String.Index? {
        guard let first = mark.utf8.first else { return nil }
        let (bytes, wanted) = (text.utf8, Array(mark.utf8))
        var start = bytes.startIndex
        while let found = bytes[start...].firstIndex(of: first) {
            if bytes[found...].starts(with: wanted) { return bytes.index(found, offsetBy: wanted.count) }
            start = bytes.index(after: found)
        }
        return nil
    }

    /// What follows the mark, when so many digits stand before it.
    private static func digits(_ text: String, before mark: Character, count: ClosedRange<Int>) -> Substring? {
        guard let place = text.firstIndex(of: mark), count.contains(text[..<place].count), isDigits(text[..<place])
        else { return nil }
        return text[text.index(after: place)...]
    }

    private static func isDigits(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { 0x30...0x39 ~= $0 }
    }
}
