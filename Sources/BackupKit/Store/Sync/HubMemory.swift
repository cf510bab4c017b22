/// Where the store's memory of its hub is damaged, the hub is asked again.
extension Synchronizer {
    /// Must run before anything is pulled.
    func mendMemory() throws {
        let (isLinkBroken, paths) = (try !SyncSeal.link.broken(in: store).isEmpty, try SyncSeal.asset.broken(in: store))
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
                "what the store knew of its hub was damaged in \(count == 1 ? "one row" : "\(count) rows"), and was asked "
                    + "for again",
                remedy: "'backup-tool store check' looks for more damage"))
    }

    /// Which side has changed a file is not known any more: where the two differ, both stay.
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
