/// Tells paths of this machine from addresses. An address that is taken for a path becomes a folder of that name.
public enum LocalPath {
    /// What other tools take behind these words and one colon: storage that restic knows, and databases.
    private static let schemes: Set<String> = [
        "azure", "b2", "file", "ftp", "gs", "http", "https", "mongodb", "mysql", "nfs", "postgres", "postgresql",
        "rclone", "redis", "rest", "s3", "scp", "sftp", "smb", "sqlite", "ssh", "swift", "vault", "webdav",
    ]

    /// The scheme of an address, such as "postgresql" of "postgresql://host/db"; nil for a path.
    public static func scheme(of word: String) -> String? {
        guard let colon = word.firstIndex(of: ":"), let first = word.unicodeScalars.first else { return nil }
        func isLetter(_ scalar: Unicode.Scalar) -> Bool { ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar) }
        let name = word[..<colon]
        let others: Set<Unicode.Scalar> = ["+", "-", "."]
        let isName = name.unicodeScalars.allSatisfy {
            isLetter($0) || ("0"..."9").contains($0) || others.contains($0)
        }
        guard isLetter(first), isName else { return nil }
        let scheme = name.lowercased()
        return word[colon...].hasPrefix("://") || schemes.contains(scheme) ? scheme : nil
    }

    /// Throws for an address.
    public static func check(_ path: String) throws {
        guard let scheme = scheme(of: path) else { return }
        let problem =
            scheme == "vault" ? "a vault cannot be used here" : "'\(scheme):' addresses are not supported"
        throw BackupError(
            .usage, problem, at: Address.withoutPassword(path),
            remedy: "name a file or a folder; write ./ in front if this is its name")
    }
}
