/// A pack that is being filled. Blobs are sealed into it by several threads at once: a place is taken under the writer's
/// lock, and filled outside of it.
final class PackBuffer: @unchecked Sendable {
    /// A good third of what restic aims at, because up to seven are in memory. A blob that does not fit begins a new
    /// pack, so that the memory for one is known.
    static let usualSize = 6 << 20

    // Guarded by the writer's lock, but for the bytes of a place, which belong to who took it.
    private let room: RawMemory
    var memory: UnsafeMutableRawBufferPointer { room.bytes }
    private(set) var blobs: [PackedBlob] = []
    private(set) var filled = 0
    /// Places that were taken and are not filled yet.
    var open = 0
    /// Nobody takes a place any more.
    var isClosed = false

    /// `room` bytes at least for the first blob.
    init(room: Int) throws {
        let least = room + PackHeader.compressedEntrySize + PackHeader.sealOverhead + PackHeader.trailerSize
        self.room = try RawMemory(max(Self.usualSize, least))
    }

    /// Ready for another pack; the memory stays.
    func clear() {
        blobs.removeAll(keepingCapacity: true)
        filled = 0
        open = 0
        isClosed = false
    }

    private static func headerSize(_ count: Int) -> Int {
        count * PackHeader.compressedEntrySize + PackHeader.sealOverhead + PackHeader.trailerSize
    }

    func fits(_ length: Int) -> Bool {
        filled + length + Self.headerSize(blobs.count + 1) <= memory.count && blobs.count < PackHeader.maximumEntries
    }

    /// Takes a place for a sealed blob; `fits` was asked.
    func take(_ type: BlobType, _ id: SHA256Digest, length: Int, plainLength: Int) -> UnsafeMutableRawBufferPointer {
        let place = UnsafeMutableRawBufferPointer(rebasing: memory[filled..<filled + length])
        // Both are below the pack's own size or were checked to be.
        blobs.append(
            PackedBlob(
                type, id, offset: UInt32(truncatingIfNeeded: filled), length: UInt32(truncatingIfNeeded: length),
                plainLength: UInt32(truncatingIfNeeded: plainLength)))
        filled += length
        return place
    }

    /// Moves everything of another pack behind what is here, if there is room.
    func absorb(_ other: PackBuffer) -> Bool {
        guard filled + other.filled + Self.headerSize(blobs.count + other.blobs.count) <= memory.count,
            blobs.count + other.blobs.count <= PackHeader.maximumEntries
        else { return false }
        UnsafeMutableRawBufferPointer(rebasing: memory[filled...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: other.memory[..<other.filled]))
        for var blob in other.blobs {
            blob.offset += UInt32(truncatingIfNeeded: filled)
            blobs.append(blob)
        }
        filled += other.filled
        return true
    }

    /// The bytes of the file, once it is finished.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<filled]) }

    /// Puts the header behind the blobs.
    func finish(_ cipher: VaultCipher) throws {
        let header = PackHeader.encode(blobs)
        let sealedSize = header.count + PackHeader.sealOverhead
        let end = filled + sealedSize
        try header.withUnsafeBytes {
            try cipher.seal($0, into: UnsafeMutableRawBufferPointer(rebasing: memory[filled..<end]))
        }
        memory.storeBytes(of: UInt32(truncatingIfNeeded: sealedSize).littleEndian, toByteOffset: end, as: UInt32.self)
        filled = end + PackHeader.trailerSize
    }
}
