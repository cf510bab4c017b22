/// Lines of event logs that are dated ahead of this device's clock. Such a time does not say when a line was written: it is as
/// old as its first import, wherever it stands later, for logs are moved and joined.
struct LinesAhead {
    private static let memory = "events dated ahead"

    private let store: Store
    private let now: Timestamp
    private let known: HeldSince
    private var new: [Timestamp: [UInt64]] = [:]

    init(_ store: Store) throws {
        (self.store, now) = (store, store.now())
        known = try store.heldSince(by: Self.memory)
    }

    /// The event with the times that it had when its line was first taken, also when its time has come since.
    func dated(_ event: Record) -> Record {
        guard !known.isEmpty, let since = known[mark(event)] else { return event }
        return event.noNewer(than: since)
    }

    /// Notes a line that was taken. Where its event stays deleted, the line is older than the delete at each later import, too.
    mutating func note(_ event: Record, _ outcome: Outcome) throws {
        guard max(event.latestTime, event.createdAt) > now else { return }
        let mark = mark(event)
        guard known[mark] == nil else { return }
        let deletedAt = try store.record(outcome.id)?.record.deletedAt
        new[min(now, deletedAt?.previous ?? now), default: []].append(mark)
    }

    private func mark(_ event: Record) -> UInt64 {
        store.hasher.text(event.fields, after: store.hasher.text(event.localID))
    }

    /// Must run inside `batch`.
    func remember() throws {
        guard !new.isEmpty else { return }
        try store.noteImported(path: Self.memory, name: "", brought: [], since: new, isPart: true)
    }
}
