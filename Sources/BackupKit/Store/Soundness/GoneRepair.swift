extension StoreRepair {
    /// Brings back what the backup has of records that are gone. Returns those that stay so.
    mutating func mendGone() throws -> [GoneRecord] {
        var gone = try store.goneRecords()
        guard !gone.isEmpty else { return [] }
        let back = try gone.filter { try store.isBack($0.key) }
        if !back.isEmpty {
            note(.index, store.path, "\(GoneRecord.count(back.count)) there again, and no longer missed")
            for record in back { try store.removeKey(record.key, record.change) }
            gone.removeAll { back.contains($0) }
        }
        var found: [(record: Record, gone: GoneRecord)] = []
        var names: [Int64: String] = [:]
        try source?.forEachRecord { record in
            let key = store.hasher.key(record.localID)
            if gone.contains(where: { $0.key == key }) { names[key] = "\(record.id)" }
            guard let place = gone.firstIndex(where: { $0.key == key }), try isFree(record.id, besides: .min) else {
                return
            }
            // Of a record that was deleted an older backup knows nothing.
            if gone[place].content == 0, !record.isDeleted { return }
            found.append((record, gone.remove(at: place)))
        }
        for (record, gone) in found {
            let isExact = gone.content == store.hasher.content(record)
            note(
                isExact ? .exact : .older, "\(record.id)",
                isExact
                    ? "was gone, and is back as it was"
                    : "was gone, and is back in the version of the backup, of \(record.modifiedAt.iso8601)")
            try store.removeKey(gone.key, gone.change)
            try store.put(record, replacing: nil)
        }
        guard accepts, !gone.isEmpty else { return gone }
        for record in gone {
            try store.removeKey(record.key, record.change)
            if let name = names[record.key] { note(.accept, name, "the missing record was accepted as lost") }
        }
        let unnamed = gone.count { names[$0.key] == nil }
        let what = unnamed == 1 ? "1 missing record was" : "\(unnamed) missing records were"
        if unnamed > 0 { note(.accept, store.path, "\(what) accepted as lost") }
        return []
    }
}
