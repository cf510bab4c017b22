/// A file could not be read. Errors of the vault are never this.
struct SourceFailure: Error {
    let error: BackupError
}

/// Brings files into a vault, one after the other: cut, stored, and their digests noted. One lane serves one thread.
final class FileLane {
    /// What a file became.
    struct Content: Sendable, Equatable {
        var blobs: [SHA256Digest] = []
        var size: Int64 = 0
        /// The digest of the whole file.
        var digest = FileLane.emptyDigest
    }

    static let emptyDigest = SHA256Digest.of("")
    /// How much is read at once from a large file; smaller ones are read in one go.
    private static let step = 1 << 19

    let blobs: PackWriter.Lane
    private let chunker: Chunker
    private let pieces = PieceHasher()
    /// Room for the longest chunk and one step; so much of it is in use.
    private let memory: RawMemory
    private var size = RawBuffer.usual
    /// Its bytes that wait to be cut, and how many of them were looked through.
    private var start = 0
    private var end = 0
    private var searched = 0
    private var content = Content()
    /// Text that waits to be added.
    private var text: [UInt8] = []

    init(_ writer: PackWriter, _ chunker: Chunker) throws {
        blobs = try PackWriter.Lane(writer)
        self.chunker = chunker
        memory = try RawMemory(Chunker.maximum + Self.step)
    }

    /// What a file was the last time.
    struct Known {
        let blobs: [SHA256Digest]
        let digest: SHA256Digest
    }

    /// Stores `size` bytes of a file, or less when it ends before.
    func store(_ file: FileHandle, size: Int64, known: Known?) throws -> Content {
        try known.flatMap { try confirm($0, file, size: size) } ?? store(file, size: size)
    }

    /// Reads a file that may consist of the blobs it consisted of: where each of them has its digest, nothing needs to be cut
    /// or hashed as a whole. Nil when it is not so.
    private func confirm(_ known: Known, _ file: FileHandle, size: Int64) throws -> Content? {
        let lengths = known.blobs.map { blobs.length(ofData: $0) ?? 0 }
        guard lengths.allSatisfy({ 1...Chunker.maximum ~= $0 }), lengths.reduce(0, +) == Int(size) else { return nil }
        var offset: Int64 = 0
        for (id, length) in zip(known.blobs, lengths) {
            begin()
            let space = room(length)
            do {
                guard try file.read(into: space, at: offset) == length else { return nil }
            } catch let error as BackupError { throw SourceFailure(error: error) }
            guard .of(UnsafeRawBufferPointer(space)) == id else { return nil }
            offset += Int64(length)
        }
        return Content(blobs: known.blobs, size: size, digest: known.digest)
    }

    private func store(_ file: FileHandle, size: Int64) throws -> Content {
        begin()
        var offset: Int64 = 0
        while offset < size {
            let wanted = Int(min(size - offset, Int64(Self.step)))
            let space = room(wanted)
            let count: Int
            do { count = try file.read(into: space, at: offset) } catch let error as BackupError {
                throw SourceFailure(error: error)
            }
            end += count
            offset += Int64(count)
            if count < wanted { break }
            try cut(isEnd: offset == size)
        }
        return try finish()
    }

    /// Stores what `write` appends.
    func store(_ write: (TextSink) throws -> Void) throws -> Content {
        begin()
        text.removeAll(keepingCapacity: true)
        func flush() throws {
            try text.withUnsafeBytes { try add($0) }
            text.removeAll(keepingCapacity: true)
        }
        try write { append in
            try append(&text)
            if text.count >= Self.step { try flush() }
        }
        try flush()
        return try finish()
    }

    // MARK: A file that comes piece by piece

    /// The next piece of the file.
    func add(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = min(rest.count, Self.step)
            room(count).copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            end += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            try cut(isEnd: false)
        }
    }

    func begin() {
        (start, end, searched) = (0, 0, 0)
        content = Content()
        if size > RawBuffer.usual {
            memory.release(beyond: RawBuffer.usual)
            size = RawBuffer.usual
        }
        // What an interrupted file left.
        _ = pieces.finish()
    }

    /// Free space behind what waits, which moves to the front when it would become too much.
    private func room(_ count: Int) -> UnsafeMutableRawBufferPointer {
        let waiting = end - start
        if end + count > max(size, waiting + count) {
            memory.bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory.bytes[start..<end]))
            (start, end) = (0, waiting)
        }
        size = max(size, end + count)
        return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[end..<end + count])
    }

    /// Stores the chunks that are complete.
    private func cut(isEnd: Bool) throws {
        while start < end {
            let waiting = UnsafeRawBufferPointer(rebasing: memory.bytes[start..<end])
            guard let length = chunker.cut(waiting, isEnd: isEnd, searched: &searched) else { return }
            let isOnly = isEnd && length == waiting.count && content.blobs.isEmpty
            try store(UnsafeRawBufferPointer(rebasing: waiting[..<length]), isOnly: isOnly)
            start += length
            searched = 0
        }
        (start, end) = (0, 0)
    }

    /// The only chunk of a file has the file's own digest, so that such a file is hashed once.
    private func store(_ chunk: UnsafeRawBufferPointer, isOnly: Bool) throws {
        let id = isOnly ? .of(chunk) : pieces.add(chunk)
        try blobs.store(chunk, as: .data, id: id)
        content.blobs.append(id)
        content.size += Int64(chunk.count)
    }

    func finish() throws -> Content {
        try cut(isEnd: true)
        if content.blobs.count > 1 {
            content.digest = pieces.finish()
        } else if let only = content.blobs.first {
            content.digest = only
        }
        return content
    }
}
