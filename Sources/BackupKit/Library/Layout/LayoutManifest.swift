/// What a backup says of itself: our manifest, imbib's, or nothing.
enum LayoutManifest: Sendable {
    case own(Manifest)
    case imbib(ImbibManifest)
    case none

    var isMissing: Bool { if case .none = self { true } else { false } }

    var schemaVersion: Int? {
        switch self {
        case .own(let manifest): manifest.schemaVersion
        case .imbib(let manifest): manifest.schemaVersion
        case .none: nil
        }
    }

    /// Whether a `manifest.json` is that of some other program: sound JSON that says nothing of a backup. Web apps and
    /// browser extensions have files of this name.
    static func isForeign(_ path: String) throws -> Bool {
        let file = try FileHandle.openForReading(path)
        // Ours names its format first; all before imbib's list of files is short.
        let limit = 1 << 20
        let bytes = try file.head(limit)
        guard bytes.count < limit else { return false }
        return bytes.withUnsafeBytes { bytes in
            guard let json = try? JSON(parsing: bytes.withoutByteOrderMark) else { return false }
            return json["format"]?.string != Manifest.format && json["fileChecksums"] == nil
        }
    }

    /// The folder of an export of ours that a path lies in, as far as folders around it may be read.
    static func folderOfExport(around path: String) -> String? {
        Directory.placesAround(parent(of: path)).first { folder in
            let manifest = "\(folder)/\(Manifest.fileName)"
            guard let status = try? FileStatus.ofName(manifest), status.isRegular,
                let start = try? FileHandle.openForReading(manifest).head(1 << 10)
            else { return false }
            // Ours names its format first.
            return String(decoding: start, as: UTF8.self).contains("\"\(Manifest.format)\"")
        }
    }

    /// Whether it is imbib's, which has `fileChecksums` at the top.
    static func isImbib(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
        var found = false
        var scanner = JSONScanner(bytes)
        try scanner.forEachMember { key, _, _ in
            if jsonUnescape(bytes, key) == "fileChecksums" { found = true }
        }
        return found
    }
}
