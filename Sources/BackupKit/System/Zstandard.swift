import CZstd

/// The one owner of libzstd's pointers. https://facebook.github.io/zstd/doc/api_manual_latest.html
/// A context serves one thread at a time and is used again for frame after frame.
public final class ZstandardCompressor {
    public static var libraryVersion: String { String(cString: ZSTD_versionString()) }

    private let context: OpaquePointer

    public init() throws {
        guard let context = ZSTD_createCCtx() else {
            throw BackupError.exhausted("there is not enough memory for compression")
        }
        self.context = context
    }

    deinit { ZSTD_freeCCtx(context) }

    /// Bytes that a compressed frame of `count` bytes may need.
    public static func bound(_ count: Int) -> Int { ZSTD_compressBound(count) }

    /// How a frame is compressed.
    enum Effort {
        /// As `zstd -N` does it.
        case level(Int32)
        /// For data that hardly compresses, such as PDFs: one hash table whose matches reach over the whole frame. On
        /// PDFs this is smaller than level 3, whose window is half as large, and takes 60 % of its time. `stride` is how far it
        /// steps over what does not match: on PDFs, 8 takes a quarter less time than 1 for one percent more bytes.
        case wideAndFast(windowLog: Int32, stride: Int32 = 8)
    }

    /// Writes one frame with a content checksum; returns its length.
    func compress(
        _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer, _ effort: Effort,
        checksum: Bool = true
    ) throws -> Int {
        try check(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters))
        switch effort {
        case .level(let level):
            try set(ZSTD_c_compressionLevel, level)
        case .wideAndFast(let windowLog, let stride):
            try set(ZSTD_c_compressionLevel, 1)
            try set(ZSTD_c_strategy, Int32(ZSTD_fast.rawValue))
            try set(ZSTD_c_windowLog, windowLog)
            try set(ZSTD_c_hashLog, 17)
            try set(ZSTD_c_minMatch, 6)
            try set(ZSTD_c_targetLength, stride)
        }
        try set(ZSTD_c_checksumFlag, checksum ? 1 : 0)
        return try check(
            ZSTD_compress2(context, target.baseAddress, target.count, source.baseAddress, source.count))
    }

    private func set(_ parameter: ZSTD_cParameter, _ value: Int32) throws {
        try check(ZSTD_CCtx_setParameter(context, parameter, value))
    }

    @discardableResult
    private func check(_ result: Int) throws -> Int {
        guard ZSTD_isError(result) == 0 else {
            throw BackupError(.failed, "compression failed: \(String(cString: ZSTD_getErrorName(result)))")
        }
        return result
    }
}

/// Whole frames, unpacked in one step.
public final class ZstandardDecompressor {
    private let context: OpaquePointer

    public init() throws {
        guard let context = ZSTD_createDCtx() else {
            throw BackupError.exhausted("there is not enough memory for decompression")
        }
        self.context = context
    }

    deinit { ZSTD_freeDCtx(context) }

    /// Unpacks exactly one frame, which MUST end where `frame` ends; nil and a reason when it does not decode.
    func decompress(_ frame: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> (Int?, String) {
        let length = ZSTD_findFrameCompressedSize(frame.baseAddress, frame.count)
        guard ZSTD_isError(length) == 0 else { return (nil, String(cString: ZSTD_getErrorName(length))) }
        guard length == frame.count else { return (nil, "the frame ends early") }
        let result = ZSTD_decompressDCtx(context, target.baseAddress, target.count, frame.baseAddress, frame.count)
        guard ZSTD_isError(result) == 0 else { return (nil, String(cString: ZSTD_getErrorName(result))) }
        return (result, "")
    }
}

/// Any zstd stream, piece by piece, as `zstd -d` reads it: several frames, skippable frames in between.
final class ZstandardStream: UnpackingStream {
    static let name = "zstd frame"
    /// RFC 8878 §3.1.1: of a frame that holds data; those to be skipped have others.
    static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    /// `zstd -d` takes windows of up to 128 MiB without being asked twice, and so do we.
    static let windowLogMax: Int32 = 27

    private let context: OpaquePointer
    private(set) var isAtEnd = true

    init() throws {
        guard let context = ZSTD_createDCtx() else {
            throw BackupError.exhausted("there is not enough memory for decompression")
        }
        self.context = context
        ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, Self.windowLogMax)
    }

    deinit { ZSTD_freeDCtx(context) }

    func begin() { isAtEnd = false }

    func step(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) -> UnpackingStep {
        var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
        var output = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
        let result = ZSTD_decompressStream(context, &output, &input)
        var step = UnpackingStep(taken: input.pos, produced: output.pos)
        guard ZSTD_isError(result) == 0 else {
            let code = ZSTD_getErrorCode(result)
            step.failure = String(cString: ZSTD_getErrorName(result))
            // None of them says that the bytes are damaged.
            step.refused = [
                ZSTD_error_frameParameter_windowTooLarge, ZSTD_error_dictionary_wrong, ZSTD_error_memory_allocation,
            ].contains(code)
            return step
        }
        isAtEnd = result == 0
        return step
    }
}
