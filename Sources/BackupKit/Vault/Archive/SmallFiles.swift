/// Files that are read one after the other and stored together, because two are hashed in the time of one. Each is shorter
/// than any chunk may be, and so a single blob, whose digest is the file's.
final class SmallFiles {
    private static let capacity = 1 << 20 + Chunker.minimum

    private let buffer = RawBuffer()
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var files: [Range<Int>] = []
    /// Those of the first files, as far as they are known.
    private var digests: [SHA256Digest] = []

    func hasRoom(for size: Int64) -> Bool {
        size < Int64(Chunker.minimum) && (files.last?.upperBound ?? 0) + Int(size) <= Self.capacity
    }

    /// Forgets all files but the first ones.
    func keep(_ count: Int) {
        files.removeSubrange(count...)
        digests.removeSubrange(min(count, digests.count)...)
    }

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
    func store(_ blobs: PackWriter.Lane) throws -> [FileLane.Content] {
        digests += SHA256Digest.of(files[digests.count...].map(bytes))
        return try zip(files, digests).map { file, digest in
            // An empty file has no blobs.
            guard !file.isEmpty else { return FileLane.Content() }
            try blobs.store(bytes(file), as: .data, id: digest)
            return FileLane.Content(blobs: [digest], size: Int64(file.count), digest: digest)
        }
    }

    private func bytes(_ file: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: memory[file])
    }

    /// The digest of a text that would be hashed alone; the files that wait are hashed beside it.
    func digest(of text: UnsafeRawBufferPointer) -> SHA256Digest {
        let all = SHA256Digest.of([text] + files[digests.count...].map(bytes))
        digests += all.dropFirst()
        return all[0]
    }
}
