extension Store {
    /// Whether what the store remembers of its hub, such as where it lies, is not as the tool wrote it.
    public func hasDamagedHubLink() throws -> Bool {
        try !StoreSchema.isOld(database) && !RowSeal.link.broken(in: self).isEmpty
    }
}

/// Asks the hub again where the sync state of the store is damaged.
extension Synchronizer {
    /// Must run before anything is pulled.
    func mendMemory() throws {
        let (isLinkBroken, paths) = (try !RowSeal.link.broken(in: store).isEmpty, try RowSeal.asset.broken(in: store))
        guard isLinkBroken || !paths.isEmpty else { return }
        if isLinkBroken {
            (link.token, link.head, link.pushedThrough) = (nil, nil, 0)
            try store.write { try store.setHubLink(link) }
        }
        try askAgain(about: paths.filter { damagedAssets[ByteName($0)] == nil })
        let count = paths.count + (isLinkBroken ? 1 : 0)
        result.findings.append(
            Finding(
                .storeDamaged, .warning, store.path,
                "the sync state was damaged in \(count == 1 ? "one row" : "\(count) rows"); the hub was asked again",
                remedy: "'backup-tool store check' looks for more damage"))
    }

    func reportUnknownStates() {
        guard !unknownStates.isEmpty else { return }
        let first = unknownStates.min { $0 < $1 }.map(\.description) ?? ""
        let count = unknownStates.count
        result.findings.append(
            Finding(
                .storeDamaged, .warning, first,
                "what this store knew of the hub was damaged for \(count == 1 ? "this record" : "\(count) records"); "
                    + "both versions were compared",
                remedy: "'backup-tool store check' looks for more damage"))
    }

    /// Nothing tells any more which side has changed a file. Where the two differ, both are kept.
    private func askAgain(about paths: [String]) throws {
        guard !paths.isEmpty else { return }
        let newest = try fetchAll(paths.map { RecordID(zone: Store.assetZone, name: $0) })
        try store.write {
            for path in paths {
                try store.database.statement("DELETE FROM asset_sync WHERE path = ?").bind(1, path).run()
            }
        }
        try makeWay(for: newest)
        try store.write { for record in newest { try applyAsset(record) } }
    }
}
