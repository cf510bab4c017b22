/// Files that are read one after the other and stored together, because two texts are hashed in the time of one: all files,
/// each with its first chunk on the way, and the other chunks.
final class SmallFiles {
    /// Longer ones are read piece by piece.
    static let longest = 2 << 20
    /// So many bytes of neighbours are worth waiting for; the last may be a long one.
    static let enough = 2 << 20
    private static let capacity = enough + longest

    private let buffer = RawBuffer()
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var files: [Range<Int>] = []

    func hasRoom(for size: Int64) -> Bool {
        size <= Int64(Self.longest) && (files.last?.upperBound ?? 0) + Int(size) <= Self.capacity
    }

    /// Forgets all files but the first ones.
    func keep(_ count: Int) { files.removeSubrange(count...) }

    /// Takes in `size` bytes of a file, or less when it ends before; `hasRoom` was asked. Returns how many there were.
    func read(_ file: FileHandle, size: Int64) throws -> Int64 {
        // The same each time, and nothing before it is needed.
        memory = try buffer.with(count: Self.capacity)
        let start = files.last?.upperBound ?? 0
        let space = UnsafeMutableRawBufferPointer(rebasing: memory[start..<start + Int(size)])
        do {
            let count = try file.read(into: space, at: 0)
            files.append(start..<start + count)
            return Int64(count)
        } catch let error as BackupError { throw SourceFailure(error: error) }
    }

    /// Stores all of them; what they became comes in the order in which they were read.
    func store(_ blobs: PackWriter.Lane, _ chunker: Chunker) throws -> [FileLane.Content] {
        let texts = files.map { UnsafeRawBufferPointer(rebasing: memory[$0]) }
        let chunks = texts.map(chunker.chunks)
        // A file begins with its first chunk.
        var digests = SHA256Digest.ofHeads(
            of: zip(texts, chunks).flatMap { text, chunks in
                zip([text] + chunks.dropFirst(), chunks).map { ($0, $1.count) }
            })[...]
        return try zip(texts, chunks).map { text, chunks in
            var content = FileLane.Content(size: Int64(text.count))
            for chunk in chunks {
                let (id, whole) = digests.removeFirst()
                try blobs.store(chunk, as: .data, id: id)
                if content.blobs.isEmpty { content.digest = whole }
                content.blobs.append(id)
            }
            return content
        }
    }
}

extension Chunker {
    /// The chunks of a whole file.
    fileprivate func chunks(of file: UnsafeRawBufferPointer) -> [UnsafeRawBufferPointer] {
        var chunks: [UnsafeRawBufferPointer] = []
        var rest = file
        var searched = 0
        while let length = cut(rest, isEnd: true, searched: &searched) {
            chunks.append(UnsafeRawBufferPointer(rebasing: rest[..<length]))
            rest = UnsafeRawBufferPointer(rebasing: rest[length...])
            searched = 0
        }
        return chunks
    }
}
