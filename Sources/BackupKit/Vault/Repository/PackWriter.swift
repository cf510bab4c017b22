import Synchronization

/// Adds blobs to a vault: hashed, looked up, compressed and sealed by whoever brings them, on any number of threads.
///
/// Order: a pack is durable before an index names it, and `finish` writes the last index; what a killed run leaves is
/// packs that no index names, and `adopt` finds them again. A blob goes at random into one of two open packs, so that
/// the sizes of packs and the places of blobs say less about what somebody had backed up
/// (https://eprint.iacr.org/2025/532).
public final class PackWriter: Sendable {
    /// What was added.
    public struct Totals: Sendable {
        public var dataBlobs = 0
        public var treeBlobs = 0
        /// Plain bytes of new blobs.
        public var added: Int64 = 0
        /// The same as they lie in the vault.
        public var addedPacked: Int64 = 0
        public var packs = 0
    }

    /// An index is written whenever so many blobs wait for one.
    private static let blobsOfAnIndex = 50_000

    private struct State {
        /// Two for data, then two for trees.
        var open: [PackBuffer?] = [nil, nil, nil, nil]
        /// Kept for the next packs, two because two are written at once: to fetch new memory for each costs as much as sealing what
        /// goes into it.
        var spare: [PackBuffer] = []
        /// A pack that is finished but for its digest, and waits for another: two are hashed in the time of one.
        var single: PackBuffer?
        /// Blobs of this run; known as soon as somebody has begun to store them.
        var taken: Set<BlobHandle> = []
        var unindexed: [PackIndex.Pack] = []
        var waiting = 0
        var totals = Totals()
    }

    private let vault: Vault
    private let known: BlobIndex
    /// A rehearsal: everything is done but writing.
    private let isDry: Bool
    private let state = Mutex(State())

    /// `known` is what the vault holds; `vault` MUST be the one that `Vault.locked` hands out.
    public init(_ vault: Vault, known: BlobIndex, dryRun: Bool = false) throws {
        self.vault = vault
        self.known = known
        isDry = dryRun
    }

    public var totals: Totals { state.withLock { $0.totals } }

    public func holds(_ handle: BlobHandle) -> Bool {
        known.holds(handle) || state.withLock { $0.taken.contains(handle) }
    }

    /// What one thread needs to store blobs.
    public final class Lane {
        private let writer: PackWriter
        private let cipher: VaultCipher
        private let compressor: BlobCompressor

        public init(_ writer: PackWriter) throws {
            self.writer = writer
            cipher = try VaultCipher(writer.vault.key)
            compressor = try BlobCompressor()
        }

        /// Stores a blob unless the vault has it. Returns its id and whether it was new.
        @discardableResult
        public func store(_ bytes: UnsafeRawBufferPointer, as type: BlobType) throws -> (id: SHA256Digest, isNew: Bool)
        {
            let id = SHA256Digest.of(bytes)
            return (id, try store(bytes, as: type, id: id))
        }

        /// Stores a blob whose digest is known; true when it was new.
        @discardableResult
        func store(_ bytes: UnsafeRawBufferPointer, as type: BlobType, id: SHA256Digest) throws -> Bool {
            try Interrupt.check()
            guard writer.claim(BlobHandle(type, id)) else { return false }
            guard bytes.count <= Int(UInt32.max) - VaultCipher.overhead else {
                throw BackupError(.refused, "a list of files is larger than the vault's format allows")
            }
            // Nothing is left of an empty blob to compress, and readers take a length of 0 for "not compressed".
            // Version 1 has no compression.
            let packed =
                writer.vault.version < 2
                ? nil : try compressor.compress(bytes, mustPack: type == .tree && !bytes.isEmpty)
            let content = packed ?? bytes
            let length = content.count + VaultCipher.overhead
            let (pack, place, full) = try writer.reserve(
                type, id, length: length, plainLength: packed == nil ? 0 : bytes.count)
            if let full { try writer.finish(full, cipher) }
            try cipher.seal(content, into: place)
            if writer.isFilled(pack) { try writer.finish(pack, cipher) }
            writer.count(type, plain: bytes.count, packed: length)
            return true
        }

        /// How long a blob is that the vault held before.
        func length(ofData id: SHA256Digest) -> Int? {
            let handle = BlobHandle(.data, id)
            guard writer.known.holds(handle) else { return nil }
            return writer.known.find(handle).map { writer.known[$0].contentLength }
        }

        /// Stores a blob of the same vault as it lies there, sealed; the caller has opened it to see that it is whole.
        func copy(sealed: UnsafeRawBufferPointer, of blob: PackedBlob) throws {
            guard writer.claim(blob.handle) else { return }
            let (pack, place, full) = try writer.reserve(
                blob.type, blob.id, length: sealed.count, plainLength: Int(blob.plainLength))
            if let full { try writer.finish(full, cipher) }
            place.copyMemory(from: sealed)
            if writer.isFilled(pack) { try writer.finish(pack, cipher) }
            writer.count(blob.type, plain: blob.contentLength, packed: sealed.count)
        }
    }

    private func claim(_ handle: BlobHandle) -> Bool {
        !known.holds(handle) && state.withLock { $0.taken.insert(handle).inserted }
    }

    private func count(_ type: BlobType, plain: Int, packed: Int) {
        state.withLock { state in
            if type == .data { state.totals.dataBlobs += 1 } else { state.totals.treeBlobs += 1 }
            state.totals.added += Int64(plain)
            state.totals.addedPacked += Int64(packed)
        }
    }

    /// Takes a place in one of the two open packs. A pack that had no room for it and waits for nobody is the caller's
    /// to finish.
    private func reserve(
        _ type: BlobType, _ id: SHA256Digest, length: Int, plainLength: Int
    ) throws -> (pack: PackBuffer, place: UnsafeMutableRawBufferPointer, full: PackBuffer?) {
        let slot = slots(of: type).lowerBound + (Bool.random() ? 1 : 0)
        nonisolated(unsafe) var result: (PackBuffer, UnsafeMutableRawBufferPointer, PackBuffer?)
        result = try state.withLock { state in
            nonisolated(unsafe) var full: PackBuffer?
            let current = state.open[slot]
            let pack: PackBuffer
            if let current, current.fits(length) {
                pack = current
            } else {
                if let current {
                    current.isClosed = true
                    if current.open == 0 { full = current }
                }
                let spare = state.spare.last.flatMap { $0.fits(length) ? state.spare.popLast() : nil }
                pack = try spare ?? PackBuffer(room: length)
                state.open[slot] = pack
            }
            let place = pack.take(type, id, length: length, plainLength: plainLength)
            pack.open += 1
            return (pack, place, full)
        }
        return result
    }

    /// Gives a filled place back; true when that was the last one of a closed pack, which is then the caller's to finish.
    private func isFilled(_ pack: PackBuffer) -> Bool {
        state.withLock { _ in
            pack.open -= 1
            return pack.isClosed && pack.open == 0
        }
    }

    /// Writes a full pack together with the one before, or leaves it for the next.
    private func finish(_ pack: PackBuffer, _ cipher: VaultCipher) throws {
        try pack.finish(cipher)
        let single = state.withLock { state in
            defer { state.single = state.single == nil ? pack : nil }
            return state.single
        }
        guard let single else { return }
        let packs = [single, pack]
        for (pack, id) in zip(packs, isDry ? [.zero, .zero] : SHA256Digest.of(packs.map(\.bytes))) {
            try write(pack, id)
        }
    }

    /// Writes a finished pack, and an index when enough has gathered.
    private func write(_ pack: PackBuffer, _ id: SHA256Digest) throws {
        if !isDry { try vault.backend.store(.data, pack.bytes, id: id) }
        let entry = PackIndex.Pack(id: id, blobs: pack.blobs)
        pack.clear()
        let batch: [PackIndex.Pack] = state.withLock { state in
            state.totals.packs += 1
            if pack.memory.count == PackBuffer.usualSize, state.spare.count < 2 { state.spare.append(pack) }
            state.unindexed.append(entry)
            state.waiting += entry.blobs.count
            guard state.waiting >= Self.blobsOfAnIndex else { return [] }
            state.waiting = 0
            defer { state.unindexed = [] }
            return state.unindexed
        }
        try writeIndex(batch)
    }

    private func writeIndex(_ packs: [PackIndex.Pack]) throws {
        guard !packs.isEmpty, !isDry else { return }
        try vault.storeUnpacked(.index, PackIndex(packs: packs).encoded())
    }

    /// Has the blobs of a pack that lies in the vault and in no index named by the next index.
    public func adopt(_ pack: PackIndex.Pack) {
        state.withLock { state in
            for blob in pack.blobs { state.taken.insert(blob.handle) }
            state.unindexed.append(pack)
            state.waiting += pack.blobs.count
        }
    }

    /// Writes the packs that are open, two that are half full as one. No lane may be storing blobs of these types.
    func finishPacks(of types: [BlobType]) throws {
        let cipher = try VaultCipher(vault.key)
        var packs: [PackBuffer] = []
        for slots in types.map(slots) {
            var open = state.withLock { state in
                defer { state.open.replaceSubrange(slots, with: [nil, nil]) }
                return state.open[slots].compactMap(\.self)
            }
            if open.count == 2, open[0].absorb(open[1]) { open.removeLast() }
            for pack in open { try pack.finish(cipher) }
            packs += open
        }
        if let single = state.withLock({ $0.single.take() }) { packs.append(single) }
        let last = packs
        try Parallel.forEach(last.count, state: {}) { _, number in
            try write(last[number], isDry ? .zero : .of(last[number].bytes))
        }
    }

    private func slots(of type: BlobType) -> Range<Int> {
        let first = Int(type.rawValue) * 2
        return first..<first + 2
    }

    /// Writes what is left: the packs, then the index. No lane may be in use.
    public func finish() throws -> Totals {
        try finishPacks(of: BlobType.allCases)
        let (unindexed, totals) = state.withLock { state in
            defer { state.unindexed = [] }
            return (state.unindexed, state.totals)
        }
        try writeIndex(unindexed)
        return totals
    }
}
