import TestSupport
import Testing

@testable import BackupKit

private func read(_ bytes: [UInt8]) throws -> JSON { try bytes.withUnsafeBytes { try JSON(parsing: $0) } }

private func canonical(_ bytes: [UInt8]) throws -> [UInt8] {
    var out: [UInt8] = []
    try bytes.withUnsafeBytes { try CanonicalJSON.append($0, to: &out) }
    return out
}

@Suite struct JSONTests {
    // Each verdict was compared once with another reader of RFC 8259.
    static let good = [
        "null", "true", "false", "0", "-0", "-0.0e-0", "10", "1.5", "1e5", "1E+5", "1e-5",
        "123456789012345678901234567890",
        "1e999999", "\"\"", "\"a\\u00e9\\n\\/\"", "\"\\ud83d\\ude00\"", "\"\\ud800\"", "\"\\udc00x\"",
        "\"\u{7F}\u{2028}\"",
        "[]", "[ ]", "[1,[2,[3]]]", "{}", "{ }", "{\"a\":1}", "{\"a\":1,\"a\":2}", "{\"\":{}}", " \t\r\n[1 , 2]\n",
    ]
    static let bad = [
        "", " ", "nul", "nulll", "True", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1.e5", "1e", "1e+",
        "0x10",
        "1 2", "\"", "\"a", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\", "\"a\tb\"", "\"a\nb\"", "'a'", "[", "]",
        "[1", "[1,",
        "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}",
        "{a:1}",
        "{\"a\" 1}", "{1:2}", "[]]", "{}{}", "// x\n1", "/*x*/1", "\u{FEFF}1", "\u{A0}1",
    ]

    @Test(arguments: good) func whatTheGrammarAllowsIsRead(text: String) throws { _ = try JSON(parsing: text) }

    @Test(arguments: bad) func whatTheGrammarForbidsIsRefused(text: String) {
        #expect(throws: BackupError.self) { try JSON(parsing: text) }
        #expect(throws: BackupError.self) { try canonical(Array(text.utf8)) }
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0xAF], [0xC1, 0x81], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98],
            [0xE2, 0x28, 0xA1],
        ] as [[UInt8]])
    func bytesThatAreNotUTF8AreRefused(bytes: [UInt8]) {
        #expect(throws: BackupError.self) { try read([0x22] + bytes + [0x22]) }
        #expect(throws: BackupError.self) { try read([0x22] + bytes) }
        #expect(throws: BackupError.self) { try read(bytes) }
    }

    @Test func nestingIsAllowedToADepthAndNoFurther() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array(String(repeating: "[", count: depth).utf8) + Array(String(repeating: "]", count: depth).utf8)
        }
        _ = try read(nested(128))
        #expect(try canonical(nested(128)) == nested(128))
        #expect(throws: BackupError.self) { try read(nested(129)) }
        #expect(throws: BackupError.self) { try read(nested(100_000)) }
        let objects = String(repeating: "{\"a\":", count: 100_000)
        #expect(throws: BackupError.self) { try read(Array(objects.utf8)) }
    }

    @Test func aMistakeIsNamedWithItsByte() {
        let error = #expect(throws: BackupError.self) { try JSON(parsing: "{\"a\":1,}") }
        #expect(error?.message == "is not JSON: '\"' expected, '}' found at byte 7")
    }

    @Test func numbersKeepTheirTextAndNeverTrap() throws {
        #expect(try JSON(parsing: "1e999999").integer == nil)
        #expect(try JSON(parsing: "9223372036854775808").integer == nil)
        #expect(try JSON(parsing: "-9223372036854775808").integer == .min)
        #expect(try JSON(parsing: "1.50").compact == "1.50")
    }

    @Test func textSurvivesEscapingAndBack() throws {
        let text = "\u{0}\u{1}\u{1F}\"\\/\n\r\t\u{8}\u{C}é😀\u{2028}\u{7F}"
        let json = JSON.object([.init(text, .string(text))])
        #expect(try JSON(parsing: json.compact) == json)
        #expect(try JSON(parsing: json.pretty) == json)
        #expect(try JSON(parsing: "\"\\ud83d\\ude00\\ud800x\"").string == "😀\u{FFFD}x")
    }

    @Test func canonicalFormForgetsOnlyFormatting() throws {
        let one = try canonical(Array("{ \"b\" : [1, 2.0], \"a\\u0062\":\"\\u0041\\/\" }".utf8))
        #expect(String(decoding: one, as: UTF8.self) == "{\"ab\":\"A/\",\"b\":[1,2.0]}")
        #expect(try canonical(Array("\"\\ud800\"".utf8)) != canonical(Array("\"\\udc00\"".utf8)))
        #expect(try canonical(Array("\"\\uD800\"".utf8)) == canonical(Array("\"\\ud800\"".utf8)))
        #expect(try Fields.same("\"\u{E9}\"", "\"e\u{301}\"") == false)
        let escaped = try canonical(Array("{\"b\":1,\"\\u0061\":{\"d\":[],\"c\":{}}}".utf8))
        #expect(String(decoding: escaped, as: UTF8.self) == "{\"a\":{\"c\":{},\"d\":[]},\"b\":1}")
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func canonicalFormIsAFixedPointAndIgnoresTheOrderOfMembers(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<30 {
            let value = randomJSON(&random, depth: 4)
            let form = try canonical(Array(value.compact.utf8))
            #expect(try canonical(form) == form)
            #expect(try canonical(Array(shuffled(value, &random).pretty.utf8)) == form)
            #expect(try canonical(Array(shuffled(value, &random).compact.utf8)) == form)
            #expect(try read(Array(value.pretty.utf8)) == value)
        }
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func brokenTextNeverTraps(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d8", "3d", "null", "tru", "-", "0", "1e", ".", " ", "é",
        ]
        for _ in 0..<150 {
            var bytes = Array(randomJSON(&random, depth: 3).compact.utf8)
            for _ in 0...random.below(4) {
                let at = random.below(bytes.count + 1)
                switch random.below(4) {
                case 0: bytes.insert(contentsOf: pieces[random.below(pieces.count)].utf8, at: at)
                case 1: bytes.removeSubrange(at..<min(bytes.count, at + random.below(5)))
                case 2 where at < bytes.count: bytes[at] = UInt8.random(in: 0...255, using: &random)
                default: bytes.removeLast(min(bytes.count, random.below(6)))
                }
            }
            let whole = try? read(bytes)
            let form = try? canonical(bytes)
            #expect((whole == nil) == (form == nil))
            _ = try? bytes.withUnsafeBytes { try Fields.parse($0) }
            _ = try? bytes.withUnsafeBytes { try Record(parsing: $0) }
        }
    }

    @Test func fieldsOfOneNameAreRefusedHoweverTheyAreWritten() throws {
        for text in ["{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}"] {
            #expect(throws: BackupError.self) { try Fields.parse(text) }
            #expect(throws: BackupError.self) { try Fields.check(text) }
        }
        try Fields.check("{\"a\":1,\"b\":{\"a\":1}}")
        // Two Unicode forms are two names.
        try Fields.check("{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(throws: BackupError.self) { try Fields.check("[1]") }
        let many = "{" + (0..<40).map { "\"f\($0)\":1" }.joined(separator: ",")
        try Fields.check(many + "}")
        #expect(throws: BackupError.self) { try Fields.check(many + ",\"f7\":2}") }
    }

    @Test func aNameThatIsWrittenWithEscapes_isTheName() throws {
        for (text, expected) in [
            (#"{"cite\u004bey":"k"}"#, "k"), (#"{"a":1,"citeKey":"k"}"#, "k"),
            (#"{"citeK\u0045y":"no","citeKey":"k"}"#, "k"),
            (#"{"cite\u004bey":1}"#, nil), ("{}", nil),
        ] as [(String, String?)] {
            #expect(try Fields.strings(named: ["citeKey"], of: text) == [expected])
            let first = try Array(text.utf8).withUnsafeBytes {
                try JSONScanner.firstString(named: "citeKey", in: $0)
            }
            #expect(first == expected, "\(text)")
        }
    }
}

private func randomText(_ random: inout SeededGenerator) -> String {
    let alphabet = ["a", "b", "\"", "\\", "/", "\n", "\u{0}", "é", "😀", "\u{2028}", " "]
    return (0..<random.below(5)).map { _ in alphabet[random.below(alphabet.count)] }.joined()
}

private func randomJSON(_ random: inout SeededGenerator, depth: Int) -> JSON {
    switch random.below(depth > 0 ? 8 : 5) {
    case 0: return .null
    case 1: return .bool(random.chance(2))
    case 2: return JSON(Int64.random(in: -1000...1000, using: &random))
    case 3: return .number("\(random.below(100)).\(random.below(100))e-\(random.below(9))")
    case 4: return .string(randomText(&random))
    case 5: return .array((0..<random.below(4)).map { _ in randomJSON(&random, depth: depth - 1) })
    default:
        return .object(
            (0..<random.below(5)).map { .init("\($0)" + randomText(&random), randomJSON(&random, depth: depth - 1)) })
    }
}

private func shuffled(_ value: JSON, _ random: inout SeededGenerator) -> JSON {
    switch value {
    case .array(let elements): return .array(elements.map { shuffled($0, &random) })
    case .object(let members):
        return .object(members.map { .init($0.key, shuffled($0.value, &random)) }.shuffled(using: &random))
    default: return value
    }
}
