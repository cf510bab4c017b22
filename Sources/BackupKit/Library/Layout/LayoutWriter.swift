/// Adds files to a carrier and keeps the books: size and digest of each, for the manifest.
final class LayoutWriter {
    private let carrier: any CarrierWriter
    private let hasher = SHA256Hasher()
    private let progress: Progress
    /// The time that generated files carry.
    private let time: Int64
    private(set) var files: [String: FileFacts] = [:]
    private(set) var bytes: Int64 = 0
    /// The bytes of all that is known to come: the attachments, and each text once it is made.
    private var total: Int64

    /// `total` is the size of the attachments.
    init(_ carrier: any CarrierWriter, time: Timestamp, total: Int64, progress: Progress) {
        self.carrier = carrier
        self.time = time.milliseconds / 1000
        self.total = total
        self.progress = progress
    }

    @discardableResult func add(
        _ path: String, size: Int64, modified: Int64? = nil, isLocalOnly: Bool = false,
        also: ((UnsafeRawBufferPointer) -> Void)? = nil,
        _ produce: ((UnsafeRawBufferPointer) throws -> Void) throws -> Void
    ) throws -> SHA256Digest {
        let info = EntryInfo(path: path, size: size, modified: modified ?? time)
        do {
            try carrier.add(info) { sink in
                try withoutActuallyEscaping(sink) { sink in
                    try produce { chunk in try pass(chunk, of: path, to: sink, also: also) }
                }
            }
        } catch {
            _ = hasher.finish()
            throw error
        }
        let digest = hasher.finish()
        files[path] = FileFacts(size: size, digest: digest, isLocalOnly: isLocalOnly)
        return digest
    }

    private func pass(
        _ chunk: UnsafeRawBufferPointer, of path: String, to sink: (UnsafeRawBufferPointer) throws -> Void,
        also: ((UnsafeRawBufferPointer) -> Void)?
    ) throws {
        try Interrupt.check()
        hasher.update(chunk)
        also?(chunk)
        bytes += Int64(chunk.count)
        try sink(chunk)
        progress.report(ProgressEvent("exporting", done: UInt64(bytes), of: UInt64(max(0, total)), item: path))
    }

    func add(_ path: String, text: some Sequence<UInt8>) throws {
        let text = Array(text)
        total += Int64(text.count)
        _ = try text.withUnsafeBytes { bytes in try add(path, size: Int64(bytes.count)) { try $0(bytes) } }
    }

    func add(_ path: String, _ spool: inout SpoolFile) throws {
        try spool.flush()
        let finished = spool
        total += finished.size
        try add(path, size: finished.size) { try finished.forEachChunk($0) }
    }

    func finish() throws { try carrier.finish() }
}
