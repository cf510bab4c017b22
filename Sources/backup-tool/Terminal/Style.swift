import BackupKit
import Glibc

/// Colors, or none. One hue a meaning; nothing is said by color alone.
struct Style: Sendable {
    let isOn: Bool

    static let plain = Style(isOn: false)

    func bold(_ text: String) -> String { wrap(text, "1") }
    func dim(_ text: String) -> String { wrap(text, "2") }
    func error(_ text: String) -> String { wrap(text, "1;31") }
    func warning(_ text: String) -> String { wrap(text, "1;33") }
    func good(_ text: String) -> String { wrap(text, "32") }
    func changed(_ text: String) -> String { wrap(text, "33") }
    func bad(_ text: String) -> String { wrap(text, "31") }

    private func wrap(_ text: String, _ code: String) -> String {
        isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

/// One of the two streams, and what it is connected to.
struct Stream: Sendable {
    let descriptor: Int32
    let isTerminal: Bool
    /// Whether it understands colors and takes away what was drawn.
    let obeysControls: Bool
    /// Nil when it is no terminal: nothing is cut there.
    let columns: Int?
    let style: Style

    init(_ descriptor: Int32, color: Bool, environment: Environment) {
        self.descriptor = descriptor
        isTerminal = isatty(descriptor) == 1
        // https://no-color.org: "when present and not an empty string"; `Environment` takes an empty one as unset.
        let terminal = environment["TERM"]
        obeysControls = isTerminal && terminal != nil && terminal != "dumb"
        style = Style(isOn: color && obeysControls && environment["NO_COLOR"] == nil)
        let asked = environment["COLUMNS"].flatMap { Int($0) } ?? Terminal.columns(descriptor)
        columns = isTerminal ? (asked > 0 ? asked : 80) : nil
    }

    /// Lines of prose are easiest to read within these bounds.
    var textColumns: Int { min(max(columns ?? 80, 36), 100) }
}
