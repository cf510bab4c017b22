/// What LaTeX writes for characters of a file's name: `M{\"u}ller{\_}2020.pdf` is "Müller_2020.pdf". Mendeley and others
/// write paths like that.
enum LaTeXText {
    /// The text without its LaTeX; what is no LaTeX stays as it is. Accented letters are composed where one letter exists.
    static func plain(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "\\")) else { return text }
        var reader = Reader(text)
        return reader.read()
    }

    /// How a single backslash is spelled.
    static let backslashes = ["{\\textbackslash{}}", "{\\textbackslash}", "\\textbackslash{}", "$\\backslash$"]

    private static let letters: [String: String] = [
        "ss": "ß", "o": "ø", "O": "Ø", "aa": "å", "AA": "Å", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "l": "ł",
        "L": "Ł", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ",
        "textasciitilde": "~", "textasciicircum": "^", "textunderscore": "_", "textbackslash": "\\",
        "textendash": "–", "textemdash": "—", "textquotesingle": "'", "textquoteright": "’", "textdollar": "$",
        "textbraceleft": "{", "textbraceright": "}", "sim": "~", "backslash": "\\", "lbrace": "{", "rbrace": "}",
    ]
    /// Signs that a backslash stands before only because LaTeX would take them for something else.
    private static let signs: Set<Unicode.Scalar> = ["_", "&", "%", "#", "$", "{", "}", " "]
    private static let accents: [Unicode.Scalar: Unicode.Scalar] = [
        "`": "\u{300}", "'": "\u{301}", "^": "\u{302}", "~": "\u{303}", "=": "\u{304}", "u": "\u{306}",
        ".": "\u{307}", "\"": "\u{308}", "r": "\u{30A}", "H": "\u{30B}", "v": "\u{30C}", "d": "\u{323}",
        "c": "\u{327}", "k": "\u{328}", "b": "\u{331}",
    ]

    /// The one letter that is canonically the same as a letter and its accent; file names mostly hold that.
    private static let composed: [String: Unicode.Scalar] = {
        var table: [String: Unicode.Scalar] = [:]
        for value in Array(UInt32(0xC0)...0x17F) + Array(0x1CD...0x233) + Array(0x1E00...0x1EF9) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            // The text's own comparison is by canonical equivalence, so it finds the pair that means the same.
            table[String(Character(scalar))] = scalar
        }
        return table
    }()

    private static func compose(_ letter: String, _ accent: Unicode.Scalar) -> String {
        var scalars = Array((letter == "ı" ? "i" : letter == "ȷ" ? "j" : letter).unicodeScalars)
        guard !scalars.isEmpty else { return letter }
        scalars.insert(accent, at: 1)
        let text = String(String.UnicodeScalarView(scalars))
        return composed[text].map { String(Character($0)) } ?? text
    }

    private struct Reader {
        private let text: [Unicode.Scalar]
        private var at = 0

        init(_ text: String) { self.text = Array(text.unicodeScalars) }

        private var next: Unicode.Scalar? { at < text.count ? text[at] : nil }

        mutating func read() -> String {
            var out = ""
            while let scalar = next {
                if scalar == "\\", let read = command() {
                    out += read
                } else if scalar == "{" || scalar == "$", let read = group(scalar) {
                    out += read
                } else {
                    out.unicodeScalars.append(scalar)
                    at += 1
                }
            }
            return out
        }

        /// `{\_}`, `$\sim$`: braces and dollars that hold a command and nothing else are LaTeX's.
        private mutating func group(_ open: Unicode.Scalar) -> String? {
            let start = at
            at += 1
            if next == "\\", let read = command(), next == (open == "{" ? "}" : "$") {
                at += 1
                return read
            }
            at = start
            return nil
        }

        /// A backslash and what belongs to it; nil, and nothing read, when it is no command that stands for text.
        private mutating func command() -> String? {
            let start = at
            at += 1
            guard let first = next else { return undo(start) }
            if LaTeXText.signs.contains(first) {
                at += 1
                return String(Character(first))
            }
            guard isLetter(first) else {
                guard let accent = LaTeXText.accents[first] else { return undo(start) }
                at += 1
                return accented(accent) ?? undo(start)
            }
            var word = ""
            while let letter = next, isLetter(letter) {
                word.unicodeScalars.append(letter)
                at += 1
            }
            if let letter = LaTeXText.letters[word] {
                if next == " " { at += 1 } else if next == "{", at + 1 < text.count, text[at + 1] == "}" { at += 2 }
                return letter
            }
            // `\c{c}`, `\v s`: an accent that is a letter takes its letter in braces or behind a space.
            guard word.unicodeScalars.count == 1, let accent = LaTeXText.accents[first], next == "{" || next == " "
            else { return undo(start) }
            return accented(accent) ?? undo(start)
        }

        /// The letter below an accent: `u`, `{u}`, `\i`, `{\i}`, or nothing (`\~{}` is a tilde).
        private mutating func accented(_ accent: Unicode.Scalar) -> String? {
            if next == " " { at += 1 }
            let isBraced = next == "{"
            if isBraced { at += 1 }
            if isBraced, next == "}" {
                at += 1
                return ["\u{303}": "~", "\u{302}": "^"][accent]
            }
            let letter: String
            if next == "\\" {
                guard let read = command() else { return nil }
                letter = read
            } else {
                guard let scalar = next, isLetter(scalar) || scalar.value >= 0x80 else { return nil }
                letter = String(Character(scalar))
                at += 1
            }
            if isBraced {
                guard next == "}" else { return nil }
                at += 1
            }
            return LaTeXText.compose(letter, accent)
        }

        private mutating func undo(_ start: Int) -> String? {
            at = start
            return nil
        }

        private func isLetter(_ scalar: Unicode.Scalar) -> Bool {
            ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
        }
    }
}
