/// What was written here, no hub has seen, and another device's later delete takes away. The delete stands; only this device
/// has the text, so it goes into quarantine, and the sync names it.
extension Synchronizer {
    struct Overruled {
        let edit: Record
        let envelope: RecordID
    }

    /// Must run inside the `write` that takes the record away.
    func putAside(_ edit: Record, deletedBy merged: Record, base: Ancestor?) throws {
        guard merged.isDeleted, !edit.isDeleted, RecordType.isCounted(edit.type), !Share.isShare(edit),
            let base, try !Fields.same(base.fields, edit.fields)
        else { return }
        let changes = FieldChange.list(from: try Fields.parse(base.fields), to: try Fields.parse(edit.fields))
        // A new cite key may come of a decision about a conflict, and another device has decided otherwise since.
        if edit.type == RecordType.publication, changes.allSatisfy({ WorkIdentity.isNoText($0.name) }) { return }
        var files: [ByteName: SHA256Digest] = [:]
        for path in try Store.links(of: edit) {
            files[ByteName(path)] = try store.ifSound { try store.asset(path) }??.digest
        }
        let envelope = try Quarantine.envelope(of: edit, files: files)
        guard try store.record(envelope.id) == nil else { return }
        try store.put(envelope, replacing: nil)
        overruled.append(Overruled(edit: edit, envelope: envelope.id))
    }

    /// Where a decision or `dedup` has put the record into another one, nothing was deleted. Must run outside of `write`,
    /// when all that the hub has is here.
    func releaseMerged() throws {
        guard !overruled.isEmpty else { return }
        try store.write {
            try overruled.removeAll { overruled in
                guard try store.isTakenIn(overruled.edit) else { return false }
                if let envelope = try store.record(overruled.envelope) { try store.removeRow(envelope) }
                return true
            }
        }
    }

    func reportOverruled() {
        for id in overruled.map(\.edit.id.description) {
            result.findings.append(
                Finding(
                    .protected, .warning, id,
                    "was changed here before another device deleted it: it stays deleted, "
                        + "and what was written here is in quarantine",
                    remedy: TypedCommand.quoted("store enable-cloud", [id]) + " brings it back on all devices"))
        }
    }
}

extension Store {
    /// Whether a living record has taken in this one.
    fileprivate func isTakenIn(_ record: Record) throws -> Bool {
        let query = try database.prepare(
            """
            SELECT \(Self.recordColumns) FROM record
            WHERE type = ?1 AND deleted_at IS NULL AND instr(field_times, ?2) > 0
            """
        ).bind(1, record.type).bind(2, Record.takenInMark)
        while try query.step() {
            guard let taker = try ifSound({ try RowReader.record(query) })?.record else { continue }
            if taker.takenIn[Record.takenInMark + record.localID] != nil { return true }
        }
        return false
    }
}
