import Glibc

/// What the first version left in the folder of assets: `.kept/<batch>/` with files that wait for an undo, and
/// `.kept/<batch>.placed` with the names of files that a batch had put in place before its commit.
extension Store {
    private static let placedEnding = ".placed"

    private static func keptFolder(of batch: Int64) -> String { "\(keptFolder)/\(batch)" }

    /// Brings the folder of a store of 0.1.0 forward. Each step can be repeated, so a run that was killed in between is
    /// finished by the next writer.
    func bringKeptFilesForward() throws {
        let kept = "\(assetFolder)/\(Self.keptFolder)"
        guard try assetStatus(Self.keptFolder)?.isDirectory == true else { return }
        let last = try database.integer("SELECT ifnull(max(id), 0) FROM batch")
        for name in try Directory.names(in: kept) {
            guard let id = Int64(name.split(separator: ".").first ?? ""), id > last else { continue }
            // The transaction that moved these files was never committed.
            try takeBackFiles(of: id)
        }
        try finishUndoneFiles()
        try keepAsBlobs()
        try Directory.removeTree(kept)
    }

    /// Undoes what the files of a batch that was not committed went through.
    private func takeBackFiles(of batch: Int64) throws {
        let kept = Self.keptFolder(of: batch)
        let list = kept + Self.placedEnding
        if try assetStatus(list)?.isRegular == true {
            for path in try placedPaths(in: list) { try removeFile(path) }
            // Before anything comes back under one of these names.
            try removeFile(list)
        }
        guard try assetStatus(kept)?.isDirectory == true else { return }
        try Directory.walk("\(assetFolder)/\(kept)") { relative, status in
            if !status.isDirectory { try bringBack("\(kept)/\(relative)", to: relative) }
        }
        try Directory.removeTree("\(assetFolder)/\(kept)")
    }

    /// The second half of undos that were cut short.
    private func finishUndoneFiles() throws {
        let query = try database.prepare(
            """
            SELECT path, kept FROM batch_asset JOIN batch ON batch.id = batch_asset.batch
            WHERE undone_at IS NOT NULL ORDER BY batch DESC
            """)
        while try query.step() {
            let path = query.text(0)
            guard let kept = query.optionalText(1) else {
                // There was no such asset before, or its file was missing.
                try removeFile(path)
                continue
            }
            if kept != path, try assetStatus(kept)?.isRegular == true { try bringBack(kept, to: path) }
        }
        try database.write {
            try database.execute(
                "DELETE FROM batch_asset WHERE batch IN (SELECT id FROM batch WHERE undone_at IS NOT NULL)")
        }
    }

    private func bringBack(_ source: String, to path: String) throws {
        try assets.createFolders(above: path, durably: true)
        try AtomicFile.publish("\(assetFolder)/\(source)", as: path, below: assets)
        try assets.folder(of: path).sync()
    }

    /// Durably; what is no file stays.
    private func removeFile(_ path: String) throws {
        guard try assetStatus(path)?.isRegular == true else { return }
        try assets.remove(path)
        try assets.folder(of: path).sync()
    }

    /// What waits for an undo gets its digest as its name.
    private func keepAsBlobs() throws {
        var found: [(batch: Int64, path: String, digest: SHA256Digest?)] = []
        let query = try database.prepare(
            "SELECT batch, path, size, sha256, modified_ns, kept FROM batch_asset WHERE kept LIKE ?"
        ).bind(1, Self.keptFolder + "/%")
        while try query.step() {
            let source = query.text(5)
            guard let status = try assetStatus(source), status.isRegular else {
                found.append((query.integer(0), query.text(1), nil))
                continue
            }
            let isAsRemembered =
                status.size == query.integer(2) && Self.isSameTime(status.modifiedNanoseconds, query.integer(4))
            let remembered = isAsRemembered ? SHA256Digest(hex: query.text(3)) : nil
            let digest = try remembered ?? self.digest(at: source)
            if try !hasBlobOrRoom(for: digest) {
                try AtomicFile.duplicate(source, as: Self.blob(digest), below: assets)
            }
            found.append((query.integer(0), query.text(1), digest))
        }
        try assets.openFolder(Self.blobFolder).sync()
        try database.write {
            for (batch, path, digest) in found {
                try database.statement("UPDATE batch_asset SET kept = ? WHERE batch = ? AND path = ?")
                    .bind(1, digest?.hex).bind(2, batch).bind(3, path).run()
            }
        }
    }

    private func placedPaths(in list: String) throws -> [String] {
        var bytes: [UInt8] = []
        try assets.openForReading(list).forEachChunk { bytes += $0 }
        // A name that was not written to its end was not used either.
        return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
