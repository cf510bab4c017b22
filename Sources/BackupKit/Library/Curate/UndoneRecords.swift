extension UndoResult {
    /// What an undo or redo leaves: each record by its name, whether it is alive, and what to type next.
    public func findings(in store: Store) throws -> [Finding] {
        try keptNewer.map { id in try finding(of: id, store.ifSound { try store.record(id)?.record } ?? nil) }
            + purged.map { Finding(.protected, .warning, $0.description, "was purged and stays deleted") }
    }

    private func finding(of id: RecordID, _ now: Record?) -> Finding {
        let version = versions[id]
        let alive = [now, version].compactMap(\.self).first { !$0.isDeleted }
        let label = alive.map { RecordLabel.text(of: $0) } ?? ""
        let subject = label.isEmpty ? id.description : "\(label) (\(id))"
        if now?.isDeleted == true {
            return Finding(
                .protected, .warning, subject, "stays deleted: another device has deleted it",
                remedy:
                    "'backup-tool undo' on that device brings it back, and so does 'restore --resurrect' from a backup")
        }
        return Finding(
            .protected, .warning, subject,
            "stays as it is now: it was changed since, or another device has brought it, too",
            remedy: version == nil ? TypedCommand.quoted("store delete", [id.description]) + " removes it" : nil)
    }
}
