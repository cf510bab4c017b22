/// Chooses records: words that must all be found, in any case. `field=word` looks into one field, a plain word into every
/// value, the cite key, the ids and the type. `citeKey=` and `localId=` need the whole value. A record's name as lists print
/// it, `zone/name`, chooses that record alone. A month or a day, such as 2026-03, also chooses notes that were written or
/// changed then (UTC).
public struct RecordQuery: Sendable, Equatable {
    private struct Term: Sendable, Equatable {
        var field: String?
        var word: String

        init(_ text: Substring) {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                word = text.lowercased()
                return
            }
            field = String(text[..<equals]).lowercased()
            word = text[text.index(after: equals)...].lowercased()
        }
    }

    /// One of them is enough; of each all terms must match.
    private let choices: [[Term]]
    public let texts: [String]

    public init(_ texts: [String]) {
        self.texts = texts
        choices = texts.map { $0.split(separator: " ").map(Term.init) }
    }

    /// Whether a query has no words, and would so choose everything.
    public var isBlank: Bool { choices.contains { $0.isEmpty || $0.contains { $0.word.isEmpty } } }

    public func matches(_ record: Record) -> Bool { !matching(record).isEmpty }

    /// The places of the queries that choose this record.
    func matching(_ record: Record) -> [Int] {
        let fields = (try? Fields.parse(record.fields)) ?? []
        let name = record.id.description.lowercased()
        let named = choices.indices.filter { texts[$0].lowercased() == name }
        if !named.isEmpty { return named }
        return isMet { term in
            switch term.field {
            case "type"? where record.type.lowercased() == term.word: return true
            case "localid"?: return record.localID.lowercased() == term.word
            case "citekey"?:
                return Fields.string(Store.citeKeyField, in: fields).map { $0.lowercased() == term.word } ?? false
            case let name?:
                return fields.contains { $0.name.lowercased() == name && contains($0.value, term.word) }
            case nil:
                return contains(record.localID, term.word) || contains(record.id.name, term.word)
                    || contains(record.type, term.word) || fields.contains { contains($0.value, term.word) }
                    || isOfTime(record, term.word)
            }
        }
    }

    /// The times of other records are in their fields, or are those of the file that brought them.
    private func isOfTime(_ record: Record, _ word: String) -> Bool {
        guard record.type == RecordType.note, [7, 10].contains(word.utf8.count),
            Timestamp(iso8601: word.utf8.count == 7 ? "\(word)-01" : word) != nil
        else { return false }
        return [record.createdAt, record.modifiedAt].contains { $0.iso8601.hasPrefix(word) }
    }

    func matching(path: String) -> [Int] {
        isMet { $0.field == nil && contains(path, $0.word) }
    }

    private func isMet(_ body: (Term) -> Bool) -> [Int] {
        choices.indices.filter { choices[$0].allSatisfy(body) }
    }

    private func contains(_ text: String, _ word: String) -> Bool { text.lowercased().contains(word) }
}
