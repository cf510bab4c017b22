/// When a snapshot was taken, as restic writes it: an instant to the nanosecond, and the wall clock of whoever took it.
public struct SnapshotTime: Sendable, Hashable, Comparable {
    public let instant: Timestamp
    /// Beyond the milliseconds of `instant`; they decide between snapshots of the same moment.
    private let nanoseconds: Int32
    public let offsetMinutes: Int64

    /// `2026-11-21T02:02:37.163901782+01:00`
    public init?(_ text: some StringProtocol) {
        guard let local = LocalTime(text) else { return nil }
        instant = local.instant
        offsetMinutes = local.offsetMinutes
        nanoseconds = SnapshotTime.beyondMilliseconds(text)
    }

    public init(_ instant: Timestamp, offsetMinutes: Int64 = 0) {
        (self.instant, self.offsetMinutes, nanoseconds) = (instant, offsetMinutes, 0)
    }

    private static func beyondMilliseconds(_ text: some StringProtocol) -> Int32 {
        guard let point = text.utf8.firstIndex(of: UInt8(ascii: ".")) else { return 0 }
        var value: Int32 = 0
        var digits = 0
        for byte in text.utf8[point...].dropFirst() {
            guard case let digit = byte &- 48, digit < 10, digits < 9 else { break }
            if digits >= 3 { value = value * 10 + Int32(digit) }
            digits += 1
        }
        while digits < 9 {
            if digits >= 3 { value *= 10 }
            digits += 1
        }
        return value
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.instant, left.nanoseconds) < (right.instant, right.nanoseconds)
    }

    private var wallMinutes: Int64 { floorDivide(instant.milliseconds, 60_000) + offsetMinutes }

    /// The day on the wall calendar of whoever took it.
    public var day: CivilDate { CivilDate(daysSinceEpoch: floorDivide(wallMinutes, 1440)) }

    /// The hour of that day.
    public var hour: Int64 { floorDivide(wallMinutes, 60) - floorDivide(wallMinutes, 1440) * 24 }

    /// This time less a span of the calendar, on the same wall clock. A day that the month does not have runs over into the
    /// next, as Go's calendar does it: a month before 31 March is 3 March.
    func less(_ span: CalendarSpan) -> SnapshotTime {
        let day = day
        let months = day.year * 12 + day.month - 1 - span.years * 12 - span.months
        guard
            let first = CivilDate(
                year: floorDivide(months, 12), month: months - floorDivide(months, 12) * 12 + 1, day: 1)
        else { return SnapshotTime(Timestamp(milliseconds: .min)) }
        let days = first.daysSinceEpoch + day.day - 1 - span.days
        let moved = instant.milliseconds + (days - day.daysSinceEpoch) * 86_400_000 - span.hours * 3_600_000
        return SnapshotTime(Timestamp(milliseconds: moved), nanoseconds, offsetMinutes)
    }

    private init(_ instant: Timestamp, _ nanoseconds: Int32, _ offsetMinutes: Int64) {
        (self.instant, self.nanoseconds, self.offsetMinutes) = (instant, nanoseconds, offsetMinutes)
    }
}

extension CivilDate {
    /// The week by ISO 8601, and the year that it belongs to: 1 January 2021 lies in week 53 of 2020.
    public var isoWeek: (year: Int64, week: Int64) {
        // A week belongs to the year that its Thursday lies in; 1 January 1970 was one.
        let days = daysSinceEpoch
        let thursday = days - (days + 3 - floorDivide(days + 3, 7) * 7) + 3
        let year = CivilDate(daysSinceEpoch: thursday).year
        let first = CivilDate(year: year, month: 1, day: 1)?.daysSinceEpoch ?? thursday
        return (year, (thursday - first) / 7 + 1)
    }
}

/// `1y5m7d2h`: a span of years, months, days and hours, as restic writes it.
public struct CalendarSpan: Sendable, Hashable {
    public let years: Int64
    public let months: Int64
    public let days: Int64
    public let hours: Int64

    public init?(_ text: some StringProtocol) {
        var values: [UInt8: Int64] = [:]
        var number: Int64?
        for byte in text.utf8 {
            if case let digit = byte &- 48, digit < 10 {
                number = (number ?? 0) * 10 + Int64(digit)
                // Longer than all of the calendar, and short enough to count with.
                guard let number, number < 10_000_000 else { return nil }
            } else {
                guard "ymdh".utf8.contains(byte), let count = number, values[byte] == nil else { return nil }
                values[byte] = count
                number = nil
            }
        }
        guard number == nil, values.values.contains(where: { $0 > 0 }) else { return nil }
        years = values[UInt8(ascii: "y")] ?? 0
        months = values[UInt8(ascii: "m")] ?? 0
        days = values[UInt8(ascii: "d")] ?? 0
        hours = values[UInt8(ascii: "h")] ?? 0
    }

    /// For a span of time without a place in the calendar; a month has 30 days.
    public var approximateSeconds: Int64 { ((years * 365 + months * 30 + days) * 24 + hours) * 3600 }

    public var text: String {
        [(years, "y"), (months, "m"), (days, "d"), (hours, "h")].filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }.joined()
    }
}
