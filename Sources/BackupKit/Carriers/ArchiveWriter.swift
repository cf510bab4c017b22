/// Writes an archive, also to a pipe: nothing is ever written twice or gone back to. The same entries give the same
/// bytes.
public final class ArchiveWriter: CarrierWriter {
    private let format: CarrierFormat
    private let framer: ArchiveFramer
    private let output: Output
    private var names = EntryNameSet()
    private var index = MemberIndex()
    private var isBroken = false

    /// `level` is the compressor's own; nil asks for a good one (zstd 3, gzip and zip 6, xz 4).
    public init(format: CarrierFormat, to file: FileHandle, level: Int? = nil, threads: Int? = nil) throws {
        guard format != .directory else { throw BackupError(.failed, "a folder is not an archive", at: file.path) }
        self.format = format
        let output = try Output(format, file, level: level ?? 3, threads: threads ?? Parallel.cores)
        self.output = output
        framer = try ArchiveFramer(format, level: level) { try output.write($0) }
    }

    public func add(
        _ info: EntryInfo, _ produce: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws {
        try EntryName.check(info.path)
        try names.insert(info.path)
        guard !isBroken else { throw BackupError(.failed, "the archive is incomplete already", at: info.path) }
        isBroken = true
        let isAlone = info.size >= FrameWriter.aloneSize
        if isAlone { try output.cut() }
        index.append(info, at: output.position)
        try framer.begin(info, stored: Self.isCompressed(info.path))
        var rest = info.size
        try produce { bytes in
            try Interrupt.check()
            rest -= Int64(bytes.count)
            guard rest >= 0 else { throw Self.wrongSize(info, "more") }
            try framer.write(bytes)
        }
        guard rest == 0 else { throw Self.wrongSize(info, "\(-rest + info.size)") }
        try framer.end()
        if isAlone { try output.cut() }
        isBroken = false
    }

    public func finish() throws {
        guard !isBroken else { throw BackupError(.failed, "the archive is incomplete") }
        isBroken = true
        let end = output.position
        try framer.close()
        try output.finish(index, end: end)
    }

    private static func wrongSize(_ info: EntryInfo, _ count: String) -> BackupError {
        BackupError(
            .failed, "changed while it was read: \(count) bytes came where \(info.size) were announced", at: info.path)
    }

    /// Where the framed bytes go.
    private enum Output {
        case frames(FrameWriter)
        case file(FileHandle)

        init(_ format: CarrierFormat, _ file: FileHandle, level: Int, threads: Int) throws {
            self =
                try format == .tarZstandard
                ? .frames(FrameWriter(to: file, level: level, threads: threads)) : .file(file)
        }

        /// Offset in the tar; means nothing in the other forms.
        var position: Int64 {
            if case .frames(let writer) = self { return writer.position }
            return 0
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws {
            switch self {
            case .frames(let writer): try writer.write(bytes)
            case .file(let file): try file.write(bytes)
            }
        }

        func cut() throws {
            if case .frames(let writer) = self { try writer.cut() }
        }

        func finish(_ index: MemberIndex, end: Int64) throws {
            if case .frames(let writer) = self { try writer.finish(index: index.encoded(end: end)) }
        }
    }

    private static func isCompressed(_ path: String) -> Bool {
        guard let dot = path.utf8.lastIndex(of: UInt8(ascii: ".")) else { return false }
        return CarrierFormat.compressedEndings.contains(path[path.utf8.index(after: dot)...].lowercased())
    }
}
