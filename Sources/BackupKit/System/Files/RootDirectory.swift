import CSystem
import Glibc

/// A folder opened as a root: files are created and opened below it and nowhere else, whatever links an attacker plants
/// meanwhile (openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS).
public final class RootDirectory: Sendable {
    private let root: FileHandle
    public var path: String { root.path }

    public init(_ path: String) throws { root = try Directory.open(path) }

    init(_ folder: FileHandle) { root = folder }

    /// Nil where there is none.
    static func ifThere(_ path: String) throws -> RootDirectory? {
        do { return try RootDirectory(path) } catch let error as BackupError where error.code == .notFound {
            return nil
        }
    }

    public func openForReading(_ relativePath: String) throws -> FileHandle {
        let file = try open(relativePath, O_RDONLY | O_NONBLOCK | O_NOCTTY, mode: 0, "cannot be opened")
        try file.mustBeRegular()
        return file
    }

    /// Nil when there is nothing of that name.
    func openIfThere(_ relativePath: String) throws -> FileHandle? {
        do { return try openForReading(relativePath) } catch let error as BackupError where error.code == .notFound {
            return nil
        }
    }

    /// The status of the name itself; that of the link where a symbolic link stands for a folder above it. Nil when there is
    /// nothing of that name.
    func status(of relativePath: String) throws -> FileStatus? {
        do {
            return try .of(relativePath) { [root] in csystem_stat_beneath(root.descriptor, $0, $1) }
        } catch let error as BackupError {
            guard let link = try link(on: relativePath) else { throw error }
            return try nameStatus(link)
        }
    }

    /// The folder of the file whose status was asked for last.
    struct LastFolder {
        fileprivate var path: String?
        fileprivate var folder: FileHandle?

        init() {}
    }

    /// The same for many files, in the order of their folders: each folder is opened once.
    func status(of relativePath: String, near last: inout LastFolder) throws -> FileStatus? {
        let above = parent(of: relativePath)
        if last.path.map({ !sameBytes($0, above) }) ?? true {
            (last.path, last.folder) = (above, try? folder(of: relativePath))
        }
        guard let folder = last.folder else { return try status(of: relativePath) }
        return try .of(lastComponent(of: relativePath)) { fstatat(folder.descriptor, $0, $1, AT_SYMLINK_NOFOLLOW) }
    }

    /// The first part of a path that is a symbolic link; nil where none is.
    func link(on relativePath: String) throws -> String? {
        try barrier(on: relativePath).flatMap { $0.status.isLink ? $0.place : nil }
    }

    /// The first part of a path that is a symbolic link, or stands where a folder is needed; nil where none does.
    func barrier(on relativePath: String) throws -> (place: String, status: FileStatus)? {
        var place = ""
        let names = FilePath.names(relativePath)
        for (index, name) in names.enumerated() {
            place += (place.isEmpty ? "" : "/") + name
            guard let status = try nameStatus(place) else { return nil }
            if status.isLink || index < names.count - 1 && !status.isDirectory { return (place, status) }
        }
        return nil
    }

    private func nameStatus(_ relativePath: String) throws -> FileStatus? {
        try .of(relativePath) { [root] in fstatat(root.descriptor, $0, $1, AT_SYMLINK_NOFOLLOW) }
    }

    /// Creates a new file, and the folders above it.
    public func create(_ relativePath: String, mode: mode_t = 0o600) throws -> FileHandle {
        do {
            return try open(relativePath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode, "cannot be created")
        } catch let error as BackupError where error.code == .notFound {
            try createFolders(above: relativePath)
            return try open(relativePath, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode, "cannot be created")
        }
    }

    /// Copies a file below the root, sharing its blocks where the file system can, and returns the digest of the copy's
    /// bytes; the copy is durable. It is as old as the source when `modifiedNanoseconds` says so.
    @discardableResult
    public func copy(
        _ source: FileHandle, to relativePath: String, modifiedNanoseconds: Int64? = nil
    ) throws -> SHA256Digest {
        let target = try create(relativePath)
        let hasher = SHA256Hasher()
        let isClone = csystem_clone_file(target.descriptor, source.descriptor) == 0
        try (isClone ? target : source).forEachChunk { chunk in
            hasher.update(chunk)
            if !isClone { try target.write(chunk) }
        }
        if let modifiedNanoseconds { try target.setModified(nanoseconds: modifiedNanoseconds) }
        try target.sync()
        return hasher.finish()
    }

    /// Makes the folders above a path; with `durably` they are on the disk when this returns.
    public func createFolders(above relativePath: String, durably: Bool = false) throws {
        var folder = root
        var place = ""
        for component in FilePath.names(relativePath).dropLast() {
            place += (place.isEmpty ? "" : "/") + component
            if mkdirat(folder.descriptor, String(component), 0o700) == 0 {
                if durably { try folder.sync() }
            } else if errno != EEXIST {
                throw BackupError.fromErrno("cannot be created", at: "\(path)/\(place)")
            }
            folder = try openFolder(place)
        }
    }

    /// The folder that a path lies in.
    func folder(of relativePath: String) throws -> FileHandle {
        let above = parent(of: relativePath)
        return above == "." ? root : try openFolder(above)
    }

    func openFolder(_ relativePath: String) throws -> FileHandle {
        try open(relativePath, O_RDONLY | O_DIRECTORY, mode: 0, "cannot be opened")
    }

    /// Removes a file or a link; nothing there is fine.
    func remove(_ relativePath: String) throws {
        guard let folder = try folderIfThere(of: relativePath) else { return }
        guard unlinkat(folder.descriptor, lastComponent(of: relativePath), 0) == 0 || errno == ENOENT else {
            throw BackupError.fromErrno("cannot be removed", at: "\(path)/\(relativePath)")
        }
    }

    /// Removes an empty folder. Returns whether it is gone: one that is not empty stays.
    func removeFolder(_ relativePath: String) throws -> Bool {
        guard let folder = try folderIfThere(of: relativePath) else { return false }
        return unlinkat(folder.descriptor, lastComponent(of: relativePath), AT_REMOVEDIR) == 0
    }

    private func folderIfThere(of relativePath: String) throws -> FileHandle? {
        do { return try folder(of: relativePath) } catch let error as BackupError where error.code == .notFound {
            return nil
        }
    }

    private func open(_ relativePath: String, _ flags: Int32, mode: mode_t, _ what: String) throws -> FileHandle {
        let descriptor = csystem_open_beneath(root.descriptor, relativePath, flags | O_CLOEXEC, mode)
        let full = "\(path)/\(relativePath)"
        guard descriptor >= 0 else {
            let number = errno
            if [ELOOP, EXDEV, ENOTDIR].contains(number), let link = try link(on: relativePath) {
                throw BackupError(
                    .refused,
                    link == relativePath
                        ? "is a symbolic link" : "leads through a symbolic link, which is \(path)/\(link)",
                    at: full, remedy: "move the link away, or put what it leads to in its place")
            }
            errno = number
            throw BackupError.fromErrno(what, at: full)
        }
        return FileHandle(owning: descriptor, path: full)
    }
}
