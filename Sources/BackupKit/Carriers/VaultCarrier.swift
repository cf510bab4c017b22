import Glibc
import Synchronization

/// A snapshot in words: `vault:PATH`, `vault:PATH@latest`, `vault:PATH@1a2b3c`, `vault:PATH@2026-11-01`.
public struct VaultAddress: Sendable, Equatable {
    public static let scheme = "vault:"

    public let path: String
    /// The word behind the @, where there is one.
    public let word: String?
    var snapshot: String { word ?? "latest" }

    /// nil for what is the path of a folder or an archive.
    public init?(_ text: String) {
        guard text.hasPrefix(Self.scheme) else { return nil }
        let rest = text.dropFirst(Self.scheme.count)
        // Folders may have an @ in their names; what parts a snapshot from its vault is never followed by a slash.
        guard let at = rest.lastIndex(of: "@"), !rest[at...].contains("/"), at != rest.startIndex else {
            path = String(rest)
            word = nil
            return
        }
        path = String(rest[..<at])
        word = String(rest[rest.index(after: at)...])
    }

    /// The address of a whole vault, whose folder may have an @ in its name.
    public static func text(ofVault path: String) -> String { scheme + path + (path.contains("@") ? "/" : "") }

    /// The remedy where the folder of a vault is named as a backup.
    static func advice(for path: String) -> String { "it looks like a vault: write \(text(ofVault: path))" }

    /// How the password is come by; the command line puts its options here before it opens anything.
    public static let password = Mutex<@Sendable (_ path: String) throws -> [UInt8]>(Self.passwordOfEnvironment)

    /// Vaults that this process has opened, by their paths: making a key of a password takes half a second each time.
    public static let opened = Mutex<[String: Vault]>([:])

    /// What is doubtful about the snapshots that `latest` has chosen in this process; the command line tells it at the end.
    public static let doubts = Mutex<[Finding]>([])

    /// The vault, opened once.
    public func vault() throws -> Vault {
        if let vault = Self.opened.withLock({ $0[path] }) { return vault }
        let backend = try FolderBackend(path)
        let vault = try Vault.open(backend, password: try Self.password.withLock { $0 }(path))
        Self.opened.withLock { $0[path] = vault }
        return vault
    }

    @Sendable private static func passwordOfEnvironment(_ path: String) throws -> [UInt8] {
        let source = try PasswordSource.find(file: nil, command: nil) { name in
            getenv(name).map { String(cString: $0) }
        }
        guard let source else {
            throw BackupError(
                .wrongPassword, "no password is given", remedy: "set BACKUP_TOOL_PASSWORD_FILE, or use --password-file")
        }
        return try source.read()
    }
}

/// A snapshot as a carrier. Every blob is authenticated and compared with its name on the way, so that what comes out is
/// what went in. A lock that others share keeps the vault from being pruned meanwhile.
public final class VaultReader: CarrierReader {
    public let snapshot: Snapshot
    private let vault: Vault
    private let index: BlobIndex
    private let indexDamage: [Finding]
    private let limits: ReadLimits
    /// Held as long as somebody reads; nil where the vault cannot be written to.
    private let lock: HeldLock?
    private let tree: SHA256Digest
    private let contents = Mutex<Contents?>(nil)

    public static func open(_ address: VaultAddress, limits: ReadLimits = ReadLimits()) throws -> VaultReader {
        let vault = try address.vault()
        let reader = try VaultReader(vault, address.snapshot, limits: limits)
        if address.snapshot == "latest", let doubt = try vault.doubt(about: reader.snapshot, at: address.path) {
            VaultAddress.doubts.withLock { if !$0.contains(doubt) { $0.append(doubt) } }
        }
        return reader
    }

    public init(_ vault: Vault, _ word: String, limits: ReadLimits = ReadLimits()) throws {
        self.vault = vault
        self.limits = limits
        lock = try vault.lockToRead().map(HeldLock.init)
        snapshot = try vault.resolve(word)
        let loaded = try vault.loadIndex()
        index = loaded.blobs
        indexDamage = loaded.findings.filter { $0.severity == .damage }
        guard let root = snapshot.file.tree else {
            throw BackupError(.damaged, "the snapshot has no tree", at: VaultFile(.snapshot, snapshot.id).path)
        }
        do { tree = try Self.layoutRoot(root, snapshot.file.paths, index, BlobReader(vault)) } catch {
            // What is in no pack may be in one that the damaged index named.
            try loaded.mustBeWhole()
            throw error
        }
    }

    /// A snapshot holds the folders that lead to what was backed up; a layout begins below them.
    private static func layoutRoot(
        _ root: SHA256Digest, _ paths: [String], _ index: BlobIndex, _ reader: BlobReader
    ) throws -> SHA256Digest {
        guard paths.count == 1 else { return root }
        var parts = paths[0].split(separator: "/")[...]
        var id = root
        while !parts.isEmpty {
            let nodes = try reader.nodes(of: id, in: index)
            // A relative path stands there in full and begins further down in the tree.
            guard nodes.count == 1, let only = nodes.first, let subtree = only.subtree, only.kind == .folder,
                let place = parts.firstIndex(where: { $0.utf8.elementsEqual(only.name) })
            else { break }
            parts = parts[(place + 1)...]
            id = subtree
        }
        return id
    }

    /// The thread that refreshes a lock keeps it alive, so it must be told.
    private final class HeldLock: Sendable {
        private let lock: VaultLock

        init(_ lock: VaultLock) { self.lock = lock }

        deinit { lock.release() }
    }

    private struct Entry: Sendable {
        let info: EntryInfo
        let content: [SHA256Digest]

        var isLarge: Bool { info.size > 4 << 20 }
    }

    private typealias Contents = (entries: [Entry], damage: [Finding])

    /// All files in the order of their names, and the folders that cannot be read; gathered when first asked for.
    private func entries() throws -> Contents {
        try contents.withLock { known in
            if let known { return known }
            let found = try gather()
            known = found
            return found
        }
    }

    private func gather() throws -> Contents {
        var found: [Entry] = []
        var damage = indexDamage
        var meter = LimitMeter(limits)
        let reader = try BlobReader(vault)
        var waiting = [(path: "", id: tree)]
        while let (folder, id) = waiting.popLast() {
            try Interrupt.check()
            let nodes: [TreeNode]
            do {
                nodes = try reader.nodes(of: id, in: index)
            } catch let error as BackupError where error.code == .damaged || error.code == .notFound {
                damage.append(
                    Finding(
                        .archiveDamaged, .damage, folder.isEmpty ? snapshot.shortID : folder,
                        "the list of this folder's files cannot be read: \(error.message)"))
                continue
            }
            for node in nodes {
                let info = try admit(node, in: folder, &meter)
                if node.kind == .folder, let subtree = node.subtree {
                    waiting.append((info.path, subtree))
                } else if node.kind == .file, let content = node.content {
                    found.append(Entry(info: info, content: content))
                } else {
                    damage.append(Finding(.entryDamaged, .damage, info.path, "has no content"))
                }
            }
        }
        return (found.sorted { precedesBytewise($0.info.path, $1.info.path) }, damage)
    }

    private func admit(_ node: TreeNode, in folder: String, _ meter: inout LimitMeter) throws -> EntryInfo {
        let shown = String(decoding: node.name, as: UTF8.self)
        let place = folder.isEmpty ? shown : "\(folder)/\(shown)"
        guard node.hasSafeName, node.text != nil else {
            throw BackupError(.refused, "is not a name that a backup may hold", at: place)
        }
        guard node.kind == .file || node.kind == .folder else {
            throw BackupError(.refused, "is a \(node.kind.word), which a backup of a library does not hold", at: place)
        }
        try EntryName.check(place)
        let info = EntryInfo(
            path: place, size: node.kind == .file ? Int64(clamping: node.size) : 0, modified: node.modified.seconds)
        try meter.admit(info, isFolder: node.kind == .folder)
        return info
    }

    public func list() throws -> [EntryInfo] {
        let (entries, damage) = try entries()
        if let first = damage.first(where: { $0.code != .unreadable }) {
            throw BackupError(.damaged, first.message, at: first.subject)
        }
        return entries.map(\.info)
    }

    public func visit(
        where isWanted: @Sendable (EntryInfo) -> Bool, _ body: @Sendable (EntryInfo, any EntryBytes) throws -> Void
    ) throws -> [Finding] {
        let (all, damage) = try entries()
        let wanted = all.filter { isWanted($0.info) }
        // What takes long comes first, or one thread would still be at it when the others have nothing left.
        let entries = wanted.filter(\.isLarge) + wanted.filter { !$0.isLarge }
        try Parallel.forEach(entries.count, state: { try BlobReader(vault) }) { reader, number in
            try Interrupt.check()
            try body(entries[number].info, Content(entry: entries[number], index: index, reader: reader))
        }
        return damage
    }

    public func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard let entry = try entries().entries.first(where: { $0.info.path.utf8.elementsEqual(path.utf8) }) else {
            throw BackupError(
                .notFound, "is no file of the snapshot", at: path,
                remedy:
                    "'backup-tool list BACKUP' shows its files; records are in records.jsonl, publications in library.bib too"
            )
        }
        try Content(entry: entry, index: index, reader: try BlobReader(vault)).forEachChunk(body)
    }

    private struct Content: EntryBytes {
        let entry: Entry
        let index: BlobIndex
        let reader: BlobReader

        func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
            try forEachBlob(comparingNames: true, body)
        }

        func forEachChunkToDigest(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
            try forEachBlob(comparingNames: false, body)
        }

        private func forEachBlob(
            comparingNames: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void
        ) throws {
            var size: Int64 = 0
            for id in entry.content {
                try Interrupt.check()
                try reader.read(BlobHandle(.data, id), in: index, comparingName: comparingNames) { bytes in
                    size += Int64(bytes.count)
                    try body(bytes)
                }
            }
            guard size == entry.info.size else {
                throw BackupError(
                    .damaged, "has \(size) bytes where its folder says \(entry.info.size)", at: entry.info.path)
            }
        }
    }
}

extension Vault {
    /// Why the latest snapshot may not be the one that is wanted, and which one is the last without doubt.
    fileprivate func doubt(about latest: Snapshot, at path: String) throws -> Finding? {
        guard latest.file.isDoubtful else { return nil }
        let isSuspect = latest.file.tags.contains(SnapshotTag.suspect)
        let sound = try snapshots().snapshots.last {
            $0.file.isLibrary && !$0.file.isDoubtful && $0.file.hostname == latest.file.hostname
                && $0.time.timestamp <= latest.time.timestamp
        }
        return Finding(
            isSuspect ? .suspiciousLoss : .leftOut, .warning, "snapshot \(latest.shortID)",
            isSuspect
                ? "the latest snapshot is tagged as suspect: it holds much less than the one before"
                : "the latest snapshot is tagged as partial: a part could not be read, or was not asked for",
            remedy: sound.map {
                "the last one without such a tag is \(TypedCommand.word("\(VaultAddress.scheme)\(path)@\($0.shortID)"))"
            } ?? "the vault has no earlier one without such a tag")
    }
}
