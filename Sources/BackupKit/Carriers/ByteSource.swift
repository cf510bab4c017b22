/// Where the bytes of a tar come from, whatever they are packed in.
protocol ByteSource: AnyObject {
    /// The next bytes, valid until the next call; empty at the end. Throws `.damaged` where they cannot be had.
    func next() throws -> UnsafeRawBufferPointer
    /// Goes on at this offset of what comes out; false when that cannot be done without reading all before it.
    func seek(to offset: Int64) throws -> Bool
    /// Bytes of the file that went in so far.
    var consumed: Int64 { get }
    /// What is to be said about the packing once everything was read.
    func findingsAtEnd() throws -> [Finding]
}

extension BackupError {
    var asFinding: Finding {
        Finding(
            code == .damaged ? .archiveDamaged : .unreadable, .damage, subject ?? "", message, remedy: remedy)
    }
}

extension Finding {
    static func trailingData(_ file: FileHandle, _ count: Int64) -> Finding {
        Finding(
            .trailingData, .damage, file.path,
            "\(count) bytes that belong to nothing follow the end of the archive")
    }
}

/// A file as it is.
final class PlainSource: ByteSource {
    private let file: FileHandle
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 19, alignment: 16)
    private let size: Int64
    private var offset: Int64 = 0

    init(_ file: FileHandle) throws {
        self.file = file
        size = try file.status().size
    }

    deinit { buffer.deallocate() }

    func next() throws -> UnsafeRawBufferPointer {
        let count = try file.read(into: buffer, at: offset)
        offset += Int64(count)
        return UnsafeRawBufferPointer(rebasing: buffer[..<count])
    }

    /// Not beyond the end: who reads on learns where that is.
    func seek(to offset: Int64) throws -> Bool {
        guard offset <= size else { return false }
        self.offset = offset
        return true
    }

    var consumed: Int64 { offset }

    func findingsAtEnd() -> [Finding] { [] }
}

/// Any zstd file, from its beginning to its end.
final class ZstandardSource: ByteSource {
    private let file: FileHandle
    private let size: Int64
    private let stream: ZstandardStream
    private let packed = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    private let unpacked = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 19, alignment: 16)
    private var waiting = UnsafeRawBufferPointer(start: nil, count: 0)
    private var hasIndex = false
    private(set) var consumed: Int64 = 0

    init(_ file: FileHandle) throws {
        self.file = file
        size = try file.status().size
        stream = try ZstandardStream()
    }

    deinit {
        packed.deallocate()
        unpacked.deallocate()
    }

    func next() throws -> UnsafeRawBufferPointer {
        while true {
            if stream.atFrameEnd { try passSkippableFrames() }
            if waiting.isEmpty {
                let count = try file.read(into: packed, at: consumed)
                waiting = UnsafeRawBufferPointer(rebasing: packed[..<count])
            }
            if waiting.isEmpty && stream.atFrameEnd { return waiting }
            // Called with no input at the end of the file too: the decoder may still hold bytes back.
            let step = stream.step(waiting, into: unpacked)
            consumed += Int64(step.taken)
            if let failure = step.failure {
                throw BackupError(
                    step.refused ? .refused : .damaged,
                    "the zstd frame at byte \(consumed) cannot be unpacked: \(failure)", at: file.path)
            }
            waiting = UnsafeRawBufferPointer(rebasing: waiting[step.taken...])
            if step.produced > 0 { return UnsafeRawBufferPointer(rebasing: unpacked[..<step.produced]) }
            if step.taken == 0 && waiting.isEmpty { throw cutOff() }
        }
    }

    /// Between two frames: steps over those that carry no data, and notices our index among them.
    private func passSkippableFrames() throws {
        while true {
            var head = try ByteFields(file, at: consumed, count: 8)
            guard let magic = head.number(UInt32.self), magic & 0xFFFF_FFF0 == 0x184D_2A50 else { return }
            guard let length = head.number(UInt32.self), consumed + 8 + Int64(length) <= size else { throw cutOff() }
            if try magic == MemberIndex.skippableMagic || MemberIndex.isMarked(file, at: consumed + 8) {
                hasIndex = true
            }
            consumed += 8 + Int64(length)
            waiting = UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    private func cutOff() -> BackupError {
        BackupError(.damaged, "is cut off: its last zstd frame is not whole", at: file.path)
    }

    func seek(to offset: Int64) -> Bool { false }

    /// Whoever reads an archive of ours in this way could not use its index.
    func findingsAtEnd() -> [Finding] {
        guard hasIndex else { return [] }
        return [
            Finding(
                .archiveDamaged, .warning, file.path,
                "the list of members at its end is damaged; it was read from front to back instead",
                remedy: "the files are sound if nothing else is reported; write the archive again")
        ]
    }
}

/// A gzip or xz file, unpacked by libarchive.
final class FilterSource: ByteSource {
    private let file: FileHandle
    private let size: Int64
    private let kind: ArchiveUnpacker.Kind
    /// Opening it unpacks the first bytes.
    private var unpacker: ArchiveUnpacker?
    private var atEnd = false
    private var checksum = CRC32()
    private var produced: UInt64 = 0
    private var damage: (cause: BackupError, rest: UnpackedRest?)?

    init(_ file: FileHandle, _ kind: ArchiveUnpacker.Kind) throws {
        self.file = file
        self.kind = kind
        size = try file.status().size
        if kind == .xz { try XZLayout.refuseLargeDictionaries(file) }
    }

    func next() throws -> UnsafeRawBufferPointer {
        if damage == nil {
            do { return try nextSound() } catch let error as BackupError where error.code == .damaged {
                damage = (error, try? UnpackedRest(file, kind, after: produced))
            }
        }
        if let bytes = try? damage?.rest?.next() { return bytes }
        throw damage?.cause ?? BackupError(.damaged, "cannot be unpacked", at: file.path)
    }

    private func nextSound() throws -> UnsafeRawBufferPointer {
        if unpacker == nil {
            let opened = try ArchiveUnpacker(file, kind)
            unpacker = opened
            atEnd = try !opened.next()
        }
        guard let unpacker, !atEnd else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let bytes = try unpacker.data()
        atEnd = bytes.isEmpty
        if kind == .gzip { checksum.update(bytes) }
        produced += UInt64(bytes.count)
        return bytes
    }

    func seek(to offset: Int64) -> Bool { false }

    var consumed: Int64 { damage == nil ? unpacker?.consumed ?? 0 : size }

    func findingsAtEnd() throws -> [Finding] {
        if consumed < size { return [.trailingData(file, size - consumed)] }
        return kind == .gzip ? try gzipTrailerFindings() : []
    }

    /// libarchive skips the trailer without a look: CRC-32 and length, both little-endian (RFC 1952, section 2.3.1).
    private func gzipTrailerFindings() throws -> [Finding] {
        try withUnsafeTemporaryAllocation(byteCount: 8, alignment: 8) { trailer in
            guard size >= 18, try file.read(into: trailer, at: size - 8) == 8 else { return [] }
            let crc = UInt32(littleEndian: trailer.load(fromByteOffset: 0, as: UInt32.self))
            let length = UInt32(littleEndian: trailer.load(fromByteOffset: 4, as: UInt32.self))
            if crc == checksum.value && length == UInt32(truncatingIfNeeded: produced) { return [] }
            return [
                Finding(
                    .archiveDamaged, .damage, file.path,
                    "the checksum at the end of the gzip file is not that of its content")
            ]
        }
    }
}
