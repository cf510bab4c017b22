/// The ages of the notes or settings of a file. An app saves all of them to change one, so each counts as old as the file
/// was when it first had this text.
struct FileAges {
    private let store: Store
    private let path: String
    private let time: Timestamp
    private let known: HeldSince
    private var said: [Timestamp: [UInt64]] = [:]

    /// `time` is that of the file.
    init?(_ store: Store, ofFile path: String, _ time: Timestamp) throws {
        guard let path = Directory.real(path) else { return nil }
        (self.store, self.path, self.time) = (store, path, time)
        known = try store.heldSince(by: path)
    }

    /// Since when the file has had this text under that name, and whether it had it at its last import.
    mutating func note(_ name: String, _ text: String) -> (since: Timestamp, isKnown: Bool) {
        let mark = store.hasher.text(text, after: store.hasher.text(name))
        let since = min(known[mark] ?? time, time)
        // The time of a file that is dated ahead is the time of its import.
        said[min(since, store.now()), default: []].append(mark)
        return (since, known[mark] != nil)
    }

    /// Must run inside `batch`, when all of the file was taken.
    func remember() throws {
        try store.noteImported(path: path, name: "", brought: [], since: said, isPart: false)
    }
}
