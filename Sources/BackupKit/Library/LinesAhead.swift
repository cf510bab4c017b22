/// Lines of event logs that are dated ahead of this device's clock. Such a time does not say when a line was written: it is as
/// old as its first import, wherever it stands later, for logs are moved and joined.
struct LinesAhead {
    private static let memory = "events dated ahead"

    private let store: Store
    private let now: Timestamp
    private let known: HeldSince
    private var new: [UInt64] = []

    init(_ store: Store) throws {
        (self.store, now) = (store, store.now())
        known = try store.heldSince(by: Self.memory)
    }

    /// The event with the times that it had when its line was first taken, also when its time has come since.
    mutating func dated(_ event: Record) -> Record {
        let isAhead = max(event.latestTime, event.createdAt) > now
        guard isAhead || !known.isEmpty else { return event }
        let mark = store.hasher.text(event.fields, after: store.hasher.text(event.localID))
        if let since = known[mark] { return event.noNewer(than: since) }
        if isAhead { new.append(mark) }
        return event
    }

    /// Must run inside `batch`.
    func remember() throws {
        guard !new.isEmpty else { return }
        try store.noteImported(path: Self.memory, name: "", brought: [], since: [now: new], isPart: true)
    }
}
