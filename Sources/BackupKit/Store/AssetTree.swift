import Glibc

/// Brings the files under their paths in line with a commit. Nobody needs it to have happened: until then the bytes of
/// both states lie in `.blobs`. What was cut short is finished by the next writer.
extension Store {
    /// A path whose file is not what the newest state says.
    struct PendingPath {
        let path: String
        /// The digest of what lies there; nil when it was nothing.
        let was: String?
        /// The digest of what shall lie there where the asset's row says another, empty for nothing: an undo gives back
        /// also a file that had been changed or lost.
        let place: String?

        var wasDigest: SHA256Digest? { was.flatMap { SHA256Digest(hex: $0) } }
    }

    func pending(_ path: String) throws -> PendingPath? {
        let query = try database.statement("SELECT was, place FROM asset_pending WHERE path = ?").bind(1, path)
        defer { query.reset() }
        guard try query.step() else { return nil }
        return PendingPath(path: path, was: query.optionalText(0), place: query.optionalText(1))
    }

    /// Says that the running batch changes what lies under a path. What lay there when it began stays noted.
    func setPending(_ path: String, was: SHA256Digest?, place: String? = nil) throws {
        try database.statement(
            """
            INSERT INTO asset_pending (path, was, place) VALUES (?1, ?2, ?3)
            ON CONFLICT (path) DO UPDATE SET place = ?3
            """
        ).bind(1, path).bind(2, was?.hex).bind(3, place).run()
    }

    /// Leaves what lies under a path to whoever put it there.
    func forgetPending(_ path: String) throws {
        try database.statement("DELETE FROM asset_pending WHERE path = ?").bind(1, path).run()
    }

    /// Not inside a batch. What cannot be brought in line stays noted, and its bytes stay in `.blobs`; the findings name it.
    @discardableResult
    func settleFiles(collecting: Collecting = .all) throws -> [Finding] {
        let all = try pendingPaths()
        var unsettled: [Finding] = []
        if !all.isEmpty {
            // Relative to the folder of assets.
            var folders: Set<ByteName> = []
            var done: [String] = []
            func settle(_ pending: PendingPath, _ body: () throws -> Bool) throws {
                do {
                    try Interrupt.check()
                    // A row may come from a stranger's store: nothing outside the folder is touched for it.
                    if let reason = Self.refusal(of: pending.path) {
                        unsettled.append(
                            Finding(.malformed, .warning, pending.path, "\(reason); the row that named it was removed"))
                        return done.append(pending.path)
                    }
                    if try body() { return done.append(pending.path) }
                    let isLate = try lateChange(pending) != nil
                    let found = isLate ? Self.unknownChange(pending.path) : inTheWay(pending.path)
                    unsettled.append(found)
                } catch let error as BackupError where error.code == .interrupted { throw error } catch {
                    unsettled.append(inTheWay(pending.path, else: "\(error)"))
                }
            }
            // What goes makes room: a file's name may have become a folder's.
            for (pending, digest) in all where digest == nil {
                try settle(pending) {
                    try clear(pending, &folders)
                    return true
                }
            }
            for (pending, digest) in all {
                if let digest { try settle(pending) { try fill(pending, digest, &folders) } }
            }
            _ = try assets.removeFolder(Self.incomingFolder)
            for folder in folders.map(\.text) where try assetStatus(folder)?.isDirectory == true {
                try assets.openFolder(folder).sync()
            }
            try database.write { for path in done { try forgetPending(path) } }
        }
        switch collecting {
        case .all: try collectBlobs()
        case .settled:
            try collectBlobs(among: Set(all.flatMap { [$0.digest, $0.pending.wasDigest].compactMap { $0 } }))
        }
        return unsettled
    }

    /// Which blobs are looked at after files were put in place: a sync does it once a file.
    enum Collecting { case all, settled }

    private static func refusal(of path: String) -> String? {
        do { try check(path) } catch { return (error as? BackupError)?.message ?? "\(error)" }
        return nil
    }

    /// `reason`: why it failed where nothing is in the way.
    func inTheWay(_ path: String, else reason: String = "something else is in its place") -> Finding {
        let found = (try? obstacle(at: path)) ?? nil
        let reason = found.map { "\($0.name) is in its place" } ?? reason
        let room = found.map { "make room at \(assetFolder)/\($0.place), then run any command that writes" }
        return Finding(
            .skipped, .warning, path, "the store's folder does not show the new state of this file: \(reason)",
            remedy: "nothing is lost, and exports have it; \(room ?? "the next command that writes tries again")")
    }

    /// What lies under the path of a change that is not finished, where an app has written it since.
    func lateChange(_ pending: PendingPath) throws -> Asset? {
        guard (try? Self.check(pending.path)) != nil, let file = try regularFile(at: pending.path) else { return nil }
        let known = [pending.was, pending.place, try ifSound { try asset(pending.path) }??.digest.hex]
        return known.contains(file.digest.hex) ? nil : file
    }

    static func unknownChange(_ path: String) -> Finding {
        Finding(
            .entryUnexpected, .warning, path,
            "was written by another program while the store had still to put a newer version there; no backup has it",
            remedy: "'backup-tool store adopt' keeps it as a file of its own")
    }

    func pendingPaths() throws -> [(pending: PendingPath, digest: SHA256Digest?)] {
        let query = try database.prepare(
            "SELECT path, was, place, ifnull(place, sha256) FROM asset_pending LEFT JOIN asset USING (path) ORDER BY path"
        )
        var found: [(pending: PendingPath, digest: SHA256Digest?)] = []
        while try query.step() {
            let pending = PendingPath(path: query.text(0), was: query.optionalText(1), place: query.optionalText(2))
            found.append((pending, query.optionalText(3).flatMap { SHA256Digest(hex: $0) }))
        }
        return found
    }

    /// Removes a file that no row names any more, unless it is not the one that was there.
    private func clear(_ pending: PendingPath, _ folders: inout Set<ByteName>) throws {
        guard let status = try assetStatus(pending.path), try isKnown(status, pending) else { return }
        try assets.remove(pending.path)
        folders.insert(ByteName(try removeEmptyFolders(above: pending.path)))
    }

    /// Returns the folder that is left.
    @discardableResult func removeEmptyFolders(above path: String) throws -> String {
        var folder = parent(of: path)
        // A folder that is not empty is not removed, which is the test.
        while folder != ".", try assets.removeFolder(folder) { folder = parent(of: folder) }
        return folder
    }

    /// Puts the right bytes under a path. False when a file is in the way that somebody has put there since.
    private func fill(_ pending: PendingPath, _ digest: SHA256Digest, _ folders: inout Set<ByteName>) throws -> Bool {
        let (target, blob) = (pending.path, Self.blob(digest))
        guard try hasBlobOrRoom(for: digest), let waiting = try assetStatus(blob) else { return true }
        folders.insert(ByteName(parent(of: target)))
        if let status = try assetStatus(target) {
            if status.isSame(as: waiting) { return true }
            // Only an empty folder makes room.
            if status.isDirectory { return try assets.removeFolder(target) && fill(pending, digest, &folders) }
            guard try isKnown(status, pending) else {
                // Where the file had its new bytes already, another one is an ordinary change of it.
                return try status.isRegular && (digest == pending.wasDigest || self.digest(at: target) == digest)
            }
        }
        let assets = try assets
        let temporary = "\(Self.incomingFolder)/\(RandomID.make())"
        for path in [target, temporary] { try assets.createFolders(above: path, durably: true) }
        do {
            // Apps write into the files of the folder, and neither an undo nor another attachment shall find that.
            let isCopy = try waiting.names > 1 || isNeededByUndo(digest)
            try AtomicFile.duplicate(blob, as: temporary, below: assets, isCopy: isCopy)
            try AtomicFile.publish("\(assetFolder)/\(temporary)", as: target, below: assets)
        } catch {
            try? assets.remove(temporary)
            throw error
        }
        return true
    }

    /// Whether a file is the one that was there when the batch began.
    private func isKnown(_ status: FileStatus, _ pending: PendingPath) throws -> Bool {
        guard status.isRegular, let was = pending.wasDigest else { return false }
        if let blob = try assetStatus(Self.blob(was)), Self.isSameFile(status, blob) { return true }
        return try digest(at: pending.path) == was
    }

    private func isNeededByUndo(_ digest: SHA256Digest) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM batch_asset WHERE kept = ? LIMIT 1").bind(1, digest.hex)
        defer { query.reset() }
        return try query.step()
    }
}
