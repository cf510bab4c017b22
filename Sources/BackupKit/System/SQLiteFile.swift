extension SQLite {
    /// Whose database a file is; nil where it is none. Never changes the file. The header is read without SQLite, which
    /// could meet a page that somebody is just writing: these bytes never change.
    /// https://www.sqlite.org/fileformat2.html#database_header
    static func applicationID(of path: String) -> Int64? {
        guard let status = try? FileStatus.ofTarget(path), status.isRegular, status.size >= 512,
            let file = try? FileHandle.openForReading(path)
        else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: 100, alignment: 8) { header in
            guard (try? file.read(into: header, at: 0)) == 100, header.starts(with: "SQLite format 3\0".utf8) else {
                return nil
            }
            return Int64(UInt32(bigEndian: header.loadUnaligned(fromByteOffset: 68, as: UInt32.self)))
        }
    }

    /// A path as a part of a URI.
    static func uriEscaped(_ path: String) -> String {
        var escaped = ""
        for character in path {
            switch character {
            case "%": escaped += "%25"
            case "?": escaped += "%3f"
            case "#": escaped += "%23"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}

/// The text of a statement that lives as long as the program.
final class Query: Sendable {
    let sql: String

    init(_ sql: String) { self.sql = sql }
}
