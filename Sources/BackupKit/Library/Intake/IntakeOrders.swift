/// The orders of files that a backup has. Which cite keys may stand in them shows only when its publications have come, and
/// those have gone that it does not have.
extension Intake {
    /// Remembers what is kept on this device. Must run before records of a backup come: what it has itself as kept on one
    /// device may stand in its orders.
    func noteKeysKept() throws {
        keysKeptBefore = try keysKeptBefore ?? store.citeKeysOfKept()
    }

    /// Takes the orders that have come. Must run after all publications, and after `--mode replace` has removed others.
    func takeOrders() throws {
        let coming = orders
        orders = []
        for order in try withoutUnwantedKeys(coming) { try take(order) }
    }

    /// The orders without the cite keys of purged publications, and of those that were kept on this device, where no
    /// publication has such a key that goes to all devices. Of the latter an order may go on to list what it lists here.
    private func withoutUnwantedKeys(_ orders: [Record]) throws -> [Record] {
        try noteKeysKept()
        let kept = keysKeptBefore ?? []
        var purged = purgedKeys
        for order in orders { purged.formUnion(try keys(in: order).filter(store.isPurged(citeKey:))) }
        let unwanted = try store.withoutSharedKeys(purged.union(kept))
        guard !unwanted.isEmpty else { return orders }
        return try orders.map { order in
            let listed = try store.soundRecords(localID: order.localID).flatMap { try keys(in: $0.record) }
            var order = order
            order.fields =
                try BibliographyPart.fields(
                    order.fields, withoutKeys: unwanted.subtracting(Set(listed).subtracting(purged))) ?? order.fields
            return order
        }
    }

    private func keys(in order: Record) throws -> [String] {
        try store.ifReadable { try BibliographyPart.keys(in: Fields.parse(order.fields)) } ?? []
    }
}
