/// A hybrid logical clock: this device's clock, but never behind the times that the store has seen. What people decide,
/// delete, restore or edit is later than all that they could know of, also on a device whose clock is a day behind.
struct HybridClock {
    /// How far it follows times that are ahead of the device's clock: seven days. A wrong day is a common mistake; a record
    /// that is dated years ahead must not set the times of everything that is written after it.
    static let reach: Int64 = 7 * 86_400_000

    private let device: Clock
    private(set) var latest = Timestamp.distantPast
    /// What the device's clock said when it was asked last: most times are before that, and need no new look.
    private var own: Timestamp

    init(_ device: Clock, seen: Timestamp? = nil) {
        self.device = device
        own = device.now()
        if let seen, Self.isInReach(seen, of: own) { latest = seen }
    }

    func now() -> Timestamp {
        let own = device.now()
        return latest > own && Self.isInReach(latest, of: own) ? latest.next : own
    }

    mutating func see(_ time: Timestamp) {
        if time > latest, reaches(time) { latest = time }
    }

    mutating func reaches(_ time: Timestamp) -> Bool {
        if Self.isInReach(time, of: own) { return true }
        own = device.now()
        return Self.isInReach(time, of: own)
    }

    static func isInReach(_ time: Timestamp, of own: Timestamp) -> Bool {
        time.milliseconds <= own.milliseconds + reach
    }
}

extension Store {
    /// The time for whatever is written or decided now.
    public func now() -> Timestamp { hybridClock.now() }

    /// Notes the times of a record that came from somewhere, also of one whose times are about to be set back.
    func see(_ record: Record) { see(max(record.latestTime, record.createdAt)) }

    func see(_ time: Timestamp) { hybridClock.see(time) }

    private static let latestTime = "latest_time"
    static let latestTimeRow = "meta \(latestTime)"

    /// Milliseconds since 1970; nil for a store that has seen nothing yet.
    func latestTimeSeen() throws -> Timestamp? {
        try meta(Self.latestTime).flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }
    }

    /// Must run inside `write`.
    func saveLatestTimeSeen() throws {
        try database.statement("INSERT OR REPLACE INTO meta VALUES (?, ?)")
            .bind(1, Self.latestTime).bind(2, String(hybridClock.latest.milliseconds)).run()
    }
}
