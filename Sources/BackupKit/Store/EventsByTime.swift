/// The living events of a store by what they say. It is when they were that is read of all; more is asked of those only
/// whose time comes up.
final class EventsByTime {
    /// The events of one time, by the hashes of what they say.
    private struct Group {
        /// How many have no id and say so in these words.
        var written: [UInt64: Int] = [:]
        /// How many have an id and mean this.
        var given: [UInt64: Int] = [:]
        /// How many mean this.
        var all: [UInt64: Int] = [:]
        /// The rows of those without an id, by what they mean.
        var rows: [UInt64: [Int64]] = [:]
    }

    private let store: Store
    private var events: [(time: Timestamp, change: Int64)] = []
    /// Rows that were written since.
    private var late: [Timestamp: [Int64]] = [:]
    private var readThrough: Int64
    private var groups: [Timestamp: Group] = [:]

    init(_ store: Store) throws {
        self.store = store
        readThrough = store.changeCounter
        var found: [(time: Timestamp, change: Int64)] = []
        try Self.forEachTime(in: store, after: .min) { found.append(($0, $1)) }
        events = found.sorted { ($0.time, $0.change) < ($1.time, $1.change) }
    }

    private static func forEachTime(
        in store: Store, after change: Int64, _ body: (Timestamp, _ change: Int64) -> Void
    ) throws {
        try store.forEachEvent(after: change) { change, bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            let times = try store.ifReadable { try Fields.strings(named: ["time", "eventTime"], of: text) } ?? []
            if let time = times.compactMap(\.self).first.flatMap({ LocalTime($0) })?.instant { body(time, change) }
        }
    }

    /// Events without an id that say so in these words.
    func written(_ text: String, at time: Timestamp) throws -> Int {
        try group(time).written[store.hasher.text(text)] ?? 0
    }

    /// Events with an id that mean this.
    func given(_ meaning: String, at time: Timestamp) throws -> Int {
        try group(time).given[store.hasher.text(meaning)] ?? 0
    }

    /// Events that mean this.
    func all(_ meaning: String, at time: Timestamp) throws -> Int {
        try group(time).all[store.hasher.text(meaning)] ?? 0
    }

    /// Another event without an id was written.
    func add(_ text: String, _ meaning: String, at time: Timestamp) throws {
        var group = try group(time)
        group.written[store.hasher.text(text), default: 0] += 1
        group.all[store.hasher.text(meaning), default: 0] += 1
        groups[time] = group
    }

    /// The first event without an id that means this and passes.
    func made(
        _ meaning: String, at time: Timestamp, where passes: (Store.StoredRecord) throws -> Bool
    ) throws -> Store.StoredRecord? {
        for change in try group(time).rows[store.hasher.text(meaning)] ?? [] {
            guard let stored = try store.ifSound({ try store.stored(change: change) }) ?? nil,
                DeterministicID.isMade(stored.record.localID), !stored.record.isDeleted,
                try EventText.meanings(Fields.parse(stored.record.fields)).contains(where: { sameBytes($0, meaning) })
            else { continue }
            if try passes(stored) { return stored }
        }
        return nil
    }

    /// The same, but each is given once.
    func takeMade(
        _ meaning: String, at time: Timestamp, where passes: (Store.StoredRecord) throws -> Bool
    ) throws -> Store.StoredRecord? {
        guard let stored = try made(meaning, at: time, where: passes) else { return nil }
        groups[time]?.rows[store.hasher.text(meaning)]?.removeAll { $0 == stored.change }
        return stored
    }

    /// The living events without an id that mean this.
    func allMade(_ meaning: String, at time: Timestamp) throws -> [Record] {
        var found: [Record] = []
        _ = try made(meaning, at: time) {
            found.append($0.record)
            return false
        }
        return found
    }

    /// Events of this time were written since.
    func readAgain(_ time: Timestamp) { groups[time] = nil }

    private func group(_ time: Timestamp) throws -> Group {
        if let known = groups[time] { return known }
        var group = Group()
        let first = firstIndex(below: events.count) { events[$0].time >= time }
        let changes = try events[first...].prefix { $0.time == time }.map(\.change) + newRows(at: time)
        for change in changes {
            guard let stored = try store.ifSound({ try store.stored(change: change) }) ?? nil, !stored.record.isDeleted,
                let fields = try store.ifReadable({ try Fields.parse(stored.record.fields) })
            else { continue }
            let hasID = EventText.id(in: fields) != nil
            for meaning in try EventText.meanings(fields) {
                let hash = store.hasher.text(meaning)
                group.all[hash, default: 0] += 1
                if hasID { group.given[hash, default: 0] += 1 } else { group.rows[hash, default: []].append(change) }
            }
            guard !hasID else { continue }
            for text in try EventText.asWritten(fields) { group.written[store.hasher.text(text), default: 0] += 1 }
        }
        groups[time] = group
        return group
    }

    private func newRows(at time: Timestamp) throws -> [Int64] {
        if store.changeCounter > readThrough {
            var found: [(Timestamp, Int64)] = []
            try Self.forEachTime(in: store, after: readThrough) { found.append(($0, $1)) }
            for (time, change) in found { late[time, default: []].append(change) }
            readThrough = store.changeCounter
        }
        return late[time] ?? []
    }
}
