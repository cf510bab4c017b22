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

    /// Endings of files that hold others, or are compressed. Deflate does not make them smaller: zip stores them.
    static let compressedEndings: Set<String> = [
        "pdf", "png", "jpg", "jpeg", "gif", "webp", "heic", "heif", "avif", "mp4", "m4v", "mov", "mkv", "webm", "mp3",
        "m4a", "aac", "ogg", "flac", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "pages", "numbers", "key",
        "djvu", "7z", "ace", "age", "apk", "arc", "arj", "br", "bz2", "bz3", "cab", "crx", "deb", "dmg", "egg", "gpg",
        "gz", "ipa", "jar", "lha", "lrz", "lz", "lz4", "lzh", "lzma", "lzo", "pgp", "pkg", "rar", "rpm", "rz", "sit",
        "sitx", "snap", "squashfs", "sz", "tbz", "tbz2", "tgz", "tlz", "txz", "tzst", "war", "wim", "whl", "xar", "xpi",
        "xz", "z", "zip", "zipx", "zpaq", "zst",
    ]

    /// Endings of other files: archives and images that are not compressed, texts, documents and databases.
    private static let otherEndings: Set<String> = [
        "ar", "bin", "cpio", "img", "iso", "mtree", "par2", "qcow2", "shar", "sparseimage", "tar", "vdi", "vhd",
        "vhdx", "vmdk", "bib", "bibtex", "csv", "db", "doc", "enl", "enw", "html", "htm", "json", "jsonl", "log", "md",
        "ndjson", "nbib", "ppt", "ps", "ris", "rtf", "sql", "sqlite", "sqlite3", "tex", "toml", "tsv", "txt", "xls",
        "xml", "yaml", "yml",
    ]

    /// Whether the last part of a name is the ending of a file, or stands behind `.tar`. A folder of such a name is not what
    /// was meant. A number or a version is the end of a folder's name as well.
    private static func isEndingOfFile(_ ending: Substring, after rest: Substring) -> Bool {
        let ending = String(ending)
        return compressedEndings.contains(ending) || otherEndings.contains(ending) || rest.hasSuffix(".tar")
    }

    /// Throws where `path` has the ending of a file and would become a folder.
    public static func checkFolder(_ path: String, remedy: String) throws {
        let name = lastComponent(of: path).lowercased()
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex,
            isEndingOfFile(name[name.index(after: dot)...], after: name[..<dot])
        else { return }
        throw BackupError(
            .usage, "'\(name[dot...])' is the ending of a file, not of a folder", at: path, remedy: remedy)
    }
}
