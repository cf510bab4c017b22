/// The little of Apple's binary property lists that BibDesk's file links need. Objects are looked up one by one, never
/// followed in a loop or a recursion, so no bytes can make it run away.
struct BibBinaryPlist {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    private let tableStart: Int
    let top: Int

    /// File links are a few kilobytes (with a bookmark); more than this is none.
    static let largest = 1 << 20

    /// "bplist00", objects, a table of their offsets, and a trailer of 32 bytes.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 40, bytes.count <= Self.largest, bytes.starts(with: Array("bplist0".utf8)) else {
            return nil
        }
        self.bytes = bytes
        let trailer = bytes.count - 32
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let count = Self.number(bytes, trailer + 8, 8), let top = Self.number(bytes, trailer + 16, 8),
            let table = Self.number(bytes, trailer + 24, 8),
            count <= bytes.count, top < count, table <= trailer, table + count * offsetSize <= trailer
        else { return nil }
        (self.count, self.top, tableStart) = (count, top, table)
    }

    /// Whether its outermost object is what a file link is, and can be read.
    var isDictionary: Bool { references(top, kind: 0xD) != nil }

    /// The file a link names: `relativePath` of a dictionary, or of the dictionary that BibDesk archived with NSKeyedArchiver.
    var relativePath: String? {
        if let path = value("relativePath", in: top) { return string(path) }
        // An archive keeps all its objects in one array; "$top" names the root, which lists its keys and values by number.
        guard let objects = value("$objects", in: top).flatMap({ references($0, kind: 0xA) }),
            let root = value("$top", in: top).flatMap({ value("root", in: $0) }).flatMap({ target($0, objects) })
        else { return nil }
        guard let keys = value("NS.keys", in: root).flatMap({ references($0, kind: 0xA) }),
            let values = value("NS.objects", in: root).flatMap({ references($0, kind: 0xA) })
        else { return value("relativePath", in: root).flatMap { target($0, objects) }.flatMap { string($0) } }
        for (key, value) in zip(keys, values) {
            guard target(key, objects).flatMap({ string($0) }) == "relativePath" else { continue }
            return target(value, objects).flatMap { string($0) }
        }
        return nil
    }

    /// What an archive's reference (a UID) stands for.
    private func target(_ object: Int, _ objects: [Int]) -> Int? {
        guard let at = offset(of: object), bytes[at] >> 4 == 0x8 else { return nil }
        guard let index = Self.number(bytes, at + 1, Int(bytes[at] & 0xF) + 1), index < objects.count else {
            return nil
        }
        return objects[index]
    }

    private func value(_ key: String, in dictionary: Int) -> Int? {
        guard let members = references(dictionary, kind: 0xD) else { return nil }
        let half = members.count / 2
        for index in 0..<half where string(members[index]) == key { return members[half + index] }
        return nil
    }

    /// The members of an array (0xA), or the keys and then the values of a dictionary (0xD).
    private func references(_ object: Int, kind: UInt8) -> [Int]? {
        guard let (found, length, start) = content(of: object), found == kind else { return nil }
        let members = kind == 0xD ? 2 * length : length
        guard members * referenceSize <= tableStart - start else { return nil }
        return (0..<members).map { Self.number(bytes, start + $0 * referenceSize, referenceSize) ?? .max }
    }

    private func string(_ object: Int) -> String? {
        guard let (kind, length, start) = content(of: object) else { return nil }
        switch kind {
        case 0x5 where length <= tableStart - start:
            return String(validating: bytes[start..<(start + length)], as: UTF8.self)
        case 0x6 where 2 * length <= tableStart - start:
            let units = (0..<length).map { UInt16(bytes[start + 2 * $0]) << 8 | UInt16(bytes[start + 2 * $0 + 1]) }
            return String(validating: units, as: UTF16.self)
        default: return nil
        }
    }

    /// Kind, length and first byte of an object; a length of 15 or more follows as an integer of its own.
    private func content(of object: Int) -> (kind: UInt8, length: Int, start: Int)? {
        guard let at = offset(of: object) else { return nil }
        let (kind, short) = (bytes[at] >> 4, Int(bytes[at] & 0xF))
        if short < 0xF { return (kind, short, at + 1) }
        guard at + 1 < tableStart, bytes[at + 1] >> 4 == 0x1, bytes[at + 1] & 0xF <= 3 else { return nil }
        let size = 1 << Int(bytes[at + 1] & 0xF)
        guard let length = Self.number(bytes, at + 2, size), length <= bytes.count, at + 2 + size <= tableStart else {
            return nil
        }
        return (kind, length, at + 2 + size)
    }

    private func offset(of object: Int) -> Int? {
        guard object < count, let at = Self.number(bytes, tableStart + object * offsetSize, offsetSize) else {
            return nil
        }
        return at < tableStart ? at : nil
    }

    /// Big-endian; nil beyond the end, or when too large to be an offset or a count here.
    private static func number(_ bytes: [UInt8], _ start: Int, _ size: Int) -> Int? {
        guard start >= 0, start <= bytes.count, size <= bytes.count - start, size <= 16 else { return nil }
        var value = 0
        for byte in bytes[start..<(start + size)] {
            guard value < 1 << 40 else { return nil }
            value = value << 8 | Int(byte)
        }
        return value
    }

    /// `{ relativePath = path }`, the shape that BibDesk writes today without its bookmark.
    static func withRelativePath(_ path: String) -> [UInt8] {
        var out = Array("bplist00".utf8)
        let dictionary = out.count
        out += [0xD1, 1, 2]
        let key = out.count
        out += string("relativePath")
        let value = out.count
        out += string(path)
        let table = out.count
        for offset in [dictionary, key, value] { out += bigEndian(offset, 4) }
        out += [0, 0, 0, 0, 0, 0, 4, 1]
        return out + bigEndian(3, 8) + bigEndian(0, 8) + bigEndian(table, 8)
    }

    private static func string(_ text: String) -> [UInt8] {
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        let units = isASCII ? Array(text.utf8) : text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        let length = isASCII ? units.count : units.count / 2
        let kind: UInt8 = isASCII ? 0x50 : 0x60
        return (length < 0xF ? [kind | UInt8(length)] : [kind | 0xF, 0x12] + bigEndian(length, 4)) + units
    }

    private static func bigEndian(_ value: Int, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}

/// Base64 as BibTeX fields hold it: white space anywhere, padding or none.
enum BibBase64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let digits: [UInt8] = {
        var digits = [UInt8](repeating: 0xFF, count: 256)
        for (value, digit) in alphabet.enumerated() { digits[Int(digit)] = UInt8(value) }
        return digits
    }()

    static func decode(_ text: String) -> [UInt8]? {
        var out: [UInt8] = []
        var (bits, held) = (UInt32(0), 0)
        for byte in text.utf8 where !BibByte.isWhite(byte) && byte != BibByte.equals {
            let digit = digits[Int(byte)]
            guard digit != 0xFF else { return nil }
            bits = bits << 6 | UInt32(digit)
            held += 6
            if held >= 8 {
                held -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> UInt32(held)))
            }
        }
        return out
    }

    static func encode(_ bytes: [UInt8]) -> String { Base64.encode(bytes) }
}
