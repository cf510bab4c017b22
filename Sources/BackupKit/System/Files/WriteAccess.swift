import Glibc

/// Who else can change what a path leads to.
public enum WriteAccess {
    /// The file or folder that another user than this one and root can write, with whether it is this user's; nil where all
    /// that `path` depends on is safe. A folder that others can write lets them put another file in the place of one. In a
    /// folder with the sticky bit, such as `/tmp`, nobody can do so with the files of others.
    public static func whatOthersCanChange(of path: String) throws -> (path: String, isOwn: Bool)? {
        guard let status = try FileStatus.ofTarget(path) else { return nil }
        if isOpen(status) { return (path, isOwn(status)) }
        // A link can be replaced where it lies, and its target where that lies.
        for start in [Directory.real(parent(of: path)), Directory.real(path).map { parent(of: $0) }] {
            guard var folder = start else { continue }
            while true {
                if let status = try FileStatus.ofTarget(folder), isOpen(status) { return (folder, isOwn(status)) }
                if folder == "/" { break }
                folder = parent(of: folder)
            }
        }
        return nil
    }

    private static func isOwn(_ status: FileStatus) -> Bool { status.owner == geteuid() || status.owner == 0 }

    private static func isOpen(_ status: FileStatus) -> Bool {
        let isSticky = status.isDirectory && status.mode & UInt32(S_ISVTX) != 0
        return !isOwn(status) || status.mode & 0o022 != 0 && !isSticky
    }
}
