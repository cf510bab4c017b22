/// Sealed trees are small and lie side by side in their packs: what is read for one holds many others.
struct TreeWindow {
    private static let bytes: Int64 = 1 << 20

    private let memory = RawBuffer()
    private var pack: SHA256Digest?
    private var start: Int64 = 0
    private var count = 0

    /// The sealed bytes of a tree, good until the next call. Nil where the pack cannot be read around it: it may end early.
    mutating func bytes(
        of tree: PackedBlob, in pack: BlobIndex.Pack, _ backend: any VaultBackend
    ) throws -> UnsafeRawBufferPointer? {
        let place = Int64(tree.offset)..<Int64(tree.offset) + Int64(tree.length)
        guard place.count <= Self.bytes, place.upperBound <= Int64(clamping: pack.size) else { return nil }
        if self.pack != pack.id || place.lowerBound < start || place.upperBound > start + Int64(count) {
            self.pack = nil
            start = max(0, min(place.lowerBound, Int64(clamping: pack.size) - Self.bytes))
            count = Int(min(Self.bytes, Int64(clamping: pack.size) - start))
            do {
                try backend.read(VaultFile(.data, pack.id), at: start, into: memory.with(count: count))
            } catch let error as BackupError where error.isVerdict { return nil }
            self.pack = pack.id
        }
        let first = Int(place.lowerBound - start)
        return UnsafeRawBufferPointer(rebasing: try memory.with(count: count)[first..<first + place.count])
    }
}
