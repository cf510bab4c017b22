/// A value read from TOML 1.0 (https://toml.io/en/v1.0.0), with the place it was written at.
public struct TOMLValue: Sendable, Equatable {
    public indirect enum Content: Sendable, Equatable {
        case string(String)
        case integer(Int)
        case float(Double)
        case boolean(Bool)
        /// A date, a time or both, as written.
        case date(String)
        case array([TOMLValue])
        case table(TOMLTable)
    }

    public let content: Content
    public let position: TOMLPosition
}

public struct TOMLPosition: Sendable, Equatable {
    public let line: Int
    /// Counted in characters from 1.
    public let column: Int
}

/// Keys in the order in which they were written.
public struct TOMLTable: Sendable, Equatable {
    public let entries: [(key: String, value: TOMLValue)]

    public subscript(key: String) -> TOMLValue? {
        entries.first { $0.key == key }?.value
    }

    public static func == (left: TOMLTable, right: TOMLTable) -> Bool {
        left.entries.elementsEqual(right.entries) { $0.key == $1.key && $0.value == $1.value }
    }
}

public enum TOML {
    /// Deeper nesting, of brackets or of dotted keys, is refused: the reader calls itself once a level.
    public static let maximumDepth = 64
    public static let maximumBytes = 4 << 20
    /// What has more is no configuration, and nobody reads on.
    public static let maximumMistakes = 100

    /// Reads a whole document, or as much of it as is right.
    public static func read(_ bytes: [UInt8]) -> (table: TOMLTable, mistakes: [TOMLMistake]) {
        guard bytes.count <= maximumBytes else {
            let message = "too large for a configuration file (limit: \(maximumBytes) bytes)"
            return (TOMLTable(entries: []), [TOMLMistake(position: nil, message: message)])
        }
        var reader = TOMLReader(bytes: bytes)
        return reader.readDocument()
    }
}

/// What keeps a place of a document from being read.
public struct TOMLMistake: Error, Equatable {
    /// Nil where it is the whole document.
    public let position: TOMLPosition?
    public let message: String

    func error(in file: String) -> BackupError {
        let place = position.map { "line \($0.line), column \($0.column): " } ?? ""
        return BackupError(.failed, place + message, at: file)
    }
}

/// A table while it is being read. TOML lets a table be opened in several ways, each only once.
final class TOMLTableBuilder {
    enum Origin {
        /// Named on the way to another, as `a` in `[a.b]`: may still be opened by its own header.
        case implied
        case header
        /// Made by `a.b = 1` in the table `owner`: may grow by more dotted keys there, never by a header.
        case dotted
        /// `{ … }`, closed for good.
        case inline
    }

    enum Content {
        case value(TOMLValue.Content)
        case table(TOMLTableBuilder)
        case tables(List)
    }

    /// The tables of `[[name]]`. A class, so that a long list is not copied for each table added to it.
    final class List {
        private(set) var tables: [TOMLTableBuilder] = []

        func add() -> TOMLTableBuilder {
            let table = TOMLTableBuilder(.header)
            tables.append(table)
            return table
        }
    }

    var origin: Origin
    private var keys: [(key: String, position: TOMLPosition)] = []
    private var contents: [String: Content] = [:]

    init(_ origin: Origin) {
        self.origin = origin
    }

    subscript(key: String) -> Content? { contents[key] }

    func add(_ key: String, at position: TOMLPosition, _ content: Content) {
        keys.append((key, position))
        contents[key] = content
    }

    func finish() -> TOMLTable {
        TOMLTable(
            entries: keys.compactMap { key, position in
                contents[key].map { (key, TOMLValue(content: finished($0, at: position), position: position)) }
            })
    }

    private func finished(_ content: Content, at position: TOMLPosition) -> TOMLValue.Content {
        switch content {
        case .value(let value): value
        case .table(let table): .table(table.finish())
        case .tables(let list):
            .array(list.tables.map { TOMLValue(content: .table($0.finish()), position: position) })
        }
    }
}
