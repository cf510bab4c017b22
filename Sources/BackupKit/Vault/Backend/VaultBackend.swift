/// One file of a vault. All but the configuration are named after the SHA-256 of the bytes that are stored.
public struct VaultFile: Hashable, Sendable, CustomStringConvertible {
    public enum Kind: String, Sendable, CaseIterable {
        case config
        case key = "keys"
        case snapshot = "snapshots"
        case index = "index"
        case lock = "locks"
        case data
    }

    public let kind: Kind
    public let id: SHA256Digest

    public init(_ kind: Kind, _ id: SHA256Digest) {
        self.kind = kind
        self.id = id
    }

    /// The one file without a name of its own.
    public static let config = VaultFile(.config, .zero)

    /// Where it lies, the same for every backend: "config", "keys/ID", "data/ab/ID".
    public var path: String {
        switch kind {
        case .config: return "config"
        case .data:
            let name = id.hex
            return "data/\(name.prefix(2))/\(name)"
        case .key, .snapshot, .index, .lock: return "\(kind.rawValue)/\(id.hex)"
        }
    }

    public var description: String { path }
}

/// What a backend has of one kind.
public struct VaultListing: Sendable, Equatable {
    public struct Item: Sendable, Equatable {
        public let id: SHA256Digest
        public let size: Int64
        /// When it was written, by the clock of whoever keeps the files; nil where that is not told.
        public let modified: Timestamp?

        public init(id: SHA256Digest, size: Int64, modified: Timestamp? = nil) {
            (self.id, self.size, self.modified) = (id, size, modified)
        }
    }

    /// What looks like a file of a vault and lies where nobody reads it.
    public struct Stray: Sendable, Equatable {
        public let path: String
        public let size: Int64
        /// "a pipe": what lies in the place of a file and is none.
        public var nonFile: String?
    }

    /// In the order of their names, each once.
    public var items: [Item] = []
    public var misplaced: [Stray] = []

    public init() {}

    var sizes: [SHA256Digest: Int64] {
        var sizes: [SHA256Digest: Int64] = [:]
        sizes.reserveCapacity(items.count)
        for item in items { sizes[item.id] = item.size }
        return sizes
    }
}

/// Where the files of a vault are kept: a folder, and later an object store. Nothing above knows which.
///
/// The contract, which `VaultBackendTests` asks of every backend:
///
/// - `write` is atomic and durable: when it returns, the whole file is there and stays, whatever happens to the machine;
///   when it throws or the process dies, nothing is there under that name. It makes the folders that are missing.
/// - `write` never overwrites: it throws `exists` when the name is taken, whatever that file holds.
/// - `read` gives exactly the bytes that were asked for or throws: `notFound` when there is no such file, `damaged` when
///   the file ends earlier. It never returns less.
/// - `remove` is durable when it returns, in no particular order before; what is not there is removed already.
/// - `sweep` removes what interrupted writes left, and may only be called while nobody writes.
/// - `list` sees every file whose `write` returned `settling` seconds before it began, and none whose `remove` did. Names that are none of
///   a vault, such as temporary files, it leaves out. Files that come or go meanwhile may be listed or not: whoever reads
///   what was listed MUST be ready for `notFound`.
/// - Where a listing says when files were written, one clock has told it of all of them.
/// - `size` and `read` know of every change that has returned; only listings may be late.
/// - Any call may take long and may fail. `temporary` means that the same call may succeed later and that nothing is
///   known to be wrong; the backend has tried again by itself as often as makes sense. `destinationFull` means that
///   removing still works. Every other error is final for this run.
/// - A failed `write` or `remove` may have happened all the same. Both can be called again; a `write` that is repeated
///   then throws `exists`, which for a file named after its content is as good as done.
/// - `setRoomAside` and `giveRoomUp` keep a way out of a full disk: after `giveRoomUp` has answered true, a lock and
///   the largest index fit once more. Where nothing can fill up, both do nothing.
/// - All calls may come from several threads at once.
public protocol VaultBackend: Sendable {
    /// What messages call it: the folder, the bucket's address.
    var location: String { get }

    /// After so many seconds every listing knows of a change; 0 where listings are always true.
    var settling: Double { get }

    func list(_ kind: VaultFile.Kind) throws -> VaultListing

    /// The size, or nil when there is no such file.
    func size(_ file: VaultFile) throws -> Int64?

    /// Whether the folder is there in which such a file would lie. Where it is not, as when a disk is missing, nothing follows
    /// from a file's absence.
    func hasPlace(for file: VaultFile) throws -> Bool

    /// Fills the buffer with the file's bytes from `offset` on.
    func read(_ file: VaultFile, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws

    func write(_ file: VaultFile, _ bytes: UnsafeRawBufferPointer) throws

    func remove(_ files: [VaultFile]) throws

    /// Returns how many leftovers it removed.
    func sweep() throws -> Int

    func setRoomAside() throws

    /// False when none was set aside.
    func giveRoomUp() throws -> Bool
}

extension VaultBackend {
    public func hasPlace(for file: VaultFile) -> Bool { true }
    public func setRoomAside() {}
    public func giveRoomUp() -> Bool { false }

    /// A whole small file. One that is larger than `limit` is refused before it is read.
    func readAll(_ file: VaultFile, limit: Int) throws -> [UInt8] {
        guard let size = try size(file) else {
            throw BackupError(.notFound, "is missing", at: place(file))
        }
        guard size <= limit else {
            throw BackupError(.damaged, "has \(size) bytes, more than such a file ever has", at: place(file))
        }
        var bytes = [UInt8](repeating: 0, count: Int(size))
        try bytes.withUnsafeMutableBytes { try read(file, at: 0, into: $0) }
        return bytes
    }

    /// A file of any size, piece by piece; each is good until the next.
    func forEachPiece(
        of file: VaultFile, size: Int64, in buffer: RawBuffer, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        let piece: Int64 = 1 << 20
        for start in stride(from: 0, to: size, by: Int(piece)) {
            let bytes = try buffer.with(count: Int(min(piece, size - start)))
            try read(file, at: start, into: bytes)
            try body(UnsafeRawBufferPointer(bytes))
        }
    }

    /// The name that a file should have.
    func digest(of file: VaultFile, size: Int64, in buffer: RawBuffer) throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        try forEachPiece(of: file, size: size, in: buffer) { hasher.update($0) }
        return hasher.finish()
    }

    /// Stores bytes under the name that is their digest. That they are there already is fine.
    @discardableResult
    func store(_ kind: VaultFile.Kind, _ bytes: UnsafeRawBufferPointer) throws -> SHA256Digest {
        let id = SHA256Digest.of(bytes)
        try store(kind, bytes, id: id)
        return id
    }

    /// The same, where the digest is known.
    func store(_ kind: VaultFile.Kind, _ bytes: UnsafeRawBufferPointer, id: SHA256Digest) throws {
        do {
            try write(VaultFile(kind, id), bytes)
        } catch let error as BackupError where error.code == .exists && kind != .config {
            // The same name is the same content, unless that copy is damaged, which `check` finds.
        }
    }

    /// What a message calls a file.
    func place(_ file: VaultFile) -> String { "\(location)/\(file.path)" }
}

extension BackupError {
    static func noVault(at location: String) -> BackupError {
        BackupError(
            .notFound, "there is no vault", at: location,
            remedy: "check the path, and whether its disk is there; "
                + "'backup-tool vault init' makes a new one in an empty folder")
    }
}
