/// Sealed trees are small and lie side by side in their packs: what is read for one holds many others.
struct TreeWindow {
    /// The next window in a pack is larger than the one before, for trees of one folder may also lie in many packs.
    private static let reaches: ClosedRange<Int64> = 1 << 14...1 << 20

    private let memory = RawBuffer()
    private var pack: SHA256Digest?
    private var start: Int64 = 0
    private var reach = reaches.lowerBound
    private var count = 0

    /// The sealed bytes of a tree, good until the next call. Nil where the pack cannot be read around it: it may end early.
    mutating func bytes(
        of tree: PackedBlob, in pack: BlobIndex.Pack, _ backend: any VaultBackend
    ) throws -> UnsafeRawBufferPointer? {
        let place = Int64(tree.offset)..<Int64(tree.offset) + Int64(tree.length)
        guard place.count <= Self.reaches.upperBound, place.upperBound <= Int64(clamping: pack.size) else { return nil }
        if self.pack != pack.id || place.lowerBound < start || place.upperBound > start + Int64(count) {
            reach = self.pack == pack.id ? min(reach * 8, Self.reaches.upperBound) : Self.reaches.lowerBound
            let length = max(reach, Int64(place.count))
            self.pack = nil
            start = max(0, min(place.lowerBound, Int64(clamping: pack.size) - length))
            count = Int(min(length, Int64(clamping: pack.size) - start))
            do {
                try backend.read(VaultFile(.data, pack.id), at: start, into: memory.with(count: count))
            } catch let error as BackupError where error.isVerdict { return nil }
            self.pack = pack.id
        }
        let first = Int(place.lowerBound - start)
        return UnsafeRawBufferPointer(rebasing: try memory.with(count: count)[first..<first + place.count])
    }
}
