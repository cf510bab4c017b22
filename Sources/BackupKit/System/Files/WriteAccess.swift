import Glibc

/// Who else can change what a path leads to.
public enum WriteAccess {
    /// A file, folder or link that another user than this one and root can change.
    public struct Place {
        public let path: String
        public let isFolder: Bool
        /// Whether it belongs to this user or root.
        public let isOwn: Bool
    }

    private static let mostLinks = 40

    /// The first place on the way to a file by which others can put another one there; nil where there is none. In a folder
    /// with the sticky bit, such as `/tmp`, nobody can replace the files of others, but anybody can put a link there.
    public static func whatOthersCanChange(of path: String) throws -> Place? {
        var names = Substring(path.hasPrefix("/") ? path : "\(Directory.real(".") ?? "")/\(path)").split(
            separator: "/")[...]
        var (folder, links) = ("/", 0)
        if let status = try FileStatus.ofName("/"), isOpen(status) { return place("/", status) }
        while let name = names.popFirst() {
            if name == "." { continue }
            if name == ".." {
                folder = parent(of: folder)
                continue
            }
            let found = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
            guard let status = try FileStatus.ofName(found) else { return nil }
            guard let target = try Directory.target(ofLink: found) else {
                if isOpen(status) { return place(found, status) }
                folder = found
                continue
            }
            links += 1
            if !isOwn(status) || links > mostLinks { return place(found, status) }
            if target.hasPrefix("/") { folder = "/" }
            names = Substring(target).split(separator: "/") + names
        }
        return nil
    }

    private static func place(_ path: String, _ status: FileStatus) -> Place {
        Place(path: path, isFolder: status.isDirectory, isOwn: isOwn(status))
    }

    private static func isOwn(_ status: FileStatus) -> Bool { status.owner == geteuid() || status.owner == 0 }

    private static func isOpen(_ status: FileStatus) -> Bool {
        let isSticky = status.isDirectory && status.mode & UInt32(S_ISVTX) != 0
        return !isOwn(status) || status.mode & 0o022 != 0 && !isSticky
    }
}
