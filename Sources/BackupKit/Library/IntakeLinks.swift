/// Links files that came with records that were here before.
extension Intake {
    /// Links files with a publication, besides those that it links already.
    func link(_ paths: [String], to localID: String) throws {
        let replaced = try store.addToSet(
            Publication.linkedFiles, paths, localID: localID, type: RecordType.publication)
        if let replaced { try noteRelinked(replaced) }
    }

    /// Remembers a record as it was before its links changed.
    func noteRelinked(_ replaced: Store.StoredRecord) throws {
        if relinked[replaced.record.id] == nil { relinked[replaced.record.id] = replaced }
    }

    /// Lists what has changed of the links of records, and counts those of which nothing else has. Must run inside the batch,
    /// after all links.
    func planLinks() throws {
        guard let batch = store.currentBatch else { return }
        for (id, before) in relinked.sorted(by: { $0.key < $1.key }) {
            guard let now = try store.record(id)?.record else { continue }
            let changes = FieldChange.list(
                from: try Fields.parse(before.record.fields), to: try Fields.parse(now.fields))
            guard !changes.isEmpty else { continue }
            if before.change < batch.firstChange {
                result.linked += 1
                plan(.update, now, id: id, changes: changes)
            } else if let place = result.plan.firstIndex(where: { $0.subject == id.description }),
                result.plan[place].action == .update
            {
                result.plan[place].changes += changes
            }
        }
        relinked = [:]
    }
}
