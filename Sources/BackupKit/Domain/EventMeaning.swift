/// What the line of an event says, whoever wrote it: an app that reads a log and writes it again gives times, numbers and
/// members without a value other forms.
extension EventText {
    /// Names that an app gives its events, with or without the times of its edits.
    private static let given = ["id", "localId", "created_at", "modified_at"]

    /// What a line says but for its id and the times of its edits: times as instants, numbers by their values, and members
    /// that are null left out.
    static func meaning(_ fields: [Field]) throws -> String {
        let members = try fields.filter { field in !given.contains { sameBytes($0, field.name) } }
            .map { JSON.Member($0.name, try meaning(of: $0)) }.filter { $0.value != .null }
        return JSON.object(sorted(members)).compact
    }

    private static func meaning(of field: Field) throws -> JSON {
        let canonical = try Fields.canonical(field.value)
        // Half a surrogate pair has no form but the one that was written.
        guard !canonical.contains("\\ud".utf8) else {
            return .array([.string(String(decoding: canonical, as: UTF8.self))])
        }
        let value = meaning(try JSON(parsing: field.value))
        guard field.name == "time" || field.name == "eventTime", let text = value.string, !isFinerThanAnInstant(text),
            let time = LocalTime(text)
        else { return value }
        return .string(time.instant.iso8601)
    }

    /// Whether a field of an event says the same with another value.
    static func means(_ field: Field, _ value: String) throws -> Bool {
        try meaning(of: field) == meaning(of: Field(field.name, value))
    }

    /// Also as its log names its files.
    static func meanings(_ fields: [Field]) throws -> [String] {
        let mine = try meaning(fields)
        guard let asInLog = try RecordFiles.asInLog(fields).map(meaning), !sameBytes(mine, asInLog) else {
            return [mine]
        }
        return [mine, asInLog]
    }

    /// Of a record that has the id of its line.
    static func meanings(withID record: Record) throws -> [String] {
        try fieldsWithID(record).map { try meanings($0) } ?? []
    }

    private static func meaning(_ value: JSON) -> JSON {
        switch value {
        case .null, .bool: value
        case .number(let text): .number(plainNumber(text) ?? text)
        case .string(let text): instant(text).map { .string($0.iso8601) } ?? value
        case .array(let elements): .array(elements.map(meaning))
        case .object(let members):
            .object(
                sorted(
                    members.map { JSON.Member($0.key, meaning($0.value)) }.filter { $0.value != .null }))
        }
    }

    private static func sorted(_ members: [JSON.Member]) -> [JSON.Member] {
        members.sorted { precedesBytewise($0.key, $1.key) }
    }

    /// Of a text that is a day with a time of day, and nothing else.
    private static func instant(_ text: String) -> Timestamp? {
        guard text.utf8.count >= 16, text.utf8.count <= 64, text.utf8.dropFirst(10).first == UInt8(ascii: "T"),
            !isFinerThanAnInstant(text)
        else { return nil }
        return LocalTime(text)?.instant
    }

    /// Whether a time says more than milliseconds.
    private static func isFinerThanAnInstant(_ text: String) -> Bool {
        guard let point = text.utf8.firstIndex(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ",") }) else {
            return false
        }
        let digits = text.utf8[point...].dropFirst().prefix { 48...57 ~= $0 }
        return digits.dropFirst(3).contains { $0 != 48 }
    }

    /// A number by its value, `12e-1` for `1.20`; nil where its exponent is beyond all sense.
    private static func plainNumber(_ text: String) -> String? {
        var bytes = text.utf8[...]
        let isNegative = bytes.first == UInt8(ascii: "-")
        if isNegative { bytes = bytes.dropFirst() }
        let mantissa = bytes.prefix { $0 != UInt8(ascii: "e") && $0 != UInt8(ascii: "E") }
        var written = bytes.dropFirst(mantissa.count + 1)
        if written.first == UInt8(ascii: "+") { written = written.dropFirst() }
        guard written.count <= 9, var exponent = written.isEmpty ? 0 : Int(String(written) ?? "") else { return nil }
        let parts = mantissa.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var digits = parts.flatMap { Array($0) }
        if parts.count == 2 { exponent -= parts[1].count }
        while digits.last == 48 {
            digits.removeLast()
            exponent += 1
        }
        digits = Array(digits.drop { $0 == 48 })
        guard !digits.isEmpty else { return "0" }
        return (isNegative ? "-" : "") + String(decoding: digits, as: UTF8.self) + "e\(exponent)"
    }
}
