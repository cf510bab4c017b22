/// Chooses records: words that must all be found, in any case. `key=word` looks into one field, a plain word into every
/// value, the cite key, the ids and the type.
public struct RecordQuery: Sendable, Equatable {
    private let terms: [(field: String?, word: String)]

    public static func == (left: Self, right: Self) -> Bool {
        left.terms.elementsEqual(right.terms) { $0.field == $1.field && $0.word == $1.word }
    }

    public init(_ text: String) {
        terms = text.split(separator: " ").map { term in
            guard let equals = term.firstIndex(of: "="), equals != term.startIndex else {
                return (nil, term.lowercased())
            }
            return (String(term[..<equals]).lowercased(), term[term.index(after: equals)...].lowercased())
        }
    }

    public func matches(_ record: Record) -> Bool {
        let fields = (try? Fields.parse(record.fields)) ?? []
        return terms.allSatisfy { term in
            switch term.field {
            case "type"? where record.type.lowercased() == term.word: return true
            case "localid"?: return record.localID.lowercased() == term.word
            case let name?:
                return fields.contains { $0.name.lowercased() == name && contains($0.value, term.word) }
            case nil:
                return contains(record.localID, term.word) || contains(record.id.name, term.word)
                    || contains(record.type, term.word) || fields.contains { contains($0.value, term.word) }
            }
        }
    }

    public func matches(path: String) -> Bool {
        terms.allSatisfy { $0.field == nil && contains(path, $0.word) }
    }

    private func contains(_ text: String, _ word: String) -> Bool { text.lowercased().contains(word) }
}
