import Glibc

/// A file that the store keeps: a PDF, a photo.
public struct Asset: Sendable, Equatable {
    /// Relative to the layout, and to `<store>.assets`: `Attachments/Smith 2020.pdf`.
    public let path: String
    public let size: Int64
    public let digest: SHA256Digest
    /// Too large for the cloud, or kept on this device by choice.
    public let isLocalOnly: Bool
    public let modifiedNanoseconds: Int64
    /// Whether it stays here by choice, whatever its size.
    var isKeptHere: Bool { isLocalOnly && size <= CloudLimits.assetBytes }

    public init(
        path: String, size: Int64, digest: SHA256Digest, isLocalOnly: Bool = false, modifiedNanoseconds: Int64 = 0
    ) {
        self.path = path
        self.size = size
        self.digest = digest
        self.isLocalOnly = isLocalOnly || size > CloudLimits.assetBytes
        self.modifiedNanoseconds = modifiedNanoseconds
    }
}

/// Rows of the table `asset`. Their files lie under their paths; `AssetFiles` tells how rows and files change together.
extension Store {
    /// Incoming assets wait here for their transaction.
    static let incomingFolder = ".incoming"
    /// Where 0.1.0 kept replaced assets for an undo.
    static let keptFolder = ".kept"
    static let ownFolders = [incomingFolder, keptFolder, blobFolder]
    private static let columns = assetColumnNames.joined(separator: ", ")

    /// Visits every asset. Rows that are damaged are handed to `damaged`.
    public func forEachAsset(
        damaged: ((DamagedRow) throws -> Void)? = nil, _ body: (Asset) throws -> Void
    ) throws {
        let query = try database.prepare("SELECT \(Self.columns) FROM asset ORDER BY path")
        var last: String?
        while try query.step() {
            let asset = try ifSound(damaged) {
                let asset = try RowReader.asset(query)
                // A damaged page can break the order, and only then can one path come twice.
                if let last, !precedesBytewise(last, asset.path), try hasTwice(asset.path) {
                    throw RowReader.repeatedAsset(query)
                }
                return asset
            }
            guard let asset else { continue }
            last = asset.path
            try body(asset)
        }
    }

    /// Not by the order of the table, which may be damaged.
    private func hasTwice(_ path: String) throws -> Bool {
        let query = try database.prepare("SELECT count(*) FROM asset WHERE +path = ?").bind(1, path)
        return try query.step() && query.integer(0) > 1
    }

    public func asset(_ path: String) throws -> Asset? {
        let query = try database.statement("SELECT \(Self.columns) FROM asset WHERE path = ?").bind(1, path)
        defer { query.reset() }
        return try query.step() ? try RowReader.asset(query) : nil
    }

    /// Whether there is a row of that path, be it damaged.
    func hasAsset(_ path: String) throws -> Bool { try ifSound { try asset(path) != nil } ?? true }

    /// A folder in which files can be gathered before the transaction that adds them; on the assets' own file system,
    /// so that a rename is enough. The next writer removes it when its owner was killed.
    public func withIncomingFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let assets = try assets
        let place = "\(Self.incomingFolder)/\(RandomID.make())"
        try assets.createFolders(above: "\(place)/file", durably: true)
        let folder = "\(assetFolder)/\(place)"
        // Where this fails, the next writer cleans up.
        defer {
            try? Directory.removeTree(folder)
            _ = try? assets.removeFolder(Self.incomingFolder)
        }
        return try body(folder)
    }

    public enum AssetOutcome: Sendable, Equatable {
        case added, unchanged
        /// Another file has that name: both are kept, the new one under this path.
        case conflict(keptAs: String)
        /// Another file has that name, and the store has the new one under this path already.
        case known(as: String)
    }

    /// Says what `placeAsset` will do, without doing it.
    public func planAsset(_ incoming: Asset) throws -> AssetOutcome {
        if try belongsToAnother(incoming.path, incoming.digest) { return try nameBesideAnother(incoming) }
        // A file that is gone or cut short is brought back, though its row is known.
        return try asset(incoming.path).map { try $0.digest == incoming.digest && isInPlace($0) } ?? false
            ? .unchanged : .added
    }

    /// Whether the file of a row has these bytes, and the time that the row says: then the row is wrong about its digest, and
    /// there are no two files. An empty file is one that has lost its bytes.
    private func isWrong(_ known: Asset, aboutFileOf digest: SHA256Digest) throws -> Bool {
        guard try pending(known.path) == nil, let status = try assetStatus(known.path), status.isRegular,
            Self.isSameTime(status.modifiedNanoseconds, known.modifiedNanoseconds), status.size > 0 || known.size == 0
        else { return false }
        return try self.digest(at: known.path) == digest
    }

    /// The name of a version of a file beside another one: the name that it has already, or else a free one. `isMoved`:
    /// what the undo history remembers under its path goes there with it.
    func nameBesideAnother(_ incoming: Asset, isMoved: Bool = false) throws -> AssetOutcome {
        func isOpen(_ path: String) throws -> Bool {
            try !isMoved || canMoveMemory(of: incoming.path, to: path)
        }
        let (stem, ending) = Self.conflictName(of: incoming.path)
        let query = try database.statement(
            "SELECT path FROM asset WHERE path >= ?1 AND path < ?1 || x'f48fbfbf' AND sha256 = ?2 ORDER BY path")
        query.bind(1, stem).bind(2, incoming.digest.hex)
        defer { query.reset() }
        while try query.step() {
            let path = query.text(0)
            if try isOpen(path) { return .known(as: path) }
        }
        let date = String(clock.now().iso8601.prefix(10))
        var path = "\(stem)\(date)\(ending)"
        var number = 2
        while try hasAsset(path) || isNameTaken(path) || isOfAnother(path, incoming.digest) || !isOpen(path) {
            path = "\(stem)\(date)-\(number)\(ending)"
            number += 1
        }
        return .conflict(keptAs: path)
    }

    /// Whether a path means other bytes: those that the store has, or those that it waits for.
    func belongsToAnother(_ path: String, _ digest: SHA256Digest) throws -> Bool {
        try asset(path).map { try $0.digest != digest && !isWrong($0, aboutFileOf: digest) }
            ?? isAwaited(path, as: digest)
    }

    /// Whether the hub has another file under a path, and its bytes did not come yet: records here link that file.
    func isAwaited(_ path: String, as digest: SHA256Digest) throws -> Bool {
        guard let awaited = try hubAsset(path), awaited.isWanted, let other = awaited.digest else { return false }
        return other != digest
    }

    /// Whether the undo history, the hub, or somebody in the store's folder, has other bytes under a path.
    private func isOfAnother(_ path: String, _ digest: SHA256Digest) throws -> Bool {
        if let stranger = try stranger(at: path), stranger.digest != digest { return true }
        if try isAwaited(path, otherThan: digest) { return true }
        let query = try database.statement("SELECT 1 FROM batch_asset WHERE path = ?1 AND sha256 <> ?2 LIMIT 1")
            .bind(1, path).bind(2, digest.hex)
        defer { query.reset() }
        return try query.step()
    }

    func isInPlace(_ asset: Asset) throws -> Bool {
        // The running batch has brought it.
        if try pending(asset.path) != nil { return true }
        guard let status = try assetStatus(asset.path) else { return false }
        return status.isRegular && status.size == asset.size
    }

    /// Whether a file is called `name`, or as a file of that name is called beside another one.
    static func isVersion(_ path: String, of name: String) -> Bool {
        guard lastComponent(of: path) != lastComponent(of: name) else { return true }
        guard let mark = mark(of: path, beside: name) else { return false }
        return mark.hasPrefix("conflict_") || mark.hasPrefix("missing_") || isNumber(mark)
    }

    /// The same for paths in one folder.
    static func isVersionBeside(_ path: String, of other: String) -> Bool {
        parent(of: path) == parent(of: other) && isVersion(path, of: other)
    }

    /// Whether a file is called `name` with a number, as one whose name falls together with that of another file.
    static func isNumbered(_ path: String, of name: String) -> Bool {
        mark(of: path, beside: name).map(isNumber) ?? false
    }

    private static func isNumber(_ mark: Substring) -> Bool { Int(mark).map { (2..<1000).contains($0) } ?? false }

    /// `2` of `a_2.pdf` beside `a.pdf`; also of `a_conflict_2026-11-24.pdf` and `a_missing_0123abcd.pdf`.
    private static func mark(of path: String, beside name: String) -> Substring? {
        let file = lastComponent(of: path)
        let (stem, ending) = parts(of: lastComponent(of: name), "_")
        guard file.hasPrefix(stem), file.hasSuffix(ending), file.count >= stem.count + ending.count else { return nil }
        return file.dropFirst(stem.count).dropLast(ending.count)
    }

    /// What a record calls a file that it names, that is not here, and whose path has a file of others.
    static func missingName(of path: String, for id: RecordID) -> String {
        let (stem, ending) = parts(of: path, "_missing_")
        return stem + SHA256Digest.of(id.description).hex.prefix(8) + ending
    }

    private static func conflictName(of path: String) -> (stem: String, ending: String) {
        parts(of: path, "_conflict_")
    }

    /// `a/b.pdf` → `a/b` with the mark, and `.pdf`
    private static func parts(of path: String, _ mark: String) -> (stem: String, ending: String) {
        let name = lastComponent(of: path)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (path + mark, "") }
        let ending = String(name[dot...])
        return (path.dropLast(ending.count) + mark, ending)
    }

    /// Takes a durable file from the incoming folder into the store; must run inside `batch`. Without a file its bytes
    /// are known already, or nothing is to be written.
    @discardableResult
    public func placeAsset(_ incoming: Asset, from staged: String?) throws -> AssetOutcome {
        let outcome = try planAsset(incoming)
        switch outcome {
        case .unchanged, .known: break
        case .added:
            let broken = try asset(incoming.path)
            if let broken { try removeAsset(broken, for: incoming.digest) }
            try insert(incoming, from: staged)
            // A sync brings the decision along, and the file of a record that others have deleted.
            if currentBatch?.kind != Self.syncBatch {
                try reopenConflict(of: incoming.path)
                if broken == nil { try forgetOwners(ofGone: incoming.path) }
            }
        case .conflict(let path):
            try placeAsset(incoming, from: staged, as: path)
        }
        return outcome
    }

    /// Takes a file into the store beside another one of its name, under a name that is free.
    func placeAsset(_ incoming: Asset, from staged: String?, as path: String, ofOneFile: Bool = true) throws {
        try insert(incoming.renamed(path), from: staged)
        try noteConflict(
            kind: Conflict.attachment, subject: incoming.path, existing: incoming.path, incoming: path,
            ofOneFile: ofOneFile)
    }

    func insert(_ asset: Asset, from staged: String?) throws {
        guard currentBatch != nil else { throw Self.needsBatch(asset.path) }
        try Self.check(asset.path)
        let stranger = try stranger(at: asset.path)
        // Somebody else has put the same bytes there: they are adopted, and an undo leaves them.
        let isFound = stranger?.digest == asset.digest
        if !rehearsal {
            if isFound {
                try assets.openForReading(asset.path).sync()
            } else if let staged {
                try addBlob(asset, from: staged)
            } else if try !hasBlob(asset.digest) {
                throw BackupError(.incomplete, "its bytes are not in the store's folder", at: asset.path)
            }
        }
        if !isFound { try setPending(asset.path, was: stranger?.digest) }
        try addRow(asset, kept: isFound ? asset.path : stranger?.digest.hex)
        if let stranger, !isFound { try setAside(stranger) }
    }

    /// Gives a row the size and the digest of its file. Must run inside `write`.
    func setFacts(of file: Asset) throws {
        try database.statement("UPDATE asset SET size = ?, sha256 = ? WHERE path = ?")
            .bind(1, file.size).bind(2, file.digest.hex).bind(3, file.path).run()
        _ = nextChange()
    }

    /// A row that an undo of the running batch takes away again. When this batch removed an asset of that path before, what
    /// it was stays remembered.
    func addRow(_ asset: Asset, kept: String? = nil) throws {
        try putRow(asset)
        try database.statement("INSERT OR IGNORE INTO batch_asset (batch, path, kept) VALUES (?, ?, ?)")
            .bind(1, currentBatch?.id).bind(2, asset.path).bind(3, kept).run()
    }

    func putRow(_ asset: Asset) throws {
        try database.statement("INSERT INTO asset (\(Self.columns), change) VALUES (?, ?, ?, ?, ?, ?)")
            .bind(1, asset.path).bind(2, asset.size).bind(3, asset.digest.hex)
            .bind(4, asset.isLocalOnly ? Int64(1) : 0).bind(5, asset.modifiedNanoseconds).bind(6, nextChange()).run()
        _ = try? takenNames?.insert(asset.path)
        try noteNewFile(asset)
    }

    /// A file that lies under a path and that no row has named. What cannot be read is left where it is.
    func stranger(at path: String) throws -> Asset? {
        do { return try file(at: path) } catch let error as BackupError where error.isVerdict { return nil }
    }

    /// Makes an attachment under a name of its own of a file whose path another one takes.
    func setAside(_ stranger: Asset) throws {
        if !rehearsal { _ = try keepBytes(at: stranger.path) }
        guard let path = try keepBeside(stranger) else { return }
        fileFindings.append(
            Finding(
                .conflict, .warning, stranger.path,
                "another file lay there that the store did not know; that file is kept as \(path)",
                remedy: howToAdopt(path, as: stranger.path)))
    }

    /// Keeps a version of a file as an attachment beside the one of its name, unless the store has it. Nil where it needs no
    /// other name.
    private func keepBeside(_ version: Asset) throws -> String? {
        switch try nameBesideAnother(version) {
        case .conflict(let path):
            try insert(version.renamed(path), from: nil)
            try noteKeptChange(path)
            return path
        case .known(let path): return path
        case .added, .unchanged: return nil
        }
    }

    private func howToAdopt(_ path: String, as other: String) -> String {
        let (mine, its) = (TypedCommand.word("\(treeFolder)/\(path)"), TypedCommand.word("\(treeFolder)/\(other)"))
        return "'cp \(mine) \(its)' and then 'backup-tool store adopt' make it the attachment again"
    }

    /// Whether a new attachment may have a path: off the names that every export has for files of its own, too.
    static func check(_ path: String) throws {
        try checkPlace(path)
        if EntryName.isReserved(path) {
            throw BackupError(.refused, "is the name of a file that every export has", at: path)
        }
    }

    /// Whether a path stays below the assets' folder, and out of what the store keeps there for itself.
    static func checkPlace(_ path: String) throws {
        try EntryName.check(path)
        let first = path.utf8.prefix { $0 != UInt8(ascii: "/") }
        if ownFolders.contains(where: { first.elementsEqual($0.utf8) }) {
            throw BackupError(.refused, "is no path for an attachment", at: path)
        }
    }

    private static func needsBatch(_ path: String) -> BackupError {
        BackupError(.failed, "an asset can only be added or removed by a batch", at: path)
    }

    /// Takes an asset out of the store; its bytes are kept for an undo. When an app has changed its file since, that
    /// version stays as an attachment under a name of its own, unless it is what comes in its place. A file
    /// that has rotted is only kept for an undo. Returns the path of a version that stays. Must run inside `batch`.
    @discardableResult
    public func removeAsset(_ asset: Asset, for replacement: SHA256Digest? = nil) throws -> String? {
        guard let batch = currentBatch else { throw Self.needsBatch(asset.path) }
        let query = try database.statement("SELECT 1 FROM batch_asset WHERE batch = ? AND path = ?")
            .bind(1, batch.id).bind(2, asset.path)
        // Put there by this very batch; what was before is remembered already.
        let isOurs = try query.step()
        query.reset()
        let kept = try isOurs ? nil : keepBytes(of: asset)
        if !isOurs {
            try database.statement("INSERT INTO batch_asset VALUES (?, ?, ?, ?, ?, ?, ?)")
                .bind(1, batch.id).bind(2, asset.path).bind(3, asset.size).bind(4, asset.digest.hex)
                .bind(5, asset.isLocalOnly ? Int64(1) : 0).bind(6, asset.modifiedNanoseconds).bind(7, kept?.hex).run()
        }
        try setPending(asset.path, was: kept)
        try database.statement("DELETE FROM asset WHERE path = ?").bind(1, asset.path).run()
        _ = nextChange()
        guard let kept, kept != asset.digest, kept != replacement,
            let status = try assetStatus(asset.path), !Self.isHarmed(status, asset)
        else { return nil }
        let edited = Asset(
            path: asset.path, size: status.size, digest: kept, isLocalOnly: asset.isKeptHere,
            modifiedNanoseconds: status.modifiedNanoseconds)
        guard let path = try keepBeside(edited) else { return nil }
        fileFindings.append(
            Finding(
                .conflict, .warning, asset.path,
                "was changed in the store's folder since; that version is kept as \(path)",
                remedy: replacement.map { _ in howToAdopt(path, as: asset.path) }))
        return path
    }
}

extension Asset {
    func renamed(_ path: String) -> Asset {
        Asset(
            path: path, size: size, digest: digest, isLocalOnly: isLocalOnly, modifiedNanoseconds: modifiedNanoseconds)
    }
}

extension Finding {
    static func oversize(_ path: String) -> Finding {
        Finding(.oversize, .warning, path, "is larger than 250 MB: it was stored, and will never sync")
    }
}
