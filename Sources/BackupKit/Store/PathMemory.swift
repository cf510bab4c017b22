/// What the undo history says of paths. A sync may take a path away from the file that the history means: the history
/// follows the file, so that an undo brings records back with their own bytes.
extension Store {
    /// Files have other names: what earlier batches remember of them, and of records that link them, follows. Must run
    /// inside `batch`.
    func moveMemory(_ moved: [ByteName: String]) throws {
        guard let batch = currentBatch, !moved.isEmpty else { return }
        var moved = moved
        for (old, free) in moved {
            let new = try placeInMemory(of: old.text, movedTo: free)
            moved[old] = new
            // The undo of an import takes its own file away, and not one that was here before.
            try database.statement(
                """
                UPDATE OR IGNORE batch_asset SET path = ?2, kept = nullif(kept, path) WHERE path = ?1 AND batch <> ?3
                AND (sha256 IS NOT NULL OR NOT EXISTS (SELECT 1 FROM asset WHERE path = ?2 AND change < ?4))
                """
            ).bind(1, old.text).bind(2, new).bind(3, batch.id).bind(4, batch.firstChange).run()
            try forgetAsset(old.text)
            try moveOwners(of: old.text, to: free)
        }
        let rows = try database.prepare(
            """
            SELECT rowid, type, fields FROM batch_record WHERE deleted_at IS NULL AND type IN (?, ?)
            """
        ).bind(1, RecordType.publication).bind(2, RecordType.event)
        var changed: [(row: Int64, fields: String)] = []
        while try rows.step() {
            guard RecordFiles.mayName(rows.bytes(2)) else { continue }
            let (type, text) = (rows.text(1), rows.text(2))
            let fields = try ifReadable { RecordFiles.following(moved, in: try Fields.parse(text), type: type) } ?? nil
            if let fields { changed.append((rows.integer(0), Fields.text(fields))) }
        }
        rows.reset()
        for (row, fields) in changed {
            try database.statement("UPDATE batch_record SET fields = ?, row_hash = NULL WHERE rowid = ?").bind(
                1, fields
            ).bind(2, row)
                .run()
        }
    }

    /// Whether a file that leaves its path may get another one. An undo goes by paths, so two files that the history
    /// remembers never get one.
    func canMoveMemory(of old: String, to new: String) throws -> Bool {
        let here = try remembered(at: old)
        guard here.rows > 0 else { return true }
        guard try remembered(at: new).rows == 0 else { return false }
        return try here.files == 0 || !wasThere(new)
    }

    /// What earlier batches remember of a path: rows, and those of them that say which file was there.
    private func remembered(at path: String) throws -> (rows: Int64, files: Int64) {
        let query = try database.statement(
            "SELECT count(*), count(sha256) FROM batch_asset WHERE path = ? AND batch IS NOT ?"
        ).bind(1, path).bind(2, currentBatch?.id)
        defer { query.reset() }
        return try query.step() ? (query.integer(0), query.integer(1)) : (0, 0)
    }

    /// Whether an asset had that path before the running batch.
    private func wasThere(_ path: String) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM asset WHERE path = ? AND change < ?")
            .bind(1, path).bind(2, currentBatch?.firstChange ?? .max)
        defer { query.reset() }
        return try query.step()
    }

    /// Where the history remembers from now on a file that has another name: beside it, where two files would meet.
    private func placeInMemory(of old: String, movedTo new: String) throws -> String {
        guard try !canMoveMemory(of: old, to: new), let file = try rememberedFile(at: old) else { return new }
        return try nameOnLeaving(file) ?? new
    }

    /// The name beside another file that a file gets when it leaves its path; nil where it needs none.
    func nameOnLeaving(_ file: Asset) throws -> String? {
        switch try nameBesideAnother(file, isMoved: true) {
        case .conflict(let free), .known(let free): free
        case .added, .unchanged: nil
        }
    }

    /// The latest file that the history remembers under a path and that has other bytes.
    private func rememberedFile(at path: String, besides digest: SHA256Digest? = nil) throws -> Asset? {
        let query = try database.prepare(
            """
            SELECT \(Self.assetColumnNames.joined(separator: ", ")) FROM batch_asset
            WHERE path = ?1 AND sha256 IS NOT NULL AND sha256 IS NOT ?2 AND (?2 IS NULL OR kept = sha256)
            ORDER BY batch DESC LIMIT 1
            """
        ).bind(1, path).bind(2, digest?.hex)
        guard try query.step() else { return nil }
        return try ifSound { try RowReader.asset(query) }
    }

    /// A file gets a path that has none: what the history remembers under it gets another name. Must run inside `batch`.
    func makeRoomInMemory(at path: String) throws {
        guard let file = try rememberedFile(at: path), let free = try nameOnLeaving(file) else { return }
        try moveMemory([ByteName(path): free])
    }

    /// A file that this batch has removed stays for those batches whose undo brings back a record that links it, under a
    /// name of its own where another file takes its path.
    func keepForUndo(_ asset: Asset, isReplaced: Bool, for batches: Set<Int64>) throws {
        var path = asset.path
        guard try !batches.isEmpty || isRemembered(asset.path) else { return try forgetAsset(asset.path) }
        if isReplaced {
            path = try nameOnLeaving(asset) ?? path
            try moveMemory([ByteName(asset.path): path])
        }
        for batch in batches {
            try database.statement(
                """
                INSERT OR IGNORE INTO batch_asset SELECT ?1, ?2, size, sha256, local_only, modified_ns, kept
                FROM batch_asset WHERE batch = ?3 AND path = ?4
                """
            ).bind(1, batch).bind(2, path).bind(3, currentBatch?.id).bind(4, asset.path).run()
        }
    }

    private func isRemembered(_ path: String) throws -> Bool {
        let query = try database.statement(
            "SELECT 1 FROM batch_asset WHERE path = ?1 AND batch <> ?2 AND sha256 IS NOT NULL"
        ).bind(1, path).bind(2, currentBatch?.id)
        defer { query.reset() }
        return try query.step()
    }

    func remembersAsset(_ path: String) throws -> Bool {
        let query = try database.statement("SELECT 1 FROM batch_asset WHERE path = ? LIMIT 1").bind(1, path)
        defer { query.reset() }
        return try query.step()
    }

    /// Another file takes a path that is empty here: what the history remembers of an earlier one gets another name.
    func makeRoomInMemory(for digest: SHA256Digest, at path: String) throws {
        guard let earlier = try rememberedFile(at: path, besides: digest) else { return try forgetAsset(path) }
        if let free = try nameOnLeaving(earlier) { try moveMemory([ByteName(path): free]) }
    }
}

/// The files that records of the undo history link, with the batches.
struct RememberedLinks {
    private let store: Store
    private var batches: [ByteName: Set<Int64>]?

    init(_ store: Store) { self.store = store }

    /// Which batches' undo brings back a record that links a file.
    mutating func batches(linking path: String) throws -> Set<Int64> {
        let known = try batches ?? read()
        batches = known
        return known[ByteName(path)] ?? []
    }

    private func read() throws -> [ByteName: Set<Int64>] {
        var found: [ByteName: Set<Int64>] = [:]
        let rows = try store.database.prepare(
            "SELECT batch, type, fields FROM batch_record WHERE deleted_at IS NULL")
        while try rows.step() {
            guard RecordFiles.mayName(rows.bytes(2)) else { continue }
            let links = try store.ifReadable { try Store.links(in: rows.text(2), type: rows.text(1)) } ?? []
            for path in links { found[ByteName(path), default: []].insert(rows.integer(0)) }
        }
        return found
    }
}
