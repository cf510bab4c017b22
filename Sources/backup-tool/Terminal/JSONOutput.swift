import BackupKit

/// What `--json` reports.
typealias JSONValue = JSON

extension JSON {
    static func int(_ number: Int) -> JSON { JSON(number) }

    /// One line. What a terminal would obey (JSON itself asks only for escapes below U+0020) is escaped, which is the
    /// same string to every reader; such characters occur in strings only.
    var text: String {
        let line = compact
        guard line.unicodeScalars.contains(where: isObeyedByTerminals) else { return line }
        var safe = ""
        for scalar in line.unicodeScalars {
            guard isObeyedByTerminals(scalar) else {
                safe.unicodeScalars.append(scalar)
                continue
            }
            let digits = String(scalar.value, radix: 16)
            safe += "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)"
        }
        return safe
    }
}

extension JSON.Member {
    init(key: String, value: JSON) { self.init(key, value) }
}

private func isObeyedByTerminals(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x7F..<0xA0, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
    default: false
    }
}
