extension Synchronizer {
    /// A sync that knows how to put the text of a merged publication together again. A dry run is the same sync with a copy
    /// of the hub's records, and the store's own rows are taken back at its end.
    public static func sync(_ store: Store, with hub: any Hub, _ options: SyncOptions) throws -> SyncResult {
        guard options.dryRun else { return try synchronizer(store, hub, options).run() }
        guard let hub = hub as? FileHub else {
            throw BackupError(.refused, "a dry run needs a hub in a file", at: try hub.identity().location)
        }
        let awaited = try store.filesOnTheWay()
        var result = try ScratchStore.withFolder { folder in
            let hub = try RehearsalHub(hub, copyAt: "\(folder)/hub.db")
            return try store.play { try synchronizer(store, hub, options).run() }
        }
        result.awaited = awaited
        return result
    }

    private static func synchronizer(_ store: Store, _ hub: any Hub, _ options: SyncOptions) -> Synchronizer {
        Synchronizer(
            store, hub, options, derive: Intake.derive,
            beforePush: { try $0.removeKeptKeysFromPendingOrders() })
    }
}
