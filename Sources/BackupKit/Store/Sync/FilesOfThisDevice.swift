/// Files that a sync leaves on this device: the records that link them are kept here, or were deleted before the hub had the
/// file. What another record links, too, is for all.
struct FilesOfThisDevice {
    private let ofDeleted: Set<ByteName>
    private var ofKept: LivingLinks
    private var ofShared: LivingLinks

    init(_ store: Store) throws {
        ofDeleted = Set(try store.filesOfDeleted().keys.map { ByteName($0) })
        ofKept = LivingLinks(store) { $0.isLocalOnly }
        ofShared = LivingLinks(store) { !$0.isLocalOnly }
    }

    mutating func contain(_ pending: Store.PendingAsset) throws -> Bool {
        guard pending.asset != nil else { return false }
        let wasLeft = pending.base == nil && ofDeleted.contains(ByteName(pending.path))
        return try (wasLeft || ofKept.contains(pending.path)) && !ofShared.contains(pending.path)
    }
}

extension Store {
    /// How many files wait for the hub. Damaged rows count, as they wait to be mended.
    func filesForTheHub(after change: Int64) throws -> Int {
        guard try pendingAssets(after: change) > 0 else { return 0 }
        var kept = try FilesOfThisDevice(self)
        var damaged = 0
        let waiting = try pendingAssets { _ in damaged += 1 }
        return try waiting.filter { try !kept.contain($0) }.count + damaged
    }
}
