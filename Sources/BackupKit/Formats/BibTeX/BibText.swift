/// Bytes of a BibTeX file as text. Files are UTF-8 or, when old, Windows-1252 (of which Latin-1 is a part).
public enum BibText {
    /// UTF-8 where it is valid, else Windows-1252 byte for byte; its five unused bytes become the C1 controls of Latin-1.
    public static func decode(_ bytes: UnsafeRawBufferPointer) -> (text: String, wasUTF8: Bool) {
        if let text = String(utf8: bytes) { return (text, true) }
        var scalars = String.UnicodeScalarView()
        for byte in bytes { scalars.append(windows1252(byte)) }
        return (String(scalars), false)
    }

    public static func decode(_ bytes: [UInt8]) -> (text: String, wasUTF8: Bool) {
        bytes.withUnsafeBytes { decode($0) }
    }

    /// `text` as bytes that fit an entry which is not UTF-8: Windows-1252, unless that cannot say it or would read back differently.
    static func encode(_ text: String, asUTF8: Bool) -> [UInt8] {
        let utf8 = Array(text.utf8)
        if asUTF8 { return utf8 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = windows1252(scalar) else { return utf8 }
            bytes.append(byte)
        }
        return decode(bytes).text.utf8.elementsEqual(utf8) ? bytes : utf8
    }

    static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if isASCII(bytes) { return true }
        var index = 0
        while index < bytes.count {
            guard let length = utf8Length(bytes, at: index) else { return false }
            index += length
        }
        return true
    }

    static func sameIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ text: String) -> Bool {
        let other = text.utf8
        guard other.count == bytes.count else { return false }
        return zip(bytes, other).allSatisfy { lowercase($0) == lowercase($1) }
    }

    static func sameIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        guard bytes.count == word.utf8CodeUnitCount else { return false }
        for index in 0..<bytes.count where lowercase(bytes[index]) != word.utf8Start[index] { return false }
        return true
    }

    static func lowercased(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: decode(bytes).text.utf8.map(lowercase), as: UTF8.self)
    }

    @inline(__always) static func lowercase(_ byte: UInt8) -> UInt8 {
        byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
    }

    private static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
        guard byte >= 0x80, byte < 0xA0 else { return Unicode.Scalar(byte) }
        return Unicode.Scalar(upperHalf[Int(byte) - 0x80]) ?? Unicode.Scalar(byte)
    }

    private static func windows1252(_ scalar: Unicode.Scalar) -> UInt8? {
        switch scalar.value {
        case 0..<0x80, 0xA0..<0x100: return UInt8(scalar.value)
        default: return upperHalf.firstIndex { UInt32($0) == scalar.value }.map { UInt8($0 + 0x80) }
        }
    }

    /// Windows-1252, bytes 0x80 to 0x9F.
    private static let upperHalf: [UInt16] = [
        0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x008D, 0x017D, 0x008F,
        0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
    ]
}

/// The bytes that mean something in BibTeX.
enum BibByte {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote: UInt8 = 0x22
    static let hash: UInt8 = 0x23
    static let percent: UInt8 = 0x25
    static let openParenthesis: UInt8 = 0x28
    static let closeParenthesis: UInt8 = 0x29
    static let comma: UInt8 = 0x2C
    static let equals: UInt8 = 0x3D
    static let at: UInt8 = 0x40
    static let openBrace: UInt8 = 0x7B
    static let closeBrace: UInt8 = 0x7D
    static let backslash: UInt8 = 0x5C

    @inline(__always) static func isBreak(_ byte: UInt8) -> Bool { byte == lineFeed || byte == carriageReturn }
    @inline(__always) static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }
    /// Space, tab, line feed, vertical tab, form feed, carriage return.
    @inline(__always) static func isWhite(_ byte: UInt8) -> Bool { byte == space || (byte >= 0x09 && byte <= 0x0D) }
    @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
    @inline(__always) static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A }

    /// What types, field names and macros are made of: all but white space, controls and BibTeX's own signs.
    @inline(__always) static func isName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, quote, hash, percent, openParenthesis, closeParenthesis, comma, equals, at, openBrace,
            closeBrace, 0x7F:
            false
        default:
            true
        }
    }
}
