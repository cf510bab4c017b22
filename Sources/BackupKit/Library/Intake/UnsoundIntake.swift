extension Intake {
    /// Looks for damage before the first record of a backup is taken. Must run inside the batch.
    func findUnsoundRows() throws { unsoundRows = try unsoundRows ?? UnsoundRows(store) }

    /// Mends a damaged row where the backup has what it was, or leaves the backup's version out by name. Nil where no damaged
    /// row is in the way.
    func takeOverDamage(_ record: Record) throws -> Outcome? {
        guard let row = unsoundRows?.row(of: record, store.hasher) else { return nil }
        guard try store.mend(row, with: record) else {
            let finding = row.damage.inTheWay
            toldUnsound.insert(row.change)
            return try refuse(
                record,
                Finding(finding.code, finding.severity, "\(record.id)", finding.message, remedy: finding.remedy))
        }
        unsoundRows?.forget(row)
        store.damage.forget(row.damage)
        touched.insert(record.id)
        result.updated += 1
        plan(.update, record, id: record.id, reason: "was damaged in the store, and is again what it was")
        return Outcome(id: record.id, localID: record.localID, decision: .update(record, []), wasAlive: true)
    }

    /// Names the damaged rows that the backup has nothing for.
    func noteUnsoundRows(of kinds: Set<Kind>) {
        for row in (unsoundRows?.rows ?? [:]).values.sorted(by: { $0.change < $1.change }) {
            guard kinds.contains(row.damage.kind), !toldUnsound.contains(row.change) else { continue }
            note(
                Finding(
                    row.damage.isChanged ? .recordChanged : .recordDamaged, .damage, row.damage.subject,
                    "\(row.damage.reason); it was left as it is",
                    remedy: row.damage.isChanged ? StoreRemedy.repairFrom : StoreRemedy.repairOrGiveUp))
        }
    }
}
