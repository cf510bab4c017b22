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

/// The bytes of a packed file on their way through what unpacks them.
private final class PackedInput {
    let file: FileHandle
    private let size: Int64
    private let packed = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    private let unpacked = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 19, alignment: 16)
    private var waiting = UnsafeRawBufferPointer(start: nil, count: 0)
    private var failure: BackupError?
    private(set) var consumed: Int64 = 0
    var left: Int64 { size - consumed }

    init(_ file: FileHandle) throws {
        self.file = file
        size = try file.status().size
    }

    deinit {
        packed.deallocate()
        unpacked.deallocate()
    }

    func skip(_ count: Int64) {
        consumed += count
        waiting = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    /// What comes next out of the parts; empty at the end. `hasNext` goes to the next part, if there is one.
    func next(_ stream: some UnpackingStream, hasNext: () throws -> Bool) throws -> UnsafeRawBufferPointer {
        while true {
            if stream.isAtEnd {
                guard try hasNext() else { return UnsafeRawBufferPointer(start: nil, count: 0) }
                try stream.begin()
            }
            if let bytes = try unpack(stream) { return bytes }
        }
    }

    /// What comes next out of the part at hand; nil at its end. What comes before damage is given first.
    private func unpack<Unpacking: UnpackingStream>(_ stream: Unpacking) throws -> UnsafeRawBufferPointer? {
        if let failure { throw failure }
        while !stream.isAtEnd {
            if waiting.isEmpty {
                let count = try file.read(into: packed, at: consumed)
                waiting = UnsafeRawBufferPointer(rebasing: packed[..<count])
            }
            // Called with no input at the end of the file too: the decoder may still hold bytes back.
            let step = stream.step(waiting, into: unpacked)
            consumed += Int64(step.taken)
            waiting = UnsafeRawBufferPointer(rebasing: waiting[step.taken...])
            if let reason = step.failure {
                failure = BackupError(
                    step.refused ? .refused : .damaged,
                    "the \(Unpacking.name) at byte \(consumed) cannot be unpacked: \(reason)", at: file.path)
            } else if step.taken == 0, step.produced == 0, waiting.isEmpty, !stream.isAtEnd {
                failure = cutOff(in: Unpacking.name)
            }
            if step.produced > 0 { return UnsafeRawBufferPointer(rebasing: unpacked[..<step.produced]) }
            if let failure { throw failure }
        }
        return nil
    }

    func cutOff(in part: String) -> BackupError {
        BackupError(.damaged, "is cut off: its last \(part) is not whole", at: file.path)
    }
}

/// Any zstd file, from its beginning to its end.
final class ZstandardSource: ByteSource {
    private let input: PackedInput
    private let stream: ZstandardStream
    private var hasIndex = false

    init(_ file: FileHandle) throws {
        input = try PackedInput(file)
        stream = try ZstandardStream()
    }

    var consumed: Int64 { input.consumed }

    func next() throws -> UnsafeRawBufferPointer {
        try input.next(stream) {
            try passSkippableFrames()
            return input.left > 0
        }
    }

    /// Between two frames: steps over those that carry no data, and notices our index among them.
    private func passSkippableFrames() throws {
        while true {
            var head = try ByteFields(input.file, at: consumed, count: 8)
            guard let magic = head.number(UInt32.self), magic & 0xFFFF_FFF0 == 0x184D_2A50 else { return }
            guard let length = head.number(UInt32.self), 8 + Int64(length) <= input.left else {
                throw input.cutOff(in: ZstandardStream.name)
            }
            if try magic == MemberIndex.skippableMagic || MemberIndex.isMarked(input.file, at: consumed + 8) {
                hasIndex = true
            }
            input.skip(8 + Int64(length))
        }
    }

    func seek(to offset: Int64) -> Bool { false }

    /// Whoever reads an archive of ours in this way could not use its index.
    func findingsAtEnd() -> [Finding] {
        guard hasIndex else { return [] }
        return [
            Finding(
                .archiveDamaged, .warning, input.file.path,
                "the list of members at its end is damaged; it was read from front to back instead",
                remedy: "the files are sound if nothing else is reported; write the archive again")
        ]
    }
}

/// A gzip or xz file: one part or several, and zeros that fill up its last block.
final class PartsSource<Unpacking: UnpackingStream>: ByteSource {
    private let input: PackedInput
    private let stream: Unpacking

    init(_ file: FileHandle, _ stream: Unpacking) throws {
        input = try PackedInput(file)
        self.stream = stream
    }

    var consumed: Int64 { input.consumed }

    func next() throws -> UnsafeRawBufferPointer { try input.next(stream, hasNext: hasNextPart) }

    private func hasNextPart() throws -> Bool {
        if consumed == 0 { return true }
        while true {
            let bytes = try [UInt8](unsafeUninitializedCapacity: 1 << 12) { buffer, used in
                used = try input.file.read(into: UnsafeMutableRawBufferPointer(buffer), at: consumed)
            }
            let zeros = bytes.prefix { $0 == 0 }.count
            guard zeros > 0 else { return bytes.starts(with: Unpacking.magic) }
            input.skip(Int64(zeros))
        }
    }

    func seek(to offset: Int64) -> Bool { false }

    func findingsAtEnd() -> [Finding] { input.left > 0 ? [.trailingData(input.file, input.left)] : [] }
}
