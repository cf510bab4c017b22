/// What a person would call a record.
public enum RecordLabel {
    /// The id of a record; of what no person knows by an id, its description.
    static func ofLarge(_ record: Record, _ id: RecordID) -> String {
        record.type == RecordType.bibliographyPart ? text(of: record) : id.description
    }

    public static func text(of record: Record) -> String {
        guard let fields = try? Fields.parse(record.fields) else { return record.type }
        let key = Fields.string(Publication.citeKey, in: fields)
        let title = Fields.string("title", in: fields) ?? Fields.string("note", in: fields)
        switch record.type {
        case RecordType.note:
            let text = (title ?? "").drop { $0 == "\n" }
            let start = text.prefix { $0 != "\n" }.prefix(80)
            return (key.map { "note on \($0): " } ?? "note: ") + start + (start.endIndex < text.endIndex ? " …" : "")
        case RecordType.publication:
            return [key, title.map { String($0.prefix(80)) }].compactMap { $0 }.joined(separator: ": ")
        case RecordType.event:
            return [Fields.string("time", in: fields), Fields.string("type", in: fields)].compactMap { $0 }
                .joined(separator: " ")
        case Quarantine.type:
            guard let inside = try? Quarantine.content(of: record), inside.type != Quarantine.type else {
                return record.type
            }
            return text(of: inside)
        case RecordType.conflict:
            return "conflict of \(Fields.strings("works", in: fields).joined(separator: " and "))"
        case RecordType.bibliographyPart:
            if Fields.string("kind", in: fields) == BibliographyPart.order {
                return "the order of the entries"
                    + (Fields.string("file", in: fields).map { " of \(withoutMark($0))" } ?? "")
            }
            return "text between entries" + (Fields.string("file", in: fields).map { " (\($0))" } ?? "")
        default: return title ?? Fields.string("name", in: fields) ?? record.type
        }
    }

    /// The name of a file without what tells it from others of that name.
    private static func withoutMark(_ name: String) -> Substring {
        let mark = name.suffix(17)
        return mark.first == "#" && mark.dropFirst().allSatisfy(\.isHexDigit) ? name.dropLast(mark.count) : name[...]
    }
}
