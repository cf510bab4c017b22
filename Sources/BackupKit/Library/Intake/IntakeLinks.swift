/// Links files that came with records that were here before.
extension Intake {
    /// Links files with a publication, besides those that it links already.
    func link(_ paths: [String], to localID: String) throws {
        let replaced = try store.addToSet(
            Publication.linkedFiles, paths, localID: localID, type: RecordType.publication)
        if let replaced { try noteRelinked(replaced) }
    }

    /// Names a file that a record of a backup links and that the backup does not have.
    func noteMissing(_ path: String, of record: Record) {
        note(
            Finding(
                .linkMissing, .warning, path,
                "is named by \(RecordLabel.text(of: record)), but is not in the backup",
                remedy: "import it with --attachments DIR if you have it elsewhere"))
    }

    /// Remembers a record as it was before its links changed.
    func noteRelinked(_ replaced: Store.StoredRecord) throws {
        if relinked[replaced.record.id] == nil { relinked[replaced.record.id] = replaced }
    }

    /// Puts changed links into the plan, and counts the records of which nothing else has changed. Must run inside the batch,
    /// after all links.
    func planLinks() throws {
        guard let batch = store.currentBatch, !relinked.isEmpty else { return }
        let planned = result.plan.enumerated().filter { $0.element.action == .update }
            .map { ($0.element.subject, $0.offset) }
        let updates = Dictionary(planned, uniquingKeysWith: { first, _ in first })
        for (id, before) in relinked.sorted(by: { $0.key < $1.key }) {
            guard let now = try store.record(id)?.record else { continue }
            let changes = FieldChange.list(
                from: try Fields.parse(before.record.fields), to: try Fields.parse(now.fields))
            if changes.isEmpty { continue }
            if before.change < batch.firstChange {
                result.linked += 1
                plan(.update, now, id: id, changes: changes)
            } else if let place = updates[id.description] {
                result.plan[place].changes += changes
            }
        }
        relinked = [:]
    }
}
