/// Where a file was found, and with it the name under which a store remembers what the file said.
enum FileOrigin {
    /// It lies at its own place.
    case place
    /// It was unpacked from a backup, so its path says nothing. imbib's backups of a library follow each other as the versions
    /// of a file do; in ours each record has a time of its own.
    case backup(String, isImbib: Bool)

    func memory(of path: String) -> String? {
        switch self {
        case .place: Directory.real(path)
        case .backup(_, let isImbib): isImbib ? "imbib backup/\(lastComponent(of: path))" : nil
        }
    }
}

/// The ages of the notes or settings of a file. An app saves all of them to change one, so each counts as old as the file
/// was when it first had this text.
struct FileAges {
    private let store: Store
    private let memory: String
    private let time: Timestamp
    private let known: HeldSince
    private var said: [Timestamp: [UInt64]] = [:]

    /// `time` is that of the file.
    init?(_ store: Store, of path: String, _ origin: FileOrigin, _ time: Timestamp) throws {
        guard let memory = origin.memory(of: path) else { return nil }
        (self.store, self.memory, self.time) = (store, memory, time)
        known = try store.heldSince(by: memory)
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
        try store.noteImported(path: memory, name: "", brought: [], since: said, isPart: false)
    }
}
