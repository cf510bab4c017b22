import BackupKit
import Glibc
import Synchronization

/// Draws progress at most ten times a second. Between two drawings a report costs a look at the clock.
final class ProgressBar: Sendable {
    private static let interval: UInt64 = 100_000_000
    /// What is over sooner than this shows no bar.
    private static let patience: UInt64 = 300_000_000

    private let draw: @Sendable ((Int) -> String) -> Void
    private let nextDrawing: Atomic<UInt64>
    private let phase: Mutex<Phase>

    private struct Phase {
        var name: String
        var start: UInt64
        var firstDone: UInt64
    }

    init(draw: @escaping @Sendable ((Int) -> String) -> Void) {
        self.draw = draw
        let now = UInt64(monotonicSeconds() * 1e9)
        nextDrawing = Atomic(now + Self.patience)
        phase = Mutex(Phase(name: "", start: now, firstDone: 0))
    }

    func report(_ event: ProgressEvent) {
        let now = UInt64(monotonicSeconds() * 1e9)
        let next = nextDrawing.load(ordering: .relaxed)
        guard now >= next,
            nextDrawing.compareExchange(expected: next, desired: now + Self.interval, ordering: .relaxed).exchanged
        else { return }
        let phase = phase.withLock { phase in
            // Drawings of the first phase begin late, so its time counts from the bar's beginning.
            if phase.name.isEmpty {
                phase.name = event.phase
            } else if phase.name != event.phase {
                phase = Phase(name: event.phase, start: now, firstDone: event.done)
            }
            return phase
        }
        let seconds = Double(now &- phase.start) / 1e9
        draw { Self.line(event, since: phase.firstDone, seconds: seconds, columns: $0) }
    }

    /// "exporting [=======>      ]  52%  1.2 GB of 2.3 GB  310 MB/s  4 s left  PDFs/a.pdf", in `columns` columns.
    static func line(_ event: ProgressEvent, since first: UInt64, seconds: Double, columns: Int) -> String {
        let amount: (UInt64) -> String = { number in
            switch event.unit {
            case .bytes: HumanText.bytes(number)
            case .items: HumanText.count(Int(clamping: number))
            }
        }
        let advanced = event.done > first ? event.done - first : 0
        let rate = seconds > 0.05 ? Double(advanced) / seconds : 0
        var parts: [String] = []
        if let total = event.total, total > 0 {
            let share = min(1, Double(event.done) / Double(total))
            parts.append(padded("\(Int(share * 100))%", to: 4, right: true))
            parts.append("\(amount(event.done)) of \(amount(total))")
            if rate > 0 {
                parts.append("\(amount(UInt64(min(rate, 1e18))))/s")
                let left = event.done < total ? Double(total - event.done) / rate : 0
                parts.append("\(HumanText.duration(left)) left")
            }
            let phase = printable(event.phase)
            let room = columns - displayWidth(phase) - parts.reduce(0) { $0 + displayWidth($1) + 2 } - 3
            if room >= 8 { return "\(phase) \(bar(share, min(room, 24)))  \(parts.joined(separator: "  "))" }
        } else {
            parts.append(amount(event.done))
            if rate > 0 { parts.append("\(amount(UInt64(min(rate, 1e18))))/s") }
            if let item = event.item { parts.append(printable(item)) }
        }
        return truncated(([printable(event.phase)] + parts).joined(separator: "  "), to: columns)
    }

    private static func bar(_ share: Double, _ columns: Int) -> String {
        let full = Int(share * Double(columns))
        let head = full < columns && full > 0 ? ">" : ""
        let done = String(repeating: "=", count: full - head.count)
        return "[" + padded(done + head, to: columns) + "]"
    }
}
