/// A small JSON document as a value: manifests, settings, results. Numbers keep their text, objects keep their order.
public indirect enum JSON: Sendable, Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    public struct Member: Sendable, Equatable {
        public let key: String
        public let value: JSON

        public init(_ key: String, _ value: JSON) {
            self.key = key
            self.value = value
        }
    }

    public init(_ number: some BinaryInteger) { self = .number(String(number)) }

    /// Parses a whole document.
    public init(parsing bytes: UnsafeRawBufferPointer) throws {
        var scanner = JSONScanner(bytes)
        let (kind, range) = try scanner.value()
        try scanner.expectEnd()
        self = try JSON.build(kind, UnsafeRawBufferPointer(rebasing: bytes[range]))
    }

    public init(parsing text: String) throws {
        var text = text
        self = try text.withUTF8 { try JSON(parsing: UnsafeRawBufferPointer($0)) }
    }

    // The text was scanned before, so its depth is bounded.
    private static func build(_ kind: JSONScanner.Kind, _ bytes: UnsafeRawBufferPointer) throws -> JSON {
        switch kind {
        case .null: return .null
        case .bool: return .bool(bytes.first == UInt8(ascii: "t"))
        case .number: return .number(String(decoding: bytes, as: UTF8.self))
        case .string: return .string(jsonUnescape(bytes, 1..<bytes.count - 1))
        case .array:
            var elements: [JSON] = []
            var scanner = JSONScanner(bytes)
            try scanner.forEachElement { kind, range in
                elements.append(try build(kind, UnsafeRawBufferPointer(rebasing: bytes[range])))
            }
            return .array(elements)
        case .object:
            var members: [Member] = []
            var scanner = JSONScanner(bytes)
            try scanner.forEachMember { key, kind, range in
                let value = try build(kind, UnsafeRawBufferPointer(rebasing: bytes[range]))
                members.append(Member(jsonUnescape(bytes, key), value))
            }
            return .object(members)
        }
    }

    public subscript(key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    public var string: String? { if case .string(let text) = self { text } else { nil } }
    public var bool: Bool? { if case .bool(let flag) = self { flag } else { nil } }
    public var array: [JSON]? { if case .array(let elements) = self { elements } else { nil } }
    public var members: [Member]? { if case .object(let members) = self { members } else { nil } }
    public var integer: Int64? { if case .number(let text) = self { Int64(text) } else { nil } }
    public var double: Double? { if case .number(let text) = self { Double(text) } else { nil } }

    /// One line, no spaces.
    public var compact: String {
        var out: [UInt8] = []
        write(to: &out, indent: nil)
        return String(decoding: out, as: UTF8.self)
    }

    /// Two spaces a level and a final newline, for files that people open.
    public var pretty: String {
        var out: [UInt8] = []
        write(to: &out, indent: 0)
        out.append(0x0A)
        return String(decoding: out, as: UTF8.self)
    }

    private func write(to out: inout [UInt8], indent: Int?) {
        switch self {
        case .null: out += "null".utf8
        case .bool(let flag): out += (flag ? "true" : "false").utf8
        case .number(let text): out += text.utf8
        case .string(let text): appendJSONString(text, to: &out)
        case .array(let elements):
            JSON.writeList("[", "]", elements, &out, indent) { $0.write(to: &$1, indent: indent.map { $0 + 1 }) }
        case .object(let members):
            JSON.writeList("{", "}", members, &out, indent) { member, out in
                appendJSONString(member.key, to: &out)
                out += (indent == nil ? ":" : ": ").utf8
                member.value.write(to: &out, indent: indent.map { $0 + 1 })
            }
        }
    }

    private static func writeList<Item>(
        _ open: String, _ close: String, _ items: [Item], _ out: inout [UInt8], _ indent: Int?,
        _ each: (Item, inout [UInt8]) -> Void
    ) {
        func newline(_ level: Int) {
            out.append(0x0A)
            out += repeatElement(0x20, count: level * 2)
        }
        out += open.utf8
        for (index, item) in items.enumerated() {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            if let indent { newline(indent + 1) }
            each(item, &out)
        }
        if let indent, !items.isEmpty { newline(indent) }
        out += close.utf8
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral text: String) { self = .string(text) }
    public init(booleanLiteral flag: Bool) { self = .bool(flag) }
    public init(integerLiteral number: Int) { self = .number(String(number)) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral members: (String, JSON)...) { self = .object(members.map { Member($0.0, $0.1) }) }
    public init(nilLiteral: ()) { self = .null }
}
