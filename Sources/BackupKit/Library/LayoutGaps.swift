/// What a backup does not hold, however sound it is: whoever reads it is told.
extension OpenedLayout {
    func gaps(_ kinds: Set<Kind>) -> [Finding] {
        guard case .own(let manifest) = manifest else { return [] }
        return manifest.omitted.compactMap { omission in
            if !kinds.contains(.attachments), Layout.role(of: omission.path) == .attachment { return nil }
            if let held = omission.findingOfHeld { return held }
            return Finding(
                .leftOut, .warning, omission.path, "was left out when this backup was made: \(omission.reason)")
        }
    }
}

extension Store {
    /// The files that this store knows and does not have: those that an export left out, and those that the hub has not sent.
    func filesElsewhere(_ omitted: [Omission]) throws -> [Asset] {
        let known = try omitted.compactMap { omission in try ifSound { try asset(omission.path) } ?? nil }
        guard try hasSyncTables, try !StoreSchema.isOld(database) else { return known }
        return try known + wantedAssets().compactMap(\.awaited)
    }
}
