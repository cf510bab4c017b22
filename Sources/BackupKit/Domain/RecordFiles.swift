/// The files that a record names: a publication by its links, an event by its media.
enum RecordFiles {
    static let links = "linkedFiles"
    /// Keys of events that name a file by a relative path or a URL.
    static let mediaKeys = ["photo", "video", "thumbnail_path"]
    /// The folders of a layout that attachments lie in, the usual one first.
    static let folders = ["Attachments/", "PDFs/"]

    /// Relative paths, as an event spells them.
    static func media(in fields: [Field]) -> [String] {
        mediaKeys.compactMap { Fields.string($0, in: fields) }.filter { !$0.isEmpty && !$0.contains("://") }
    }

    /// The paths that the store may have these files under.
    static func paths(in fields: [Field]) -> Set<String> {
        Set(Fields.strings(links, in: fields)).union(media(in: fields).flatMap { ["Attachments/" + $0, $0] })
    }

    /// The path that an import gives a file of an event.
    static func place(ofMedia path: String) -> String {
        folders.contains(where: path.hasPrefix) ? path : folders[0] + path
    }

    /// The paths in the store that a record of a type links.
    static func links(in fields: [Field], type: String) -> [String] {
        switch type {
        case RecordType.publication: Fields.strings(links, in: fields)
        case RecordType.event: media(in: fields).map(place)
        default: []
        }
    }

    /// The fields of a record whose files have other paths by now; nil where it links none of these.
    static func following(_ moved: [ByteName: String], in fields: [Field], type: String) -> [Field]? {
        let paths = links(in: fields, type: type)
        guard paths.contains(where: { moved[ByteName($0)] != nil }) else { return nil }
        if type == RecordType.publication { return linking(paths.map { moved[ByteName($0)] ?? $0 }, in: fields) }
        return fields.map { field in
            guard mediaKeys.contains(field.name), let path = Fields.string(field.name, in: fields),
                let new = moved[ByteName(place(ofMedia: path))]
            else { return field }
            let isWhole = folders.contains(where: path.hasPrefix) || !new.hasPrefix(folders[0])
            return Field(field.name, .string(isWhole ? new : String(new.dropFirst(folders[0].count))))
        }
    }

    /// The path that a file had before it gave way to others: `a_conflict_2026-03-01.pdf` and `a_missing_0123abcd.pdf`
    /// → `a.pdf`.
    static func formerPath(_ path: String) -> String? {
        let marks = ["_conflict_", "_missing_"].compactMap { path.ranges(of: $0).last }
        guard let mark = marks.max(by: { $0.lowerBound < $1.lowerBound }),
            !path[mark.upperBound...].utf8.contains(FilePath.slash)
        else { return nil }
        let ending = path[mark.upperBound...].lastIndex(of: ".").map { path[$0...] } ?? ""
        let number = path[mark.upperBound...].dropLast(ending.count)
        // `data_missing_values.pdf` is what somebody called it.
        if path[mark] == "_missing_", !isStandInNumber(number) { return nil }
        let before = "\(path[..<mark.lowerBound])\(ending)"
        return formerPath(before) ?? before
    }

    /// Whether a link stands for a file that was not there, and whose path another file had: `a_missing_0123abcd.pdf`.
    static func isStandIn(_ link: String) -> Bool {
        guard let mark = link.ranges(of: "_missing_").last else { return false }
        return isStandInNumber(link[mark.upperBound...].prefix { $0 != "." && $0 != "\"" })
    }

    private static func isStandInNumber(_ text: Substring) -> Bool { text.count == 8 && text.allSatisfy(\.isHexDigit) }

    /// Whether a file may have got this path because another one had its own: `a_conflict_2026-03-01.pdf`, `a_2.pdf`.
    static func mayHaveGivenWay(_ path: String) -> Bool {
        formerPath(path) != nil
            || FilePath.names(path).contains { name in
                let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
                guard let mark = stem.lastIndex(of: "_") else { return false }
                return Int(stem[mark...].dropFirst()).map { (2..<1000).contains($0) } ?? false
            }
    }

    /// The fields of an event as its log spelled them, where files of it gave way to others since.
    static func asInLog(_ fields: [Field]) -> [Field]? {
        let former = media(in: fields).map(place).compactMap { path in formerPath(path).map { (ByteName(path), $0) } }
        return following(Dictionary(former, uniquingKeysWith: { $1 }), in: fields, type: RecordType.event)
    }

    /// The fields of a publication with these links, where it has any.
    static func linking(_ paths: [String], in fields: [Field]) -> [Field] {
        let sorted = Set(paths.map { ByteName($0) }).map(\.text).sorted(by: precedesBytewise)
        return fields.map { $0.name == links ? Field(links, .array(sorted.map { .string($0) })) : $0 }
    }
}
