import Glibc

/// Finds the bytes that one state of the store means, whatever a writer does to the folder meanwhile, and wherever one was
/// killed.
///
/// As long as a file lies under its path, that is where its bytes are. Before a commit that replaces or removes it, the
/// writer gives these bytes a second name, `.blobs/<sha256>`; the new ones wait under such a name, too. Only after the
/// commit does it change the folder. So whoever opens the file first and then finds no blob of the wanted digest has
/// opened the right file.
public final class AssetFiles: Sendable {
    /// What was opened for an asset.
    public struct Opened: Sendable {
        public let file: FileHandle
        /// Its file was removed from the folder; the undo history still has its bytes.
        public let isRemoved: Bool
    }

    /// What an undo gives back under the path of an asset, where its row says another file: the digest, empty for nothing.
    private struct Place {
        let row: SHA256Digest
        let digest: SHA256Digest?
    }

    private let root: RootDirectory
    private let store: String
    /// The last change of the state that is read.
    private let counter: Int64
    private let places: [ByteName: Place]

    /// For the state that the store reads now. Nil when the folder of the store is not there.
    init?(of store: Store) throws {
        guard let root = try RootDirectory.ifThere(store.assetFolder) else { return nil }
        self.root = root
        self.store = store.path
        counter = try store.storedCounter() ?? .max
        places = try Self.places(in: store)
    }

    /// A store that nothing can write to may be of a version that has no such table.
    private static func places(in store: Store) throws -> [ByteName: Place] {
        guard try !StoreSchema.isOld(store.database) else { return [:] }
        let query = try store.database.prepare(
            "SELECT path, sha256, place FROM asset_pending JOIN asset USING (path) WHERE place IS NOT NULL")
        var places: [ByteName: Place] = [:]
        while try query.step() {
            guard let row = SHA256Digest(hex: query.text(1)) else { continue }
            let digest = SHA256Digest(hex: query.text(2))
            guard digest != nil || query.text(2).isEmpty else { continue }
            places[ByteName(query.text(0))] = Place(row: row, digest: digest)
        }
        return places
    }

    private func place(of asset: Asset) -> Place? {
        guard let place = places[ByteName(asset.path)], place.row == asset.digest else { return nil }
        return place
    }

    /// What lies under the path of an asset, where that is what this state has there.
    func status(of asset: Asset, near last: inout RootDirectory.LastFolder) throws -> FileStatus? {
        try place(of: asset) == nil ? root.status(of: asset.path, near: &last) : nil
    }

    public func open(_ asset: Asset) throws -> Opened {
        if let place = place(of: asset) {
            guard let digest = place.digest else {
                guard let blob = try root.openIfThere(Store.blob(asset.digest)) else {
                    throw BackupError(.notFound, "is not there", at: asset.path)
                }
                return Opened(file: blob, isRemoved: true)
            }
            if let blob = try root.openIfThere(Store.blob(digest)) { return Opened(file: blob, isRemoved: false) }
        }
        while true {
            let inTree: FileHandle?
            var problem: BackupError?
            do { inTree = try root.openForReading(asset.path) } catch let error as BackupError {
                inTree = nil
                problem = error
            }
            let kept = Store.blob(asset.digest)
            // There is hardly ever one, and asking for its status costs less than failing to open it.
            guard try root.status(of: kept)?.isRegular == true, let blob = try root.openIfThere(kept) else {
                guard let inTree else { throw problem ?? BackupError(.notFound, "is not there", at: asset.path) }
                return Opened(file: inTree, isRemoved: false)
            }
            let found = try inTree?.status()
            if let inTree, let found, try Store.isSameFile(found, blob.status()) {
                return Opened(file: inTree, isRemoved: false)
            }
            // Either a writer is on its way between two states, or somebody changed the folder.
            guard try isSettled(asset) else { return Opened(file: blob, isRemoved: false) }
            let now = try root.status(of: asset.path)
            guard let inTree, let found else {
                if now == nil || problem?.code != .notFound { return Opened(file: blob, isRemoved: true) }
                continue
            }
            // Unless a writer has come by since it was opened.
            if let now, now.isSame(as: found) { return Opened(file: inTree, isRemoved: false) }
        }
    }

    /// Whether the newest state of the store has the same asset, and no writer has come since or has still to bring its file
    /// in line.
    private func isSettled(_ asset: Asset) throws -> Bool {
        let database = try Store.connectReader(store)
        // A store that nothing can write to may be of a version that has no such table.
        guard try !StoreSchema.isOld(database) else { return true }
        let query = try database.prepare(
            """
            SELECT 1 FROM asset WHERE path = ?1 AND sha256 = ?2 AND change <= ?3
            AND NOT EXISTS (SELECT 1 FROM asset_pending WHERE path = ?1)
            """
        ).bind(1, asset.path).bind(2, asset.digest.hex).bind(3, counter)
        return try query.step()
    }
}

/// Bytes under their digest: those that a commit brings in or takes out, and those that an undo needs.
extension Store {
    static let blobFolder = ".blobs"
    static func blob(_ digest: SHA256Digest) -> String { "\(blobFolder)/\(digest.hex)" }

    /// The file that has the bytes of an asset for the running batch.
    func openPlace(of asset: Asset) throws -> FileHandle { try assets.openForReading(place(of: asset)) }

    private func place(of asset: Asset) throws -> String {
        try pending(asset.path) != nil ? Self.blob(asset.digest) : asset.path
    }

    /// Where its file lies below the folder. A command that had no room for more has perhaps put it in place and not noted
    /// that.
    func foundPlace(of asset: Asset) throws -> String {
        let places = try [place(of: asset), asset.path]
        return try places.first { try assetStatus($0)?.isRegular == true } ?? places[0]
    }

    /// The size of a file that has the digest of its row and not its size: then the row is wrong. Nil where they agree, or
    /// where the file is another one.
    func sizeOfSoundFile(of asset: Asset) throws -> Int64? {
        let path = try foundPlace(of: asset)
        guard let status = try assetStatus(path), status.isRegular, status.size != asset.size else { return nil }
        do { return try digest(at: path) == asset.digest ? status.size : nil } catch let error as BackupError
            where error.isVerdict
        { return nil }
    }

    /// Whether two names are of one file, or of a file and the copy that was made of it.
    static func isSameFile(_ one: FileStatus, _ other: FileStatus) -> Bool {
        one.isSame(as: other)
            || one.isRegular && other.isRegular && one.size == other.size
                && one.modifiedNanoseconds == other.modifiedNanoseconds
    }

    /// Takes a durable file from the incoming folder in under its digest.
    func addBlob(_ asset: Asset, from staged: String) throws {
        let path = Self.blob(asset.digest)
        // Somebody may have written into it through another name.
        if try hasBlobOrRoom(for: asset.digest), try digest(at: path) == asset.digest { return }
        try FileHandle.openForReading(staged).setModified(nanoseconds: asset.modifiedNanoseconds)
        try AtomicFile.publish(staged, as: path, below: assets)
        hasNewBlobs = true
    }

    /// Gives the bytes that lie under a path a second name, before that path is given away. Returns their digest, which is
    /// another one when an app has changed the file or it has rotted; nil when there are none.
    func keepBytes(of asset: Asset) throws -> SHA256Digest? {
        let waits = try hasBlob(asset.digest)
        if try pending(asset.path) != nil { return waits || rehearsal ? asset.digest : nil }
        guard try assetStatus(asset.path)?.isRegular == true else {
            return waits ? asset.digest : nil
        }
        return try keepBytes(at: asset.path)
    }

    /// Gives the bytes of a file in the folder a second name. Returns their digest.
    func keepBytes(at path: String) throws -> SHA256Digest {
        // Whatever its time says: rotten bytes must not get the name of sound ones.
        let digest = try digest(at: path)
        if !rehearsal, try !hasBlobOrRoom(for: digest) {
            try AtomicFile.duplicate(path, as: Self.blob(digest), below: assets)
            hasNewBlobs = true
        }
        return digest
    }

    /// Whether the store has exactly this asset already, and its bytes, too.
    func isAsIt(_ known: Asset, _ incoming: Asset, looksInside: Bool) throws -> Bool {
        guard known.digest == incoming.digest, known.isLocalOnly == incoming.isLocalOnly else { return false }
        if try pending(known.path) != nil { return true }
        guard let status = try assetStatus(known.path), status.isRegular, status.size == known.size else {
            return false
        }
        return try !looksInside && Self.looksAsRemembered(status, known) || digest(at: known.path) == known.digest
    }

    /// Whether a file has the size and the time that the store remembers. What an app writes gets another time; rot does
    /// not.
    static func looksAsRemembered(_ status: FileStatus, _ asset: Asset) -> Bool {
        status.size == asset.size && isSameTime(status.modifiedNanoseconds, asset.modifiedNanoseconds)
    }

    /// Whether a file has lost bytes, and no app saved it shorter: that would have changed its time.
    static func isCut(_ status: FileStatus, _ asset: Asset) -> Bool {
        status.size < asset.size
            && (status.size == 0 || isSameTime(status.modifiedNanoseconds, asset.modifiedNanoseconds))
    }

    /// Whether a file that has other bytes than the store remembers lost them to a disk, and no app has written it.
    static func isHarmed(_ status: FileStatus, _ asset: Asset) -> Bool {
        isCut(status, asset) || looksAsRemembered(status, asset)
    }

    /// How such a file differs from what the store remembers.
    static func harm(_ status: FileStatus, _ asset: Asset) -> String {
        if isSameTime(status.modifiedNanoseconds, asset.modifiedNanoseconds) {
            return "is damaged: its bytes changed and its time did not"
        }
        return "is empty now, and had \(asset.size) bytes"
    }

    /// Archives keep whole seconds.
    static func isSameTime(_ one: Int64, _ other: Int64) -> Bool {
        one == other || other % 1_000_000_000 == 0 && one / 1_000_000_000 == other / 1_000_000_000
    }

    static func digest(ofFile path: String) throws -> SHA256Digest {
        try FileHandle.openForReading(path).digest()
    }

    /// A reader holds this as long as it lives: what it may need is not collected. Nil where there is nothing to hold, as
    /// on a medium that nobody can write to.
    static func lockBlobs(of path: String) throws -> FileHandle? {
        guard let root = try RootDirectory.ifThere(assetFolder(of: path)),
            try root.status(of: blobFolder)?.isDirectory == true
        else { return nil }
        let handle = try root.openFolder(blobFolder)
        // A writer that collects is done in a moment.
        while flock(handle.descriptor, LOCK_SH) != 0 {
            guard errno == EINTR else { return nil }
            try Interrupt.check()
        }
        return handle
    }

    /// What an undo or an unfinished change needs.
    private static let neededBlobs = """
        SELECT kept AS blob FROM batch_asset WHERE kept IS NOT NULL
        UNION ALL SELECT sha256 FROM asset_pending CROSS JOIN asset USING (path)
        UNION ALL SELECT place FROM asset_pending WHERE place IS NOT NULL
        UNION ALL SELECT was FROM asset_pending WHERE was IS NOT NULL
        """

    /// Removes the blobs that no undo and no unfinished change needs, unless a reader is at work: then false. With
    /// `digests` only these are looked at. Not inside a batch.
    @discardableResult func collectBlobs(among digests: Set<SHA256Digest>? = nil) throws -> Bool {
        let loose = try digests.map(looseBlobs) ?? looseBlobs()
        guard !loose.isEmpty else { return true }
        let folder = try assets.openFolder(Self.blobFolder)
        guard flock(folder.descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        for name in loose.sorted() { try RootDirectory(folder).remove(name) }
        try folder.sync()
        return true
    }

    /// Whether the store gives the bytes that it keeps such a name.
    static func isBlobName(_ name: String) -> Bool { SHA256Digest(hex: name)?.hex == name }

    /// What has another name than the store gives, or is no file, is somebody else's.
    private func looseBlobs() throws -> Set<String> {
        let names = try Directory.names(in: "\(assetFolder)/\(Self.blobFolder)", foreign: { _ in })
        var loose = Set(names.filter { Self.isBlobName($0) || AtomicFile.isTemporary($0) })
        guard !loose.isEmpty else { return [] }
        let needed = try database.prepare(Self.neededBlobs)
        while try needed.step() { loose.remove(needed.text(0)) }
        loose = try loose.filter { try assetStatus("\(Self.blobFolder)/\($0)")?.isRegular == true }
        if !loose.isEmpty { try keepLostFiles(of: &loose) }
        return loose
    }

    /// The bytes of a file that is not where its row says may be the last ones: the database may be an older copy.
    private func keepLostFiles(of loose: inout Set<String>) throws {
        let rows = try database.prepare("SELECT sha256, path, size, modified_ns FROM asset")
        while try rows.step() {
            guard loose.contains(rows.text(0)), let digest = SHA256Digest(hex: rows.text(0)) else { continue }
            let asset = Asset(
                path: rows.text(1), size: rows.integer(2), digest: digest, modifiedNanoseconds: rows.integer(3))
            // A path that is none has no file either.
            if (try? isAsIt(asset, asset, looksInside: false)) != true { loose.remove(digest.hex) }
        }
    }

    private func looseBlobs(among digests: Set<SHA256Digest>) throws -> Set<String> {
        let isNeeded = try database.statement("SELECT 1 FROM (\(Self.neededBlobs)) WHERE blob = ? LIMIT 1")
        let loose = try digests.filter { digest in
            guard try hasBlob(digest) else { return false }
            defer { isNeeded.reset() }
            return try !isNeeded.bind(1, digest.hex).step()
        }
        return Set(loose.map(\.hex))
    }
}

extension FileHandle {
    /// Of all its bytes.
    func digest() throws -> SHA256Digest {
        let hasher = SHA256Hasher()
        try forEachChunk { hasher.update($0) }
        return hasher.finish()
    }
}
