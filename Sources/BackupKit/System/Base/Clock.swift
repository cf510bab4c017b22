import Glibc

/// Where the time comes from; tests bring their own.
public struct Clock: Sendable {
    public let now: @Sendable () -> Timestamp

    public init(_ now: @escaping @Sendable () -> Timestamp) { self.now = now }

    public static let system = Clock {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// A clock that stands still, as `SOURCE_DATE_EPOCH` asks for.
    public static func fixed(_ time: Timestamp) -> Clock { Clock { time } }
}

/// Random identifiers; not secret.
public enum RandomID {
    /// 32 hexadecimal digits.
    public static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        return hex(generator.next()) + hex(generator.next())
    }

    private static func hex(_ value: UInt64) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}

/// Sleeps for so many seconds, or less when a signal comes.
func pause(_ seconds: Double) {
    if seconds > 0 { usleep(UInt32(min(seconds, 4000) * 1e6)) }
}

/// Seconds of a clock that nobody sets.
public func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
