/// Numbers as people read them.
enum HumanText {
    /// "812 B", "1.2 GB": decimal, as disks are sold and `ls --si` counts.
    static func bytes(_ count: UInt64) -> String {
        let units = ["kB", "MB", "GB", "TB", "PB", "EB"]
        guard count >= 1000 else { return "\(count) B" }
        var value = Double(count) / 1000
        var unit = 0
        // 999.95 would be shown as 1000.0.
        while value >= 999.5, unit + 1 < units.count {
            value /= 1000
            unit += 1
        }
        return value < 9.95 ? "\(tenths(value)) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
    }

    static func bytes(_ count: Int) -> String {
        bytes(UInt64(max(0, count)))
    }

    /// "1,234,567".
    static func count(_ number: Int) -> String {
        var digits = Array(String(number.magnitude).utf8)
        var place = digits.count - 3
        while place > 0 {
            digits.insert(UInt8(ascii: ","), at: place)
            place -= 3
        }
        return (number < 0 ? "-" : "") + String(decoding: digits, as: UTF8.self)
    }

    /// "1 record", "2,000 records".
    static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? one : many ?? one + "s")"
    }

    /// "0.3 s", "12 s", "2 min 5 s", "3 h 4 min".
    static func duration(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 0, seconds < 1e15 else { return "?" }
        if seconds < 9.95 { return "\(tenths(seconds)) s" }
        let whole = Int(seconds.rounded())
        if whole < 60 { return "\(whole) s" }
        if whole < 3600 { return "\(whole / 60) min \(whole % 60) s" }
        return "\(whole / 3600) h \(whole % 3600 / 60) min"
    }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
