import CSystem
import Glibc

/// The one recipe by which files and folders come into being (promise 4 of the design): everything is written under a
/// temporary name in the destination's folder, made durable, and renamed in one step; then the folder is made durable.
/// Whoever looks sees the old state or the new one. No other code calls rename.
public enum AtomicFile {
    static let temporaryMark = ".tmp-"

    /// Writes a file through `body`. Refuses an existing target unless `replace`.
    public static func write<Result>(
        _ path: String, replace: Bool = false, mode: mode_t = 0o600, _ body: (FileHandle) throws -> Result
    ) throws -> Result {
        try refuseExisting(path, unless: replace)
        removeLeftovers(of: path)
        let temporary = temporaryName(for: path)
        // What goes wrong is told of the file that is meant: nobody has asked for the other.
        let file = try FileHandle.create(temporary, mode: mode, toldAs: path)
        do {
            let result = try body(file)
            try file.sync()
            try publish(temporary, as: path, replace: replace)
            return result
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Fills a new folder through `body`, which gets its temporary path. With `replace`, an existing folder changes
    /// places with the new one in one step and is removed afterwards.
    public static func writeDirectory<Result>(
        _ path: String, replace: Bool = false, _ body: (String) throws -> Result
    ) throws -> Result {
        try refuseExisting(path, unless: replace)
        removeLeftovers(of: path)
        let temporary = temporaryName(for: path)
        try Directory.create(temporary)
        do {
            let result = try body(temporary)
            try Directory.syncTree(temporary)
            if try FileStatus.ofName(path) == nil {
                try publish(temporary, as: path, replace: false)
            } else {
                guard csystem_rename_exchange(temporary, path) == 0 else {
                    throw BackupError.fromErrno("cannot be replaced", at: path)
                }
                try Directory.sync(parent(of: path))
                try Directory.removeTree(temporary)
            }
            return result
        } catch {
            // What went wrong first is what the caller must hear of; the next run removes what is left.
            try? Directory.removeTree(temporary)
            throw error
        }
    }

    /// Gives a finished file or folder its name. Whoever publishes many files into one folder makes that durable once,
    /// afterwards.
    public static func publish(
        _ temporary: String, as path: String, replace: Bool, syncsFolder: Bool = true
    ) throws {
        var status = replace ? rename(temporary, path) : csystem_rename_new(AT_FDCWD, temporary, AT_FDCWD, path)
        if status != 0, !replace, errno == EINVAL, try FileStatus.ofName(path) == nil {
            // Some network file systems cannot promise to find the name free; then it was free a moment ago.
            status = rename(temporary, path)
        }
        guard status == 0 else {
            if errno == EISDIR {
                throw BackupError(.exists, "is a folder", at: path, remedy: "remove it, or choose another name")
            }
            throw errno == EEXIST ? existing(path) : BackupError.fromErrno("cannot be put in place", at: path)
        }
        if syncsFolder { try Directory.sync(parent(of: path)) }
    }

    /// Writes a file below a root through `body`; one that is there is replaced.
    static func write<Result>(
        _ path: String, below root: RootDirectory, _ body: (FileHandle) throws -> Result
    ) throws -> Result {
        let full = "\(root.path)/\(path)"
        let folder = try root.folder(of: path)
        removeLeftovers(of: full)
        let temporary = lastComponent(of: temporaryName(for: full))
        let file = try RootDirectory(folder).create(temporary)
        do {
            let result = try body(file)
            try file.sync()
            guard renameat(folder.descriptor, temporary, folder.descriptor, lastComponent(of: path)) == 0 else {
                throw BackupError.fromErrno("cannot be put in place", at: full)
            }
            try folder.sync()
            return result
        } catch {
            try? RootDirectory(folder).remove(temporary)
            throw error
        }
    }

    /// Gives a finished file a name below a root. The folder is not made durable.
    static func publish(_ temporary: String, as path: String, below root: RootDirectory) throws {
        let folder = try root.folder(of: path)
        guard renameat(AT_FDCWD, temporary, folder.descriptor, lastComponent(of: path)) == 0 else {
            throw BackupError.fromErrno("cannot be put in place", at: "\(root.path)/\(path)")
        }
    }

    /// Gives a file below a root a second name there, which must be free. Where the file system has no links, the second name
    /// gets a copy that shares its blocks if possible. `isCopy` asks for a copy everywhere. The folder is not made durable.
    static func duplicate(
        _ source: String, as path: String, below root: RootDirectory, isCopy: Bool = false
    ) throws {
        let (from, to) = (try root.folder(of: source), try root.folder(of: path))
        let name = lastComponent(of: path)
        if !isCopy {
            if linkat(from.descriptor, lastComponent(of: source), to.descriptor, name, 0) == 0 { return }
            if errno == EEXIST { throw existing("\(root.path)/\(path)") }
        }
        let file = try root.openForReading(source)
        let folder = RootDirectory(to)
        let temporary = lastComponent(of: temporaryName(for: path))
        do {
            _ = try folder.copy(file, to: temporary, modifiedNanoseconds: file.status().modifiedNanoseconds)
            guard csystem_rename_new(to.descriptor, temporary, to.descriptor, name) == 0 else {
                throw errno == EEXIST
                    ? existing("\(root.path)/\(path)")
                    : BackupError.fromErrno("cannot be put in place", at: "\(root.path)/\(path)")
            }
        } catch {
            try? folder.remove(temporary)
            throw error
        }
    }

    /// Tells this process from an earlier one with the same number, of which containers have many.
    private static let life = String(UInt32.random(in: .min ... .max), radix: 16)

    /// `dir/.name.tmp-<pid>-<life>-<random>`: hidden, beside the target, and with its writer, so that the next run can
    /// tell a leftover from work in progress.
    public static func temporaryName(for path: String) -> String {
        let suffix = String(UInt32.random(in: .min ... .max), radix: 16)
        return "\(parent(of: path))/\(temporaryPrefix(of: path))\(getpid())-\(life)-\(suffix)"
    }

    /// A name can be 255 bytes long, so a long one leaves its end out.
    private static func temporaryPrefix(of path: String) -> String {
        var name = Substring(lastComponent(of: path))
        while name.utf8.count > 200 { name.unicodeScalars.removeLast() }
        return ".\(name)\(temporaryMark)"
    }

    /// Removes what a killed run left beside `path`: same name, and a writer that lives no more.
    static func removeLeftovers(of path: String) {
        let folder = parent(of: path)
        let prefix = temporaryPrefix(of: path)
        for name in (try? Directory.names(in: folder)) ?? [] where name.hasPrefix(prefix) {
            let parts = name.dropFirst(prefix.count).split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count > 1, let pid = Int32(parts[0]), pid > 0 else { continue }
            let isOurs = pid == getpid() && parts[1] == life
            let lives = pid == getpid() ? isOurs : kill(pid, 0) == 0 || errno != ESRCH
            if !lives { try? Directory.removeTree("\(folder)/\(name)") }
        }
    }

    /// Whether a name is one that `temporaryName` makes.
    static func isTemporary(_ name: String, of path: String) -> Bool { name.hasPrefix(temporaryPrefix(of: path)) }

    static func isTemporary(_ name: String) -> Bool {
        name.hasPrefix(".") && name.contains(temporaryMark)
    }

    /// Removes files; all of it is durable when this returns. What is not there is fine.
    public static func remove(_ paths: [String]) throws {
        var folders: Set<ByteName> = []
        // Also after a failure: what is gone by then must stay gone.
        defer { for folder in folders { try? Directory.sync(folder.text) } }
        for path in paths {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw BackupError.fromErrno("cannot be removed", at: path)
            }
            folders.insert(ByteName(parent(of: path)))
        }
        let touched = folders
        folders = []
        // A folder that is gone, too, has nothing left to make durable.
        for folder in touched.map(\.text) where try FileStatus.ofTarget(folder) != nil { try Directory.sync(folder) }
    }

    static func refuseExisting(_ path: String, unless replace: Bool = false) throws {
        if try !replace && FileStatus.ofName(path) != nil { throw existing(path) }
    }

    static func existing(_ path: String) -> BackupError {
        BackupError(.exists, "already exists", at: path, remedy: "choose another name, or replace it with --force")
    }
}

/// The folder part of a path: "a/b" → "a", "b" → ".", "/b" → "/".
public func parent(of path: String) -> String {
    let trimmed = withoutTrailingSlashes(path)
    guard let slash = trimmed.utf8.lastIndex(of: FilePath.slash) else { return "." }
    return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
}

/// The name at the end of a path: "a/b/" → "b".
public func lastComponent(of path: String) -> String {
    let trimmed = withoutTrailingSlashes(path)
    guard let slash = trimmed.utf8.lastIndex(of: FilePath.slash) else { return trimmed }
    return String(trimmed[trimmed.utf8.index(after: slash)...])
}

func withoutTrailingSlashes(_ path: String) -> String {
    var path = Substring(path)
    while path.utf8.count > 1, path.utf8.last == FilePath.slash { path.unicodeScalars.removeLast() }
    return String(path)
}
