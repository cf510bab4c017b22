import CSystem
import Glibc

/// Takes text: calls what appends to its buffer, which is passed on when it is large.
typealias TextSink = ((inout [UInt8]) throws -> Void) throws -> Void

/// A nameless file for what is too large for memory and must be known whole before it can be passed on. It vanishes with
/// its handle, also when the process is killed.
public struct SpoolFile: Sendable {
    private let file: FileHandle
    private var buffer: [UInt8] = []
    /// So much is kept in memory before it goes into the file.
    private let limit: Int
    public private(set) var size: Int64 = 0

    /// Where temporary data goes: `$TMPDIR`, else /var/tmp, which unlike /tmp is seldom held in memory.
    static func folder() throws -> String {
        let chosen = getenv("TMPDIR").flatMap { String(validatingCString: $0) } ?? ""
        let folder = chosen.isEmpty ? "/var/tmp" : chosen
        // To whoever reads exit codes, what is not there is a backup.
        guard try FileStatus.ofTarget(folder)?.isDirectory == true else {
            throw BackupError(
                .failed, "there is no such folder for temporary data", at: folder,
                remedy: "set TMPDIR to one that exists")
        }
        return folder
    }

    public init(inMemory limit: Int = 1 << 18) throws {
        self.limit = limit
        let folder = try Self.folder()
        file = try FileHandle.nameless(in: folder, toldAs: "temporary data in \(folder)")
        // What is not touched takes no memory; growing would for a while take three times as much.
        buffer.reserveCapacity(limit + limit / 16)
    }

    /// Lets `body` append to the buffer, which is written out when it is large.
    public mutating func append(_ body: (inout [UInt8]) throws -> Void) throws {
        try body(&buffer)
        if buffer.count >= limit { try flush() }
    }

    public mutating func write(_ bytes: UnsafeRawBufferPointer) throws { try append { $0 += bytes } }

    public mutating func flush() throws {
        try buffer.withUnsafeBytes { try file.write($0) }
        size += Int64(buffer.count)
        buffer.removeAll(keepingCapacity: true)
    }

    /// Where the next byte will be.
    public var position: Int64 { size + Int64(buffer.count) }

    /// Reads a stretch back that was appended at once, or any; `flush` first for that.
    public func read(_ range: Range<Int64>) throws -> [UInt8] {
        if range.lowerBound >= size {
            return Array(buffer[Int(range.lowerBound - size)..<Int(range.upperBound - size)])
        }
        let bytes = try [UInt8](unsafeUninitializedCapacity: range.count) { space, used in
            used = try file.read(into: UnsafeMutableRawBufferPointer(space), at: range.lowerBound)
        }
        guard bytes.count == range.count else { throw BackupError(.failed, "became shorter", at: file.path) }
        return bytes
    }

    /// Reads everything back; `flush` first.
    public func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try file.forEachChunk(body)
    }
}

extension FileHandle {
    /// A file without a name in a folder. Errors call it `name`.
    static func nameless(in folder: String, toldAs name: String) throws -> FileHandle {
        guard let file = try ifNameless(in: folder, toldAs: name) else { throw noNameless(in: folder) }
        return file
    }

    /// The same, but nil where the file system has no such files.
    static func ifNameless(in folder: String, toldAs name: String) throws -> FileHandle? {
        let descriptor = csystem_open_nameless(folder)
        if descriptor >= 0 { return FileHandle(owning: descriptor, path: name) }
        if [EOPNOTSUPP, EISDIR, ENOENT].contains(errno) { return nil }
        throw noNameless(in: folder)
    }

    private static func noNameless(in folder: String) -> BackupError {
        BackupError.fromErrno("cannot hold temporary data", at: folder)
    }
}
