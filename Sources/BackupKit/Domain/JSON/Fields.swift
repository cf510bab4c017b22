/// One member of a record's fields; the value is JSON text.
public struct Field: Sendable, Equatable {
    public let name: String
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    public init(_ name: String, _ value: JSON) { self.init(name, value.compact) }
}

/// A record's fields taken apart and put together again.
public enum Fields {
    /// The members of a JSON object in their order. Two members of one name are refused: which one counts would
    /// depend on who reads.
    public static func parse(_ text: String) throws -> [Field] {
        var text = text
        return try text.withUTF8 { try parse(UnsafeRawBufferPointer($0)) }
    }

    public static func parse(_ bytes: UnsafeRawBufferPointer) throws -> [Field] {
        try parse(bytes, depth: JSONScanner.maximumDepth)
    }

    /// What comes from outside, and is to be one record or setting.
    static func parse(foreign bytes: UnsafeRawBufferPointer) throws -> [Field] {
        try parse(bytes, depth: JSONScanner.maximumDepthOfRecord)
    }

    private static func parse(_ bytes: UnsafeRawBufferPointer, depth: Int) throws -> [Field] {
        var fields: [Field] = []
        var scanner = JSONScanner(bytes, depth: depth)
        try scanner.forEachMember { key, _, range in
            fields.append(Field(jsonUnescape(bytes, key), String(decoding: bytes[range], as: UTF8.self)))
        }
        try scanner.expectEnd()
        if let twice = firstDuplicate(fields) {
            throw BackupError(.damaged, "names the field '\(printable(twice))' twice")
        }
        return fields
    }

    /// The text of some string members, found in one scan that builds nothing else; nil where there is none.
    static func strings(named names: [String], of text: String) throws -> [String?] {
        guard names.count <= 16 else {
            let values = values(try parse(text))
            return names.map { name in values[ByteName(name)].flatMap { string(name, in: [Field(name, $0)]) } }
        }
        var text = text
        return try text.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            var found = [String?](repeating: nil, count: names.count)
            var scanner = JSONScanner(bytes)
            try scanner.forEachMember { key, kind, range in
                guard kind == .string else { return }
                for (index, name) in names.enumerated() where JSONScanner.isName(bytes, key, name) {
                    found[index] = jsonUnescape(bytes, range.dropFirst().dropLast())
                }
            }
            return found
        }
    }

    /// Whether `text` is what `parse` takes, at the price of a scan.
    static func check(_ text: String) throws {
        var text = text
        try text.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            // The line of a backup stands around them, with some room.
            var scanner = JSONScanner(bytes, depth: JSONScanner.maximumDepth - 2)
            var keys: [Range<Int>] = []
            var plain = true
            try scanner.forEachMember { key, _, _ in
                keys.append(key)
                // Escaped names can be equal without being the same bytes.
                plain = plain && !bytes[key].contains(UInt8(ascii: "\\"))
            }
            try scanner.expectEnd()
            guard plain, keys.count <= 32 else { return _ = try parse(bytes) }
            for (index, key) in keys.enumerated() {
                for other in keys[..<index] where other.count == key.count && bytes[other].elementsEqual(bytes[key]) {
                    throw BackupError(.damaged, "names the field '\(printable(jsonUnescape(bytes, key)))' twice")
                }
            }
        }
    }

    private static func firstDuplicate(_ fields: [Field]) -> String? {
        if fields.count < 16 {
            for (index, field) in fields.enumerated()
            where fields[..<index].contains(where: { sameBytes($0.name, field.name) }) {
                return field.name
            }
            return nil
        }
        var seen: Set<ByteName> = []
        return fields.first { !seen.insert(ByteName($0.name)).inserted }?.name
    }

    /// One line of JSON.
    public static func text(_ fields: [Field]) -> String {
        var out: [UInt8] = [UInt8(ascii: "{")]
        for (index, field) in fields.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            appendJSONString(field.name, to: &out)
            out.append(UInt8(ascii: ":"))
            out += field.value.utf8
        }
        out.append(UInt8(ascii: "}"))
        return String(decoding: out, as: UTF8.self)
    }

    /// The JSON text of a member, or nil. Names are bytes: `é` in two forms of Unicode is two names.
    static func value(_ name: String, in fields: [Field]) -> String? {
        fields.first { sameBytes($0.name, name) }?.value
    }

    /// The JSON texts of all members by their names.
    static func values(_ fields: [Field]) -> [ByteName: String] {
        Dictionary(fields.map { (ByteName($0.name), $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// A string member's text, or nil.
    public static func string(_ name: String, in fields: [Field]) -> String? {
        guard var value = value(name, in: fields), value.utf8.count >= 2 else { return nil }
        return value.withUTF8 { utf8 in
            guard utf8[0] == UInt8(ascii: "\"") else { return nil }
            return jsonUnescape(UnsafeRawBufferPointer(utf8), 1..<utf8.count - 1)
        }
    }

    /// An array member's strings; none when it is no such array.
    public static func strings(_ name: String, in fields: [Field]) -> [String] {
        guard let value = value(name, in: fields), value.hasPrefix("[") else { return [] }
        return (try? JSON(parsing: value))?.array?.compactMap(\.string) ?? []
    }

    /// Whether two JSON texts say the same.
    static func same(_ left: String, _ right: String) throws -> Bool {
        if sameBytes(left, right) { return true }
        return try canonical(left) == canonical(right)
    }

    static func canonical(_ text: String) throws -> [UInt8] {
        var text = text
        var out: [UInt8] = []
        try text.withUTF8 { try CanonicalJSON.append(UnsafeRawBufferPointer($0), to: &out) }
        return out
    }
}
