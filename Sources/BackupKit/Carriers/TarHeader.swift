/// One 512-byte header of a tar archive (POSIX.1-2017, pax, "ustar Interchange Format"; GNU tar manual, "Basic Tar
/// Format"), checked field by field.
struct TarHeader {
    static let blockSize = 512

    let type: UInt8
    let name: [UInt8]
    let size: Int64
    let modified: Int64
    let mode: Int64

    /// nil when this is no header: the checksum or a number in it is wrong.
    init?(_ block: UnsafeRawBufferPointer) {
        guard block.count == Self.blockSize, Self.checksumMatches(block),
            let size = Self.number(block[124..<136]), let modified = Self.number(block[136..<148]),
            let mode = Self.number(block[100..<108]), size >= 0
        else { return nil }
        self.size = size
        self.modified = modified
        self.mode = mode
        type = block[156]
        var name = Self.text(block[0..<100])
        // Only the POSIX form ("ustar", NUL) has a prefix there; GNU's ("ustar", two spaces) has times.
        if block[257..<263].elementsEqual([0x75, 0x73, 0x74, 0x61, 0x72, 0]) {
            let prefix = Self.text(block[345..<500])
            if !prefix.isEmpty { name = prefix + [UInt8(ascii: "/")] + name }
        }
        self.name = name
    }

    static func isZero(_ block: UnsafeRawBufferPointer) -> Bool { firstNonZero(block) == nil }

    /// The index of the first byte that is not zero.
    static func firstNonZero(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var index = 0
        while bytes.count - index >= 8, bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) == 0 { index += 8 }
        while index < bytes.count {
            if bytes[index] != 0 { return index }
            index += 1
        }
        return nil
    }

    private static func text(_ field: Slice<UnsafeRawBufferPointer>) -> [UInt8] { Array(field.prefix { $0 != 0 }) }

    /// "The sum of all bytes in the header, with the checksum field taken as spaces"; some old writers summed signed
    /// bytes.
    private static func checksumMatches(_ block: UnsafeRawBufferPointer) -> Bool {
        guard let expected = number(block[148..<156]) else { return false }
        var unsigned: Int64 = 0
        var signed: Int64 = 0
        for index in 0..<blockSize {
            let byte = (148..<156).contains(index) ? UInt8(ascii: " ") : block[index]
            unsigned += Int64(byte)
            signed += Int64(Int8(bitPattern: byte))
        }
        return expected == unsigned || expected == signed
    }

    /// An octal number, or GNU's big-endian binary one, marked by the highest bit; nil when it is neither.
    private static func number(_ field: Slice<UnsafeRawBufferPointer>) -> Int64? {
        guard let first = field.first else { return nil }
        if first & 0x80 != 0 {
            // Two's complement with the mark as sign extension: 0x80 begins a positive number, 0xFF a negative one.
            guard first == 0x80 || first == 0xFF else { return nil }
            var value: Int64 = first == 0xFF ? -1 : 0
            for byte in field.dropFirst() {
                guard value >= -(1 << 55), value < 1 << 55 else { return nil }
                value = value << 8 | Int64(byte)
            }
            return value
        }
        var value: Int64 = 0
        var digits = field.drop { $0 == UInt8(ascii: " ") }
        while let byte = digits.first, byte != 0, byte != UInt8(ascii: " ") {
            // Twelve octal digits are 36 bits: no overflow.
            guard (48...55).contains(byte) else { return nil }
            value = value << 3 | Int64(byte - 48)
            digits = digits.dropFirst()
        }
        return digits.allSatisfy { $0 == 0 || $0 == UInt8(ascii: " ") } ? value : nil
    }
}

/// What extended headers say about the member that follows them.
struct TarExtension {
    var name: [UInt8]?
    var size: Int64?
    var modified: Int64?

    /// Reads pax records, "<length> <keyword>=<value>\n"; throws what is wrong with them.
    mutating func read(pax bytes: [UInt8], isGlobal: Bool) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            var length = 0
            let digits = rest.prefix { (48...57).contains($0) }
            guard (1...7).contains(digits.count) else { throw Self.malformed }
            for digit in digits { length = length * 10 + Int(digit - 48) }
            guard length <= rest.count, length > digits.count + 2 else { throw Self.malformed }
            let record = rest.prefix(length)
            guard record[digits.endIndex] == UInt8(ascii: " "), record.last == UInt8(ascii: "\n"),
                let equals = record.firstIndex(of: UInt8(ascii: "="))
            else { throw Self.malformed }
            let keyword = String(decoding: record[(digits.endIndex + 1)..<equals], as: UTF8.self)
            try take(keyword, Array(record[(equals + 1)...].dropLast()), isGlobal: isGlobal)
            rest = rest.dropFirst(length)
        }
    }

    private mutating func take(_ keyword: String, _ value: [UInt8], isGlobal: Bool) throws {
        if isGlobal && ["path", "size", "linkpath"].contains(keyword) {
            throw BackupError(.refused, "a global header gives one \(keyword) to all members")
        }
        switch keyword {
        case "path": name = value
        case "size":
            guard let number = Int64(String(decoding: value, as: UTF8.self)), number >= 0 else { throw Self.malformed }
            size = number
        case "mtime":
            // Seconds with an optional fraction, which we do not keep.
            let text = String(decoding: value.prefix { $0 != UInt8(ascii: ".") }, as: UTF8.self)
            guard let number = Int64(text) else { throw Self.malformed }
            modified = number
        case _ where keyword.hasPrefix("GNU.sparse."):
            throw BackupError(.refused, "holds a sparse file, which a backup does not")
        default:
            break  // Among them attributes and access control lists, which a restore leaves out.
        }
    }

    private static let malformed = BackupError(.damaged, "an extended header is malformed")
}
