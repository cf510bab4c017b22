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

    /// The form that a file name asks for; nil when it does not say.
    public init?(fileName: String) {
        let name = fileName.lowercased()
        let endings: [(String, CarrierFormat)] = [
            (".tar.zst", .tarZstandard), (".tzst", .tarZstandard), (".tar.gz", .tarGzip), (".tgz", .tarGzip),
            (".tar.xz", .tarXZ), (".txz", .tarXZ), (".tar", .tar), (".zip", .zip),
        ]
        guard let match = endings.first(where: { name.hasSuffix($0.0) }) else { return nil }
        self = match.1
    }
}
