import CSystem
import Glibc

/// An open file descriptor that closes itself. All of the library's file reading and writing goes through here, so
/// that EINTR, short reads and short writes are dealt with once.
public final class FileHandle: Sendable {
    public let descriptor: Int32
    /// What error messages call it.
    public let path: String

    /// Takes ownership of `descriptor`.
    public init(owning descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    /// Opens for reading. A FIFO or a device is refused instead of waited for: nothing we back up is one.
    public static func openForReading(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: path) }
        let file = FileHandle(owning: descriptor, path: path)
        try file.mustBeRegular()
        return file
    }

    /// Throws where this is a folder, a pipe or a device.
    func mustBeRegular() throws {
        if try status().isRegular { return }
        throw BackupError(
            .refused, "is not a regular file", at: path,
            remedy: "a file is needed there: move this away, and put the file back from a copy")
    }

    /// Throws with the reason where a file is there and may not be read.
    static func checkReadable(_ path: String) throws {
        guard access(path, R_OK) == 0 else {
            throw BackupError.fromErrno("cannot be read", at: path)
        }
    }

    /// Whether permissions alone keep this process from reading what is there.
    static func isDenied(_ path: String) -> Bool { access(path, R_OK) != 0 && errno == EACCES }

    /// Whether a path is that of a file that whoever started this program has opened.
    static func isHandedOver(_ path: String) -> Bool {
        ["/dev/fd/", "/proc/self/fd/", "/dev/stdin"].contains(where: path.hasPrefix)
    }

    /// Opens a file that is read once, from its start to its end. What is no regular file is refused, for nobody knows
    /// whether anything ever comes out of a pipe, unless whoever started this program has handed it over as an open file:
    /// `/dev/fd/3`, `<(command)`, `/dev/stdin`.
    public static func openForReadingOnce(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: path) }
        let file = FileHandle(owning: descriptor, path: path)
        let status = try file.status()
        guard status.isRegular || isHandedOver(path) && !status.isDirectory else {
            throw BackupError(
                .refused, status.isDirectory ? "is a folder" : "is a pipe or a device, not a file", at: path,
                remedy: status.isDirectory ? nil : "name a file, or hand an open one over as /dev/fd/3")
        }
        // Now that it is open, waiting for what comes is right.
        guard csystem_fcntl(descriptor, F_SETFL, 0) == 0 else {
            throw BackupError.fromErrno("cannot be read", at: path)
        }
        return file
    }

    /// What a pipe behind this program reads.
    public static func standardOutput() throws -> FileHandle {
        let descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be written", at: "standard output") }
        return FileHandle(owning: descriptor, path: "standard output")
    }

    /// Opens a file that only grows, making it where there is none, and keeps others who do so waiting until it is closed.
    static func openForAppending(_ path: String, mode: mode_t = 0o600) throws -> FileHandle {
        let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw BackupError.fromErrno("cannot be opened", at: path) }
        let file = FileHandle(owning: descriptor, path: path)
        try file.mustBeRegular()
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw BackupError.fromErrno("cannot be locked", at: path) }
            try Interrupt.check()
        }
        return file
    }

    /// Keeps other processes from locking the file or folder as long as this handle lives; the kernel frees it when the
    /// process ends. Returns whether it could be had within so many seconds.
    func lock(waitSeconds: Double) throws -> Bool {
        let end = monotonicSeconds() + waitSeconds
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw BackupError.fromErrno("cannot be locked", at: path)
            }
            guard monotonicSeconds() < end else { return false }
            usleep(100_000)
            try Interrupt.check()
        }
        return true
    }

    /// Creates a file that did not exist, readable by its owner alone.
    public static func create(_ path: String, mode: mode_t = 0o600, toldAs name: String? = nil) throws -> FileHandle {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw BackupError.uncreated(name ?? path) }
        return FileHandle(owning: descriptor, path: name ?? path)
    }

    public func status() throws -> FileStatus {
        var raw = stat()
        guard fstat(descriptor, &raw) == 0 else { throw BackupError.fromErrno("cannot be examined", at: path) }
        return FileStatus(raw)
    }

    /// Fills as much of `buffer` as the file has from `offset` on; fewer bytes than asked for means the end.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done, off_t(offset) + done)
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw BackupError.fromErrno("cannot be read at byte \(offset + Int64(done))", at: path)
            }
            done += count
        }
        return done
    }

    /// Fills as much of `buffer` as there is from the current position on; also for pipes.
    public func readNext(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        var done = 0
        while done < buffer.count {
            let count = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done)
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR {
                    // A pipe may stay silent for ever, and somebody may have had enough of that.
                    try Interrupt.check()
                    continue
                }
                throw BackupError.fromErrno("cannot be read", at: path)
            }
            done += count
        }
        return done
    }

    public func write(_ bytes: UnsafeRawBufferPointer) throws {
        var done = 0
        while done < bytes.count {
            let count = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done)
            if count < 0 {
                if errno == EINTR { continue }
                if errno == EPIPE { throw ClosedPipe(path: path) }
                throw BackupError.fromErrno("cannot be written", at: path)
            }
            done += count
        }
    }

    public func write(_ text: String) throws {
        var text = text
        try text.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
    }

    /// Makes the content durable. A failed fsync is final: the kernel may have dropped the pages, so a second call
    /// that succeeds would prove nothing.
    public func sync() throws {
        guard fsync(descriptor) == 0 else { throw BackupError.fromErrno("cannot be made durable", at: path) }
    }

    /// Gives the file the modification time that it had where it came from.
    public func setModified(seconds: Int64) throws {
        try setModified(timespec(tv_sec: Int(seconds), tv_nsec: 0))
    }

    func setModified(nanoseconds: Int64) throws {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        // A time before 1970 counts forward from the second before it.
        let (whole, part) = rest < 0 ? (seconds - 1, rest + 1_000_000_000) : (seconds, rest)
        try setModified(timespec(tv_sec: Int(whole), tv_nsec: Int(part)))
    }

    private func setModified(_ time: timespec) throws {
        // UTIME_OMIT, a macro that Swift does not see: the time of access stays.
        let omitted = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
        let status = withUnsafePointer(to: (omitted, time)) { pair in
            pair.withMemoryRebound(to: timespec.self, capacity: 2) { futimens(descriptor, $0) }
        }
        guard status == 0 else { throw BackupError.fromErrno("cannot be given its time", at: path) }
    }

    /// Calls `body` with the whole file in pieces of at most `size` bytes.
    public func forEachChunk(size: Int = 1 << 20, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            try Interrupt.check()
            let count = try read(into: buffer, at: offset)
            if count > 0 { try body(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            if count < size { return }
            offset += Int64(count)
        }
    }
}

/// The facts about a file that the tool uses.
public struct FileStatus: Sendable, Equatable {
    public let size: Int64
    public let modifiedNanoseconds: Int64
    /// When its content or its attributes changed last, which no program can set.
    public let changedNanoseconds: Int64
    public let inode: UInt64
    public let device: UInt64
    /// How many names it has.
    public let names: UInt64
    public let mode: UInt32
    public let owner: UInt32
    public let group: UInt32

    public init(_ raw: stat) {
        size = Int64(raw.st_size)
        modifiedNanoseconds = Self.nanoseconds(raw.st_mtim)
        changedNanoseconds = Self.nanoseconds(raw.st_ctim)
        inode = UInt64(raw.st_ino)
        device = UInt64(raw.st_dev)
        names = UInt64(raw.st_nlink)
        mode = raw.st_mode
        owner = raw.st_uid
        group = raw.st_gid
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec).times(clamped: 1_000_000_000).plus(clamped: Int64(time.tv_nsec))
    }

    /// Whether both are of one file or folder, under whatever names.
    public func isSame(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }

    /// Whether both are of one file, in which nobody has written between them. A second name changes only the attributes.
    func hasSameContent(as other: FileStatus) -> Bool {
        isSame(as: other) && size == other.size && modifiedNanoseconds == other.modifiedNanoseconds
    }

    public var isRegular: Bool { mode & S_IFMT == S_IFREG }
    public var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
    public var isLink: Bool { mode & S_IFMT == S_IFLNK }
    /// What people call it.
    public var kindName: String {
        switch mode & S_IFMT {
        case S_IFREG: "a file"
        case S_IFDIR: "a folder"
        case S_IFLNK: "a link"
        case S_IFIFO: "a pipe"
        case S_IFSOCK: "a socket"
        default: "a device"
        }
    }

    /// What it is, where it is neither a file nor a folder.
    var kindText: String { isLink ? "a symbolic link" : "a device or a pipe" }

    /// The status of the name itself, links not followed; nil when there is nothing of that name.
    public static func ofName(_ path: String) throws -> FileStatus? { try of(path, lstat) }

    /// The status of what the name leads to; nil when there is nothing.
    public static func ofTarget(_ path: String) throws -> FileStatus? { try of(path, stat) }

    static func of(_ path: String, _ call: (UnsafePointer<CChar>, UnsafeMutablePointer<stat>) -> Int32) throws
        -> FileStatus?
    {
        var raw = stat()
        if call(path, &raw) == 0 { return FileStatus(raw) }
        // Nothing has a name that is too long.
        if [ENOENT, ENOTDIR, ENAMETOOLONG].contains(errno) { return nil }
        throw BackupError.fromErrno("cannot be examined", at: path)
    }
}

extension BackupError {
    static func missing(_ path: String) -> BackupError {
        BackupError(.notFound, "does not exist", at: path, remedy: "check the name and the folder")
    }

    /// Why something could not be made, by the current `errno`. People know the folder, not the temporary name in it.
    static func uncreated(_ path: String) -> BackupError {
        switch errno {
        case ENOENT: BackupError(.notFound, "no such folder", at: parent(of: path), remedy: "make the folder first")
        case ENOTDIR: BackupError(.notFound, "is not a folder", at: parent(of: path), remedy: "choose another place")
        case EACCES:
            BackupError(.denied, "no permission to write in this folder", at: parent(of: path), remedy: whoMayWrite)
        case EROFS:
            BackupError(.failed, "lies on a file system that is read-only", at: parent(of: path), remedy: mountWritable)
        default: fromErrno("cannot be created", at: path)
        }
    }

    private static let mountWritable =
        "mount its file system so that it can be written to, or use a copy in another place"
    static let whoMayRead = "run this as a user who may read it, or change its permissions"
    static let whoMayWrite =
        "run the command as the user who owns it, get permission to write there, or use a copy in another place"

    /// Throws where this process may not write to what is there.
    static func mustBeWritable(_ path: String) throws {
        guard access(path, W_OK) != 0, [EACCES, EROFS, EPERM].contains(errno) else { return }
        let isReadOnly = errno == EROFS
        let why = isReadOnly ? "lies on a file system that is read-only" : "you have no permission to write to it"
        throw BackupError(
            isReadOnly ? .failed : .denied, why, at: path, remedy: isReadOnly ? mountWritable : whoMayWrite)
    }

    /// An error made of the current `errno`; a full disk and a missing file keep codes of their own.
    static func fromErrno(_ what: String, at path: String) -> BackupError {
        let number = errno
        let reason = String(cString: strerror(number))
        switch number {
        case EFBIG:
            return BackupError(
                .destinationFull, "\(what): the file could not grow: \(reason)", at: path,
                remedy:
                    "lift the limit on file sizes ('ulimit -f' shows it) or free some space, and run the command again")
        case ENOSPC, EDQUOT:
            return BackupError(
                .destinationFull, "\(what): \(reason)", at: path, remedy: "free some space and run the command again")
        case EINTR where Interrupt.signal != nil:
            return BackupError(.interrupted, "interrupted", at: path)
        case ENOENT, ENOTDIR:
            return BackupError(.notFound, "\(what): \(reason)", at: path)
        case EEXIST:
            return BackupError(.exists, "\(what): \(reason)", at: path)
        case EACCES, EPERM:
            let isReading = ["opened", "read", "listed", "examined"].contains { what.contains("cannot be \($0)") }
            return BackupError(
                .denied, "\(what): \(reason)", at: path,
                remedy: isReading ? whoMayRead : "run this as a user who may do that, or change the permissions")
        case ENOMEM: return .exhausted("\(what): \(reason)", at: path)
        case EMFILE, ENFILE: return .exhausted("\(what): \(reason)", ulimit: "-n", at: path)
        case EROFS:
            return BackupError(
                .failed, "\(what): \(reason)", at: path, remedy: "mount its file system so that it can be written to")
        default:
            return BackupError(.failed, "\(what): \(reason)", at: path)
        }
    }
}

/// The program that reads the output has closed it. A command that only prints (`show … | head`) then ends with 1, without
/// a message: it cannot know whether the rest was wanted.
public struct ClosedPipe: Error {
    let path: String

    var asFailure: BackupError {
        BackupError(.failed, "the program that reads it ended before everything was written", at: path)
    }
}
