import Glibc

/// Brings the assets' folder in line with the database: the second half of an undo, and what a killed run left.
extension Store {
    /// Puts the rows back as they were before the batch.
    func revertAssetRows(_ batch: Batch, _ result: inout UndoResult) throws {
        let query = try database.prepare(
            "SELECT path, size, sha256, local_only, modified_ns FROM batch_asset WHERE batch = ?"
        ).bind(1, batch.id)
        while try query.step() {
            try database.statement("DELETE FROM asset WHERE path = ?").bind(1, query.text(0)).run()
            if !query.isNull(1) {
                try database.statement("INSERT INTO asset VALUES (?, ?, ?, ?, ?, ?)")
                    .bind(1, query.text(0)).bind(2, query.integer(1)).bind(3, query.text(2)).bind(4, query.integer(3))
                    .bind(5, query.integer(4)).bind(6, nextChange()).run()
            } else {
                // One that is gone is a change too, which a hub has to hear of.
                _ = nextChange()
            }
            result.assets += 1
        }
    }

    /// Moves the files of undone batches to where their rows say they are. Each step can be repeated, so a run that was
    /// killed in between is finished by the next writer.
    func finishUndoneAssets() throws {
        let query = try database.prepare(
            """
            SELECT batch, path, size, kept FROM batch_asset JOIN batch ON batch.id = batch_asset.batch
            WHERE undone_at IS NOT NULL ORDER BY batch DESC
            """)
        var finished: Set<Int64> = []
        while try query.step() {
            let path = query.text(1)
            let target = "\(assetFolder)/\(path)"
            if let kept = query.optionalText(3) {
                let source = "\(assetFolder)/\(kept)"
                if kept != path, try FileStatus.ofName(source) != nil {
                    try Directory.createAll(parent(of: target))
                    try AtomicFile.publish(source, as: target, replace: true)
                }
            } else {
                // There was no such asset before, or its file was missing.
                // Its folder may be gone, too, where a killed run has done this already.
                if try FileStatus.ofName(target) != nil { try AtomicFile.remove([target]) }
                removeEmptyFolders(above: path)
            }
            finished.insert(query.integer(0))
        }
        for id in finished {
            try database.write {
                try database.statement("DELETE FROM batch_asset WHERE batch = ?").bind(1, id).run()
            }
            try Directory.removeTree(keptFolder(of: id))
        }
        if !finished.isEmpty { removeKeptFolderIfEmpty() }
    }

    /// Runs when a writer opens the store, under its lock: whoever left these things is gone.
    func removeLeftovers() throws {
        try Directory.removeTree("\(assetFolder)/\(Self.incomingFolder)")
        try finishUndoneAssets()
        let kept = "\(assetFolder)/\(Self.keptFolder)"
        guard try FileStatus.ofName(kept)?.isDirectory == true else { return }
        let batches = try batches()
        let wanted = Set(batches.filter { $0.undoneAt == nil }.map(\.id))
        for name in try Directory.names(in: kept) {
            guard let id = Int64(name.split(separator: ".").first ?? "") else { continue }
            if id > batches.last?.id ?? 0 {
                // The transaction that moved these files was never committed.
                try takeBackFiles(of: id)
            } else if !wanted.contains(id) || name.hasSuffix(Self.placedEnding) {
                try Directory.removeTree("\(kept)/\(name)")
            }
        }
        removeKeptFolderIfEmpty()
    }

    private func removeKeptFolderIfEmpty() { rmdir("\(assetFolder)/\(Self.keptFolder)") }

    /// rmdir refuses a folder that is not empty, which is the test.
    private func removeEmptyFolders(above path: String) {
        var folder = parent(of: path)
        while folder != ".", rmdir("\(assetFolder)/\(folder)") == 0 { folder = parent(of: folder) }
    }
}

/// The list of placed files, and taking back what a batch did to the folder.
extension Store {
    static let placedEnding = ".placed"

    func keptFolder(of batch: Int64) -> String { "\(assetFolder)/\(Self.keptFolder)/\(batch)" }

    /// Says that a file is about to be put in place. The kernel has the line when this returns, so a killed run leaves
    /// it; a power cut may lose it, and then leaves whole files that no row names.
    func notePlaced(_ path: String) throws {
        guard let batch = currentBatch else { return }
        if placedFiles == nil {
            let list = keptFolder(of: batch.id) + Self.placedEnding
            try Directory.createAll(parent(of: list))
            placedFiles = try FileHandle.create(list)
        }
        try placedFiles?.write(path + "\0")
    }

    /// The batch is committed: its files stay.
    func dropJournal() throws {
        guard let list = placedFiles else { return }
        placedFiles = nil
        try Directory.removeTree(list.path)
        removeKeptFolderIfEmpty()
    }

    /// Undoes what the files of a batch that was not committed went through. Can be cut short and repeated.
    func takeBackFiles(of batch: Int64) throws {
        let list = keptFolder(of: batch) + Self.placedEnding
        if try FileStatus.ofName(list) != nil {
            for path in try Self.paths(in: list) {
                try Directory.removeTree("\(assetFolder)/\(path)")
                removeEmptyFolders(above: path)
            }
            // Before anything comes back under one of these names.
            try Directory.removeTree(list)
        }
        let kept = keptFolder(of: batch)
        if try FileStatus.ofName(kept) != nil {
            try Directory.walk(kept) { relative, status in
                guard !status.isDirectory else { return }
                let target = "\(assetFolder)/\(relative)"
                try Directory.createAll(parent(of: target))
                try AtomicFile.publish("\(kept)/\(relative)", as: target, replace: true)
            }
            try Directory.removeTree(kept)
        }
        removeKeptFolderIfEmpty()
    }

    private static func paths(in list: String) throws -> [String] {
        var bytes: [UInt8] = []
        try FileHandle.openForReading(list).forEachChunk { bytes += $0 }
        // A name that was not written to its end was not used either.
        return bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
