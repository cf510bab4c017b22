/// Reads JSON text strictly (RFC 8259) over a raw buffer: grammar, UTF-8 and depth are checked, nothing is copied.
/// Values are found, not built; `JSON` builds them where a small document is wanted as a whole.
public struct JSONScanner {
    /// Deeper nesting than this is refused: nobody writes it by hand, and readers after us may recurse.
    public static let maximumDepth = 128
    /// For what comes from outside as one record: it is written inside of others, such as a line of a backup.
    static let maximumDepthOfRecord = 100

    public enum Kind: Sendable { case object, array, string, number, bool, null }

    let bytes: UnsafeRawBufferPointer
    private(set) var position = 0
    private var depth = 0
    private let depthLimit: Int
    /// Whether there was neither white space nor an escape that we would not write ourselves.
    var isTight = true

    public init(_ bytes: UnsafeRawBufferPointer) { self.init(bytes, depth: Self.maximumDepth) }

    init(_ bytes: UnsafeRawBufferPointer, depth: Int) {
        self.bytes = bytes
        depthLimit = depth
    }

    /// A mistake in the text, with the byte it was found at.
    public func problem(_ what: String) -> BackupError {
        BackupError(.damaged, "is not JSON: \(what) at byte \(position)")
    }

    /// What the next value begins with, where no white space is before it.
    @inline(__always) var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipSpace() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            position += 1
            isTight = false
        }
    }

    private mutating func expect(_ byte: UInt8) throws {
        guard current == byte else { throw unexpected("'\(Character(Unicode.Scalar(byte)))'") }
        position += 1
    }

    private func unexpected(_ wanted: String) -> BackupError {
        guard let byte = current else { return problem("the text ends where \(wanted) should be") }
        let shown = byte > 0x20 && byte < 0x7F ? "'\(Character(Unicode.Scalar(byte)))'" : "byte \(byte)"
        return problem("\(wanted) expected, \(shown) found")
    }

    /// Only white space may be left.
    public mutating func expectEnd() throws {
        skipSpace()
        if position < bytes.count { throw unexpected("the end") }
    }

    /// Steps over one value of any kind and returns what it is and where.
    public mutating func value() throws -> (kind: Kind, range: Range<Int>) {
        skipSpace()
        let start = position
        let kind: Kind
        guard let first = current else { throw unexpected("a value") }
        switch first {
        case UInt8(ascii: "{"):
            kind = .object
            try forEachMember { _, _, _ in }
        case UInt8(ascii: "["):
            kind = .array
            try forEachElement { _, _ in }
        case UInt8(ascii: "\""):
            kind = .string
            _ = try string()
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            kind = .number
            try number()
        case UInt8(ascii: "t"):
            kind = .bool
            try literal("true")
        case UInt8(ascii: "f"):
            kind = .bool
            try literal("false")
        case UInt8(ascii: "n"):
            kind = .null
            try literal("null")
        default: throw unexpected("a value")
        }
        return (kind, start..<position)
    }

    /// Steps over an object; `body` gets the range of each key (without quotes), and the kind and range of its value.
    public mutating func forEachMember(_ body: (_ key: Range<Int>, Kind, _ value: Range<Int>) throws -> Void) throws {
        skipSpace()
        try expect(UInt8(ascii: "{"))
        try enter()
        skipSpace()
        if current == UInt8(ascii: "}") {
            position += 1
        } else {
            while true {
                skipSpace()
                let key = try string()
                skipSpace()
                try expect(UInt8(ascii: ":"))
                let member = try value()
                try body(key, member.kind, member.range)
                if try !another(closing: UInt8(ascii: "}")) { break }
            }
        }
        depth -= 1
    }

    public mutating func forEachElement(_ body: (Kind, Range<Int>) throws -> Void) throws {
        skipSpace()
        try expect(UInt8(ascii: "["))
        try enter()
        skipSpace()
        if current == UInt8(ascii: "]") {
            position += 1
        } else {
            while true {
                let element = try value()
                try body(element.kind, element.range)
                if try !another(closing: UInt8(ascii: "]")) { break }
            }
        }
        depth -= 1
    }

    /// Like `forEachMember`, but `body` reads the value itself, exactly that and with this scanner: what is large is then
    /// looked at once.
    mutating func readMembers(_ body: (inout JSONScanner, _ key: Range<Int>) throws -> Void) throws {
        skipSpace()
        try expect(UInt8(ascii: "{"))
        try enter()
        skipSpace()
        if current == UInt8(ascii: "}") {
            position += 1
        } else {
            repeat {
                skipSpace()
                let key = try string()
                skipSpace()
                try expect(UInt8(ascii: ":"))
                try body(&self, key)
            } while try another(closing: UInt8(ascii: "}"))
        }
        depth -= 1
    }

    /// Like `forEachElement`, but `body` reads the element itself.
    mutating func readElements(_ body: (inout JSONScanner) throws -> Void) throws {
        skipSpace()
        try expect(UInt8(ascii: "["))
        try enter()
        skipSpace()
        if current == UInt8(ascii: "]") {
            position += 1
        } else {
            repeat { try body(&self) } while try another(closing: UInt8(ascii: "]"))
        }
        depth -= 1
    }

    /// The string of that name in the object, which is read no further than there; nil where there is none.
    static func firstString(named name: String, in bytes: UnsafeRawBufferPointer) throws -> String? {
        var scanner = JSONScanner(bytes)
        scanner.skipSpace()
        try scanner.expect(UInt8(ascii: "{"))
        scanner.skipSpace()
        if scanner.current == UInt8(ascii: "}") { return nil }
        repeat {
            scanner.skipSpace()
            let key = try scanner.string()
            scanner.skipSpace()
            try scanner.expect(UInt8(ascii: ":"))
            let (kind, range) = try scanner.value()
            guard kind == .string, isName(bytes, key, name) else { continue }
            return jsonUnescape(bytes, range.dropFirst().dropLast())
        } while try scanner.another(closing: UInt8(ascii: "}"))
        return nil
    }

    /// Whether the text of a name, which may be written with escapes, is `name`.
    @inline(__always)
    static func isName(_ bytes: UnsafeRawBufferPointer, _ key: Range<Int>, _ name: String) -> Bool {
        if key.count == name.utf8.count { return bytes[key].elementsEqual(name.utf8) }
        return key.count > name.utf8.count && bytes[key].contains(UInt8(ascii: "\\"))
            && sameBytes(jsonUnescape(bytes, key), name)
    }

    private mutating func enter() throws {
        depth += 1
        if depth > depthLimit { throw problem("nested more than \(depthLimit) deep") }
    }

    private mutating func another(closing: UInt8) throws -> Bool {
        skipSpace()
        if current == UInt8(ascii: ",") {
            position += 1
            return true
        }
        guard current == closing else { throw unexpected("',' or '\(Character(Unicode.Scalar(closing)))'") }
        position += 1
        return false
    }

    /// Steps over a string and returns the range between its quotes, escapes still in it.
    private mutating func string() throws -> Range<Int> {
        try expect(UInt8(ascii: "\""))
        let start = position
        while true {
            // Most of a text is this: a loop over a local runs several times as fast as one over `position`.
            var index = position
            while bytes.count - index >= 8 {
                let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                let special = jsonSpecial(word) | word & 0x8080_8080_8080_8080
                guard special == 0 else {
                    index += special.trailingZeroBitCount / 8
                    break
                }
                index += 8
            }
            while index < bytes.count, Self.isPlain(bytes[index]) { index += 1 }
            position = index
            guard let byte = current else { break }
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return start..<position - 1
            case UInt8(ascii: "\\"):
                try escape()
            case 0..<0x20:
                throw problem("a control character inside a string")
            default:
                guard let length = utf8Length(bytes, at: position) else { throw problem("a byte that is not UTF-8") }
                position += length
            }
        }
        throw problem("a string is never closed")
    }

    @inline(__always) private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte < 0x80 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private mutating func escape() throws {
        position += 1
        switch current {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
            UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        case UInt8(ascii: "/"):
            isTight = false
            position += 1
        case UInt8(ascii: "u"):
            isTight = false
            guard hexUnit(bytes, at: position + 1) != nil else { throw problem("\\u without four hexadecimal digits") }
            position += 5
        default: throw unexpected("an escape")
        }
    }

    private mutating func number() throws {
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") { position += 1 } else { try digits() }
        if current == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
    }

    private mutating func digits() throws {
        let start = position
        while let byte = current, byte >= 48, byte <= 57 { position += 1 }
        if position == start { throw unexpected("a digit") }
    }

    private mutating func literal(_ text: StaticString) throws {
        let end = position + text.utf8CodeUnitCount
        let matches =
            end <= bytes.count
            && zip(bytes[position..<end], UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
                .allSatisfy(==)
        guard matches else { throw problem("'\(text)' is misspelt") }
        position = end
    }
}

/// The length of the well-formed UTF-8 sequence at `index` (Unicode 15, table 3-7), or nil.
func utf8Length(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int? {
    let lead = bytes[index]
    let length: Int
    var second: ClosedRange<UInt8> = 0x80...0xBF
    switch lead {
    case 0..<0x80: return 1
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, second) = (3, 0xA0...0xBF)
    case 0xED: (length, second) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, second) = (4, 0x90...0xBF)
    case 0xF4: (length, second) = (4, 0x80...0x8F)
    case 0xF1...0xF3: length = 4
    default: return nil
    }
    guard bytes.count - index >= length, second.contains(bytes[index + 1]) else { return nil }
    for offset in 2..<max(length, 2) where bytes[index + offset] & 0xC0 != 0x80 { return nil }
    return length
}

/// The UTF-16 unit written as four hexadecimal digits at `index`, or nil.
func hexUnit(_ bytes: UnsafeRawBufferPointer, at index: Int) -> UInt16? {
    guard bytes.count - index >= 4 else { return nil }
    var unit: UInt16 = 0
    for offset in 0..<4 {
        guard let digit = hexValue(bytes[index + offset]) else { return nil }
        unit = unit << 4 | UInt16(digit)
    }
    return unit
}

func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 48...57: digit - 48
    case 97...102: digit - 87
    case 65...70: digit - 55
    default: nil
    }
}
