import CZlib

/// The one owner of zlib's pointers: the members of a gzip file, each checked against the CRC and the length at its end.
/// https://zlib.net/manual.html
public final class GzipStream: UnpackingStream {
    public static var libraryVersion: String { String(cString: zlibVersion()) }

    static let name = "gzip member"
    static let magic: [UInt8] = [0x1F, 0x8B]

    /// zlib remembers where it lies.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private(set) var isAtEnd = true

    init() throws {
        stream.initialize(to: z_stream())
        // The largest window, and gzip's header and trailer around it.
        let windowBits: Int32 = 15 + 16
        let size = Int32(MemoryLayout<z_stream>.size)
        guard inflateInit2_(stream, windowBits, ZLIB_VERSION, size) == Z_OK else {
            stream.deallocate()
            throw BackupError(.failed, "out of memory for decompression")
        }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    func begin() {
        inflateReset(stream)
        isAtEnd = false
    }

    func step(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> UnpackingStep {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: source.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(source.count)
        stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = UInt32(target.count)
        let result = inflate(stream, Z_NO_FLUSH)
        var step = UnpackingStep(
            taken: source.count - Int(stream.pointee.avail_in), produced: target.count - Int(stream.pointee.avail_out))
        switch result {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: isAtEnd = true
        default: step.failure = stream.pointee.msg.map { String(cString: $0) } ?? "zlib's error \(result)"
        }
        return step
    }
}
