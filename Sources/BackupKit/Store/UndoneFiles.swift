/// Files that an undo brings back, also where records that came later have a file of that name.
extension Store {
    /// The rows are put back as they were before the batch, and what lay under their paths.
    func revertAssets(
        _ batch: Batch, _ letGo: Set<ByteName>, but overruled: Set<ByteName>, _ result: inout UndoResult
    ) throws {
        let query = try database.prepare(
            "SELECT path, size, sha256, local_only, modified_ns, kept FROM batch_asset WHERE batch = ? ORDER BY path DESC"
        ).bind(1, batch.id)
        var before: [(path: String, asset: Asset?, kept: String?)] = []
        while try query.step() {
            guard let asset = try ifSound({ query.isNull(1) ? nil : try RowReader.asset(query) }) else { continue }
            before.append((query.text(0), asset, query.optionalText(5)))
        }
        var links = LivingLinks(self)
        var laterLinks = try linksMadeSince(batch, but: result.broughtBack)
        let unwanted = try filesOfDeleted(result.keptNewer, in: batch)
        for (path, asset, kept) in before where !overruled.contains(ByteName(path)) {
            // A damaged row stays as it is, and is named.
            guard let now = try ifSound({ try self.asset(path) }) else { continue }
            // It came with the batch, and a record that has come since names it.
            if asset == nil, let now, try isMeant(now, &laterLinks) {
                fileFindings.append(Self.stays(path, "a record that came or was changed since links this file"))
                continue
            }
            // The record that it would come back with stays deleted.
            if now == nil, asset != nil, try unwanted.contains(ByteName(path)) && !links.contains(path) { continue }
            // A record that has come since means the file that lies there now, and not the one that comes back.
            if let now, let asset, now.digest != asset.digest, letGo.contains(ByteName(path)),
                try laterLinks.contains(path)
            {
                try comeBack(asset, kept: kept, beside: now)
                result.assets += 1
                continue
            }
            let isSetBack = try asset.map { try wasSetBack($0, kept: kept, as: now) } ?? false
            if isSetBack {
                guard now?.digest == asset?.digest else {
                    fileFindings.append(Self.stays(path, "what lay here before was missing or damaged"))
                    continue
                }
                result.setBack += 1
                if now?.isLocalOnly == asset?.isLocalOnly { continue }
            }
            if let now { try removeAsset(now, for: asset?.digest) }
            if now != nil, asset == nil, let found = try obstacle(at: path) {
                fileFindings.append(Self.stays(found.place, "\(found.name) lies in the place of the file"))
            }
            // What was set aside comes back under its own name before, so that it is not set aside twice.
            let stranger = try now == nil && asset != nil ? stranger(at: path) : nil
            // The batch had taken the file as it was: then its own old bytes come back where something still keeps them.
            let isAdoption = asset != nil && now != nil && kept != asset?.digest.hex && kept == now?.digest.hex
            if let asset {
                try addRow(asset, kept: stranger?.digest.hex)
                let isKept = try kept == asset.digest.hex || isSetBack || isAdoption && isKept(asset)
                try setPending(path, was: stranger?.digest, place: isKept ? nil : kept ?? "")
                if isKept || now == nil && kept == nil { try checkKeptBytes(of: asset) }
                if let stranger, stranger.digest != asset.digest { try setAside(stranger) }
                if isAdoption, !isKept {
                    fileFindings.append(Self.oldBytesAreGone(path))
                    continue
                }
            } else {
                // One that is gone is a change too, which a hub has to hear of.
                _ = nextChange()
                // The batch found the file in place, or another one that it set aside.
                if kept == path {
                    try forgetPending(path)
                } else if let kept {
                    try setPending(path, was: nil, place: kept)
                }
            }
            result.assets += 1
        }
    }

    /// What the records link that came or were changed after a batch. A link that was there before the batch brought its
    /// file waits for that file again. Must run inside the batch that takes that one back, once its records are back.
    private func linksMadeSince(_ batch: Batch, but broughtBack: Set<Int64>) throws -> LivingLinks {
        // An undo in between has given these new numbers, and has brought them back as they were before the batch.
        let query = try database.prepare("SELECT change FROM batch_added WHERE batch < ? AND NOT edited").bind(
            1, batch.id)
        var older = broughtBack
        while try query.step() { older.insert(query.integer(0)) }
        return LivingLinks(self) { $0.change >= batch.firstChange && !older.contains($0.change) }
    }

    private static func stays(_ path: String, _ why: String) -> Finding {
        Finding(.protected, .warning, path, "stays: \(why)")
    }

    private func isMeant(_ now: Asset, _ links: inout LivingLinks) throws -> Bool {
        try links.contains(now.path) && !isAwaited(now.path, otherThan: now.digest)
    }

    /// Whether a batch has put bytes under an attachment whose file was gone or had rotted. That is a repair, and stays; what an
    /// app wrote there comes back.
    private func wasSetBack(_ asset: Asset, kept: String?, as now: Asset?) throws -> Bool {
        guard let now, kept != asset.digest.hex, kept != now.digest.hex else { return false }
        guard let kept = kept.flatMap({ SHA256Digest(hex: $0) }), let old = try assetStatus(Self.blob(kept)) else {
            return true
        }
        return Self.isHarmed(old, asset)
    }

    /// The files that a batch's old versions of records link which were deleted since.
    private func filesOfDeleted(_ kept: [RecordID], in batch: Batch) throws -> Set<ByteName> {
        var ids: Set<RecordID> = []
        for id in kept where try ifSound({ try record(id) })??.record.isDeleted != false { ids.insert(id) }
        guard !ids.isEmpty else { return [] }
        var paths: Set<ByteName> = []
        let query = try database.prepare("SELECT \(Self.recordColumns) FROM batch_record WHERE batch = ?")
            .bind(1, batch.id)
        while try query.step() {
            guard let old = try ifSound({ try RowReader.record(query) })?.record, ids.contains(old.id) else { continue }
            paths.formUnion(try Self.links(of: old).map { ByteName($0) })
        }
        return paths
    }

    private func isKept(_ asset: Asset) throws -> Bool {
        try hasBlob(asset.digest) && digest(at: Self.blob(asset.digest)) == asset.digest
    }

    /// Names a file whose kept bytes are gone or changed. No other check reads them.
    private func checkKeptBytes(of asset: Asset) throws {
        let isThere = try hasBlob(asset.digest)
        if try isKept(asset) { return }
        fileFindings.append(
            Finding(
                .digestMismatch, .warning, asset.path,
                isThere
                    ? "came back damaged: the store's copy of its bytes was changed"
                    : "did not come back: the store's copy of its bytes is gone",
                remedy: StoreRemedy.repairFile))
    }

    private static func oldBytesAreGone(_ path: String) -> Finding {
        Finding(
            .digestMismatch, .warning, path,
            "keeps its new bytes: it was changed in place, and the store has no copy of the old ones",
            remedy:
                "'backup-tool restore BACKUP --match NAME' brings them back; "
                + "'backup-tool undo --redo' adopts the new ones again")
    }

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

    /// The old file gets another name, and the records that came back with it follow. Must run inside `batch`.
    private func comeBack(_ old: Asset, kept: String?, beside now: Asset) throws {
        var names = try namesApart().names
        guard let path = try nameApart(old, from: &names) else { return }
        let file = old.renamed(path)
        if try !hasAsset(path) {
            try addRow(file, kept: nil)
            try setPending(path, was: nil, place: kept == old.digest.hex ? nil : kept ?? "")
            if kept == old.digest.hex { try checkKeptBytes(of: file) }
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
