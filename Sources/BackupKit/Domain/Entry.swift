/// One file of a layout, as its carrier lists it.
public struct EntryInfo: Sendable, Equatable, Hashable {
    /// Relative, `/`-separated, already checked by `EntryName`.
    public var path: String
    public var size: Int64
    /// Seconds since 1970.
    public var modified: Int64

    public init(path: String, size: Int64, modified: Int64) {
        self.path = path
        self.size = size
        self.modified = modified
    }
}

/// The forms that an export can take.
public enum CarrierFormat: String, Sendable, CaseIterable {
    case directory = "dir"
    case tarZstandard = "tar.zst"
    case tarGzip = "tar.gz"
    case tarXZ = "tar.xz"
    case tar = "tar"
    case zip = "zip"

    private static let endings: [(String, CarrierFormat)] = [
        (".tar.zst", .tarZstandard), (".tzst", .tarZstandard), (".tar.gz", .tarGzip), (".tgz", .tarGzip),
        (".tar.xz", .tarXZ), (".txz", .tarXZ), (".tar", .tar), (".zip", .zip),
    ]

    /// The form that a file name asks for; nil when it does not say.
    public init?(fileName: String) {
        let name = fileName.lowercased()
        guard let match = Self.endings.first(where: { name.hasSuffix($0.0) }) else { return nil }
        self = match.1
    }

    /// Endings of files. A folder of such a name is not what was meant.
    private static let endingsOfFiles: Set<String> = [
        "7z", "ace", "age", "arj", "br", "bz2", "cab", "cpio", "gpg", "gz", "iso", "jar", "lz", "lz4", "lzma", "rar",
        "tar",
        "tbz", "tbz2", "tgz", "tlz", "txz", "tzst", "xz", "z", "zip", "zipx", "zst", "bib", "csv", "db", "html", "json",
        "jsonl", "md", "pdf", "ris", "sqlite", "sqlite3", "toml", "txt", "xml", "yaml", "yml",
    ]

    /// Throws where `path` has the ending of a file and would become a folder.
    public static func checkFolder(_ path: String, remedy: String) throws {
        let name = lastComponent(of: path).lowercased()
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex,
            endingsOfFiles.contains(String(name[name.index(after: dot)...]))
        else { return }
        throw BackupError(
            .usage, "'\(name[dot...])' is the ending of a file, not of a folder", at: path, remedy: remedy)
    }
}
