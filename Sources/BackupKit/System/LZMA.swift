import CLzma

/// The one owner of liblzma's pointers: the streams of an xz file, each checked against its own checksums.
/// https://github.com/tukaani-project/xz/blob/v5.4/src/liblzma/api/lzma/base.h
public final class XZStream: UnpackingStream {
    public static var libraryVersion: String { String(cString: lzma_version_string()) }

    static let name = "xz stream"
    static let magic: [UInt8] = [0xFD, 0x37, 0x7A, 0x58, 0x5A, 0]

    /// What `xz -9` asks for, a dictionary of 64 MiB and what goes with it; we grant a stranger no more.
    private static let memoryMax: UInt64 = 66 << 20

    private let stream = UnsafeMutablePointer<lzma_stream>.allocate(capacity: 1)
    private(set) var isAtEnd = true

    init() { stream.initialize(to: lzma_stream()) }

    deinit {
        lzma_end(stream)
        stream.deallocate()
    }

    func begin() throws {
        guard lzma_stream_decoder(stream, Self.memoryMax, 0) == LZMA_OK else {
            throw BackupError(.failed, "out of memory for decompression")
        }
        isAtEnd = false
    }

    func step(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> UnpackingStep {
        stream.pointee.next_in = source.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_in = source.count
        stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = target.count
        let result = lzma_code(stream, LZMA_RUN)
        var step = UnpackingStep(
            taken: source.count - stream.pointee.avail_in, produced: target.count - stream.pointee.avail_out)
        switch result {
        case LZMA_OK, LZMA_BUF_ERROR: break
        case LZMA_STREAM_END: isAtEnd = true
        case LZMA_MEMLIMIT_ERROR:
            step.failure = "it needs \(lzma_memusage(stream) >> 20) MiB of memory"
            step.refused = true
        case LZMA_OPTIONS_ERROR: step.failure = "it is packed in a way that this liblzma does not know"
        case LZMA_DATA_ERROR: step.failure = "its bytes are damaged"
        default: step.failure = "liblzma's error \(result.rawValue)"
        }
        return step
    }
}
