/// Files that a sync leaves on this device: the records that link them are kept here, or were deleted before the hub had the
/// file. What another record links, too, is for all.
extension Store {
    /// Those that wait for the hub, without the files of this device.
    func forTheHub(_ waiting: [PendingAsset]) throws -> [PendingAsset] {
        if waiting.isEmpty { return [] }
        let ofDeleted = Set(try filesOfDeleted().keys.map { ByteName($0) })
        var kept = LivingLinks(self) { $0.isLocalOnly }
        let ofKept = try kept.all()
        if ofDeleted.isEmpty, ofKept.isEmpty { return waiting }
        var shared = LivingLinks(self) { !$0.isLocalOnly }
        let ofShared = try shared.all()
        return waiting.filter { pending in
            let path = ByteName(pending.path)
            let wasLeft = pending.base == nil && ofDeleted.contains(path)
            return pending.asset == nil || ofShared.contains(path) || !wasLeft && !ofKept.contains(path)
        }
    }

    /// How many files wait for the hub. Damaged rows count, as they wait to be mended.
    func filesForTheHub(after change: Int64) throws -> Int {
        guard try pendingAssets(after: change) > 0 else { return 0 }
        var damaged = 0
        let waiting = try pendingAssets { _ in damaged += 1 }
        return try forTheHub(waiting).count + damaged
    }
}
