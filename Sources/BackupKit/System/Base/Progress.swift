/// How far a piece of work has come. `done` and `total` count bytes, or things where the phase has no bytes.
public struct ProgressEvent: Sendable, Equatable {
    public enum Unit: Sendable {
        case bytes
        case items
    }

    /// What is being done, in one or two words: "reading", "verifying".
    public let phase: String
    public let done: UInt64
    /// Nil while nobody knows.
    public let total: UInt64?
    public let unit: Unit
    /// The path or record at hand. Foreign text: whoever shows it makes it printable.
    public let item: String?

    public init(_ phase: String, done: UInt64, of total: UInt64? = nil, unit: Unit = .bytes, item: String? = nil) {
        self.phase = phase
        self.done = done
        // What grows while it is read would else be done by more than all of it.
        self.total = total.map { max($0, done) }
        self.unit = unit
        self.item = item
    }
}

/// Where long work reports how far it is. Called from any thread, once per file or per megabyte, not per byte;
/// `done` never falls within a phase as one thread sees it, but two threads may report out of order.
public struct Progress: Sendable {
    public let report: @Sendable (ProgressEvent) -> Void

    public init(report: @escaping @Sendable (ProgressEvent) -> Void) {
        self.report = report
    }

    public static let none = Progress { _ in }
}
