extension Intake {
    /// Keeps a damaged row of a backup.
    func take(_ row: DamagedRow) throws {
        result.read += 1
        if row.table == .record, try store.isPurged(row.id) {
            result.protected += 1
            return notePurged(row.id)
        }
        if row.table == .record, let known = try store.ifSound({ try store.record(row.id) }) ?? nil,
            !known.record.isDeleted
        {
            // Not missing from the backup, so `--mode replace` does not remove it.
            touched.insert(row.id)
            result.unchanged += 1
            return note(
                Finding(
                    .recordDamaged, .warning, row.subject,
                    "is damaged in the backup; the store's sound version was left as it is"))
        }
        let isNew = try store.setAside(row)
        if isNew { result.added += 1 } else { result.unchanged += 1 }
        note(
            Finding(
                .recordDamaged, .warning, row.subject,
                "is damaged in the backup; its values were kept as they are",
                remedy: "'backup-tool store repair --from OLDER-BACKUP' looks for a sound version"))
    }
}

extension DamagedRow {
    /// Why a sound version cannot be taken in as long as the damaged one is there.
    var inTheWay: Finding {
        Finding(
            .recordDamaged, .error, subject, "is damaged in the store, so this version was left out: \(reason)",
            remedy: Self.remedy)
    }
}
