/// The strings of TOML, in one line or several, with escapes or as they stand.
extension TOMLReader {
    mutating func readString() throws(TOMLMistake) -> String {
        let start = offset
        guard let quote = peek() else { throw problem("expected a string", at: start) }
        let isLiteral = quote == UInt8(ascii: "'")
        let isLong = peek(1) == quote && peek(2) == quote
        offset += isLong ? 3 : 1
        if isLong {
            isOpen = true
            _ = takeNewline()
        }
        var out: [UInt8] = []
        // Of a long one the rest is read all the same: its lines are no statements.
        var mistake: TOMLMistake?
        while let byte = peek() {
            if byte == quote {
                if !isLong {
                    offset += 1
                    return String(decoding: out, as: UTF8.self)
                }
                if closesLongString(quote, &out) {
                    if let mistake { throw mistake }
                    return String(decoding: out, as: UTF8.self)
                }
            } else if byte == UInt8(ascii: "\\"), !isLiteral {
                do { try readEscape(isLong: isLong, into: &out) } catch {
                    guard isLong else { throw error }
                    mistake = mistake ?? error
                }
            } else if isLong, takeNewline() {
                out.append(UInt8(ascii: "\n"))
            } else if byte == 0x7F || byte < 0x20 && byte != UInt8(ascii: "\t") {
                if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { break }
                throw problem("a control character in a string must be written as an escape", at: offset)
            } else {
                out.append(byte)
                offset += 1
            }
        }
        throw problem("this string has no end", at: start)
    }

    /// Three quotes end the string, and up to two before them belong to it.
    private mutating func closesLongString(_ quote: UInt8, _ out: inout [UInt8]) -> Bool {
        var count = 0
        while count < 5, peek(count) == quote { count += 1 }
        offset += count
        out.append(contentsOf: repeatElement(quote, count: count < 3 ? count : count - 3))
        return count >= 3
    }

    private mutating func readEscape(isLong: Bool, into out: inout [UInt8]) throws(TOMLMistake) {
        let start = offset
        offset += 1
        let letter = peek() ?? 0
        if let plain = Self.escapes[letter] {
            offset += 1
            out.append(plain)
        } else if letter == UInt8(ascii: "u") || letter == UInt8(ascii: "U") {
            offset += 1
            var value: UInt32 = 0
            for _ in 0..<(letter == UInt8(ascii: "u") ? 4 : 8) {
                guard let digit = peek().flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else {
                    throw problem("this escape needs more hexadecimal digits", at: start)
                }
                // At most eight digits of four bits each.
                value = value << 4 | UInt32(truncatingIfNeeded: digit)
                offset += 1
            }
            guard let scalar = Unicode.Scalar(value) else { throw problem("no such character", at: start) }
            out.append(contentsOf: String(scalar).utf8)
        } else if isLong, skipBlanks(), takeNewline() {
            // A backslash at the end of a line removes all white space up to the next text.
            repeat { skipBlanks() } while takeNewline()
        } else {
            throw problem("unknown escape; a backslash is written '\\\\' or the text put in '…'", at: start)
        }
    }

    private static let escapes: [UInt8: UInt8] = [
        UInt8(ascii: "b"): 0x08, UInt8(ascii: "t"): 0x09, UInt8(ascii: "n"): 0x0A, UInt8(ascii: "f"): 0x0C,
        UInt8(ascii: "r"): 0x0D, UInt8(ascii: "\""): 0x22, UInt8(ascii: "\\"): 0x5C,
    ]
}
