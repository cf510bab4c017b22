/// An instant in milliseconds since 1970, the precision that CloudKit keeps. Always in the years 1…9999: what lies
/// outside becomes the nearest that can be written down and read again, so arithmetic on foreign values cannot overflow.
public struct Timestamp: Hashable, Sendable, Comparable {
    public let milliseconds: Int64

    public init(milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
    }

    /// Seconds since 2001-01-01, as Apple's encoders write dates. Nil when that is no date of ours (years 1…9999).
    public init?(appleReference seconds: Double) {
        guard seconds.isFinite, abs(seconds) < 3e11 else { return nil }
        let milliseconds = Int64((seconds * 1000).rounded()) + Self.appleEpoch
        guard Self.range.contains(milliseconds) else { return nil }
        self.milliseconds = milliseconds
    }

    public var appleReference: Double { Double(milliseconds - Self.appleEpoch) / 1000 }

    private static let appleEpoch: Int64 = 978_307_200_000
    /// 0001-01-01 to 9999-12-31.
    static let range: ClosedRange<Int64> = -62_135_596_800_000...253_402_300_799_999

    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }

    /// `2026-02-14T14:00:00.000Z`
    public var iso8601: String {
        String(unsafeUninitializedCapacity: Self.textLength) { buffer in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            return Self.textLength
        }
    }

    /// The length of `iso8601`, which is the same for every instant.
    static let textLength = 24

    /// Writes `iso8601` to a buffer of `textLength` bytes.
    func write(to buffer: UnsafeMutableRawBufferPointer) {
        let day = floorDivide(milliseconds, 86_400_000)
        let rest = milliseconds - day * 86_400_000
        let date = CivilDate(daysSinceEpoch: day)
        date.write(to: buffer)
        buffer[10] = UInt8(ascii: "T")
        writeDigits(rest / 3_600_000, 2, to: buffer, at: 11)
        buffer[13] = UInt8(ascii: ":")
        writeDigits(rest / 60_000 % 60, 2, to: buffer, at: 14)
        buffer[16] = UInt8(ascii: ":")
        writeDigits(rest / 1000 % 60, 2, to: buffer, at: 17)
        buffer[19] = UInt8(ascii: ".")
        writeDigits(rest % 1000, 3, to: buffer, at: 20)
        buffer[23] = UInt8(ascii: "Z")
    }

    public init?(iso8601 text: some StringProtocol) {
        guard let local = LocalTime(text) else { return nil }
        self = local.instant
    }
}

/// A date of the Gregorian calendar, in the years 1…9999.
public struct CivilDate: Hashable, Sendable, Comparable {
    public let year: Int64
    public let month: Int64
    public let day: Int64

    /// Days since 1970-01-01, by Howard Hinnant's `civil_from_days` arithmetic: eras of 400 years from 1 March.
    public init(daysSinceEpoch days: Int64) {
        let shifted = min(max(days, -719_162), 2_932_896) + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    public init?(year: Int64, month: Int64, day: Int64) {
        guard 1...9999 ~= year, 1...12 ~= month, day >= 1 else { return nil }
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length: Int64 =
            month == 2 ? leap ? 29 : 28 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31
        guard day <= length else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    var daysSinceEpoch: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = floorDivide(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// `2026-02-14`
    public var text: String {
        String(unsafeUninitializedCapacity: 10) { buffer in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            return 10
        }
    }

    fileprivate func write(to buffer: UnsafeMutableRawBufferPointer) {
        writeDigits(year, 4, to: buffer, at: 0)
        buffer[4] = UInt8(ascii: "-")
        writeDigits(month, 2, to: buffer, at: 5)
        buffer[7] = UInt8(ascii: "-")
        writeDigits(day, 2, to: buffer, at: 8)
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.year, left.month, left.day) < (right.year, right.month, right.day)
    }
}

/// A time as it was written down: the day on the wall calendar of whoever wrote it, and the instant.
public struct LocalTime: Sendable, Equatable {
    public let day: CivilDate
    public let instant: Timestamp
    /// How far the wall clock was ahead of UTC.
    public let offsetMinutes: Int64

    /// `2026-02-14T15:00+01:00`, with or without seconds, fraction, colon in the offset; no offset means UTC. A bare
    /// date is its midnight. Nil also when the offset leads out of the years 1…9999.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        guard let time = text.withUTF8({ LocalTime(UnsafeRawBufferPointer($0)) }) else { return nil }
        self = time
    }

    init?(_ text: UnsafeRawBufferPointer) {
        var reader = DigitReader(bytes: text)
        guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let dayOfMonth = reader.number(2), let day = CivilDate(year: year, month: month, day: dayOfMonth)
        else { return nil }
        var milliseconds: Int64 = 0
        var offsetMinutes: Int64 = 0
        if !reader.atEnd {
            guard reader.take("T") || reader.take("t") || reader.take(" "), let time = reader.time() else { return nil }
            milliseconds = time
            guard let offset = reader.offset(), reader.atEnd else { return nil }
            offsetMinutes = offset
            milliseconds -= offset * 60_000
        }
        milliseconds += day.daysSinceEpoch * 86_400_000
        guard Timestamp.range.contains(milliseconds) else { return nil }
        self.day = day
        self.offsetMinutes = offsetMinutes
        instant = Timestamp(milliseconds: milliseconds)
    }
}

private struct DigitReader {
    let bytes: UnsafeRawBufferPointer
    var index = 0

    var atEnd: Bool { index == bytes.count }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }

    /// Inlined, so that the loop over a known count goes away: every event has up to three times.
    @inline(__always)
    mutating func number(_ count: Int) -> Int64? {
        guard bytes.count - index >= count else { return nil }
        var (value, isNumber) = (Int64(0), true)
        for place in 0..<count {
            let digit = bytes[index + place] &- 48
            isNumber = isNumber && digit < 10
            value = value &* 10 &+ Int64(digit)
        }
        guard isNumber else { return nil }
        index += count
        return value
    }

    /// `15:00`, `15:00:30`, `15:00:30.25` as milliseconds of the day.
    mutating func time() -> Int64? {
        guard let hour = number(2), hour < 24, take(":"), let minute = number(2), minute < 60 else { return nil }
        var milliseconds = (hour * 60 + minute) * 60_000
        guard take(":") else { return milliseconds }
        guard let second = number(2), second <= 60 else { return nil }
        milliseconds += second * 1000
        if take(".") || take(",") {
            var unit: Int64 = 100
            let start = index
            while let digit = number(1) {
                milliseconds += digit * unit
                unit /= 10
            }
            if index == start { return nil }
        }
        return milliseconds
    }

    /// `Z`, `+01:00`, `-0500`, `+01` in minutes; nothing is UTC.
    mutating func offset() -> Int64? {
        if atEnd || take("Z") || take("z") { return 0 }
        let sign: Int64
        if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
        guard let hours = number(2), hours <= 18 else { return nil }
        _ = take(":")
        let minutes = atEnd ? 0 : number(2)
        guard let minutes, minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes)
    }
}

func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
    value % by < 0 ? value / by - 1 : value / by
}

/// The last `count` digits of a number.
func writeDigits(_ value: Int64, _ count: Int, to buffer: UnsafeMutableRawBufferPointer, at start: Int) {
    var value = value
    for index in (start..<start + count).reversed() {
        buffer[index] = UInt8(truncatingIfNeeded: 48 + value % 10)
        value /= 10
    }
}
