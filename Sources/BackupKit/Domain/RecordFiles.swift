/// The files that a record names: a publication by its links, an event by its media.
enum RecordFiles {
    static let links = "linkedFiles"
    /// Keys of events that name a file by a relative path or a URL.
    static let mediaKeys = ["photo", "video", "thumbnail_path"]

    /// Relative paths, as an event spells them.
    static func media(in fields: [Field]) -> [String] {
        mediaKeys.compactMap { Fields.string($0, in: fields) }.filter { !$0.isEmpty && !$0.contains("://") }
    }

    /// The paths that the store may have these files under.
    static func paths(in fields: [Field]) -> Set<String> {
        Set(Fields.strings(links, in: fields)).union(media(in: fields).flatMap { ["Attachments/" + $0, $0] })
    }
}
