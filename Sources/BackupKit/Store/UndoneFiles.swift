/// Files that an undo brings back where records that came later have a file of that name.
extension Store {
    /// The files of the records that the batch took out; none where it changed no file.
    func filesLetGo(by batch: Batch) throws -> Set<ByteName> {
        let hasFiles = try database.prepare("SELECT 1 FROM batch_asset WHERE batch = ? AND size IS NOT NULL LIMIT 1")
            .bind(1, batch.id)
        guard try hasFiles.step() else { return [] }
        let query = try database.prepare("SELECT \(Self.recordColumns), after FROM batch_record WHERE batch = ?")
            .bind(1, batch.id)
        var paths: Set<ByteName> = []
        while try query.step() {
            guard let old = try ifSound({ try RowReader.record(query) })?.record, !old.isDeleted else { continue }
            let links = try Self.links(of: old)
            guard !links.isEmpty else { continue }
            let now = try query.optionalInteger(13).map { change in try ifSound { try stored(change: change) } ?? nil }
            if now??.record.isDeleted != false { paths.formUnion(links.map { ByteName($0) }) }
        }
        return paths
    }

    /// Whether a record means the file that lies there now, and not the one that comes back.
    func isAnothers(_ now: Asset, than old: Asset) throws -> Bool {
        guard now.digest != old.digest else { return false }
        var found = false
        try forEachLinking { stored in
            guard !found, !isOfUndo(stored) else { return }
            found = try Self.links(of: stored.record).contains { sameBytes($0, now.path) }
        }
        return found
    }

    /// The old file gets another name, and the records that came back with it follow. Must run inside `batch`.
    func comeBack(_ old: Asset, kept: String?, beside now: Asset) throws {
        var names = try namesApart().names
        guard let path = try nameApart(old, from: &names) else { return }
        let file = old.renamed(path)
        if try !hasAsset(path) {
            try addRow(file, kept: nil)
            try setPending(path, was: nil, place: kept == old.digest.hex ? nil : kept ?? "")
        }
        try relink([ByteName(now.path): path]) { stored, _ in isOfUndo(stored) ? .ours : .theirs }
        fileFindings.append(
            Finding(
                .conflict, .warning, now.path, "is another file by now, which stays; the old one came back as \(path)"))
    }

    private func isOfUndo(_ stored: StoredRecord) -> Bool {
        currentBatch.map { stored.change >= $0.firstChange } ?? false
    }
}
