/// The two ways in which Go writes text, to the byte: names in trees are quoted first and then written as JSON.
public enum GoText {
    /// Appends a name as trees hold it.
    static func appendName(_ name: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        // Most names mean nothing to either of the two.
        if name.allSatisfy({ 0x20..<0x7F ~= $0 && isPlain($0) }) {
            out.append(UInt8(ascii: "\""))
            out += name
            return out.append(UInt8(ascii: "\""))
        }
        var quoted: [UInt8] = []
        appendQuoted(name, to: &quoted)
        quoted.withUnsafeBytes { appendString($0, to: &out) }
    }

    // MARK: - strconv.Quote

    /// Appends what `strconv.Quote` makes of a name, without the outer quotes. Names need not be UTF-8.
    static func appendQuoted(_ name: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        var index = 0
        while index < name.count {
            let byte = name[index]
            if byte < 0x80 {
                appendQuoted(ascii: byte, to: &out)
                index += 1
            } else if let length = utf8Length(name, at: index) {
                let piece = UnsafeRawBufferPointer(rebasing: name[index..<index + length])
                let scalar = String(decoding: piece, as: UTF8.self).unicodeScalars.first ?? "\u{FFFD}"
                if isPrintable(scalar) {
                    out += piece
                } else if scalar.value < 0x10000 {
                    out += "\\u".utf8
                    appendHex(scalar.value, 4, to: &out)
                } else {
                    out += "\\U".utf8
                    appendHex(scalar.value, 8, to: &out)
                }
                index += length
            } else {
                out += "\\x".utf8
                appendHex(UInt32(byte), 2, to: &out)
                index += 1
            }
        }
    }

    private static func appendQuoted(ascii byte: UInt8, to out: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
        case 0x20..<0x7F: out.append(byte)
        case 0x07...0x0D: out += [UInt8(ascii: "\\"), letters[Int(byte) - 7]]
        default:
            out += "\\x".utf8
            appendHex(UInt32(byte), 2, to: &out)
        }
    }

    /// The escapes of the bytes 7 to 13.
    private static let letters = Array("abtnvfr".utf8)

    /// Go's idea: letters, marks, numbers, punctuation, symbols. Its tables and ours may be of different years; a scalar
    /// that is newer than the reader's tables is read back all the same.
    private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            false
        default: true
        }
    }

    private static func appendHex(_ value: UInt32, _ digits: Int, to out: inout [UInt8]) {
        for shift in stride(from: (digits - 1) * 4, through: 0, by: -4) {
            let nibble = UInt8(truncatingIfNeeded: value >> UInt32(shift)) & 15
            out.append(nibble < 10 ? 48 + nibble : 87 + nibble)
        }
    }

    /// What `strconv.Unquote` makes of the text between two quotes; nil where it refuses.
    static func unquoted(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            let byte = text[index]
            index += 1
            if byte == UInt8(ascii: "\"") || byte == 0x0A { return nil }
            guard byte == UInt8(ascii: "\\") else {
                out.append(byte)
                continue
            }
            guard index < text.count else { return nil }
            let escape = text[index]
            index += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(escape)
            case UInt8(ascii: "x"):
                guard let value = number(text, &index, digits: 2, base: 16) else { return nil }
                out.append(UInt8(truncatingIfNeeded: value))
            case UInt8(ascii: "u"), UInt8(ascii: "U"):
                let digits = escape == UInt8(ascii: "u") ? 4 : 8
                guard let value = number(text, &index, digits: digits, base: 16),
                    let scalar = Unicode.Scalar(value), let bytes = UTF8.encode(scalar)
                else { return nil }
                out += bytes
            case 48...55:
                index -= 1
                guard let value = number(text, &index, digits: 3, base: 8), value < 256 else { return nil }
                out.append(UInt8(truncatingIfNeeded: value))
            default:
                guard let letter = letters.firstIndex(of: escape) else { return nil }
                out.append(UInt8(letter + 7))
            }
        }
        return out
    }

    private static func number(
        _ text: UnsafeRawBufferPointer, _ index: inout Int, digits: Int, base: UInt32
    ) -> UInt32? {
        guard text.count - index >= digits else { return nil }
        var value: UInt32 = 0
        for _ in 0..<digits {
            guard let digit = hexValue(text[index]), UInt32(digit) < base else { return nil }
            // Eight digits of base 16 just fit.
            value = value &* base | UInt32(digit)
            index += 1
        }
        return value
    }

    // MARK: - encoding/json

    /// Appends UTF-8 text as a JSON string; what is not UTF-8 becomes U+FFFD.
    static func appendString(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        var start = 0
        var index = 0
        while index < text.count {
            let byte = text[index]
            var length = 1
            if byte < 0x80 {
                if isPlain(byte) {
                    index += 1
                    continue
                }
            } else if let found = utf8Length(text, at: index) {
                // U+2028 and U+2029, which end lines in JavaScript.
                let endsLine = found == 3 && byte == 0xE2 && text[index + 1] == 0x80 && text[index + 2] & 0xFE == 0xA8
                guard endsLine else {
                    index += found
                    continue
                }
                length = 3
            }
            out += UnsafeRawBufferPointer(rebasing: text[start..<index])
            appendEscape(text, index, length, to: &out)
            index += length
            start = index
        }
        out += UnsafeRawBufferPointer(rebasing: text[start...])
        out.append(UInt8(ascii: "\""))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<0x20, UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&"):
            false
        default: true
        }
    }

    private static func appendEscape(
        _ text: UnsafeRawBufferPointer, _ index: Int, _ length: Int, to out: inout [UInt8]
    ) {
        let byte = text[index]
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
        case 0x0A: out += "\\n".utf8
        case 0x0D: out += "\\r".utf8
        case 0x09: out += "\\t".utf8
        default:
            out += "\\u".utf8
            let value: UInt32 =
                length == 3 ? 0x2000 + UInt32(text[index + 2] & 0x3F) : byte < 0x80 ? UInt32(byte) : 0xFFFD
            appendHex(value, 4, to: &out)
        }
    }

    static func appendString(_ text: String, to out: inout [UInt8]) {
        var text = text
        text.withUTF8 { appendString(UnsafeRawBufferPointer($0), to: &out) }
    }

    /// Appends a document as Go would write it.
    static func append(_ json: JSON, to out: inout [UInt8]) {
        switch json {
        case .null: out += "null".utf8
        case .bool(let flag): out += (flag ? "true" : "false").utf8
        case .number(let text): out += text.utf8
        case .string(let text): appendString(text, to: &out)
        case .array(let elements):
            out.append(UInt8(ascii: "["))
            for (number, element) in elements.enumerated() {
                if number > 0 { out.append(UInt8(ascii: ",")) }
                append(element, to: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (number, member) in members.enumerated() {
                if number > 0 { out.append(UInt8(ascii: ",")) }
                appendString(member.key, to: &out)
                out.append(UInt8(ascii: ":"))
                append(member.value, to: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
    }
}
