import Glibc

/// Folders: making, listing, walking and removing them.
public enum Directory {
    /// Makes one folder, private to its owner.
    public static func create(_ path: String, mode: mode_t = 0o700) throws {
        guard mkdir(path, mode) == 0 else { throw BackupError.uncreated(path) }
    }

    /// Throws what making something of this name would throw, as far as that can be told without making it.
    static func checkCanCreate(_ path: String) throws {
        guard access(parent(of: path), W_OK | X_OK) == 0 else { throw BackupError.uncreated(path) }
    }

    /// Makes a folder and those above it, durably.
    public static func createAll(_ path: String, mode: mode_t = 0o700) throws {
        if let found = try FileStatus.ofTarget(path) {
            if found.isDirectory { return }
        } else {
            try DatabasePlace.refuseLostLink(path)
        }
        let above = parent(of: path)
        if above != path { try createAll(above, mode: mode) }
        if mkdir(path, mode) == 0 { return try sync(above) }
        let failure = BackupError.fromErrno("cannot be created", at: path)
        // Somebody else may have made it a moment ago.
        guard let found = try FileStatus.ofTarget(path) else { throw failure }
        guard found.isDirectory else {
            throw BackupError(.exists, "is not a folder", at: path, remedy: "choose another place")
        }
    }

    /// The folders above a path that are not there, the innermost first.
    static func missing(above path: String) throws -> [String] {
        var found: [String] = []
        var folder = parent(of: path)
        while try FileStatus.ofTarget(folder) == nil, parent(of: folder) != folder {
            found.append(folder)
            folder = parent(of: folder)
        }
        return found
    }

    /// The absolute path without links; nil where there is nothing.
    public static func real(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// What a symbolic link names; nil of anything else.
    static func target(ofLink path: String) throws -> String? {
        guard try FileStatus.ofName(path)?.isLink == true else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            let count = buffer.baseAddress.map { readlink(path, $0, buffer.count) } ?? 0
            return String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    /// Whether a path, as far as there is something of it, leads to a folder or into it, whatever name the folder has there.
    static func isInside(_ path: String, _ folder: String) throws -> Bool {
        guard let folder = try FileStatus.ofTarget(folder) else { return false }
        return try placesAround(path).contains { try FileStatus.ofTarget($0)?.isSame(as: folder) ?? false }
    }

    /// The path itself, or the nearest folder around it that is there, and all folders around that, without links.
    static func placesAround(_ path: String) -> [String] {
        var path = path
        while real(path) == nil, parent(of: path) != path { path = parent(of: path) }
        guard let nearest = real(path) else { return [] }
        var places = [nearest]
        while let last = places.last, parent(of: last) != last { places.append(parent(of: last)) }
        return places
    }

    /// What still fits into the file system that a folder lies on; nil where there is no folder, or nobody knows.
    static func freeBytes(of path: String) -> Int64? {
        var status = statvfs()
        // Some file systems in memory have no size.
        guard statvfs(path, &status) == 0, status.f_blocks > 0 else { return nil }
        let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }

    /// The names in a folder, sorted, without "." and "..", and without those that `skip` chooses. A name that is not UTF-8 is
    /// an error, unless `foreign` takes it: with each byte that is not ASCII escaped.
    public static func names(
        in path: String, skip: ((String) -> Bool)? = nil, foreign: ((String) throws -> Void)? = nil
    ) throws -> [String] {
        guard let stream = opendir(path) else { throw BackupError.fromErrno("cannot be listed", at: path) }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw BackupError.fromErrno("cannot be listed", at: path) }
                return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            }
            let (name, escaped) = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) {
                    (String(validatingCString: $0), escapedName($0))
                }
            }
            guard let name else {
                if let foreign {
                    try foreign(escaped())
                    continue
                }
                throw BackupError(
                    .refused, "the name of a file is not UTF-8", at: "\(path)/\(escaped())",
                    remedy: "rename that file and run again")
            }
            if name != ".", name != "..", skip?(name) != true { names.append(name) }
        }
    }

    private static func escapedName(_ name: UnsafePointer<CChar>) -> () -> String {
        {
            UnsafeRawBufferPointer(start: name, count: strlen(name)).reduce(into: "") { text, byte in
                let hex = String(byte, radix: 16)
                text += 0x20..<0x7F ~= byte ? String(Unicode.Scalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + hex
            }
        }
    }

    /// Visits what lies below `root` in sorted order, with paths relative to it. Links are reported, never followed.
    ///
    /// What cannot be visited, a name that is not UTF-8 or a folder that cannot be read, goes to `obstacle` with the reason,
    /// and is an error where there is none. The root itself must be readable. What `skip` chooses is not even looked at.
    public static func walk(
        _ root: String, skip: ((_ relativePath: String) -> Bool)? = nil,
        obstacle: ((_ relativePath: String, _ reason: String) throws -> Void)? = nil,
        _ body: (_ relativePath: String, FileStatus) throws -> Void
    ) throws {
        func names(below folder: String) throws -> [String] {
            let foreign = obstacle.map { report in
                { name in try report(folder + name, "its name is not UTF-8") }
            }
            let place = folder.isEmpty ? root : "\(root)/\(folder)"
            return try Self.names(in: place, skip: skip.map { skip in { skip(folder + $0) } }, foreign: foreign)
                .reversed().map { folder + $0 }
        }
        /// Nil when `relative` was reported.
        func unlessInTheWay<Result>(_ relative: String, _ look: () throws -> Result) throws -> Result? {
            do { return try look() } catch let error as BackupError where error.isVerdict {
                guard let obstacle else { throw error }
                try obstacle(relative, error.message)
                return nil
            }
        }
        // A stack of our own: a folder a million levels deep must not exhaust the thread's.
        var stack = try names(below: "")
        while let relative = stack.popLast() {
            try Interrupt.check()
            let found = try unlessInTheWay(relative) { try FileStatus.ofName("\(root)/\(relative)") }
            guard let status = found ?? nil else { continue }
            try body(relative, status)
            guard status.isDirectory else { continue }
            stack += try unlessInTheWay(relative) { try names(below: relative + "/") } ?? []
        }
    }

    /// Makes a folder's entries durable.
    public static func sync(_ path: String) throws { try open(path).sync() }

    /// A folder as something that can be locked or made durable.
    static func open(_ path: String) throws -> FileHandle {
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: path) }
        return FileHandle(owning: descriptor, path: path)
    }

    /// Makes every folder below and including `root` durable; the files are those of whoever wrote them.
    static func syncTree(_ root: String) throws {
        try walk(root) { relative, status in
            if status.isDirectory { try sync("\(root)/\(relative)") }
        }
        try sync(root)
    }

    /// Removes a file, a link or a folder with all that is in it; nothing there is fine.
    public static func removeTree(_ path: String) throws {
        guard let status = try FileStatus.ofName(path) else { return }
        guard status.isDirectory else {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw BackupError.fromErrno("cannot be removed", at: path)
            }
            return
        }
        var folders = [path]
        var index = 0
        while index < folders.count {
            for name in try names(in: folders[index]) {
                let inner = "\(folders[index])/\(name)"
                if try FileStatus.ofName(inner)?.isDirectory == true {
                    folders.append(inner)
                } else if unlink(inner) != 0 && errno != ENOENT {
                    throw BackupError.fromErrno("cannot be removed", at: inner)
                }
            }
            index += 1
        }
        for folder in folders.reversed() where rmdir(folder) != 0 && errno != ENOENT {
            throw BackupError.fromErrno("cannot be removed", at: folder)
        }
    }
}
