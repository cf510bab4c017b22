import Glibc

/// A folder as a carrier. Links are never followed, and nothing but files and folders may be in it, unless the limits say
/// that such is left out: then `visit` names it.
public struct DirectoryReader: CarrierReader {
    private let root: RootDirectory
    private let limits: ReadLimits

    public init(_ path: String, limits: ReadLimits = ReadLimits()) throws {
        root = try RootDirectory(path)
        self.limits = limits
    }

    public func list() throws -> [EntryInfo] { try contents().entries }

    private func contents() throws -> (entries: [EntryInfo], findings: [Finding]) {
        var entries: [EntryInfo] = []
        var findings: [Finding] = []
        var meter = LimitMeter(limits)
        func leaveOut(_ path: String, _ reason: String) {
            findings.append(Finding(.skipped, .warning, path, "was left out: \(reason)"))
        }
        try Directory.walk(root.path, obstacle: limits.leavesOutOddFiles ? leaveOut : nil) { path, status in
            if limits.leavesOutOddFiles, let reason = oddity(path, status) { return leaveOut(path, reason) }
            guard status.isRegular || status.isDirectory else {
                throw BackupError(
                    .refused, "is \(status.kindText), which a backup does not hold", at: "\(root.path)/\(path)")
            }
            try EntryName.check(path)
            // Rounds down also before 1970.
            let seconds = floorDivide(status.modifiedNanoseconds, 1_000_000_000)
            let info = EntryInfo(path: path, size: status.isDirectory ? 0 : status.size, modified: seconds)
            do { try meter.admit(info, isFolder: status.isDirectory) } catch let error as BackupError {
                guard let twin = entries.first(where: { Self.folded($0.path) == Self.folded(path) }) else {
                    throw error
                }
                let reason = "its name differs from \(twin.path) only in case or Unicode form"
                if limits.leavesOutOddFiles { return leaveOut(path, reason) }
                throw BackupError(
                    .refused, reason, at: "\(root.path)/\(path)", remedy: "give one of the two another name")
            }
            if status.isRegular { entries.append(info) }
        }
        return (entries, findings)
    }

    private static func folded(_ path: String) -> String { path.uppercased().lowercased() }

    /// Why a name cannot be read as a file of a backup, or nil.
    private func oddity(_ path: String, _ status: FileStatus) -> String? {
        guard status.isRegular || status.isDirectory else { return "it is \(status.kindText)" }
        do {
            try EntryName.check(path)
            if status.isRegular { _ = try root.openForReading(path) }
            return nil
        } catch { return (error as? BackupError)?.message ?? "it cannot be read" }
    }

    public func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        let (all, findings) = try contents()
        let entries = all.filter(isWanted)
        try Parallel.forEach(entries.count, state: { ReadBuffer() }) { buffer, number in
            try Interrupt.check()
            try body(entries[number], FileBytes(root, entries[number], buffer))
        }
        return findings
    }

    public func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try EntryName.check(path)
        let file = try root.openForReading(path)
        let info = EntryInfo(path: path, size: try file.status().size, modified: 0)
        try FileBytes(root, info, ReadBuffer()).forEachChunk(body)
    }
}

/// Memory that one thread reads file after file into.
private final class ReadBuffer {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 19, alignment: 16)
    deinit { bytes.deallocate() }
}

private struct FileBytes: EntryBytes {
    private let root: RootDirectory
    private let info: EntryInfo
    private let buffer: ReadBuffer

    init(_ root: RootDirectory, _ info: EntryInfo, _ buffer: ReadBuffer) {
        self.root = root
        self.info = info
        self.buffer = buffer
    }

    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let file = try root.openForReading(info.path)
        var offset: Int64 = 0
        while offset < info.size {
            try Interrupt.check()
            let want = Int(min(Int64(buffer.bytes.count), info.size - offset))
            let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[..<want]), at: offset)
            guard count > 0 else { break }
            try body(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
            offset += Int64(count)
        }
        guard offset == info.size, try file.status().size == info.size else {
            throw BackupError(.damaged, "changed while it was read", at: file.path)
        }
    }
}

/// Fills a folder. Whoever calls wraps it in `AtomicFile.writeDirectory`, which makes the folders durable and gives
/// the whole its name.
public final class DirectoryWriter: CarrierWriter {
    private let root: RootDirectory
    private var names = EntryNameSet()

    public init(_ root: RootDirectory) { self.root = root }

    public func add(
        _ info: EntryInfo, _ produce: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        try EntryName.check(info.path)
        try names.insert(info.path)
        let file = try root.create(info.path)
        var written: Int64 = 0
        try produce { bytes in
            try Interrupt.check()
            try file.write(bytes)
            written += Int64(bytes.count)
        }
        guard written == info.size else {
            throw BackupError(
                .failed, "changed while it was read: \(written) bytes came where \(info.size) were announced",
                at: info.path)
        }
        try file.setModified(seconds: info.modified)
        try file.sync()
    }

    public func finish() {}
}
