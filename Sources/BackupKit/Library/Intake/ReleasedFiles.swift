/// The files of a record that leaves quarantine: the bytes that its backup meant, under whatever name the store has them.
struct ReleasedFiles {
    private let store: Store
    private let folder: String
    /// What the backup said; nil where the envelope does not know.
    private let digests: [ByteName: SHA256Digest]?

    init(_ store: Store, _ folder: String, digests: [ByteName: SHA256Digest]?) {
        (self.store, self.folder, self.digests) = (store, folder, digests)
    }

    /// The record with links to its own files. Files come out of quarantine on the way. Must run inside `batch`.
    func linked(by record: Record) throws -> Record {
        var moved: [ByteName: String] = [:]
        var strange: [String] = []
        for link in try Store.links(of: record) {
            guard let place = try place(of: link, in: record) else {
                strange.append(link)
                continue
            }
            if !sameBytes(place, link) { moved[ByteName(link)] = place }
        }
        return try record.leaving(strange).following(moved)
    }

    /// Where the file of a link lies now; nil where another file has its path, which is named.
    private func place(of path: String, in record: Record) throws -> String? {
        let digest = digests?[ByteName(path)]
        let present = try store.asset(path)
        if let present, present.digest == digest { return path }
        if let kept = try inQuarantine(path, digest) { return try takeOut(kept, as: path) }
        if let digest, let other = try store.assets(with: digest).first(where: { !isAside($0) }) { return other.path }
        guard present != nil, try isOfOthers(path, record) else { return path }
        store.fileFindings.append(
            Finding(
                .linkMissing, .warning, path,
                "is named by \(RecordLabel.text(of: record)), but is not in quarantine; "
                    + "the store has another file of that name, so it was not linked",
                remedy: "restore it from a backup that has it, or import it with --attachments DIR"))
        return nil
    }

    private func isAside(_ asset: Asset) -> Bool { asset.path.hasPrefix(Intake.quarantined("")) }

    private func inQuarantine(_ path: String, _ digest: SHA256Digest?) throws -> Asset? {
        let kept: Asset?
        if let digest {
            kept = try store.assets(with: digest).first(where: isAside)
        } else {
            kept = digests == nil ? try store.asset(Intake.quarantined(path)) : nil
        }
        return try kept.flatMap { try store.isInPlace($0) ? $0 : nil }
    }

    /// Whether a file is another work's, as far as the envelope and the store tell.
    private func isOfOthers(_ path: String, _ record: Record) throws -> Bool {
        let own = try store.linksOfLiving(record)
        if own.contains(where: { sameBytes($0, path) }) { return false }
        if digests?[ByteName(path)] != nil { return true }
        var links = LivingLinks(store)
        return try links.contains(path)
    }

    private func takeOut(_ kept: Asset, as path: String) throws -> String {
        let source = try store.openPlace(of: kept)
        let copy = "file-\(RandomID.make())"
        guard try RootDirectory(folder).copy(source, to: copy) == kept.digest else {
            throw BackupError(.damaged, "is not what the store remembers", at: source.path)
        }
        let asset = Asset(
            path: path, size: kept.size, digest: kept.digest, modifiedNanoseconds: kept.modifiedNanoseconds)
        // Where another file has that name by now, both are kept, and a person decides.
        let outcome = try store.placeAsset(asset, from: "\(folder)/\(copy)")
        try store.removeAsset(kept)
        return switch outcome {
        case .conflict(let other), .known(let other): other
        case .added, .unchanged: path
        }
    }
}

extension Store {
    /// The files that have these bytes.
    fileprivate func assets(with digest: SHA256Digest) throws -> [Asset] {
        let query = try database.prepare(
            "SELECT \(Self.assetColumnNames.joined(separator: ", ")) FROM asset WHERE sha256 = ? ORDER BY path"
        ).bind(1, digest.hex)
        var found: [Asset] = []
        while try query.step() { if let asset = try ifSound({ try RowReader.asset(query) }) { found.append(asset) } }
        return found
    }
}
