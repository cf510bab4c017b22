extension Synchronizer {
    /// A sync that knows how to put the text of a merged publication together again.
    public static func sync(_ store: Store, with hub: any Hub, _ options: SyncOptions) throws -> SyncResult {
        try Synchronizer(store, hub, options, derive: Intake.derive).run()
    }
}
