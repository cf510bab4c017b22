import Glibc

/// A large piece of memory straight from the system, and not from the heap, which keeps what it has got: what was never
/// touched costs nothing, and what is let go of goes back at once. Not filled, unless it is new.
final class RawMemory {
    let start: UnsafeMutableRawPointer
    let count: Int
    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: start, count: count) }

    init(_ count: Int) throws {
        guard let start = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            start != MAP_FAILED
        else { throw BackupError.exhausted("there is not enough memory for a piece of \(count) bytes") }
        // Large pages, where the system has them, are fetched at once and found faster. A wish, and nothing if it is not granted.
        madvise(start, count, MADV_HUGEPAGE)
        (self.start, self.count) = (start, count)
    }

    deinit { munmap(start, count) }

    /// Throws where so much cannot be had. An array that finds no memory ends the process, so ask before making some.
    static func mustHaveRoom(for count: Int) throws { _ = try RawMemory(count) }

    /// Gives back what lies behind the first `kept` bytes, a multiple of all pages' sizes; what is there is lost.
    func release(beyond kept: Int) {
        if kept < count { madvise(start + kept, count - kept, MADV_DONTNEED) }
    }
}

/// Memory that grows and is used again.
final class RawBuffer {
    /// So much is kept after something larger was in it.
    static let usual = 2 << 20

    private var memory: RawMemory?
    private var largest = 0

    /// An index may say any size up to 4 GiB, and not every machine has that much: then this throws.
    func with(count: Int) throws -> UnsafeMutableRawBufferPointer {
        if largest > Self.usual, count <= Self.usual {
            memory?.release(beyond: Self.usual)
            largest = Self.usual
        }
        largest = max(largest, count)
        if let memory, memory.count >= count {
            return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[..<count])
        }
        // The old one goes before the new one comes.
        memory = nil
        let memory = try RawMemory(max(count, Self.usual))
        self.memory = memory
        return UnsafeMutableRawBufferPointer(rebasing: memory.bytes[..<count])
    }
}
