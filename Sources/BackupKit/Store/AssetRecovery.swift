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
            WHERE undone_at IS NOT NULL
            """)
        var finished: Set<Int64> = []
        while try query.step() {
            let target = "\(assetFolder)/\(query.text(1))"
            if let kept = query.optionalText(3) {
                if try FileStatus.ofName("\(assetFolder)/\(kept)") != nil {
                    try AtomicFile.publish("\(assetFolder)/\(kept)", as: target, replace: true)
                }
            } else if query.isNull(2), try asset(query.text(1)) == nil {
                try Directory.removeTree(target)
                removeEmptyFolders(above: query.text(1))
            }
            finished.insert(query.integer(0))
        }
        for id in finished {
            try database.write {
                try database.statement("DELETE FROM batch_asset WHERE batch = ?").bind(1, id).run()
            }
            try Directory.removeTree("\(assetFolder)/\(Self.keptFolder)/\(id)")
        }
    }

    /// Runs when a writer opens the store, under its lock: whoever left these things is gone.
    func removeLeftovers() throws {
        for name in try Directory.names(in: assetFolder) where name.hasPrefix(Self.incomingPrefix) {
            try Directory.removeTree("\(assetFolder)/\(name)")
        }
        try finishUndoneAssets()
        let kept = "\(assetFolder)/\(Self.keptFolder)"
        guard try FileStatus.ofName(kept)?.isDirectory == true else { return }
        let newest = try database.integer("SELECT ifnull(max(id), 0) FROM batch")
        for name in try Directory.names(in: kept) {
            guard let id = Int64(name), id > newest else { continue }
            // The transaction that moved these files away was never committed: they come back.
            try Directory.walk("\(kept)/\(name)") { relative, status in
                guard status.isRegular else { return }
                let target = "\(assetFolder)/\(relative)"
                try Directory.createAll(parent(of: target))
                try AtomicFile.publish("\(kept)/\(name)/\(relative)", as: target, replace: true)
            }
            try Directory.removeTree("\(kept)/\(name)")
        }
    }

    private func removeEmptyFolders(above path: String) {
        var folder = parent(of: path)
        // rmdir refuses a folder that is not empty, which is the test.
        while folder != ".", rmdir("\(assetFolder)/\(folder)") == 0 { folder = parent(of: folder) }
    }
}
