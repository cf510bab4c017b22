import CArchive
import Glibc

/// The one owner of libarchive's pointers. https://github.com/libarchive/libarchive/wiki/ManualPages
/// We use it to frame what we write, to unpack gzip and xz, and to read the data of zip entries. Which bytes belong to
/// which name is never its decision: tar headers and zip directories are read by our own, stricter code.
public enum LibArchive {
    /// "3.6.2"
    public static var version: String {
        String(cString: archive_version_string()).split(separator: " ").last.map(String.init) ?? ""
    }

    /// libarchive converts names through the C library's locale, and cron runs in "C", where every letter outside
    /// ASCII would fail. LC_CTYPE alone changes neither numbers nor sorting.
    ///
    /// A zip's old time fields are local time; with the zone set to UTC the same store gives the same bytes everywhere.
    /// (Its modern field, which unzip prefers, is UTC anyway, and nothing here shows local time.)
    static let localeIsSet: Bool = setenv("TZ", "UTC0", 1) == 0 && setlocale(LC_CTYPE, "C.UTF-8") != nil

    static func reason(_ archive: OpaquePointer) -> String {
        guard let text = archive_error_string(archive) else { return "unknown reason" }
        return String(cString: text).split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

/// Turns entries into the bytes of a tar or zip archive.
final class ArchiveFramer {
    private let archive: OpaquePointer
    private let entry: OpaquePointer
    private let sink: (UnsafeRawBufferPointer) throws -> Void
    /// What the sink threw: errors cannot pass through C.
    private var failure: (any Error)?
    private let isZip: Bool

    init(
        _ format: CarrierFormat, level: Int?, sink: @escaping (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard LibArchive.localeIsSet, let archive = archive_write_new() else {
            throw BackupError(.failed, "libarchive cannot be started")
        }
        guard let entry = archive_entry_new() else {
            archive_write_free(archive)
            throw BackupError(.failed, "out of memory")
        }
        self.archive = archive
        self.entry = entry
        self.sink = sink
        isZip = format == .zip
        try configure(format, level: level)
    }

    deinit {
        archive_entry_free(entry)
        // Freeing closes, and closing would write an end that nobody asked for: after a failure it writes nothing.
        archive_write_fail(archive)
        archive_write_free(archive)
    }

    private func configure(_ format: CarrierFormat, level: Int?) throws {
        if isZip {
            try check(archive_write_set_format_zip(archive))
            try check(archive_write_set_format_option(archive, "zip", "hdrcharset", "UTF-8"))
            try setOption(level, "zip", archive_write_set_format_option)
        } else {
            try check(archive_write_set_format_pax_restricted(archive))
        }
        switch format {
        case .tarGzip:
            try check(archive_write_add_filter_gzip(archive))
            // Without this the header holds the time of writing.
            try check(archive_write_set_filter_option(archive, "gzip", "timestamp", nil))
            try setOption(level, "gzip", archive_write_set_filter_option)
        case .tarXZ:
            try check(archive_write_add_filter_xz(archive))
            // Two threads at level 4 need 150 MB. The number is fixed because one thread writes other bytes than two.
            try setOption(level ?? 4, "xz", archive_write_set_filter_option)
            try check(archive_write_set_filter_option(archive, "xz", "threads", "2"))
        default:
            break
        }
        // Frames are gathered by our own code; the others get writes of a good size. No padding beyond the end blocks.
        try check(archive_write_set_bytes_per_block(archive, format == .tarZstandard ? 0 : 1 << 18))
        try check(archive_write_set_bytes_in_last_block(archive, 1))
        try check(
            archive_write_open2(
                archive, Unmanaged.passUnretained(self).toOpaque(), nil,
                { _, context, bytes, count in
                    guard let context else { return -1 }
                    let framer = Unmanaged<ArchiveFramer>.fromOpaque(context).takeUnretainedValue()
                    return framer.take(UnsafeRawBufferPointer(start: bytes, count: count))
                }, nil, nil))
    }

    private typealias OptionSetter = (
        OpaquePointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?
    ) -> Int32

    private func setOption(_ level: Int?, _ module: String, _ set: OptionSetter) throws {
        // Only zstd has levels above 9.
        if let level { try check(set(archive, module, "compression-level", String(min(level, 9)))) }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        do {
            try sink(bytes)
            return bytes.count
        } catch {
            failure = error
            return -1
        }
    }

    /// Begins an entry. What could differ between two runs over the same data (owner, times other than the
    /// modification's) is left out.
    func begin(_ info: EntryInfo, stored: Bool) throws {
        archive_entry_clear(entry)
        // Not the UTF-8 variant of this call: on the way through it, libarchive composes decomposed letters.
        archive_entry_set_pathname(entry, info.path)
        archive_entry_set_filetype(entry, UInt32(Glibc.S_IFREG))
        archive_entry_set_perm(entry, 0o644)
        archive_entry_set_size(entry, info.size)
        archive_entry_set_mtime(entry, Int(info.modified), 0)
        if isZip {
            try check(
                stored
                    ? archive_write_zip_set_compression_store(archive)
                    : archive_write_zip_set_compression_deflate(archive))
        }
        try check(archive_write_header(archive, entry))
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard bytes.count > 0 else { return }
        let written = archive_write_data(archive, bytes.baseAddress, bytes.count)
        guard written == bytes.count else { throw problem() }
    }

    func end() throws { try check(archive_write_finish_entry(archive)) }

    func close() throws { try check(archive_write_close(archive)) }

    /// A warning means that something was not written as asked, so it counts as failure.
    private func check(_ status: Int32) throws {
        guard status == ARCHIVE_OK else { throw problem() }
    }

    private func problem() -> any Error {
        failure ?? BackupError(.failed, "the archive cannot be written: \(LibArchive.reason(archive))")
    }
}

/// libarchive's view of an open file: reads through `pread`, so that several readers can share the file.
private final class ArchiveInput {
    let file: FileHandle
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    private let size: Int64
    private var offset: Int64 = 0
    /// How many zeros follow the bytes of the file.
    private var zerosAtEnd: Int
    /// Bytes that stand for those of the file.
    private let patches: [(offset: Int64, bytes: [UInt8])]
    var failure: (any Error)?

    init(_ file: FileHandle, zerosAtEnd: Int, patches: [(offset: Int64, bytes: [UInt8])]) throws {
        self.file = file
        self.zerosAtEnd = zerosAtEnd
        self.patches = patches
        size = try file.status().size
    }

    deinit { buffer.deallocate() }

    func read(_ pointer: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
        do {
            try Interrupt.check()
            var count = try file.read(into: buffer, at: offset)
            for patch in patches { apply(patch, to: count) }
            offset += Int64(count)
            if count == 0 {
                (count, zerosAtEnd) = (zerosAtEnd, 0)
                buffer.copyBytes(from: repeatElement(0, count: count))
            }
            pointer?.pointee = UnsafeRawPointer(buffer.baseAddress)
            return count
        } catch {
            failure = error
            return -1
        }
    }

    private func apply(_ patch: (offset: Int64, bytes: [UInt8]), to count: Int) {
        let (start, end) = (
            max(patch.offset, offset), min(patch.offset + Int64(patch.bytes.count), offset + Int64(count))
        )
        guard start < end else { return }
        let bytes = patch.bytes[Int(start - patch.offset)..<Int(end - patch.offset)]
        UnsafeMutableRawBufferPointer(rebasing: buffer[Int(start - offset)..<Int(end - offset)]).copyBytes(from: bytes)
    }

    func skip(_ count: Int64) -> Int64 {
        let step = min(max(count, 0), size - offset)
        offset += max(step, 0)
        return max(step, 0)
    }

    func seek(_ distance: Int64, _ whence: Int32) -> Int64 {
        let base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? offset : size
        let (target, overflow) = base.addingReportingOverflow(distance)
        guard !overflow, target >= 0 else { return Int64(ARCHIVE_FATAL) }
        offset = min(target, size)
        return offset
    }

    func open(_ archive: OpaquePointer, seekable: Bool) -> Int32 {
        archive_read_set_read_callback(archive) { _, context, pointer in
            guard let context else { return -1 }
            return Unmanaged<ArchiveInput>.fromOpaque(context).takeUnretainedValue().read(pointer)
        }
        if seekable {
            archive_read_set_skip_callback(archive) { _, context, count in
                guard let context else { return 0 }
                return Unmanaged<ArchiveInput>.fromOpaque(context).takeUnretainedValue().skip(count)
            }
            archive_read_set_seek_callback(archive) { _, context, distance, whence in
                guard let context else { return Int64(ARCHIVE_FATAL) }
                return Unmanaged<ArchiveInput>.fromOpaque(context).takeUnretainedValue().seek(distance, whence)
            }
        }
        archive_read_set_callback_data(archive, Unmanaged.passUnretained(self).toOpaque())
        return archive_read_open1(archive)
    }
}

/// Reads the entries of a zip.
final class ArchiveUnpacker {
    enum Kind {
        case zip
        /// From the front, along the headers of its entries.
        case cutZip
    }

    private let archive: OpaquePointer
    private let input: ArchiveInput
    private let kind: Kind

    /// So many zeros follow the bytes of the file; `patches` stand for bytes of it.
    init(
        _ file: FileHandle, _ kind: Kind, zerosAtEnd: Int = 0, patches: [(offset: Int64, bytes: [UInt8])] = []
    ) throws {
        guard LibArchive.localeIsSet, let archive = archive_read_new() else {
            throw BackupError(.failed, "libarchive cannot be started")
        }
        self.archive = archive
        self.kind = kind
        do {
            input = try ArchiveInput(file, zerosAtEnd: zerosAtEnd, patches: patches)
        } catch {
            archive_read_free(archive)
            throw error
        }
        let enabled: Int32
        switch kind {
        case .zip: enabled = archive_read_support_format_zip_seekable(archive)
        case .cutZip: enabled = archive_read_support_format_zip_streamable(archive)
        }
        guard enabled == ARCHIVE_OK, input.open(archive, seekable: kind == .zip) == ARCHIVE_OK else { throw damage() }
    }

    deinit { archive_read_free(archive) }

    /// Goes to the next entry: the one stream of a filter, or a file or folder of a zip. False at the end.
    func next() throws -> Bool {
        var entry: OpaquePointer?
        let status = archive_read_next_header(archive, &entry)
        if status == ARCHIVE_EOF { return false }
        // "Warn" is how libarchive says that headers contradict each other.
        guard status == ARCHIVE_OK, let entry else { throw damage() }
        current = entry
        return true
    }

    /// The entry's owner is `archive`, which keeps it until the next call of `next`.
    private var current: OpaquePointer?

    /// Whether the current entry has this name, as far as libarchive can tell: it composes letters and may turn
    /// backslashes around.
    func isNamed(_ name: [UInt8]) -> Bool {
        guard let current, let path = archive_entry_pathname(current) else { return false }
        return Self.comparable(UnsafeRawBufferPointer(start: path, count: strlen(path))) == Self.comparable(name)
    }

    /// What the current entry calls itself.
    var name: [UInt8] {
        guard let current, let path = archive_entry_pathname(current) else { return [] }
        return Array(UnsafeRawBufferPointer(start: path, count: strlen(path)))
    }

    /// What the current entry's header says of its size; nil when it says nothing, or nothing that can be.
    var size: Int64? {
        guard let current, archive_entry_size_is_set(current) != 0 else { return nil }
        let size = archive_entry_size(current)
        return 0...(1 << 56) ~= size ? size : nil
    }

    /// Seconds since 1970.
    var modified: Int64 { current.map { Int64(archive_entry_mtime($0)) } ?? 0 }

    private static func comparable(_ name: some Collection<UInt8>) -> String {
        // Swift calls composed and decomposed letters equal.
        String(decoding: name.map { $0 == UInt8(ascii: "\\") ? UInt8(ascii: "/") : $0 }, as: UTF8.self)
    }

    /// The next bytes of the current entry; empty at its end. Valid until the next call.
    func data() throws -> UnsafeRawBufferPointer {
        var pointer: UnsafeRawPointer?
        var count = 0
        var offset: Int64 = 0
        while true {
            let status = archive_read_data_block(archive, &pointer, &count, &offset)
            if status == ARCHIVE_EOF { return UnsafeRawBufferPointer(start: nil, count: 0) }
            guard status == ARCHIVE_OK else { throw damage() }
            if count > 0, let pointer { return UnsafeRawBufferPointer(start: pointer, count: count) }
        }
    }

    /// Bytes of the file that went into what came out.
    var consumed: Int64 { archive_filter_bytes(archive, -1) }

    private func damage() -> any Error {
        input.failure ?? BackupError(.damaged, "cannot be unpacked: \(LibArchive.reason(archive))", at: input.file.path)
    }
}
