/// Appends `text` as a JSON string. Only what must be escaped is, so that people can read it.
func appendJSONString(_ text: String, to out: inout [UInt8]) {
    var text = text
    text.withUTF8 { appendJSONString(UnsafeRawBufferPointer($0), to: &out) }
}

/// Appends UTF-8 text as a JSON string.
func appendJSONString(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    out.append(UInt8(ascii: "\""))
    appendEscaped(text, to: &out)
    out.append(UInt8(ascii: "\""))
}

/// Appends a number as text.
func appendDecimal(_ value: UInt64, to out: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { buffer in
        var rest = value
        var start = buffer.count
        repeat {
            start -= 1
            buffer[start] = UInt8(truncatingIfNeeded: 48 + rest % 10)
            rest /= 10
        } while rest > 0
        out += UnsafeRawBufferPointer(rebasing: buffer[start...])
    }
}

/// Appends a block at a time: each appending asks for room and ownership, and text has something to escape in every line.
private func appendEscaped(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    let blockBytes = 512
    // Every byte may become six, and the last copy of eight may reach beyond what counts.
    withUnsafeTemporaryAllocation(byteCount: blockBytes * 6 + 8, alignment: 8) { buffer in
        var start = 0
        while start < text.count {
            let end = min(start + blockBytes, text.count)
            let length = copyEscaped(UnsafeRawBufferPointer(rebasing: text[start..<end]), into: buffer)
            out += UnsafeRawBufferPointer(rebasing: buffer[..<length])
            start = end
        }
    }
}

/// The high bit of each of eight bytes that cannot stand in a string as it is; wrong only above the first of them, because
/// of the borrow.
@inline(__always) func jsonSpecial(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & (ones << 7) }
    let controls = (word &- ones &* 0x20) & ~word & (ones << 7)
    return controls | zeros(word ^ ones &* UInt64(UInt8(ascii: "\"")))
        | zeros(word ^ ones &* UInt64(UInt8(ascii: "\\")))
}

/// Eight bytes at a time, since most can stand in a string as they are. Every byte may become six, and the last copy of
/// eight may reach beyond what counts: `buffer` MUST have room for that.
func copyEscaped(_ text: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var (index, length) = (0, 0)
    while text.count - index >= 8 {
        let word = UInt64(littleEndian: text.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let found = jsonSpecial(word)
        buffer.storeBytes(of: word.littleEndian, toByteOffset: length, as: UInt64.self)
        guard found != 0 else {
            (index, length) = (index + 8, length + 8)
            continue
        }
        let plain = found.trailingZeroBitCount / 8
        length += plain
        length += escape(text[index + plain], into: buffer, at: length)
        index += plain + 1
    }
    while index < text.count {
        let byte = text[index]
        if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            length += escape(byte, into: buffer, at: length)
        } else {
            buffer[length] = byte
            length += 1
        }
        index += 1
    }
    return length
}

/// At most six bytes.
private func escape(_ byte: UInt8, into buffer: UnsafeMutableRawBufferPointer, at index: Int) -> Int {
    let short: UInt8? =
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): byte
        case 0x08: UInt8(ascii: "b")
        case 0x0C: UInt8(ascii: "f")
        case 0x0A: UInt8(ascii: "n")
        case 0x0D: UInt8(ascii: "r")
        case 0x09: UInt8(ascii: "t")
        default: nil
        }
    buffer[index] = UInt8(ascii: "\\")
    if let short {
        buffer[index + 1] = short
        return 2
    }
    buffer[index + 1] = UInt8(ascii: "u")
    buffer[index + 2] = UInt8(ascii: "0")
    buffer[index + 3] = UInt8(ascii: "0")
    buffer[index + 4] = lowerHex(byte >> 4)
    buffer[index + 5] = lowerHex(byte & 15)
    return 6
}

private func lowerHex(_ nibble: UInt8) -> UInt8 { nibble < 10 ? 48 + nibble : 87 + nibble }

/// The text between the quotes of a scanned JSON string, escapes resolved. Half a surrogate pair has no meaning as
/// text and becomes U+FFFD.
func jsonUnescape(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> String {
    let body = UnsafeRawBufferPointer(rebasing: bytes[range])
    guard body.contains(UInt8(ascii: "\\")) else { return String(decoding: body, as: UTF8.self) }
    var out: [UInt8] = []
    out.reserveCapacity(body.count)
    unescape(body, to: &out) { _, out in out += UTF8.encodedReplacementCharacter }
    return String(decoding: out, as: UTF8.self)
}

/// Appends what the escapes in `body` stand for; `half` is called with each half of a surrogate pair that stands alone.
private func unescape(
    _ body: UnsafeRawBufferPointer, to out: inout [UInt8], half: (UInt16, inout [UInt8]) -> Void
) {
    var index = 0
    while index < body.count {
        guard body[index] == UInt8(ascii: "\\"), index + 1 < body.count else {
            let start = index
            repeat { index += 1 } while index < body.count && body[index] != UInt8(ascii: "\\")
            out += UnsafeRawBufferPointer(rebasing: body[start..<index])
            continue
        }
        let escape = body[index + 1]
        index += 2
        switch escape {
        case UInt8(ascii: "b"): out.append(0x08)
        case UInt8(ascii: "f"): out.append(0x0C)
        case UInt8(ascii: "n"): out.append(0x0A)
        case UInt8(ascii: "r"): out.append(0x0D)
        case UInt8(ascii: "t"): out.append(0x09)
        case UInt8(ascii: "u"):
            let unit = hexUnit(body, at: index) ?? 0xD800
            if let (scalar, length) = escapedScalar(unit, body, at: index) {
                out += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
                index += length
            } else {
                half(unit, &out)
                index += min(4, body.count - index)
            }
        default: out.append(escape)
        }
    }
}

/// The scalar behind `\u`, which may take a second `\uXXXX`, and how many bytes it took; nil for half a pair.
private func escapedScalar(_ unit: UInt16, _ body: UnsafeRawBufferPointer, at index: Int) -> (Unicode.Scalar, Int)? {
    if let scalar = Unicode.Scalar(unit) { return (scalar, 4) }
    guard unit < 0xDC00, body.count - index >= 10, body[index + 4] == UInt8(ascii: "\\"),
        body[index + 5] == UInt8(ascii: "u"), let low = hexUnit(body, at: index + 6), 0xDC00...0xDFFF ~= low,
        let scalar = Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00))
    else { return nil }
    return (scalar, 10)
}

/// The canonical form that digests are made of: members sorted by the bytes of their names, no white space, strings
/// escaped as we escape them (half a surrogate pair stays `\udxxx`), numbers as they were written. Equal content gives equal bytes, whoever wrote it.
public enum CanonicalJSON {
    /// Appends the canonical form of one value. The caller guarantees nothing: broken text throws.
    public static func append(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) throws {
        var scanner = JSONScanner(bytes)
        scanner.skipSpace()
        try append(&scanner, bytes, to: &out)
        try scanner.expectEnd()
    }

    private static func append(
        _ scanner: inout JSONScanner, _ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]
    ) throws {
        switch scanner.current {
        case UInt8(ascii: "{"): try appendObject(&scanner, bytes, to: &out)
        case UInt8(ascii: "["):
            var separator = UInt8(ascii: "[")
            try scanner.readElements { scanner in
                scanner.skipSpace()
                out.append(separator)
                separator = UInt8(ascii: ",")
                try append(&scanner, bytes, to: &out)
            }
            if separator == UInt8(ascii: "[") { out.append(separator) }
            out.append(UInt8(ascii: "]"))
        default:
            let (kind, range) = try scanner.value()
            if kind == .string {
                appendString(bytes, range.lowerBound + 1..<range.upperBound - 1, to: &out)
            } else {
                out += UnsafeRawBufferPointer(rebasing: bytes[range])
            }
        }
    }

    private struct Member {
        let key: Range<Int>
        let value: Range<Int>
        /// Canonical already.
        let isPlain: Bool
    }

    private static func appendObject(
        _ scanner: inout JSONScanner, _ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]
    ) throws {
        var members: [Member] = []
        members.reserveCapacity(16)
        var isSorted = true
        var isEscaped = false
        try scanner.readMembers { scanner, key in
            scanner.skipSpace()
            let start = scanner.position
            let isPlain = try isPlain(&scanner, bytes)
            if let last = members.last?.key, precedes(bytes, key, last) { isSorted = false }
            isEscaped = isEscaped || bytes[key].contains(UInt8(ascii: "\\"))
            members.append(Member(key: key, value: start..<scanner.position, isPlain: isPlain))
        }
        if isEscaped {
            // It is the names behind the escapes that are sorted.
            let named = members.map { (name: jsonUnescape(bytes, $0.key), member: $0) }
            members = named.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }.map(\.member)
        } else if !isSorted {
            members.sort { precedes(bytes, $0.key, $1.key) }
        }
        out.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            if isEscaped {
                appendString(bytes, member.key, to: &out)
            } else {
                out += UnsafeRawBufferPointer(rebasing: bytes[member.key.lowerBound - 1..<member.key.upperBound + 1])
            }
            out.append(UInt8(ascii: ":"))
            let value = UnsafeRawBufferPointer(rebasing: bytes[member.value])
            if member.isPlain { out += value } else { try append(value, to: &out) }
        }
        out.append(UInt8(ascii: "}"))
    }

    /// Steps over one value and tells whether it is canonical already, which most are; false says nothing.
    private static func isPlain(_ scanner: inout JSONScanner, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
        let wasTight = scanner.isTight
        scanner.isTight = true
        defer { scanner.isTight = scanner.isTight && wasTight }
        let isSorted = try isSorted(&scanner, bytes)
        return isSorted && scanner.isTight
    }

    /// Steps over one value and tells whether all members of objects in it stand in order.
    private static func isSorted(_ scanner: inout JSONScanner, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
        var isSorted = true
        switch scanner.current {
        case UInt8(ascii: "{"):
            var last: Range<Int>?
            try scanner.readMembers { scanner, key in
                if let last, precedes(bytes, key, last) { isSorted = false }
                // Whether the names behind escapes are in order is not plain to see.
                if bytes[key].contains(UInt8(ascii: "\\")) { isSorted = false }
                last = key
                if try !Self.isSorted(&scanner, bytes) { isSorted = false }
            }
        case UInt8(ascii: "["):
            try scanner.readElements { if try !Self.isSorted(&$0, bytes) { isSorted = false } }
        default: _ = try scanner.value()
        }
        return isSorted
    }

    private static func precedes(_ bytes: UnsafeRawBufferPointer, _ left: Range<Int>, _ right: Range<Int>) -> Bool {
        for offset in 0..<min(left.count, right.count) {
            let (one, two) = (bytes[left.lowerBound + offset], bytes[right.lowerBound + offset])
            if one != two { return one < two }
        }
        return left.count < right.count
    }

    private static func appendString(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, to out: inout [UInt8]) {
        let quoted = UnsafeRawBufferPointer(rebasing: bytes[range.lowerBound - 1..<range.upperBound + 1])
        var scanner = JSONScanner(quoted)
        if (try? scanner.value()) != nil, scanner.isTight {
            out += quoted
            return
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes[range])
        var text: [UInt8] = []
        out.append(UInt8(ascii: "\""))
        unescape(body, to: &text) { unit, text in
            text.withUnsafeBytes { appendEscaped($0, to: &out) }
            text.removeAll()
            let digits = stride(from: 12, through: 0, by: -4).map {
                lowerHex(UInt8(truncatingIfNeeded: unit >> $0) & 15)
            }
            out += "\\u".utf8
            out += digits
        }
        text.withUnsafeBytes { appendEscaped($0, to: &out) }
        out.append(UInt8(ascii: "\""))
    }
}

extension UnsafeRawBufferPointer {
    /// A text without the mark of UTF-8 that some editors and apps write before it. JSON of our own has none.
    var withoutByteOrderMark: UnsafeRawBufferPointer {
        starts(with: [0xEF, 0xBB, 0xBF]) ? UnsafeRawBufferPointer(rebasing: dropFirst(3)) : self
    }
}
