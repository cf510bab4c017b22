/// Files that are read one after the other and stored together: two are hashed in the time of one. Each is shorter than
/// any chunk may be, and so a single blob, whose digest is the file's.
final class SmallFiles {
    private static let capacity = 1 << 20 + Chunker.minimum

    private let buffer = RawBuffer()
    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var files: [Range<Int>] = []

    func hasRoom(for size: Int64) -> Bool {
        size < Int64(Chunker.minimum) && (files.last?.upperBound ?? 0) + Int(size) <= Self.capacity
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
    func store(_ blobs: PackWriter.Lane) throws -> [FileLane.Content] {
        let digests = digests()
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

    /// Those of like length go together: what is left of the longer is hashed alone.
    private func digests() -> [SHA256Digest] {
        var digests = [SHA256Digest](repeating: FileLane.emptyDigest, count: files.count)
        let order = files.indices.sorted { files[$0].count < files[$1].count }
        for place in stride(from: 1, to: order.count, by: 2) {
            let (one, other) = (order[place - 1], order[place])
            (digests[one], digests[other]) = SHA256Digest.of(bytes(files[one]), bytes(files[other]))
        }
        if let last = order.last, order.count % 2 == 1 { digests[last] = .of(bytes(files[last])) }
        return digests
    }
}
