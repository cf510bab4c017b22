import Glibc

/// Reads blobs out of packs: authenticated, unpacked, and compared with their name. One reader serves one thread.
public final class BlobReader {
    private let backend: any VaultBackend
    private let cipher: VaultCipher
    private let decompressor: ZstandardDecompressor
    private let hasher = SHA256Hasher()
    private let sealed = RawBuffer()
    private var trees = TreeWindow()
    private let opened = RawBuffer()
    private let plain = RawBuffer()

    public init(_ vault: Vault) throws {
        backend = vault.backend
        cipher = try VaultCipher(vault.key)
        decompressor = try ZstandardDecompressor()
    }

    /// Calls `body` with a blob's content. If one copy is damaged, another will do. Without `comparingName` only its seal
    /// says that it is sound, for whoever proves by other means that it is the one that was meant.
    public func read<Result>(
        _ handle: BlobHandle, in index: BlobIndex, comparingName: Bool = true,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        var failure: BackupError?
        var found: UnsafeRawBufferPointer?
        try index.forEachCopy(handle) { number in
            do {
                let pack = index.packs[index.pack(of: number)]
                found =
                    try handle.type == .tree
                    ? readTree(index[number], in: pack, comparingName: comparingName)
                    : read(index[number], in: pack.id, comparingName: comparingName)
                return false
            } catch let error as BackupError where error.isVerdict {
                failure = failure ?? error
                return true
            }
        }
        guard let found else {
            // A missing pack is damage: the vault itself is there.
            if let failure, failure.code == .notFound {
                throw BackupError(.damaged, "the pack is missing", at: failure.subject, remedy: Vault.packRemedy)
            }
            throw failure
                ?? BackupError(
                    .damaged, "the \(handle.type.name) blob is in no pack", at: handle.id.hex, remedy: Vault.lossRemedy)
        }
        return try body(found)
    }

    /// What these blobs make together; nil where one of them cannot be read.
    func text(of blobs: some Sequence<SHA256Digest>, in index: BlobIndex) -> [UInt8]? {
        var text: [UInt8] = []
        for id in blobs {
            do { try read(BlobHandle(.data, id), in: index) { text += $0 } } catch { return nil }
        }
        return text
    }

    /// What is in a folder.
    func nodes(of tree: SHA256Digest, in index: BlobIndex) throws -> [TreeNode] {
        try read(BlobHandle(.tree, tree), in: index) { try Tree(parsing: $0).nodes }
    }

    /// What a folder holds under a name; nil also when the folder cannot be read.
    func node(_ name: String, of tree: SHA256Digest, in index: BlobIndex) -> TreeNode? {
        try? nodes(of: tree, in: index).first { $0.name.elementsEqual(name.utf8) }
    }

    /// The content of a blob, good until the next call.
    func read(
        _ blob: PackedBlob, in pack: SHA256Digest, comparingName: Bool = true
    ) throws -> UnsafeRawBufferPointer {
        try fetch(blob, in: pack, comparingName: comparingName).content
    }

    private func readTree(
        _ tree: PackedBlob, in pack: BlobIndex.Pack, comparingName: Bool
    ) throws -> UnsafeRawBufferPointer {
        guard let sealed = try trees.bytes(of: tree, in: pack, backend) else {
            return try read(tree, in: pack.id, comparingName: comparingName)
        }
        return try naming(tree, pack.id) { try open(sealed, tree, comparingName: comparingName) }
    }

    private func fetch(
        _ blob: PackedBlob, in pack: SHA256Digest, comparingName: Bool
    ) throws -> (sealed: UnsafeRawBufferPointer, content: UnsafeRawBufferPointer) {
        try naming(blob, pack) {
            let bytes = try sealed.with(count: Int(blob.length))
            try backend.read(VaultFile(.data, pack), at: Int64(blob.offset), into: bytes)
            let sealed = UnsafeRawBufferPointer(bytes)
            return (sealed, try open(sealed, blob, comparingName: comparingName))
        }
    }

    /// Says which blob of which pack is damaged.
    private func naming<Result>(_ blob: PackedBlob, _ pack: SHA256Digest, _ body: () throws -> Result) throws -> Result
    {
        do { return try body() } catch let error as BackupError where error.code == .damaged {
            throw BackupError(
                .damaged, "blob \(blob.id.hex.prefix(10)) \(error.message)", at: backend.place(VaultFile(.data, pack)))
        }
    }

    /// Opens, unpacks and checks a blob whose sealed bytes are in memory already; good until the next call.
    func open(
        _ bytes: UnsafeRawBufferPointer, _ blob: PackedBlob, comparingName: Bool = true
    ) throws -> UnsafeRawBufferPointer {
        let content = try unpack(bytes, blob)
        guard comparingName else { return content }
        hasher.update(content)
        try Self.compare(hasher.finish(), blob)
        return content
    }

    static func compare(_ digest: SHA256Digest?, _ blob: PackedBlob) throws {
        guard digest == blob.id else {
            throw BackupError(.damaged, "is not what its name says: its SHA-256 is another")
        }
    }

    /// The content by the blob's seal alone; good until the next call.
    func unpack(_ bytes: UnsafeRawBufferPointer, _ blob: PackedBlob) throws -> UnsafeRawBufferPointer {
        let content = try opened.with(count: max(0, bytes.count - VaultCipher.overhead))
        try cipher.open(bytes, into: content)
        guard blob.isCompressed else { return UnsafeRawBufferPointer(content) }
        guard Int(blob.plainLength) <= Self.most(content.count) else {
            throw BackupError(.damaged, "cannot unpack to the \(blob.plainLength) bytes that the index says")
        }
        let target = try plain.with(count: Int(blob.plainLength))
        let (count, reason) = decompressor.decompress(UnsafeRawBufferPointer(content), into: target)
        guard let count else { throw BackupError(.damaged, "does not unpack: \(reason)") }
        guard count == target.count else { throw BackupError(.damaged, "unpacks to less than the index says") }
        return UnsafeRawBufferPointer(target)
    }

    /// What so many bytes can unpack to at most: a block of zstd takes four bytes, and gives 128 KiB. An index that says
    /// more is not believed with memory. RFC 8878 §3.1.1.2.
    private static func most(_ packed: Int) -> Int { (packed / 4 + 1) << 17 }

    /// A blob as it is stored, after it was opened to see that it is whole; good until the next call.
    func verified(_ blob: PackedBlob, in pack: SHA256Digest) throws -> UnsafeRawBufferPointer {
        try fetch(blob, in: pack, comparingName: true).sealed
    }

    /// Whether this copy of a blob is what its name says. Throws where nobody can tell.
    func isWhole(_ number: Int, in index: BlobIndex) throws -> Bool {
        do {
            _ = try verified(index[number], in: index.packs[index.pack(of: number)].id)
            return true
        } catch let error as BackupError where error.isOfBytes {
            return false
        }
    }

    /// Opens something sealed that is no blob: a pack's header.
    func openHeader(_ bytes: UnsafeMutableRawBufferPointer) throws -> UnsafeRawBufferPointer {
        try cipher.openInPlace(bytes)
    }
}
