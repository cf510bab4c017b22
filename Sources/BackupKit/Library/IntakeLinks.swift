/// Links files that came with records that were here before.
extension Intake {
    /// Links files with a publication, besides those that it links already.
    func link(_ paths: [String], to localID: String) throws {
        let replaced = try store.addToSet(
            Publication.linkedFiles, paths, localID: localID, type: RecordType.publication)
        if let replaced { try noteRelinked(replaced) }
    }

    /// Remembers a record as it was before its links changed, unless this batch has written it: then the plan lists it already.
    func noteRelinked(_ replaced: Store.StoredRecord) throws {
        guard let batch = store.currentBatch, replaced.change < batch.firstChange,
            relinked[replaced.record.id] == nil
        else { return }
        relinked[replaced.record.id] = replaced.record
    }

    /// Counts and lists the records of which only the links changed. Must run inside the batch, after all links.
    func planLinks() throws {
        for (id, before) in relinked.sorted(by: { $0.key < $1.key }) {
            guard let now = try store.record(id)?.record else { continue }
            let changes = FieldChange.list(from: try Fields.parse(before.fields), to: try Fields.parse(now.fields))
            guard !changes.isEmpty else { continue }
            result.linked += 1
            plan(.update, now, id: id, changes: changes)
        }
        relinked = [:]
    }
}
