/// Files that an app wrote after a commit, where the commit had still to put its own: a command was killed in between, or the
/// app was faster. Readers mean the commit's bytes, so nothing but the folder has the app's.
extension Store {
    /// Names them.
    func lateChanges() throws -> [Finding] { try lateChangedFiles().map { Self.unknownChange($0.path) } }

    /// Names what lies where a finished command has still to put a file, or a folder above it.
    func filesInTheWay() throws -> [Finding] {
        try pendingPaths().compactMap { pending, digest in
            let path = "\(assetFolder)/\(pending.path)"
            guard digest != nil, (try? Self.check(pending.path)) != nil, try obstacle(at: pending.path) != nil,
                try assetStatus(pending.path)?.isDirectory != true || !Directory.names(in: path).isEmpty
            else { return nil }
            return inTheWay(pending.path)
        }
    }

    /// Makes each an attachment under a name of its own; what the commit meant comes under its path. Must run inside `batch`.
    func keepLateChanges() throws {
        for file in try lateChangedFiles() {
            try setAside(file)
            try database.statement("UPDATE asset_pending SET was = ? WHERE path = ?")
                .bind(1, file.digest.hex).bind(2, file.path).run()
        }
    }

    private func lateChangedFiles() throws -> [Asset] {
        let before = try pendingPaths().compactMap { try lateChange($0.pending) }
        guard !before.isEmpty, currentBatch == nil else { return before }
        // A writer may have come by since this transaction began.
        let newest = try Self.connectReader(self.path)
        return try before.filter { file in
            let query = try newest.prepare(
                """
                SELECT 1 FROM asset_pending LEFT JOIN asset USING (path)
                WHERE path = ?1 AND ?2 NOT IN (ifnull(was, ''), ifnull(place, ''), ifnull(sha256, ''))
                """
            ).bind(1, file.path).bind(2, file.digest.hex)
            return try query.step()
        }
    }
}
