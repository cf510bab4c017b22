/// Texts of a bibliography as they are compared: without TeX, case, accents, punctuation and space. Signs that tell titles
/// apart stay, and so do numbers: "C++" is not "C", and "1.5 mg" is not "15 mg".
enum WorkText {
    /// A value as BibTeX reads it: white space and line ends are one space, and none stands at its ends.
    static func words(_ value: String) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(value.utf8.count)
        var isGap = false
        for byte in value.utf8 {
            if byte == 0x20 || 0x09...0x0D ~= byte {
                isGap = !out.isEmpty
                continue
            }
            if isGap { out.append(0x20) }
            isGap = false
            out.append(byte)
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// "{\"U}ber das {DNA}-Modell" and "Über das DNA-Modell" both give "uberdasdnamodell".
    static func folded(_ text: some StringProtocol) -> String {
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count)
        var isGap = false
        let isPlain = text.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "\\") }
        var last: Unicode.Scalar = " "
        if isPlain {
            for byte in text.utf8 {
                let scalar = Unicode.Scalar(byte)
                out += sign(last, scalar).utf8
                appendASCII(scalar, to: &out, &isGap)
                last = scalar
            }
            return String(decoding: out, as: UTF8.self)
        }
        var scalars = text.unicodeScalars.makeIterator()
        var next = scalars.next()
        while let scalar = next {
            next = scalars.next()
            out += sign(last, scalar).utf8
            last = scalar
            if scalar == "\\" {
                var command = ""
                while let letter = next, letter.isASCII, letter.properties.isAlphabetic {
                    command.unicodeScalars.append(letter)
                    next = scalars.next()
                }
                // \' and its like stand before the letter that they are about; \# is the sign itself.
                if command.isEmpty, let sign = next {
                    if sign == "#" { out.append(UInt8(ascii: "#")) }
                    next = scalars.next()
                }
                out += meaning(of: command).utf8
                isGap = true
            } else if scalar.isASCII {
                appendASCII(scalar, to: &out, &isGap)
            } else {
                isGap = true
                append(scalar, to: &out)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// What two signs mean together: "P != NP", "k=-1".
    private static func sign(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> String {
        switch (first, second) {
        case ("!", "="): "neq"
        case ("=", "-"), ("=", "\u{2212}"): "minus"
        default: ""
        }
    }

    /// `isGap`: whether something stood between the last character and this one. Numbers that are apart stay apart.
    private static func appendASCII(_ scalar: Unicode.Scalar, to out: inout [UInt8], _ isGap: inout Bool) {
        switch scalar.value {
        case 0x30...0x39:
            if isGap, let last = out.last, 0x30...0x39 ~= last { out.append(UInt8(ascii: ".")) }
            out.append(UInt8(scalar.value))
        case 0x61...0x7A: out.append(UInt8(scalar.value))
        case 0x41...0x5A: out.append(UInt8(scalar.value | 0x20))
        // + # < >
        case 0x2B, 0x23, 0x3C, 0x3E: out.append(UInt8(scalar.value))
        default: return isGap = true
        }
        isGap = false
    }

    private static let signs: [Unicode.Scalar: String] = [
        "\u{2260}": "neq", "\u{2264}": "leq", "\u{2265}": "geq", "\u{266F}": "sharp", "\u{266D}": "flat",
        "\u{2190}": "leftarrow", "\u{2192}": "rightarrow", "\u{2194}": "leftrightarrow",
    ]

    /// The name of a character tells its base: LATIN SMALL LETTER E WITH ACUTE, GREEK SMALL LETTER ALPHA.
    private static func append(_ scalar: Unicode.Scalar, to out: inout [UInt8]) {
        if let sign = signs[scalar] { return out += sign.utf8 }
        let properties = scalar.properties
        if let value = properties.numericValue, [.decimal, .digit].contains(properties.numericType) {
            return out.append(UInt8(ascii: "0") + UInt8(value))
        }
        // A vowel or a tone of these scripts makes another word, and an accent of a Latin letter does not.
        let isOfWord = 0x0900...0x109F ~= scalar.value || 0x1780...0x17FF ~= scalar.value
        let isMark = [.nonspacingMark, .spacingMark].contains(properties.generalCategory)
        guard properties.isAlphabetic || properties.numericType != nil || isOfWord && isMark else { return }
        let words = (properties.name ?? "").split(separator: " ")
        if words.count > 3, words[0] == "LATIN" || words[0] == "GREEK", words[2] == "LETTER" || words[2] == "LIGATURE" {
            switch words[3] {
            case "SHARP": out += "ss".utf8
            case "DOTLESS": out += "i".utf8
            case "THORN": out += "th".utf8
            case "ETH": out += "dh".utf8
            default: out += words[3].lowercased().utf8
            }
        } else {
            out += properties.lowercaseMapping.utf8
        }
    }

    /// What a TeX command prints: nothing for accents and fonts, letters for letters, and its name for any other, so that
    /// `$\alpha$` is not `$\beta$`.
    private static func meaning(of command: String) -> String {
        switch command {
        case "": ""
        case "o", "O", "l", "L", "i", "j", "ss", "ae", "oe", "AE", "OE", "th", "TH", "dh", "DH": command.lowercased()
        case "aa", "AA": "a"
        case "dj", "DJ": "d"
        case "SS": "ss"
        case "ng", "NG": "ng"
        case "ne", "neq": "neq"
        case "le", "leq", "leqslant": "leq"
        case "ge", "geq", "geqslant": "geq"
        case "to", "longrightarrow": "rightarrow"
        case "textless", "lt": "<"
        case "textgreater", "gt": ">"
        case "c", "v", "u", "H", "k", "r", "b", "d", "t", "it", "bf", "em", "rm", "sc", "tt", "sl", "sf", "emph",
            "text",
            "textit", "textbf", "textsc", "textrm", "texttt", "textsf", "textsl", "textup", "textnormal", "mathrm",
            "mathbf", "mathit", "mathsf", "mathcal", "mathbb", "boldsymbol", "ensuremath", "mbox", "url", "uppercase",
            "lowercase", "textsuperscript", "textsubscript", "relax", "protect", "textendash", "textemdash",
            "textquoteright", "textquoteleft", "ldots", "dots":
            ""
        default: command.lowercased()
        }
    }

    /// A name as it is compared: the family name, the given names, as much of them as is written out, and "Jr.".
    struct Person: Hashable {
        let family: String
        private let plainFamily: String
        /// "J.-P." and "Jean-Paul" are two each.
        private let given: [String]
        private let suffix: String

        var initial: String { String((given.first ?? "").prefix(1)) }
        /// What tells people of one family name and first initial apart: the other initials, and "Jr.".
        var otherInitials: String { given.dropFirst().map { $0.prefix(1) }.joined() + suffix }

        init(family: [Substring], given: some Sequence<Substring>, suffix: [Substring] = []) {
            self.family = family.map { folded($0) }.joined()
            plainFamily = Self.plain(self.family)
            self.given = given.flatMap { $0.split { $0 == "." || $0 == "-" } }.map { Self.plain(folded($0)) }
                .filter { !$0.isEmpty }
            self.suffix = suffix.map { folded($0) }.joined()
        }

        /// Given names of one side may be unknown or shortened; what is known of both has to agree.
        func mayBe(_ other: Person) -> Bool {
            plainFamily == other.plainFamily && (suffix == other.suffix || suffix.isEmpty || other.suffix.isEmpty)
                && zip(given, other.given).allSatisfy { Self.agree($0, $1) }
                && !isInOneWord(other) && !other.isInOneWord(self)
        }

        /// A name with "ue" as one with "u": "Mueller" is "Müller" where a keyboard has no "ü".
        private static func plain(_ name: String) -> String {
            func isSecond(_ byte: UInt8, after last: UInt8) -> Bool {
                byte == UInt8(ascii: "e") && "aou".utf8.contains(last)
            }
            let bytes = name.utf8
            guard zip(bytes.dropFirst(), bytes).contains(where: isSecond) else { return name }
            let rest = zip(bytes.dropFirst(), bytes).filter { !isSecond($0, after: $1) }
            return String(decoding: Array(bytes.prefix(1)) + rest.map(\.0), as: UTF8.self)
        }

        private static func agree(_ one: String, _ other: String) -> Bool {
            one.hasPrefix(other) || other.hasPrefix(one)
        }

        /// Whether "Xiaoyu" stands against "Xiao-Ming", whose first part it begins with.
        private func isInOneWord(_ other: Person) -> Bool {
            guard given.count == 1, other.given.count > 1, other.given[0].count > 1, given[0] != other.given[0] else {
                return false
            }
            return given[0].hasPrefix(other.given[0]) && !Self.agree(given[0], other.given.joined())
        }
    }

    /// The people of an `author` or `editor` field; `areAll` is false where it ends in "and others".
    static func people(_ field: String) -> (people: [Person], areAll: Bool) {
        var people: [Person] = []
        var areAll = true
        for words in names(in: field) {
            if words.count == 1, words[0].lowercased() == "others" || words[0].lowercased() == "al." {
                areAll = false
            } else if let person = person(words), !person.family.isEmpty {
                people.append(person)
            }
        }
        return (people, areAll)
    }

    /// The words of each name; braces keep words together, and a comma is a word.
    private static func names(in field: String) -> [[Substring]] {
        var names: [[Substring]] = [[]]
        let scalars = field.unicodeScalars
        var start = scalars.startIndex
        var depth = 0
        func endWord(_ end: String.Index) {
            guard start < end else { return }
            let word = field[start..<end]
            let isAnd = word.utf8.count == 3 && word.lowercased() == "and"
            if isAnd { names.append([]) } else { names[names.count - 1].append(word) }
        }
        for index in scalars.indices {
            let scalar = scalars[index]
            if scalar == "{" { depth += 1 }
            if scalar == "}" { depth = max(0, depth - 1) }
            guard depth == 0, isSpace(scalar) || scalar == "~" || scalar == "," else { continue }
            endWord(index)
            if scalar == "," { names[names.count - 1].append(",") }
            start = scalars.index(after: index)
        }
        endWord(scalars.endIndex)
        return names.filter { !$0.isEmpty }
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII ? scalar == " " || 0x09...0x0D ~= scalar.value : scalar.properties.isWhitespace
    }

    private static func person(_ words: [Substring]) -> Person? {
        let parts = words.split(separator: ",", omittingEmptySubsequences: false)
        // Last, First or Last, Jr, First.
        if parts.count > 1 {
            let suffix = parts.count > 2 ? Array(parts[1]) : []
            return Person(family: Array(parts[0]), given: parts[parts.count - 1], suffix: suffix)
        }
        guard words.count > 1 else { return Person(family: words, given: []) }
        // First von Last: the family name begins with the first word in lower case.
        let start = words.indices.dropFirst().dropLast().first { words[$0].first?.isLowercase == true }
        let family = start ?? words.count - 1
        return Person(family: Array(words[family...]), given: words[..<family])
    }
}
