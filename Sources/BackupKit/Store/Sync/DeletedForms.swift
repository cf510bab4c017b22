/// An event that one device knows by its `localId` alone and another by an id beside that, and that either has deleted before the
/// other one heard of it: it goes in both forms, unless what is left was written later.
extension Synchronizer {
    /// Must run outside of `write`, when all that the hub has is here.
    func buryOtherForms(of new: Set<Int64>) throws {
        let gone = goneEvents
        goneEvents = GoneEvents()
        let unseen = new.isEmpty ? [] : try eventsDeletedUnseen()
        guard !new.isEmpty || !gone.ids.isEmpty else { return }
        try store.write {
            let older = try store.deletedEvents().taken.filter { new.contains($0.key) || gone.beside.contains($0.key) }
            for id in older.values.map(\.id).sorted() {
                for stored in try store.soundRecords(localID: id) { try buryOtherForm(stored, isNew: new) }
            }
            guard !gone.ids.isEmpty || !unseen.isEmpty else { return }
            var newer: [Store.StoredRecord] = []
            try store.forEachEvent(after: changesBefore) { stored, isUnseen in
                // What came with an id was kept by whoever sent it, knowing all deletes but those of this device.
                let deleted = isUnseen ? gone.ids : unseen
                guard let other = EventText.idBeside(stored.record), deleted.contains(store.hasher.key(other)) else {
                    return
                }
                newer.append(stored)
            }
            for stored in newer { try buryOtherForm(stored, isNew: new) }
        }
    }

    private func buryOtherForm(_ stored: Store.StoredRecord, isNew new: Set<Int64>) throws {
        let event = stored.record
        guard !event.isLocalOnly, let deleted = try store.deletedEvent(having: event)?.record,
            deleted.modifiedAt >= event.latestTime,
            // The hub may have the event of that id under another name, and that one lives on.
            try store.soundRecords(localID: event.localID).allSatisfy({
                $0.record.id == event.id || $0.record.isDeleted
            })
        else { return }
        let isNew = new.contains(store.hasher.key(event.localID))
        try putAside(event, deletedBy: deleted, isNew ? .deletedHere : .deletedByOthers)
        try store.put(event.tombstone(at: deleted.modifiedAt), replacing: stored)
    }
}

/// Keys of the ids of events that were deleted elsewhere, and of what they had beside these.
struct GoneEvents {
    var ids: Set<Int64> = []
    var beside: Set<Int64> = []
}
