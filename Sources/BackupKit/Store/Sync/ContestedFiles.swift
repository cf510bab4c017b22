/// Files about which two devices have decided differently before they heard of each other.
///
/// The later decision counts, and it says which files it leaves. Of the files of the other one some are here and on the
/// hub by now, and some are gone; so the device on which both decisions meet carries out the one that counts. Where it has
/// not all bytes, the conflict stays contested, and a device that has them does it.
extension Synchronizer {
    /// Must run when all that came is taken, and before files are fetched: those of the other decision are not wanted.
    func settleContested() throws {
        for (conflict, decision) in try store.fileDecisions() where conflict.isContested {
            let paths = [conflict.existing, conflict.incoming]
            if paths.contains(where: { damagedAssets[ByteName($0)] != nil }) { continue }
            try withStage { folder in
                let fetched = try fetchBytes(of: decision, for: paths, in: folder)
                try inBatch { try carryOut(decision, of: conflict, at: paths, fetched) }
            }
        }
    }

    /// The paths of files about which this device has decided and the hub does not know it, with the versions that were there.
    /// Another device may have decided otherwise, and its decision may not have come yet: which of these versions the hub has
    /// there, and what links it, says nothing until then.
    func undecidedVersions() throws -> [ByteName: Set<SHA256Digest>] {
        var versions: [ByteName: Set<SHA256Digest>] = [:]
        for (conflict, decision) in try store.fileDecisions() {
            guard let stored = try store.record(conflict.recordID) else { continue }
            // Nobody else can have decided about what the hub has not heard of.
            guard let known = try store.hubVersion(of: stored),
                try conflict.isContested || Conflict.fileDecision(in: known) != decision
            else { continue }
            for path in [conflict.existing, conflict.incoming] {
                versions[ByteName(path), default: []].formUnion([decision.existing.digest, decision.incoming.digest])
            }
        }
        return versions
    }

    /// The bytes of the hub for those files of a decision whose bytes are not here.
    private func fetchBytes(
        of decision: FileDecision, for paths: [String], in folder: String
    ) throws -> [SHA256Digest: String] {
        var fetched: [SHA256Digest: String] = [:]
        for file in decision.files(at: paths).compactMap(\.file) where try !isAtHand(file.digest, among: paths) {
            do { fetched[file.digest] = try stage(file.digest, file.size, in: folder) } catch let error as BackupError
                where error.isVerdict && error.code != .destinationFull
            {
                continue
            }
        }
        return fetched
    }

    private func isAtHand(_ digest: SHA256Digest, among paths: [String]) throws -> Bool {
        if try store.hasBlob(digest) { return true }
        return try paths.contains { path in
            guard let asset = try store.asset(path), asset.digest == digest else { return false }
            return try store.isInPlace(asset)
        }
    }

    private func carryOut(
        _ decision: FileDecision, of conflict: Conflict, at paths: [String], _ fetched: [SHA256Digest: String]
    ) throws {
        let versions = Set([decision.existing.digest, decision.incoming.digest])
        let files = decision.files(at: paths)
        let atHand = try Set(
            files.compactMap(\.file?.digest).filter { digest in
                try fetched[digest] != nil || isAtHand(digest, among: paths)
            })
        // A file that somebody has put there since is no part of this.
        let open = try files.filter { path, _ in
            try [store.asset(path)?.digest, store.hubAsset(path)?.digest].allSatisfy {
                $0.map(versions.contains) ?? true
            }
        }
        let known = try [store.asset(paths[0])?.digest, store.hubAsset(paths[0])?.digest]
        if open.contains(where: { sameBytes($0.path, paths[1]) }) {
            try store.relink(by: decision, at: paths, isTaken: known.contains(decision.incoming.digest))
        }
        let feasible = open.filter { $0.file.map { atHand.contains($0.digest) } ?? true }
        // The bytes of what goes are at hand for what comes.
        let placed = try feasible.filter { path, file in try clear(path, for: file) }.compactMap(\.file)
        for file in placed { try put(file, fetched[file.digest]) }
        for (path, _) in feasible { try store.settleAsset(path, store.hubAsset(path)?.digest) }
        guard feasible.count == open.count, let stored = try store.record(conflict.recordID) else { return }
        try store.rewrite(stored, as: Conflict.settled(stored.record, at: store.timeAfter(stored.record)))
    }

    /// False where the file is there already.
    private func clear(_ path: String, for file: Asset?) throws -> Bool {
        let mine = try store.asset(path)
        if mine?.digest == file?.digest { return false }
        guard let mine else { return true }
        try store.removeAsset(mine, for: file?.digest)
        var remembered = RememberedLinks(store)
        if file == nil { try store.keepForUndo(mine, isReplaced: false, for: remembered.batches(linking: path)) }
        return true
    }

    private func put(_ file: Asset, _ fetched: String?) throws {
        try store.insert(file, from: fetched)
        // The undo of an earlier import leaves alone what a decision keeps.
        try store.forgetAsset(file.path)
        try keepApart(file)
        if fetched != nil { result.assetsFetched += 1 }
    }
}
