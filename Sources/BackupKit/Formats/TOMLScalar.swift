/// The values of TOML that are written without quotes or brackets.
enum TOMLScalar {
    static func read(_ written: String) -> TOMLValue.Content? {
        switch written {
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case "inf", "+inf": return .float(.infinity)
        case "-inf": return .float(-.infinity)
        case "nan", "+nan", "-nan": return .float(.nan)
        default: break
        }
        let bytes = Array(written.utf8)
        if isDateOrTime(bytes[...]) { return .date(written) }
        return readNumber(bytes)
    }

    // MARK: Numbers

    private static func readNumber(_ written: [UInt8]) -> TOMLValue.Content? {
        guard let bytes = withoutUnderscores(written) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] where text.hasPrefix(prefix) {
            let digits = text.dropFirst(2)
            // Int() would take a sign here.
            guard digits.first?.isHexDigit == true else { return nil }
            return Int(digits, radix: radix).map { .integer($0) }
        }
        var rest = bytes[...]
        if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let whole = rest.prefix(while: isDigit)
        guard !whole.isEmpty, whole.count == 1 || whole.first != UInt8(ascii: "0") else { return nil }
        rest.removeFirst(whole.count)
        if rest.isEmpty { return Int(text).map { .integer($0) } }
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            let fraction = rest.prefix(while: isDigit)
            guard !fraction.isEmpty else { return nil }
            rest.removeFirst(fraction.count)
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest.removeFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
            guard !rest.isEmpty else { return nil }
            rest = rest.drop(while: isDigit)
        }
        return rest.isEmpty ? Double(text).map { .float($0) } : nil
    }

    /// Each underscore must stand between two digits.
    private static func withoutUnderscores(_ bytes: [UInt8]) -> [UInt8]? {
        var kept: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            guard byte == UInt8(ascii: "_") else {
                kept.append(byte)
                continue
            }
            guard index > 0, index + 1 < bytes.count, isHexDigit(bytes[index - 1]), isHexDigit(bytes[index + 1]) else {
                return nil
            }
        }
        return kept
    }

    // MARK: Dates

    static func isDate(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let parts = fields(bytes, "dddd-dd-dd"), (1...12).contains(parts[1]) else { return false }
        let isLeap = parts[0] % 4 == 0 && (parts[0] % 100 != 0 || parts[0] % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...days[parts[1] - 1]).contains(parts[2])
    }

    private static func isDateOrTime(_ bytes: ArraySlice<UInt8>) -> Bool {
        let date = bytes.prefix(10)
        guard isDate(date) else { return isTime(bytes) }
        var rest = bytes.dropFirst(10)
        guard let separator = rest.popFirst() else { return true }
        guard separator == UInt8(ascii: "T") || separator == UInt8(ascii: "t") || separator == UInt8(ascii: " ") else {
            return false
        }
        if rest.last == UInt8(ascii: "Z") || rest.last == UInt8(ascii: "z") { return isTime(rest.dropLast()) }
        let zone = rest.suffix(6)
        if zone.first == UInt8(ascii: "+") || zone.first == UInt8(ascii: "-"), rest.count > 6 {
            guard let parts = fields(zone.dropFirst(), "dd:dd"), parts[0] <= 23, parts[1] <= 59 else { return false }
            return isTime(rest.dropLast(6))
        }
        return isTime(rest)
    }

    private static func isTime(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let parts = fields(bytes.prefix(8), "dd:dd:dd"), parts[0] <= 23, parts[1] <= 59, parts[2] <= 60 else {
            return false
        }
        var rest = bytes.dropFirst(8)
        guard let point = rest.popFirst() else { return true }
        return point == UInt8(ascii: ".") && !rest.isEmpty && rest.allSatisfy(isDigit)
    }

    /// The numbers in `bytes` where `pattern` has runs of d; nil when the bytes do not fit it.
    private static func fields(_ bytes: ArraySlice<UInt8>, _ pattern: String) -> [Int]? {
        guard bytes.count == pattern.utf8.count else { return nil }
        var numbers = [0]
        for (byte, expected) in zip(bytes, pattern.utf8) {
            if expected == UInt8(ascii: "d") {
                guard isDigit(byte) else { return nil }
                // No run is longer than four digits.
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte - UInt8(ascii: "0"))
            } else {
                guard byte == expected else { return nil }
                numbers.append(0)
            }
        }
        return numbers
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        Character(Unicode.Scalar(byte)).isHexDigit
    }
}
