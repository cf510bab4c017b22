/// A time as Go writes it into JSON: RFC 3339, up to nine digits of fraction, the offset of whoever wrote it.
public struct GoTime: Sendable, Equatable {
    /// Seconds since 1970, and the nanoseconds behind them, 0 to 999,999,999.
    public let seconds: Int64
    public let nanoseconds: Int64
    public let offsetMinutes: Int64

    /// In UTC. What lies outside the years 1 to 9999 becomes the nearest that can be written.
    public init(seconds: Int64, nanoseconds: Int64 = 0, offsetMinutes: Int64 = 0) {
        let bounds = Timestamp.range.lowerBound / 1000...Timestamp.range.upperBound / 1000
        self.seconds = min(max(seconds, bounds.lowerBound), bounds.upperBound)
        self.nanoseconds = min(max(nanoseconds, 0), 999_999_999)
        self.offsetMinutes = offsetMinutes
    }

    /// Nanoseconds since 1970, rounded down to whole seconds before it.
    public init(nanosecondsSince1970 time: Int64) {
        let seconds = floorDivide(time, 1_000_000_000)
        self.init(seconds: seconds, nanoseconds: time &- seconds &* 1_000_000_000)
    }

    public init(_ time: Timestamp) {
        let rest = time.milliseconds % 1000
        let positive = rest < 0 ? rest + 1000 : rest
        self.init(seconds: (time.milliseconds - positive) / 1000, nanoseconds: positive * 1_000_000)
    }

    public var timestamp: Timestamp { Timestamp(milliseconds: seconds * 1000 + nanoseconds / 1_000_000) }

    /// The same instant, whatever the offsets.
    public func isSameInstant(as other: GoTime) -> Bool {
        seconds == other.seconds && nanoseconds == other.nanoseconds
    }

    init?(parsing text: UnsafeRawBufferPointer) {
        func digits(_ start: Int, _ count: Int) -> Int64? {
            guard start + count <= text.count else { return nil }
            var value: Int64 = 0
            for index in start..<start + count {
                guard text[index] >= 48, text[index] <= 57 else { return nil }
                value = value * 10 + Int64(text[index] - 48)
            }
            return value
        }
        func isAt(_ index: Int, _ byte: Unicode.Scalar) -> Bool {
            index < text.count && text[index] == UInt8(ascii: byte)
        }
        guard let year = digits(0, 4), isAt(4, "-"), let month = digits(5, 2), isAt(7, "-"), let day = digits(8, 2),
            isAt(10, "T"), let hour = digits(11, 2), isAt(13, ":"), let minute = digits(14, 2), isAt(16, ":"),
            let second = digits(17, 2), hour < 24, minute < 60, second < 61,
            // The year 0, which Go can write, becomes the year 1, which our calendar begins with.
            let date = CivilDate(year: max(year, 1), month: month, day: day)
        else { return nil }
        var index = 19
        var nanoseconds: Int64 = 0
        if isAt(index, ".") {
            index += 1
            let start = index
            var unit: Int64 = 100_000_000
            while let digit = digits(index, 1) {
                nanoseconds += digit * unit
                unit /= 10
                index += 1
            }
            guard index > start else { return nil }
        }
        var offset: Int64 = 0
        if isAt(index, "Z") {
            index += 1
        } else {
            guard isAt(index, "+") || isAt(index, "-"), let hours = digits(index + 1, 2), isAt(index + 3, ":"),
                let minutes = digits(index + 4, 2), hours < 24, minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (text[index] == UInt8(ascii: "-") ? -1 : 1)
            index += 6
        }
        guard index == text.count else { return nil }
        let clock = hour * 3600 + minute * 60 + second - offset * 60
        self.init(seconds: date.daysSinceEpoch * 86400 + clock, nanoseconds: nanoseconds, offsetMinutes: offset)
    }

    public init?(_ text: String) {
        var text = text
        guard let time = text.withUTF8({ GoTime(parsing: UnsafeRawBufferPointer($0)) }) else { return nil }
        self = time
    }

    /// The calendar date and the seconds of that day, where it was written.
    var wallClock: (date: CivilDate, second: Int64) {
        let local = seconds + offsetMinutes * 60
        let second = ((local % 86400) + 86400) % 86400
        return (CivilDate(daysSinceEpoch: (local - second) / 86400), second)
    }

    public var text: String {
        var out: [UInt8] = []
        append(to: &out)
        return String(decoding: out, as: UTF8.self)
    }

    func append(to out: inout [UInt8]) {
        // The longest is 2026-11-21T03:00:00.123456789+01:00.
        withUnsafeTemporaryAllocation(byteCount: 40, alignment: 1) { buffer in
            var length = 0
            func append(_ value: Int64, _ count: Int) {
                writeDigits(value, count, to: buffer, at: length)
                length += count
            }
            func append(_ mark: Unicode.Scalar) {
                buffer[length] = UInt8(ascii: mark)
                length += 1
            }
            let (date, second) = wallClock
            append(date.year, 4)
            append("-")
            append(date.month, 2)
            append("-")
            append(date.day, 2)
            append("T")
            append(second / 3600, 2)
            append(":")
            append(second / 60 % 60, 2)
            append(":")
            append(second % 60, 2)
            if nanoseconds > 0 {
                append(".")
                append(nanoseconds, 9)
                while buffer[length - 1] == UInt8(ascii: "0") { length -= 1 }
            }
            if offsetMinutes == 0 {
                append("Z")
            } else {
                append(offsetMinutes < 0 ? "-" : "+")
                append(abs(offsetMinutes) / 60, 2)
                append(":")
                append(abs(offsetMinutes) % 60, 2)
            }
            out += UnsafeRawBufferPointer(rebasing: buffer[..<length])
        }
    }
}
