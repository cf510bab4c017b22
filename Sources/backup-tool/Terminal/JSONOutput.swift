/// A value to report with `--json`. Objects keep the order in which they are written down.
enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    case int(Int)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([Member])

    struct Member: Sendable, Equatable {
        let key: String
        let value: JSONValue
    }

    /// On one line, without spaces.
    var text: String {
        var out: [UInt8] = []
        write(to: &out)
        return String(decoding: out, as: UTF8.self)
    }

    func write(to out: inout [UInt8]) {
        switch self {
        case .null: out += "null".utf8
        case .bool(let answer): out += (answer ? "true" : "false").utf8
        case .int(let number): out += String(number).utf8
        // JSON has no word for infinity.
        case .double(let number): out += (number.isFinite ? String(number) : "null").utf8
        case .string(let text): Self.write(text, to: &out)
        case .array(let values):
            out.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                value.write(to: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                Self.write(member.key, to: &out)
                out.append(UInt8(ascii: ":"))
                member.value.write(to: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x22: out += "\\\"".utf8
            case 0x5C: out += "\\\\".utf8
            case 0x0A: out += "\\n".utf8
            case 0x0D: out += "\\r".utf8
            case 0x09: out += "\\t".utf8
            // JSON asks for the first of these; the others would be obeyed by a terminal, and an escape is the
            // same string to every reader.
            case 0..<0x20, 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
                let digits = String(scalar.value, radix: 16)
                out += "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)".utf8
            case ..<0x80: out.append(UInt8(truncatingIfNeeded: scalar.value))
            default: out += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    init(stringLiteral text: String) { self = .string(text) }
    init(integerLiteral number: Int) { self = .int(number) }
    init(booleanLiteral answer: Bool) { self = .bool(answer) }
    init(nilLiteral: ()) { self = .null }
    init(arrayLiteral values: JSONValue...) { self = .array(values) }
    init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(members.map { Member(key: $0.0, value: $0.1) })
    }
}
