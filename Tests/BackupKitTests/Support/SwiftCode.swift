/// Just enough understanding of Swift's surface to ask what a source file imports, declares and names: words with
/// comments and the text of string literals taken out. Code within `\(…)` stays.
struct SwiftCode {
    struct Word {
        let text: String
        let line: Int
        let followsDot: Bool
        /// The character right after it.
        let next: Unicode.Scalar?
        /// How many braces are open around it.
        let depth: Int
        /// Where it begins in `bytes`.
        let start: Int
    }

    let lineCount: Int
    let words: [Word]
    private let bytes: [UInt8]

    init(_ text: String) {
        bytes = Self.withoutText(Array(text.utf8))
        lineCount = text.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: "\n") ? 1 : 0) }
        words = Self.words(in: bytes)
    }

    func imports() -> [Word] {
        zip(words, words.dropFirst()).filter { $0.0.text == "import" && $0.0.depth == 0 }.map(\.1)
    }

    /// Types with a name of their own; shared ones can be named in other files.
    func declaredTypes() -> [(name: String, isShared: Bool)] {
        let keywords: Set = ["struct", "class", "enum", "protocol", "actor", "typealias"]
        var found: [(String, Bool)] = []
        for index in words.indices.dropLast() where keywords.contains(words[index].text) && !words[index].followsDot {
            let word = words[index]
            // `class func`, and protocols constrained to `class`.
            guard words[index + 1].text.unicodeScalars.first.map({ ("A"..."Z").contains($0) }) == true else { continue }
            let isPrivate = words[..<index].suffix(3).contains {
                $0.line == word.line && ["private", "fileprivate"].contains($0.text)
            }
            found.append((words[index + 1].text, word.depth == 0 && !isPrivate))
        }
        return found
    }

    /// Lines on which something is unwrapped or cast by force, or a type is declared that does it silently.
    func forcedUnwraps() -> [Int] {
        var found: [Int] = []
        var line = 1
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: "\n") { line += 1 }
            guard byte == UInt8(ascii: "!"), index > 0 else { continue }
            let before = bytes[index - 1]
            let isPostfix =
                Self.isWord(before) || [UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "\"")].contains(before)
            let isUnequal = index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "=")
            if isPostfix && !isUnequal { found.append(line) }
        }
        return found
    }

    /// Functions and initializers that have a body, with the number of lines from the first word to the last brace.
    func functions() -> [(name: String, line: Int, lines: Int)] {
        var found: [(String, Int, Int)] = []
        for (index, word) in words.enumerated() where ["func", "init", "subscript"].contains(word.text) {
            if word.followsDot
                || word.text == "init"
                    && ![UInt8(ascii: "("), UInt8(ascii: "?"), UInt8(ascii: "<")].contains(byte(after: word))
            {
                continue
            }
            // Where the next declaration begins, this one had no body.
            let end = words[(index + 1)...].first {
                $0.depth == word.depth && ["func", "init", "var", "let", "subscript"].contains($0.text)
            }
            guard let open = bodyStart(from: word.start, before: end?.start ?? bytes.count) else { continue }
            var depth = 0
            var lines = 1
            for (offset, byte) in bytes[word.start...].enumerated() {
                if byte == UInt8(ascii: "\n") { lines += 1 }
                guard word.start + offset >= open else { continue }
                if byte == UInt8(ascii: "{") { depth += 1 }
                if byte == UInt8(ascii: "}") { depth -= 1 }
                if depth == 0 { break }
            }
            let name = word.text == "func" && index + 1 < words.count ? words[index + 1].text : word.text
            found.append((name, word.line, lines))
        }
        return found
    }

    private func byte(after word: Word) -> UInt8 {
        let end = word.start + word.text.utf8.count
        return end < bytes.count ? bytes[end] : 0
    }

    /// The first brace outside of parentheses (a default argument may be a closure), if it comes in time.
    private func bodyStart(from start: Int, before end: Int) -> Int? {
        var parentheses = 0
        for index in start..<max(start, end) {
            switch bytes[index] {
            case UInt8(ascii: "("): parentheses += 1
            case UInt8(ascii: ")"): parentheses -= 1
            case UInt8(ascii: "{") where parentheses == 0: return index
            case UInt8(ascii: "}") where parentheses == 0: return nil
            default: break
            }
        }
        return nil
    }

    private static func words(in bytes: [UInt8]) -> [Word] {
        var words: [Word] = []
        var (index, line, depth) = (0, 1, 0)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\n"): line += 1
            case UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "}"): depth -= 1
            case let byte where isWord(byte):
                let start = index
                while index < bytes.count, isWord(bytes[index]) { index += 1 }
                words.append(
                    Word(
                        text: String(decoding: bytes[start..<index], as: UTF8.self), line: line,
                        followsDot: start > 0 && bytes[start - 1] == UInt8(ascii: "."),
                        next: index < bytes.count ? Unicode.Scalar(bytes[index]) : nil, depth: depth, start: start))
                continue
            default: break
            }
            index += 1
        }
        return words
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), 0x80...: true
        default: false
        }
    }
}

// MARK: - Comments and string literals

extension SwiftCode {
    private enum Frame {
        /// How many parentheses are open since the interpolation began.
        case code(parentheses: Int)
        case text(hashes: Int, quotes: Int)
    }

    /// The code without comments; string literals become `""` and their line ends stay, so that lines can be counted.
    private static func withoutText(_ source: [UInt8]) -> [UInt8] {
        var code: [UInt8] = []
        var frames = [Frame.code(parentheses: 0)]
        var index = 0
        func matches(_ text: String, at place: Int) -> Bool {
            source[min(place, source.count)...].starts(with: text.utf8)
        }

        while index < source.count {
            let byte = source[index]
            switch frames.last {
            case .text(let hashes, let quotes):
                guard [UInt8(ascii: "\\"), UInt8(ascii: "\"")].contains(byte) else {
                    if byte == UInt8(ascii: "\n") { code.append(byte) }
                    index += 1
                    continue
                }
                let mark = String(repeating: "#", count: hashes)
                let end = String(repeating: "\"", count: quotes) + mark
                if byte == UInt8(ascii: "\\"), matches("\\" + mark + "(", at: index) {
                    frames.append(.code(parentheses: 1))
                    code += " (".utf8
                    index += hashes + 2
                    continue
                }
                if byte == UInt8(ascii: "\""), matches(end, at: index) {
                    frames.removeLast()
                    code += "\"\"".utf8
                    index += end.utf8.count
                    continue
                }
                // What is escaped ends nothing; a line end may be escaped too.
                if byte == UInt8(ascii: "\\"), matches("\\" + mark, at: index) { index += hashes + 1 }
                if index < source.count, source[index] == UInt8(ascii: "\n") { code.append(source[index]) }
                index += 1
            default:
                if byte == UInt8(ascii: "/"), matches("//", at: index) {
                    while index < source.count, source[index] != UInt8(ascii: "\n") { index += 1 }
                } else if byte == UInt8(ascii: "/"), matches("/*", at: index) {
                    index = skipComment(source, index, &code)
                } else if let text = textStart(source, index) {
                    frames.append(.text(hashes: text.hashes, quotes: text.quotes))
                    index += text.hashes + text.quotes
                } else {
                    copy(byte, &frames, &code)
                    index += 1
                }
            }
        }
        return code
    }

    private static func copy(_ byte: UInt8, _ frames: inout [Frame], _ code: inout [UInt8]) {
        code.append(byte)
        guard case .code(var parentheses) = frames.removeLast() else { return }
        if byte == UInt8(ascii: "(") { parentheses += 1 }
        if byte == UInt8(ascii: ")") { parentheses -= 1 }
        // The outermost code never ends, whatever its parentheses do.
        if parentheses > 0 || frames.isEmpty { frames.append(.code(parentheses: frames.isEmpty ? 0 : parentheses)) }
        if parentheses == 0 && !frames.isEmpty, case .text = frames.last { code.append(UInt8(ascii: " ")) }
    }

    private static func skipComment(_ source: [UInt8], _ start: Int, _ code: inout [UInt8]) -> Int {
        var (index, depth) = (start, 0)
        repeat {
            let pair = source[index..<min(index + 2, source.count)]
            if pair.elementsEqual("/*".utf8) {
                depth += 1
                index += 2
            } else if pair.elementsEqual("*/".utf8) {
                depth -= 1
                index += 2
            } else {
                if source[index] == UInt8(ascii: "\n") { code.append(source[index]) }
                index += 1
            }
        } while depth > 0 && index < source.count
        return index
    }

    private static func textStart(_ source: [UInt8], _ start: Int) -> (hashes: Int, quotes: Int)? {
        guard source[start] == UInt8(ascii: "\"") || source[start] == UInt8(ascii: "#") else { return nil }
        var index = start
        while index < source.count, source[index] == UInt8(ascii: "#") { index += 1 }
        guard index < source.count, source[index] == UInt8(ascii: "\"") else { return nil }
        return (index - start, source[index...].starts(with: "\"\"\"".utf8) ? 3 : 1)
    }
}
